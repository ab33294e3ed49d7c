"""What Figs. 7 and 8 have in common: all-to-all transfers under TDMA and under TCP, and their flows' progress."""

from dataclasses import replace

import numpy as np

from weft.fabrics.tdma.fabric import TDMA
from weft.papers import Claim, at_paper_scale
from weft.papers.marks import said
from weft.papers.tdma import APART, HOSTS, SPREAD, TOGETHER, TRIP, carried, starts, tcp
from weft.units import GB, MB, s
from weft.workload import AllToAll, Flows

COLUMNS = ("system", "bytes", "ideal_s", "finish_s", "over_ideal", "first_flow", "slowest_half", "inside_s")
STEPS = 20  # moments at which progress is looked at


def rows(topology, scale, pods, seed=1) -> list[dict]:
    """A row per system: TDMA in both readings of the guard, and TCP with fewer bytes, which are packets there.

    inside_s is when the last flow within a switch was done, first_flow when the first of all was, as a share of the
    time; slowest_half is how much of the slowest flow had arrived after half of the time.
    """
    size = 10 * GB if at_paper_scale(scale) else 1 * GB
    out = []
    for name, inside in (("TDMA", False), ("TDMA, guard inside", True)):
        fabric = TDMA(nodes=HOSTS, topology=topology, pods=pods, inside=inside)
        flows = AllToAll(bytes=size).draw(nodes=HOSTS, link=fabric.link, seed=0)
        ideal = fabric.transfer(flows)
        core, progress = carried(fabric, flows, seed=seed, every=ideal // STEPS)
        out.append(_row(name, size, ideal, flows, core.state.finish, pods, progress))
    less = 400 * MB if at_paper_scale(scale) else 100 * MB
    out += [by_tcp(topology, less, 9000, pods, system, seed) for system in (TOGETHER, APART)]
    if at_paper_scale(scale):
        out.append(by_tcp(topology, 20 * MB, 1500, pods, APART, seed))
    return out


def by_tcp(topology, size, mtu, pods, system, seed=1, **other):
    """A row of TCP with fewer bytes, with the round trips of an idle network; flows begin at once, or within 1 ms.

    other: what the network has else than ours, as in `buffer=26`.
    """
    network = replace(tcp(topology, mtu), delay=TRIP // 4, **other)
    name = system + ("" if mtu == 9000 else f", {mtu} B")
    flows = AllToAll(bytes=size).draw(nodes=HOSTS, link=network.link, seed=0)
    begins = starts(len(flows), 0 if system == TOGETHER else SPREAD, seed)
    flows = Flows.of(nodes=HOSTS, src=flows.src, dst=flows.dst, size=flows.size, start=begins)
    ideal = TDMA(nodes=HOSTS, topology=topology, pods=pods).transfer(flows)
    run, progress, moment = network.prepare(flows, seed=seed), [], 0
    while run.finished < run.total:
        moment += ideal // STEPS
        run.advance(until=moment)
        got = np.zeros((HOSTS, HOSTS), np.int64)
        np.add.at(got, (flows.src, flows.dst), run.state.traffic["received"])
        progress.append((moment, got))
    return _row(name, size, ideal, flows, run.observe().finish, pods, progress)


def _row(name, size, ideal, flows, finish, pods, progress):
    finish = np.asarray(finish)
    end = int(finish.max())
    inside = flows.src // (HOSTS // pods) == flows.dst // (HOSTS // pods)
    half = next((got for moment, got in progress if moment >= end // 2), None)
    off = ~np.eye(HOSTS, dtype=bool)
    return {
        "system": name, "bytes": size, "ideal_s": ideal / s, "finish_s": end / s, "over_ideal": end / ideal,
        "first_flow": int(finish.min()) / end,
        "slowest_half": None if half is None else float(half[off].min() / size),
        "inside_s": int(finish[inside].max()) / s if pods > 1 else None,
        "progress": [(moment / ideal, got[off].min() / size, got[off].max() / size) for moment, got in progress],
    }  # fmt: skip


def lines(table, printed: dict[str, float]):
    """Progress of the slowest and the fastest flow under TDMA and TCP against time, as a share of the ideal time.

    printed: system -> when the text says that its last flow was done, over the ideal time it says.
    """
    from weft.report.plots import plot

    points = [
        {"time_over_ideal": moment, "share": share, "of": f"{row['system']}, {which}"}
        for row in table
        if row["system"] in ("TDMA", APART)
        for moment, slow, fast in row["progress"]
        for which, share in (("slowest flow", slow), ("fastest flow", fast))
    ]
    points += [{"time_over_ideal": over, "share": 1.0, "of": said(name)} for name, over in printed.items()]
    title = "share of a flow that has arrived"
    return plot(points, x="time_over_ideal", y="share", by="of", yscale="linear", title=title)


def pick(table, name):
    """The row of a system."""
    return next(row for row in table if row["system"] == name)


def finish(printed, ideal):
    """A check that TDMA takes `printed` seconds where links take `ideal`; scaled by the bytes that were sent."""

    def check(table):
        both = [pick(table, "TDMA"), pick(table, "TDMA, guard inside")]
        scale = both[0]["ideal_s"] / ideal
        ours = " and ".join(f"{row['finish_s']:.2f} s" for row in both)
        near = any(abs(row["finish_s"] / scale / printed - 1) < 0.005 for row in both)
        return near, f"{ours} (guard between and inside slots) where links need {both[0]['ideal_s']:.2f} s"

    return check


def ideal(printed):
    """A check of the ideal time."""

    def check(table):
        row = pick(table, "TDMA")
        return abs(
            row["ideal_s"] * 1e10 / row["bytes"] - printed
        ) < 0.5, f"{row['ideal_s'] * 1e10 / row['bytes']:.1f} s"

    return check


def against_tcp(printed):
    """A check of TCP's time; its transfer is smaller, so its ratio to the ideal time is compared."""

    def check(table):
        ratios = {row["system"]: row["over_ideal"] for row in table if row["system"].startswith("TCP")}
        ours = ", ".join(f"{name}: {ratio:.3f}" for name, ratio in ratios.items())
        near = any(abs(ratio / printed - 1) < 0.05 for ratio in ratios.values())
        return (
            "consistent" if near else False,
            f"time over ideal {ours}; printed {printed:.3f}; fewer bytes than printed",
        )

    return check


def better(printed=None):
    """A check that TDMA beats the TCP of hosts that nobody coordinates, by `printed` per cent within a third of it."""

    def check(table):
        mine = pick(table, "TDMA")["over_ideal"]
        both = {name: pick(table, name)["over_ideal"] for name in (APART, TOGETHER)}
        ours = ", ".join(f"{name}: {ratio:.3f}" for name, ratio in both.items())
        gain = 100 * (1 - mine / both[APART])
        good = gain > 0 if printed is None else abs(gain / printed - 1) <= 1 / 3
        return "consistent" if good else False, (
            f"TDMA {mine:.3f} of the ideal time, {ours}: {gain:.0f} % better than flows that nobody coordinates"
        )

    return check


def together(table):
    """Whether flows finish at the same time under TDMA and not under TCP."""
    first = {row["system"]: row["first_flow"] for row in table}
    ours = ", ".join(f"{name} {share:.3f}" for name, share in first.items())
    holds = first["TDMA"] > 0.9 and first[APART] < 0.9
    return holds, f"the first flow is done after this share of the time: {ours}"


__all__ = ["COLUMNS", "Claim", "against_tcp", "better", "by_tcp", "finish", "ideal", "lines", "rows", "together"]
