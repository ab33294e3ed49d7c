"""Proofs hold, and for each there is a mutant for which it does not; what a design costs is counted."""

import json

import pytest

from weft.cli import main
from weft.rtl.designs import CrossbarGates, IslipGates, ShoalGates, SwitchGates
from weft.rtl.properties import PROPERTIES
from weft.rtl.prove import decide, prove
from weft.rtl.synth import asked_bits, synthesise
from weft.rtl.tools import rtlil


@pytest.mark.parametrize(
    ("name", "design", "results"),
    [
        ("islip", IslipGates(ports=3, iterations=2), ["proved", "holds to depth"]),
        ("shoal-switch", SwitchGates(nodes=8, ports=4, switch="leaf1"), ["proved"]),
        ("shoal-switch", SwitchGates(nodes=8, ports=4, switch="spine0", delay=1), ["proved"]),
    ],
)
def test_every_property_holds_and_its_mutant_fails(name, design, results):
    verdicts = prove(PROPERTIES[name](design))
    assert [verdict.result for verdict in verdicts] == results
    assert all(verdict.mutant_failed and verdict.good for verdict in verdicts)


def test_a_shared_memory_keeps_order_as_far_as_we_look_and_one_that_frees_early_does_not():
    fifo = PROPERTIES["crossbar"](CrossbarGates(ports=2, buffers="shared"))[-1]
    assert decide(fifo.design(), 8) == ("holds to depth", 8)
    assert decide(fifo.mutant(), 8)[0] == "fails"


@pytest.mark.slow
def test_no_queue_of_a_small_rack_breaks_its_bound_as_far_as_we_look_and_one_that_does_not_wait_for_feedback_does():
    (bound,) = PROPERTIES["shoal"](ShoalGates())
    assert decide(bound.design(), 61) == ("holds to depth", 61)
    assert decide(bound.mutant(), 61, hunt=True) == ("fails", 60)


def test_a_proof_of_a_wrong_design_fails_at_a_depth():
    wrong = PROPERTIES["islip"](IslipGates(ports=3))[0].mutant()
    result, depth = decide(wrong, 0, hunt=False)
    assert result == "fails" and depth >= 0


def test_proofs_are_printed_as_promised(capsys):
    assert main(["rtl", "prove", "shoal-switch", "--nodes", "4", "--ports", "4", "--json"]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)["properties"]
    assert verdict["mutant_failed"] is True and verdict["result"] == "proved" and verdict["depth"] is None
    assert main(["rtl", "prove", "shoal-switch", "--nodes", "4", "--ports", "4"]) == 0
    assert capsys.readouterr().out.startswith("proved: no two inputs on one output")


def test_what_a_design_costs_is_counted(capsys):
    assert main(["rtl", "synth", "islip", "--ports", "4", "--target", "xcup", "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    assert set(cost) >= {"design", "target", "lut", "ff", "ram_bits", "brams", "fmax_mhz", "tool"}
    assert 60 < cost["lut"] < 300 and 30 < cost["ff"] < 80
    assert cost["fmax_mhz"] is None and cost["ram_bits"] == 0  # no open tool times this device
    assert main(["rtl", "synth", "islip", "--target", "abacus"]) == 2
    assert "target must be one of xcup, xc5v, cyclonev, ecp5, not 'abacus'" in capsys.readouterr().err


def test_memory_is_counted_as_the_paper_counts_it():
    """Eq. (2) of the FPGA paper: data, pool, pointer queues, indicator; the pointer queues as deep as in Table III.

    The indicator is there twice, as two write it.
    """
    design = CrossbarGates(ports=4, buffers="shared", depth=8, width=64)
    n, size, address = 4, 32, 5
    per_input = size * 64 + size * address + n * size * address + 2 * size * n
    assert asked_bits(rtlil(design.component())) == n * per_input
    cost = synthesise("crossbar", design.component(), "ecp5", route=False)
    assert cost.ram_bits == n * per_input and cost.fmax_mhz is None and cost.brams + cost.lutram > 0
