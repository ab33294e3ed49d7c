"""Ports that are held and let go, and links that change their rate, at given moments."""

import numpy as np
import pytest

from weft.errors import BadInput
from weft.fabrics.network.gates import GatedRun, Moment
from weft.fabrics.packet import Packet
from weft.units import Gbps, us
from weft.workload import Flows

FABRIC = Packet(hosts=2, topology="single", mtu=1500, transport="tcp:share=1,initial_window=1000", buffer=2000)
FLOWS = Flows.of(nodes=2, src=[0], dst=[1], size=2_000_000, start=0)


def arrivals(moments, until=3000, step=50, fabric=FABRIC):
    """Bytes that arrive in every `step` us."""
    run, got = GatedRun(fabric, FLOWS, moments, seed=1), [0]
    for moment in range(step, until + 1, step):
        run.advance(until=moment * us)
        got.append(int(run.state.hosts["delivered"][1]))
    return np.diff(got), run


def ports():
    sender, receiver = FABRIC.graph.port_ends()
    return int(np.flatnonzero(sender == 0)[0]), int(np.flatnonzero((sender >= 2) & (receiver == 1))[0])


def test_without_moments_it_is_the_same_run():
    plain = FABRIC.prepare(FLOWS, seed=1)
    plain.advance()
    _, run = arrivals([])
    assert run.observe().fingerprint == plain.observe().fingerprint


def test_a_port_that_is_held_sends_nothing_until_it_is_let_go():
    up, _ = ports()
    got, run = arrivals([Moment(300 * us, up, held=True), Moment(800 * us, up, held=False)])
    assert got[:6].min() > 0 and not got[7:16].any() and got[17] > 0
    assert run.finished == 1 and run.lost.total == 0


def test_a_link_has_its_new_rate_from_the_next_packet_on():
    _, down = ports()
    got, _ = arrivals([Moment(500 * us, down, rate=1 * Gbps)])
    assert got[5] / got[15] == pytest.approx(10, rel=0.2)


def test_a_frozen_run_goes_on_to_the_same_bits():
    up, _ = ports()
    moments = [Moment(300 * us, up, held=True), Moment(800 * us, up, held=False)]
    whole, run = GatedRun(FABRIC, FLOWS, moments, seed=1), GatedRun(FABRIC, FLOWS, moments, seed=1)
    whole.advance()
    run.advance(until=500 * us)
    thawed = GatedRun(FABRIC, FLOWS, moments, seed=1)
    thawed.thaw({name: array.copy() for name, array in run.freeze().items()})
    thawed.advance()
    assert thawed.observe().fingerprint == whole.observe().fingerprint


def test_ports_that_look_ahead_are_refused():
    with pytest.raises(
        BadInput, match=r"^a network with gates must have shared buffers and no failures, not ports that"
    ):
        GatedRun(Packet(hosts=2, topology="single"), FLOWS, [])
