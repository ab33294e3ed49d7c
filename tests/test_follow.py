"""A flow that is followed: every cell and packet accounted for, to the picosecond at which the run ended it."""

import pytest

import weft
from weft.errors import BadInput
from weft.following import lines, parse


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


def test_what_cannot_be_followed_is_said():
    result = weft.run(weft.Crossbar(ports=8), weft.Incast(fan_in=4, bytes=500))
    with pytest.raises(BadInput, match=r"^Crossbar must have a twin that tells, to be followed, which it has not yet$"):
        weft.follow(result, 0)
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
