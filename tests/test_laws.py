"""Every law can be broken: each notices an observation that was doctored against it."""

from dataclasses import replace

import numpy as np
import pytest

import laws
import weft
from rooms import FLOWS
from weft.metrics.observation import Lost

FABRIC = weft.Crossbar(ports=8)


@pytest.fixture(scope="module")
def run():
    started = FABRIC.prepare(FLOWS[1].draw(nodes=8, link=FABRIC.link, seed=1), seed=1)
    started.advance()
    return started


def with_one(column, change):
    """The column with its first entry changed."""
    out = column.copy()
    out[0] = change(out[0])
    return out


DOCTORED = {
    "nobody_receives_more_than_was_sent": lambda seen: replace(seen, received=with_one(seen.received, lambda n: n + 1)),
    "a_flow_is_finished_when_all_of_it_has_arrived": lambda seen: replace(
        seen, received=with_one(seen.received, lambda n: n - 1)
    ),
    "every_flow_finishes_in_the_end_or_is_known_to_be_lost": lambda seen: replace(
        seen, finish=with_one(seen.finish, lambda _: -1)
    ),
    "what_was_lost_has_a_cause": lambda seen: replace(seen, lost=Lost(causes={"full": 0}, flows=1)),
    "the_time_series_end_in_what_was_seen": lambda seen: replace(seen, lost=Lost(causes={"full": 1})),
    "no_flow_is_faster_than_the_ideal": lambda seen: replace(seen, finish=with_one(seen.finish, lambda _: 1)),
    "no_link_goes_beyond_its_rate": lambda seen: replace(seen, finish=np.minimum(seen.finish, seen.finish.min())),
    "nothing_happens_before_it_begins_or_after_the_end": lambda seen: replace(seen, now=seen.now // 2),
    "every_monitor_is_quiet": lambda seen: replace(seen, monitors={"conservation": 1}),
}


def test_every_law_is_doctored():
    assert list(DOCTORED) == [law.__name__ for law in laws.LAWS]


def test_every_law_holds_of_what_was_seen(run):
    for law in laws.LAWS:
        law(FABRIC, run.demand, run.observe())


@pytest.mark.parametrize("name", DOCTORED)
def test_a_law_notices_what_is_doctored(name, run):
    with pytest.raises(AssertionError):
        getattr(laws, name)(FABRIC, run.demand, DOCTORED[name](run.observe()))
