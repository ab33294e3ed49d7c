"""Pictures of results, each with its numbers beside it as csv; how they look is in `weft.drawing`."""

import numpy as np

from weft.drawing import (
    FORMATS,
    PALETTE,
    Plot,
    bare_style,
    figure,
    finish,
    from_zero,
    house_style,
    line_style,
    log_axis,
    named,
    styled,
    with_foot,
)  # fmt: skip
from weft.errors import BadInput, require
from weft.metrics import occupancy, statistics
from weft.report import keys
from weft.units import us

__all__ = [
    "FORMATS", "PALETTE", "Plot", "bare_style", "fct_and_goodput", "fct_cdf", "house_style", "line_style", "link_use",
    "panels", "plot", "queue_histogram",
]  # fmt: skip


@styled
def plot(rows, *, x, y, by=None, title=None, xscale="linear", yscale=None, band="range", foot=None) -> Plot:
    """`y` against `x` over a table of runs, a line for each value of `by`.

    rows are flat dicts (`Result.row()`); x, y and by are their keys, in short or in full; `by` may be a list of them.
    Runs that share x and `by`, such as seeds, become one point at their mean, and the legend says what else they differ
    in. `band` shades what the legend says: the "range" from their least to their greatest, "ci95", the 95 % interval
    of the mean, or "sd", one standard deviation to either side; False shades nothing. Runs in which y does not exist
    are left out. yscale is "linear" or "log"; by default log if the values span more than a factor 50. `foot` is said
    under the picture.
    """
    require(len(rows) > 0, "a table of runs", "at least one run", "empty")
    fig, axes = figure()
    data = _lines(axes[0], rows, x, y, by, band=band, xscale=xscale, yscale=yscale, title=title)
    return with_foot(Plot(fig, data), foot)


@styled
def fct_and_goodput(rows, *, x="load", by="fabric", tail="p99", title=None, band="range", foot=None) -> Plot:
    """Two panels against load: completion time of short flows, at `tail`, and mean goodput of long ones."""
    require(len(rows) > 0, "a table of runs", "at least one run", "empty")
    fig, axes = figure(panels=2)
    data = _lines(axes[0], rows, x, f"fct_us.short.{tail}", by, title="Short flows", legend=False, band=band)
    axes[0].set_ylabel(f"completion time, {tail} (µs)")
    data += _lines(axes[1], rows, x, "goodput_gbps.long.mean", by, title="Long flows", band=band)
    axes[1].set_ylabel("goodput, mean (Gb/s)")
    if title:
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return with_foot(Plot(fig, data), foot)


@styled
def panels(
    rows,
    *,
    x,
    ys,
    by=None,
    titles=None,
    labels=None,
    title=None,
    xscale="linear",
    band="range",
    ends=None,
    grid=None,
) -> Plot:
    """A panel for each of `ys`, against the same x and with the same lines; see `plot`.

    titles and labels: what stands above each panel and beside its y; labels may end in that of x. ends: for each of
    `ys` the columns of the lower and upper end of its band, where every row is a point that knows them. grid: one
    panel more, a number in each field: (rows, column of x, of y, of the number, title).
    """
    require(len(rows) > 0, "a table of runs", "at least one run", "empty")
    fig, axes = figure(panels=len(ys) + (grid is not None))
    data = []
    for k, (ax, y) in enumerate(zip(axes, ys, strict=grid is None)):
        above = titles[k] if titles else None
        known = ends[k] if ends else None
        data += _lines(ax, rows, x, y, by, xscale=xscale, band=band, title=above, legend=k == len(ys) - 1, ends=known)
        if labels:
            ax.set_ylabel(labels[k])
            ax.set_xlabel(labels[-1] if len(labels) > len(ys) else ax.get_xlabel())
    if grid:
        data += _fields(axes[-1], *grid)
    if title:
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return Plot(fig, data)


def _fields(ax, rows, x, y, value, title):
    """Draw a map of `value`, a field for each x and y that rows have, and return its points."""
    across, down = ([*dict.fromkeys(row[key] for row in rows)] for key in (x, y))
    table = np.full((len(down), len(across)), np.nan)
    for row in rows:
        table[down.index(row[y]), across.index(row[x])] = row[value]
    drawn = ax.imshow(table, cmap="viridis", aspect="auto", vmin=0)
    for (k, column), number in np.ndenumerate(table):
        if not np.isnan(number):
            light = drawn.norm(number) < 0.6
            ax.text(
                column, k, f"{number:.3g}", ha="center", va="center", fontsize=7, color="white" if light else "black"
            )
    ax.set_xticks(range(len(across)), [f"{one:g}" for one in across])
    ax.set_yticks(range(len(down)), down, fontsize=7)
    ax.grid(visible=False)
    ax.set_xlabel(keys.label(x))
    finish(ax, title, legend=False)
    return [{"y": value, y: row[y], x: row[x], "mean": row[value]} for row in rows]


@styled
def fct_cdf(results, *, smaller_than=None, larger_than=None, tail=False, title=None, points=400, foot=None) -> Plot:
    """Distribution of completion times; `results` is a Result, or a dict of them by name.

    `tail` draws the share of flows that take longer, on a logarithmic axis, so that the last per mille is seen too.
    `foot` is said under the picture.
    """
    fig, axes = figure()
    ax, data = axes[0], []
    for k, (name, result) in enumerate(named(results)):
        values, share = result.fct(smaller_than=smaller_than, larger_than=larger_than).cdf(points)
        if not len(values):
            continue
        t, height = (values[:-1] / us, 1 - share[:-1]) if tail else (values / us, share)  # none is slower than the last
        ax.step(t, height, where="post", **bare_style(k), label=name)
        if len(t):  # flows that all take the same are a line too
            ax.vlines(t[0], 1.0 if tail else 0.0, height[0], color=bare_style(k)["color"], linewidth=1.6)
        data += [{"series": name, "fct_us": a, "share": b} for a, b in zip(t.tolist(), height.tolist(), strict=True)]
    log_axis(ax, "x")
    ax.set_xlabel("flow completion time (µs)")
    if tail:
        log_axis(ax, "y")
        ax.set_ylabel("share of flows that take longer")
    else:
        ax.set_ylim(0, 1.02)
        ax.set_ylabel("share of flows")
    finish(ax, title or "Flow completion time", legend=len(data) and len(named(results)) > 1)
    return with_foot(Plot(fig, data), foot)


@styled
def queue_histogram(counts, *, title=None, xlabel="queue length (cells)") -> Plot:
    """Share of observations at each queue length; `counts` is an array (see `occupancy`), or a dict of them by name."""
    fig, axes = figure()
    ax, data = axes[0], []
    every = named(counts)
    for k, (name, count) in enumerate(every):
        count = np.asarray(count, np.int64)
        require(count.sum() > 0, "a histogram", "of at least one observation", "empty")
        count = count[: np.flatnonzero(count)[-1] + 1]
        share = count / count.sum()
        at, edges, style = np.arange(len(count)), np.arange(len(count) + 1) - 0.5, bare_style(k)
        ax.stairs(share, edges, baseline=None, **style, linewidth=1.6, label=name)
        if len(every) == 1:
            ax.stairs(share, edges, color=style["color"], fill=True, alpha=0.2)
            _mark_percentiles(ax, count)
        rows = zip(at.tolist(), count.tolist(), share.tolist(), strict=True)
        data += [{"series": name, "cells": a, "observations": b, "share": c} for a, b, c in rows]
    log_axis(ax, "y")
    ax.set_xlim(left=-0.5)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel(xlabel)
    ax.set_ylabel("share of observations")
    finish(ax, title or "Queue lengths", legend=len(every) > 1)
    return Plot(fig, data)


@styled
def link_use(cells, *, title=None) -> Plot:
    """What the cells on the links were good for, a bar per run; `cells` is a dict of cell counts by name of the run."""
    require(len(cells) > 0, "link use", "of at least one run", "empty")
    fig, axes = figure(height=1.1 + 0.42 * len(cells))
    ax, data = axes[0], []
    uses = {name: occupancy.link_use(count) for name, count in cells.items()}
    colours = {"useful": PALETTE[0], "forwarded": PALETTE[5], "dummy": "#DDDDDD"}
    inks = {"useful": "white", "forwarded": "#222222", "dummy": "#555555"}
    for row, (name, use) in enumerate(uses.items()):
        left = 0.0
        for part, share in use.items():
            share = share or 0.0
            ax.barh(row, share, left=left, height=0.66, color=colours[part], label=part if row == 0 else None)
            if share >= 0.06:
                text = f"{share:.0%}"
                ax.text(left + share / 2, row, text, ha="center", va="center", fontsize=8, color=inks[part])
            left += share
        data.append({"series": name, **use})
    ax.set_yticks(range(len(uses)), list(uses))
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.grid(axis="y", visible=False)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set_xlabel("share of cells on the links")
    ax.set_title(title or "Use of the links", pad=24)
    ax.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, handlelength=1.1, borderaxespad=0.3)
    return Plot(fig, data)


BANDS = {"range": "range", "ci95": "95 % interval of the mean", "sd": "standard deviation"}


def _lines(ax, rows, x, y, by, *, band="range", xscale="linear", yscale=None, title=None, legend=True, ends=None):
    """Draw the lines of `plot` and return their points."""
    for name, scale in (("xscale", xscale), ("yscale", yscale)):
        require(scale in (None, "linear", "log"), name, "linear or log", scale)
    band = "range" if band is True else band
    require(band is False or band in BANDS, "band", f"one of {', '.join(BANDS)}, or false", band)
    x, y, by = keys.axes(rows, x=x, y=y, by=by)
    groups: dict = {}
    for row in rows:
        if row.get(x) is not None and row.get(y) is not None:
            groups.setdefault(tuple(row.get(one) for one in by), {}).setdefault(row[x], []).append(row)
    if not groups:
        raise BadInput(f"at least one run must have both {x} and {y}, not none")
    means = [_span([row[y] for row in runs], False)[0] for points in groups.values() for runs in points.values()]
    least, greatest = min(means), max(means)
    log = yscale == "log" or (yscale is None and least > 0 and greatest > 50 * least)
    names = list(dict.fromkeys(at for points in groups.values() for at in points))
    rows_of_marks = any(isinstance(at, str) for at in names)  # fabrics, say: marks in a row, with no line between them
    data = []
    for k, (name, points) in enumerate(groups.items()):
        at = list(points) if rows_of_marks else sorted(points)
        if ends is None:
            spans = [_span([row[y] for row in points[here]], band) for here in at]
        else:
            spans = [tuple(points[here][0][one] for one in (y, *ends)) for here in at]
        mean, low, high = ([span[n] for span in spans] for n in range(3))
        floor = [least / 2 if log and value <= 0 else value for value in low]  # where such an axis may end
        style = {**line_style(k), "label": ", ".join(_say(one, value) for one, value in zip(by, name, strict=True))}
        colour = style["color"]
        if rows_of_marks:
            aside = 0.5 * ((k + 1) / (len(groups) + 1) - 0.5)
            where = [names.index(here) + aside for here in at]
            if band:
                ax.vlines(where, floor, high, color=colour, alpha=0.35, linewidth=3)
            ax.plot(where, mean, **{**style, "linestyle": "none"})
        else:
            if band and low != high:
                ax.fill_between(at, floor, high, color=colour, alpha=0.15, linewidth=0)
            ax.plot(at, mean, **style)
        drawn = {} if band in ("range", False) else {"band": band}
        for here, m, lo, hi in zip(at, mean, low, high, strict=True):
            of = dict(zip(by, name, strict=True)) if by else {"series": ""}
            point = {**of, x: here, "mean": m, "min": lo, "max": hi, "runs": len(points[here]), **drawn}
            data.append({"y": y, **point})
    if rows_of_marks:
        ax.set_xticks(range(len(names)), [str(name) for name in names])
        ax.set_xlim(-0.5, len(names) - 0.5)
        ax.grid(axis="x", visible=False)
    elif xscale == "log":
        log_axis(ax, "x", sorted(names))
    if log:
        log_axis(ax, "y")
        if least > 0 and min(point["min"] for point in data) <= 0:
            ax.set_ylim(bottom=least / 2)
    elif least >= 0:
        from_zero(ax)
    ax.set_xlabel(keys.label(x))
    ax.set_ylabel(keys.label(y))
    note = _note(groups, x, by, band) if band else None
    finish(ax, title, legend=legend and (len(groups) > 1 or note is not None), note=note)
    return data


def _span(values, band):
    """(mean, low, high) of what became one point."""
    found = statistics.estimate(values)
    if band == "ci95":
        return found.mean, *(found.ci95 or (found.mean, found.mean))
    if band == "sd":
        return found.mean, found.mean - (found.sd or 0), found.mean + (found.sd or 0)
    return found.mean, min(values), max(values)


def _note(groups, x, by, band):
    """What became one point: how many runs, and in what besides the seed they differ, lest an average hide it."""
    points = [runs for group in groups.values() for runs in group.values()]
    least, most = min(map(len, points)), max(map(len, points))
    if most == 1:
        return None
    told = tuple(one[: -len("name")] for one in (x, *by) if one in ("fabric.name", "workload.name"))
    differ = [
        key
        for key in dict.fromkeys(key for runs in points for run in runs for key in run)
        if key.startswith(("fabric.", "workload.")) and key not in (x, *by) and not key.startswith(told)
        and any(len({repr(run.get(key)) for run in runs}) > 1 for runs in points)
    ]  # fmt: skip
    if "fabric.name" in differ:
        differ = [key for key in differ if not key.startswith("fabric.") or key == "fabric.name"]
    count = f"{most} runs" if least == most else f"{least} to {most} runs"
    over = f"mean and {BANDS[band]} of {count}" if band != "ci95" else f"mean of {count} and its 95 % interval"
    shown = [keys.words(key) for key in differ]
    shown = [*shown[:4], f"{len(shown) - 4} more"] if len(shown) > 5 else shown
    return over + (f",\ndiffering in {', '.join(shown)}" if shown else "")


def _say(by, name):
    """A line's name; a number alone says little, so it comes with what it is a number of."""
    if isinstance(name, str) or by is None:
        return str(name)
    return f"{keys.words(by)} {name:g}" if isinstance(name, float) else f"{keys.words(by)} {name}"


def _mark_percentiles(ax, count):
    top = ax.get_xaxis_transform()
    for p, height in ((50, 0.98), (99, 0.88), (99.9, 0.78)):
        at = occupancy.percentile(count, p)
        ax.axvline(at, color="#888888", linewidth=0.8, linestyle=(0, (2, 2)))
        ax.text(at, height, f" p{p:g} = {at}", transform=top, va="top", fontsize=8, color="#333333")
