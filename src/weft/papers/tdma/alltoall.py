"""What Figs. 7 and 8 have in common: all-to-all transfers under TDMA and under TCP, and their flows' progress."""

import numpy as np

from weft.fabrics.tdma.fabric import TDMA
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.tdma import HOSTS, carried, tcp
from weft.units import GB, MB, s
from weft.workload import AllToAll

COLUMNS = ("system", "bytes", "ideal_s", "finish_s", "over_ideal", "first_flow", "slowest_half", "inside_s")
SERIES = (Series("time", "share_slowest", "system"), Series("time", "share_fastest", "system"))
STEPS = 20  # moments at which progress is looked at


def rows(topology, scale, pods) -> list[dict]:
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
        core, progress = carried(fabric, flows, every=ideal // STEPS)
        out.append(_row(name, size, ideal, flows, core.state.finish, pods, progress))
    out.append(_tcp(topology, 100 * MB, 9000, pods))
    if at_paper_scale(scale):
        out.append(_tcp(topology, 20 * MB, 1500, pods))
    return out


def _tcp(topology, size, mtu, pods):
    import weft

    network = tcp(topology, mtu)
    result = weft.run(network, AllToAll(bytes=size), seed=1)
    flows = AllToAll(bytes=size).draw(nodes=HOSTS, link=network.link, seed=0)
    ideal = TDMA(nodes=HOSTS, topology=topology, pods=pods).transfer(flows)
    return _row(f"TCP, {mtu} B", size, ideal, flows, result.observation.finish, pods, [])


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
        "progress": [(moment / s, got[off].min() / size, got[off].max() / size) for moment, got in progress],
    }  # fmt: skip


def lines(table):
    """Progress of the slowest and the fastest flow of each TDMA system against time."""
    from weft.report.plots import plot

    points = [
        {"time_s": moment, "share": share, "of": f"{row['system']}, {which}"}
        for row in table
        for moment, slow, fast in row["progress"]
        for which, share in (("slowest flow", slow), ("fastest flow", fast))
    ]
    return plot(points, x="time_s", y="share", by="of", title="share of a flow that has arrived")


def pick(table, name):
    """The row of a system."""
    return next(row for row in table if row["system"] == name)


def finish(printed, ideal):
    """A check that TDMA takes `printed` seconds where links take `ideal`; scaled by the bytes that were sent."""

    def check(table):
        both = [pick(table, "TDMA"), pick(table, "TDMA, guard inside")]
        scale = both[0]["ideal_s"] / ideal
        said = " and ".join(f"{row['finish_s']:.2f} s" for row in both)
        near = any(abs(row["finish_s"] / scale / printed - 1) < 0.005 for row in both)
        return near, f"{said} (guard between and inside slots) where links need {both[0]['ideal_s']:.2f} s"

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
        said = ", ".join(f"{name}: {ratio:.3f}" for name, ratio in ratios.items())
        near = any(abs(ratio / printed - 1) < 0.05 for ratio in ratios.values())
        return (
            "consistent" if near else False,
            f"time over ideal {said}; printed {printed:.3f}; fewer bytes than printed",
        )

    return check


def slower(table):
    """Whether TDMA beats TCP."""
    mine = pick(table, "TDMA")["over_ideal"]
    best = min(row["over_ideal"] for row in table if row["system"].startswith("TCP"))
    return "consistent" if mine < best else False, f"TDMA {mine:.3f} of the ideal time, the better TCP {best:.3f}"


def together(table):
    """Whether flows finish at the same time under TDMA and not under TCP."""
    first = {row["system"]: row["first_flow"] for row in table}
    said = ", ".join(f"{name} {share:.3f}" for name, share in first.items())
    holds = first["TDMA"] > 0.9 and all(share < 0.9 for name, share in first.items() if name.startswith("TCP"))
    return holds, f"the first flow is done after this share of the time: {said}"


__all__ = ["COLUMNS", "SERIES", "Claim", "against_tcp", "finish", "ideal", "lines", "rows", "slower", "together"]
