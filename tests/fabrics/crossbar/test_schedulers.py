"""The schedulers: kernels against plain definitions, and what holds of every slot's matching while a switch runs."""

from collections import Counter, defaultdict, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import draw, slots, twin_slots
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from weft import random
from weft.fabrics.crossbar import Crossbar, bits, schedulers
from weft.fabrics.crossbar.bits import NOBODY, full, words
from weft.fabrics.crossbar.fabric import SCHEDULERS
from weft.schedule.matching import CHOICES, Queue, at_or_after, scheduler
from weft.workload.traffic import Bernoulli, Diagonal, HotOutput, Multicast, OnOff

SIZES = (3, 64, 70)  # ports: one word, a full one, and more than one
some = settings(max_examples=10, deadline=None)
requests = st.integers(0, 2**32).map(np.random.default_rng)  # random tables of requests, several slots of them


def table(rng, n):
    """(n, n) lengths of queues, [i, j], most of them short and many empty."""
    return rng.integers(0, 6, (n, n)) * (rng.random((n, n)) < rng.choice([0.02, 0.3, 1.0]))


def wanted(lengths):
    """(n w,) uint64: by output, the set of inputs that have a cell for it."""
    n = len(lengths)
    out = np.zeros(n * words(n), np.uint64)
    for i, j in zip(*np.nonzero(lengths), strict=True):
        out[j * words(n) + i // 64] |= np.uint64(1 << i % 64)
    return out


def waiting(lengths, ages):
    return [
        {j: Queue(int(lengths[i, j]), int(ages[i, j])) for j in np.flatnonzero(lengths[i]).tolist()}
        for i in range(len(lengths))
    ]


class Bench:
    """The arrays that a scheduler's kernel reads and writes, kept from slot to slot."""

    def __init__(self, n, iterations, seed=7):
        w = words(n)
        self.n, self.iterations, self.everyone, self.key = n, iterations, full(n), np.uint64(random.key(seed, CHOICES))
        self.idle, self.given = np.zeros(w, np.uint64), np.zeros(n * w, np.uint64)
        self.grant, self.accept, self.choice, self.pairs = (np.zeros(n, np.uint64) for _ in range(4))
        self.owner, self.mate = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
        self.labels, self.done = np.zeros((4, n + 1), np.int64), np.zeros(n + 1, np.bool_)
        self.pointer = np.zeros(1, np.int64)

    def matching(self):
        return [(i, int(j)) for i, j in enumerate(self.mate) if j != NOBODY]

    def of_pairs(self, number):
        return [(int(pair) >> 32, int(pair) & 0xFFFFFFFF) for pair in self.pairs[:number]]

    def islip(self, want, slot, lengths, ages, always=False):
        return schedulers.slip(
            self.iterations, always, want, self.everyone, self.idle, self.given, self.grant, self.accept, self.owner,
            self.mate,
        )  # fmt: skip

    def rrm(self, *args):
        return self.islip(*args, always=True)

    def pim(self, want, slot, lengths, ages):
        return schedulers.pim(
            self.iterations, slot, self.key, want, self.everyone, self.idle, self.given, self.owner, self.mate
        )

    def drrm(self, want, slot, lengths, ages):
        return schedulers.drrm(
            self.iterations, want, self.everyone, self.given, self.grant, self.accept, self.owner, self.mate
        )

    def wavefront(self, want, slot, lengths, ages):
        return schedulers.wavefront(slot, want, self.everyone, self.owner, self.mate)

    def lqf(self, want, slot, lengths, ages):
        return self.heaviest(want, slot, lengths)

    def ocf(self, want, slot, lengths, ages):
        return self.heaviest(want, slot, (ages + 1) * (lengths > 0))

    def heaviest(self, want, slot, weight):
        return schedulers.heaviest(
            self.iterations, slot, want, self.everyone, self.idle, self.given, weight.ravel().astype(np.int64),
            self.owner, self.mate,
        )  # fmt: skip


# kernels against plain definitions


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ["islip", "rrm", "pim", "drrm", "wavefront", "lqf", "ocf"])
@given(rng=requests, iterations=st.integers(1, 4))
@some
def test_a_kernel_makes_the_matchings_of_the_plain_algorithm_slot_after_slot(name, n, rng, iterations):
    bench, plain = Bench(n, iterations), scheduler(name, n, iterations, seed=7)
    for slot in range(4):
        lengths, ages = table(rng, n), rng.integers(0, 50, (n, n))
        used = getattr(bench, name)(wanted(lengths), slot, lengths, ages)
        pairs = plain.match(waiting(lengths, ages), slot)
        assert bench.matching() == pairs
        assert (used if pairs else 0) == plain.used


@pytest.mark.parametrize("n", [2, 5, 64])
@given(rng=requests)
@some
def test_the_short_islip_makes_the_matchings_of_the_plain_one(n, rng):
    bench, plain = Bench(n, 1), scheduler("islip", n)
    for slot in range(6):
        lengths = table(rng, n)
        number = schedulers.islip_short(
            wanted(lengths), bench.given, bench.grant, bench.accept, bench.choice, bench.pairs
        )
        assert bench.of_pairs(number) == plain.match(waiting(lengths, lengths), slot)
        assert (bench.grant.tolist(), bench.accept.tolist()) == (plain.grants, plain.accepts)


@pytest.mark.parametrize("n", SIZES)
@given(rng=requests)
@some
def test_eslip_serves_every_output_from_the_common_pointer(n, rng):
    bench, plain = Bench(n, 1), scheduler("eslip", n)
    for slot in range(4):
        lengths = table(rng, n)
        number = schedulers.eslip(wanted(lengths), bench.everyone, bench.pointer, bench.pairs)
        assert bench.of_pairs(number) == plain.match(waiting(lengths, lengths), slot)
        assert bench.pointer[0] == plain.pointer


@given(rng=requests, n=st.integers(2, 12))
@settings(max_examples=100, deadline=None)
def test_the_maximum_matching_weighs_as_much_as_the_best_assignment(rng, n):
    bench, weight = Bench(n, 1), rng.integers(0, 1 << 40, (n, n)) * (rng.random((n, n)) < 0.6)
    schedulers.maximum(weight.ravel(), bench.labels, bench.done, bench.owner, bench.mate)
    pairs = bench.matching()
    assert len({j for _, j in pairs}) == len(pairs) and all(weight[i, j] > 0 for i, j in pairs)
    assert sum(weight[i, j] for i, j in pairs) == weight[linear_sum_assignment(weight, maximize=True)].sum()


@pytest.mark.parametrize("name", ["lqf", "ocf"])
@given(rng=requests, n=st.integers(2, 9))
@some
def test_the_heaviest_request_of_all_is_granted_and_accepted(name, rng, n):
    weight = rng.permutation(n * n).reshape(n, n) * (rng.random((n, n)) < 0.5)  # all unlike
    if not weight.any():
        return
    bench = Bench(n, 1)
    getattr(bench, name)(wanted(weight), 3, weight, weight)
    i, j = np.unravel_index(int(weight.argmax()), weight.shape)
    assert bench.mate[i] == j


def test_pim_grants_and_accepts_each_of_several_alike():
    n, rounds = 4, 4000
    bench, lengths, who = Bench(n, 1), np.ones((n, n), int), Counter()
    for slot in range(rounds):
        bench.pim(wanted(lengths), slot, lengths, lengths)
        who.update(bench.matching())
    share = sum(who.values()) / rounds / n**2  # of the 16 pairs, each as likely
    assert share * n == pytest.approx(1 - (1 - 1 / n) ** n, abs=0.02)
    assert all(count / rounds == pytest.approx(share, abs=0.025) for count in who.values()) and len(who) == n**2


@given(st.integers(1, 130), st.data())
@some
def test_sets_of_ports_find_their_members_as_lists_do(n, data):
    ports = st.lists(st.integers(0, n - 1), unique=True)
    members, among, start = data.draw(ports), data.draw(ports), data.draw(st.integers(0, n - 1))
    row = np.zeros(words(n) * 2, np.uint64)  # the second of two sets
    filter_ = np.zeros(words(n), np.uint64)
    for port in members:
        row[words(n) + port // 64] |= np.uint64(1 << port % 64)
    for port in among:
        filter_[port // 64] |= np.uint64(1 << port % 64)
    both = sorted(set(members) & set(among))
    assert bits.first(row, 1, filter_, start) == (at_or_after(start, both) if both else NOBODY)
    assert bits.size(row, 1, filter_) == len(both)
    assert [bits.nth(row, 1, filter_, k) for k in range(len(both))] == both
    assert full(n).tolist() == [sum(1 << p % 64 for p in range(n) if p // 64 == w) for w in range(words(n))]


# what holds of every slot of a running switch


class Account:
    """What waits where, counted from arrivals and departures alone: queues without end, nothing lost."""

    def __init__(self, n):
        self.queues = defaultdict(deque)  # (i, j) -> slots of arrival
        self.n = n

    def arrive(self, slot, came):
        for i, outputs in came:
            for j in outputs:
                self.queues[i, j].append(slot)

    @property
    def lengths(self):
        out = np.zeros((self.n, self.n), int)
        for pair, queue in self.queues.items():
            out[pair] = len(queue)
        return out

    def leave(self, move):
        """The cell that leaves is the one of its queue that has waited longest."""
        assert self.queues[move.i, move.j] and self.queues[move.i, move.j].popleft() == move.born


TRAFFIC = {
    "uniform": Bernoulli(load=0.9, slots=150),
    "diagonal": Diagonal(load=1, slots=150),
    "hot": HotOutput(load=0.9, hot=0.4, slots=150),
    "bursts": OnOff(load=0.9, burst=6, slots=150),
}


def run_of(source, fabric, drawn):
    """(slot, cells that left), by the kernel or by the reference."""
    if source == "kernel":
        for slot, _, moves in slots(fabric, drawn):
            yield slot, moves
    else:
        moved = twin_slots(fabric, drawn)
        for slot in range(drawn.slots):
            yield slot, moved.get(slot, [])


@pytest.mark.parametrize("source", ["kernel", "twin"])
@pytest.mark.parametrize("traffic", TRAFFIC.values(), ids=TRAFFIC)
@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_slot_is_a_matching_of_cells_that_were_there(name, traffic, source):
    """And with as many iterations as ports nobody could be added; a maximum matching is as large as there is one."""
    n = 5
    fabric = Crossbar(ports=n, scheduler=name, iterations=n, depth=10**4)
    drawn, account, sizes = draw(fabric, traffic), Account(n), Counter()
    came = list(drawn.arrivals())
    for slot, moves in run_of(source, fabric, drawn):
        account.arrive(slot, came[slot])
        lengths = account.lengths
        inputs, outputs = {move.i for move in moves}, {move.j for move in moves}
        assert len(inputs) == len(outputs) == len(moves)
        idle = lengths[np.ix_([i for i in range(n) if i not in inputs], [j for j in range(n) if j not in outputs])]
        assert not idle.any(), f"slot {slot}: two that could have been matched were not"
        if name == "msm":
            assert len(moves) == (maximum_bipartite_matching(csr_matrix(lengths > 0), perm_type="column") >= 0).sum()
        if name == "mwm":
            best = lengths[linear_sum_assignment(lengths, maximize=True)].sum()
            assert sum(lengths[move.i, move.j] for move in moves) == best
        for move in moves:
            account.leave(move)
        sizes[len(moves)] += 1
    assert len(sizes) > 1 and max(sizes) == n


@pytest.mark.parametrize("source", ["kernel", "twin"])
@pytest.mark.parametrize("buffers", ["fifo", "shared", "cioq", "cicq", "hierarchical", "gcq", "oq"])
def test_no_output_sends_two_cells_in_a_slot_and_no_cell_overtakes_another_of_its_pair(buffers, source):
    n = 4
    fabric = Crossbar(ports=n, buffers=buffers, group=2, depth=10**4, output=10**4, inner=10**4, crosspoint=3)
    for traffic in TRAFFIC.values():
        drawn, account, busy = draw(fabric, traffic), Account(n), 0
        came = list(drawn.arrivals())
        for slot, moves in run_of(source, fabric, drawn):
            account.arrive(slot, came[slot])
            assert len({move.j for move in moves}) == len(moves)
            if buffers in ("fifo", "shared"):  # whose inputs send one cell in a slot
                assert len({move.i for move in moves}) == len(moves)
            busy = max(busy, len(moves))
            for move in moves:
                account.leave(move)
        assert busy == n


@pytest.mark.parametrize("source", ["kernel", "twin"])
def test_an_output_queued_switch_never_leaves_an_output_idle_that_has_cells(source):
    n = 5
    fabric = Crossbar(ports=n, buffers="oq", depth=10**4)
    for traffic in TRAFFIC.values():
        drawn, account = draw(fabric, traffic), Account(n)
        came = list(drawn.arrivals())
        for slot, moves in run_of(source, fabric, drawn):
            account.arrive(slot, came[slot])
            assert {move.j for move in moves} == set(np.flatnonzero(account.lengths.sum(axis=0)).tolist())
            for move in moves:
                account.leave(move)


def test_eslip_gives_the_first_input_its_whole_fanout():
    """The input that the common pointer comes to first sends all that is left of its cell, in one slot."""
    n = 4
    fabric = Crossbar(ports=n, buffers="fifo", scheduler="eslip")
    drawn, left, pointer = draw(fabric, Multicast(load=0.9, fanout=3, slots=300)), [deque() for _ in range(n)], 0
    came = list(drawn.arrivals())
    for slot, _, moves in slots(fabric, drawn):
        for i, outputs in came[slot]:
            left[i].append([slot, set(outputs)])
        asking = [i for i in range(n) if left[i]]
        if not asking:
            assert not moves
            continue
        first = at_or_after(pointer, asking)
        assert {move.j for move in moves if move.i == first} == left[first][0][1]
        pointer = (first + 1) % n
        for move in moves:
            assert left[move.i][0][0] == move.born
            left[move.i][0][1].remove(move.j)
        for queue in left:
            if queue and not queue[0][1]:
                queue.popleft()
    assert slot == 299
