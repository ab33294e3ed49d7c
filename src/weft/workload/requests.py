"""Requests: clients that ask several servers at once, and ask again when all have answered."""

from dataclasses import dataclass

import numpy as np

from weft import random
from weft.errors import require
from weft.units import Size, Time, param, show_number
from weft.workload.arrivals import check_fabric
from weft.workload.base import Workload
from weft.workload.collectives import Steps
from weft.workload.flows import ENDLESS, Flows
from weft.workload.streams import Stream

MOST = 10**7  # flows


@dataclass(frozen=True, kw_only=True)
class Rpc(Workload):
    """Every node asks `fan_out` others at once and waits for the slowest answer, in a closed loop.

    A node has `outstanding` requests under way; when one is answered in full it sends the next, after thinking. The
    servers of a request are drawn at random. Completion is that of the request: from its first byte to the last byte of
    its last answer (Dean and Barroso, The Tail at Scale, CACM 2013).
    """

    waits = True

    requests: int = param(1000, "requests in all, dealt to the nodes in turn")
    fan_out: int = param(4, "servers that a request asks at once")
    bytes: Size = param(20_000, "bytes of an answer")
    ask: Size = param(256, "bytes of a question")
    outstanding: int = param(1, "requests that a node has under way")
    think: Time = param(0, "time from an answer to the next request")
    serve: Time = param(0, "time from a question to its answer")

    def __post_init__(self):
        require(self.requests >= 1, "requests", "at least 1", self.requests)
        require(self.fan_out >= 1, "fan_out", "at least 1", self.fan_out)
        require(self.outstanding >= 1, "outstanding", "at least 1", self.outstanding)
        require(1 <= self.bytes < ENDLESS, "bytes", f"from 1 to {ENDLESS - 1}", self.bytes)
        require(1 <= self.ask < ENDLESS, "ask", f"from 1 to {ENDLESS - 1}", self.ask)
        require(self.think >= 0 and self.serve >= 0, "think and serve", "0 or more", (self.think, self.serve))
        flows = 2 * self.requests * self.fan_out
        require(flows <= MOST, "requests x fan_out", f"at most {MOST // 2:,}", self.requests * self.fan_out)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows of all requests; a request is a group."""
        check_fabric(nodes, link)
        require(self.fan_out < nodes, "fan_out", f"below the number of nodes, {nodes}", self.fan_out)
        steps = Steps()
        answered: dict[tuple[int, int], tuple] = {}
        for r in range(self.requests):
            client, lane = r % nodes, r // nodes % self.outstanding
            order = random.permutation(random.key(seed, Stream.SERVERS + r), nodes - 1)[: self.fan_out]
            before = answered.get((client, lane), ())
            answers: list[int] = []
            for server in ((client + 1 + order) % nodes).tolist():
                question = steps.send(client, server, self.ask, before, r)
                if before:
                    steps.put_off(question[0], self.think)
                answers += steps.send(server, client, self.bytes, question, r)
                steps.put_off(answers[-1], self.serve)
            answered[client, lane] = tuple(answers)
        return steps.flows(nodes)

    def sections(self, fabric, flows, released, finish) -> dict:
        """Completion of requests."""
        first = np.full(self.requests, np.iinfo(np.int64).max)
        last, whole = np.full(self.requests, -1), np.ones(self.requests, bool)
        np.minimum.at(first, flows.group[released >= 0], released[released >= 0])
        np.maximum.at(last, flows.group, finish)
        np.logical_and.at(whole, flows.group, finish >= 0)
        return {"requests": {"done": int(whole.sum()), "asked": self.requests, "fct_us": (last - first)[whole]}}

    @staticmethod
    def facts(summary):
        told, times = summary["requests"], summary["requests"]["fct_us"]
        yield "requests", f"{show_number(told['done'])} of {show_number(told['asked'])} answered in full"
        if times["mean"] is not None:
            shown = [f"{show_number(times[name])} {name}" for name in ("mean", "p50", "p99", "p99.9", "max")]
            yield "request completion", f"{', '.join(shown)}, in µs"
