"""Tables of Stardust's and TDMA's figures, and changes that make each claim wrong: `test_every_check` judges them.

The tables are made up, as the papers would have them, or computed where that takes no time. Checks of what is computed
beside the table are doctored where they compute, here.
"""

import numpy as np
import pytest

from weft.models import tdma as models
from weft.papers import figure, judge
from weft.papers.stardust import fig08, fig09, fig10a
from weft.papers.stardust.fig09 import md1
from weft.papers.tdma import APART, TOGETHER, fig11, oscillation, pause, rtt, spread
from weft.units import s

SIZES = (64, 384, 1500)
BOTH = [
    {"fabric": "Ethernet", "a_gbps": 66.7, "b_gbps": 66.7, "both_gbps": 133.4, "lost_inside": 9},
    {"fabric": "Stardust", "a_gbps": 100.0, "b_gbps": 100.0, "both_gbps": 200.0, "lost_inside": 0},
]
CLASSES = [{**BOTH[0], "a_gbps": 100.0, "b_gbps": 0.0, "both_gbps": 100.0}, BOTH[1]]
CLOCKS = [{"bytes": 65, "packed": 100.0, "reference": 85.0, "ndp": 70.0, "unpacked": 51.0}]
QUEUES = [
    {
        "offered": load, "utilisation": 0.9, "latency_max_us": 9.0, "lost": 0, "slowest": 0.9,
        "histogram": [(n, int(share * 10**9)) for n, share in enumerate(md1(0.9, 300))],
    }
    for load in (0.9, 0.95, fig09.OVER)
]  # fmt: skip
SHARES = [
    {"system": name, "mean_gbps": share / 10, "least_gbps": 1.0, "most_gbps": 9.9, "even": 96.0, "share": share,
     "printed": said}
    for name, share, said in (*((name, said, said) for name, said in fig10a.PRINTED.items()), ("NDP", 90, None),
                              (fig10a.SMALL, 76, None))
]  # fmt: skip
SENDERS = [
    {"system": name, "senders": 15, "last_ms": last, "optimum_ms": 9.0, "spread": ratio, "drops": 0}
    for name, last, ratio in (("Stardust", 10.0, 1.1), ("DCTCP", 10.0, 2.0), ("MPTCP", 20.0, 3.0), ("DCQCN", 10.0, 2.0),
                              ("NDP", 10.0, 2.0))
]  # fmt: skip
SOURCES = [{"offered_mb": 127, "at_a_source_mb": 0.99, "at_the_port_mb": 0.1, "lost": 0, "dropped": 0, "spread": 1.01}]
LINES = [
    {
        "ports": ports, "packing": packing, "bytes": size, "lost": 0, "min_us": 3.0 + size / 2000,
        "mean_us": 4.0 + size / 1000, "max_us": 8.0,
        "carried": 90.0 if size < 384 and (ports, packing) == (1152, "no") else 100.0,
    }
    for ports, packing in ((960, "no"), (1152, "no"), (1152, "yes")) for size in SIZES
]  # fmt: skip
PLACES = [
    {"network": name, "adapter_bits": bits, "short_p50_us": 5.0, "short_p99_us": 9.0, "element_bits": 8, "buffer_kb": 9}
    for name, bits in (("ToR", 512), ("NIC", 0))
]
APARTS = [{"jitter_us": jitter, "p50_us": 12.0, "most_us": 19.0} for jitter in (4, 8)]
FINISHES = [
    {
        "system": name, "bytes": 10**9, "ideal_s": ideal, "finish_s": over * ideal, "over_ideal": over,
        "first_flow": first, "inside_s": ideal / 2,
    }
    for ideal in (18.4,) for name, over, first in
    (("TDMA", 1.0543, 0.99), ("TDMA, guard inside", 1.0543, 0.99), (APART, 1.2228, 0.5), (TOGETHER, 1.2, 0.6))
]  # fmt: skip
TREE = [
    {**row, "ideal_s": 102.4, "over_ideal": over, "finish_s": 102.4 * over, "inside_s": 50.0}
    for row, over in zip(FINISHES, (1.0498, 1.0498, 1.1963, 1.19), strict=True)
]
PINGS = [{"system": name, "mean_us": 26.0, "p95_us": p95} for name, p95 in (("TDMA", 30.0), ("TCP", 100.0))]
LATER = [{"offset_us": k, "mean_us": 30.0 - k} for k in range(3)]
BLOCKS = [
    {"system": name, "block_kb": block, "gbps": gbps}
    for name, most in (("TDMA", 9.5), (TOGETHER, 6.0), (APART, 4.5))
    for block, gbps in ((100, most / 4), (fig11.SLOT, most / 2), (1500, most))
]
RATES = [{"system": "TCP", "rto_ms": rto, "high_end_gbps": 5.0, "below_1_share": 0.3} for rto in oscillation.TIMERS] + [
    {"system": "TCP in slots", "high_gbps": 9.5, "low_gbps": 1.0, "losses": 0}
]


def to(**values):
    """A change that gives every row these values."""
    return lambda row: {**row, **values}


def where(wanted, **values):
    """A change of the rows that agree with `wanted`."""
    return lambda row: {**row, **values} if wanted.items() <= row.items() else row


SLOW = [(n, int(10**9 * 0.97**n)) for n in range(200)]
CASES = {  # figure -> (its table, what makes each claim wrong; None where it is computed beside the table)
    "stardust/7": (BOTH, [where({"fabric": "Ethernet"}, b_gbps=90.0), where({"fabric": "Stardust"}, lost_inside=1)]),
    "stardust/8": (CLOCKS, [to(packed=99.0), to(ndp=100.0), None]),
    "stardust/9": (QUEUES, [to(latency_max_us=13.5), to(lost=1), to(histogram=SLOW), to(utilisation=0.99)]),
    "stardust/10a": (SHARES, [
        where({"system": "Stardust"}, share=90.0), to(even=90.0), where({"system": "DCQCN"}, share=60.0),
        where({"system": "MPTCP"}, mean_gbps=9.5), where({"system": fig10a.SMALL}, share=88.0),
    ]),
    "stardust/10c": (SENDERS, [
        where({"system": "MPTCP"}, last_ms=9.0), where({"system": "DCTCP"}, last_ms=12.0),
        where({"system": "Stardust"}, spread=3.5), where({"system": "Stardust"}, drops=1),
    ]),
    "stardust/12": (CLASSES, [where({"fabric": "Ethernet"}, b_gbps=20.0), where({"fabric": "Stardust"}, both_gbps=9)]),
    "stardust/incast": (SOURCES, [to(at_the_port_mb=2.0), to(dropped=1), to(spread=2.0)]),
    "stardust/single": (LINES, [
        where({"ports": 960, "bytes": 64}, carried=98.0), where({"ports": 1152, "bytes": 64}, carried=100.0),
        where({"packing": "yes"}, carried=98.0), to(lost=1), to(max_us=20.0), to(max_us=20.0),
        where({"bytes": 1500}, mean_us=3.5),
    ]),
    "stardust/nic": (PLACES, [to(adapter_bits=512), where({"network": "NIC"}, short_p99_us=12.0)]),
    "tdma/pause": (pause.table(), [to(most_us=7.0), where({"packet": 3000}, mean_us=9.0), None, to(mean_us=250.0)]),
    "tdma/spread": (APARTS, [to(p50_us=6.0), None]),
    "tdma/7": (FINISHES, [
        to(ideal_s=19.4), to(finish_s=20.5), to(over_ideal=2.0), where({"system": "TDMA"}, over_ideal=1.3),
        where({"system": "TDMA"}, first_flow=0.5),
    ]),
    "tdma/8": (TREE, [
        to(ideal_s=110.0), to(finish_s=120.0), to(over_ideal=2.0), where({"system": "TDMA"}, over_ideal=1.3),
        to(inside_s=200.0),
    ]),
    "tdma/9": (PINGS, [where({"system": "TCP"}, p95_us=80.0), where({"system": "TDMA"}, mean_us=22.0), None]),
    "tdma/10": (LATER, [to(mean_us=20.0)]),
    "tdma/11": (BLOCKS, [where({"block_kb": 100}, gbps=9.4), None, where({"system": APART}, gbps=8.0)]),
    "tdma/12": (RATES, [where({"system": "TCP"}, high_end_gbps=9.9), where({"system": "TCP in slots"}, low_gbps=2.0),
                        None]),
}  # fmt: skip
GOOD = {"reproduced", "consistent", "printed", "fitted"}


BESIDE = {  # (figure, claim) -> where the check computes, and a wrong answer
    ("stardust/8", 2): (fig08, "clocks", lambda design, size: 1),
    ("tdma/pause", 2): (pause, "quantum", lambda rate: 10**6),
    ("tdma/spread", 1): (spread, "clock_error", lambda hosts, after: np.array([-1, 1]) * after // 1000),
    ("tdma/9", 2): (rtt, "lost_to_pings", lambda: 0.05),
    ("tdma/11", 1): (fig11, "SLOT", 400),
    ("tdma/12", 2): (models, "ramp", lambda **given: s),
}


@pytest.mark.parametrize(("name", "number"), BESIDE)
def test_what_is_computed_beside_the_table_can_be_wrong_too(name, number, monkeypatch):
    place, what, wrong = BESIDE[name, number]
    monkeypatch.setattr(place, what, wrong)
    assert judge(figure(name).CLAIMS[number], BLOCKS, "paper")["verdict"] == "differs"


def test_queues_that_are_never_seen_fall_off_as_nothing_does():
    empty = [{**row, "histogram": [(0, 100)]} for row in QUEUES]
    assert judge(fig09.CLAIMS[2], empty, "paper")["verdict"] == "differs"
