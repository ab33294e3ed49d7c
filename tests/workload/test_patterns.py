"""Patterns: who faces whom."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import random
from weft.errors import BadInput, TooLarge
from weft.units import KB, MB, Gbps, ms, us
from weft.workload import (
    ENDLESS,
    WORKLOADS,
    AllToAll,
    Hotspot,
    Incast,
    Outcast,
    Permutation,
    Poisson,
    Shorts,
    Shuffle,
)
from weft.workload.sizes import sizes

RACK = {"nodes": 16, "link": 100 * Gbps, "seed": 1}
SEEDS = st.integers(0, 2**64)


def said(call, *args, **kwargs):
    with pytest.raises(BadInput) as raised:
        call(*args, **kwargs)
    return str(raised.value)


@given(st.integers(2, 40), SEEDS, st.data())
def test_nobody_in_a_permutation_sends_or_receives_twice(nodes, seed, data):
    closed = data.draw(st.booleans())
    pairs = data.draw(st.none() | st.integers(1, nodes))
    flows = Permutation(pairs=pairs, closed=closed).draw(nodes=nodes, link=1, seed=seed)
    assert len(flows) == len(set(flows.src)) == len(set(flows.dst)) == (pairs or nodes)
    assert (flows.src != flows.dst).all()
    assert not closed or len(flows) == 1 or set(flows.src) == set(flows.dst)


def test_every_derangement_is_equally_likely():
    """Of the nine derangements of four nodes, each within five deviations of its share of 4500."""
    drawn = [tuple(Permutation().draw(nodes=4, link=1, seed=seed).dst.tolist()) for seed in range(4500)]
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 9 and (np.abs(counts - 500) < 5 * (4500 / 9 * 8 / 9) ** 0.5).all()


def test_a_permutation_is_endless_unless_told_and_then_stops_by_itself():
    endless = Permutation()
    assert (endless.draw(**RACK).size == ENDLESS).all() and endless.until == 1 * ms
    assert Permutation(duration=400 * us).until == 400 * us
    assert Permutation(bytes=5 * KB).until is None
    assert (Permutation(bytes=5 * KB).draw(**RACK).size == 5 * KB).all()
    assert repr(endless.draw(**RACK)) == "<16 flows among 16 nodes, 16 of them endless, from 0 ps to 0 ps>"


@given(st.integers(2, 30), SEEDS, st.data())
def test_an_incast_has_that_many_senders_and_an_outcast_that_many_receivers(nodes, seed, data):
    fan, node = data.draw(st.integers(1, nodes - 1)), data.draw(st.integers(0, nodes - 1))
    into = Incast(fan_in=fan, dst=node).draw(nodes=nodes, link=1, seed=seed)
    out = Outcast(fan_out=fan, src=node).draw(nodes=nodes, link=1, seed=seed)
    for many, one in ((into.src, into.dst), (out.dst, out.src)):
        assert len(set(many)) == len(many) == fan
        assert set(one) == {node} and node not in many
    assert (into.size == 130 * KB).all() and (into.start == 0).all()


def test_an_all_to_all_is_every_ordered_pair_once():
    flows = AllToAll(bytes=7).draw(**RACK)
    pairs = set(zip(flows.src.tolist(), flows.dst.tolist(), strict=True))
    assert len(flows) == len(pairs) == 16 * 15 and (flows.src != flows.dst).all()
    assert (np.bincount(flows.src[:16]) == 1).all() and (np.bincount(flows.dst[:16]) == 1).all()


def test_a_table_too_large_to_hold_is_refused():
    with pytest.raises(TooLarge) as raised:
        AllToAll().draw(nodes=16_384, link=1, seed=0)
    assert str(raised.value) == "an all-to-all must have at most 100,000,000 flows, not 268,419,072"


@given(st.integers(1, 12), st.integers(1, 12), st.none() | st.integers(1, 15), SEEDS)
@settings(max_examples=50)
def test_a_shuffle_sends_from_every_mapper_to_every_reducer(mappers, reducers, parallel, seed):
    shuffle = Shuffle(mappers=mappers, reducers=reducers, parallel=parallel, bytes=1 * MB)
    flows = shuffle.draw(nodes=24, link=100 * Gbps, seed=seed)  # enough for both to be different nodes
    pairs = set(zip(flows.src.tolist(), flows.dst.tolist(), strict=True))
    assert len(flows) == len(pairs) == mappers * reducers
    assert len(set(flows.src)) == mappers and len(set(flows.dst)) == reducers
    assert not set(flows.src) & set(flows.dst)
    for start in set(flows.start):
        wave = flows.start == start
        assert np.bincount(flows.dst[wave]).max() <= min(parallel or mappers, mappers)
        busiest = max(np.bincount(flows.src[wave]).max(), np.bincount(flows.dst[wave]).max())
        assert busiest * 80 * us <= shuffle.wave(100 * Gbps)  # 1 MB at 100 Gbps


def test_a_shuffle_leaves_out_what_a_node_would_send_itself():
    flows = Shuffle(mappers=16, reducers=16).draw(**RACK)
    assert len(flows) == 16 * 15 and flows.notes == ("16 flows from a node to itself were skipped",)


@pytest.mark.parametrize("side", ["destination", "source"])
def test_hot_nodes_have_their_share(side):
    hotspot = Hotspot(load=0.5, hot=0.2, share=0.6, side=side, sizes="fixed:1KB", flows=100_000)
    flows, hot = hotspot.draw(**RACK), hotspot.hot_nodes(16, 1)
    end, other = (flows.dst, flows.src) if side == "destination" else (flows.src, flows.dst)
    assert len(hot) == 3
    assert np.isin(end, hot).mean() == pytest.approx(0.6, abs=5 * (0.24 / 1e5) ** 0.5)
    for group in (np.isin(end, hot), ~np.isin(end, hot)):  # alike among themselves; the other end is anyone
        counts = np.bincount(end[group])
        counts = counts[counts > 0]
        assert (np.abs(counts - counts.mean()) < 5 * counts.mean() ** 0.5).all()
    assert (np.abs(np.bincount(other) - 1e5 / 16) < 5 * (1e5 / 16) ** 0.5).all()
    assert flows.notes[-1] == f"3 of 16 nodes are hot: each is the {side} of 1.6 times its link"


@given(st.integers(3, 12), st.floats(0.01, 0.99), st.floats(0, 1), SEEDS)
def test_no_hot_node_faces_itself(nodes, hot, share, seed):
    flows = Hotspot(load=0.5, hot=hot, share=share, flows=200).draw(nodes=nodes, link=Gbps, seed=seed)
    assert len(flows) == 200 and (flows.src != flows.dst).all()


def test_short_flows_run_over_a_background_among_the_others():
    shorts = Shorts(flows=100, interval=5 * us, load=0.3, sizes="fixed:10KB")
    flows = shorts.draw(**RACK)
    short = flows.id < 100
    assert short.sum() == 100
    assert (flows.start[short] == np.arange(1, 101) * 5 * us).all()
    assert set(flows.src[short]) == {15} and set(flows.dst[short]) == {0} and set(flows.size[short]) == {20 * KB}
    ground = Poisson(load=0.3, sizes="fixed:10KB", duration=101 * 5 * us).draw(**RACK | {"nodes": 14})
    assert (flows.start[~short] == ground.start).all() and (flows.src[~short] == ground.src + 1).all()
    assert not np.isin(flows.src[~short], [0, 15]).any() and not np.isin(flows.dst[~short], [0, 15]).any()
    assert flows.notes == ("flows 0 to 99 are the short ones", *ground.notes)
    assert shorts.until is None


def test_short_flows_may_run_over_endless_ones():
    shorts = Shorts(flows=100, shorts="facebook-web", background="long")
    flows = shorts.draw(**RACK)
    assert shorts.until == 100 * 10 * us + 1 * ms
    assert (np.bincount(flows.src[flows.size == ENDLESS]) == [0, *[4] * 14]).all()
    assert len(set(flows.size)) > 50
    assert flows.realised_load(100 * Gbps) is None


def test_short_flows_with_a_gap_wait_for_one_another():
    shorts = Shorts(flows=50, shorts="htsim-web", gap=1 * ms, background="long", drain=5 * ms)
    flows = shorts.draw(**RACK)
    assert shorts.until == 55 * ms
    short = np.flatnonzero(flows.id < 50)
    assert flows.waiting == 49 and len(flows) == 50 + 4 * 14
    assert [flows.predecessors(f) for f in short] == [[], *([f] for f in short[:-1])]
    assert (flows.delay[short[1:]] == 1 * ms).all() and flows.start[short[0]] == 1 * ms
    assert set(flows.size[short]) <= {250, 500, 1000, 1500, 2000, 3000, 4000, 10**4, 10**5, 10**6}


def test_the_sizes_of_htsim_are_ten_and_equally_likely():
    drawn = sizes("htsim-web").draw(random.words(random.key(1, 2), 100_000))
    found, often = np.unique(drawn, return_counts=True)
    assert found.tolist() == [250, 500, 1000, 1500, 2000, 3000, 4000, 10**4, 10**5, 10**6]
    assert (np.abs(often - 10_000) < 400).all()  # four standard deviations are 380
    assert sizes("htsim-web").mean == pytest.approx(found.mean())


def test_what_cannot_be_meant_gets_a_sentence():
    assert said(Permutation, pairs=0) == "pairs must be at least 1, not 0"
    assert said(Permutation(pairs=20).draw, **RACK) == "pairs must be at most 16, the number of nodes, not 20"
    assert said(Permutation, bytes=0) == "bytes must be a size from 1 to 70368744177664 bytes, not 0"
    assert said(Permutation, duration=-1) == "duration must be above 0 ps, not -1"
    assert said(Incast, fan_in=0) == "fan_in must be at least 1, not 0"
    assert said(Incast(fan_in=16).draw, **RACK) == "fan_in must be at most 15, all nodes but one, not 16"
    assert said(Incast(fan_in=1, dst=16).draw, **RACK) == "dst must be a node from 0 to 15, not 16"
    assert said(Outcast(fan_out=99).draw, **RACK) == "fan_out must be at most 15, all nodes but one, not 99"
    assert said(Outcast, fan_out=1, src=-1) == "src must be a node, at least 0, not -1"
    assert said(Shuffle, mappers=0, reducers=1) == "mappers must be at least 1, not 0"
    assert said(Shuffle(mappers=1, reducers=17).draw, **RACK) == (
        "reducers must be at most 16, the number of nodes, not 17"
    )
    assert said(Hotspot, load=0) == "load must be a finite number above 0, not 0"
    assert said(Hotspot, load=1, hot=1) == "hot must be above 0 and below 1, not 1"
    assert said(Hotspot, load=1, share=float("nan")) == "share must be from 0 to 1, not nan"
    assert said(Shorts, gap=-1) == (
        "gap must be 0 ps or more, and short enough for all flows to start within 53 days, not -1"
    )
    assert said(Shorts, load=-1) == "load must be a finite number above 0, not -1"
    assert said(Shorts, src=3, dst=3) == "dst must be another node than src, not 3"
    assert said(Shorts(dst=15).draw, **RACK) == "dst must be another node than src, not 15"
    assert said(Shorts().draw, **RACK | {"nodes": 3}) == "nodes must be at least 4, not 3"


def test_the_first_flows_are_pinned():
    def ends(workload):
        flows = workload.draw(**RACK)
        return flows.src[:4].tolist(), flows.dst[:4].tolist()

    assert {type(w).__name__: ends(w) for w in PINNED_WORKLOADS} == PINNED


PINNED_WORKLOADS = [
    Permutation(), Incast(fan_in=4), Outcast(fan_out=4), AllToAll(), Shuffle(mappers=4, reducers=4),
    Hotspot(load=0.5), Shorts(),
]  # fmt: skip
PINNED = {
    "Permutation": ([0, 1, 2, 3], [8, 10, 9, 14]),
    "Incast": ([2, 8, 10, 14], [0, 0, 0, 0]),
    "Outcast": ([0, 0, 0, 0], [2, 8, 10, 14]),
    "AllToAll": ([0, 1, 2, 3], [1, 2, 3, 4]),
    "Shuffle": ([9, 7, 13, 1], [2, 8, 4, 6]),
    "Hotspot": ([12, 13, 9, 12], [7, 14, 10, 1]),
    "Shorts": ([12, 12, 9, 12], [3, 13, 10, 2]),
}


def test_every_workload_is_public_and_says_what_its_parameters_are():
    import weft.workload

    for name, workload in WORKLOADS.items():
        assert getattr(weft.workload, workload.__name__) is workload and workload.__name__.lower() == name
        for field in fields(workload):
            assert field.metadata["help"] and field.kw_only
