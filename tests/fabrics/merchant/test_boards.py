"""The switch chip by chip: who is soldered and plugged to whom, what fails together, and how much crosses a cut."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.fabrics.merchant.boards import AGGREGATION, CORE, EDGE, KINDS, Boards, plug
from weft.models.merchant import Switch, growth
from weft.topology.cabling import Wiring
from weft.topology.clos import fattree
from weft.topology.routes import require_connected, routes

FULL = Boards.of(Switch())
SMALL = Boards.of(Switch(radix=8))


def degrees(boards):
    return np.bincount(boards.ends.ravel(), minlength=len(boards.names))


@pytest.mark.parametrize("radix", [8, 16, 24])
def test_a_full_switch_uses_every_port_of_every_chip(radix):
    boards = Boards.of(Switch(radix=radix))
    assert boards.hosts == radix**3 // 4
    assert (degrees(boards)[boards.hosts :] == radix).all()
    assert [int((boards.tier == tier).sum()) for tier in (EDGE, AGGREGATION, CORE)] == [
        radix**2 // 2, radix**2 // 2, radix**2 // 4,
    ]  # fmt: skip


def test_the_cables_of_a_full_switch_are_those_of_the_planning_models():
    for radix in (8, 24):
        assert np.array_equal(plug(Switch(radix=radix)).cables, Wiring.right(radix).cables)


def test_every_pod_has_one_link_to_every_core_chip_and_every_aggregation_chip_to_its_own():
    fibres = FULL.ends[FULL.cable >= 0]
    pod = np.array([p for p, _, _ in FULL.aggregations])[fibres[:, 0] - FULL.hosts - len(FULL.edges)]
    reach = np.zeros((24, 144), int)
    np.add.at(reach, (pod, fibres[:, 1] - fibres[:, 1].min()), 1)
    assert (reach == 1).all()
    ups = [set(fibres[fibres[:, 0] == chip, 1].tolist()) for chip in np.unique(fibres[:, 0])]
    assert {len(one) for one in ups} == {12}


def test_the_four_links_of_a_cable_go_from_one_chip_to_four():
    for cable in range(0, 864, 37):
        ends = FULL.ends[FULL.cable == cable]
        assert len(set(ends[:, 0].tolist())) == 1 and len(set(ends[:, 1].tolist())) == 4


def test_each_uplink_card_goes_to_exactly_three_core_cards():
    cables = FULL.wiring.cables
    for p, u in ((0, 0), (7, 3), (23, 5)):
        assert len(set(cables[(cables[:, 0] == p) & (cables[:, 1] == u), 4].tolist())) == 3


def test_it_is_the_fat_tree_of_its_chips():
    """As many paths of every length between hosts as in the textbook's tree."""
    mine, text = routes(SMALL.graph), routes(fattree(128, 10**10, 0))
    require_connected(SMALL.graph, mine)
    assert sorted(mine.count.tolist()) == sorted(text.count.tolist())
    assert mine.table.shape == text.table.shape


def test_3456_ports_have_34_56_tbps_and_a_pod_1_44():
    assert FULL.bisection() == 34_560 * 10**9
    assert Boards.of(Switch(pods=1)).bisection() == 1_440 * 10**9


@pytest.mark.parametrize("step", range(8))
def test_at_every_step_of_deployment_all_ports_send_at_once(step):
    switch = growth(8)[step]
    boards = Boards.of(switch)
    assert boards.bisection() == switch.ports * 10**10
    assert len(boards.wiring.cables) == switch.pods * switch.plugs


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_partial_deployment_is_as_oversubscribed_as_the_planning_model_says(data):
    pods = data.draw(st.sampled_from([1, 2, 4, 6, 8]))
    uplinks = data.draw(st.integers(1, 2))
    cards = 0 if pods == 1 else data.draw(st.integers(1, 2))
    switch = Switch(radix=8, pods=pods, uplink_cards=uplinks, core_cards=cards)
    boards = Boards.of(switch)
    assert len(boards.wiring.cables) == switch.pods * switch.plugs
    assert boards.bisection() == pytest.approx(switch.bisection)


def test_no_equal_split_of_the_pods_is_worse_than_the_one_that_is_tried():
    wiring = Wiring.right(8).swap(0, 6).swap(3, 13).swap(8, 29)
    boards = Boards(Switch(radix=8), wiring)
    pod = np.arange(128) // 16
    every = []
    for left in combinations(range(8), 4):
        mine = np.isin(pod, left)
        there, back = np.flatnonzero(mine), np.flatnonzero(~mine)
        every.append(boards.flow(there, back) + boards.flow(back, there))
    assert min(every) * 10**10 == boards.bisection() < 128 * 10**10


def test_two_pods_on_each_others_row_cost_eight_links_each_way():
    cables = FULL.wiring.cables.tolist()
    upper = next(n for n, row in enumerate(cables) if row[:4] == [0, 0, 0, 0])
    lower = next(n for n, row in enumerate(cables) if row[:4] == [1, 0, 1, 0])
    crossed = Boards(Switch(), Wiring.right(24).swap(upper, lower))
    assert FULL.bisection() - crossed.bisection() == 16 * 10**10


# ---------------------------------------------------------------- what fails together


def down(boards, *parts):
    alive = np.ones(len(boards.ends), bool)
    for kind, name in parts:
        alive[boards.parts[kind][name]] = False
    return alive


def test_there_are_as_many_of_each_part_as_were_installed():
    assert {kind: len(FULL.parts[kind]) for kind in KINDS} == {
        "chip": 720, "line-card": 72, "uplink-card": 144, "core-card": 18, "module": 2, "cable": 864, "pod": 24,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "links"),
    [
        ("chip", "edge3.1.2", 24),
        ("chip", "core17.upper.3", 24),
        ("line-card", "3.1", 96),
        ("uplink-card", "3.5", 48),
        ("core-card", "17", 192),
        ("module", "1", 1728),
        ("cable", "3.5.0.2", 4),
        ("pod", "3", 144 + 144 + 144),
    ],
)
def test_a_part_takes_its_links_with_it(kind, name, links):
    assert FULL.parts[kind][name].size == links


def test_failures_cost_what_the_paper_says_they_do():
    assert FULL.bisection(down(FULL, ("module", "1")), draws=1) == 17_280 * 10**9
    assert FULL.bisection(down(FULL, ("core-card", "0")), draws=1) == 34_560 * 10**9 * 17 // 18
    pod = Boards.of(Switch(pods=1))
    assert pod.bisection(down(pod, ("uplink-card", "0.5"))) == 1_440 * 10**9 * 5 // 6


def test_a_dead_cable_costs_four_links_each_way():
    assert SMALL.bisection(down(SMALL, ("cable", "0.0.0.0"))) == (128 - 8) * 10**10


def test_line_cards_are_filled_pod_by_pod_with_one_in_each():
    boards = Boards.of(Switch(radix=24, pods=3, line_cards=5))
    assert boards.line_cards == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]
    assert boards.hosts == 5 * 48


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Boards(Switch(radix=8), Wiring.right(24)), "radix of the cables must be the 8 of the chips, not 24"),
        (lambda: Boards(Switch(radix=24, pods=2), Wiring.right(24)),
         "pod of a cable must be below 2 in this deployment, not 2"),
    ],
)  # fmt: skip
def test_cables_that_do_not_fit_are_refused_in_a_sentence(call, message):
    with pytest.raises(BadInput) as caught:
        call()
    assert str(caught.value) == message
