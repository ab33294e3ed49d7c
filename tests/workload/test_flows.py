"""The table of flows: what it keeps, what it leaves out, and what it says about it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.units import Gbps
from weft.workload import ENDLESS, Flows


def flows(**columns):
    given = {"nodes": 4, "src": [0, 1], "dst": [1, 2], "size": [10, 20], "start": [0, 5]}
    return Flows.of(**(given | columns))


def message(**columns):
    with pytest.raises(BadInput) as raised:
        flows(**columns)
    return str(raised.value)


def test_columns_have_the_types_that_kernels_expect():
    table = flows()
    assert [getattr(table, n).dtype for n in ("src", "dst", "size", "start", "klass", "id")] == [
        np.int32, np.int32, np.int64, np.int64, np.int8, np.int64,
    ]  # fmt: skip
    assert table.notes == ()


def test_flows_are_sorted_by_start_and_keep_their_order_and_number_when_equal():
    table = flows(src=[0, 1, 2, 3], dst=[1, 2, 3, 0], size=1, start=[7, 5, 7, 5])
    assert table.id.tolist() == [1, 3, 0, 2]
    assert table.src.tolist() == [1, 3, 0, 2]
    assert table.notes == ("flows were sorted by start",)


def test_many_flows_that_start_together_keep_their_order():
    """Enough of them that an unstable sort would show."""
    table = Flows.of(nodes=2, src=np.zeros(5000), dst=np.ones(5000), size=1, start=np.arange(5000) * 7919 % 4)
    assert all((np.diff(table.id[table.start == start]) > 0).all() for start in range(4))


def test_what_is_no_flow_is_left_out_and_counted():
    table = flows(src=[0, 1, 2, 3], dst=[0, 1, 3, 0], size=[1, 0, 0, 5], start=0)
    assert table.id.tolist() == [3]
    assert table.notes == ("2 flows from a node to itself were skipped", "1 flow of 0 bytes was skipped")


def test_a_bad_flow_is_named():
    assert message(start=[0, -5], id=[7, 8]) == "start of flow 8 must be at least 0 ps, not -5"
    assert message(src=[0, 4]) == "src of flow 1 must be a node from 0 to 3, not 4"
    assert message(dst=[-1, 2]) == "dst of flow 0 must be a node from 0 to 3, not -1"
    assert message(size=[1, -2]) == "size of flow 1 must be at least 0 bytes, not -2"
    assert message(size=[1, 2**46 + 1]) == (
        "size of flow 1 must be at most 70368744177664 bytes (70.3687 TB), not 70368744177665"
    )
    assert message(klass=[0, 200]) == "class of flow 1 must be from 0 to 127, not 200"


def test_columns_that_are_no_columns_are_refused():
    assert message(nodes=1) == "nodes must be at least 2, not 1"
    assert message(dst=[1]) == "dst must be as long as src, 2 flows, not 1"
    assert message(size=[1.5, 2]) == "size must be whole numbers, not 1.5"
    assert message(src=["a", "b"]) == "src must be whole numbers of at most 63 bits, not <U1"
    assert message(start=[0, 2**70]) == "start must be whole numbers of at most 63 bits, not object"
    assert message(start=np.array([0, 2**63], np.uint64)) == "start must fit 63 bits, not 9223372036854775808"


def test_sums_do_not_overflow():
    table = Flows.of(nodes=2, src=np.zeros(200_000), dst=np.ones(200_000), size=ENDLESS, start=0)
    assert table.bytes == 200_000 * 2**46


def test_the_offered_rate_is_mean_size_over_mean_gap():
    table = Flows.of(nodes=4, src=[0, 1, 2], dst=[1, 2, 3], size=[1000, 2000, 3000], start=[500, 1500, 2500])
    assert table.offered_rate() == 2000 * 8 / 4 * 10**9  # 2 KB every nanosecond, shared by four
    assert table.realised_load(4000 * Gbps) == 1
    assert flows(start=0).offered_rate() is None
    assert flows(start=0).realised_load(Gbps) is None


def test_tables_are_equal_when_their_columns_are():
    assert flows() == flows(notes=("whatever",))
    assert flows() != flows(klass=1)
    assert flows() != flows(nodes=5)
    assert flows() != "flows"


def test_the_head_of_a_table_is_its_first_flows():
    assert flows().head(1) == flows(src=[0], dst=[1], size=[10], start=[0])
    assert flows().head(9) == flows()


def test_a_table_prints_as_one_line():
    assert repr(flows()) == "<2 flows among 4 nodes, 30 B, from 0 ps to 5 ps>"
    assert repr(flows().head(0)) == "<no flows among 4 nodes>"


tables = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 10**6), st.integers(0, 50), st.integers(0, 3)),
    max_size=40,
)


@given(tables)
def test_every_flow_that_is_one_is_kept_and_nothing_else(rows):
    src, dst, size, start, klass = zip(*rows, strict=True) if rows else ((),) * 5
    flows = Flows.of(nodes=8, src=src, dst=dst, size=size, start=start, klass=klass)
    kept = [(k, row) for k, row in enumerate(rows) if row[0] != row[1] and row[2] > 0]
    kept.sort(key=lambda flow: (flow[1][3], flow[0]))
    found = zip(flows.id, flows.src, flows.dst, flows.size, flows.start, flows.klass, strict=True)
    assert [tuple(map(int, flow)) for flow in found] == [(k, *row) for k, row in kept]
    assert flows.bytes == sum(row[2] for _, row in kept)


@given(tables, st.integers(0, 50))
def test_the_head_of_a_table_is_a_table_of_the_first(rows, count):
    src, dst, size, start, klass = zip(*rows, strict=True) if rows else ((),) * 5
    flows = Flows.of(nodes=8, src=src, dst=dst, size=size, start=start, klass=klass)
    head = flows.head(count)
    assert len(head) == min(count, len(flows))
    assert head == flows if count >= len(flows) else head.start.tolist() == flows.start[:count].tolist()


@pytest.mark.parametrize("count", [0, 1])
def test_none_and_one_flow_offer_no_rate(count):
    flows = Flows.of(nodes=2, src=[0] * count, dst=[1] * count, size=[100] * count, start=[5] * count)
    assert (flows.mean_gap, flows.offered_rate(), flows.realised_load(10**9)) == (None, None, None)
    assert repr(flows) == ("<1 flow among 2 nodes, 100 B, from 5 ps to 5 ps>" if count else "<no flows among 2 nodes>")


@pytest.mark.parametrize("form", ["csv", "cm", "parquet"])
def test_a_table_of_one_flow_survives_every_format(tmp_path, form):
    from weft.workload import Trace

    flows = Flows.of(nodes=4, src=[3], dst=[1], size=[1], start=[123_456_789_012_345_678])
    getattr(flows, f"to_{form}")(tmp_path / "t")
    again = Trace(path=str(tmp_path / "t")).draw(nodes=4, link=10**9, seed=0)
    assert (again.src[0], again.dst[0], again.size[0], again.start[0]) == (3, 1, 1, 123_456_789_012_345_678)
