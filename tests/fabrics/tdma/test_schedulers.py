"""Schedulers of TDMA: laws that every schedule keeps, kernels against their twins, and what each promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from weft.errors import BadInput, ScheduleConflict
from weft.fabrics.tdma.network import Network
from weft.fabrics.tdma.plan import NEVER, Demand, Schedule, throughput, verify
from weft.fabrics.tdma.schedulers import SCHEDULERS, reference, scheduler
from weft.fabrics.tdma.schedulers.optimal import decompose, pad
from weft.topology.clos import dumbbell, fattree, leafspine, single, tree
from weft.topology.graph import build
from weft.units import Gbps, us

LINK = 10 * Gbps
BLOCK = 375_000  # bytes of a slot of 300 us


def deep(hosts, link, delay):
    """A tree of three levels with switches of unequal size, and host numbers that are not in its order."""
    names = [f"h{h}" for h in range(hosts)]
    edges = [f"edge{e}" for e in range(4)]
    links = [(name, edges[h * h % 4 if h >= 4 else h], link, delay) for h, name in enumerate(names)]
    links += [("edge0", "mid0", link, delay), ("edge1", "mid0", link, delay), ("edge2", "mid1", link, delay)]
    links += [("edge3", "mid1", link, delay), ("mid0", "root", link, delay), ("mid1", "root", link, delay)]
    return build(names, [*edges, "mid0", "mid1", "root"], links)


def mixed(hosts, link, delay):
    """A switch whose every third host has a tenth of the rate."""
    names = [f"h{h}" for h in range(hosts)]
    return build(
        names, ["switch"], [(n, "switch", link // (10 if h % 3 == 2 else 1), delay) for h, n in enumerate(names)]
    )


SHAPES = {
    "single": lambda n: single(n, LINK, 0),
    "tree": lambda n: tree(3 * n, LINK, 0),
    "dumbbell": lambda n: dumbbell(max(4, n), LINK, 0),
    "deep": lambda n: deep(max(6, n), LINK, 0),
    "leafspine": lambda n: leafspine(2 * n, LINK, 0, radix=6, oversubscription=2),
    "fattree": lambda n: fattree(16, LINK, 0),
    "mixed": lambda n: mixed(n, LINK, 0),
}
ABLE = {"wrr": ("single", "tree", "dumbbell", "deep", "mixed"), "greedy": tuple(SHAPES), "mwm": ("single", "mixed"),
        "bvn": ("single", "mixed")}  # fmt: skip
CASES = [(name, shape) for name, shapes in ABLE.items() for shape in shapes]


@st.composite
def demands(draw, hosts, most=4 * BLOCK, weights=False, deadlines=False):
    n = hosts
    kind = draw(st.sampled_from(["dense", "sparse", "small", "equal"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = rng.integers(1, most, (n, n))
    if kind == "sparse":
        size[rng.random((n, n)) < 0.7] = 0
    elif kind == "small":
        size = rng.integers(0, BLOCK // 3, (n, n))
    elif kind == "equal":
        size[:] = BLOCK
    np.fill_diagonal(size, 0)
    room = rng.integers(0, most, (n, n)) if draw(st.booleans()) else None
    weight = rng.integers(1, 5, n) if weights and draw(st.booleans()) else None
    due = None
    if deadlines and draw(st.booleans()):
        due = np.where(rng.random((n, n)) < 0.2, rng.integers(0, 10, (n, n)), NEVER).astype(np.int32)
    urgent = rng.integers(0, most, (n, n)) if due is not None and draw(st.booleans()) else None
    return Demand(size=size.astype(np.int64), room=room, weight=weight, due=due, urgent=urgent)


def rows(schedule):
    return [
        (int(schedule.when[g]), int(schedule.src[g]), int(schedule.dst[g]), int(schedule.size[g]),
         int(schedule.rate[g]), schedule.path(g).tolist())
        for g in range(len(schedule))
    ]  # fmt: skip


def rest(demand, schedule):
    """What is left of a demand."""
    size = demand.size.copy()
    np.subtract.at(size, (schedule.src, schedule.dst), schedule.size)
    return Demand(size=size)


# ---------------------------------------------------------------- laws of every schedule


@pytest.mark.parametrize("name, shape", CASES)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_a_schedule_never_asks_more_of_a_link_than_it_carries(name, shape, data):
    network = Network(graph=SHAPES[shape](data.draw(st.integers(2, 8))))
    made = scheduler(name, network)
    for _ in range(2):
        demand = data.draw(demands(network.hosts, weights=made.weighs, deadlines=made.hurries))
        schedule = made.plan(demand, data.draw(st.integers(1, 12)))
        assert verify(network, demand, schedule) == len(schedule)


@pytest.mark.parametrize("name, shape", CASES)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_every_demand_is_served_in_the_end_to_the_last_byte(name, shape, data):
    network = Network(graph=SHAPES[shape](data.draw(st.integers(2, 5))))
    made = scheduler(name, network)
    demand = Demand(size=data.draw(demands(network.hosts, most=2 * BLOCK)).size)
    wanted, given_ = demand.size.copy(), np.zeros_like(demand.size)
    for _ in range(400):
        if not demand.size.any():
            break
        schedule = made.plan(demand, 10)
        np.add.at(given_, (schedule.src, schedule.dst), schedule.size)
        demand = rest(demand, schedule)
    assert (given_ == wanted).all()


@pytest.mark.parametrize("name, shape", [case for case in CASES if case[1] != "mixed"])
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_no_pair_is_left_out_that_has_bytes_and_free_links_both_ends(name, shape, data):
    if name == "bvn":
        return  # permutations are for the whole batch: some slots have holes
    network = Network(graph=SHAPES[shape](data.draw(st.integers(2, 6))))
    demand = data.draw(demands(network.hosts))
    schedule = scheduler(name, network).plan(demand, 6)
    left = demand.want.copy()
    for t in range(6):
        used = {p for g in schedule.slot(t) for p in schedule.path(g).tolist()}
        for g in schedule.slot(t):
            left[schedule.src[g], schedule.dst[g]] -= schedule.size[g]
        if network.tree is not None:
            for i, j in np.argwhere(left > 0):
                assert not used.isdisjoint(network.path(i, j)), (t, i, j)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_an_all_to_all_on_one_switch_takes_one_permutation_after_another(name):
    network = Network(graph=single(12, LINK, 0))
    demand = Demand(size=np.where(np.eye(12, dtype=bool), 0, BLOCK))
    schedule = scheduler(name, network).plan(demand, 11)
    assert (schedule.served() == demand.size).all()
    assert throughput(network, schedule) == 1.0
    for t in range(11):
        assert sorted(schedule.dst[list(schedule.slot(t))]) == list(range(12))


@pytest.mark.parametrize("name", ["wrr", "greedy"])
def test_the_tree_of_the_paper_keeps_its_uplinks_busy_and_flows_within_a_switch_finish_first(name):
    network = Network(graph=tree(24, LINK, 0))
    demand = Demand(size=np.where(np.eye(24, dtype=bool), 0, BLOCK))
    schedule = scheduler(name, network).plan(demand, 128)
    assert (schedule.served() == demand.size).all()  # 8 x 16 slots for each uplink: the optimum of §6.1.2
    inside = schedule.src // 8 == schedule.dst // 8
    assert schedule.when[inside].max() < 128 / 2


# ---------------------------------------------------------------- twins


@pytest.mark.parametrize("name, shape", [case for case in CASES if case[0] in ("wrr", "greedy", "bvn")])
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_a_kernel_grants_what_its_twin_grants(name, shape, data):
    buffer = data.draw(st.sampled_from([0, 0, 50_000, 400_000])) if name == "greedy" else 0
    options = {"spill": data.draw(st.booleans())} if buffer else {}
    network = Network(graph=SHAPES[shape](data.draw(st.integers(2, 5))), buffer=buffer)
    fast = scheduler(name, network, **options)
    twins = {"wrr": reference.RoundRobin, "greedy": reference.Greedy, "bvn": reference.Birkhoff}
    slow = twins[name](network, **options)
    for _ in range(3):
        demand = data.draw(demands(network.hosts, weights=fast.weighs, deadlines=fast.hurries))
        slots = data.draw(st.integers(1, 8))
        schedule = fast.plan(demand, slots)
        assert rows(schedule) == [tuple(row) for row in slow.plan(demand, slots)]
        if not fast.shares:
            verify(network, demand, schedule)


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_matrices_are_taken_apart_into_the_permutations_of_the_twin(n, seed):
    rng = np.random.default_rng(seed)
    units = np.where(rng.random((n, n)) < 0.6, rng.integers(0, 5, (n, n)), 0)
    mine = [(length, row.tolist()) for length, row in decompose(units)]
    assert mine == (reference.decompose(units.tolist()) if units.any() else [])


@pytest.mark.parametrize("shape", ["single", "tree", "mixed", "leafspine"])
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_what_shares_a_slot_fits_into_the_buffer(shape, data):
    network = Network(graph=SHAPES[shape](data.draw(st.integers(2, 6))), buffer=data.draw(st.integers(1, 800_000)))
    made = scheduler("greedy", network, spill=data.draw(st.booleans()))
    demand = data.draw(demands(network.hosts))
    verify(network, demand, made.plan(demand, 12))  # a fresh scheduler: nothing waits in the switch yet


# ---------------------------------------------------------------- what each promises


@pytest.mark.parametrize("name, shape", [case for case in CASES if case[0] in ("wrr", "greedy") and case[1] != "mixed"])
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_a_host_with_bytes_sends_within_the_bound(name, shape, data):
    network = Network(graph=SHAPES[shape](data.draw(st.integers(2, 4))))
    made = scheduler(name, network)
    n, rng = network.hosts, np.random.default_rng(data.draw(st.integers(0, 99)))
    size = np.where(rng.random((n, n)) < 0.4, 1000 * BLOCK, 0).astype(np.int64)
    np.fill_diagonal(size, 0)
    waited = np.zeros(n, int)
    for _ in range(6):
        schedule = made.plan(Demand(size=size), n)
        for t in range(n):
            waited += 1
            waited[schedule.src[list(schedule.slot(t))]] = 0
            assert waited[size.any(1)].max(initial=0) <= made.bound(n)


@given(st.lists(st.integers(1, 6), min_size=2, max_size=5))
@settings(max_examples=30, deadline=None)
def test_hosts_that_compete_share_by_weight(weights):
    n = len(weights) + 1
    network = Network(graph=single(n, LINK, 0))
    size = np.zeros((n, n), np.int64)
    size[:-1, -1] = 10**12  # all want the last host
    made, cycle = scheduler("wrr", network), sum(weights)
    slots = np.zeros(n, int)
    for _ in range(3):
        schedule = made.plan(Demand(size=size, weight=np.array([*weights, 1])), cycle)
        slots += np.bincount(schedule.src, minlength=n)
    assert (abs(slots[:-1] - 3 * np.array(weights)) <= 1).all()


def test_a_host_that_was_silent_gets_no_more_than_its_share_afterwards():
    network = Network(graph=single(3, LINK, 0))
    made = scheduler("wrr", network)
    made.plan(Demand.of(3, {(0, 2): 10**12}), 50)
    schedule = made.plan(Demand.of(3, {(0, 2): 10**12, (1, 2): 10**12}), 10)
    assert np.bincount(schedule.src).tolist() == [5, 5]


def test_in_a_pod_hosts_share_the_uplink_by_weight():
    network = Network(graph=tree(6, LINK, 0))
    size = np.zeros((6, 6), np.int64)
    size[0, 2] = size[1, 3] = 10**12  # two hosts of a pod, both outwards
    schedule = scheduler("wrr", network).plan(Demand(size=size, weight=np.array([3, 1, 1, 1, 1, 1])), 40)
    assert np.bincount(schedule.src).tolist() == [30, 10]


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_decomposition_adds_up_to_the_padded_matrix(n, seed):
    rng = np.random.default_rng(seed)
    units = np.where(rng.random((n, n)) < 0.6, rng.integers(0, 5, (n, n)), 0)
    full, total = pad(units), np.zeros((n, n), int)
    parts = decompose(units)
    for length, row in parts:
        assert sorted(row) == list(range(n)) and length > 0
        total[np.arange(n), row] += length
    assert (total == full).all() and (full >= units).all()
    assert (full.sum(0) == full.sum(1)).all()
    assert sum(length for length, _ in parts) == max(units.sum(0).max(), units.sum(1).max())
    assert len(parts) <= np.count_nonzero(full)


@given(st.integers(3, 7), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_birkhoff_serves_a_demand_in_the_fewest_slots(n, seed):
    rng = np.random.default_rng(seed)
    units = rng.integers(0, 4, (n, n))
    np.fill_diagonal(units, 0)
    fewest = max(units.sum(0).max(), units.sum(1).max())
    network = Network(graph=single(n, LINK, 0))
    schedule = scheduler("bvn", network).plan(Demand(size=units * BLOCK), 4 * n)
    assert schedule.length == fewest
    assert (schedule.served() == units[: len(schedule.served()), : len(schedule.served())] * BLOCK).all()


@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_no_matching_of_a_slot_has_more_bytes_than_that_of_mwm(n, seed):
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 3, (n, n)) * BLOCK
    np.fill_diagonal(size, 0)
    schedule = scheduler("mwm", Network(graph=single(n, LINK, 0))).plan(Demand(size=size), 1)
    best = size[linear_sum_assignment(size, maximize=True)].sum()
    assert size[schedule.src, schedule.dst].sum() == best


def test_a_fast_sender_is_shared_by_ten_slow_receivers():
    names = [f"h{h}" for h in range(11)]
    links = [(name, "switch", LINK if name == "h0" else LINK // 10, 0) for name in names]
    network = Network(graph=build(names, ["switch"], links))
    schedule = scheduler("greedy", network).plan(Demand.of(11, {(0, j): BLOCK // 10 for j in range(1, 11)}), 1)
    assert schedule.dst.tolist() == list(range(1, 11))
    assert set(schedule.rate) == {LINK // 10} and schedule.size.sum() == BLOCK


def test_a_switch_that_can_hold_a_slot_drains_it_over_the_next_nine():
    graph = build(["h0", "h1", "h2"], ["switch"], [("h0", "switch", LINK, 0), ("h1", "switch", LINK // 10, 0),
                                                    ("h2", "switch", LINK, 0)])  # fmt: skip
    demand = Demand.of(3, {(0, 1): BLOCK, (2, 1): BLOCK // 10})
    held = Network(graph=graph, buffer=BLOCK * 9 // 10)
    schedule = scheduler("greedy", held, spill=True).plan(demand, 12)
    verify(held, demand, schedule)
    assert [(t, i, j, b) for t, i, j, b, _, _ in rows(schedule)] == [(0, 0, 1, BLOCK), (10, 2, 1, BLOCK // 10)]
    tight = Network(graph=graph, buffer=1)
    assert len(scheduler("greedy", tight, spill=True).plan(demand, 12)) == 11  # a tenth of a slot at a time


def test_small_senders_share_a_slot_as_far_as_the_buffer_goes():
    demand = Demand.of(5, {(i, 0): 50_000 for i in range(1, 5)})
    for buffer, slots in ((0, 4), (49_999, 4), (50_000, 2), (100_000, 2), (150_000, 1)):
        network = Network(graph=single(5, LINK, 0), buffer=buffer)
        schedule = scheduler("greedy", network).plan(demand, 6)
        verify(network, demand, schedule)
        assert schedule.length == slots, buffer


def test_a_flow_with_a_deadline_goes_first():
    network = Network(graph=single(4, LINK, 0))
    size = np.where(np.eye(4, dtype=bool), 0, 20 * BLOCK)
    size[2, 3] = 1000
    due = np.full((4, 4), NEVER, np.int32)
    due[2, 3] = 1
    schedule = scheduler("greedy", network).plan(Demand(size=size, due=due), 10)
    g = [g for g in range(len(schedule)) if (schedule.src[g], schedule.dst[g]) == (2, 3)]
    assert schedule.when[g].tolist() == [0]


def test_nothing_is_granted_without_room():
    network = Network(graph=single(3, LINK, 0))
    room = np.zeros((3, 3), np.int64)
    room[0, 1] = 1000
    demand = Demand(size=np.where(np.eye(3, dtype=bool), 0, BLOCK), room=room)
    for name in SCHEDULERS:
        assert [row[1:4] for row in rows(scheduler(name, network).plan(demand, 5))] == [(0, 1, 1000)]


# ---------------------------------------------------------------- what cannot be meant


def conflicting():
    """Two flows over one link in one slot."""
    network = Network(graph=single(3, LINK, 0))
    demand = Demand.of(3, {(0, 2): 10, (1, 2): 10})
    own = network.host_port
    ports = np.array([own[0], own[2] ^ 1, own[1], own[2] ^ 1], np.int32)
    made = Schedule(1, np.zeros(2, np.int32), np.array([0, 1]), np.array([2, 2]), np.array([10, 10]),
                    np.full(2, LINK), np.array([0, 2, 4]), ports)  # fmt: skip
    return network, demand, made


def test_verify_names_the_port_the_slot_and_the_flows():
    with pytest.raises(
        ScheduleConflict, match=r"^port 5 of switch must hold at most 0 B in slot 0, not 10 B of 0 to 2, 1 to 2$"
    ):
        verify(*conflicting())


def test_verify_refuses_more_than_was_asked_for():
    network, _, made = conflicting()
    one = Schedule(1, *(getattr(made, name)[:1] for name in ("when", "src", "dst", "size", "rate")), made.first[:2],
                   made.ports[:2])  # fmt: skip
    with pytest.raises(ScheduleConflict, match="at most the 9 bytes that wait for host 2 and have room, not 10"):
        verify(network, Demand.of(3, {(0, 2): 9}), one)


@pytest.mark.parametrize(
    "call, sentence",
    [
        (
            lambda: scheduler("wrr", Network(graph=fattree(16, LINK, 0))),
            "scheduler wrr must have a network without loops; this topology can be planned by greedy",
        ),
        (
            lambda: scheduler("bvn", Network(graph=tree(6, LINK, 0))),
            "scheduler bvn must have hosts on a single switch; this topology can be planned by wrr or greedy",
        ),
        (lambda: scheduler("best", None), "scheduler must be one of wrr, greedy, mwm, bvn, not 'best'"),
        (
            lambda: scheduler("wrr", Network(graph=single(4, LINK, 0), buffer=5)),
            "buffer must be 0 for wrr, which keeps flows apart (greedy lets them share), not 5",
        ),
        (lambda: Network(graph=single(4, LINK, 0), buffer=-1), "buffer must be 0 bytes or more, not -1"),
        (lambda: Network(graph=single(4, LINK, 0), slot=0), "slot must be more than 0, not 0"),
        (
            lambda: Network(graph=single(4, 1, 0), slot=300 * us),
            "slot must be long enough for a byte over link h0-switch, not 300000000 ps",
        ),
        (lambda: Demand.of(3, {(0, 3): 1}), "a host of a demand must be from 0 to 2, not 3"),
        (lambda: Demand.of(3, {(1, 2): -1}), "size of host 1 for host 2 must be 0 or more, not -1"),
        (lambda: Demand.of(3, {(1, 1): 5}), "a host must have nothing to send to itself, not 5 bytes as host 1"),
        (
            lambda: Demand(size=np.zeros((3, 3), np.int64), weight=np.array([1, 0, 1])),
            "the weight of host 1 must be from 1 to 1000, not 0",
        ),
        (
            lambda: scheduler("greedy", Network(graph=single(2, LINK, 0))).plan(
                Demand(size=np.zeros((2, 2), np.int64), weight=np.array([1, 1])), 5
            ),
            "weight must be left out for greedy, which does not look at it (wrr does)",
        ),
        (
            lambda: scheduler("wrr", Network(graph=single(2, LINK, 0))).plan(Demand.of(3, {}), 5),
            "demand must be of 2 hosts, not 3",
        ),
        (
            lambda: scheduler("wrr", Network(graph=single(2, LINK, 0))).plan(Demand.of(2, {}), 0),
            "slots must be from 1 to 1,000,000, not 0",
        ),
    ],
)
def test_what_cannot_be_meant_is_named(call, sentence):
    with pytest.raises(BadInput) as error:
        call()
    assert str(error.value) == sentence
