"""Merchant silicon, §VI-A: what EEP adds to a frame, counted on frames that were encoded."""

from weft.fabrics.merchant import bounds
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import TEXT
from weft.random import key, words
from weft.wire import ethernet
from weft.wire.eep_reference import Decoder, encode

COLUMNS = ("frame", "eep_frames", "header_bytes", "wire_bytes", "share_percent", "needs_percent", "tag_needs_percent")
SERIES = (Series("frame", "share_percent"), Series("frame", "needs_percent"), Series("frame", "tag_needs_percent"))
STANDARD = ethernet.STANDARD


def table(scale="small"):
    """A row per size: EEP frames and header bytes of a random frame that came back, and what a full trunk needs."""
    step = 32 if at_paper_scale(scale) else 128
    sizes = sorted({64, 65, *range(2 * step, STANDARD, step), 1216, 1217, STANDARD, 9018})
    return [_row(size) for size in sizes]


def _row(size):
    body = words(key(1, size), size // 8 + 1).tobytes()[: size - ethernet.FCS]
    frame = body + ethernet.fcs(body)
    made = encode(frame, 3)
    decoder = Decoder()
    (back,) = decoder.add(b"".join(made)) + decoder.end()
    if back.data != frame:
        raise AssertionError(f"a frame of {size} bytes came back changed")
    header, wire = sum(map(len, made)) - size, ethernet.wire_size(size)
    return {
        "frame": size,
        "eep_frames": len(made),
        "header_bytes": header,
        "wire_bytes": wire,
        "share_percent": 100 * header / wire,
        "needs_percent": 100 * max(0.0, float(bounds.carried("eep", size) - 1)),
        "tag_needs_percent": 100 * float(bounds.carried("802.1ad", size) - 1),
    }


def draw(table):
    """Share of the headers, and overclocking that back to back frames of one size need."""
    from weft.report.plots import plot

    names = {"share_percent": "headers / time of the frame", "needs_percent": "EEP needs",
             "tag_needs_percent": "802.1ad needs"}  # fmt: skip
    rows = [
        {"frame_bytes": row["frame"], "percent": row[name], "of": what} for name, what in names.items() for row in table
    ]
    rows += [{"frame_bytes": STANDARD, "percent": 1.6, "of": TEXT}]
    return plot(rows, x="frame_bytes", y="percent", by="of", xscale="log", yscale="linear", title="What EEP adds")


def _standard(table):
    (row,) = [row for row in table if row["frame"] == STANDARD]
    return row


def _count(table):
    row = _standard(table)
    said = f"{row['header_bytes']} B of headers in {row['eep_frames']} EEP frames of {STANDARD} B"
    return (row["header_bytes"], row["eep_frames"], row["wire_bytes"]) == (25, 24, 1538), said


def _share(table):
    share = _standard(table)["share_percent"]
    return round(share, 1) == 1.6, f"{share:.3f} %"


def _recovered(table):
    most = max(table, key=lambda row: row["needs_percent"])
    row, within = _standard(table), 100 * float(bounds.needed("eep", 1) - 1)
    said = (
        f"{row['needs_percent']:.3f} % back to back, {most['needs_percent']:.3f} % at {most['frame']} B, since gap and "
        f"preamble are not carried; {within:.4f} % within a frame, which cut-through needs"
    )
    return within <= 1.6 and most["needs_percent"] <= 1.6, said


CLAIMS = [
    Claim(
        "merchant.c15",
        "EEP adds 25 B of headers to create 24 EEP frames from a frame of 1500 B payload, 1538 B on the wire",
        _count,
        scaled=False,
    ),
    Claim("merchant.c15", "this would reduce the capacity of the link by 1.6 %", _share, scaled=False),
    Claim("merchant.c15", "overclocking by at least 1.6 % recovers the lost capacity", _recovered, scaled=False),
]
