"""WHAT CAME OUT: completion times, throughput, occupancy and fairness of a run, and the `Result` that keeps them."""

from weft.metrics.fct import LONG, SHORT, Distribution
from weft.metrics.observation import UNFINISHED, Observation
from weft.metrics.result import Result, flatten

__all__ = ["LONG", "SHORT", "UNFINISHED", "Distribution", "Observation", "Result", "flatten"]
