"""Merchant silicon, Fig. 11: round-trip latency of the two groomers against frame size, 4 x GbE onto 10GbE."""

import numpy as np

from weft.fabrics.merchant.groomer import PROTOCOLS, Frames, Groomer, run
from weft.papers import Claim, Series, at_paper_scale
from weft.wire import eep

COLUMNS = ("protocol", "frame", "round_trip_ns", "full_load_ns", "jitter_ns", "ingress_bytes", "underruns")
SERIES = (Series("frame", "round_trip_ns", "protocol"), Series("frame", "full_load_ns", "protocol"))
AXIS, BYTES = 16_000, 1_600  # ns and bytes: where the printed axes end
HELD = 2  # segments of EEP, or frames of 802.1ad, that a port has room for


def table(scale="small"):
    """A row per protocol and size: alone, as the paper measured, then with all four ports sending back to back."""
    step, frames = (64, 400) if at_paper_scale(scale) else (128, 100)
    sizes = sorted({64, *range(step, 1518, step), 1518})
    return [_row(protocol, size, frames) for protocol in PROTOCOLS for size in sizes]


def _row(protocol, size, frames):
    groomer = Groomer(protocol=protocol)
    alone = run(groomer, Frames(frame=str(size), frames=1)).summary()
    full = run(groomer, Frames(frame=str(size), load=1.0, frames=frames), seed=1).summary()
    return {
        "protocol": protocol,
        "frame": size,
        "round_trip_ns": alone["round_trip_ns"],
        "full_load_ns": full["round_trip_ns"],
        "jitter_ns": full["jitter_ns"],
        "ingress_bytes": full["buffer_bytes"]["ingress"],
        "underruns": full["underruns"] if protocol == "eep" else None,
    }


def draw(table):
    """Both protocols, alone and at full load; of the printed points only the axes survive."""
    from weft.report.plots import plot

    rows = [
        {"frame_bytes": row["frame"], "round_trip_ns": row[key], "of": f"{row['protocol']}, {what}"}
        for key, what in (("round_trip_ns", "alone"), ("full_load_ns", "full load"))
        for row in table
    ]
    title = "Fig. 11: 4 x GbE onto 10GbE and back"
    return plot(rows, x="frame_bytes", y="round_trip_ns", by="of", yscale="linear", title=title)


def _of(table, protocol, key="round_trip_ns"):
    rows = [row for row in table if row["protocol"] == protocol]
    return np.array([row["frame"] for row in rows]), np.array([row[key] for row in rows])


def _linear(table):
    size, time = _of(table, "802.1ad")
    slope, base = np.polyfit(size, time, 1)
    off = float(np.abs(time - slope * size - base).max())
    return off < 1, f"{slope:.2f} ns a byte and {base:.1f} ns, within {off:.2g} ns"


def _flat(table):
    _, time = _of(table, "eep")
    return bool(np.ptp(time) == 0), f"{time.min():.1f} to {time.max():.1f} ns"


def _axis(table):
    """An axis ends a little above what it shows, and the longest frame of 802.1ad is the highest point."""
    size = _of(table, "802.1ad")[0]
    most = max(row["round_trip_ns"] for row in table)
    said = f"at most {most:,.0f} ns, up to {size[-1]} B; the paper's PHYs, MACs and pipelines are not in it"
    return "consistent" if 0.5 < most / AXIS < 1 and size[-1] < BYTES else False, said


def _lossless(table):
    """Buffers have no end here, so what a port holds at most decides whether it would drop; `groom` compares bytes."""
    _, ran_out = _of(table, "eep", "underruns")
    segments = _of(table, "eep", "ingress_bytes")[1].max() / eep.SEGMENT
    size, held = _of(table, "802.1ad", "ingress_bytes")
    frames = (held / size).max()
    said = f"{int(ran_out.sum())} underruns of EEP at full load; a port holds at most {segments:.2f} segments of EEP, "
    said += f"{frames:.2f} frames of 802.1ad"
    good = not ran_out.any() and max(segments, frames) <= HELD
    return "consistent" if good else False, said  # EEP with a wait that the paper does not name


CLAIMS = [
    Claim("merchant.c16", "802.1ad adds latency in proportion to the size of the frame", _linear, scaled=False),
    Claim("merchant.c16", "EEP adds a constant amount of latency regardless of frame size", _flat, scaled=False),
    Claim("merchant.c16", "the printed axes, to 16,000 ns and 1,600 bytes, hold both curves", _axis, scaled=False),
    Claim("merchant.c18", "both work under heavy load without dropping or corrupting frames", _lossless, scaled=False),
]
