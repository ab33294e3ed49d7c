import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import events
from weft.engine.jit import kernel
from weft.engine.memory import zeros
from weft.random import key, word

CLOCK = np.dtype([*events.CLOCK, ("mine", "i8")])  # else a fabric's longer record would count as a subtype of it
ROW = np.dtype([*events.EVENT, ("name", "i8")])
PUSH, CANCEL, PULL = 0, 1, 2


@kernel
def play(clock, rows, what, argument, log):
    """Push, cancel and pull as told; write down what comes out. A push is named by its number, `argument` is its delay,
    the name to cancel, or how far ahead to pull."""
    c = clock[0]
    row_of = np.full(what.size, -1)
    out = 0
    for k in range(what.size):
        if what[k] == PUSH:
            r = events.take(c, rows)
            rows[r].kind = 1
            rows[r].name = k
            row_of[k] = r
            events.push(c, rows, r, c.now + argument[k])
        elif what[k] == CANCEL:
            name = argument[k]
            if name < k and row_of[name] >= 0:
                events.cancel(c, rows, row_of[name])
                row_of[name] = -1
        else:
            limit = c.now + argument[k]
            r = events.pull(c, rows, limit)
            while r != events.NONE:
                log[out, 0], log[out, 1], log[out, 2] = c.now, rows[r].name, events.alone(c, rows)
                out += 1
                row_of[rows[r].name] = -1
                events.give(c, rows, r)
                r = events.pull(c, rows, limit)
            c.now = limit
    return out


def by_heap(steps, ties, seed):
    """The same with `heapq`, a list and a set."""
    agenda, gone, log, now, made = [], set(), [], 0, 0
    for k, (what, argument) in enumerate(steps):
        if what == PUSH:
            order = {"fifo": made, "lifo": -made, "random": word(key(seed, 0x7469), made) >> 1}[ties]
            heapq.heappush(agenda, (now + argument, order, k))
            made += 1
        elif what == CANCEL:
            gone.add(argument)
        else:
            while agenda and agenda[0][0] <= now + argument:
                time, _, name = heapq.heappop(agenda)
                if name not in gone:
                    log.append((time, name))
                    gone.add(name)
            now += argument
    return log


delays = st.one_of(st.integers(0, 3), st.integers(0, 10_000), st.integers(0, 10**9), st.just(10**12))
steps = st.lists(
    st.one_of(
        st.tuples(st.just(PUSH), delays),
        st.tuples(st.just(CANCEL), st.integers(0, 60)),
        st.tuples(st.just(PULL), delays),
    ),
    max_size=80,
)


def run(moves, ties="fifo", shift=10, ring=64, seed=0, size=128):
    clock, rows = np.zeros(1, CLOCK), np.zeros(size, ROW)
    arrays = zeros(events.tables(size, ring))
    events.schedule(clock, arrays, shift=shift, ties=ties, seed=seed)
    what, argument = np.array(moves, np.int64).reshape(-1, 2).T
    log = np.zeros((max(len(moves), 1), 3), np.int64)
    n = play(clock, rows, what.copy(), argument.copy(), log)
    assert arrays
    return [tuple(line) for line in log[:n, :2].tolist()], clock, log[:n, 2]


@settings(max_examples=300, deadline=None)
@given(steps, st.sampled_from(["fifo", "lifo", "random"]), st.integers(4, 20), st.sampled_from([64, 128, 1024]))
def test_events_leave_in_the_order_of_time_then_number(moves, ties, shift, ring):
    # a name may be cancelled only before it was pulled, and only if it was a push
    moves = [(w, a) for w, a in moves]
    clean = [(w, a) if w != CANCEL or (a < k and moves[a][0] == PUSH) else (PULL, 0) for k, (w, a) in enumerate(moves)]
    assert run(clean, ties, shift, ring)[0] == by_heap(clean, ties, 0)


@settings(max_examples=100, deadline=None)
@given(st.lists(delays, min_size=1, max_size=80), st.integers(4, 20))
def test_an_event_is_alone_when_no_other_is_due_at_its_time(times, shift):
    log, _, alone = run([*((PUSH, time) for time in times), (PULL, 10**13)], shift=shift)
    due = [time for time, _ in log]
    assert len(due) == len(times)
    assert alone.tolist() == [time not in due[k + 1 :] for k, time in enumerate(due)]


def test_the_width_of_a_bucket_changes_nothing():
    moves = [(PUSH, word(5, k) % 100_000) for k in range(100)] + [(PULL, 10**6)]
    first = run(moves, shift=4)[0]
    assert len(first) == 100
    assert all(run(moves, shift=shift)[0] == first for shift in (8, 12, 20, 30))


def test_many_events_of_one_moment_keep_their_order():
    moves = [(PUSH, 77) for _ in range(120)] + [(PULL, 100)]
    assert [name for _, name in run(moves)[0]] == list(range(120))


@pytest.mark.parametrize("ties", ["fifo", "lifo", "random"])
@pytest.mark.parametrize("moments", [1, 3, 50, 1000])
def test_hundreds_of_events_of_a_bucket_leave_in_order(ties, moments):
    moves = [(PUSH, 5000 + word(9, k) % moments) for k in range(700)]
    moves += [(CANCEL, k) for k in range(0, 700, 7)] + [(PULL, 5400), (PUSH, 5), (PULL, 9000)]
    assert run(moves, ties, shift=10, size=1024)[0] == by_heap(moves, ties, 0)


def test_a_cancelled_row_returns_to_the_table():
    moves = [(PUSH, 5), (CANCEL, 0), (PULL, 10)]
    log, clock, _ = run(moves)
    assert log == []
    assert clock["alive"][0] == 0 and clock["released"][0] == 0


def test_a_timer_cancelled_in_the_heap_leaves_no_row_behind():
    far = 10**12  # beyond the ring
    moves = [(PUSH, far + word(7, k) % 1000) for k in range(60)]
    moves += [(CANCEL, k) for k in range(60) if k % 3]
    log, clock, _ = run([*moves, (PULL, 0)])
    assert log == []
    assert clock["alive"][0] == clock["heaped"][0] == 20
    assert len(run([*moves, (PULL, 2 * far)])[0]) == 20


def test_rows_are_used_again():
    moves = [step for _ in range(30) for step in ((PUSH, 3), (PUSH, 9), (PULL, 20))]
    _, clock, _ = run(moves, size=4)
    assert clock["used"][0] == 2


@pytest.mark.parametrize(("gap", "shift"), [(1, 4), (1000, 9), (10**9, 29), (10**15, 30)])
def test_a_bucket_is_no_wider_than_a_gap(gap, shift):
    assert events.shift_for(gap) == shift
