"""Racks in gates send the same cells, feedback and checksums as twin and kernel, on every link in every slot."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.errors import BadInput, ScheduleConflict
from weft.rtl import gates
from weft.rtl.check_shoal import as_bits, check, commands, drive, expect, packed, split
from weft.rtl.designs import NicGates, ShoalGates, SwitchGates
from weft.rtl.fail_shoal import CYCLE, Broken
from weft.rtl.shoal_header import HeaderDecoder, HeaderEncoder, fields_of, next_remainder
from weft.rtl.shoal_nic import Nic
from weft.rtl.shoal_rack import Host, Rack
from weft.rtl.shoal_switch import LINK, CircuitSwitch
from weft.rtl.simulate import Simulation
from weft.wire.crc import CRC8_SAE_J1850
from weft.wire.shoal import CRC, Cell, decode, header

LENIENT = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
MOST = 6  # flows that a node begins in a drawn case, and as many seats
DESIGNS = [  # all that a rack can be told, in few racks: each is compiled
    ShoalGates(nodes=3, ports=4, delay=0, seats=MOST, cell=24, feedback=1, age_interval=2),  # both ways in one slot
    ShoalGates(nodes=5, ports=4, delay=2, seats=MOST, cell=32, age_interval=0, channels=2),
    ShoalGates(
        nodes=4, ports=4, delay=5, latency=50, seats=MOST, cell=64, schedule="rotation"
    ),  # an answer takes several epochs
    ShoalGates(nodes=4, ports=4, delay=0, seats=MOST, cell=16, channels=3, failures=True),
    ShoalGates(nodes=5, ports=4, delay=1, seats=MOST, cell=16, feedback=1, failures=True),
]
SMALLEST, FAILING = DESIGNS[0], DESIGNS[-1]


@st.composite
def plans(draw, design):
    """What fails, in words, some of it at once and some within an epoch of the rest."""
    rack = design.component()
    slot, n, leaves, spines = rack.slot_cycles * CYCLE, rack.nodes, rack.clos.leaves, rack.clos.spines
    way, plane = st.sampled_from(["", " upward", " downward"]), st.integers(0, design.channels - 1)
    what = st.one_of(
        st.integers(0, n - 1).map(lambda i: f"node {i}"),
        st.tuples(st.integers(0, n - 1), way).map(lambda x: f"link {x[0]}{x[1]}"),
        st.tuples(st.integers(0, leaves - 1), st.integers(0, 1), way).map(lambda x: f"uplink {x[0]}.{x[1]}{x[2]}"),
        st.integers(0, leaves - 1).map(lambda a: f"leaf {a}"),
        st.tuples(plane, st.integers(0, spines - 1)).map(
            lambda x: f"plane {x[0]} spine {x[1]}" if design.channels > 1 else f"spine {x[1]}"
        ),
    )
    entry = st.tuples(what, st.integers(0, 100))
    once = lambda one: one[0].removesuffix(" upward").removesuffix(" downward")  # noqa: E731
    entries = draw(st.lists(entry, min_size=1, max_size=3, unique_by=once))
    return ", ".join(f"{name} at {at * slot}ps" for name, at in entries)


@st.composite
def cases(draw, designs):
    design = draw(st.sampled_from(designs))
    n = design.nodes
    pair = st.tuples(st.integers(0, n - 1), st.integers(1, n - 1)).map(lambda p: (p[0], (p[0] + p[1]) % n))
    flow = st.tuples(pair, st.integers(1, 30), st.just(0) | st.integers(0, 150))
    drawn = draw(st.lists(flow.map(lambda f: (*f[0], f[1], f[2])), min_size=1, max_size=14))
    flows = [one for k, one in enumerate(drawn) if sum(one[0] == other[0] for other in drawn[:k]) < MOST]
    plan = draw(st.none() | plans(design)) if design.failures else None
    return design, sorted(flows, key=lambda f: f[3]), draw(st.integers(1, 250)), plan


@pytest.mark.parametrize("designs", [DESIGNS[::2], pytest.param(DESIGNS[1::2], marks=pytest.mark.slow)], ids=len)
@given(data=st.data())
@LENIENT
def test_gates_twin_and_kernel_send_the_same_cells_on_every_link(designs, data):
    case = data.draw(cases(designs))
    design, flows, slots, plan = case
    rack = design.component()
    report = check(rack, flows, slots, broken=None if plan is None else Broken.plan(rack, plan))
    assert report.agree, report.first_difference
    assert report.compared_with == {"reference": slots, "kernel": slots}


def test_a_node_that_is_missed_is_told_of_and_what_was_for_it_is_discarded_and_repeated():
    rack = FAILING.component()
    flows = [(0, 4, 40, 0), (1, 4, 40, 0), (2, 3, 40, 0)]
    broken = Broken.plan(rack, f"link 4 at {40 * rack.slot_cycles * CYCLE}ps")
    expected = expect(rack, flows, 400, broken)
    seen, _ = drive(rack, commands(rack, expected.recorder, 400, broken))
    assert seen["failed"][-1].tolist() == [16, 16, 16, 16, 15]  # all miss node 4, which misses all
    assert seen["discarded"][-1].sum() == expected.recorder.lost["discarded"] > 0
    assert expected.recorder.repeats > 0 and seen["corrupt"][-1].sum() == 0
    assert seen["delivered"][-1, 3] == 40 - expected.recorder.undelivered[2] > 30  # but for what node 4 had to pass on
    assert check(rack, flows, 400, broken=broken).agree


def test_gates_know_no_repair():
    rack = FAILING.component()
    says = r"^fail must be of parts that stay down, as gates know no repair, not 'node 1 at 1us until 2us'$"
    with pytest.raises(BadInput, match=says):
        Broken.plan(rack, "node 1 at 1us until 2us")
    with pytest.raises(BadInput, match=r"^nodes must be at most 53 where headers carry news of failures, not 64$"):
        NicGates(nodes=64, failures=True).component()


def test_a_nic_that_does_not_say_whom_it_misses_is_found(monkeypatch):
    from weft.rtl import shoal_nic

    class Quiet(shoal_nic.HeaderDecoder):
        def elaborate(self, platform):
            m = super().elaborate(platform)
            m.d.comb += self.failed.eq(0)  # as if the news had not been read
            return m

    monkeypatch.setattr(shoal_nic.Nic, "decoder", Quiet)
    design = replace(FAILING, seats=4)
    wrong = Rack(**design._options(), ports=4, seats=4)
    flows = [(i, 4, 60, 0) for i in range(3)]
    broken = Broken.plan(wrong, "link 4 downward")
    report = check(design.component(), flows, 80, design=wrong, broken=broken)
    assert not report.agree and report.first_difference.signal.startswith("sent[")


def test_incast_fills_a_queue_to_the_bound_and_no_further():
    rack = DESIGNS[2].component()
    flows = [(i, 3, 200, 0) for i in range(3)]
    expected = expect(rack, flows, 900)
    seen, _ = drive(rack, commands(rack, expected.recorder, 900))
    assert seen["longest"][-1].max() == expected.recorder.max_queue == 3  # eq. (5): at most one more than the senders
    assert seen["delivered"][-1].tolist() == [0, 0, 0, 600] and not seen["corrupt"].any()


def test_a_nic_that_forgets_to_count_down_is_found(monkeypatch, tmp_path):
    from weft.rtl import shoal_nic

    class Stubborn(shoal_nic.Seat):
        def elaborate(self, platform):
            m = super().elaborate(platform)
            m.d.comb += self.old.eq(0)  # no flow is ever old enough
            return m

    monkeypatch.setattr(shoal_nic.Nic, "seat", Stubborn)
    design = replace(SMALLEST, seats=2)
    wrong = Rack(**design._options(), ports=4, seats=2)
    flows = [(0, 1, 9, 0), (1, 2, 4, 3)]
    report = check(design.component(), flows, 60, design=wrong, vcd=str(tmp_path / "wave.vcd"))
    difference = report.first_difference
    assert not report.agree and difference.against == "reference" and difference.signal == "sent[0]"
    assert difference.gates.startswith("empty") and difference.model.startswith("cell 0 from 0 to 1")
    assert difference.cycle == (difference.slot + 1) * wrong.slot_cycles + 4
    assert "$enddefinitions" in (tmp_path / "wave.vcd").read_text()


def test_both_engines_carry_the_same_cells():
    design = SMALLEST
    report = check(design.component(), [(0, 1, 9, 0), (1, 2, 4, 3), (2, 1, 7, 5)], 30, engine="amaranth")
    assert report.agree and report.engine == "amaranth"


# ---------------------------------------------------------------- header and checksum

LAYOUTS = [(1, 0), (2, 0), (2, 9)]  # values of feedback, nodes of which there is news


@pytest.fixture(scope="module", params=LAYOUTS[::2], ids=str)
def codec(request):
    with (
        Simulation(HeaderEncoder(64, *request.param)) as encoder,
        Simulation(HeaderDecoder(64, *request.param)) as decoder,
    ):
        yield header(*request.param), encoder, decoder


def remainder(payload):
    from weft.rtl.crc import raw

    return raw(CRC, 0, payload)


def test_gates_make_and_read_the_bits_that_weft_wire_does(codec):
    layout, encoder, decoder = codec
    fields, size = fields_of(layout), layout.size
    rng = np.random.default_rng(5)
    for _ in range(60):
        values = {name: int(rng.integers(1 << width)) for name, width in fields.items()}
        payload = rng.bytes(64 - size)
        flags = {name: bool(values[name]) for name in ("start", "end", "dropped")}
        data = Cell(**values | flags, payload=payload).encode(64, layout)
        row = encoder.stimulus(1)
        for name, value in (values | {"remainder": remainder(payload)}).items():
            encoder.inputs.put(row, name, [value])
        (made,) = as_bits(encoder.outputs.column(encoder.run(row), "header"))
        assert made == split([int.from_bytes(data[:size], "little")])[0]

        damaged = bytearray(data)
        flip = int(rng.integers(8 * 64))
        damaged[flip // 8] ^= 1 << flip % 8
        for cell in (data, bytes(damaged)):
            row = decoder.stimulus(1)
            at = decoder.inputs.all["header"]
            for k in range(at.words):
                row[0, at.at + k] = int.from_bytes(cell[:size], "little") >> 32 * k & 0xFFFFFFFF
            decoder.inputs.put(row, "remainder", [remainder(cell[size:])])
            out = decoder.run(row)
            read, intact = decode(cell, layout)
            assert {name: int(decoder.outputs.column(out, name)[0]) for name in fields} == {
                name: int(getattr(read, name)) for name in fields
            }
            assert bool(decoder.outputs.column(out, "intact")[0]) == intact == (cell == data)
            assert bool(decoder.outputs.column(out, "empty")[0]) == read.empty


@pytest.mark.parametrize("layout", [header(*given) for given in LAYOUTS], ids=lambda layout: str(layout.size))
def test_the_layout_in_gates_is_the_one_on_the_wire(layout):
    assert {name: (field.offset, field.width) for name, field in layout.layout()} == {
        name: (layout.offset(name), width) for name, width in layout.fields
    }
    assert CRC is CRC8_SAE_J1850


@pytest.mark.parametrize("given", LAYOUTS)
def test_headers_packed_by_the_column_are_those_of_weft_wire(given):
    layout, rng = header(*given), np.random.default_rng(3)
    names = [name for name, _ in layout.fields if name in ("dst", "src", "seq", "feedback", "older", "failed")]
    rows = np.stack([rng.integers(0, 1 << dict(layout.fields)[name], 200) for name in names], axis=1)
    rows[::5, 0] = rows[::5, 1]  # empty cells have no payload
    for row, made in zip(rows, packed(rows, 8, layout), strict=True):
        said = dict(zip(names, map(int, row), strict=True))
        name = said["src"] | said["dst"] << 10 | said["seq"] << 20
        payload = b"" if said["dst"] == said["src"] else Host(8, layout.size - 8).payload(name)
        data = Cell(**said, payload=payload).encode(64, layout)[: layout.size]
        assert made == split([int.from_bytes(data, "little")])[0]


def test_a_remainder_grows_word_by_word():
    from amaranth.hdl import Module
    from amaranth.lib.wiring import In, Out

    from weft.rtl.parts import Block

    class Growing(Block):
        def __init__(self):
            super().__init__({"word": In(64), "remainder": Out(8)})

        def elaborate(self, platform):
            m = Module()
            m.d.sync += self.remainder.eq(next_remainder(self.remainder, self.word))
            return m

    data = bytes(range(7, 63))
    with Simulation(Growing(), engine="amaranth") as simulation:
        rows = simulation.stimulus(7)
        simulation.inputs.put(rows, "word", [int.from_bytes(data[k : k + 8], "little") for k in range(0, 56, 8)])
        assert simulation.run(rows)[-1, 0] == remainder(data)


# ---------------------------------------------------------------- the switch


def test_the_switch_follows_its_table_and_changes_all_circuits_in_one_cycle():
    table = [[1, 2, 0, -1], [3, -1, 1, 2]]
    with Simulation(CircuitSwitch(table, slot_cycles=3), engine="amaranth") as simulation:
        rows = simulation.stimulus(12)
        for x in range(4):
            simulation.inputs.put(rows, f"links_in__{x}", np.full(12, 10 + x))
        out = simulation.run(rows)
        seen = [
            [int(simulation.outputs.column(out[k : k + 1], f"selected__{y}")[0]) for y in range(4)] for k in range(12)
        ]
        words = [[int(out[k, simulation.outputs.all[f"links_out__{y}"].at]) for y in range(4)] for k in range(12)]
    even, odd = [1, 2, 0, 4], [3, 4, 1, 2]  # the first slot is the last of the table; 4 is nobody
    assert seen == [odd] * 2 + [even] * 3 + [odd] * 3 + [even] * 3 + [odd]
    assert words[1:] == [[0 if x == 4 else 10 + x for x in row] for row in seen[:-1]]  # one cycle through the switch


def test_a_table_exported_by_the_schedule_command_becomes_the_same_switch(tmp_path, capsys):
    from weft.cli import main

    assert main(["schedule", "shoal", "--nodes", "8", "--ports", "4", "--json"]) == 0
    path = tmp_path / "rack.json"
    path.write_text(capsys.readouterr().out)
    for name in ("leaf1", "spine0"):
        from_file = SwitchGates(switch=name, table=str(path)).selectors()
        assert from_file == SwitchGates(nodes=8, ports=4, switch=name).selectors().tolist()


def test_a_schedule_that_is_no_permutation_is_refused(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"switches": [{"name": "leaf0", "slots": [[0, 1], [1, 1]]}]}))
    with pytest.raises(
        ScheduleConflict, match=r"^port 1 of leaf0 must carry one circuit in slot 1, not those of ports 0 and 1$"
    ):
        SwitchGates(switch="leaf0", table=str(path)).component()
    with pytest.raises(ScheduleConflict, match=r"^port 0 of the switch must feed one output in slot 0, not 0 and 1$"):
        CircuitSwitch([[0, 0]], slot_cycles=2)
    with pytest.raises(BadInput, match=r"^switch must be one of leaf0, not 'leaf7'$"):
        SwitchGates(switch="leaf7", table=str(path)).component()
    assert LINK == 66


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"nodes": 2000}, "nodes must be from 2 to 1024, not 2000"),
        ({"cell": 20}, "cell must be a multiple of 8 bytes from 16 to 4096, not 20"),
        ({"seats": 0}, "seats must be from 1 to 1024, not 0"),
        ({"channels": 9, "nodes": 32}, "channels must be from 1 to 8 in gates, not 9"),
        ({"feedback": 3}, "feedback must be 1 or 2 values in gates, not 3"),
    ],
)
def test_sizes_that_fit_nothing_are_refused(given, says):
    with pytest.raises(BadInput, match=f"^{says}$"):
        NicGates(**given)


def test_a_latency_that_takes_other_slots_than_the_schedule_counts_with_is_refused():
    with pytest.raises(BadInput, match=r"^delay must be 2 slots, what 20 cycles from node to node take, not 1$"):
        replace(NicGates(delay=1), latency=20).component()


def test_a_run_that_needs_more_seats_says_how_many():
    flows = [(0, 1 + k % 2, 1, k) for k in range(20)]
    says = r"^seats must be at least \d+, as many as a node gives away at once here, not 2$"
    with pytest.raises(BadInput, match=says):
        check(replace(SMALLEST, seats=2).component(), flows, 100)


def test_a_description_is_built_once():
    assert gates.rack(nodes=4, ports=4) is gates.rack(nodes=4, ports=4)
    assert isinstance(NicGates(nodes=4).component(), Nic)
