"""What holds for every fabric: one list of laws, each a function of a fabric, its flows and what was observed.

`test_contract.py` asks them of every fabric under every pattern. A law that a fabric does not keep is a bug of it.
"""

import numpy as np

from weft.engine.series import bundle
from weft.units import s


def nobody_receives_more_than_was_sent(fabric, flows, seen):
    assert (seen.received >= 0).all()
    assert (seen.received <= flows.size).all()


def a_flow_is_finished_when_all_of_it_has_arrived(fabric, flows, seen):
    assert (seen.received[seen.finished] == flows.size[seen.finished]).all()
    assert (seen.received[~seen.finished] < flows.size[~seen.finished]).all()


def every_flow_finishes_in_the_end_or_is_known_to_be_lost(fabric, flows, seen):
    assert (~seen.finished).sum() == seen.lost.flows


def what_was_lost_has_a_cause(fabric, flows, seen):
    assert all(count >= 0 for count in seen.lost.causes.values())
    assert seen.lost.total > 0 or seen.lost.flows == 0


def the_time_series_end_in_what_was_seen(fabric, flows, seen):
    last = {name: column[-1] for name, column in seen.samples.items()}
    assert last["finished"] == seen.finished.sum()
    assert last["lost"] == seen.lost.total
    assert len(last.get("queued", ())) == len(bundle(fabric.queues())[1])
    assert sum(last.get("queued", ())) <= last["waiting"]
    assert len(last.get("busy_ps", ())) == len(bundle(fabric.lines())[1])
    for name in seen.samples.keys() & {"busy_ps"}:
        worked, time = np.diff(seen.samples[name], axis=0), np.diff(seen.samples["time_ps"])[:, None]
        assert ((worked >= 0) & (worked <= time)).all() and worked.sum() > 0
    assert (last["delivered_bytes"] >= np.bincount(flows.dst, seen.received, flows.nodes)).all()


def no_flow_is_faster_than_the_ideal(fabric, flows, seen):
    ideal = fabric.ideal(flows)
    assert (ideal > 0).all()
    done = seen.finished
    assert ((seen.finish - flows.start)[done] >= ideal[done]).all()


def no_link_goes_beyond_its_rate(fabric, flows, seen):
    """What a node sends, and what it receives, from its first flow's start to the last one's end fits its link."""
    for ends in (flows.src, flows.dst):
        for node in np.unique(ends):
            mine = (ends == node) & seen.finished
            if mine.any():
                span = int(seen.finish[mine].max() - flows.start[mine].min())
                assert int(flows.size[mine].sum()) * 8 * s <= fabric.link * span


def nothing_happens_before_it_begins_or_after_the_end(fabric, flows, seen):
    done = seen.finished
    assert (seen.finish[done] > flows.start[done]).all()
    assert (seen.finish[done] <= seen.now).all()


def every_monitor_is_quiet(fabric, flows, seen):
    assert seen.monitors
    assert set(seen.monitors.values()) == {0}


LAWS = [law for law in list(globals().values()) if getattr(law, "__module__", None) == __name__]
