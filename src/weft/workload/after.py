"""Who waits for whom, as files say it: the columns `after` and `delay_ps` of a trace, and htsim's triggers.

`after` names flows, separated by `+`, and is empty for a flow that waits for nobody. `delay_ps` is one number, the time
from the end of the last of them, or a number for each of them, separated by `+`.

A trigger of htsim (sim/trigger.cpp of csg-htsim) is fired by flows that are done and starts flows: `oneshot` all of its
flows when the one that fires it is done, `barrier` all of them when `count` flows have fired it, `multishot` one more
each time. Whether `send_done_trigger` or `recv_done_trigger` fires it makes no difference here: a flow is done when its
last byte has arrived. Which flow fires a multishot trigger next is known only while it runs; here the k-th flow that it
starts waits for the k-th flow that fires it, in the order of the file, those that it starts itself last.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from weft.errors import BadInput, BadTrace
from weft.workload.flows import Flows

KINDS = ("oneshot", "multishot", "barrier")


class Waits(NamedTuple):
    """What each flow of a file waits for, as `Flows.of` takes it, by places in the order of the file."""

    after: tuple[np.ndarray, np.ndarray]  # offsets, places
    delay: np.ndarray  # (f,) ps
    after_delay: np.ndarray | None = None  # as the places: ps on top

    @property
    def given(self) -> dict:
        """Arguments of `Flows.of`."""
        return self._asdict()


# columns


def of_columns(after, delay, flow, place, number) -> Waits:
    """What the texts `after` and `delay` of every flow say; number(text, place) reads a whole number.

    place(f, column) begins the sentence on a column of flow f.
    """
    known = {int(id): row for row, id in enumerate(flow.tolist())}
    often = Counter(flow.tolist()) if len(known) < len(flow) else {}
    delays = np.zeros(len(flow), np.int64)
    counts: list[int] = []
    places: list[int] = []
    lags: list[int] = []
    for f, (names, times) in enumerate(zip(after, delay, strict=True)):
        ids = [] if names.strip() in ("", "-") else [number(id, place(f, "after")) for id in names.split("+")]
        for id in ids:
            if id not in known:
                raise BadTrace(f"{place(f, 'after')} must name flows of the trace, not {id}")
            if often.get(id, 1) > 1:
                raise BadTrace(f"{place(f, 'after')} must name a flow that is there once, not {often[id]} times: {id}")
        each = [0] if times.strip() in ("", "-") else [number(time, place(f, "delay_ps")) for time in times.split("+")]
        if len(each) not in (1, len(ids)):
            must = "one number, or one for each flow in after"
            raise BadTrace(f"{place(f, 'delay_ps')} must be {must}, {len(ids)}, not {len(each)}")
        counts.append(len(ids))
        places += [known[id] for id in ids]
        if len(each) == 1:
            delays[f] = each[0]
        lags += each if len(each) > 1 else [0] * len(ids)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Waits((first, np.array(places, np.int64)), delays, np.array(lags, np.int64) if any(lags) else None)


def columns(flows: Flows) -> dict[str, list[list[int]]]:
    """`after`, as numbers of flows, and `delay_ps` of every flow, a list each: one delay where all are the same."""
    names, times = [], []
    id = flows.id.tolist()
    for f in range(len(flows)):
        before, gaps = flows.predecessors(f), flows.gaps(f)
        names.append([id[g] for g in before])
        times.append(gaps[:1] if len(set(gaps)) == 1 else gaps or [0])
    return {"after": names, "delay_ps": times}


# triggers


class Trigger(NamedTuple):
    """A line of a connection matrix."""

    kind: str
    needs: int  # flows that must fire a barrier
    line: int


def trigger(words, place, number) -> tuple[int, Trigger]:
    """(id, trigger) of a line `trigger id 1 barrier count 4`; place begins sentences, and ends in the line's number."""
    id, kind, count, at = None, None, 0, 1
    while at < len(words):
        word = words[at].lower()
        if word in KINDS:
            kind, at = word, at + 1
        elif word in ("id", "count") and at + 1 < len(words):
            value = number(words[at + 1], f"{place}: {word}")
            id, count, at = (value, count, at + 2) if word == "id" else (id, value, at + 2)
        else:
            raise BadTrace(f"{place}: what is said of a trigger must be id, count, {', '.join(KINDS)}, not {word!r}")
    if not id or kind is None:
        missing = "an id above 0" if not id else f"one of {', '.join(KINDS)}"
        raise BadTrace(f"{place}: a trigger must have {missing}, not only {' '.join(words[1:]) or 'its name'}")
    return id, Trigger(kind, count, int(place.rsplit(" ", 1)[1]))


def of_triggers(triggers: dict[int, Trigger], starts, fires, path, lines) -> tuple[Waits | None, list[str], int]:
    """(waits, notes, triggers that start nothing) of a connection matrix.

    starts: [f] the trigger that starts a flow, or None. fires: [f] those that it fires.
    """
    targets: dict[int, list[int]] = {}
    sources: dict[int, list[int]] = {}
    for f, (by, fired) in enumerate(zip(starts, fires, strict=True)):
        for id in (*fired, *(() if by is None else (by,))):
            if id not in triggers:
                raise BadTrace(f"{path}, line {lines[f]}: trigger {id} must have a line of its own")
        if by is not None:
            targets.setdefault(by, []).append(f)
        for id in dict.fromkeys(fired):
            sources.setdefault(id, []).append(f)
    after: list[list[int]] = [[] for _ in starts]
    guessed = 0
    for id, started in targets.items():
        one, firing = triggers[id], sources.get(id, [])
        place = f"{path}, line {one.line}: trigger {id}"
        if one.kind == "multishot":
            if len(firing) < len(started):
                raise BadTrace(f"{place} must be fired at least {len(started)} times, for each flow, not {len(firing)}")
            own = set(started)
            order = sorted(firing, key=lambda f: f in own)  # stable: in the order of the file otherwise
            guessed += sum(f not in own for f in order) > 1
            for f, g in zip(started, order, strict=False):
                after[f] = [g]
            continue
        needed = one.needs if one.kind == "barrier" else 1
        if len(firing) != needed:
            many = "1 flow" if one.kind == "oneshot" else f"as many flows as its count, {needed}"
            raise BadTrace(f"{place} must be fired by {many}, not {len(firing)}")
        for f in started:
            after[f] = list(firing)
    notes = []
    if guessed:
        what = f"{guessed} multishot trigger{'s' * (guessed != 1)}"
        notes.append(f"{what} may be fired in any order: flows start as if they were fired in the order of the file")
    if not targets:
        return None, notes, len(triggers)
    first = np.concatenate([[0], np.cumsum([len(some) for some in after])]).astype(np.int64)
    places = np.array([g for some in after for g in some], np.int64)
    return Waits((first, places), np.zeros(len(after), np.int64)), notes, len(triggers) - len(targets)


def triggers(flows: Flows) -> tuple[list[str], list[str], list[str]]:
    """(what starts each flow, what each fires, lines of the triggers) of a matrix; a sentence where it cannot say it.

    Flows that wait for the same ones are started by one trigger.
    """
    start = [f"start {ps}" for ps in flows.start.tolist()]
    fires, lines = [""] * len(flows), []
    known: dict[tuple, int] = {}
    for f in np.flatnonzero(np.diff(flows.after_first)).tolist() if flows.after.size else ():
        if any(flows.gaps(f)) or flows.start[f]:
            raise BadInput(f"flow {flows.id[f]} must wait for others and for no time beside, or htsim cannot say it")
        if not flows.id[f]:
            raise BadInput("a flow that waits must have a number above 0 in htsim, not 0")
        before = tuple(sorted(flows.predecessors(f)))
        if before not in known:
            known[before] = len(known) + 1
            kind = "oneshot" if len(before) == 1 else f"barrier count {len(before)}"
            lines.append(f"trigger id {known[before]} {kind}")
            for g in before:
                if fires[g]:
                    reason = "others wait for it, but not for the same flows"
                    raise BadInput(f"flow {flows.id[g]} must fire one trigger in htsim: {reason}")
                fires[g] = f" send_done_trigger {known[before]}"
        start[f] = f"trigger {known[before]}"
    return start, fires, lines
