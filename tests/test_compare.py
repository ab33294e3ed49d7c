"""Comparisons: entries, ratios, intervals, what is not alike, and the command."""

import json
import subprocess
import sys

import pytest

import weft
from weft.cli import main
from weft.errors import BadInput, BadResult
from weft.units import Gbps, us

RACK, SWITCH = weft.fair(weft.Shoal(nodes=8), weft.Crossbar(ports=8, cell=64), rate="100Gbps")
SOME = weft.Poisson(load=0.4, sizes="fixed:20KB", flows=40)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Two results of each of two fabrics, and a study's folder."""
    place = tmp_path_factory.mktemp("compared")
    weft.run(RACK, SOME, seed=1).save(place / "rack")
    weft.run(SWITCH, SOME, seed=1).save(place / "switch")
    study = weft.Study(fabrics=[SWITCH, RACK], workloads=[SOME], seeds=[1, 2, 3], names=("XB", "SH"))
    runs = study.run(place / "study")
    (place / "study/table.csv").write_text(runs.csv())
    return place


def test_ratios_are_to_the_first_and_one_seed_has_no_interval(kept):
    found = weft.compare(kept / "rack", str(kept / "switch")).data()
    assert [run["name"] for run in found["runs"]] == ["rack", "switch"]
    mean = found["metrics"]["fct_us.all.mean"]
    assert mean["ratio"] == [1.0, mean["values"][1] / mean["values"][0]]
    assert mean["ci95"] == [None, None] and mean["flows"] == [40, 40] and found["warnings"] == []
    assert {"fct_us.all.p90", "fct_us.all.p95"} <= set(found["metrics"])


def test_a_studys_folder_keeps_its_order_and_names_and_seeds_make_intervals(kept):
    found = weft.compare(kept / "study")
    assert [entry.called for entry in found.entries] == ["XB", "SH"]
    low, high = found.data()["metrics"]["fct_us.all.p50"]["ci95"][1]
    assert low < found.data()["metrics"]["fct_us.all.p50"]["values"][1] < high
    assert found.entries[0].flows("fct_us.all.mean") == 120
    assert "±" in found.cell(found.entries[1], "fct_us.all.mean")


def test_the_ideal_switch_is_a_bound_where_it_is_asked_for(kept):
    found = weft.compare(kept / "study", bound=True)
    ideal = found.entries[-1]
    assert ideal.called == "ideal switch" and ideal.fabric == weft.Ideal(nodes=8, link=100 * Gbps)
    ratios = [found.ratio(entry, "fct_us.all.mean") for entry in found.entries]
    assert ratios[0] is None and ratios[-1].ratio < 1 and ratios[-1].paired


def test_what_is_not_alike_is_said(kept, tmp_path):
    other = weft.run(weft.Crossbar(ports=8, cell=64), SOME, seed=1)
    found = weft.compare(weft.Result.load(kept / "rack"), other)
    assert found.warnings == [
        "link differs: Shoal 100 Gbps; Crossbar 10 Gbps",
        "flows differ: Crossbar and Shoal drew others from the same seed",
    ]
    workload = weft.run(RACK, weft.Incast(fan_in=3, bytes=500), seed=2)
    found = weft.compare(weft.Result.load(kept / "rack"), workload)
    assert [entry.under for entry in found.entries] == ["Poisson", "Incast"]


def test_a_warm_up_can_be_cut(kept):
    whole, cut = weft.compare(kept / "rack"), weft.compare(kept / "rack", warmup=10 * us)
    assert cut.entries[0].flows("") < whole.entries[0].flows("")
    assert cut.warnings == ["flows that start before 10 us are left out"]


def test_a_picture_has_a_line_for_each_and_a_notebook_a_table(kept):
    found = weft.compare(kept / "study", names=["a", "b"])
    assert {point["series"] for point in found.plot().data} == {"a", "b"}
    assert "<table>" in found._repr_html_() and "seeds" in found._repr_html_()


def test_print_gives_the_table_and_what_its_signs_mean(kept):
    found = weft.compare(kept / "study")
    shown = str(found).splitlines()
    assert shown[0].split() == ["XB", "SH"] and shown[-2:] == found.legend()
    line = next(line for line in shown if line.startswith("FCT all mean"))
    assert line.split()[-4:] == found.cell(found.entries[1], "fct_us.all.mean").split()
    assert not any(line != line.rstrip() for line in shown)


def test_nonsense_is_refused_in_a_sentence(kept, tmp_path):
    with pytest.raises(BadResult, match=r"a study's folder or a study file, not something else$"):
        weft.compare(tmp_path)
    with pytest.raises(BadInput, match=r"^what is compared must be a result, runs, .* not a int$"):
        weft.compare(3)
    with pytest.raises(BadInput, match=r"^names must be one for each of 2 entries, not 1$"):
        weft.compare(kept / "study", names=["a"])
    with pytest.raises(BadInput, match=r"not 'speed'$"):
        weft.compare(kept / "study", metrics=["speed"])


def test_the_name_is_the_functions_whoever_was_imported_first():
    code = "import weft, weft.comparison, weft.following; assert callable(weft.compare) and callable(weft.follow)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_prints_and_draws_and_its_json_is_as_agreed(kept, tmp_path, capsys):
    folders = [str(kept / "rack"), str(kept / "switch")]
    assert main(["compare", *folders, "--plot", str(tmp_path / "cdf.svg"), "--metrics", "fct.p99"]) == 0
    out = capsys.readouterr().out
    assert "×" in out and "FCT all p99" in out and (tmp_path / "cdf.csv").exists()
    assert main(["compare", *folders, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert list(data) == ["runs", "metrics", "warnings"] and len(data["runs"]) == 2
    for metric in data["metrics"].values():
        assert {"values", "ratio", "ci95"} <= metric.keys() and all(len(column) == 2 for column in metric.values())
