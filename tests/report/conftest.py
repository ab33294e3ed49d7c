from dataclasses import dataclass

import numpy as np
import pytest

from weft.metrics import Observation, Result
from weft.metrics.observation import Queue
from weft.units import Gbps, ms, us
from weft.workload.flows import Flows


@dataclass(frozen=True, kw_only=True)
class Ring:
    nodes: int = 4
    link: int = 100 * Gbps

    def ideal(self, flows):
        return flows.size * 80


@dataclass(frozen=True, kw_only=True)
class Star(Ring):
    pass


@dataclass(frozen=True, kw_only=True)
class Steady:
    load: float = 0.5


def make(fabric, load, seed):
    """A run that never took place: times grow with load and seed in a way that can be worked out by hand."""
    size = np.array([1000, 50_000, 2_000_000, 4_000_000])
    table = Flows.of(nodes=4, src=[0, 1, 2, 3], dst=[1, 2, 3, 0], size=size, start=np.arange(4) * us)
    times = (size * 80 * (1 + load) * (1 + seed / 10)).astype(np.int64) * (2 if type(fabric) is Star else 1)
    seen = Observation(
        finish=table.start + times,
        received=size,
        now=1 * ms,
        fingerprint="ab" * 16,
        carried={"local": 100, "forwarded": 90, "dummy": 10, "delivered": 95},
        queue=Queue(max=7, max_node=9),
        sections={"queue_cells": {"max": 7, "max_node": 9}},
        monitors={"conservation": 0, "bound": seed},
        samples={"time_ps": np.arange(4) * us, "delivered_bytes": np.arange(16).reshape(4, 4) * 1000},
        work={"node_slots": 4_000_000, "stepped": 1_000_000},
    )
    return Result.collect(fabric, Steady(load=load), table, seen, seed=seed, wall=2.0, cpu=1.9, peak=50_000_000)


@pytest.fixture
def result():
    return make(Ring(), 0.5, 0)


@pytest.fixture
def rows():
    return [make(f, load, seed).row() for f in (Ring(), Star()) for load in (0.2, 0.8) for seed in (0, 1, 2)]


@pytest.fixture
def other():
    return make(Star(), 0.8, 1)
