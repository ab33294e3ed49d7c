"""Tables for the terminal: one run, and many."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from weft.report import keys
from weft.units import NOTHING, show_size
from weft.units import show_number as number

_MAIN = (
    "offered.realised_load", "fct_us.short.p50", "fct_us.short.p99", "fct_us.short.p99.9", "goodput_gbps.long.mean",
    "throughput.fraction_of_link", "queue.max", "unfinished", "wall_s",
)  # fmt: skip


def run_table(result) -> Group:
    """One run: completion times by class of flow, and below it whatever else was measured."""
    summary = result if isinstance(result, dict) else result.summary()
    times = Table(title=Text(title(summary), style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0))
    times.add_column("flows")
    for name in ("number", "mean µs", "p50 µs", "p99 µs", "p99.9 µs", "max µs"):
        times.add_column(name, justify="right")
    slow = summary.get("slowdown")
    if slow:
        times.add_column("slowdown p50", justify="right")
        times.add_column("p99", justify="right")
    for name, fct in summary["fct_us"].items():
        if name not in summary["flows"]:
            continue
        row = [name, number(summary["flows"][name]), *(number(fct[k]) for k in ("mean", "p50", "p99", "p99.9", "max"))]
        if slow:
            row += [number(slow[name]["p50"], 3), number(slow[name]["p99"], 3)]
        times.add_row(*row)

    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts.add_column(style="dim")
    facts.add_column()
    for name, text in _facts(summary):
        facts.add_row(name, text)
    parts: list[RenderableType] = [Padding(facts, (1, 0, 0, 0))]
    if summary["finished"] + summary["unfinished"]:
        parts.insert(0, times)
    else:  # cells made inside a switch: no flows, no completion times
        parts.insert(0, Text(title(summary), style="bold"))
    notes = summary.get("notes", [])
    parts += [Text(f"note: {note}", style="yellow") for note in notes]
    return Group(*parts)


def title(summary: dict) -> str:
    """What was run, in a line: `Shoal, 64 nodes, Poisson at load 0.6, seed 1`."""
    fabric, workload = summary["fabric"], summary["workload"]
    nodes = fabric.get("nodes") or fabric.get("ports") or fabric.get("hosts")
    load = f" at load {number(workload['load'])}" if workload.get("load") is not None else ""
    size = f", {number(nodes)} nodes" if nodes else ""
    return f"{fabric.get('kind', 'fabric')}{size}, {workload.get('kind', 'workload')}{load}, seed {summary['seed']}"


def _facts(summary):
    offered, through = summary["offered"], summary["throughput"]
    if offered.get("realised_load") is not None:
        asked = f", {number(offered['nominal_load'])} asked for" if offered["nominal_load"] is not None else ""
        yield "load", f"{number(offered['realised_load'])} realised{asked}, of {number(offered['load_rate_gbps'])} Gb/s"
    good = summary["goodput_gbps"]["long"]["mean"]
    if good is not None:
        yield "goodput of long flows", f"{number(good)} Gb/s mean"
    each = through["per_destination_gbps"]
    if each["mean"] is not None:
        text = f"{number(each['mean'])} Gb/s mean, {number(each['min'])} to {number(each['max'])}"
        part = through["fraction_of_link"]
        of_link = f"; {part:.1%} of the link" if part is not None else ""
        yield "throughput per destination", f"{text}{of_link}, {through['window']}"
    queue, lost = summary["queue"], summary["lost"]
    if queue["max"] is not None:
        sizes = f" ({show_size(queue['max_bytes'])})" if queue["max_bytes"] is not None else ""
        node = f", {number(queue['max_node'])} in all queues of a node" if queue["max_node"] is not None else ""
        yield "queues", f"{number(queue['max'])} {queue['unit']}{sizes} at most{node}"
    causes = ", ".join(f"{number(n)} {cause.replace('_', ' ')}" for cause, n in lost["causes"].items() if n)
    broken = f"; {number(lost['flows'])} flows will never finish" if lost["flows"] else ""
    yield "lost", f"{number(lost['total'])} {lost['unit']}" + (f" ({causes})" if causes else "") + broken
    yield from _own(summary)
    monitors = summary["monitors"]
    if monitors:
        broken = {name: times for name, times in monitors.items() if times}
        told = ", ".join(f"{name} broken {number(times)} times" for name, times in broken.items())
        yield "monitors", told or f"all {len(monitors)} held"
    if summary["finished"] + summary["unfinished"]:
        yield "flows", f"{number(summary['finished'])} finished, {number(summary['unfinished'])} not"
    yield "simulated", f"{number(summary['simulated_ns'] / 1000)} µs"
    rates = [f"{number(v / 1e6)} M {k.removesuffix('_per_s').replace('_', ' ')}/s"
             for k, v in summary["rate"].items() if k.endswith("_per_s") and v is not None]  # fmt: skip
    took = [f"{number(summary['wall_s'], 3)} s"] if summary["wall_s"] is not None else []
    memory = [f"{number(summary['peak_rss_mb'], 3)} MB"] if summary["peak_rss_mb"] is not None else []
    yield "took", ", ".join([*took, *memory, *rates]) or NOTHING
    if summary["fingerprint"]:
        yield "fingerprint", summary["fingerprint"]


def _own(summary):
    """What the room itself has to say, if it is there to be asked."""
    from weft.catalogue import class_of
    from weft.errors import BadResult, WeftError

    for what in ("workload", "fabric"):
        try:
            cls = class_of(summary[what], what)
        except WeftError:  # somebody else's, which is not installed here
            continue
        try:
            yield from cls.facts(summary)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as problem:
            raise BadResult(
                f"what {cls.__name__} says of a run must be as it was written, not changed ({problem!r:.60})"
            ) from None


def runs_table(rows: list[dict], columns=None) -> Table:
    """Many runs, a row each. `columns` are keys, short or full; by default what differs, then the main metrics."""
    chosen = _chosen(rows, columns)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for key in chosen:
        numeric = all(not isinstance(row.get(key), str) for row in rows)
        table.add_column(keys.label(key, short=True), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(number(row.get(key)) for key in chosen))
    windows = dict.fromkeys(row["throughput.window"] for row in rows if row.get("throughput.window"))
    if windows and any(key.startswith("throughput.") for key in chosen):
        table.caption, table.caption_justify = Text(f"throughput is {' or '.join(windows)}", style="dim"), "left"
    return table


def runs_cells(rows: list[dict], columns=None) -> tuple[list[str], list[list[str]]]:
    """(heads, rows of texts) of the same table."""
    chosen = _chosen(rows, columns)
    return [keys.label(key, short=True) for key in chosen], [[number(row.get(key)) for key in chosen] for row in rows]


def _chosen(rows, columns):
    return [keys.find(rows, key) for key in columns] if columns is not None else usual(rows)


def usual(rows: list[dict]) -> list[str]:
    """The columns that are shown unless told: what differs, then the main metrics."""
    known = list(dict.fromkeys(k for row in rows for k in row))
    asked = [k for k in known if k.startswith(("fabric.", "workload.")) or k == "seed"]
    asked = [k for k in asked if not k.endswith(".class")]  # the kind says it, shorter
    for what in ("fabric.", "workload."):  # of one kind, what differs; of several, what they are called
        if what + "name" in known:
            several = len({row.get(what + "kind") for row in rows}) > 1
            asked = [k for k in asked if not k.startswith(what) or (k == what + "name") == several]
    varies = [k for k in asked if len({repr(row.get(k)) for row in rows}) > 1]
    measured = [k for k in _MAIN if any(row.get(k) is not None for row in rows)]
    return [*varies, *measured] or known[:8]
