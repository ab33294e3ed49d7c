import json
from pathlib import Path

import pytest

from weft.cli import main
from weft.errors import BadInput
from weft.fabrics.packet import Packet
from weft.report.stress import conclusions, conclusions_text, variants
from weft.study import Study
from weft.units import KB, ms
from weft.workload import WORKLOADS


def comparison(*transports):
    fabrics = [Packet(hosts=16, transport=name) for name in transports]
    return Study(fabrics=fabrics, workloads=[WORKLOADS["incast"](fan_in=15, bytes=60 * KB)], seeds=[1])


def test_each_variation_changes_one_thing():
    fabric = Packet(hosts=16, transport="tcp")
    made = {name: (changed, seed) for name, changed, seed in variants(fabric, 4, ["seed", "mtu", "ties", "rto"])}
    assert made["seed 5"] == (fabric, 5)
    assert made["mtu 9000"] == (Packet(hosts=16, transport="tcp", mtu=9000), 4)
    assert made["ties lifo"] == (Packet(hosts=16, transport="tcp", ties="lifo"), 4)
    assert made["rto / 10"] == (Packet(hosts=16, transport="tcp", rto=1 * ms), 4)


def test_a_conclusion_is_a_ratio_to_the_first_fabric_and_says_how_far_it_moves():
    table = conclusions(comparison("tcp", "ndp"), ["ties"], ["fct_us.all.mean"])
    assert [line["varied"] for line in table] == ["as it is", "ties lifo", "ties random"]
    assert table[0]["moved_percent"] == 0 and table[0]["ratio"] > 0
    for line in table[1:]:
        assert line["moved_percent"] == pytest.approx(100 * (line["ratio"] / table[0]["ratio"] - 1))


def test_the_text_shows_how_far_each_conclusion_moves_and_what_turns_it_round():
    def line(metric, varied, ratio, flips=False):
        return {"workload": "W", "metric": metric, "fabric": "ndp", "against": "tcp", "varied": varied, "ratio": ratio,
                "moved_percent": 0.0, "flips": flips}  # fmt: skip

    table = [line("mean", "as it is", 0.5), line("max", "as it is", None)]
    table += [line("mean", f"seed {k}", r) for k, r in ((2, 0.4), (3, 0.625))]
    table += [line("max", f"seed {k}", None) for k in (2, 3)]
    table += [line("mean", "rto x 10", 1.5, True), line("max", "rto x 10", None)]
    assert conclusions_text(table) == (
        "ndp / tcp, W\n"
        "ratio of  as it is  seed            rto\n"
        "mean      0.500     0.400 to 0.625  1.500*\n"
        "max       -         -               -\n"
        "\n"
        "* reaches the other side of 1: that conclusion is not the transport's alone"
    )


def test_the_study_of_ndp_and_dctcp_can_be_stressed_from_the_prompt(capsys):
    study = Path(__file__).parents[2] / "studies/incast.toml"
    assert main(["stress", str(study), "--vary", "ties", "--metrics", "fct_us.all.max"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("ndp@stardust-nsdi19 / dctcp@stardust-nsdi19, ") == 2
    assert "fct_us.all.max  0.787     0.864 to 0.946\n" in printed


def test_one_fabric_is_no_comparison():
    with pytest.raises(BadInput) as error:
        conclusions(comparison("tcp"), ["seed"], ["fct_us.all.mean"])
    assert str(error.value) == "a comparison must have at least 2 fabrics, not 1"


def test_what_cannot_be_varied_is_named():
    with pytest.raises(BadInput) as error:
        variants(Packet(hosts=16), 0, ["weather"])
    assert str(error.value) == "vary must be some of seed, mtu, ties, rto, not 'weather'"


def test_presets_are_listed_with_their_sources(capsys):
    assert main(["presets", "--json"]) == 0
    named = json.loads(capsys.readouterr().out)
    assert named["ndp@shoal-nsdi19"]["initial_window"] == 35
    assert main(["presets"]) == 0
    assert "dctcp@shoal-nsdi19\n    initial_window 35, buffer 100\n    DCTCP as set up in" in capsys.readouterr().out


def test_a_preset_says_of_every_value_where_it_comes_from(capsys):
    assert main(["presets", "ndp@shoal-nsdi19:rto_min=2ms"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("ndp@shoal-nsdi19:rto_min=2ms: NDP as set up in Shoal, NSDI '19, §7.3\n")
    assert "initial_window          35  Shoal §7.3: initial window 35 packets\n" in printed
    assert "prefer                  10  SIGCOMM '17 §3.1: headers to data 10 to 1\n" in printed
    assert "rto_min                2ms  given\n" in printed
    assert main(["presets", "dcqcn", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["from"]["rate_leap"] == "assumed: ten times R_AI; the paper gives none"


def test_an_unknown_preset_names_the_near_ones(capsys):
    assert main(["presets", "ndp@shoal"]) == 2
    assert capsys.readouterr().err == (
        "weft presets: transport must be a known preset, not 'ndp@shoal': near it are ndp@shoal-nsdi19, "
        "dctcp@shoal-nsdi19, ndp@csg-htsim, ndp, ndp@stardust-nsdi19, ndp@ndp-sigcomm17\n"
    )


def test_a_metric_that_no_run_has_is_said_and_a_short_name_is_found():
    with pytest.raises(BadInput, match=r"^a column must be one that the runs have, such as .*, not 'speed'$"):
        conclusions(comparison("tcp", "ndp"), [], ["speed"])
    short, full = (conclusions(comparison("tcp", "ndp"), [], [name]) for name in ("fct.mean", "fct_us.all.mean"))
    assert [line["ratio"] for line in short] == [line["ratio"] for line in full]
    assert short[0]["ratio"] > 0
