"""Clocks: their errors against a rack that is stepped through picosecond by picosecond."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.failures import Outage
from weft.schedule.clock import Clocks, Off, bootstrap, off, spans, stretches
from weft.schedule.outage import unpack
from weft.units import ms, ns, us

LONG = 400  # ps that a small rack is stepped through


class Stepped:
    """A rack whose clocks advance one picosecond at a time; `error` is against rack time."""

    def __init__(self, clocks, outages, seed):
        self.clocks, self.outages, self.seed, self.tenure = clocks, outages, seed, 0
        self.strays = [Fraction(int(rate), 10**12) for rate in clocks.strays(seed)]
        self.master = min((i for i in range(clocks.nodes) if self.up(i, 0)), default=None)
        self.error, self.waiting, self.deadline = [Fraction(0)] * clocks.nodes, False, None
        if self.master is not None:
            self.settle()
        else:
            self.tenure, self.deadline = 1, clocks.failover
        self.lost = set()

    def settle(self):
        self.error = [Fraction(int(e)) for e in self.clocks.residual(self.master, self.tenure, self.seed)]
        self.waiting = False

    def up(self, i, t):
        """Whether node i could be master."""
        return not any(
            o.what in ("node", "link") and o.which == (i,) and o.at <= t and (o.until is None or t < o.until)
            for o in self.outages
        )

    def step(self, t):
        """What happens at t: takeover, loss of a master, exchange; then who is off."""
        exchange = t % self.clocks.resync == 0
        if self.master is None and self.deadline == t:
            self.take_over(t)
        if self.master is not None and self.waiting and exchange and self.up(self.master, t):
            self.settle()
        if self.master is not None and not self.up(self.master, t):
            self.master, self.tenure = None, self.tenure + 1
            self.deadline = None if self.clocks.failover is None else t + self.clocks.failover
            if self.deadline == t:
                self.take_over(t)
                if exchange and self.master is not None:
                    self.settle()
        for o in self.outages:
            if o.what == "node" and o.until == t and not exchange:
                self.lost.add(o.which[0])
        if exchange:
            self.lost.clear()
        return {i for i, e in enumerate(self.error) if 2 * abs(e) > self.clocks.allowed} | self.lost

    def take_over(self, t):
        self.master = min((i for i in range(self.clocks.nodes) if self.up(i, t)), default=None)
        self.waiting = self.master is not None

    def pass_time(self):
        """A picosecond later."""
        if self.master is None:
            self.error = [e + rate for e, rate in zip(self.error, self.strays, strict=True)]


@st.composite
def racks(draw):
    nodes = draw(st.integers(2, 5))
    clocks = Clocks(
        nodes=nodes,
        allowed=draw(st.integers(0, 12)),
        precision=draw(st.integers(0, 14)),
        drift=draw(st.sampled_from([0.0, 1e3, 1e6])),
        resync=draw(st.integers(1, 90)),
        failover=draw(st.one_of(st.none(), st.integers(0, 120))),
    )
    outages = []
    for i in draw(st.lists(st.integers(0, nodes - 1), unique=True, max_size=3)):
        begin = draw(st.integers(0, 200))
        end = draw(st.one_of(st.none(), st.integers(begin + 1, 300)))
        outages.append(Outage(draw(st.sampled_from(["node", "link"])), (i,), begin, end))
    return clocks, outages


@settings(max_examples=150, deadline=None)
@given(racks(), st.integers(0, 2**32))
def test_clocks_are_off_when_a_rack_stepped_by_the_picosecond_says_so(rack, seed):
    clocks, outages = rack
    found, stepped = spans(clocks, outages, seed=seed), Stepped(clocks, outages, seed)
    for t in range(LONG):
        ours = {i for i, each in enumerate(found) for begin, end in each if begin <= t and (end is None or t < end)}
        assert ours == stepped.step(t), t
        stepped.pass_time()


def master_lost(**options):
    return Clocks(nodes=16, allowed=50, precision=30, drift=100.0, resync=1 * ms, **options)


def test_a_rack_survives_without_a_master_for_as_long_as_it_says():
    clocks = master_lost()
    assert clocks.survives == 100 * us  # 20 ps at 2 x 100 ppb
    found = spans(clocks, [Outage("node", (0,), 7 * us)], seed=3)
    assert all(not each or each[0][0] > 7 * us + clocks.survives for each in found)
    assert any(found)  # but not for ever


def test_a_failover_within_that_time_is_not_noticed():
    clocks = master_lost(failover=90 * us)
    assert clocks.failover < clocks.survives
    for seed in range(10):
        assert not any(spans(clocks, [Outage("node", (0,), 5 * us)], seed=seed))


def test_a_late_failover_costs_some_nodes_the_time_until_the_next_exchange():
    clocks = master_lost(failover=900 * us)
    found = spans(clocks, [Outage("node", (0,), 50 * us)], seed=1)
    spoiled = [each for each in found if each]
    assert spoiled and all(each[-1][1] <= 1 * ms for each in spoiled)


def test_without_drift_a_rack_needs_no_master():
    clocks = Clocks(nodes=4, precision=50)
    assert clocks.survives is None
    assert spans(clocks, [Outage("node", (0,), 7 * us)]) == [[], [], [], []]


def test_who_is_dead_from_the_start_was_never_the_master():
    clocks = master_lost()
    assert {stretch.master for stretch in stretches(clocks, [Outage("node", (0,))])} == {1}
    assert not any(spans(clocks, [Outage("node", (0,))]))


def test_clocks_that_never_had_a_master_stray_from_the_start():
    clocks, dead = Clocks(nodes=2, allowed=0, precision=0, drift=1e6, resync=5), [Outage("node", (i,)) for i in (0, 1)]
    assert spans(clocks, dead, seed=1) == [[(1, None)], [(1, None)]]


def test_a_node_that_comes_back_to_a_rack_without_a_master_may_become_it():
    clocks = Clocks(nodes=2, allowed=0, precision=0, drift=1e6, resync=5, failover=7)
    found = stretches(clocks, [Outage("node", (0,), 0, 6), Outage("link", (1,))], seed=1)
    assert [each[:3] for each in found] == [(0, 7, None), (7, 10, 0), (10, None, 0)]


def test_a_precision_that_the_guard_does_not_allow_puts_clocks_off_from_the_start():
    clocks = Clocks(nodes=64, allowed=50, precision=500)
    assert (clocks.left, clocks.survives) == (-450, 0)
    found = spans(clocks)
    assert found[0] == [] and sum(each == [(0, None)] for each in found) > 40


def test_the_new_master_is_the_lowest_that_lives():
    plan = [Outage("node", (0,), 10), Outage("node", (1,), 5), Outage("link", (2,), 0, 15)]
    masters = [stretch.master for stretch in stretches(Clocks(nodes=5, resync=7, failover=3), plan)]
    assert masters == [0, None, 3, 3]


def test_slots_say_what_the_spans_say():
    clocks = Clocks(nodes=70, allowed=8, precision=10, drift=1e6, resync=70, failover=60)
    plan = [Outage("node", (0,), 33), Outage("node", (5,), 10, 55)]
    found, seen = off(clocks, plan, 10, seed=9), spans(clocks, plan, seed=9)
    assert isinstance(found, Off) and found.slots[0] == 0 and found.off.shape == (len(found.slots), 2)
    for slot in range(40):
        k = np.searchsorted(found.slots, slot, side="right") - 1
        during = {
            i for i, each in enumerate(seen) for begin, end in each
            if begin < 10 * (slot + 1) and (end is None or end > 10 * slot)
        }  # fmt: skip
        assert set(np.flatnonzero(unpack(found.off[k], 70))) == during


def test_what_happens_after_53_days_is_left_out():
    clocks = Clocks(nodes=8, allowed=10**12, precision=0, drift=0.001, failover=10**30)
    found = off(clocks, [Outage("node", (0,), 5)], 10, seed=2)
    assert any(spans(clocks, [Outage("node", (0,), 5)], seed=2))
    assert found.slots.tolist() == [0] and not found.off.any()


def test_clocks_are_drawn_from_the_seed_and_within_their_limits():
    clocks = Clocks(nodes=1000, precision=51, drift=2.5)
    residual, strays = clocks.residual(7, 0, 1), clocks.strays(1)
    assert residual[7] == 0 and residual.min() == -25 and residual.max() == 25
    assert strays.min() < -2400 and strays.max() > 2400 and np.abs(strays).max() <= 2500
    assert (residual != clocks.residual(7, 1, 1)).any() and (residual != clocks.residual(7, 0, 2)).any()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"nodes": 0}, "nodes must be at least 1, not 0"),
        ({"precision": -1}, "precision must be zero or more, not -1"),
        ({"drift": -0.5}, "drift must be from 0 to 1,000,000 ppb, not -0.5"),
        ({"drift": 2e6}, "drift must be from 0 to 1,000,000 ppb, not 2000000.0"),
        ({"resync": 0}, "resync must be above 0, not 0"),
        ({"failover": -3}, "failover must be zero or more, not -3"),
    ],
)
def test_clocks_that_cannot_be_are_refused(options, sentence):
    with pytest.raises(BadInput) as error:
        Clocks(**{"nodes": 4, **options})
    assert str(error.value) == sentence


def test_a_rack_starts_in_the_papers_four_steps():
    steps = bootstrap(nodes=8, flight=10 * ns, epoch=538 * ns, uncertainty=1 * us, precision=50)
    assert [step.name for step in steps] == ["hold", "synchronise", "signal", "run"]
    hold, synchronise, signal, run = steps
    # 1 us to 50 ps takes 15 halvings; each answer goes round eight nodes, and the time once past seven
    assert (hold.end, synchronise.end) == (15 * 80 * ns + 70 * ns,) * 2
    assert signal.end - signal.begin == 10 * ns
    assert run.end % (538 * ns) == 0 and 0 <= run.end - run.begin < 538 * ns


def test_clocks_that_agree_already_only_pass_the_time_round():
    assert bootstrap(nodes=4, flight=ns, epoch=ns, uncertainty=50, precision=50)[1].end == 3 * ns
    with pytest.raises(BadInput, match=r"^precision must be above 0 for clocks ever to reach it, not 0$"):
        bootstrap(nodes=4, flight=ns, epoch=ns, precision=0)
