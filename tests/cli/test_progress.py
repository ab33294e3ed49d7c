"""What is said of a run under way: shares, rates and what is left, from what the run tells of itself."""

import io
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cli import progress, sweep
from weft.cli.progress import COMPILING, Meter, facts, share


class Clock:
    """A clock that goes only when it is told to."""

    def __init__(self, monkeypatch, *modules):
        self.now = 100.0
        for module in modules:
            monkeypatch.setattr(module, "monotonic", lambda: self.now)


def running(**told):
    return SimpleNamespace(**told)


@given(st.integers(0, 10**12), st.integers(1, 10**12), st.integers(0, 1000), st.integers(0, 1000))
def test_a_share_is_from_nothing_to_all(now, until, finished, more):
    flows = finished + more
    assert share(running(now=now, flows=flows, finished=finished), until) == min(now / until, 1.0)
    by_flows = share(running(now=now, flows=flows, finished=finished), None)
    assert by_flows == (finished / flows if flows else None)


def test_a_run_that_tells_nothing_has_no_share_and_no_facts():
    assert share(running(), None) is None
    assert share(running(now=5), None) is None
    assert facts(running(), None) == ""


def test_facts_are_what_the_run_tells():
    told = running(now=2_500_000, flows=2000, finished=1500, unit="node-slots")
    assert facts(told, 12_345_678) == "2.5 us simulated, 1,500 of 2,000 flows, 12.3 M node-slots/s"
    assert facts(running(now=0), None) == "0 ps simulated"


def test_a_rate_is_of_the_work_since_the_first_look(monkeypatch):
    clock, meter = Clock(monkeypatch, progress), Meter()
    assert meter.rate(running(work=1_000_000)) is None  # resumed: what was done before does not count
    clock.now += 0.1
    assert meter.rate(running(work=1_500_000)) is None  # too early to tell
    clock.now += 1.9
    assert meter.rate(running(work=5_000_000)) == pytest.approx(2_000_000)
    assert meter.rate(running()) is None


def test_lines_come_now_and_then_and_say_how_long_it_will_take(monkeypatch, capsys):
    clock = Clock(monkeypatch, progress)
    look = progress._lines("shoal poisson", None)
    look(running(now=0, flows=100, finished=0))
    assert capsys.readouterr().err == ""
    clock.now += progress.FIRST
    look(running(now=10**6, flows=100, finished=25))
    assert capsys.readouterr().err == (
        "shoal poisson: 25%, 1 us simulated, 25 of 100 flows, about 15 s left\n"
    )  # fmt: skip
    clock.now += 1
    look(running(now=10**6, flows=100, finished=26))
    assert capsys.readouterr().err == ""
    clock.now += progress.NEXT
    look(running(now=2 * 10**6, flows=100, finished=100))
    assert capsys.readouterr().err == "shoal poisson: 100%, 2 us simulated, 100 of 100 flows, about 0 s left\n"


def test_a_run_that_stands_still_says_no_time(monkeypatch, capsys):
    clock = Clock(monkeypatch, progress)
    look = progress._lines("packet incast", None)
    for _ in range(2):
        clock.now += progress.FIRST
        look(running(now=10**6, flows=100, finished=25))
    assert capsys.readouterr().err == "packet incast: 25%, 1 us simulated, 25 of 100 flows\n"


@pytest.mark.parametrize(
    ("shares", "found", "text"),
    [
        ([0, 0, 0], 0, f"0 of 3 runs, {COMPILING}"),
        ([0, 1e-6, 0], 0, "0 of 3 runs, 1 under way"),
        ([1, 0.5, 0.2], 0, "1 of 3 runs, 2 under way"),
        ([1, 1, 0], 1, "2 of 3 runs, 1 found on disk"),
        ([1, 0, 0], 1, f"1 of 3 runs, 1 found on disk, {COMPILING}"),
        ([1, 1, 1], 3, "3 of 3 runs, 3 found on disk"),
        ([], 0, "0 of 0 runs"),
    ],
)
def test_a_study_under_way_says_what_is_done(shares, found, text):
    assert sweep._facts(shares, found) == text


def test_a_study_says_a_line_at_once_and_then_now_and_then(monkeypatch, capsys):
    clock = Clock(monkeypatch, sweep)
    look = sweep._lines()
    look([0.5, 0], 0)
    look([0.6, 0], 0)
    clock.now += sweep.NEXT
    look([1, 0.5], 0)
    assert capsys.readouterr().err == "0 of 2 runs, 1 under way\n1 of 2 runs, 1 under way\n"


@pytest.mark.parametrize("watching", [progress.watching, sweep.watching])
@pytest.mark.parametrize(
    ("terminal", "quiet", "json", "shown"),
    [(True, False, False, True), (True, False, True, True), (True, True, False, False), (False, False, False, True),
     (False, False, True, False), (False, True, True, False)],
)  # fmt: skip
def test_progress_is_shown_where_somebody_looks(monkeypatch, watching, terminal, quiet, json, shown):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)
    with watching("a run", quiet=quiet, json=json) as look:
        assert (look is not None) == shown
