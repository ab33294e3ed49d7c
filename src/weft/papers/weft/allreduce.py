"""All-reduce over Shoal, a crossbar and packet networks at the same links: how far from what the links allow?

Ring and hierarchical all-reduce of 1 MB to 1 GB at every node (64 MB on the small scale), every fabric with links of
100 Gb/s, 10 ns of cable (2 m) and packets of 4096 bytes. `over` is the time over the largest of the bounds: what links
and headers take, and the longest chain of flows if each were alone. `met` is the ring in the order in which the
schedule of a Shoal rack lets nodes meet, and `gain` the time that saves.
"""

from weft.fabrics.crossbar.fabric import Crossbar
from weft.fabrics.packet import Packet
from weft.fabrics.shoal import Shoal
from weft.links import fair
from weft.papers import Claim, Series, at_paper_scale
from weft.study import Study
from weft.units import MB, Gbps, ns, us
from weft.workload import AllReduce

COLUMNS = (
    "system", "mb", "ring_us", "hierarchical_us", "bandwidth_us", "latency_us", "ring_over", "hierarchical_over",
    "ring_gbps", "met_us", "gain",
)  # fmt: skip
SERIES = (Series("mb", "ring_us", "system"), Series("mb", "ring_over", "system"),
          Series("mb", "hierarchical_over", "system"))  # fmt: skip
TRANSPORTS = ("ndp", "dctcp", "dcqcn")
LINK = {"rate": 100 * Gbps, "propagation": 10 * ns, "mtu": 4096}


def scaled(scale):
    """(nodes, nodes of a group, sizes in MB)."""
    return (32, 8, (1, 10, 100, 1000)) if at_paper_scale(scale) else (16, 4, (1, 4, 16, 64))


def fabrics(nodes):
    """The systems, by name."""
    packets = {name.upper(): Packet(hosts=nodes, topology="single", transport=name) for name in TRANSPORTS}
    some = {"Shoal": Shoal(nodes=nodes), "crossbar": Crossbar(ports=nodes), **packets}
    return dict(zip(some, fair(*some.values(), **LINK), strict=True))


def study(scale="small"):
    """Every system with every size and algorithm, and rings in the order of Shoal's schedule."""
    nodes, group, sizes = scaled(scale)
    shapes = [{"algorithm": "ring"}, {"algorithm": "hierarchical"}, {"algorithm": "ring", "order": "mirrored"}]
    loads = [AllReduce(bytes=round(size * MB), group=group, **shape) for size in sizes for shape in shapes]
    return Study(fabrics=list(fabrics(nodes).values()), workloads=loads, seeds=[1], title="All-reduce")


def measure(runs):
    """A row per system and size."""
    names = {_key(fabric): name for name, fabric in fabrics(_nodes(runs.rows[0])).items()}
    found: dict = {}
    for row in runs.rows:
        kind = "met" if row["workload.order"] != "index" else row["workload.algorithm"]
        found.setdefault((names[_row_key(row)], row["workload.bytes"] / MB), {})[kind] = row
    table = []
    for (system, mb), by in found.items():
        ring, other, met = by["ring"], by["hierarchical"], by["met"]
        step = "collective.step_us.mean"
        table.append({
            "system": system,
            "mb": mb,
            "ring_us": ring[step],
            "hierarchical_us": other[step],
            "bandwidth_us": ring["collective.bounds_us.bandwidth"],
            "latency_us": ring["collective.bounds_us.latency"],
            "ring_over": ring["collective.over_bound"],
            "hierarchical_over": other["collective.over_bound"],
            "ring_gbps": ring["collective.bus_gbps"],
            "met_us": met[step],
            "gain": 1 - met[step] / ring[step],
            "nodes": _nodes(ring),
        })  # fmt: skip
    return table


def _nodes(row):
    return next(row[f"fabric.{name}"] for name in ("nodes", "ports", "hosts") if row.get(f"fabric.{name}"))


def _key(fabric):
    return type(fabric).__name__, getattr(fabric, "transport", None) if isinstance(fabric, Packet) else None


def _row_key(row):
    return row["fabric.kind"], row["fabric.transport"] if row["fabric.kind"] == "Packet" else None


def draw(table):
    """The ring's time beside that of bare links, and both algorithms over their bounds."""
    from weft.report.plots import panels

    bare = [
        {
            "system": "links, no headers",
            "mb": mb,
            "ring_us": AllReduce(bytes=round(mb * MB)).bound(n, LINK["rate"]) / us,
        }
        for n, mb in {(row["nodes"], row["mb"]) for row in table}
    ]
    return panels(
        [*table, *bare], x="mb", ys=("ring_over", "hierarchical_over", "ring_us"), by="system", xscale="log",
        titles=("Ring", "Hierarchical", "Ring, in µs"), title="All-reduce",
        labels=("times its bound", "times its bound", "step (µs)", "buffer of a node (MB)"),
    )  # fmt: skip


def _bounds(table):
    least = min(row[f"{kind}_over"] for row in table for kind in ("ring", "hierarchical"))
    return least >= 1, f"at least {least:.4f} times its bound"


def _close(table):
    largest = max(row["mb"] for row in table)
    over = {row["system"]: row["ring_over"] for row in table if row["mb"] == largest}
    said = ", ".join(f"{name} {value:.3f}" for name, value in over.items())
    return max(over.values()) < 1.1, f"at {largest:g} MB a ring takes, over its bound: {said}"


def _hierarchical(table):
    least = min(row["mb"] for row in table)
    shares = {r["system"]: r["hierarchical_us"] / r["ring_us"] for r in table if r["mb"] == least}
    said = ", ".join(f"{name} {value:.3f}" for name, value in shares.items())
    return max(shares.values()) < 1, f"at {least:g} MB, hierarchical over ring: {said}"


def _order(table):
    gains = {row["mb"]: row["gain"] for row in table if row["system"] == "Shoal"}
    said = ", ".join(f"{gain:+.2%} at {mb:g} MB" for mb, gain in gains.items())
    return min(gains.values()) > 0.01, f"time saved by the order of the schedule: {said}"


CLAIMS = [
    Claim("weft.allreduce.1", "no fabric is faster than its bound", _bounds, scaled=False),
    Claim("weft.allreduce.2", "with large buffers a ring comes within 10 % of its bound on every fabric", _close),
    Claim("weft.allreduce.3", "with small buffers a hierarchical all-reduce is faster than a ring", _hierarchical),
    Claim("weft.allreduce.4", "on Shoal a ring in the order in which the schedule meets nodes saves 1 %", _order),
]
