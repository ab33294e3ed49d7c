"""Requests: clients that ask and wait for an answer, and ask again when they have it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weft import random
from weft.errors import require
from weft.units import Size, Time, param, show_number, us
from weft.workload.arrivals import check_fabric
from weft.workload.base import Workload
from weft.workload.collectives import MOST, bound_facts, over
from weft.workload.demand import Planned
from weft.workload.flows import ENDLESS, LATEST, Flows
from weft.workload.steps import Steps, bounds, later, spans
from weft.workload.streams import Stream


class Requests(Workload):
    """What all requests share: their completion, from the first byte of the first flow to the last of the last."""

    waits = True

    @property
    def asked(self) -> int:
        """Requests in all."""
        raise NotImplementedError  # derived classes say it

    def flows_of(self, nodes: int) -> int:
        """Flows of all requests."""
        raise NotImplementedError  # derived classes say it

    def check(self, **sizes) -> None:
        """Raise a sentence unless these are sizes of flows and there are not too many of them."""
        for name, size in sizes.items():
            require(1 <= size < ENDLESS, name, f"from 1 to {ENDLESS - 1}", size)

    def planned(self, nodes: int) -> Planned:
        """How many flows it will be."""
        return Planned(nodes, self.flows_of(nodes), chained=True)

    def sections(self, fabric, flows, released, finish) -> dict:
        """Completion of requests."""
        begun, ended = spans(flows, released, finish, self.asked)
        whole = ended >= 0
        return {"requests": {"done": int(whole.sum()), "asked": self.asked, "fct_us": (ended - begun)[whole]}}

    @staticmethod
    def facts(summary) -> Iterable[tuple[str, str]]:
        told, times = summary["requests"], summary["requests"]["fct_us"]
        yield "requests", f"{show_number(told['done'])} of {show_number(told['asked'])} answered in full"
        if times["mean"] is not None:
            shown = [f"{show_number(times[name])} {name}" for name in ("mean", "p50", "p99", "p99.9", "max")]
            yield "request completion", f"{', '.join(shown)}, in µs"


def times(**given) -> None:
    """Raise a sentence unless all are times that something may take."""
    for name, ps in given.items():
        require(0 <= ps < LATEST, name, f"from 0 to {LATEST - 1} ps", ps)


def servers(client: int, count: int, nodes: int, seed: int, request: int) -> list[int]:
    """`count` nodes other than the client, drawn for one request."""
    order = random.permutation(random.key(seed, Stream.SERVERS + request), nodes - 1)[:count]
    return ((client + 1 + order) % nodes).tolist()


@dataclass(frozen=True, kw_only=True)
class Rpc(Requests):
    """Every node asks `fan_out` others at once and waits for the slowest answer, in a closed loop.

    A node has `outstanding` requests under way; when one is answered in full it sends the next, after thinking. The
    servers of a request are drawn at random. Completion is that of the request: from its first byte to the last byte of
    its last answer (Dean and Barroso, The Tail at Scale, CACM 2013).
    """

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
        self.check(bytes=self.bytes, ask=self.ask)
        times(think=self.think, serve=self.serve)
        flows = self.flows_of(2)
        require(flows <= MOST, "requests x fan_out", f"at most {MOST // 2:,}", self.requests * self.fan_out)

    @property
    def asked(self):
        return self.requests

    def flows_of(self, nodes):
        return 2 * self.requests * self.fan_out

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows of all requests; a request is a group."""
        check_fabric(nodes, link)
        require(self.fan_out < nodes, "fan_out", f"below the number of nodes, {nodes}", self.fan_out)
        steps = Steps()
        answered: dict[tuple[int, int], tuple] = {}
        for r in range(self.requests):
            client, lane = r % nodes, r // nodes % self.outstanding
            before = answered.get((client, lane), ())
            before = later(before, self.think) if before else ()
            answers: tuple = ()
            for server in servers(client, self.fan_out, nodes, seed, r):
                question = steps.send(client, server, self.ask, before, r)
                answers += steps.send(server, client, self.bytes, later(question, self.serve), r)
            answered[client, lane] = answers
        return steps.flows(nodes)


@dataclass(frozen=True, kw_only=True)
class ChainReplication(Requests):
    """Clients write to chains of replicas, in a closed loop (van Renesse and Schneider, OSDI 2004).

    A write goes to the head of its chain, from each replica to the next when it has all of it and has stored it, and
    the tail answers the client. The chain of a write is drawn at random, as a hash of its key would have it.
    """

    writes: int = param(1000, "writes in all, dealt to the nodes in turn")
    replicas: int = param(3, "replicas of a chain")
    bytes: Size = param(20_000, "bytes of a write")
    answer: Size = param(64, "bytes of the tail's answer")
    outstanding: int = param(1, "writes that a node has under way")
    think: Time = param(0, "time from an answer to the next write")
    store: Time = param(0, "time that a replica takes to store a write")

    def __post_init__(self):
        for name in ("writes", "replicas", "outstanding"):
            require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        self.check(bytes=self.bytes, answer=self.answer)
        times(think=self.think, store=self.store)
        require(self.flows_of(2) <= MOST, "writes x replicas", f"few enough for {MOST:,} flows", self.flows_of(2))

    @property
    def asked(self):
        return self.writes

    def flows_of(self, nodes):
        return self.writes * (self.replicas + 1)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows of all writes; a write is a group."""
        check_fabric(nodes, link)
        require(self.replicas < nodes, "replicas", f"below the number of nodes, {nodes}", self.replicas)
        steps = Steps()
        answered: dict[tuple[int, int], tuple] = {}
        for r in range(self.writes):
            client, lane = r % nodes, r // nodes % self.outstanding
            have = answered.get((client, lane), ())
            have, at = later(have, self.think) if have else (), client
            for replica in servers(client, self.replicas, nodes, seed, r):
                have = later(steps.send(at, replica, self.bytes, have, r), self.store)
                at = replica
            answered[client, lane] = steps.send(at, client, self.answer, have, r)
        return steps.flows(nodes)


@dataclass(frozen=True, kw_only=True)
class MapReduce(Requests):
    """Every reducer pulls from every mapper, a few at a time (Dean and Ghemawat, OSDI 2004).

    A reducer has `parallel` copiers; Hadoop has five (mapreduce.reduce.shuffle.parallelcopies). Each asks one mapper
    after the other for what it has for the reducer, and asks the next when it has it all. Which mappers are whose is
    dealt in turn; reducer r begins with mapper r. Mappers and reducers are different nodes as long as there are enough;
    what a node would pull from itself is left out.
    """

    mappers: int = param(help="number of nodes that have something")
    reducers: int = param(help="number of nodes that pull it")
    bytes: Size = param(1_000_000, "bytes that each mapper has for each reducer")
    parallel: int = param(5, "mappers that a reducer pulls from at a time")
    ask: Size = param(256, "bytes of a question")
    read: Time = param(0, "time that a mapper takes to find what it is asked for")

    def __post_init__(self):
        for name in ("mappers", "reducers", "parallel"):
            require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        self.check(bytes=self.bytes, ask=self.ask)
        times(read=self.read)
        require(self.flows_of(2) <= MOST, "mappers x reducers", f"few enough for {MOST:,} flows", self.flows_of(2))

    @property
    def asked(self):
        return self.mappers * self.reducers

    def flows_of(self, nodes):
        return 2 * self.mappers * self.reducers

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows of all pulls; a pull is a group."""
        check_fabric(nodes, link)
        for what, count in (("mappers", self.mappers), ("reducers", self.reducers)):
            require(count <= nodes, what, f"at most {nodes}, the number of nodes", count)
        order = random.permutation(random.key(seed, Stream.CHOSEN), nodes).tolist()
        steps = Steps()
        have: dict[tuple[int, int], tuple] = {}
        for turn in range(self.mappers):
            for r in range(self.reducers):
                mapper, reducer = order[(turn + r) % self.mappers], order[nodes - 1 - r]
                copier, pull = (r, turn % self.parallel), turn * self.reducers + r
                question = steps.send(reducer, mapper, self.ask, have.get(copier, ()), pull)
                have[copier] = steps.send(mapper, reducer, self.bytes, later(question, self.read), pull)
        own = self.asked - len(steps) // 2
        notes = [f"{own} pulls of a node from itself were left out"] if own else []
        return steps.flows(nodes, notes)

    def sections(self, fabric, flows, released, finish):
        """Completion of pulls, and of all of them."""
        told = super().sections(fabric, flows, released, finish)
        pulls = told["requests"]
        pulls["asked"] = len(flows) // 2
        whole = float(finish.max()) if len(finish) and (finish >= 0).all() else None
        if len(flows):
            least = bounds(fabric, flows, np.arange(len(flows)))
            pulls |= {"shuffle_us": None if whole is None else whole / us, **over(least, whole)}
        return told

    @staticmethod
    def facts(summary):
        yield from Requests.facts(summary)
        told = summary["requests"]
        if told.get("shuffle_us") is not None:
            yield "shuffle", f"{show_number(told['shuffle_us'])} µs until all was pulled"
            yield from bound_facts(told)
