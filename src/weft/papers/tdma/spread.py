"""TDMA, Figs. 3 and 4: how far apart 24 hosts act on the same frames, by the model of hosts, not by hardware."""

import numpy as np

from weft.fabrics.tdma.hosts import NIC, Reaction, arrival_spread, clock_error
from weft.papers import Claim, Series, at_paper_scale
from weft.units import ms, s, us

COLUMNS = ("jitter_us", "p50_us", "p99_us", "most_us", "within_15_us", "within_20_us")
SERIES = (Series("jitter_us", "p50_us"), Series("jitter_us", "most_us"))
HOSTS = 24


def table(scale="small"):
    """A row per jitter: the spread over hosts of the gap between two frames."""
    count = 10_000 if at_paper_scale(scale) else 1000
    out = []
    for jitter in (2 * us, NIC.jitter, 6 * us, 8 * us, 10 * us):
        spread = arrival_spread(Reaction(lag=NIC.lag, jitter=jitter), HOSTS, count=count) / us
        row = {"jitter_us": jitter / us, "p50_us": np.median(spread), "p99_us": np.quantile(spread, 0.99)}
        row |= {"most_us": spread.max(), "within_15_us": (spread <= 15).mean(), "within_20_us": (spread <= 20).mean()}
        out.append({name: float(value) for name, value in row.items()})
    return out


def draw(table):
    """The spread against the jitter."""
    from weft.report.plots import plot

    rows = [
        {"jitter_us": row["jitter_us"], "spread_us": row[key], "of": key}
        for row in table
        for key in ("p50_us", "p99_us")
    ]
    return plot(rows, x="jitter_us", y="spread_us", by="of", title="spread of control frames over 24 hosts (model)")


def _fits(row):
    return 10 <= row["p50_us"] <= 15 and row["most_us"] <= 20


def _spread(table):
    """With the jitter that Fig. 1 has; the others say which one it would take."""
    own = next(row for row in table if row["jitter_us"] == NIC.jitter / us)
    needs = " or ".join(f"{row['jitter_us']:g} us" for row in table if _fits(row)) or "none of these"
    said = f"{own['p50_us']:.1f} us with the 4 us jitter of Fig. 1; 10 to 15 us takes a jitter of {needs}"
    return "consistent" if _fits(own) else False, said


def _drift(_):
    """The clocks' ±50 ppm were set by the sentence."""
    error = clock_error(HOSTS, 20 * s)
    apart = (error.max() - error.min()) / ms
    return "fitted" if 1 < apart <= 2 else False, f"clocks of ±50 ppm: {apart:.2f} ms in 20 s, drawn so"


CLAIMS = [
    Claim("tdma.c15", "frames arrive 10 to 15 us apart, rarely more than 20", _spread, scaled=False),
    Claim("tdma.c11", "clocks drift apart by up to 2 ms in 20 s", _drift, scaled=False),
]
