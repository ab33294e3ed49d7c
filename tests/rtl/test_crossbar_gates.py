"""Crossbars in gates move the same cells by the same grants as the kernel and the twin, in every slot."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.fabrics.crossbar import Crossbar
from weft.rtl import gates, tools
from weft.rtl.check_crossbar import check
from weft.rtl.crossbar import Switch
from weft.rtl.designs import CrossbarGates
from weft.rtl.gcq import GroupedSwitch
from weft.rtl.islip import Islip
from weft.rtl.simulate import Simulation
from weft.workload.traffic import Bernoulli, Diagonal, HotOutput, Multicast, OnOff

FABRICS = [
    Crossbar(ports=4, depth=2, cell=2),
    Crossbar(ports=5, depth=3, cell=3, iterations=3),
    Crossbar(ports=4, depth=1, cell=2, buffers="shared"),
    Crossbar(ports=5, depth=2, cell=8, buffers="shared", iterations=2),
    Crossbar(ports=4, group=2, cell=4, buffers="gcq"),
    Crossbar(ports=6, group=3, depth=2, inner=1, output=2, crossing=1, speedup=1, pipeline=0, cell=8, buffers="gcq"),
]
SLOTS = st.integers(1, 60)
LOADS = st.sampled_from([0.3, 0.7, 0.95, 1.0])
traffics = st.one_of(
    st.builds(Bernoulli, load=st.sampled_from([0.2, 0.8, 1.0, 1.5, 3.2]), slots=SLOTS),
    st.builds(Diagonal, load=LOADS, slots=SLOTS),
    st.builds(HotOutput, load=LOADS, hot=st.sampled_from([0.1, 0.6]), slots=SLOTS),
    st.builds(OnOff, load=LOADS, burst=st.sampled_from([1.0, 4.0, 9.5]), slots=SLOTS),
    st.builds(Multicast, load=LOADS, fanout=st.integers(2, 4), slots=SLOTS),
)


@given(st.sampled_from(FABRICS), traffics, st.integers(0, 2**32))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_gates_kernel_and_twin_agree_on_every_grant_and_cell(fabric, traffic, seed):
    report = check(fabric, traffic, seed=seed)
    assert report.agree, report.first_difference
    assert report.compared_with == {"kernel": traffic.slots, "reference": traffic.slots}


LINES = [  # three words of eight bits at either end; those of a shared memory begin in the last cycle of a slot
    Crossbar(ports=5, depth=2, cell=3, iterations=3),
    Crossbar(ports=5, depth=2, cell=3, iterations=3, buffers="shared"),
    FABRICS[4],  # two words of sixteen, on the fast clock
]


@given(traffics, st.integers(0, 2**32), st.sampled_from(LINES))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_cells_that_come_and_go_in_words_are_the_same_cells(traffic, seed, fabric):
    report = check(fabric, traffic, seed=seed, twin=1, design=gates.crossbar(fabric, lines=True))
    assert report.agree, report.first_difference


@pytest.mark.parametrize(("fabric", "shows"), [(LINES[0], 8), (LINES[2], None)], ids=["voq", "gcq"])
def test_a_cell_of_which_a_word_is_missing_is_none(fabric, shows):
    made = gates.crossbar(fabric, lines=True)
    k, words = made.beats, [1 << 2, 5, 7][: made.beats]
    with Simulation(made, ratio=made.ratio) as simulation:
        rows = simulation.stimulus(60)
        simulation.inputs.put(rows[:k], "valid_in", [1, 0, 1][-k:])
        simulation.inputs.put(rows[k : 2 * k], "valid_in", [1] * k)
        rows[: 2 * k, simulation.inputs.all["lines_in__0"].at] = words * 2
        out = simulation.run(rows)
        there = simulation.outputs.column(out, "valid_out")
        at = np.flatnonzero(there)
        assert at.tolist() == list(range(at[0], at[0] + k)) and set(there[at].tolist()) == {1 << 2}
        assert shows in (None, at[0]) and at[0] % k == k - 1
        assert simulation.outputs.column(out, "lines_out__2")[at].tolist() == words


def test_a_long_run_of_eight_ports_agrees_and_carries_what_was_offered():
    fabric = Crossbar(ports=8, cell=8, depth=16, buffers="shared", iterations=3)
    report = check(fabric, Bernoulli(load=0.9, slots=4000), seed=1, twin=500)
    assert report.agree and report.cycles == 3 * (4000 + 2)
    assert 0.85 < report.cells / (8 * 4000) < 0.95


@pytest.mark.parametrize(
    ("fabric", "lines"), [*((fabric, False) for fabric in FABRICS), (LINES[2], True)],
    ids=lambda x: f"{x.buffers}-{x.ports}" if isinstance(x, Crossbar) else "lines" if x else "cells",
)  # fmt: skip
def test_both_engines_give_the_same_rows(fabric, lines):
    made = gates.crossbar(fabric, lines)
    rng = np.random.default_rng(1)
    every = 1 if lines else made.slot_cycles
    with Simulation(made, ratio=made.ratio) as fast, Simulation(made, ratio=made.ratio, engine="amaranth") as slow:
        rows = fast.stimulus(30)
        for port in fast.inputs.all.values():
            top = 1 << min(port.width, 32)
            rows[:, port.at : port.at + port.words] = rng.integers(0, top, (30, port.words), np.uint64)
            if port.width % 32:
                rows[:, port.at + port.words - 1] &= (1 << port.width % 32) - 1
        for part in (rows[:1], rows[1:20], rows[20:]):
            assert (fast.run(part, every) == slow.run(part, every)).all()


class Forgetful(Islip):
    """iSLIP whose grants ignore what earlier iterations matched."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.match[0].eq(0)  # input 0 never sends
        return m


def test_a_wrong_scheduler_is_named_by_cycle_signal_and_both_values(monkeypatch, tmp_path):
    fabric = Crossbar(ports=4, depth=2, cell=2)
    monkeypatch.setattr("weft.rtl.crossbar.Islip", Forgetful)
    wrong = Switch(ports=4, depth=2, width=16)
    report = check(fabric, Bernoulli(load=1, slots=50), seed=1, design=wrong, vcd=str(tmp_path / "wave.vcd"))
    assert not report.agree
    difference = report.first_difference
    assert difference.signal == "granted[0]" and difference.gates == "nothing" and "output" in difference.model
    assert difference.cycle == difference.slot + 1
    assert "$enddefinitions" in (tmp_path / "wave.vcd").read_text()


def test_a_queue_that_is_a_cell_too_short_is_found():
    fabric = Crossbar(ports=4, group=2, depth=3, cell=4, buffers="gcq", inner=2, output=2)
    short = GroupedSwitch(ports=4, group=2, depth=2, inner=2, output=2, stages=5, width=32)
    report = check(fabric, Bernoulli(load=1, slots=300), seed=2, design=short)
    assert report.first_difference.signal.startswith("cells_out")


@pytest.mark.parametrize("fabric", FABRICS[:4], ids=lambda f: f"{f.buffers}-{f.iterations}")
def test_a_lone_cell_takes_the_cycles_of_the_memory_and_of_the_iterations(fabric):
    """Eq. (6): T C_MBS + log2(N) T, counted on the gates."""
    memory = {"voq": 1, "shared": 3}[fabric.buffers]
    assert latency(gates.crossbar(fabric)) == memory + fabric.iterations == fabric.unloaded // fabric.clock


def latency(made):
    """Cycles from the edge that takes a cell to the one after which it is seen, for one cell from port 1 to port 2."""
    with Simulation(made) as simulation:
        rows = simulation.stimulus(40)
        simulation.inputs.put(rows[made.slot_cycles - 1 : made.slot_cycles], "valid_in", [2])
        simulation.inputs.put(rows, "cells_in__1", np.full(40, 4))
        seen = simulation.outputs.column(simulation.run(rows), "valid_out")
    return int(np.flatnonzero(seen)[0]) - (made.slot_cycles - 1) + 1


def test_what_was_built_is_not_built_again(monkeypatch):
    Simulation(Switch(ports=4, depth=2, width=16)).close()
    monkeypatch.setattr(tools, "command", lambda *_, **__: pytest.fail("it was compiled again"))
    Simulation(Switch(ports=4, depth=2, width=16)).close()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ports": 65}, "ports must be from 2 to 64 in gates, not 65"),
        ({"width": 12}, "width must be a multiple of 8 bits, not 12"),
        ({"buffers": "gcq", "ports": 6}, "ports must be a multiple of group, 4, not 6"),
        ({"depth": 5000}, "the deepest queue must be at most 4096 cells in gates, not 5000"),
    ],
)
def test_sizes_that_fit_nothing_are_refused_in_a_sentence(given, says):
    with pytest.raises(BadInput, match=f"^{says}$"):
        CrossbarGates(**given)


def test_a_cell_that_does_not_fill_its_words_is_refused():
    says = r"^width must be a multiple of the 3 words in which a cell comes, not 32$"
    for kind in ({"iterations": 3}, {"buffers": "gcq", "group": 3}):
        with pytest.raises(BadInput, match=says):
            CrossbarGates(ports=6, width=32, lines=True, **kind).component()


def test_a_cell_too_narrow_for_its_outputs_is_refused():
    with pytest.raises(BadInput, match=r"^width must be at least 21 bits for cells between 16 ports, not 16$"):
        CrossbarGates(ports=16, width=16).component()
