"""The switch at work: the same packets as the twin's, what it carries, what failures and growth do to it."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from weft.errors import BadInput
from weft.fabrics.merchant.deployment import COUNTS
from weft.fabrics.merchant.fabric import Merchant
from weft.fabrics.network import reference
from weft.models.merchant import Switch
from weft.random import below, key, words
from weft.topology.cabling import Wiring
from weft.units import Gbps, ms, ns, us
from weft.workload import Permutation
from weft.workload.flows import Flows

SMALL = Merchant(radix=8, transport="ndp")


def traffic(hosts, count, seed, largest=40_000, within=200 * us):
    draw = words(key(seed, 1), 4 * count).reshape(4, count)
    src = below(draw[0], hosts)
    return Flows.of(
        nodes=hosts, src=src, dst=(src + 1 + below(draw[1], hosts - 1)) % hosts, size=1 + below(draw[2], largest),
        start=below(draw[3], within),
    )  # fmt: skip


CASES = {
    "two pods": dict(pods=2),
    "one pod": dict(pods=1),
    "few cards": dict(pods=3, line_cards=3, uplink_cards=1, core_cards=1),
    "no eep": dict(pods=2, eep=False),
    "failures": dict(
        pods=2, fail="core-card 1 at 50us until 150us, cable 0.0.0.0 at 20us, chips 10% at 100us until 1ms"
    ),
    "growth": dict(pods=4, grow="pods=2 core_cards=1 until 150us, pods=3 core_cards=1 until 300us"),
}


@pytest.mark.parametrize("transport", ["ndp:rto_min=300us", "dctcp:rto_min=300us,rto_first=1ms,mark_from=3"])
@pytest.mark.parametrize("case", CASES)
def test_kernel_moves_the_same_packets_as_the_reference(case, transport):
    fabric = Merchant(radix=8, transport=transport, buffer=8, converge=30 * us, **CASES[case])
    flows = traffic(fabric.nodes, 40, seed=3)
    run = fabric.prepare(flows, seed=5)
    run.advance(until=4 * ms)
    twin = reference.run(fabric, flows, seed=5, until=4 * ms)
    seen = run.observe()
    assert_array_equal(seen.finish, twin.finish)
    assert_array_equal(seen.received, twin.received)
    assert seen.work["packet_hops"] == twin.count["hops"] > 0
    assert seen.fingerprint == str(twin.print)
    assert (seen.finish >= 0).any()


def test_it_is_the_switch_that_the_models_price():
    whole, priced = Merchant(), Switch()
    assert (whole.nodes, len(whole.boards.wiring.cables)) == (priced.ports, priced.parts()["QSFP"] // 2) == (3456, 864)
    assert {name: getattr(whole.switch, name) for name in COUNTS} == {name: getattr(priced, name) for name in COUNTS}
    assert whole.grooming == 103_200  # ps: see test_groomer.py
    assert set(whole.graph.delay.tolist()) == {300 * ns, 300 * ns + 250 * ns + 103_200}
    assert set(Merchant(radix=8, eep=False, fibre=0).graph.delay.tolist()) == {300 * ns}


def test_a_run_says_how_much_can_cross_it():
    flows = Permutation(duration=20 * us).draw(nodes=128, link=10 * Gbps, seed=1)
    for fail, bisection in (("", 1.28), ("core-card 1 at 5us", 0.64), ("core-card 1 until 5us", 1.28)):
        run = replace(SMALL, fail=fail).prepare(flows, seed=1)
        run.advance(until=20 * us)
        assert run.observe().sections["bisection_tbps"] == bisection


def test_a_permutation_fills_the_ports_of_a_whole_switch_and_half_of_them_with_half_the_core():
    """Over the second half of the run; what stays in pods does not need the core."""
    flows = Permutation(duration=2 * ms).draw(nodes=128, link=10 * Gbps, seed=1)
    shares = []
    for core in (2, 1):
        run = replace(SMALL, core_cards=core, mtu=9000).prepare(flows, seed=1)
        run.advance(until=1 * ms)
        before = run.state.hosts["delivered"].sum()
        run.advance(until=2 * ms)
        shares.append((run.state.hosts["delivered"].sum() - before) * 8 / (128 * 10 * Gbps * 1e-3))
    assert shares[0] > 0.9 and 0.45 < shares[1] < 0.62


def test_what_is_installed_later_carries_nothing_before():
    fabric = replace(SMALL, grow="pods=4 core_cards=1 until 200us", rto=100 * us)
    src = np.arange(64)
    flows = Flows.of(nodes=128, src=np.append(src, src + 64), dst=np.append(63 - src, 127 - src), size=20_000, start=0)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=199 * us)
    assert (run.observe().finish[:64] >= 0).all() and (run.observe().received[64:] == 0).all()
    assert run.observe().sections["bisection_tbps"] == 0.64  # of the ports that are there
    run.advance(until=20 * ms)
    assert (run.observe().finish >= 0).all() and run.observe().sections["bisection_tbps"] == 1.28


def test_a_run_that_is_taken_up_again_goes_on_alike():
    fabric = replace(SMALL, pods=2, fail="cable 0.0.0.0 at 30us until 120us", grow="pods=1 until 60us")
    flows = traffic(fabric.nodes, 60, seed=1)
    whole = fabric.prepare(flows, seed=2)
    whole.advance()
    for at in (20 * us, 40 * us, 70 * us, 150 * us):
        first = fabric.prepare(flows, seed=2)
        first.advance(until=at)
        again = fabric.thaw(flows, first.freeze(), seed=2)
        again.advance()
        assert again.observe().fingerprint == whole.observe().fingerprint
        assert_array_equal(again.observe().finish, whole.observe().finish)


def test_wrong_cables_come_from_a_file(tmp_path):
    crossed = Wiring.right(8).swap(0, 6)
    crossed.save(tmp_path / "cables.csv")
    fabric = Merchant(radix=8, wiring=str(tmp_path / "cables.csv"))
    assert fabric.bisection() < SMALL.bisection() == 1_280 * Gbps
    assert fabric.inputs() == (str(tmp_path / "cables.csv"),)


def test_the_command_reports_bisection_and_deployment(capsys):
    from weft.cli import main

    tokens = shlex.split("run merchant permutation --radix 8 --link 10Gbps --duration 20us --transport ndp --json")
    assert main(tokens) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bisection_tbps"] == 1.28 and found["deployment"]["ports"] == 128
    assert found["fabric"]["kind"] == "Merchant"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (dict(radix=12), "radix must be a multiple of 8, not 12"),
        (dict(radix=264), "radix must be at most 256, not 264"),
        (dict(radix=72), "ports must be at most 65,536, not 93312"),
        (dict(pods=25), "pods must be between 1 and 24, not 25"),
        (dict(core_cards=19), "core_cards must be between 1 and 18, not 19"),
        (dict(fibre=-1), "fibre must be 0 or more, not -1"),
        (dict(radix=8, fail="core-card 9"), "a core-card must be one of 0, 1, not '9'"),
        (dict(radix=8, grow="pods=9 until 1ms"), "pods must be between 1 and 8, not 9"),
        (
            dict(radix=8, wiring="no.csv"),
            "no.csv must be a csv of cables, but there is no such file",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_in_a_sentence(values, message):
    with pytest.raises(BadInput) as caught:
        Merchant(**values)
    assert str(caught.value) == message
