import pytest

from weft.errors import BadInput
from weft.report.keys import find, label, unit

ROW = {
    "fabric.kind": "Shoal", "fabric.nodes": 8, "workload.kind": "Poisson", "workload.load": 0.5, "seed": 1,
    "fct_us.all.p99": 1.0, "fct_us.short.p99": 1.0, "fct_us.short.p99.9": 1.0, "goodput_gbps.long.mean": 2.0,
    "slowdown.all.p99": 3.0, "queue_cells.max": 4, "reorder_bytes.max": 5, "rate.node_slots_per_s": 6.0, "wall_s": 7.0,
}  # fmt: skip


@pytest.mark.parametrize(
    "short, full",
    [
        ("load", "workload.load"),
        ("fabric", "fabric.kind"),
        ("nodes", "fabric.nodes"),
        ("fct.p99", "fct_us.all.p99"),
        ("fct.short.p99.9", "fct_us.short.p99.9"),
        ("goodput", "goodput_gbps.long.mean"),
        ("slowdown.p99", "slowdown.all.p99"),
        ("node_slots_per_s", "rate.node_slots_per_s"),
        ("queue_cells.max", "queue_cells.max"),
    ],
)
def test_a_short_key_finds_its_column(short, full):
    assert find([ROW], short) == full


def test_an_ambiguous_key_names_the_choices():
    with pytest.raises(BadInput) as found:
        find([ROW], "max")
    assert str(found.value) == "'max' must name one column, not any of queue_cells.max, reorder_bytes.max"


def test_an_unknown_key_names_its_neighbours():
    with pytest.raises(BadInput) as found:
        find([ROW], "queue_cell.max")
    expected = "a column must be one that the runs have, such as queue_cells.max, "
    assert str(found.value).startswith(expected) and str(found.value).endswith(", not 'queue_cell.max'")


@pytest.mark.parametrize(
    "key, long, short",
    [
        ("fct_us.short.p99.9", "flow completion time of short flows, p99.9 (µs)", "FCT short p99.9 (µs)"),
        ("fct_us.all.mean", "flow completion time, mean (µs)", "FCT all mean (µs)"),
        ("goodput_gbps.long.mean", "goodput of long flows, mean (Gb/s)", "goodput long mean (Gb/s)"),
        ("workload.load", "load", "load"),
        ("fabric.kind", "fabric", "fabric"),
        ("queue_cells.max", "queue, max (cells)", "queue max (cells)"),
        ("rate.node_slots_per_s", "rate node slots per s", "rate node slots per s"),
        ("seed", "seed", "seed"),
        ("throughput.per_destination_gbps.mean", "per destination, mean (Gb/s)", "per destination mean (Gb/s)"),
    ],
)
def test_a_key_is_said_in_words_with_its_unit(key, long, short):
    assert label(key) == long and label(key, short=True) == short


def test_a_rate_per_second_is_not_in_seconds():
    assert unit("rate.node_slots_per_s") == "" and unit("wall_s") == "s"


@pytest.mark.parametrize(
    ("key", "said"),
    [("gbps", "rate (Gb/s)"), ("ms", "time (ms)"), ("block_kb", "block (KB)"), ("bisection_tbps", "bisection (Tb/s)"),
     ("bytes", "bytes"), ("node_slots_per_s", "node slots per s")],
)  # fmt: skip
def test_a_key_that_is_a_unit_is_said_in_words(key, said):
    assert label(key) == label(key, short=True) == said
