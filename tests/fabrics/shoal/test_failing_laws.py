"""The laws of every fabric, asked of racks in which something fails, is damaged, waits or is sent again."""

import pytest

import laws
import weft
from laws import LAWS

PATTERNS = [
    weft.Poisson(load=0.6, sizes="uniform:1B,20KB", flows=60),
    weft.Incast(fan_in=5, bytes=9_000),
]
ALL = {law.__name__ for law in LAWS}
UNFINISHED = {laws.every_flow_finishes_in_the_end_or_is_known_to_be_lost.__name__}  # of the dead
UNBOUNDED = {laws.every_monitor_is_quiet.__name__}  # repair, damage and classes may break the bounds
RACKS = {
    "a dead node": (dict(fail="node 3 at 1us"), ALL - UNFINISHED),
    "a link in one direction": (dict(fail="link 2 upward at 2us"), ALL - UNFINISHED),
    "a node that comes back": (dict(fail="node 3 at 1us until 6us"), ALL - UNFINISHED - UNBOUNDED),
    "half of the rack": (dict(fail="nodes 50% at 3us"), ALL - UNFINISHED),
    "damaged cells": (dict(ber=1e-4), ALL - UNBOUNDED),
    "classes": (dict(classes=3), ALL),
    "a transport": (dict(transport="e2e"), ALL),
    "a transport that has work": (dict(transport="e2e", ber=1e-4), ALL - UNBOUNDED),
    "a node that comes back, and a transport": (
        dict(transport="e2e", fail="node 3 at 1us until 6us"),
        ALL - UNBOUNDED,
    ),
    "clocks that stray": (
        dict(fail="node 0 at 2us until 4us", drift=1e6, resync=2_000_000, failover=8_000_000, sync=20),
        ALL - UNFINISHED - UNBOUNDED,
    ),
    "a delay and a failure": (dict(fail="node 3 at 2us", delay=5), ALL - UNFINISHED),
}


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: type(pattern).__name__)
@pytest.mark.parametrize("name", RACKS)
def test_a_rack_in_trouble_keeps_every_law_that_it_promises(name, pattern):
    options, kept = RACKS[name]
    fabric = weft.Shoal(nodes=9, channels=2, **options)
    flows = pattern.draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    run = fabric.prepare(flows, seed=1)
    run.advance()
    seen, broken = run.observe(), []
    for law in LAWS:
        if law.__name__ in kept:
            try:
                law(fabric, flows, seen)
            except AssertionError as error:
                broken.append(f"{law.__name__}: {error}")
    assert not broken, broken
    assert seen.monitors["conservation"] == 0
