"""Every room's monitors are awake: a state that was doctored as a fault in its kernel would leave it is noticed."""

import numpy as np
import pytest

from rooms import FLOWS, SMALL
from weft.engine import loop
from weft.errors import MonitorTripped
from weft.fabrics.base import delivered_as_offered
from weft.units import ns, us
from weft.workload.flows import Flows


def started(room, until=6 * us):
    fabric = SMALL[room][0]
    run = fabric.prepare(FLOWS[1].draw(nodes=fabric.nodes, link=fabric.link, seed=1), seed=1)
    run.advance(until=until)
    assert not any(count for law, count in run.monitors(True).items() if run.promises(law))
    return run


def twice(room, run):
    """Count a cell or a byte of the first flow once more than it came."""
    if room == "shoal":
        run.state.flow[0, 1] -= 1  # columns.DELIVER
    elif room == "crossbar":
        run.state.flow_due[0] -= 1
    elif room == "tdma":
        run.state.done[0] += 1
    elif room == "ideal":
        run.state["finish"][0] = -1 if run.state["finish"][0] >= 0 else 5
    else:
        run.state.traffic["received"][0] += 1


@pytest.mark.parametrize("room", ["shoal", "crossbar", "packet", "tdma", "ideal"])
def test_a_cell_that_counts_twice_is_noticed(room):
    run = started(room)
    twice(room, run)
    assert run.monitors(True)["delivered_as_offered"] > 0
    with pytest.raises(MonitorTripped, match=r"^delivered as offered must hold at all times, not be broken "):
        loop.look(run, thorough=True)


def test_a_flow_is_counted_whole_and_no_more():
    offered, finish = np.array([5, 5, 5]), np.array([9, -1, -1])
    assert delivered_as_offered(offered, np.array([5, 4, 0]), finish) == 0
    for wrong in ([4, 4, 0], [5, 5, 0], [5, 4, -1], [6, 4, 0], [5, 9, 0]):
        assert delivered_as_offered(offered, np.array(wrong), finish) == 1


def test_a_queue_one_too_deep_is_noticed():
    run = started("crossbar")
    run.state.queue[4 * 3 + 2] = run.fabric.queue_depth + 1
    assert run.monitors(True)["queue_bound"] == 1


def test_a_packet_that_is_gone_without_a_cause_is_noticed():
    run = started("packet")
    run.state.world["conserved_out"] += 1
    assert run.monitors(False)["conservation"] == 1


@pytest.mark.parametrize("room", ["shoal", "crossbar", "tdma", "stardust"])
def test_a_flow_that_begins_after_a_long_rest_has_not_stalled(room):
    fabric = SMALL[room][0]
    ends = dict(nodes=fabric.nodes, src=[0, 2, 4], dst=[1, 3, 3], size=[500, 900, 900])
    rest = 100 * fabric.prepare(Flows.of(**ends, start=0), seed=1).patience
    run = fabric.prepare(Flows.of(**ends, start=[0, rest, rest]), seed=1)
    run.advance(until=rest // 50)
    for until in range(rest, rest + 100 * us, 10 * ns):
        run.step(until, 1 << 20)
        if run.under_way[1]:
            break
    assert run.finished == 1 and run.now >= rest and run.under_way[1]
    loop.look(run, thorough=True)
    run.advance()
    assert run.finished == 3


@pytest.mark.parametrize("room", ["shoal", "crossbar", "tdma", "stardust"])
def test_a_run_in_which_nothing_arrives_any_more_is_noticed(room, monkeypatch):
    run = started(room)
    arrived, _ = run.under_way
    monkeypatch.setattr(type(run), "under_way", property(lambda self: (arrived, True)))
    assert run.stalled() == 0
    run.moved = arrived, run.now - run.patience - 1
    assert run.monitors(False)["progress"] == 1


def test_a_network_without_an_event_to_come_is_noticed():
    run = started("packet")
    assert run.stalled() == 0
    for name in ("ringed", "heaped", "last", "first"):
        run.state.world[name] = 0
    run.state.world["next_flow"] = run.state.world["known"]
    assert run.stalled() == 1
