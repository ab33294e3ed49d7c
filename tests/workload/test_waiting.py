"""Flows that wait for flows: the table, what it refuses, and the workloads that are built on it."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from graphs import waiting
from weft.engine import calendar
from weft.errors import BadInput
from weft.fabrics.base import Fabric
from weft.workload import AllGather, AllReduce, Flows, ReduceScatter, Rpc
from weft.workload.collectives import shares

CIRCLE = "flows must not wait for each other in a circle, as"


def table(after, **more):
    n = len(after)
    given = {"src": [k % 4 for k in range(n)], "dst": [(k + 1) % 4 for k in range(n)], "size": 10, "start": 0, **more}
    return Flows.of(nodes=4, after=after, **given)


def test_flows_that_wait_come_behind_those_that_do_not():
    flows = table([[1], [], [0], []], start=[5, 0, 0, 3], delay=[0, 0, 7, 0])
    assert flows.id.tolist() == [1, 3, 2, 0] and flows.waiting == 2
    assert [flows.predecessors(f) for f in range(4)] == [[], [], [3], [0]]
    assert flows.delay.tolist() == [0, 0, 7, 0]
    assert flows.released(np.array([10, 20, -1, 40])).tolist() == [0, 3, 47, 10]
    assert flows.released(np.array([10, 20, -1, -1])).tolist() == [0, 3, -1, 10]


@given(waiting(5))
def test_whoever_is_counted_down_is_released_once_and_after_all_it_waits_for(flows):
    waits, _ = calendar.make(flows)
    assert (waits[:, calendar.PENDING] > 0).sum() == flows.waiting if len(waits) else not flows.waiting
    twin, ended = calendar.Calendar(flows), []
    while twin:
        now, f = twin.next, twin.pop()
        assert all(g in ended for g in flows.predecessors(f))
        ended.append(f)
        twin.ended(f, now)
    assert sorted(ended) == list(range(len(flows)))


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        ([[1], [2], [0], []], f"{CIRCLE} 0 waits for 1 waits for 2 waits for 0"),
        ([[1], [0], [3], [2, 0]], f"{CIRCLE} 0 waits for 1 waits for 0"),
        ([[0], [], [], []], "flow 0 must wait for others, not for itself"),
        ([[9], [], [], []], "flow 0 must wait for flows that are there, not for number 9"),
        ([[], []], "after must be as long as src, 4 flows, not 2"),
    ],
)  # fmt: skip
def test_what_cannot_be_waited_for_is_refused(after, sentence):
    with pytest.raises(BadInput) as said:
        Flows.of(nodes=4, src=[0, 1, 2, 3], dst=[1, 2, 3, 0], size=10, start=0, after=after)
    assert str(said.value) == sentence


def test_a_fabric_that_cannot_release_flows_refuses_those_that_wait():
    @dataclass(frozen=True, kw_only=True)
    class Deaf(Fabric):
        nodes: int = 4
        link: int = 10**9

    with pytest.raises(BadInput, match=r"^Deaf must be given flows that wait for no other, not 1$"):
        Deaf().accept(table([[], [0]]))
    Deaf().accept(table([[], []]))


def test_nobody_waits_for_what_is_no_flow():
    with pytest.raises(BadInput, match=r"^flow 0, which flow 1 waits for, must be of at least 1 byte"):
        Flows.of(nodes=4, src=[0, 1], dst=[1, 2], size=[0, 10], start=0, after=[[], [0]])


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "hierarchical"])
@given(st.sampled_from([4, 8, 16]), st.integers(64, 100_000))
def test_an_all_reduce_moves_what_its_algorithm_says(algorithm, nodes, size):
    flows = AllReduce(bytes=size, algorithm=algorithm, group=4).draw(nodes=nodes, link=10**11, seed=0)
    sent = np.bincount(flows.src, flows.size, nodes)
    least = 2 * size * (nodes - 1) / nodes
    assert (sent >= least - 2 * nodes).all() and (sent <= least + 4 * nodes + 2 * nodes.bit_length()).all()


def test_a_tree_sends_every_byte_up_and_down_once_per_edge():
    flows = AllReduce(bytes=10_001, algorithm="tree").draw(nodes=7, link=10**11, seed=0)
    assert int(flows.size.sum()) == 2 * 6 * 10_001


@pytest.mark.parametrize("kind", [AllGather, ReduceScatter])
def test_the_halves_of_an_all_reduce_go_once_round(kind):
    flows = kind(bytes=800).draw(nodes=8, link=10**11, seed=0)
    assert len(flows) == 8 * 7 and set(flows.size.tolist()) == {100} and flows.waiting == 8 * 6


def test_shares_are_as_even_as_can_be():
    assert shares(10, 4) == [3, 3, 2, 2] and sum(shares(1001, 7)) == 1001


def test_a_ring_over_an_ideal_switch_reaches_its_bound():
    from weft_fluid import Fluid

    told = weft.run(Fluid(nodes=8), AllReduce(bytes=800_000), seed=0).summary()["collective"]
    assert told["over_bound"] == pytest.approx(1, rel=1e-6) and told["bus_gbps"] == pytest.approx(100, rel=1e-6)


def test_computing_and_repeating_take_their_time():
    from weft_fluid import Fluid

    once = weft.run(Fluid(nodes=4), AllReduce(bytes=400_000), seed=0)
    thrice = weft.run(Fluid(nodes=4), AllReduce(bytes=400_000, repeat=3, compute=7_000_000), seed=0)
    each = once.summary()["collective"]["step_us"]["mean"]
    assert thrice.observation.now == pytest.approx(3 * (each * 1e6 + 7_000_000), rel=1e-9)
    assert thrice.summary()["collective"]["done"] == 3


def test_a_request_is_done_when_its_slowest_answer_is():
    flows = Rpc(requests=12, fan_out=3, bytes=1000, outstanding=2).draw(nodes=4, link=10**11, seed=1)
    assert len(flows) == 12 * 6
    result = weft.run(weft.Crossbar(ports=4, cell=64), Rpc(requests=12, fan_out=3, bytes=1000, outstanding=2), seed=1)
    told = result.summary()["requests"]
    assert told["done"] == 12
    start, finish, group = result.flows.start, result.observation.finish, flows.group
    spans = [int(finish[group == r].max() - start[group == r].min()) for r in range(12)]
    assert told["fct_us"]["max"] == max(spans) / 1e6


def test_no_more_requests_are_under_way_than_a_node_may_have():
    load = Rpc(requests=60, fan_out=2, bytes=500, outstanding=2)
    result = weft.run(weft.Shoal(nodes=5), load, seed=3)
    group = load.draw(nodes=5, link=10**11, seed=3).group
    start, finish = result.flows.start, result.observation.finish
    spans = [(r % 5, int(start[group == r].min()), int(finish[group == r].max())) for r in range(60)]
    for client in range(5):
        own = [(a, b) for node, a, b in spans if node == client]
        assert max(sum(a <= moment < b for a, b in own) for moment, _ in own) <= 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: AllReduce(bytes=0), "bytes must be from 1 to 70368744177663, not 0"),
        (lambda: AllReduce(bytes=3).draw(nodes=4, link=1, seed=0),
         "bytes must be at least 4, a byte for each node, not 3"),
        (lambda: AllReduce(bytes=99, algorithm="halving-doubling").draw(nodes=6, link=1, seed=0),
         "nodes must be a power of two for halving-doubling, not 6"),
        (lambda: AllReduce(bytes=99, algorithm="hierarchical", group=4).draw(nodes=6, link=1, seed=0),
         "nodes must be a multiple of group, 4, not 6"),
        (lambda: Rpc(fan_out=4).draw(nodes=4, link=1, seed=0), "fan_out must be below the number of nodes, 4, not 4"),
    ],
)  # fmt: skip
def test_bad_collectives_and_requests_get_a_sentence(make, sentence):
    with pytest.raises(BadInput) as said:
        make()
    assert str(said.value) == sentence
