"""Head-of-line blocking: what saturated FIFO inputs carry, against Karol's chain and its limit of 58.6 % (II-A(a))."""

from weft.fabrics.crossbar import Crossbar
from weft.fabrics.crossbar.bounds import KAROL_LIMIT, karol
from weft.papers.fpga import Claim, Run, check_scale
from weft.workload.traffic import Bernoulli

COLUMNS = ("ports", "throughput", "karol")


def study(scale="small"):
    """Saturated FIFO inputs, from 2 to 256 ports."""
    slots = 1_000_000 if check_scale(scale) else 60_000
    runs = []
    for n in (2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256):
        labels = {"ports": n, "karol": karol(n) if n <= 8 else None, "limit": KAROL_LIMIT}
        fewer = slots if n <= 32 else slots // 4
        runs.append(Run(labels, Crossbar(ports=n, buffers="fifo"), Bernoulli(load=1, slots=fewer, warmup=fewer // 10)))
    return runs


def draw(table):
    """Throughput against ports."""
    from weft.report.plots import plot

    rows = [{"ports": r["ports"], "carried": r["throughput"], "by": "simulated"} for r in table]
    rows += [{"ports": r["ports"], "carried": r["karol"], "by": "Karol's chain"} for r in table if r["karol"]]
    rows += [{"ports": r["ports"], "carried": r["limit"], "by": "2 - √2"} for r in table]
    return plot(rows, x="ports", y="carried", by="by", xscale="log", yscale="linear", title="Saturated FIFO inputs")


def _finite(table):
    off = max(abs(row["throughput"] - row["karol"]) for row in table if row["karol"])
    return off < 0.004, f"largest difference from the chain, 2 to 8 ports: {off:.4f}"


def _limit(table):
    last = table[-1]
    return abs(last["throughput"] - KAROL_LIMIT) < 0.005, f"{last['throughput']:.4f} at {last['ports']} ports"


CLAIMS = [
    Claim("Karol 1987", "saturated FIFO inputs of N ports carry what the Markov chain of N balls says", _finite),
    Claim("Karol 1987", "many ports carry 2 - sqrt(2) = 58.6 %", _limit),
]
