"""`weft cost` as its users meet it: what it prints, what its JSON promises, what it says to bad input."""

import json
import re

import pytest

from weft.cli import main
from weft.models import tables
from weft.topology.cabling import Wiring

PAPERS = ("shoal", "merchant", "stardust", "fpga", "tdma")


@pytest.fixture
def run(capsys):
    def call(line):
        assert main(["cost", *line.split()]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return call


@pytest.fixture
def refused(capsys):
    """The sentence with which a command is refused."""

    def call(line):
        assert main(["cost", *line.split()]) == 2
        name, _, sentence = capsys.readouterr().err.partition(": ")
        assert name == f"weft cost {line.split()[0]}"
        return sentence.removesuffix("\n")

    return call


@pytest.fixture
def read(run):
    return lambda line: json.loads(run(f"{line} --json"))


def test_shoal_json_has_what_was_promised(read):
    found = read("shoal --nodes 512")
    assert found["power_w"] == {"shoal": pytest.approx(2549.44), "packet": pytest.approx(8717.44)}
    assert found["switches"] == {"circuit": 48, "packet": 24, "leaves": 16, "spines": 8}
    assert found["buffers_bytes"] == {"total": 511 * 512 * 64, "on_chip": 511 * 64}


def test_merchant_tables_have_the_promised_rows(read):
    rows = {row["name"]: row for row in read("merchant --table VII")["rows"]}
    cost_3 = rows["cost, network 3"]
    assert (cost_3["printed"], cost_3["unit"]) == (2.33, "M$")
    assert cost_3["computed"] == pytest.approx(2.33178)
    assert "fitted" in cost_3["note"]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_printed_table_of_every_paper_is_there(read, paper):
    found = read(f"{paper} --table all")["tables"]
    assert [one["table"] for one in found] == list(tables.printed(paper))
    for one in found:
        assert one["rows"]
        assert all(row.keys() >= {"name", "printed", "computed", "unit", "note"} for row in one["rows"])


@pytest.mark.parametrize("design", ["smislip", "gcq"])
def test_fpga_json_has_what_was_promised(read, design):
    found = read(f"fpga --design {design} --ports 64 --rate 50Gbps")
    assert found["memory_bits"] == pytest.approx({"smislip": 358.613e6, "gcq": 368.738e6}[design], rel=1e-5)
    assert found["latency_ns"] > 0
    assert found["fits"]["XCVU9P"] is False
    assert found["fits"]["XCVU13P"] is True
    assert found["implemented"] == "X"


def test_compare_leaves_blank_what_nobody_printed_and_says_so(read):
    found = read("compare --hosts 512")
    by_name = {entry["name"]: entry for entry in found["fabrics"]}
    shoal = by_name["Shoal"]
    assert shoal["dollars"] is None
    assert "dollars: not printed for circuit switch, Shoal NIC" in shoal["notes"]
    assert shoal["watts"] == pytest.approx(2549.44)
    assert shoal["per_host"]["watts"] == pytest.approx(2549.44 / 512)
    assert shoal["per_gbps"]["watts"] == pytest.approx(2549.44 / 25_600)
    assert found["cannot"] == {
        "FPGA": "one XCVU9P ends at 140 ports of 10 Gb/s by the memory model, and the largest built had 64"
    }


def test_every_blank_of_a_comparison_has_a_note(read):
    for hosts in (16, 512, 5000, 100_000):
        for entry in read(f"compare --hosts {hosts}")["fabrics"]:
            for what in ("dollars", "watts", "rack_units", "cables"):
                if entry[what] is None:
                    assert any(what.replace("_", " ") in note for note in entry["notes"]), (entry["name"], what)


def test_a_users_catalogue_fills_a_blank(read, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[parts.switch]\npower = "300 W"\n[parts."circuit switch"]\nprice = "2000 USD"\n'
        '[parts."packet NIC"]\nprice = "100 USD"\n[parts."packet switch"]\nprice = "10000 USD"\n'
    )
    by_name = {entry["name"]: entry for entry in read(f"compare --hosts 512 --catalogue {path}")["fabrics"]}
    assert by_name["Shoal"]["dollars"] == 48 * 2000 + 512 * 200
    assert by_name["Stardust"]["watts"] == pytest.approx(300 * (13 + 0.666 * 3))


def test_a_part_that_no_fabric_uses_is_not_ignored_in_a_comparison(refused, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('title = "mine"\n[parts.laser]\nprice = "1 USD"\n')
    assert (
        refused(f"compare --catalogue {path}") == "part 'laser' of mine must be in some paper's catalogue, not in none"
    )


def test_elements_of_a_full_tree_follow_appendix_a(read):
    found = read("stardust --tiers 2 --radix 32 --uplinks 10 --bundle 8")
    assert (found["tors"], found["switches"], found["link_bundles"], found["hosts"]) == (512, 480, 10_240, 20_480)
    over = read("stardust --tiers 2 --radix 32 --uplinks 10 --up 8")
    assert (over["tors"], over["switches"], over["oversubscription"]) == (32 * 24, 10 * 40, 3)


def test_a_dearer_transceiver_is_one_flag_away(read):
    base, dear = (read(f"merchant --ports 3456 {flag}")["networks"][2] for flag in ("", "--price SFP+=350"))
    assert dear["dollars"] - base["dollars"] == 100 * 3456
    hot = read("merchant --ports 3456 --watts SFP+=1.5")["networks"][2]
    assert hot["watts"] - base["watts"] == pytest.approx(0.5 * 3456)


def test_deployment_has_a_step_for_every_pod(read):
    steps = read("merchant --deploy")["steps"]
    assert [step["pods"] for step in steps] == list(range(1, 25))
    assert [step["cables_to_move"] for step in steps if step["cables_to_move"]] == [24]


def test_a_wrong_wiring_is_found_from_its_file(run, read, tmp_path):
    path = tmp_path / "cables.csv"
    run(f"merchant --write-wiring {path}")
    assert run(f"merchant --wiring {path}") == ("no fault found\nbisection in one direction: 17.28 Tbps, lost: 0 bps\n")
    Wiring.load(path).swap(0, 39).save(path)
    found = read(f"merchant --wiring {path}")
    assert found["lost_bps"] == 80_000_000_000
    assert found["faults"][0] == "pod 0 has 0 cables on the upper row of core card 0 and should have 1"


@pytest.mark.parametrize("paper", (*PAPERS, "compare"))
def test_every_command_speaks_and_draws(run, tmp_path, paper):
    path = tmp_path / "cost.svg"
    assert run(f"{paper} --plot {path}").strip()
    assert path.read_text().startswith("<?xml")


def test_the_same_picture_has_the_same_bytes(run, tmp_path):
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    for path in (one, two):
        run(f"tdma --plot {path}")
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(
    "line, message",
    [
        (
            "merchant --ports 3000",
            "ports must be k^3/4 for a multiple k of 8, nearest 1024 (k = 16) below and 3456 (k = 24) above, not 3000",
        ),
        ("merchant --ports 3456 --radix 24", "ports must be given without radix, not with radix 24"),
        ("merchant --price SFP+=-1", "price of part 'SFP+' must be at least 0, not -1"),
        ("merchant --price SFP+", "price must look like SFP+=100, not 'SFP+'"),
        ("shoal --watts NIC=x", "watts must look like SFP+=100, not 'NIC=x'"),
        (
            "tdma --price laser=1",
            "part must be one of fabric manager, fabric manager NIC, host NIC, edge switch of TDMA "
            "testbed, 2012, not 'laser'",
        ),
        ("fpga --rate fast", "rate: a rate must look like 100Gbps, not 'fast'"),
        ("fpga --design gcq --ports 66", "ports must be a multiple of speedup 4 for gcq, nearest 64 or 68, not 66"),
        ("fpga --clock -1", "clock must be at least 0.001 MHz, not -1"),
        ("shoal --table IX", "table must be one of 1, fig3, fig5, appB, claims of shoal, not 'IX'"),
        ("tdma --hosts 1", "hosts must be at least 2, not 1"),
        ("compare --hosts 1", "hosts must be at least 2, not 1"),
        ("compare --table I", "unknown option: --table. Did you mean --catalogue?"),
        ("shoal --plot cost.gif", "plot must end in one of .svg, .pdf, .png, not 'cost.gif'"),
        ("shoal --plot nowhere/cost.svg", "plot must go into a folder that exists, not 'nowhere'"),
    ],
)
def test_what_cannot_be_meant_gets_a_sentence(refused, line, message):
    assert refused(line) == message


@pytest.mark.parametrize("command", (*PAPERS, "compare"))
def test_every_flag_that_a_cost_command_offers_it_takes(capsys, monkeypatch, tmp_path, command):
    """Their values may be wrong, but none is unknown."""
    monkeypatch.chdir(tmp_path)  # a flag may name a file to write
    main(["cost", command, "--help"])
    offered = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out)) - {"--help", "--version"}
    assert len(offered) >= 4
    for flag in sorted(offered):
        main(["cost", command, flag, "3"])
        assert "nknown option" not in capsys.readouterr().err, flag


FLAGS = {
    "shoal": "nodes ports planes nic cell circuit-price",
    "merchant": "ports radix pods line-cards uplink-cards core-cards",
    "stardust": "hosts bundle hosts-per-tor lanes host-lanes module tiers radix uplinks up",
    "fpga": "ports rate width depth voq-depth speedup fifo-factor clock",
    "tdma": "slot guard hosts link nics hosts-per-nic",
    "compare": "hosts",
}


@pytest.mark.parametrize("command", FLAGS)
def test_no_number_ends_in_a_traceback(command):
    for flag in FLAGS[command].split():
        for value in ("0", "-1", "3", "64", "999999999999", "9" * 30, "nan"):
            assert main(["cost", command, f"--{flag}={value}"]) in (0, 2)


@pytest.mark.parametrize(
    "text, line, message",
    [
        (
            'title = "mine"\ncurrency = "EUR"\n[parts.CPU]\nprice = "3 EUR"\n',
            "merchant",
            "currency of mine must be USD as in merchant silicon, 2009, not EUR",
        ),
        (
            'title = "mine"\ncurrency = "EUR"\n[parts.CPU]\nprice = "3 EUR"\n',
            "compare",
            "currency of mine must be USD in a comparison, not EUR",
        ),
        (
            '[parts."packet switch"]\nprice = "3 USD"\n',
            "shoal --table claims",
            "table must be asked for with prices in packet switch, not in USD",
        ),
        (
            '[parts."packet switch"]\nprice = "3 USD"\n',
            "shoal --plot cost.svg",
            "plot must have prices for packet switch, packet NIC and Shoal NIC, not only for some of them",
        ),
        (
            "[parts.MINE]\nfacts = { lutram_mb = 3 }\n",
            "fpga",
            "bram_blocks of device 'MINE' must be a number of at least 0, not None",
        ),
        ("[parts.CPU]\nfacts = 3\n", "merchant", "facts of part 'CPU' in mine.toml must be a table, not 3"),
        ("[parts.CPU]\nsource = 3\n", "merchant", "source of part 'CPU' in mine.toml must be text, not 3"),
        ("currency = 3\n", "merchant", "currency of catalogue mine.toml must be text, not 3"),
    ],
)
def test_a_catalogue_that_does_not_go_with_the_command_gets_a_sentence(refused, tmp_path, text, line, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert refused(f"{line} --catalogue {path}") == message


def test_a_shoal_rack_is_powered_where_it_cannot_be_priced(read, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[parts."packet switch"]\nprice = "16000 USD"\n')
    found = read(f"shoal --catalogue {path}")
    assert found["cost_ratio"] is None
    assert found["power_w"]["shoal"] == pytest.approx(2549.44)


def test_a_wiring_that_cannot_be_read_or_written_gets_a_sentence(refused, tmp_path):
    binary = tmp_path / "cables.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    for line, message in (
        (f"--wiring {binary}", f"{binary} must be a csv of cables, not binary"),
        (f"--wiring {tmp_path}", f"{tmp_path} must be a csv of cables, not a directory"),
        (
            f"--write-wiring {tmp_path}",
            f"{tmp_path} cannot be written: is a directory",
        ),
    ):
        assert refused(f"merchant {line}") == message


def test_asking_for_help_loads_nothing_heavy():
    import subprocess
    import sys

    code = (
        "import sys; from weft.cli import main; main(['cost', 'merchant', '--help']); "
        "sys.exit(any(name in sys.modules for name in ('numba', 'matplotlib', 'scipy', 'weft.fabrics')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL).returncode == 0
