"""Shoal, Fig. 15's baselines under other readings: windows, marks, pauses and NICs that §7.3 does not settle.

§7.3 says in one sentence that "DCTCP and DCQCN use standard ECMP routing, with the congestion window size of 35
packets", and in the next that NDP has an *initial* window of 35. So Fig. 15 takes 35 packets as the most that either
has under way. Here stand beside it: 35 as the first window, which then doubles every round trip until a mark comes; 35
as the first window and the end of slow start, so that it grows by a packet a round trip; what the simulator that §7.3
is based on, the NDP package, calls `-cwnd`, the end of slow start of flows that begin with 10 packets; 35 as the most
that those have under way; a NIC that takes flows in turn instead of first come, first served; and other thresholds of
marks and of pauses, which are not printed at all. That package has no DCQCN, only DCTCP over queues without loss, so
that is one more reading of DCQCN.
"""

from weft.papers import Claim, Series
from weft.papers.marks import marks_only, said
from weft.papers.shoal import fig15, rack
from weft.study import Study

COLUMNS = ("reading", "load", "mean_us", "p99.9_us", "goodput_gbps", "shoal_mean_over", "tail_over_shoal")
SERIES = tuple(Series("load", y, "reading") for y in COLUMNS[2:])
OFFERED = (10, 30, 50)  # Gb/s a node: loads 0.2, 0.6 and 1 of 50
DCTCP, DCQCN, NDP = fig15.BASELINES.values()
LINEAR = "dctcp@shoal-nsdi19:initial_window=35,threshold=35"
PACKAGE = "dctcp@shoal-nsdi19:initial_window=10,threshold=35"
NO_LOSS = "queue=lossless,xoff=100,xon=97"  # what the NDP package has for DCQCN is DCTCP over such queues
READINGS = {
    "DCTCP": DCTCP,
    "DCTCP, 35 at first": "dctcp@shoal-nsdi19",
    "DCTCP, 35, then linear": LINEAR,
    "DCTCP, 10 at first": PACKAGE,  # the NDP package's -cwnd 35
    "DCTCP, 10 up to 35": "dctcp@shoal-nsdi19:initial_window=10,max_window=35",
    "DCTCP, flows in turn": f"{DCTCP},nic=fair",
    "DCTCP, marks from 15": f"{DCTCP},mark_from=15",  # the NDP package's
    "DCTCP, marks from 65": f"{DCTCP},mark_from=65",  # SIGCOMM '10 §4, at 10 Gb/s
    "DCQCN": DCQCN,
    "DCQCN, 35 at first": f"{DCQCN}:max_window=1024",
    "DCQCN, later marks": f"{DCQCN}:mark_from=15,mark_all=665",  # five times SIGCOMM '15 §5.3's
    "DCQCN, later pauses": f"{DCQCN}:xoff=100,xon=97",  # when §7.3's whole queue is full of one port's packets
    "DCQCN, as 35 and linear": f"{LINEAR},{NO_LOSS}",
    "DCQCN, as 10 at first": f"{PACKAGE},{NO_LOSS}",
    "NDP": NDP,
    "NDP, flows in turn": f"{NDP}:nic=fair",
}
PRINTED = fig15.PRINTED


def study(scale="small"):
    """Shoal and every reading under the same flows, at three loads."""
    nodes, flows = fig15.size(scale)
    workloads = fig15.flows_of(OFFERED, flows)
    fabrics = [rack(nodes), *(fig15.network(nodes, transport) for transport in READINGS.values())]
    return Study(fabrics=fabrics, workloads=workloads, seeds=[1], title="Shoal, Fig. 15, other readings")


def measure(runs):
    """A row per run of a packet network, with Shoal's mean over its mean and its tail over Shoal's."""
    names = {transport: name for name, transport in READINGS.items()}
    found = [(names.get(run.get("fabric.transport"), "Shoal"), row)
             for row, run in zip(fig15.measure(runs), runs.rows, strict=True)]  # fmt: skip
    own = {row["load_50"]: row for reading, row in found if reading == "Shoal"}
    table = []
    for reading, row in found:
        shoal = own[row["load_50"]]
        table.append({
            "reading": reading, "nodes": row["nodes"], "load": row["load_50"],
            **{key: row[key] for key in ("mean_us", "p99.9_us", "goodput_gbps")},
            "shoal_mean_over": shoal["mean_us"] / row["mean_us"],
            "tail_over_shoal": row["p99.9_us"] / shoal["p99.9_us"],
        })  # fmt: skip
    return sorted(table, key=lambda row: ["Shoal", *READINGS].index(row["reading"]))


def draw(table):
    """The tail over Shoal's, reading by reading."""
    from weft.report.plots import plot

    rows = [{**row, "p99.9 over Shoal's": row["tail_over_shoal"]} for row in table if row["reading"] != "Shoal"]
    for name, factors in PRINTED.items():
        ends = zip((0.2, 1.0), factors, strict=True)
        rows += [{"load": load, "p99.9 over Shoal's": factor, "reading": said(name)} for load, factor in ends]
    title = f"Fig. 15's baselines, {table[0]['nodes']} nodes"
    drawn = plot(rows, x="load", y="p99.9 over Shoal's", by="reading", yscale="log", title=title)
    return marks_only(drawn, *map(said, PRINTED))


def _tail(reading):
    """Within a third of the printed factors, as in Fig. 15."""

    def check(table):
        at = {row["load"]: row for row in table if row["reading"] == reading}
        low, high = PRINTED[reading.partition(",")[0]]
        holds = all(abs(at[load]["tail_over_shoal"] / times - 1) <= 1 / 3 for load, times in ((0.2, low), (1, high)))
        ours = f"{at[0.2]['tail_over_shoal']:.2f}x at load 0.2, {at[1]['tail_over_shoal']:.2f}x at 1; Shoal's mean is "
        ours += f"{at[0.2]['shoal_mean_over']:.2f} and {at[0.6]['shoal_mean_over']:.2f} times its at 0.2 and 0.6"
        return "consistent" if holds else False, ours

    return check


CLAIMS = [
    Claim("shoal.c32", f"the tail is {low}x and {high}x Shoal's at low and high load: {reading}", _tail(reading))
    for reading in READINGS
    for low, high in (PRINTED[reading.partition(",")[0]],)
]
