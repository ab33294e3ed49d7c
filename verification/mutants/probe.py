"""Run the small fabrics of one room, and say which law a run breaks, or whether kernel and twin still agree."""

import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import numpy as np
import pytest

import weft
from rooms import FLOWS, LOSING, SMALL
from weft.errors import MonitorTripped, WeftError
from weft.units import KB, ms

TWINS = {
    "shoal": "tests/fabrics/shoal/test_twins.py",
    "crossbar": "tests/fabrics/crossbar/test_twin.py",
    "packet": "tests/fabrics/packet/test_twins.py",
    "torus": "tests/fabrics/torus/test_twins.py",
    "tdma": "tests/fabrics/tdma/test_twin.py",
    "ideal": "tests/fabrics/ideal/test_twin.py",
    "stardust": "tests/fabrics/stardust/test_twin.py",
}
ALSO = {  # fabrics that are asked first
    "losing": LOSING,
    "full": {  # whose buffers overflow
        "packet": [weft.Packet(hosts=16, transport="tcp", topology="single", buffer=4)],
        "stardust": [weft.Stardust(hosts=16, buffer=10 * KB)],
    },
}
LONG = 50 * ms  # what has not ended by then never will


def probe(room: str, also: str):
    """The law that some run of the room breaks, or nothing."""
    for fabric in [*ALSO.get(also, {}).get(room, ()), *SMALL[room]]:
        for pattern in (FLOWS[2], *FLOWS[:2]):
            try:
                run = fabric.prepare(pattern.draw(nodes=fabric.nodes, link=fabric.link, seed=1), seed=1)
                run.advance(until=LONG)
            except MonitorTripped as error:
                return str(error)
            except (WeftError, IndexError, ValueError) as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return ""


if __name__ == "__main__":
    room, by, also = sys.argv[1:4]
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[4]), int(sys.argv[4])))
    np.seterr(all="ignore")
    if by == "twin":
        sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=once", TWINS[room]]))
    print(probe(room, also))
