"""A switch that grows while it runs, and what fails in it: which links are there when."""

import numpy as np
import pytest

from weft.errors import BadInput
from weft.fabrics.merchant.boards import Boards
from weft.fabrics.merchant.deployment import grown, stages
from weft.fabrics.network.failures import plan
from weft.models.merchant import Switch, moved_cables
from weft.units import ms

SMALL, FULL = Boards.of(Switch(radix=8)), Boards.of(Switch())


def masks(boards, text):
    """(time, links that are there) at every moment at which something is installed."""
    every, changes = grown(boards, text)
    alive, found = np.ones(len(every.ends), bool), {}
    for change in plan("", every.graph, 0, every.parts, changes):
        alive[list(change.links)] = change.up
        found[change.time] = alive.copy()
    return every, found


def test_every_stage_has_the_bandwidth_of_its_deployment():
    every, found = masks(SMALL, "pods=2 core_cards=1 until 1ms, pods=4 core_cards=1 until 2ms")
    assert list(found) == [0, 1 * ms, 2 * ms]
    for time, pods in ((0, 2), (1 * ms, 4), (2 * ms, 8)):
        hosts = np.arange(16 * pods)
        left, right = np.split(hosts, 2)
        assert every.flow(left, right, found[time]) == 8 * pods
        assert every.flow([0], [127], found[time]) == (pods == 8)


def test_the_thirteenth_pod_moves_half_of_the_cables_of_the_others():
    before, after = Switch(pods=12, core_cards=9), Switch(pods=13, core_cards=18)
    every, found = masks(Boards.of(after), "pods=12 core_cards=9 until 1ms")
    plugged = {time: set(every.cable[alive & (every.cable >= 0)].tolist()) for time, alive in found.items()}
    gone = plugged[0] - plugged[1 * ms]
    assert len(gone) == 12 * 18 and len(plugged[0]) == 12 * 36 and len(plugged[1 * ms]) == 13 * 36
    assert moved_cables(before, after) == len(gone) * 8 // 72


def test_a_switch_that_does_not_grow_stays_as_it_is():
    assert grown(SMALL, "") == (SMALL, [])


def test_a_card_takes_its_links_and_a_share_of_them_is_drawn_from_the_seed():
    (down,) = plan("core-card 17 at 1ms", FULL.graph, 0, FULL.parts)
    assert (down.time, down.up, len(down.links)) == (1 * ms, False, 192)
    one, other = (plan("cables 10%", FULL.graph, seed, FULL.parts)[0].links for seed in (0, 1))
    assert len(one) == len(other) == 4 * 86 and one != other
    assert one == plan("cables 10%", FULL.graph, 0, FULL.parts)[0].links


def test_a_link_that_is_down_for_two_reasons_comes_back_when_both_are_over():
    changes = plan("cable 3.5.0.2 until 2ms, uplink-card 3.5 until 1ms", FULL.graph, 0, FULL.parts)
    alive = np.ones(len(FULL.ends), bool)
    back = {}
    for change in changes:
        alive[list(change.links)] = change.up
        back[change.time] = int((~alive).sum())
    assert back == {0: 48, 1 * ms: 4, 2 * ms: 0}


def test_links_and_switches_fail_as_in_every_packet_network():
    (down,) = plan("switch core0.upper.0", FULL.graph, 0, FULL.parts)
    assert set(down.links) == set(FULL.parts["chip"]["core0.upper.0"].tolist())
    (down,) = plan("link edge0.0.0-agg0.0.0", FULL.graph, 0, FULL.parts)
    assert len(down.links) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stages("pods=12", Switch()),
         "a deployment must look like pods=12 core_cards=9 until 2ms, not 'pods=12'"),
        (lambda: stages("pods=12 at 1ms until 2ms", Switch()),
         "a deployment must look like pods=12 core_cards=9 until 2ms, not 'pods=12 at 1ms until 2ms'"),
        (lambda: stages("pod=12 until 1ms", Switch()),
         "a deployment must say how many of pods, line_cards, uplink_cards, core_cards, as in pods=12, not 'pod=12'"),
        (lambda: stages("pods=x until 1ms", Switch()), "pods must be a whole number, not 'x'"),
        (lambda: stages("pods=25 until 1ms", Switch()), "pods must be between 1 and 24, not 25"),
        (lambda: stages("pods=3 until 1ms", Switch(pods=2)), "pods of 'pods=3 until 1ms' must be from 0 to 2, not 3"),
        (lambda: stages("pods=3 until 2ms, pods=2 until 3ms", Switch()),
         "pods of 'pods=2 until 3ms' must be from 3 to 24, not 2"),
        (lambda: stages("pods=2 until 2ms, pods=3 until 2ms", Switch()),
         "deployments must follow one another in time, unlike 'pods=3 until 2ms'"),
        (lambda: plan("blade 1", FULL.graph, 0, FULL.parts),
         "a failure must look like link A-B at 10us until 2ms, switch A at 1ms, node 3 at 1ms or links 5% at 1ms "
         "or cable N at 1ms, not 'blade 1' (near it: cable)"),
        (lambda: plan("module 2", FULL.graph, 0, FULL.parts), "a module must be one of 0, 1, not '2'"),
        (lambda: plan("core-card 18", FULL.graph, 0, FULL.parts), "a core-card must be one of 0, 1, 2 … 17, not '18'"),
        (lambda: plan("modules 101%", FULL.graph, 0, FULL.parts),
         "a share of modules must be a percentage from 0% to 100%, not '101%'"),
    ],
)  # fmt: skip
def test_what_cannot_be_installed_or_fail_is_refused_in_a_sentence(call, message):
    with pytest.raises(BadInput) as caught:
        call()
    assert str(caught.value) == message
