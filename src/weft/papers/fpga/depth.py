"""How deep virtual output queues must be for no cell to be lost, at every load (IV-A4: 40 for iSLIP, 16 for GCQ)."""

from weft.fabrics.crossbar import Crossbar
from weft.papers.fpga import Claim, Run, check_scale, measure
from weft.papers.marks import marks_only, said
from weft.workload.traffic import Bernoulli

COLUMNS = ("name", "ports", "load", "slots", "depth")
LOADS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
PORTS = (8, 16, 32, 64)
DEEP = 1_000_000
DEEPEST = 64  # to which GCQ is searched; one more stands for all beyond it


def study(scale="small"):
    """iSLIP with queues without bound: its fullest queue is the depth without loss. GCQ is searched by `search`."""
    paper = check_scale(scale)
    slots = 1_000_000 if paper else 100_000
    runs = []
    for n in PORTS:
        for name, iterations in (("islip, 1", 1), ("islip, log2 N", n.bit_length() - 1)):
            span = slots if iterations == 1 else slots // 4
            for load in LOADS:
                labels = {"name": name, "ports": n, "load": load, "slots": span}
                fabric = Crossbar(ports=n, iterations=iterations, depth=DEEP)
                runs.append(Run(labels, fabric, Bernoulli(load=load, slots=span)))
    return runs


def search(scale="small", **keeping) -> list[dict]:
    """The table: what the queues of iSLIP came to hold, and the least depth with which GCQ loses no cell."""
    rows = [{**row, "depth": row["queue_max"]} for row in measure(study(scale), **keeping)]
    slots = 200_000 if check_scale(scale) else 20_000
    return rows + least(slots, [(n, load) for n in PORTS for load in LOADS], **keeping)


def least(slots, cases, **keeping) -> list[dict]:
    """A row per (ports, load): the least depth with which a run of GCQ loses no cell, all found by halving at once."""
    found, tried = dict.fromkeys(cases, (1, DEEPEST + 1)), {}  # the least lies between the two, these included
    while unsure := [(case, *span) for case, span in found.items() if span[0] < span[1]]:
        runs = [_attempt(n, load, slots, (low + high) // 2) for (n, load), low, high in unsure]
        for (case, low, high), row in zip(unsure, measure(runs, **keeping), strict=True):
            found[case] = (row["depth"] + 1, high) if row["lost"] else (low, row["depth"])
            tried[*case, row["depth"]] = row
    least = [(*case, low) for case, (low, _) in found.items()]
    return [tried.get((n, load, low)) or _attempt(n, load, slots, low).labels for n, load, low in least]


def _attempt(n, load, slots, depth) -> Run:
    """A run of GCQ with queues of a depth."""
    labels = {"name": "gcq", "ports": n, "load": load, "slots": slots, "depth": depth}
    return Run(labels, Crossbar(ports=n, buffers="gcq", depth=depth), Bernoulli(load=load, slots=slots))


def draw(table):
    """Depth without loss against load, 32 ports."""
    from weft.report.plots import plot

    rows = [row for row in table if row["ports"] == 32]
    names = {said("islip"): 40, said("gcq"): 16}  # of no load in particular: at both ends of ours
    rows += [
        {"load": at, "depth": depth, "name": name} for name, depth in names.items() for at in (LOADS[0], LOADS[-1])
    ]
    drawn = plot(rows, x="load", y="depth", by="name", yscale="log", title="Depth without loss, 32 ports")
    return marks_only(drawn, *names)


def _islip(name):
    """Needed is both: 40 last up to load 0.9, and there is a load here at which 39 do not."""

    def check(table):
        enough, most = {}, {}
        for n in PORTS:
            held = {row["load"]: row["depth"] for row in table if row["name"] == name and row["ports"] == n}
            enough[n] = max((load for load, depth in held.items() if depth <= 40), default=0)
            most[n] = max(held.values(), default=0)
        lasts = ", ".join(f"{load} ({n} ports)" for n, load in enough.items())
        ours = f"40 cells last up to load {lasts}; at the highest load queues hold {min(most.values()):,} or more"
        return all(load >= 0.9 for load in enough.values()) and min(most.values()) >= 40, ours

    return check


def _gcq(table):
    worst = max((row for row in table if row["name"] == "gcq"), key=lambda row: row["depth"])
    return worst["depth"] <= 16, f"{worst['depth']} at {worst['ports']} ports, load {worst['load']}"


CLAIMS = [
    Claim("fpga.c14", "VOQ depth 40 is needed for no loss with iSLIP: one iteration, to load 0.9", _islip("islip, 1")),
    Claim("fpga.c14", "the same with log2 N iterations", _islip("islip, log2 N")),
    Claim("fpga.c14", "a VOQ depth of 16 is sufficient with GCQ, at every load here", _gcq),
]
