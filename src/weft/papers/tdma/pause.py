"""TDMA, Figs. 1, 2 and 5: the delay of pausing against the size of packets, by the model of hosts, not by hardware."""

from weft.fabrics.tdma.hosts import NIC, SOFTWARE, pause_delay
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import said
from weft.units import Gbps, ms, us
from weft.wire.pfc import LONGEST_QUANTA, quantum

COLUMNS = ("signal", "packet", "least_us", "mean_us", "most_us", "deviation_us")
SERIES = (Series("packet", "mean_us", "signal"),)
PACKETS = (64, 512, 1500, 3000, 4500, 6000, 9000)


def table(scale="small"):
    """A row per kind of reaction and size of packets: from a frame to the end of the last packet."""
    count = 100_000 if at_paper_scale(scale) else 10_000
    out = []
    for signal, reaction in (("802.3x, NIC", NIC), ("PFC, software", SOFTWARE)):
        for packet in PACKETS:
            delays = pause_delay(reaction, packet, count=count) / us
            out.append({"signal": signal, "packet": packet, "least_us": delays.min(), "mean_us": delays.mean(),
                        "most_us": delays.max(), "deviation_us": delays.std()})  # fmt: skip
    return out


def draw(table):
    """The mean delay against the size of packets."""
    from weft.report.plots import plot

    ends = {"802.3x, NIC, least": 2, "802.3x, NIC, most": 6, "PFC, software, least": 100, "PFC, software, most": 200}
    rows = [{"packet": PACKETS[0], "mean_us": time, "signal": said(name)} for name, time in ends.items()]
    return plot([*table, *rows], x="packet", y="mean_us", by="signal", title="delay before pausing (model)")


def _nic(table):
    """The model draws what is printed; all that can be wrong is the drawing."""
    row = table[0]
    within = row["least_us"] >= 2 and row["most_us"] <= 6.1  # a packet of 64 B on its way takes 0.07 us
    said = f"{row['least_us']:.2f} to {row['most_us']:.2f} us with packets of 64 B, drawn so"
    return "printed" if within else False, said


def _linear(table):
    own = [row for row in table if row["signal"].startswith("802.3x")]
    first, last = own[0], own[-1]
    slope = (last["mean_us"] - first["mean_us"]) / (last["packet"] - first["packet"])
    off = max(abs(row["mean_us"] - first["mean_us"] - slope * (row["packet"] - first["packet"])) for row in own)
    said = f"{slope * 1000:.2f} ns per byte, half of a byte's 0.8 ns: a packet is met anywhere and finished"
    return "consistent" if slope > 0 and off < 0.02 * last["mean_us"] else False, said


def _software(table):
    own = [row for row in table if row["signal"].startswith("PFC")]
    means = [row["mean_us"] for row in own]
    within = min(means) >= 100 and max(means) <= 200 and all(row["deviation_us"] < 0.05 * row["mean_us"] for row in own)
    return "printed" if within else False, f"{min(means):.0f} to {max(means):.0f} us on average, drawn so"


def _longest(_):
    longest = LONGEST_QUANTA * quantum(10 * Gbps)
    return round(
        longest / ms, 1
    ) == 3.4, f"{longest / ms:.3f} ms, {LONGEST_QUANTA} quanta of {quantum(10 * Gbps) / 1000} ns"


CLAIMS = [
    Claim("tdma.c12", "NICs react within 2 to 6 us", _nic, scaled=False),
    Claim("tdma.c13", "the delay grows linearly with the size of packets", _linear, scaled=False),
    Claim("tdma.c14", "the longest pause at 10 Gb/s is about 3.4 ms", _longest, scaled=False),
    Claim("tdma.c17", "in software it takes 100 to 200 us, with low variation", _software, scaled=False),
]
