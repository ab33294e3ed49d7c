"""Time series of results: what there is to see, and pictures of it.

throughput   payload into each destination (Gb/s): the mean, in a band from the least to the greatest
use          the same as a share of what a link that is never idle carries
live         flows that have started and not finished
waiting      cells or packets in queues
finished, lost

Three are maps, with a row each: `heat`, the use of every destination's link, `links`, that of every link between nodes
and switches, and `queues`, what waits in every queue.
"""

from dataclasses import dataclass

import numpy as np

from weft.engine.series import bundle
from weft.errors import BadInput, WeftError, require
from weft.failures import entries
from weft.metrics import throughput
from weft.report import drawing
from weft.units import Gbps, us

KINDS = ("throughput", "use", "live", "waiting", "finished", "lost")
MAPS = ("heat", "links", "queues")
LABELS = {
    "throughput": "throughput per destination (Gb/s)", "use": "share of a destination's link", "live": "live flows",
    "waiting": "{unit} in queues", "finished": "finished flows", "lost": "{unit} lost",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity over time: at each moment, or over each interval around it."""

    time: np.ndarray  # ps
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    each: np.ndarray | None = None  # (moments, destinations), where there are several


def curve(result, kind: str) -> Curve:
    """One series of a result."""
    require(kind in KINDS, "a series", f"one of {', '.join(KINDS)}", kind)
    samples = result.observation.samples
    if len(samples.get("time_ps", ())) < 2:
        raise BadInput("a series must have at least two samples, not a run that was over before the first")
    if kind in ("throughput", "use"):
        return _rates(result, kind)
    time = samples["time_ps"]
    values = np.asarray(samples["finished" if kind == "live" else kind], np.float64)
    if kind == "live":
        values = np.searchsorted(np.sort(result.flows.start), time, side="right") - values
    return Curve(time, values, values, values)


def _rates(result, kind):
    samples = result.observation.samples
    time, count = _even(samples["time_ps"], samples["delivered_bytes"])
    at, rates = throughput.over_time(time, count)
    wanted = np.unique(result.flows.dst) if len(result.flows) else np.arange(rates.shape[1])
    each = rates[:, wanted] / (Gbps if kind == "throughput" else _best(result))
    return Curve(at, each.mean(axis=1), each.min(axis=1), each.max(axis=1), each)


def _even(time, count):
    """The samples without the one before the last where the last came soon after it: a rate over a moment is noise."""
    gaps = np.diff(time)
    if len(gaps) > 2 and gaps[-1] < gaps[:-1].max():
        keep = np.r_[0 : len(time) - 2, len(time) - 1]
        return time[keep], count[keep]
    return time, count


def _best(result) -> float:
    """b/s of payload on a link that is never idle."""
    fabric = _fabric(result, "use")
    return fabric.payload_rate or fabric.link


def _fabric(result, what):
    """The fabric of a result, described anew."""
    from weft.catalogue import rebuild_call

    try:
        return rebuild_call(result.provenance)[0]
    except WeftError:
        raise BadInput(f"{what} must be of a fabric that is installed here, or its links are not known") from None


@drawing.styled
def series(results, *, show="throughput", title=None, foot=None) -> drawing.Plot:
    """A quantity over time, a line per result, failures marked; `results` is a Result, or a dict of them by name."""
    fig, (ax,) = drawing.figure()
    data = []
    named = drawing.named(results)
    for k, (name, result) in enumerate(named):
        found, style = curve(result, show), drawing.bare_style(k)
        t = found.time / us
        if found.each is not None and found.each.shape[1] > 1:
            ax.fill_between(t, found.low, found.high, color=style["color"], alpha=0.15, linewidth=0)
        ax.plot(t, found.mean, **style, label=name)
        columns = zip(t.tolist(), found.mean.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
        data += [{"series": name, "time_us": a, show: b, "min": c, "max": d} for a, b, c, d in columns]
    _mark_failures(ax, [result for _, result in named])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("simulated time (µs)")
    ax.set_ylabel(LABELS[show].format(unit=named[0][1].observation.unit))
    drawing.finish(ax, title or f"{show.capitalize()} over time", legend=len(named) > 1)
    return drawing.with_foot(drawing.Plot(fig, data), foot)


@drawing.styled
def heat(result, *, title=None, foot=None) -> drawing.Plot:
    """How much each destination's link carried over time, a row per destination: where load and failures show."""
    found = curve(result, "use")
    each = found.mean[:, None] if found.each is None else found.each
    nodes = np.unique(result.flows.dst) if len(result.flows) else np.arange(each.shape[1])
    edges = np.concatenate([[0], (found.time[1:] + found.time[:-1]) / 2, [result.observation.now]])
    what = {
        "label": LABELS["use"],
        "rows": "destination",
        "column": "use",
        "title": title or "Use of destinations' links",
    }
    return _map(result, found.time, edges, [str(node) for node in nodes], each, most=1, foot=foot, **what)


@drawing.styled
def queues(result, *, title=None, foot=None) -> drawing.Plot:
    """What waits in each queue over time, a row per node, port or link: where load gathers."""
    time, names, each = queue_table(result)
    middle = (time[1:] + time[:-1]) / 2
    edges = np.concatenate([[time[0]], middle, [time[-1] + (time[-1] - time[-2]) / 2]])
    unit = result.observation.unit
    what = {"label": f"{unit} in the queue", "rows": "queue", "column": unit, "title": title or "Queues over time"}
    return _map(result, time, edges, names, each, most=None, foot=foot, **what)


@drawing.styled
def links(result, *, title=None, foot=None) -> drawing.Plot:
    """How long each link sent, of the time that passed, a row per link: where paths are shared badly."""
    time, names, each = link_table(result)
    what = {"label": "share of the time in which it sends", "rows": "link", "column": "use"}
    middle = (time[1:] + time[:-1]) / 2
    return _map(result, middle, time, names, each, most=1, foot=foot, title=title or "Use of links", **what)


def link_table(result) -> tuple[np.ndarray, list[str], np.ndarray]:
    """(moments in ps, names of links, share of the time from each moment to the next in which each link sends)."""
    time, names, busy = _table(result, "busy_ps", "links")
    time, busy = _even(time, busy)
    return time, names, np.diff(busy, axis=0) / np.diff(time)[:, None]


def queue_table(result) -> tuple[np.ndarray, list[str], np.ndarray]:
    """(moments in ps, names of queues, what waited: a row per moment and a column per queue)."""
    return _table(result, "queued", "queues")


def _table(result, column, what):
    samples = result.observation.samples
    if len(samples.get("time_ps", ())) < 2:
        raise BadInput("a series must have at least two samples, not a run that was over before the first")
    fabric = _fabric(result, what)
    names = bundle(fabric.lines() if what == "links" else fabric.queues())[1]
    if what == "links" and not names:
        raise BadInput(f"links must be those of a fabric that tells of them, not of {type(fabric).__name__}: "
                       f"{fabric.no_lines}")  # fmt: skip
    if not names:
        raise BadInput(f"{what} must be those of a fabric that has some, which {type(fabric).__name__} has not")
    if column not in samples:
        raise BadInput(f"{what} must be in the samples of a result, which one of an older version of weft lacks")
    each = samples[column]
    require(len(names) == each.shape[1], what, f"the {len(names)} that the fabric names", each.shape[1])
    return samples["time_ps"], names, each


def _map(result, time, edges, names, each, *, most, label, rows, column, title, foot):
    """A heat map: a row per name, a column per moment."""
    require(len(names) > 1, "a heat map", f"of several rows, each a {rows}", "one")
    fig, (ax,) = drawing.figure(height=4.0)
    drawn = ax.pcolormesh(edges / us, np.arange(len(names) + 1) - 0.5, each.T, cmap="viridis", vmin=0, vmax=most)
    fig.colorbar(drawn, ax=ax, label=label)
    _mark_failures(ax, [result])
    ax.grid(visible=False)
    ax.set_xlabel("simulated time (µs)")
    ax.set_ylabel(rows)
    places = range(len(names)) if len(names) <= 32 else np.linspace(0, len(names) - 1, 17).round().astype(int)
    ax.set_yticks(list(places), [names[k] for k in places], fontsize=7)
    drawing.finish(ax, title, legend=False)
    data = [
        {"time_us": moment, rows: name, column: value}
        for moment, line in zip((time / us).tolist(), each.tolist(), strict=True)
        for name, value in zip(names, line, strict=True)
    ]
    return drawing.with_foot(drawing.Plot(fig, data), foot)


def _mark_failures(ax, results):
    """A line where something fails, and another where it comes back."""
    plans = dict.fromkeys(str(result.fabric.get("fail") or "") for result in results)
    end = max(int(result.observation.now) for result in results) / us
    for plan in plans:
        for entry in entries(plan):
            what = " ".join(entry.words)
            for moment, word in ((entry.at, "fails"), (entry.until, "is back")):
                if moment is not None and moment / us <= end:
                    ax.axvline(moment / us, color="#B03A2E", linewidth=0.8, linestyle=(0, (2, 2)))
                    place = ax.get_xaxis_transform()
                    ax.text(moment / us, 0.99, f" {what} {word}", transform=place, rotation=90, va="top", fontsize=7,
                            color="#B03A2E")  # fmt: skip
