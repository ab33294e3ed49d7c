"""Chakra: execution traces of the MLCommons, what every rank computes and sends, as flows that wait for flows.

A trace is a file for each rank, `name.0.et`, `name.1.et`, …: protobuf messages with their lengths before them, a
GlobalMetadata and then a Node each (schema/protobuf/et_def.proto of mlcommons/chakra, 0.0.4). docs/design.md says why
it is not their own reader that reads them.

- A computing node (or one that moves memory) takes its `duration_micros`, after all that it depends on.
- A collective is met by the k-th one of the same process group (`pg_name`, or everybody) at each of its ranks.
  All-reduce is a ring or another algorithm of `AllReduce`, all-gather and reduce-scatter are rings, all-to-all is an
  exchange, a barrier waits and sends nothing. `comm_size` is, as in ASTRA-sim, what a rank puts in.
- A send is met by the k-th receive of the same pair and tag; both are done when its last byte has arrived.

Only dependencies order what a rank does: the trace names them, and there are no queues of devices here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import unpack
from typing import Any, Literal

from weft import reading
from weft.errors import BadTrace, require
from weft.units import param, us
from weft.workload.collectives import ALGORITHMS, MOST, AllGather, AllReduce, Exchange, ReduceScatter
from weft.workload.flows import LATEST
from weft.workload.steps import Steps, later, together
from weft.workload.training import Laid

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7  # NodeType
KINDS = ("ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER",
         "REDUCE_SCATTER_BLOCK", "BARRIER")  # fmt: skip
CARRIED = ("ALL_REDUCE", "ALL_GATHER", "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER")


@dataclass
class Node:
    """What one message says."""

    id: int = 0
    name: str = ""
    type: int = 0
    needs: list[int] = field(default_factory=list)
    duration: int = 0  # ps
    attr: dict = field(default_factory=dict)


# protobuf


def fields(data: bytes, place: str) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value) of every field of a message; a value is a number or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at, place)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, at = varint(data, at, place)
        elif kind in (1, 2, 5):
            size, at = (8, at) if kind == 1 else (4, at) if kind == 5 else varint(data, at, place)
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise BadTrace(f"{place} must end where its message does, not before")
        else:
            raise BadTrace(f"{place} must be a protobuf message, not have fields of wire type {kind}")
        yield key >> 3, kind, value


def varint(data: bytes, at: int, place: str) -> tuple[int, int]:
    """The number that begins at `at`, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadTrace(f"{place} must be a protobuf message, not end in the middle of a number")
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def numbers(kind: int, value: Any, place: str) -> list[int]:
    """A repeated number: one, or several packed together."""
    if kind == 0:
        return [value]
    out, at = [], 0
    while at < len(value):
        one, at = varint(value, at, place)
        out.append(one)
    return out


def attribute(data: bytes, place: str) -> tuple[str, object]:
    """(name, value) of an AttributeProto; lists of whole numbers and of truths are lists, other lists are left out."""
    name = ""
    found: Any = 0  # what a writer may leave out
    for number, kind, value in fields(data, place):
        if number in (1, 29) and kind == 2:
            said = value.decode("utf-8", "replace")
            name, found = (said, found) if number == 1 else (name, said)
        elif number in (7, 9, 11, 13, 27) and kind == 0:
            found = value - (1 << 64) if number in (7, 9) and value >> 63 else value
        elif number in (15, 17) and kind == 0:
            found = (value >> 1) ^ -(value & 1)
        elif number in (19, 21, 23, 25) and kind in (1, 5):
            found = int.from_bytes(value, "little", signed=number in (23, 25))
        elif (number, kind) in ((3, 1), (5, 5)):
            found = unpack("<d" if number == 3 else "<f", value)[0]
        elif number in (8, 10, 12, 14, 28) and kind == 2:
            found = [one for _, inner, packed in fields(value, place) for one in numbers(inner, packed, place)]
    return name, found


def node(data: bytes, place: str) -> Node:
    """A Node message."""
    out = Node()
    for number, kind, value in fields(data, place):
        if number == 2 and kind == 2:
            out.name = value.decode("utf-8", "replace")
        elif number in (4, 5):
            out.needs += numbers(kind, value, place)
        elif number == 10 and kind == 2:
            name, found = attribute(value, place)
            out.attr[name] = found
        elif number in (1, 3, 7) and kind == 0:
            setattr(out, {1: "id", 3: "type", 7: "duration"}[number], value)
    out.duration *= us
    return out


def read(path) -> list[Node]:
    """The nodes of one rank, in the order of the file, checked as far as a rank alone can be."""
    data = reading.unpacked(path, "a trace of a rank", error=BadTrace)
    nodes, at, place = [], 0, f"{path}, message 1"
    while at < len(data):
        size, at = varint(data, at, place)
        if at + size > len(data):
            raise BadTrace(f"{place} must be of {size} bytes, as its length says, not {len(data) - at}")
        if place != f"{path}, message 1":  # which is the metadata
            nodes.append(node(data[at : at + size], place))
        at, place = at + size, f"{path}, message {len(nodes) + 2}"
    known = {one.id for one in nodes}
    for k, one in enumerate(nodes):
        wrong = [id for id in one.needs if id not in known]
        if wrong:
            raise BadTrace(f"{path}, message {k + 2}: node {one.id} must need nodes of the file, not {wrong[0]}")
    if len(known) < len(nodes):
        raise BadTrace(f"{path} must have every node once, not {len(nodes) - len(known)} numbers again")
    return nodes


# flows


@dataclass(frozen=True, kw_only=True)
class Chakra(Laid):
    """What the ranks of an execution trace compute and send: a file for each, `name.0.et`, `name.1.et`, and so on."""

    trace: str = param(help="its first file, or what stands before .0.et in its name")
    algorithm: Literal["ring", "tree", "halving-doubling", "hierarchical"] = param("ring", "how to all-reduce")
    group: int = param(8, "nodes of a group (hierarchical)")

    def __post_init__(self):
        object.__setattr__(self, "trace", str(self.trace))
        require(self.algorithm in ALGORITHMS, "algorithm", f"one of {', '.join(ALGORITHMS)}", self.algorithm)
        require(self.group >= 1, "group", "at least 1 node", self.group)

    def inputs(self) -> list[str]:
        """The files of all ranks, by rank."""
        stem = Path(re.sub(r"\.0\.et$", "", self.trace))
        pattern = re.compile(re.escape(stem.name) + r"\.(\d+)\.et")
        try:
            names = sorted(stem.parent.iterdir())
        except (OSError, ValueError):  # there is no such folder, or can be none
            names = []
        found = {int(match[1]): str(path) for path in names if (match := pattern.fullmatch(path.name))}
        if not found or sorted(found) != list(range(len(found))):
            missing = next((rank for rank in range(len(found) + 1) if rank not in found), 0)
            raise BadTrace(f"{self.trace} must be a trace of ranks from 0 on, but there is no {stem}.{missing}.et")
        return [found[rank] for rank in sorted(found)]

    def lay(self, nodes):
        paths = self.inputs()
        require(2 <= len(paths) <= nodes, "nodes", f"at least the {len(paths)} ranks of {self.trace}, 2 or more", nodes)
        laid, done = Replay(self, [read(path) for path in paths], paths).lay()
        if not len(laid):
            raise BadTrace(f"{self.trace} must have ranks that send each other something, not only compute")
        return laid, done


class Replay:
    """The nodes of all ranks, laid out one after the other as what they need is there."""

    def __init__(self, chakra: Chakra, ranks: list[list[Node]], paths: list[str]):
        self.chakra, self.ranks, self.paths = chakra, ranks, paths
        self.steps = Steps(ordered=True)
        self.done: list[dict[int, tuple]] = [{} for _ in ranks]
        self.meetings = self._meetings()

    def place(self, r, one) -> str:
        return f"{self.paths[r]}: node {one.id}"

    def _meetings(self) -> dict[tuple[int, int], tuple]:
        """(rank, node) -> the meeting it is a part of: a tuple of (rank, node) of all who take part."""
        groups: dict[tuple, dict[int, list[Node]]] = {}
        for r, nodes in enumerate(self.ranks):
            for one in nodes:
                if one.type == COLLECTIVE:
                    dims = one.attr.get("involved_dim")
                    if isinstance(dims, list) and not all(dims):
                        raise BadTrace(f"{self.place(r, one)} must involve all dimensions or name a process group")
                    key: tuple = ("group", str(one.attr.get("pg_name", "")))
                elif one.type in (SEND, RECEIVE):
                    other = one.attr.get("comm_dst" if one.type == SEND else "comm_src")
                    if not isinstance(other, int) or not 0 <= other < len(self.ranks) or other == r:
                        raise BadTrace(f"{self.place(r, one)} must name another rank, not {other}")
                    ends = (r, other) if one.type == SEND else (other, r)
                    tag = one.attr.get("comm_tag", 0)
                    if isinstance(tag, list):
                        raise BadTrace(f"{self.place(r, one)} must have one comm_tag, not a list")
                    key = ("pair", *ends, tag)
                else:
                    continue
                groups.setdefault(key, {}).setdefault(r, []).append(one)
        return self._matched(groups)

    def _matched(self, groups):
        found = {}
        for key, by_rank in groups.items():
            lengths = {r: len(some) for r, some in by_rank.items()}
            ends = key[1:3] if key[0] == "pair" else tuple(by_rank)
            if len({lengths.get(r, 0) for r in ends}) > 1:
                what = f"from rank {key[1]} to rank {key[2]}" if key[0] == "pair" else f"in group {key[1]!r}"
                often = ", ".join(f"{lengths.get(r, 0)} at rank {r}" for r in ends)
                raise BadTrace(f"{self.chakra.trace} must have as many messages {what} at each rank, not {often}")
            for k in range(lengths[ends[0]]):
                meeting = tuple((r, by_rank[r][k]) for r in ends)
                for r, one in meeting:
                    found[r, one.id] = meeting
        return found

    def lay(self):
        """(steps, [what is done when all is])."""
        left = [{one.id: one for one in nodes} for nodes in self.ranks]
        waiting = [{one.id: len(set(one.needs)) for one in nodes} for nodes in self.ranks]
        needed: list[dict[int, list[int]]] = [{} for _ in self.ranks]
        for r, nodes in enumerate(self.ranks):
            for one in nodes:
                for id in set(one.needs):
                    needed[r].setdefault(id, []).append(one.id)
        due = [(r, one) for r, nodes in enumerate(self.ranks) for one in nodes if not one.needs]
        there: dict[tuple, int] = {}
        for r, one in due:
            meeting = self.meetings.get((r, one.id), ((r, one),))
            first = (meeting[0][0], meeting[0][1].id)
            there[first] = there.get(first, 0) + 1
            if there[first] < len(meeting):
                continue
            self._meet(meeting)
            for s, met in meeting:
                del left[s][met.id]
                for id in needed[s].get(met.id, ()):
                    waiting[s][id] -= 1
                    if not waiting[s][id]:
                        due.append((s, left[s][id]))
            require(len(self.steps) <= MOST, "the trace", f"of at most {MOST:,} flows", len(self.steps))
        stuck = [(r, one) for r, some in enumerate(left) for one in some.values()]
        if stuck:
            raise BadTrace(f"{self.place(*stuck[0])} must be done in the end, not wait for others in a circle")
        return self.steps, [together(*(some for rank in self.done for some in rank.values()))]

    def _before(self, r, one) -> tuple:
        return together(*(self.done[r][id] for id in one.needs))

    def _meet(self, meeting):
        """All who take part are ready: add the flows."""
        r, one = meeting[0]
        if one.type == COLLECTIVE:
            self._collective(meeting)
        elif one.type in (SEND, RECEIVE):
            (r, one), (s, other) = meeting  # the sender is the first
            size = self._size(r, one)
            arrived = self.steps.send(r, s, size, self._before(r, one))
            self.done[r][one.id] = arrived
            self.done[s][other.id] = together(arrived, self._before(s, other))
        else:
            require(one.duration < LATEST, self.place(r, one), "shorter than 53 days", one.duration)
            self.done[r][one.id] = later(self._before(r, one), one.duration)

    def _size(self, r, one) -> int:
        size = one.attr.get("comm_size")
        if not isinstance(size, int) or not 0 <= size < 2**46:
            raise BadTrace(f"{self.place(r, one)} must have a comm_size from 0 to {2**46 - 1} bytes, not {size}")
        return size

    def _collective(self, meeting):
        r, one = meeting[0]
        asked = [(node.attr.get("comm_type", 0), node.attr.get("comm_size")) for _, node in meeting]
        if any(one != asked[0] for one in asked):
            raise BadTrace(f"{self.place(r, one)} must be the same collective at all ranks, not {asked[0]} and others")
        kind = one.attr.get("comm_type", 0)
        name = KINDS[kind] if isinstance(kind, int) and 0 <= kind < len(KINDS) else str(kind)
        if name not in CARRIED:
            raise BadTrace(f"{self.place(r, one)} must be one of {', '.join(CARRIED)}, not {name}")
        ranks = [rank for rank, _ in meeting]
        ready = {rank: self._before(rank, node) for rank, node in meeting}
        everyone = together(*ready.values())
        size = 0 if name == "BARRIER" else self._size(r, one)
        if size == 0 or len(ranks) == 1:
            done = dict.fromkeys(ranks, everyone)
        elif name == "ALL_REDUCE":
            how = AllReduce(bytes=size, algorithm=self.chakra.algorithm, group=self.chakra.group)
            done = how.once(self.steps, ranks, ready, 0)
        elif name == "ALL_GATHER":
            done = AllGather(bytes=size * len(ranks)).once(self.steps, ranks, ready, 0)
        elif name == "ALL_TO_ALL":
            done = Exchange(bytes=size).once(self.steps, ranks, ready, 0)
        else:
            done = ReduceScatter(bytes=size).once(self.steps, ranks, ready, 0)
        for rank, node in meeting:
            self.done[rank][node.id] = together(done[rank], ready[rank])
