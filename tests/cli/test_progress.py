"""What is said of a run under way: shares, rates and what is left, of real runs of every room."""

import io
import re
import sys
import time

import pytest

from rooms import CELLS, FLOWS, ONE
from weft.cli import progress, sweep
from weft.cli.progress import COMPILING, Lines, Meter, facts
from weft.units import us

one = pytest.mark.parametrize(("room", "fabric"), ONE, ids=[name for name, _ in ONE])


class Clock:
    """A clock that goes only when it is told to."""

    def __init__(self, monkeypatch, *modules):
        self.now = 100.0
        for module in modules:
            monkeypatch.setattr(module, "monotonic", lambda: self.now)


def started(fabric, workload=FLOWS[0]):
    return fabric.prepare(workload.draw(nodes=fabric.nodes, link=fabric.link, seed=1), seed=1)


@one
def test_a_share_goes_from_nothing_to_all(room, fabric):
    run, shares = started(fabric), []
    assert run.share == 0.0
    run.advance(watch=lambda run: shares.append(run.share))
    assert shares == sorted(shares) and shares[-1] == run.share == 1.0
    timed = started(fabric)
    timed.advance(until=8 * us)
    assert timed.share == pytest.approx(1.0, abs=0.02)


def test_cells_made_slot_by_slot_have_a_share_too():
    fabric = dict(ONE)["crossbar"]
    run, shares = started(fabric, CELLS), []
    run.advance(watch=lambda run: shares.append(run.share))
    assert shares == sorted(shares) and shares[-1] == 1.0 and run.total == 0
    assert facts(run, None) == "10.24 us simulated"


@one
def test_facts_are_what_the_run_tells(room, fabric):
    run = started(fabric)
    run.advance(until=6 * us)
    told = re.fullmatch(r"(\S+) us simulated, (\d+) of 60 flows, 12.3 M ([a-z-]+)/s", facts(run, 12_345_678))
    assert told and 5 < float(told[1]) <= 6 and int(told[2]) == run.finished and told[3] == run.unit
    run.compiling = True
    assert facts(run, None) == COMPILING


@one
def test_a_rate_is_of_the_work_since_the_first_look(room, fabric, monkeypatch):
    clock, meter, run = Clock(monkeypatch, progress), Meter(), started(fabric)
    run.advance(until=3 * us)
    before = run.work
    assert before > 0 and meter.rate(run) is None  # resumed: what was done before does not count
    clock.now += 0.1
    assert meter.rate(run) is None  # too early to tell
    run.advance(until=9 * us)
    clock.now += 1.9
    assert meter.rate(run) == pytest.approx((run.work - before) / 2)


@one
def test_lines_come_now_and_then_and_say_how_long_it_will_take(room, fabric, monkeypatch, capsys):
    clock, run = Clock(monkeypatch, progress), started(fabric)
    lines = Lines("a run")
    run.advance(until=4 * us)
    lines.look(run)
    assert capsys.readouterr().err == ""
    clock.now += progress.FIRST
    run.until = 8 * us
    lines.first = (lines.first[0], 0.0)
    lines.look(run)
    said = capsys.readouterr().err
    assert re.fullmatch(r"a run: (49|50)%, \S+ us simulated, \d+ of 60 flows, about 5 s left\n", said), said
    clock.now += 1
    lines.look(run)
    assert capsys.readouterr().err == ""
    clock.now += progress.NEXT
    lines.first = (lines.first[0], run.share)  # it stands still: no time can be told
    lines.look(run)
    assert "left" not in capsys.readouterr().err


def test_compiling_is_said_after_a_second_and_not_if_it_is_over_by_then(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    lines, run = Lines("a run"), started(ONE[0][1])
    run.compiling = True
    lines.look(run)
    run.compiling = False
    lines.look(run)
    time.sleep(0.1)
    assert capsys.readouterr().err == ""
    run.compiling = True
    lines.look(run)
    time.sleep(0.2)
    lines.close()
    assert capsys.readouterr().err == f"a run: {COMPILING}\n"


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
    assert sweep._facts(shares, found, COMPILING) == text


def test_a_study_says_a_line_at_once_and_then_now_and_then(monkeypatch, capsys):
    clock = Clock(monkeypatch, sweep)
    look = sweep._lines(COMPILING)
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
