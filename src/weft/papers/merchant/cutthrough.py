"""Merchant silicon, §VI-A: does a receiver that begins with the first EEP frame ever run out of bytes?"""

from weft.fabrics.merchant.groomer import Frames, Groomer, groom, run
from weft.papers import Claim, Series, at_paper_scale
from weft.units import Gbps

COLUMNS = (
    "groomer", "traffic", "playout_ns", "overclock_percent", "proved", "frames", "underruns", "latest_ns",
)  # fmt: skip
SERIES = (Series("playout_ns", "underruns_percent", "case"),)
GROOMERS = {
    "4 x 1G on 10G": dict(link=1 * Gbps, trunk=10 * Gbps),
    "4 x 10G on 40G": dict(link=10 * Gbps, trunk=40 * Gbps),
}
TRAFFIC = {"1518 B": "1518", "mix": "64x7,594x4,1518"}
LOAD = 0.9
SHARES = (0, 0.25, 0.5, 0.75, 1)  # of the wait that is proved enough


def table(scale="small"):
    """A row per groomer, wait and traffic; then long frames at once, overclocked as needed and not at all."""
    frames, rows = 2000 if at_paper_scale(scale) else 200, []
    for name, rates in GROOMERS.items():
        enough = Groomer(**rates)
        for share in SHARES:
            wait = int(share * enough.least_playout * enough.tick)
            groomer = enough if share == 1 else Groomer(**rates, playout=wait)
            rows.append(_row(name, "worst case", groomer, groom(groomer, worst(groomer))))
            for what, mix in TRAFFIC.items():
                rows.append(
                    _row(name, what, groomer, run(groomer, Frames(frame=mix, load=LOAD, frames=frames), seed=1))
                )
    for groomer in (enough, Groomer(**rates, overclock=0.0)):
        rows.append(_row(name, "9018 B at once", groomer, groom(groomer, [([0], [9018])] * groomer.ports)))
    return rows


def worst(groomer, size=128):
    """Arrivals with which the second segment of port 0 waits for one of each other port, and the first for nobody."""
    return [([0], [size]), *(([64 * groomer.port_byte], [size]) for _ in range(groomer.ports - 1))]


def _row(name, what, groomer, found):
    return {
        "case": f"{name}, {what}",
        "groomer": name,
        "traffic": what,
        "playout_ns": groomer.ns(groomer.playout_ticks),
        "playout_share": groomer.playout_ticks / groomer.least_playout,
        "overclock_percent": groomer.overclocked,
        "proved": groomer.safe,
        "frames": len(found.latency),
        "underruns": found.underruns,
        "underruns_percent": 100 * found.underruns / len(found.latency),
        "latest_ns": groomer.ns(found.latest),
    }


def draw(table):
    """Share of frames that ran out of bytes against the wait."""
    from weft.report.plots import plot

    rows = [
        {"playout_share": row["playout_share"], "underruns_percent": row["underruns_percent"],
         "of": row["case"]}
        for row in table
        if row["traffic"] in TRAFFIC
    ]  # fmt: skip
    title = f"Frames that run out of bytes, load {LOAD}"
    return plot(rows, x="playout_share", y="underruns_percent", by="of", yscale="linear", title=title)


def _literal(table):
    rows = [row for row in table if row["playout_ns"] == 0]
    said = ", ".join(f"{row['underruns']} of {row['frames']} ({row['groomer']}, {row['traffic']})" for row in rows)
    return not any(row["underruns"] for row in rows), f"underruns: {said}"


def _proved(table):
    rows = [row for row in table if row["proved"]]
    waits = {f"{row['playout_ns']:g} ns ({row['groomer']})": None for row in rows}
    count = sum(row["underruns"] for row in rows)
    return "consistent" if not count else False, f"{count} underruns where it waits {', '.join(waits)}"


def _overclocked(table):
    rows = [row for row in table if row["playout_share"] == 1 and not row["proved"]]
    said = ", ".join(f"{row['underruns']} of {row['frames']} ({row['traffic']})" for row in rows)
    return any(row["underruns"] for row in rows), f"underruns without it, with that wait: {said}"


CLAIMS = [
    Claim(
        "merchant.m14",
        "a receiver may begin a frame on the output port after its first EEP frame, and does not run out of bytes if "
        "the queues are served round robin",
        _literal,
        scaled=False,
    ),
    Claim(
        "merchant.m14",
        "served round robin and in a timely way, the receiver never runs out of bytes: if it waits as long as is "
        "proved enough",
        _proved,
        scaled=False,
    ),
    Claim("merchant.c15", "the fast link must be overclocked by what EEP adds", _overclocked, scaled=False),
]
