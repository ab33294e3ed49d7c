"""`weft schedule` and `weft wire` as their users meet them, and the pages that quote them.

`python tests/cli/test_schedule_wire.py` writes the pages' answers anew.
"""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from weft.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / page for page in ("fabrics/shoal-circuits.md", "reference/wire.md", "reference/pfc.md")]
CONSOLE = re.compile(r"```console\n\$ weft (schedule|wire) ([^\n]*)\n(.*?)```", re.DOTALL)
PYTHON = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def answer(line):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(shlex.split(line)) == 0
    return out.getvalue()


def read(line):
    return json.loads(answer(f"{line} --json"))


def refreshed(text):
    return CONSOLE.sub(lambda m: f"```console\n$ weft {m[1]} {m[2]}\n{answer(f'{m[1]} {m[2]}')}```", text)


# ---------------------------------------------------------------- the pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_the_commands_print(page):
    text = page.read_text()
    assert CONSOLE.search(text)
    assert refreshed(text) == text


def test_the_examples_on_the_wire_page_print_what_is_beside_them():
    examples = PYTHON.findall(PAGES[1].read_text())
    assert len(examples) == 2
    for code, printed in examples:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, {})
        assert out.getvalue() == printed


# ---------------------------------------------------------------- schedule


def test_a_round_of_tdma_for_384_hosts_is_planned_within_the_round():
    found = read("schedule tdma --hosts 384")
    assert (found["scheduler"], found["round_slots"], len(found["slots"])) == ("wrr", 31, 31)
    assert 0 < found["compute_ms"] < 10
    for slot in found["slots"]:
        assert sorted(src for src, _, _ in slot) == sorted(dst for _, dst, _ in slot) == list(range(384))


@pytest.mark.parametrize("name", ["wrr", "greedy", "mwm", "bvn"])
def test_every_scheduler_can_be_asked_for_by_name(name):
    found = read(f"schedule tdma --hosts 6 --scheduler {name} --demand random --size 1MB --seed 3")
    assert found["grants"] == sum(map(len, found["slots"]))
    assert (
        found["granted_bytes"] == sum(size for slot in found["slots"] for _, _, size in slot) == found["wanted_bytes"]
    )
    assert "6 hosts, switch" in answer(f"schedule tdma --hosts 6 --scheduler {name}")


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("--hosts 8 --guard 300us", "guard must be shorter than the slot of 300000000 ps, not 300000000"),
        ("--hosts 8 --round 300us", "round must be at least a slot and a guard, 315000000 ps, not 300000000"),
        ("--hosts 16 --topology fattree",
         "scheduler wrr must have a network without loops; this topology can be planned by greedy"),
        ("--hosts 8 --buffer -1B", "buffer must be 0 bytes or more, not -1"),
        ("--hosts 8 --scheduler best", "scheduler must be one of wrr, greedy, mwm, bvn, not 'best'"),
        ("--hosts 8 --spill", "spill must be left out for schedulers but greedy, not True"),
        ("--hosts 10 --topology tree", "hosts of the tree must be a multiple of its 3 pods, not 10"),
    ],
)  # fmt: skip
def test_a_round_of_tdma_that_cannot_be_planned_is_refused_in_a_sentence(line, sentence, capsys):
    assert main(shlex.split(f"schedule tdma {line}")) == 2
    assert capsys.readouterr().err == f"weft schedule tdma: {sentence}\n"


def test_the_rack_of_eight_is_that_of_figure_3():
    found = read("schedule shoal --nodes 8 --ports 4")
    assert found["epoch_slots"] == 7
    assert found["rack"] == [[(i + t + 1) % 8 for i in range(8)] for t in range(7)]


def follow(found, t, i):
    """Where the cell of node i comes out in slot t, by the switches' tables and wires alone."""
    switches = {switch["name"]: switch for switch in found["switches"]}
    at = next((name, x) for name in switches for x, far in enumerate(switches[name]["wires"]) if far == f"node {i}")
    for _ in range(3):
        name, port = at
        far = switches[name]["wires"][switches[name]["slots"][t][port]]
        if far.startswith("node "):
            return int(far.removeprefix("node "))
        name, _, port = far.rpartition(" port ")
        at = name, int(port)


@pytest.mark.parametrize("line", ["--nodes 8 --ports 4", "--nodes 7 --ports 4", "--nodes 12 --ports 8 --delay 2"])
def test_the_exported_switches_connect_the_exported_rack(line):
    found = read(f"schedule shoal {line}")
    assert len(found["switches"]) == found["fabric"]["switches"]
    for t, row in enumerate(found["rack"]):
        for i, j in enumerate(row):
            assert j is None or follow(found, t, i) == j
    for switch in found["switches"]:
        for row in switch["slots"]:
            lit = [x for x in row if x is not None]
            assert len(row) == switch["ports"] and len(set(lit)) == len(lit)


def test_channels_have_planes_and_every_peer_comes_once():
    found = read("schedule shoal --nodes 9 --ports 6 --channels 4")
    assert found["epoch_slots"] == 2
    assert [switch["name"] for switch in found["switches"][:2]] == ["plane0.leaf0", "plane0.leaf1"]
    for i in range(9):
        assert sorted(j for row in found["rack"] for j in row[i] if j is not None) == [j for j in range(9) if j != i]


def test_a_delay_costs_an_even_rack_one_place_in_n():
    found = read("schedule shoal --nodes 8 --ports 4 --delay 3")
    assert (found["epoch_slots"], found["dark_share"], found["order"]) == (8, 1 / 8, "mirrored")
    assert found["gap_slots"] > 3


def test_one_switch_can_be_asked_for():
    [switch] = read("schedule shoal --nodes 8 --ports 4 --switch spine1")["switches"]
    assert (switch["name"], switch["ports"]) == ("spine1", 4)
    assert switch["wires"] == [f"leaf{a} port 3" for a in range(4)]


def test_brief_leaves_the_tables_out():
    long, brief = answer("schedule shoal --nodes 8 --ports 4"), answer("schedule shoal --nodes 8 --ports 4 --brief")
    assert long.startswith(brief.rstrip("\n")) and "t=0" in long and "t=0" not in brief


def test_the_timing_of_the_simulated_rack_is_that_of_section_7():
    timing = read("schedule shoal --nodes 512 --channels 4 --slot 23250ps --switch plane0.leaf0")["timing"]
    assert (timing["guard_ps"], timing["slot_ps"], timing["cell_bytes"]) == (2750, 23_250, 64)
    assert timing["epoch_ps"] == 2_976_000
    optical, electrical = timing["layers"]
    assert (optical["guard_ps"], optical["buffer_bits"], optical["latency_ps"]) == (3375, 0, 0)
    assert (electrical["guard_ps"], electrical["buffer_bits"], electrical["latency_ps"]) == (2750, 3, 960_000)


def test_a_schedule_without_the_dead_connects_who_is_left():
    found = read("schedule shoal --nodes 8 --ports 4 --without 'node 3, spine 0'")
    assert found["without"]["survivors"] == [0, 1, 2, 4, 5, 6, 7] and found["without"]["uplinks"] == [[1]]
    assert found["epoch_slots"] == 12 and found["dark_share"] == 0.5
    met = []
    for t, row in enumerate(found["rack"]):
        for i, j in enumerate(row):
            assert j is None or follow(found, t, i) == j
            met += [] if j is None else [(i, j)]
    alive = found["without"]["survivors"]
    assert sorted(met) == [(i, j) for i in alive for j in alive if i != j]
    spine = next(switch for switch in found["switches"] if switch["name"] == "spine0")
    assert {x for row in spine["slots"] for x in row} == {None}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--without 'node 3'", "node 3: 7 of 8 nodes and 2 of 2 uplinks left"),
        ("--without 'node 3'", "100.0 % of a survivor's slots are used, 85.7 % without the repair\n"),
        ("--without 'uplink 0.1'", "used, 64.3 % without the repair; better left as it was"),
        ("--sync 30ps --drift 100", "50 ps of the guard, 30 ps of it used by synchronisation, 20 ps left for drift"),
        ("--sync 30ps --drift 100", "two clocks that stray by 100 ppb use that up in 100 us"),
        ("--sync 30ps --drift 100 --failover 100us", "another takes over after 100 us, in time"),
        ("--sync 30ps --drift 100 --failover 101us", "101 us, too late: cells may collide until the next exchange"),
        ("--sync 30ps", "clocks do not drift: the rack needs no master"),
        ("--sync 60ps", "60 ps apart, more than the 50 ps of the guard: cells collide"),
    ],
)
def test_what_is_asked_of_clocks_and_repairs_is_said(line, said):
    assert said in answer(f"schedule shoal --nodes 8 --ports 4 --brief {line}")


def test_a_rack_starts_once_its_clocks_agree():
    clocks = read("schedule shoal --nodes 8 --ports 4 --sync 40ps --switch leaf0")["clocks"]
    assert [step["step"] for step in clocks["start"]] == ["hold", "synchronise", "signal", "run"]
    # 1 ms to 40 ps takes 25 halvings; 975 ns of flight, eight nodes round and seven on
    assert clocks["start"][1]["end_ps"] == (25 * 8 + 7) * 975_000
    assert clocks["survives_ps"] is None and clocks["left_ps"] == 10


SMALL = "nodes must be at most 8 with 4-port switches in two stages, not 9 (switches of 6 ports would do)"


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("--nodes 9 --ports 4", SMALL),
        ("--nodes 1", "nodes must be at least 2, not 1"),
        ("--nodes 9000 --ports 200", "nodes must be at most 4,096 for their schedules to be written down, not 9000"),
        ("--nodes 8 --ports 5", "ports must be even and at least 2, not 5"),
        ("--nodes 8 --channels 8", "channels must be between 1 and nodes - 1 = 7, not 8"),
        ("--nodes 8 --delay -1", "delay must be zero or more slots, not -1"),
        ("--nodes 8 --schedule odd", "schedule must be one of auto, rotation, mirrored, not 'odd'"),
        ("--nodes 8 --ports 4 --switch leaf9", "switch must be one of leaf0 … spine1, not 'leaf9'"),
        ("--nodes 8 --slot 2ns", "guard must be shorter than the slot of 2 ns, not 2.75 ns"),
        ("--nodes 8 --layer 2", "layer must be one of 0, 1, not 2"),
        ("--nodes 8 --latency=-1ns", "latency must be zero or more, not -1000"),
        ("--nodes 8 --drift=-1", "drift must be from 0 to 1,000,000 ppb, not -1.0"),
        ("--nodes 8 --drift nan", "drift must be from 0 to 1,000,000 ppb, not nan"),
        ("--nodes 8 --sync=-5ps", "sync must be zero or more, not -5"),
        ("--nodes 8 --failover=-1us", "failover must be zero or more, not -1000000"),
        ("--nodes 8 --without ','", "without must be something that is gone, such as node 3, not ','"),
        ("--nodes 8 --without 'nodes 100%'", "a schedule must have at least 2 nodes left, not 0"),
        ("--nodes 8 --sync soon", "sync: a time must look like 2750ps or 1.5us, not 'soon'"),
        ("--nodes 8 --without 'node 9'", "a node must be from 0 to 7, not '9'"),
        (
            "--nodes 8 --without 'node 3 at 1ms'",
            "without must name what is gone for good, not for a time, as in 'node 3 at 1ms'",
        ),
        ("--nodes some", "nodes must be a whole number, not 'some'"),
        ("--nodes 8 --recovery soon", "recovery: a time must look like 2750ps or 1.5us, not 'soon'"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_in_a_sentence(capsys, line, sentence):
    assert main(shlex.split(f"schedule shoal {line}")) == 2
    assert capsys.readouterr().err == f"weft schedule shoal: {sentence}\n"


# ---------------------------------------------------------------- wire


def test_decode_gives_back_what_encode_was_given():
    made = read("wire shoal encode --dst 3 --src 7 --seq 1 --feedback not-applicable --end --payload c0ffee")
    found = read(f"wire shoal decode {made['hex']}")
    assert found == made
    assert found["fields"] | {"crc": 0} == dict(
        dst=3, src=7, seq=1, feedback=2046, start=0, end=1, dropped=0, crc=0
    )  # fmt: skip
    assert found["intact"] is True and found["empty"] is False
    assert found["payload"] == "c0ffee".ljust(112, "0")


def test_a_damaged_cell_is_decoded_and_said_to_be():
    good = answer("wire shoal encode --dst 3 --src 7").strip()
    bad = good[:-1] + "1"
    assert read(f"wire shoal decode {bad}")["intact"] is False
    assert "wrong: the cell is damaged" in answer(f"wire shoal decode {bad}")
    assert "right" in answer(f"wire shoal decode {good}")


def test_a_header_alone_is_not_judged():
    assert read("wire shoal decode 031c1000001420ff")["intact"] is None


def test_hex_may_come_in_pieces():
    assert read("wire shoal decode 031c1000 001420ff") == read("wire shoal decode 0x031c1000001420ff")


def test_the_layout_covers_the_header_bit_by_bit():
    found = read("wire shoal layout")
    bits = [bit for one in found["fields"] for bit in range(one["first"], one["last"] + 1)]
    assert bits == list(range(8 * found["bytes"]))
    assert found["feedback_codes"] == {"nothing": 2047, "not-applicable": 2046}


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("encode --dst 1024 --src 0", "shoal_header.dst must fit in 10 bits, not 1024"),
        ("encode --dst 1 --src 0 --seq 4194304", "shoal_header.seq must fit in 22 bits, not 4194304"),
        ("encode --dst 1 --src 0 --feedback x", "feedback must be a whole number, nothing or not-applicable, not 'x'"),
        ("encode --dst 1 --src 0 --payload xyz", "payload must be pairs of hexadecimal digits, not 'xyz'"),
        ("encode --dst 1 --src 0 --cell 4B", "cell must be from 8 to 65,535 bytes, not 4"),
        ("decode 03", "cell must be at least 8 bytes, not 1"),
        ("decode", "cell must be at least 8 bytes, not 0"),
        ("decode 0", "hex must be pairs of hexadecimal digits, not '0'"),
    ],
)
def test_what_cannot_be_a_cell_is_refused_in_a_sentence(capsys, line, sentence):
    assert main(shlex.split(f"wire shoal {line}")) == 2
    assert capsys.readouterr().err == f"weft wire shoal: {sentence}\n"


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(refreshed(page.read_text()))
