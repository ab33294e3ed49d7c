"""Time series of results: what there is to see, and pictures of it.

throughput   payload into each destination (Gb/s): the mean, in a band from the least to the greatest
use          the same as a share of what a link that is never idle carries
busy         how much of the time the links between nodes and switches send: the mean, in such a band
live         flows that have started and not finished
waiting      cells or packets in queues
finished, lost

Three are maps, with a row each: `heat`, the use of every destination's link, `links`, that of every link between nodes
and switches, and `queues`, what waits in every queue. Several results have a panel each, in one scale of colours.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft import drawing
from weft.engine.series import bundle
from weft.errors import BadInput, WeftError, require
from weft.failures import entries
from weft.metrics import throughput
from weft.units import Gbps, us

KINDS = ("throughput", "use", "busy", "live", "waiting", "finished", "lost")
MAPS = ("heat", "links", "queues")
PANELS = 6  # of a map at most
CLOSE = 0.04  # of a picture's width: labels nearer to each other do not stand side by side
LABELS = {
    "throughput": "throughput per destination (Gb/s)", "use": "share of a destination's link",
    "busy": "share of the time in which links send", "live": "live flows", "waiting": "{unit} in queues",
    "finished": "finished flows", "lost": "{unit} lost",
}  # fmt: skip

TITLES = {"use": "Use of destinations' links", "busy": "Use of links", "live": "Live flows", "waiting": "Queues"}
BANDS = {"throughput": "destination", "use": "destination", "busy": "link"}  # whose least and greatest a band shows


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity over time: at each moment, or over each interval around it."""

    time: np.ndarray  # ps
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    each: np.ndarray | None = None  # (moments, destinations or links), where there are several


def curve(result, kind: str) -> Curve:
    """One series of a result."""
    require(kind in KINDS, "a series", f"one of {', '.join(KINDS)}", kind)
    samples = result.observation.samples
    if len(samples.get("time_ps", ())) < 2:
        raise BadInput("a series must have at least two samples, not a run that was over before the first")
    if kind in ("throughput", "use"):
        return _rates(result, kind)
    if kind == "busy":
        time, _, each = link_table(result)
        return _band((time[1:] + time[:-1]) / 2, each)
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
    return _band(at, rates[:, wanted] / (Gbps if kind == "throughput" else _best(result)))


def _band(time, each):
    return Curve(time, each.mean(axis=1), each.min(axis=1), each.max(axis=1), each)


def _even(time, count):
    """The samples without the one before the last where the last came soon after it: a rate over a moment is noise."""
    gaps = np.diff(time)
    if len(gaps) > 2 and gaps[-1] < gaps[:-1].max():
        keep = np.r_[0 : len(time) - 2, len(time) - 1]
        return time[keep], count[keep]
    return time, count


def _best(result) -> float:
    """b/s of payload on a link that is never idle; of whole cells, where those are what was counted."""
    told = result.observation.throughput
    if told is not None:
        return told.best
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
    drawing.from_zero(ax)
    ax.set_xlabel("simulated time (µs)")
    ax.set_ylabel(LABELS[show].format(unit=named[0][1].observation.unit))
    drawing.finish(ax, title or f"{TITLES.get(show, show.capitalize())} over time", legend=len(named) > 1)
    if show in BANDS:
        note = f"line: mean; band: least and greatest {BANDS[show]}"
        ax.set_title(note, loc="right", fontsize=7, fontweight="normal", color="#666666")
    return drawing.with_foot(drawing.Plot(fig, data), foot)


@drawing.styled
def heat(results, *, title=None, foot=None) -> drawing.Plot:
    """How much each destination's link carried over time, a row per destination: where load and failures show."""
    what = {"label": LABELS["use"], "rows": "destination", "column": "use"}
    return _map(results, _heat_rows, most=1, foot=foot, title=title or "Use of destinations' links", **what)


def _heat_rows(result):
    time, names, each = heat_table(result)
    return Rows((time[1:] + time[:-1]) / 2, time, names, each)


@drawing.styled
def queues(results, *, title=None, foot=None) -> drawing.Plot:
    """What waits in each queue over time, a row per node, port or link: where load gathers."""
    units = list(dict.fromkeys(result.observation.unit for _, result in drawing.named(results)))
    unit = " or ".join(units)
    what = {"label": f"{unit} in the queue", "rows": "queue", "column": unit, "title": title or "Queues over time"}
    return _map(results, _queue_rows, most=None, foot=foot, **what)


def _queue_rows(result):
    time, names, each = queue_table(result)
    middle = (time[1:] + time[:-1]) / 2
    edges = np.concatenate([[time[0]], middle, [time[-1] + (time[-1] - time[-2]) / 2]])
    return Rows(time, edges, names, each)


@drawing.styled
def links(results, *, title=None, foot=None) -> drawing.Plot:
    """How long each link sent, of the time that passed, a row per link: where paths are shared badly."""
    what = {"label": "share of the time in which it sends", "rows": "link", "column": "use"}
    return _map(results, _link_rows, most=1, foot=foot, title=title or "Use of links", **what)


def _link_rows(result):
    time, names, each = link_table(result)
    return Rows((time[1:] + time[:-1]) / 2, time, names, each)


def heat_table(result) -> tuple[np.ndarray, list[str], np.ndarray]:
    """(moments in ps, destinations, share of its link that each was sent from each moment to the next)."""
    time = result.observation.samples["time_ps"]
    each = np.asarray(curve(result, "use").each)
    time = _even(time, time)[0]
    nodes = np.unique(result.flows.dst) if len(result.flows) else np.arange(each.shape[1])
    return time, [str(node) for node in nodes], each


def link_table(result) -> tuple[np.ndarray, list[str], np.ndarray]:
    """(moments in ps, names of links, share of the time from each moment to the next in which each link sends)."""
    time, names, busy = _table(result, "busy_ps", "links")
    time, busy = _even(time, busy)
    return time, names, np.diff(busy, axis=0) / np.diff(time)[:, None]


def queue_table(result) -> tuple[np.ndarray, list[str], np.ndarray]:
    """(moments in ps, names of queues, what waited: a row per moment and a column per queue)."""
    return _table(result, "queued", "queues")


def check(fabrics, kind) -> None:
    """Raise a sentence unless results of these fabrics can be drawn over time as this kind, a series or a map."""
    require(kind not in MAPS or len(fabrics) <= PANELS, "a map", f"of 1 to {PANELS} results", len(fabrics))
    what = {"busy": "links", "links": "links", "queues": "queues"}.get(kind)
    for fabric in dict.fromkeys(fabrics) if what else ():
        _places(fabric, what)


def _places(fabric, what):
    """Names of its links or queues; a sentence if it has none."""
    names, kind = fabric.lines() if what == "links" else fabric.queues(), type(fabric).__name__
    if what == "links" and not names:
        raise BadInput(f"links must be those of a fabric that tells of them, not of {kind}: {fabric.no_lines}")
    if not names:
        raise BadInput(f"{what} must be those of a fabric that has some, which {kind} has not")
    return names


def _table(result, column, what):
    samples = result.observation.samples
    if len(samples.get("time_ps", ())) < 2:
        raise BadInput("a series must have at least two samples, not a run that was over before the first")
    names = bundle(_places(_fabric(result, what), what))[1]
    if column not in samples:
        raise BadInput(f"{what} must be in the samples of a result, which one of an older version of weft lacks")
    each = samples[column]
    require(len(names) == each.shape[1], what, f"the {len(names)} that the fabric names", each.shape[1])
    return samples["time_ps"], names, each


class Rows(NamedTuple):
    """What one panel of a map shows."""

    time: np.ndarray  # ps, of each column
    edges: np.ndarray  # ps between columns, one more
    names: list[str]  # of rows
    each: np.ndarray  # (columns, rows)


def _map(results, rows_of, *, most, label, rows, column, title, foot):
    """Heat maps in one scale of colours, a panel per result: a row per name, a column per moment."""
    named = drawing.named(results)
    require(len(named) <= PANELS, "a map", f"of 1 to {PANELS} results", len(named))
    found = [rows_of(result) for _, result in named]
    fig, axes = drawing.figure(len(named), height=4.0 if len(named) == 1 else 2.8, down=True)
    most = most or max(1, *(one.each.max() for one in found))
    data = []
    for ax, (name, result), one in zip(axes, named, found, strict=True):
        places = np.arange(len(one.names) + 1) - 0.5
        drawn = ax.pcolormesh(one.edges / us, places, one.each.T, cmap="viridis", vmin=0, vmax=most)
        _mark_failures(ax, [result])
        ax.grid(visible=False)
        ax.set_ylabel(rows)
        _label_rows(ax, one.names, 32 if len(named) == 1 else 18)
        drawing.finish(ax, f"{title}: {name}" if len(named) > 1 else title, legend=False)
        which = {"series": name} if len(named) > 1 else {}
        data += [
            {**which, "time_us": moment, rows: row, column: value}
            for moment, line in zip((one.time / us).tolist(), one.each.tolist(), strict=True)
            for row, value in zip(one.names, line, strict=True)
        ]
    axes[-1].set_xlabel("simulated time (µs)")
    fig.colorbar(drawn, ax=axes, label=label)
    return drawing.with_foot(drawing.Plot(fig, data), foot)


def _label_rows(ax, names, room):
    """Name the rows, or some of them where there is no room for all."""
    many = len(names) if len(names) <= room else room // 2 + 1
    places = np.linspace(0, len(names) - 1, many).round().astype(int)
    ax.set_yticks(places.tolist(), [names[k] for k in places], fontsize=7)


def _mark_failures(ax, results):
    """A line where something fails, and another where it comes back; labels of close ones stand below each other."""
    from matplotlib.patheffects import withStroke

    plans = dict.fromkeys(str(result.fabric.get("fail") or "") for result in results)
    end = max(int(result.observation.now) for result in results)
    found = [
        (moment, f"{' '.join(entry.words)} {word}")
        for plan in plans
        for entry in entries(plan)
        for moment, word in ((entry.at, "fails"), (entry.until, "is back"))
        if moment is not None and moment <= end
    ]
    halo = [withStroke(linewidth=1.8, foreground="white")]  # or they could not be seen on a map
    place, lowest, before = ax.get_xaxis_transform(), 0, None
    for moment, said in sorted(found):
        lowest = lowest + 1 if before is not None and moment - before < CLOSE * end else 0
        before = moment
        style = {"color": "#B03A2E", "linewidth": 0.8, "linestyle": (0, (2, 2)), "path_effects": halo}
        ax.axvline(moment / us, **style)
        ax.text(moment / us, 0.99 - lowest % 3 / 3, f" {said}", transform=place, rotation=90, va="top", fontsize=7,
                color="#B03A2E", path_effects=halo)  # fmt: skip
