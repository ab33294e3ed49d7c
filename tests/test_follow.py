"""A flow that is followed: every cell and packet accounted for, to the picosecond at which the run ended it."""

import pytest

import weft
from rooms import EACH, named
from weft.errors import BadInput
from weft.fabrics.base import Fabric
from weft.following import lines, parse
from weft.units import KB, Gbps, us

REFUSED = "a rack that is followed must be under the paper's rules, with nothing that fails or is damaged"


def test_every_cell_of_a_flow_through_shoal_is_released_sent_and_delivered():
    result = weft.run(weft.Shoal(nodes=8, propagation=20_000), weft.Incast(fan_in=4, bytes=500), seed=1)
    steps = weft.follow(result, 2)
    cells = weft.Shoal(nodes=8).cells(500)
    by_kind = {what: [step.item for step in steps if step.what == what] for what in ("released", "delivered")}
    assert sorted(by_kind["released"]) == sorted(by_kind["delivered"]) == list(range(cells))
    sent, parked = (sum(step.what == what for step in steps) for what in ("sent", "parked"))
    assert sent == cells + parked  # a cell that is parked is sent twice
    assert [step.time for step in steps] == sorted(step.time for step in steps)
    assert steps[-1].time == result.observation.finish[2] and steps[0].what == "flow begins"
    assert any(step.why.startswith("behind") for step in steps)


@pytest.mark.parametrize("transport", ["tcp", "ndp"])
def test_every_packet_of_a_flow_is_told_from_host_to_host(transport):
    fabric = weft.Packet(hosts=16, transport=transport, buffer=8)
    result = weft.run(fabric, weft.Incast(fan_in=12, bytes=20_000), seed=1)
    steps = weft.follow(result, 3)
    flow = result.flows
    data = [step for step in steps if step.what.startswith("data")]
    assert data[0].where.startswith(f"h{flow.src[3]} to") and steps[-1].time == result.observation.finish[3]
    arrived = {step.what for step in data if step.where == f"h{flow.dst[3]}"}
    assert len(arrived) == -(-20_000 // fabric.payload)  # each segment, whatever was lost before
    if result.summary()["lost"]["total"] or result.summary()["trims"]:
        assert any("lost" in step.what or "trimmed" in step.why for step in weft.follow(result, 3) + _others(result))


def _others(result):
    return [step for flow in range(12) for step in weft.follow(result, flow)]


@pytest.mark.parametrize(("room", "fabric"), EACH, ids=named(EACH))
def test_every_room_tells_of_a_flow_up_to_the_picosecond_at_which_the_run_ended_it(room, fabric):
    result = weft.run(fabric, weft.Poisson(load=0.6, sizes="fixed:5KB", flows=30), seed=1)
    last = int(result.observation.finish.argmax())
    for f in (0, last):
        try:
            steps = weft.follow(result, f)  # which raises if the twin ends the flow at another moment
        except BadInput as refused:
            assert room == "shoal" and str(refused) == REFUSED
            continue
        done = int(result.observation.finish[f])
        assert [step.time for step in steps] == sorted(step.time for step in steps)
        assert steps[0].time >= result.flows.start[f] and len(steps) > 2
        if done >= 0:
            assert steps[-1].time == done


def test_every_cell_through_a_switch_enters_waits_and_leaves_once_at_each_place():
    for fabric in (fabric for room, fabric in EACH if room == "crossbar"):
        result = weft.run(fabric, weft.Incast(fan_in=4, bytes=500), seed=1)
        steps = weft.follow(result, 2)
        cells = -(-500 // fabric.payload)
        for what in ("entered", "delivered"):
            assert sorted(step.item for step in steps if step.what == what) == list(range(cells)), fabric
        queued = [(step.item, step.where) for step in steps if step.what == "queued"]
        assert sorted(queued) == sorted((step.item, step.where) for step in steps if step.what == "left")
        assert len(queued) == len(set(queued)) >= cells
        held = "not its turn" if fabric.buffers == "load-balanced" else "not chosen"
        assert any(held in step.why for step in steps) or fabric.buffers == "oq"


def test_a_torus_tells_when_everybody_knew_of_a_flow_and_what_it_was_given():
    fabric = weft.Torus(dimensions=(3, 3), period=5 * us)
    result = weft.run(fabric, weft.Incast(fan_in=4, bytes=200 * KB), seed=1)
    steps = weft.follow(result, 1)
    known = next(k for k, step in enumerate(steps) if step.what == "flow known to all")
    rates = [k for k, step in enumerate(steps) if step.what.startswith("rate ")]
    assert known < rates[0] and "4 flows" in steps[rates[0]].why


def test_stardust_tells_of_credits_and_of_the_cells_a_packet_became():
    fabric = weft.Stardust(hosts=16)
    result = weft.run(fabric, weft.Incast(fan_in=8, bytes=20_000), seed=1)
    steps = weft.follow(result, 3)
    assert any("credit came" in step.what for step in steps)
    cells = {name: {step.what.rsplit(" ", 1)[0] for step in steps if step.what.startswith("cell")
                    and step.what.endswith(name)} for name in ("queued", "sent", "arrived")}  # fmt: skip
    assert cells["queued"] == cells["sent"] == cells["arrived"] and len(cells["sent"]) > 20_000 // fabric.cell


def test_tdma_tells_what_was_granted_and_that_all_of_it_arrived():
    fabric = weft.TDMA(nodes=8)
    result = weft.run(fabric, weft.Incast(fan_in=4, bytes=100 * KB), seed=1)
    steps = weft.follow(result, 1)
    whats = [step.what for step in steps]
    assert whats[0] == "flow begins" and whats[-1] == "flow ends" and "backlog reported" in whats
    assert any(what.endswith("may be sent") for what in whats) and steps[-2].why == "0 B to go"


def test_the_ideal_switch_tells_which_link_held_a_flow_back():
    result = weft.run(weft.Ideal(nodes=8), weft.Incast(fan_in=4, bytes=100 * KB), seed=1)
    steps = weft.follow(result, 1)
    assert [step.what for step in steps] == ["flow begins", "rate 25 Gbps", "flow ends"]
    into = int(result.flows.dst[1])
    assert steps[1].where == f"link into node {into}" and steps[1].why.startswith("full: 4 flows share it")


def test_a_run_that_was_cut_is_followed_as_far_as_it_went():
    for fabric in (weft.Shoal(nodes=8), weft.Crossbar(ports=8), weft.Ideal(nodes=8, link=10 * Gbps)):
        result = weft.run(fabric, weft.Permutation(duration=20 * us), seed=1)
        steps = weft.follow(result, 1)
        assert steps and max(step.time for step in steps) <= result.observation.now + fabric.slot_time if hasattr(
            fabric, "slot_time") else steps  # fmt: skip


class Mute(weft.Ideal):
    """A fabric of one's own, without a twin that tells."""

    follow = Fabric.follow


def test_what_cannot_be_followed_is_said():
    result = weft.run(weft.Ideal(nodes=8), weft.Incast(fan_in=4, bytes=500))
    with pytest.raises(BadInput, match=r"^Mute must have a twin that tells, to be followed, which it has not$"):
        Mute(nodes=8).follow(result.flows, 0, seed=0, until=1)
    with pytest.raises(BadInput, match=r"^what is followed must be one of the 4 flows of the run, not 'flow 9'$"):
        weft.follow(result, 9)
    with pytest.raises(BadInput, match=r"^what is followed must look like 'flow 17', not 'node 3'$"):
        parse("node 3")
    assert parse("flow 17") == parse("17") == 17


def test_many_steps_are_shown_from_both_ends():
    result = weft.run(weft.Shoal(nodes=8), weft.Incast(fan_in=4, bytes=5000))
    steps = weft.follow(result, 0)
    shown = lines(steps, most=10)
    assert len(shown) == 12 and "steps more" in shown[6] and "delivered" in shown[-1]
