"""Training steps, experts, servers, pulls and chains: who waits for whom, how long that takes, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_fluid import Fluid

import weft
from weft.errors import BadInput
from weft.units import Gbps, us
from weft.workload import (
    AllReduce,
    ChainReplication,
    DataParallel,
    Exchange,
    Experts,
    MapReduce,
    ParameterServer,
    Pipeline,
)  # fmt: skip
from weft.workload.collectives import met_in_order
from weft.workload.steps import START, Steps, later, longest, moment, together

FAST = 10**15  # b/s: a network that takes no time to speak of


def told(workload, section, nodes=8, link=100 * Gbps):
    return weft.run(Fluid(nodes=nodes, link=link), workload, seed=0).summary()[section]


def test_an_exchange_meets_everybody_once_a_phase_at_a_time():
    flows = Exchange(bytes=900).draw(nodes=9, link=1, seed=0)
    pairs = set(zip(flows.src.tolist(), flows.dst.tolist(), strict=True))
    assert len(flows) == len(pairs) == 72 and set(flows.size.tolist()) == {100}
    result = weft.run(Fluid(nodes=9), Exchange(bytes=9000), seed=0)
    for node in range(9):  # one flow out and one in at any moment
        for ends in (result.flows.src, result.flows.dst):
            mine = np.flatnonzero(ends == node)
            order = mine[np.argsort(result.flows.start[mine])]
            assert (result.flows.start[order[1:]] >= result.observation.finish[order[:-1]]).all()


@given(st.integers(2, 12), st.integers(1, 5))
def test_whatever_the_window_an_exchange_is_whole_and_acyclic(nodes, window):
    flows = Exchange(bytes=40_000, window=window).draw(nodes=nodes, link=1, seed=0)
    assert len(flows) == nodes * (nodes - 1)
    assert flows.waiting == nodes * max(nodes - 1 - window, 0)


def test_experts_take_two_exchanges_and_their_work():
    once, both = told(Exchange(bytes=800_000), "collective"), told(Experts(bytes=800_000, expert=5 * us), "collective")
    assert both["step_us"]["mean"] == pytest.approx(2 * once["step_us"]["mean"] + 5, rel=1e-9)
    assert once["over_bound"] == pytest.approx(1) and once["bus_gbps"] == pytest.approx(100)


def test_a_server_answers_when_it_has_heard_all_workers_or_at_once():
    flows = ParameterServer(bytes=1000, servers=2).draw(nodes=6, link=1, seed=0)
    pulls = [f for f in range(len(flows)) if flows.src[f] < 2]
    assert len(flows) == 16 and all(len(flows.predecessors(f)) == 4 for f in pulls)
    flows = ParameterServer(bytes=1000, servers=2, asynchronous=True).draw(nodes=6, link=1, seed=0)
    assert all(len(flows.predecessors(f)) == 1 for f in range(len(flows)) if flows.src[f] < 2)


def test_the_busiest_link_of_a_parameter_server_is_the_servers():
    section = told(ParameterServer(bytes=700_000), "collective")
    assert section["step_us"]["mean"] == pytest.approx(2 * 7 * 700_000 * 8 / 100e3)  # in, then out: µs at 100 Gb/s
    assert section["bus_gbps"] == pytest.approx(50) and section["over_bound"] == pytest.approx(2)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@given(st.integers(2, 6), st.integers(1, 9), st.integers(1, 3))
def test_a_pipeline_without_a_network_takes_what_gpipe_says(schedule, stages, batches, steps):
    """(m + s - 1) times what a stage takes for a batch, forwards and backwards (Huang et al., section 2.3)."""
    pipeline = Pipeline(model="bert-large", layers=2 * stages, batches=batches, schedule=schedule, steps=steps)
    each = 3 * pipeline.forwards(2)
    laid, done = pipeline.lay(stages)
    flows = laid.flows(stages)
    ends = longest(flows, np.arange(len(flows)), np.zeros(len(flows), int))
    by_id = ends[np.argsort(flows.id)]
    assert moment(done[-1], by_id) == steps * (batches + stages - 1) * each
    assert len(flows) == steps * 2 * batches * (stages - 1) == len(pipeline.planned(stages))


@given(st.integers(2, 6), st.integers(1, 9), st.integers(0, 5))
def test_1f1b_holds_no_more_batches_than_there_are_stages_behind(stages, batches, stage):
    stage = min(stage, stages - 1)
    held = most = 0
    for forwards, _ in Pipeline(model="bert-tiny", batches=batches).order(stage, stages):
        held += 1 if forwards else -1
        most = max(most, held)
    assert held == 0 and most == min(stages - stage, batches)


def test_several_pipelines_sum_the_gradients_of_a_stage():
    pipeline = Pipeline(model="bert-tiny", stages=2, batches=3)
    flows = pipeline.draw(nodes=6, link=1, seed=0)
    within = flows.src // 2 == flows.dst // 2
    assert within.sum() == 3 * 2 * 3 and (~within).sum() == 2 * 2 * 3 * 2
    assert int(flows.size[~within].sum()) == 2 * (3 - 1) * 2 * 12 * 128**2 * 2
    assert len(flows) == len(pipeline.planned(6))


def test_a_fast_network_leaves_a_data_parallel_step_what_it_computes():
    step = DataParallel(model="bert-tiny", steps=2)
    section = told(step, "training", link=FAST)
    assert section["compute_us"] == pytest.approx(3 * step.forwards(2) / us, rel=1e-6)
    assert section["step_us"]["mean"] == pytest.approx(section["compute_us"], rel=1e-2)
    assert section["network_us"] >= 0 and section["over_bound"] >= 1


def test_a_bucket_is_reduced_when_it_is_computed_and_the_one_before_is_done():
    step = DataParallel(model="bert-tiny", bucket=200_000)
    result = weft.run(Fluid(nodes=4, link=FAST), step, seed=0)
    flows = step.draw(nodes=4, link=FAST, seed=0)
    starts = result.flows.start[np.argsort(flows.id)]
    forwards = step.forwards(2)
    assert len(flows) == 4 * 24
    for k, filled in enumerate((196_608, 393_216, 589_824, 786_432)):
        assert starts[k * 24 : (k + 1) * 24].min() == forwards + 2 * forwards * filled // 786_432


def test_no_reducer_pulls_from_more_mappers_at_a_time_than_it_may():
    load = MapReduce(mappers=5, reducers=3, bytes=20_000, parallel=2)
    result = weft.run(weft.Crossbar(ports=8), load, seed=2)
    section = result.summary()["requests"]
    assert section["done"] == section["asked"] == 15 and section["over_bound"] >= 1
    begin, end = result.flows.start, result.observation.finish
    answers = result.flows.size == 20_000
    for reducer in np.unique(result.flows.dst[answers]):
        mine = answers & (result.flows.dst == reducer)
        assert mine.sum() == 5
        assert max(((begin[mine] <= t) & (t < end[mine])).sum() for t in begin[mine]) <= 2


def test_pulls_of_a_node_from_itself_are_left_out_and_said():
    flows = MapReduce(mappers=4, reducers=4, bytes=10).draw(nodes=4, link=1, seed=0)
    assert len(flows) == 2 * 12 and flows.notes == ("4 pulls of a node from itself were left out",)


def test_a_write_goes_from_replica_to_replica_and_the_tail_answers():
    flows = ChainReplication(writes=6, replicas=3, bytes=500, answer=7).draw(nodes=5, link=1, seed=1)
    for write in range(6):
        own = [f for f in np.argsort(flows.id) if flows.group[f] == write]
        hops = [(int(flows.src[f]), int(flows.dst[f]), int(flows.size[f])) for f in own]
        assert hops[0][0] == hops[-1][1] == write % 5 and [size for *_, size in hops] == [500, 500, 500, 7]
        assert all(a[1] == b[0] for a, b in pairwise(hops)) and len({a for a, *_ in hops}) == 4
        inner = [f for f in own if flows.predecessors(f)]
        assert all(g in own for f in inner[-3:] for g in flows.predecessors(f))


@pytest.mark.parametrize("nodes", [2, 3, 8, 13, 64])
@pytest.mark.parametrize("schedule", ["rotation", "mirrored"])
def test_a_ring_in_the_order_of_a_schedule_visits_everybody(nodes, schedule):
    assert sorted(met_in_order(list(range(nodes)), schedule)) == list(range(nodes))


def test_with_the_rotation_and_a_power_of_two_every_step_is_one_longer():
    order = met_in_order(list(range(16)), "rotation")
    assert [(b - a) % 16 for a, b in pairwise(order)] == list(range(1, 16))


def test_what_is_put_together_keeps_its_moments():
    steps = Steps()
    first = steps.send(0, 1, 10, later((), 7))
    second = steps.send(1, 2, 10, later(first, 5))
    third = steps.send(2, 0, 10, together(second, later(first, 9), later(first, 3), later((), 11)))
    assert together(first, later(first, 4)) == ((0, 4),) and moment(((START, 3), 0), [2]) == 3
    assert steps.send(1, 1, 10, third) == third == (2,)
    flows = steps.flows(3)
    assert flows.start.tolist() == [7, 0, 11] and flows.gaps(2) == [0, 9] and flows.gaps(1) == [5]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: DataParallel(model="gpt9"),
         "model must be one of bert-tiny, bert-large, gpt2-xl, gpt3-xl, gpt3, llama-7b, llama-65b, not 'gpt9'"),
        (lambda: DataParallel(model="bert-tiny", layers=3), "layers must be from 1 to 2, not 3"),
        (lambda: DataParallel(model="bert-tiny", tflops=0), "tflops must be at least 0.001 and below 10^9, not 0"),
        (lambda: DataParallel(model="bert-tiny", bucket=3),
         "bucket must be at least 79 bytes, for 10,000 buckets, not 3"),
        (lambda: Pipeline(model="bert-tiny", stages=1), "stages must be at least 2, not 1"),
        (lambda: Pipeline(model="bert-tiny").draw(nodes=4, link=1, seed=0),
         "layers must be at least as many as stages, 4, not 2"),
        (lambda: Pipeline(model="bert-tiny", stages=2).draw(nodes=5, link=1, seed=0),
         "nodes must be a multiple of stages, 2, not 5"),
        (lambda: Exchange(bytes=100, window=0), "window must be at least 1 phase, not 0"),
        (lambda: ParameterServer(bytes=100, servers=4).draw(nodes=4, link=1, seed=0),
         "servers must be below the number of nodes, 4, not 4"),
        (lambda: MapReduce(mappers=9, reducers=2).draw(nodes=4, link=1, seed=0),
         "mappers must be at most 4, the number of nodes, not 9"),
        (lambda: ChainReplication(replicas=4).draw(nodes=4, link=1, seed=0),
         "replicas must be below the number of nodes, 4, not 4"),
        (lambda: AllReduce(bytes=100, order="random"), "order must be one of index, rotation, mirrored, not 'random'"),
        (lambda: AllReduce(bytes=100).draw(nodes=1, link=1, seed=0), "nodes must be at least 2, not 1"),
        (lambda: AllReduce(bytes=10**6, repeat=10_000).draw(nodes=512, link=1, seed=0),
         "nodes and repeat must be few enough for 10,000,000 flows, not 5232640000"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_gets_a_sentence(make, sentence):
    with pytest.raises(BadInput) as said:
        make()
    assert str(said.value) == sentence


def test_the_rest_of_a_buffer_that_does_not_divide_is_said():
    def notes(nodes=4, **given):
        return AllReduce(bytes=1001, **given).draw(nodes=nodes, link=1, seed=0).notes

    assert notes() == ("1,001 bytes do not divide by 4 nodes: the first shares have a byte more",)
    assert notes(algorithm="tree") == ("1,001 bytes do not divide by 8: the first chunks have a byte more",)
    assert notes(algorithm="halving-doubling") == (
        "1,001 bytes do not divide by 4 nodes: every exchange is rounded up to whole bytes",
    )
    assert notes(nodes=7) == ()
