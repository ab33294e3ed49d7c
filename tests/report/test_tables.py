import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from weft.report.tables import number, run_table, runs_table


def printed(thing):
    console = Console(file=io.StringIO(), width=100, no_color=True)
    console.print(thing)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "–"), (0, "0"), (12, "12"), (1234567, "1,234,567"), (1234567.8, "1,234,568"), (12.3456, "12.35"),
        (0.123456, "0.1235"), (0.00012346, "0.0001235"), (1.5e-9, "1.500e-09"), (2.5e17, "2.500e+17"), (True, "True"),
        ("x", "x"), ([1, 2.5], "1, 2.500"), (-3.25, "-3.250"), (100.0, "100"),
    ],
)  # fmt: skip
def test_numbers_have_sane_digits(value, text):
    assert number(value) == text


RUN = """\
Ring, 4 nodes, Steady at load 0.5, seed 0
flows  number  mean µs  p50 µs  p99 µs  p99.9 µs  max µs  slowdown p50   p99
all         4    181.5       6     480       480     480          1.50  1.50
short       2    3.060    0.12       6         6       6          1.50  1.50
long        2      360     240     480       480     480          1.50  1.50

load                        30.25 realised, 0.5 asked for, of 100 Gb/s
goodput of long flows       66.67 Gb/s mean
throughput per destination  66.67 Gb/s mean, 66.67 to 66.67; 66.7% of the link, while the
                            destination had flows coming in
queues                      7 cells at most, 9 in all queues of a node
lost                        0 cells
monitors                    all 2 held
flows                       4 finished, 0 not
simulated                   1,000 µs
took                        2 s, 50 MB, 2 M node slots/s
fingerprint                 abababababababababababababababab"""


def test_a_run_is_told_in_a_screen(result):
    assert printed(run_table(result)) == RUN
    assert printed(run_table(result.summary())) == printed(run_table(result))


def test_a_broken_monitor_is_told(result):
    summary = result.summary()
    summary["monitors"] = {"conservation": 3, "bound": 0}
    summary["notes"] = ["flows were sorted by start"]
    text = printed(run_table(summary))
    assert "monitors                    conservation broken 3 times\n" in text
    assert text.endswith("\nnote: flows were sorted by start")


def test_a_load_that_nobody_asked_for_is_told_as_it_came(result):
    summary = result.summary()
    summary["offered"]["nominal_load"] = None
    assert "\nload                        30.25 realised, of 100 Gb/s\n" in printed(run_table(summary))


MANY = """\
fabric  load  FCT short p99 (µs)  queue max (cells)
Ring     0.2               4.800                  7
Star     0.8               14.40                  7"""


def test_many_runs_are_a_row_each(rows):
    chosen = [rows[0], rows[9]]
    assert printed(runs_table(chosen, ["fabric", "load", "fct_us.short.p99", "queue_cells.max"])) == MANY


def test_by_default_the_table_shows_what_differs_and_what_was_measured(rows):
    table = runs_table(rows)
    headers = [column.header for column in table.columns]
    assert headers[:3] == ["fabric", "load", "seed"]
    assert "FCT short p99 (µs)" in headers and "nodes" not in headers
    assert table.row_count == 12


@given(st.floats(-1e300, 1e300))
def test_any_number_is_printed_within_half_of_its_last_digit(value):
    shown = number(value)
    assert float(shown.replace(",", "")) == pytest.approx(value, rel=5.01e-4)
    if abs(value) < 1e12:
        digits = shown.replace(",", "").replace(".", "").lstrip("-0").split("e")[0]
        assert len(digits) <= max(5, len(str(int(abs(value)))))


@given(st.integers(-(10**15) + 1, 10**15 - 1))
def test_a_whole_number_is_printed_whole(value):
    assert int(number(value).replace(",", "")) == value
    assert number(float(value)) == number(value)


@given(st.integers(1, 6), st.floats(1e-3, 1e6))
def test_more_digits_are_never_further_off(digits, value):
    def off(digits):
        return abs(float(number(value, digits).replace(",", "")) - value)

    assert off(digits + 1) <= off(digits) + 1e-12 * value


@pytest.mark.parametrize(
    ("value", "text"),
    [(float("nan"), "nan"), (float("inf"), "inf"), (float("-inf"), "-inf"), (None, "–"), (True, "True"), ("a", "a"),
     ([1, 2.5, None], "1, 2.500, –"), ((), ""), (-0.0, "0"), (10**15, "1.000e+15"), (1e-5, "1.000e-05")],
)  # fmt: skip
def test_what_is_no_usual_number_is_printed_too(value, text):
    assert number(value) == text


def test_a_table_of_runs_prints_the_values_of_the_rows(rows):
    lines = printed(runs_table(rows, ["fabric", "load", "seed", "fct.p99"])).splitlines()
    assert len(lines) == 1 + len(rows)
    for line, row in zip(lines[1:], rows, strict=True):
        kind, load, seed, p99 = line.split()
        assert (kind, float(load), int(seed)) == (row["fabric.kind"], row["workload.load"], row["seed"])
        assert float(p99.replace(",", "")) == pytest.approx(row["fct_us.all.p99"], rel=5e-4)


def test_a_value_that_a_run_has_not_is_a_dash(rows):
    lines = printed(runs_table([rows[0], {**rows[1], "fct_us.all.p99": None}], ["load", "fct.p99"])).splitlines()
    assert [line.split()[1] == "–" for line in lines[1:]] == [False, True]


def test_one_run_alone_shows_what_was_measured(rows):
    heads = [column.header for column in runs_table(rows[:1]).columns]
    assert "FCT short p99 (µs)" in heads
    assert not any("fabric" in head or "load 0" in head for head in heads)  # nothing differs


def test_a_run_of_cells_without_flows_has_no_completion_times(result):
    summary = result.summary()
    summary |= {"finished": 0, "unfinished": 0}
    assert "\nflows " not in printed(run_table(summary))


def test_what_was_lost_is_told_by_cause(result):
    summary = result.summary()
    summary["lost"] = {"unit": "packets", "total": 12, "flows": 2, "causes": {"full": 11, "link_down": 1, "other": 0}}
    assert "12 packets (11 full, 1 link down); 2 flows will never finish\n" in printed(run_table(summary))
