"""Racks in gates send the same cells, feedback and checksums as twin and kernel, on every link in every slot."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.errors import BadInput, ScheduleConflict
from weft.rtl import gates
from weft.rtl.check_shoal import check, packed
from weft.rtl.designs import NicGates, ShoalGates, SwitchGates
from weft.rtl.shoal_header import FIELDS, HeaderDecoder, HeaderEncoder, next_remainder
from weft.rtl.shoal_nic import Nic
from weft.rtl.shoal_rack import Host, Rack
from weft.rtl.shoal_switch import LINK, CircuitSwitch
from weft.rtl.simulate import Simulation
from weft.wire.crc import CRC8_SAE_J1850
from weft.wire.shoal import CRC, HEADER, Cell, decode

LENIENT = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
DESIGNS = [
    ShoalGates(nodes=4, ports=4, delay=0, seats=14, cell=24),  # both directions of a link in one slot
    ShoalGates(nodes=3, ports=4, delay=0, seats=14, cell=64, age_interval=2),
    ShoalGates(nodes=5, ports=4, delay=2, seats=14, cell=32, age_interval=0),
    ShoalGates(
        nodes=4, ports=4, delay=5, latency=32, seats=14, cell=16, schedule="rotation"
    ),  # an answer takes several epochs
]


@st.composite
def cases(draw):
    design = draw(st.sampled_from(DESIGNS))
    n = design.nodes
    pair = st.tuples(st.integers(0, n - 1), st.integers(1, n - 1)).map(lambda p: (p[0], (p[0] + p[1]) % n))
    flow = st.tuples(pair, st.integers(1, 30), st.just(0) | st.integers(0, 150))
    flows = draw(st.lists(flow.map(lambda f: (*f[0], f[1], f[2])), min_size=1, max_size=14))
    return design, sorted(flows, key=lambda f: f[3]), draw(st.integers(1, 250))


@given(cases())
@LENIENT
def test_gates_twin_and_kernel_send_the_same_cells_on_every_link(case):
    design, flows, slots = case
    report = check(design.component(), flows, slots)
    assert report.agree, report.first_difference
    assert report.compared_with == {"reference": slots, "kernel": slots}


def test_incast_fills_a_queue_to_the_bound_and_no_further():
    rack = DESIGNS[0].component()
    flows = [(i, 3, 200, 0) for i in range(3)]
    from weft.rtl.check_shoal import commands, drive, expect

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

    monkeypatch.setattr(shoal_nic, "Seat", Stubborn)
    design = replace(DESIGNS[1], seats=2)
    wrong = Rack(**design._options(), ports=4, seats=2)
    flows = [(0, 1, 9, 0), (1, 2, 4, 3)]
    report = check(design.component(), flows, 60, design=wrong, vcd=str(tmp_path / "wave.vcd"))
    difference = report.first_difference
    assert not report.agree and difference.against == "reference" and difference.signal == "sent[0]"
    assert difference.gates.startswith("empty") and difference.model.startswith("cell 0 from 0 to 1")
    assert difference.cycle == (difference.slot + 1) * wrong.slot_cycles + 4
    assert "$enddefinitions" in (tmp_path / "wave.vcd").read_text()


def test_both_engines_carry_the_same_cells():
    design = DESIGNS[1]
    report = check(design.component(), [(0, 1, 9, 0), (1, 2, 4, 3), (2, 1, 7, 5)], 30, engine="amaranth")
    assert report.agree and report.engine == "amaranth"


# ---------------------------------------------------------------- header and checksum

values = st.fixed_dictionaries({name: st.integers(0, (1 << width) - 1) for name, width in FIELDS.items()})


@pytest.fixture(scope="module")
def codec():
    with Simulation(HeaderEncoder(64)) as encoder, Simulation(HeaderDecoder(64)) as decoder:
        yield encoder, decoder


def remainder(payload):
    from weft.rtl.crc import raw

    return raw(CRC, 0, payload)


@given(values=values, payload=st.binary(min_size=56, max_size=56), flip=st.integers(0, 8 * 64 - 1))
@LENIENT
def test_gates_make_and_read_the_bits_that_weft_wire_does(codec, values, payload, flip):
    encoder, decoder = codec
    flags = {name: bool(values[name]) for name in ("start", "end", "dropped")}
    data = Cell(**values | flags, payload=payload).encode()
    row = encoder.stimulus(1)
    for name, value in (values | {"remainder": remainder(payload)}).items():
        encoder.inputs.put(row, name, [value])
    made = int(encoder.outputs.column(encoder.run(row), "header")[0])
    assert made.to_bytes(8, "little") == data[:8]

    damaged = bytearray(data)
    damaged[flip // 8] ^= 1 << flip % 8
    for cell in (data, bytes(damaged)):
        row = decoder.stimulus(1)
        decoder.inputs.put(row, "header", [int.from_bytes(cell[:8], "little")])
        decoder.inputs.put(row, "remainder", [remainder(cell[8:])])
        out = decoder.run(row)
        read, intact = decode(cell)
        assert {name: int(decoder.outputs.column(out, name)[0]) for name in FIELDS} == {
            name: int(getattr(read, name)) for name in FIELDS
        }
        assert bool(decoder.outputs.column(out, "intact")[0]) == intact == (cell == data)
        assert bool(decoder.outputs.column(out, "empty")[0]) == read.empty


def test_the_layout_in_gates_is_the_one_on_the_wire():
    layout = HEADER.layout()
    assert {name: (field.offset, field.width) for name, field in layout} == {
        name: (HEADER.offset(name), width) for name, width in HEADER.fields
    }
    assert CRC is CRC8_SAE_J1850


def test_headers_packed_by_the_column_are_those_of_weft_wire():
    rng = np.random.default_rng(3)
    rows = np.stack([rng.integers(0, top, 200) for top in (1024, 1024, 1 << 22, 2048)], axis=1)
    rows[::5, 0] = rows[::5, 1]  # empty cells have no payload
    for row, header in zip(rows, packed(rows, 8), strict=True):
        dst, src, seq, code = map(int, row)
        payload = b"" if dst == src else Host(8).payload(src | dst << 10 | seq << 20)
        assert (
            int(header).to_bytes(8, "little")
            == Cell(dst=dst, src=src, seq=seq, feedback=code, payload=payload).encode()[:8]
        )


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
    ],
)
def test_sizes_that_fit_nothing_are_refused(given, says):
    with pytest.raises(BadInput, match=f"^{says}$"):
        NicGates(**given)


def test_a_latency_that_takes_other_slots_than_the_schedule_counts_with_is_refused():
    with pytest.raises(BadInput, match=r"^delay must be 2 slots, what 20 cycles from node to node take, not 1$"):
        replace(NicGates(delay=1), latency=20).component()


def test_a_run_that_needs_more_seats_says_how_many():
    flows = [(0, 1 + k % 3, 1, k) for k in range(20)]
    says = r"^seats must be at least \d+, as many as a node gives away at once here, not 2$"
    with pytest.raises(BadInput, match=says):
        check(replace(DESIGNS[0], seats=2).component(), flows, 100)


def test_a_description_is_built_once():
    assert gates.rack(nodes=4, ports=4) is gates.rack(nodes=4, ports=4)
    assert isinstance(NicGates(nodes=4).component(), Nic)
