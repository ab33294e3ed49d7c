"""Tables are built from nothing, follow failures in the time that App. E says, and end as they should be."""

from dataclasses import replace

import numpy as np
import pytest

from weft import Flows, Stardust
from weft.fabrics.stardust import bounds
from weft.fabrics.stardust.reachability import Tables, history
from weft.fabrics.stardust.wiring import NOWHERE, wire
from weft.units import KB, ns, us

CASES = [(7, 3, 1, 8), (10, 4, 2, 8), (16, 2, 3, 4), (150, 2, 2, 24)]


def alike(one, other):
    """Whether two tables lead by the same links, whatever their groups are called."""

    def links(routes, v, d):
        g = routes.table[v, d]
        return g if g < 0 else sorted(routes.choices[routes.first[g] : routes.first[g] + routes.number[g]].tolist())

    return all(links(one, v, d) == links(other, v, d) for v, d in np.ndindex(*one.table.shape))


@pytest.mark.parametrize(("adapters", "uplinks", "tiers", "radix"), CASES)
def test_from_nothing_messages_build_the_tables_that_a_view_from_above_gives(adapters, uplinks, tiers, radix):
    wiring = wire(adapters, uplinks, tiers, radix)
    tables = Tables(wiring, updates=3, cold=True)
    assert (tables.routes().table[:adapters] == NOWHERE).sum() == adapters * (adapters - 1)
    number = 0
    while not tables.settled:
        tables.exchange(number)
        number += 1
    assert alike(tables.routes(), wiring.routes())
    assert number <= 2 * tiers * tables.blocks * (3 + 1)


@pytest.mark.parametrize(("adapters", "uplinks", "tiers", "radix"), CASES)
def test_after_a_failure_tables_end_as_those_of_what_is_left(adapters, uplinks, tiers, radix):
    wiring = wire(adapters, uplinks, tiers, radix)
    tables, gone = Tables(wiring, updates=2), [0, wiring.cables - 1]
    tables.turn(gone, up=False)
    for number in range(100):
        tables.exchange(number)
    alive = np.ones(wiring.cables, bool)
    alive[gone] = False
    left = wiring.routes(alive)
    for v in range(wiring.devices):
        reached = left.table[v] != NOWHERE
        assert (reached == (tables.routes().table[v] != NOWHERE)).all()
    tables.turn(gone, up=True)
    for number in range(100):
        tables.exchange(number)
    assert alike(tables.routes(), wiring.routes())


@pytest.mark.parametrize("tiers", [1, 2, 3])
@pytest.mark.parametrize("updates", [1, 3])
def test_the_fabric_heals_within_the_time_of_app_e_and_not_much_sooner(tiers, updates):
    """A link of an adapter fails; the last table to follow is that of an adapter at the other end."""
    radix = {1: 12, 2: 6, 3: 4}[tiers]
    fabric = Stardust(adapters=12, uplinks=2, tiers=tiers, radix=radix, updates=updates, fail="uplink 0.0 at 95us")
    times = [moment.time for moment in history(fabric, 0)]
    took = times[-1] - times[0]
    formula = bounds.recovery(fabric)
    assert times[0] == 95 * us and took <= formula + fabric.period
    assert took > formula - (2 * tiers - 1) * (fabric.period + fabric.delay) or updates == 1


def test_a_blink_shorter_than_the_messages_that_are_needed_is_not_told_further():
    fabric = Stardust(adapters=12, uplinks=2, radix=6, fail="uplink 0.0 at 95us until 97us")
    devices = [moment.routes for moment in history(fabric, 0) if moment.routes is not None]
    assert alike(devices[-1], fabric.routes)


def test_flows_that_come_before_the_tables_wait_for_them():
    fabric = Stardust(hosts=16, cold=True, period=1 * us, rto=100 * us)
    flows = Flows.of(nodes=16, src=[0, 1, 5], dst=[15, 9, 4], size=20 * KB, start=[0, 100 * ns, 0])
    built = max(moment.time for moment in history(fabric, 0))
    cold, warm = fabric.prepare(flows, seed=1), replace(fabric, cold=False).prepare(flows, seed=1)
    cold.advance()
    warm.advance()
    assert (cold.observe().finish[:2] > built - 10 * us).all() and built > 5 * us
    assert (cold.observe().finish >= warm.observe().finish).all()
    assert cold.observe().lost.total == 0
