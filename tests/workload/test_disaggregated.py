"""Traffic of a disaggregated rack: who talks to whom, in what sizes, and how much of it among the busy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.units import Gbps
from weft.workload import Disaggregated


def draw(nodes=96, seed=1, **options):
    return Disaggregated(**options).draw(nodes=nodes, link=100 * Gbps, seed=seed)


@settings(max_examples=30, deadline=None)
@given(st.integers(6, 80), st.integers(0, 2**32), st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1))
def test_every_flow_has_a_processor_at_one_end_and_only_there(nodes, seed, storage, share, hot):
    workload = Disaggregated(flows=200, storage=storage, share=share, hot=hot)
    flows = workload.draw(nodes=nodes, link=100 * Gbps, seed=seed)
    processors = np.concatenate(workload.roles(nodes, seed)["processor"])
    assert len(flows) == 200
    assert (np.isin(flows.src, processors) ^ np.isin(flows.dst, processors)).all()
    assert (flows.size % 4096 == 0).all() and (np.diff(flows.start) >= 0).all()


def test_roles_are_dealt_evenly_and_a_third_of_each_is_busy():
    roles = Disaggregated().roles(512, 3)
    assert sorted(np.concatenate([np.concatenate(role) for role in roles.values()])) == list(range(512))
    assert [len(np.concatenate(role)) for role in roles.values()] == [171, 171, 170]
    assert [len(busy) for busy, _ in roles.values()] == [57, 57, 57]


def test_more_than_84_percent_of_the_flows_are_among_a_third_of_the_nodes():
    workload = Disaggregated(flows=20_000)
    flows = workload.draw(nodes=512, link=100 * Gbps, seed=1)
    busy = np.concatenate([own for own, _ in workload.roles(512, 1).values()])
    among = np.isin(flows.src, busy) & np.isin(flows.dst, busy)
    assert len(busy) / 512 == pytest.approx(1 / 3, abs=0.01)
    assert among.mean() == pytest.approx(0.84, abs=0.01)
    assert flows.notes[-1] == "84.1% of the flows are among 171 of 512 nodes; sizes and roles are assumed"


def test_storage_moves_blocks_and_memory_pages():
    memory, storage = draw(storage=0, flows=5000), draw(storage=1, flows=5000)
    assert memory.size.mean() == pytest.approx(4096 / (1 - np.exp(-4096 / 2000)), rel=0.03)
    assert storage.size.mean() == pytest.approx(256_000, rel=0.05)


def test_flows_arrive_as_often_as_asked():
    flows = draw(flows=20_000, gap=12_650)
    assert flows.start[-1] / 20_000 == pytest.approx(12_650, rel=0.03)


def test_flows_go_both_ways():
    workload = Disaggregated(flows=4000)
    processors = np.concatenate(workload.roles(96, 1)["processor"])
    assert np.isin(draw(flows=4000).src, processors).mean() == pytest.approx(0.5, abs=0.03)


def test_another_seed_is_another_draw_and_the_same_seed_the_same():
    assert (draw(seed=1).dst != draw(seed=2).dst).any()
    np.testing.assert_array_equal(draw(seed=1).start, draw(seed=1).start)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gap": 0}, "gap must be at least 1 ps, not 0"),
        ({"flows": 0}, "flows must be at least 1, not 0"),
        ({"storage": 1.5}, "storage must be from 0 to 1, not 1.5"),
        ({"hot": 0}, "hot must be above 0, up to 1, not 0"),
        ({"page": 0}, "page must be from 1 B to 1.024 MB, not 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, sentence):
    with pytest.raises(BadInput) as error:
        Disaggregated(**options)
    assert str(error.value) == sentence


def test_a_rack_needs_two_nodes_of_each_role():
    with pytest.raises(BadInput, match=r"^nodes must be at least 6, not 5$"):
        draw(nodes=5)
