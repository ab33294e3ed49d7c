import io

import pytest
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
throughput per destination  66.67 Gb/s mean, 66.67 to 66.67; 47.5% of the link
cells on the links          47.5% useful, 47.5% forwarded, 5.0% dummy
queues                      7 cells at most, 9 in all queues of a node
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
