"""How many sectors of memory a node-slot of a rack asks a GPU for, counted on the processor, without a GPU.

Each access of the kernel's text to an array that is far is noted. Of 32 neighbours, what they ask for at one point of
the program, in the same turn of its loops, is one request, of as many sectors of 32 bytes as differ. What lies close by
is not counted, nor is it known what the caches have.
"""

import argparse
import ast
from pathlib import Path
from types import FunctionType, ModuleType
from typing import NamedTuple

import numpy as np
from numba import njit

from weft.engine import device
from weft.engine.jit import part
from weft.fabrics.shoal import Shoal
from weft.fabrics.shoal.gpu import convert, racks, text
from weft.fabrics.shoal.gpu.state import (
    BASE,
    DELIVERED,
    LOCAL,
    MOST_VISITS,
    SENT,
    SLOT,
    VISITS,
    Rack,
    blank,
    lay_out,
)  # fmt: skip
from weft.fabrics.shoal.gpu.text import begin, receive, send
from weft.workload.arrivals import Poisson

FAR = ("u64", "u32", "leave", "leave4", "flows", "counted")  # blocks by their names in the text …
BYTES = np.array((8, 4, 2, 8, 4, 8))  # … of words of so many bytes
LOAD, STORE, ADD = range(3)
KINDS = {"both": LOAD, "once": LOAD, "put_both": STORE, "put_once": STORE, "add_to": ADD, "set_far": ADD}
BLOCK_SHIFT, KIND_SHIFT, INDEX = 60, 56, (1 << 56) - 1  # of a note
NOTES = 1 << 20  # of 32 threads in half a slot, at most

# A rack whose accesses are noted: [k, 0] the point of the program, [k, 1] the block, the kind and the word; how many.
Noted = NamedTuple("Noted", [(name, np.ndarray) for name in (*Rack._fields, "notes", "many")])


class Noting(ast.NodeTransformer):
    """Gives every function of a text the point from which it was called, and notes what it asks for."""

    def __init__(self, functions):
        self.functions, self.point, self.loops, self.calls = functions, "_point", 0, 0

    def here(self):
        """A point of the program that no other has."""
        self.calls += 1
        return f"_next_point({self.point}, {self.calls})"

    def far(self, node):
        """Which of the blocks that are far an expression names, or None."""
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "rack":
            return FAR.index(node.attr) if node.attr in FAR else None
        return FAR.index(node.id) if isinstance(node, ast.Name) and node.id in FAR else None

    def visit_FunctionDef(self, node):
        self.point = "_point"
        node.args.args.append(ast.arg("_point"))
        return self.generic_visit(node)

    def visit_For(self, node):
        node.iter = self.visit(node.iter)
        return self.loop(node)

    def visit_While(self, node):
        return self.loop(node)

    def loop(self, node):
        """Another point in every turn of a loop."""
        outer, self.loops = self.point, self.loops + 1
        self.point = f"_point{self.loops}"
        before = ast.parse(f"{self.point} = {outer}").body
        turn = ast.parse(f"{self.point} = {self.here()}").body
        if isinstance(node, ast.While):
            node.test = self.visit(node.test)
        node.body = turn + [line for one in node.body for line in _lines(self.visit(one))]
        self.point = outer
        return [*before, node]

    def visit_Subscript(self, node):
        block = self.far(node.value)
        self.generic_visit(node)
        if block is None or not isinstance(node.ctx, ast.Load):
            return node
        return _expression(f"_load(rack, {block}, {_text(node.value)}, {_text(node.slice)}, {self.here()})")

    def visit_Assign(self, node):
        (target,) = node.targets
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        if not any(self.stored(one) for one in parts):
            return self.generic_visit(node)
        values = node.value.elts if isinstance(target, ast.Tuple) else [node.value]
        lines, after = [], []
        for k, (one, value) in enumerate(zip(parts, values, strict=True)):
            lines += ast.parse(f"_value{k} = {_text(self.visit(value))}").body
            if self.stored(one):
                array, block, index = _text(one.value), self.far(one.value), _text(self.visit(one.slice))
                after += ast.parse(f"_store(rack, {block}, {array}, {index}, _value{k}, {self.here()})").body
            else:
                after += ast.parse(f"{_text(self.visit(one))} = _value{k}").body
        return lines + after

    def visit_AugAssign(self, node):
        if not self.stored(node.target):
            return self.generic_visit(node)
        read = ast.Subscript(node.target.value, node.target.slice, ast.Load())
        return self.visit(ast.Assign([node.target], ast.BinOp(read, node.op, node.value), lineno=node.lineno))

    def stored(self, node):
        """Whether an assignment to it is one to a block that is far."""
        return isinstance(node, ast.Subscript) and self.far(node.value) is not None

    def visit_Call(self, node):
        name = getattr(node.func, "id", "")
        block = self.far(node.args[0]) if name in KINDS else None
        self.generic_visit(node)
        if block is not None:
            index = _text(node.args[1])
            node.args[1] = _expression(f"_note(rack, {block}, {KINDS[name]}, {index}, {self.here()})")
        elif name in self.functions:
            node.args.append(_expression(self.here()))
        return node


_text = ast.unparse


def _expression(words):
    return ast.parse(words, mode="eval").body


def _lines(found):
    return found if isinstance(found, list) else [found]


@part
def _next_point(point, number):
    mixed = np.uint64((np.uint64(point) ^ np.uint64(number)) * np.uint64(0x9E3779B97F4A7C15))
    return mixed ^ np.uint64(point) >> np.uint64(29)


@part
def _note(rack, block, kind, index, point):
    k = rack.many[0]
    rack.notes[k, 0] = point
    rack.notes[k, 1] = np.uint64(block << BLOCK_SHIFT | kind << KIND_SHIFT | np.int64(index))
    rack.many[0] = k + 1
    return np.uint64(index)


@part
def _load(rack, block, array, index, point):
    _note(rack, block, LOAD, index, point)
    return array[index]


@part
def _store(rack, block, array, index, value, point):
    _note(rack, block, STORE, index, point)
    array[index] = value


@part
def count(rack, starts, sums):
    """Add the sectors that 32 threads asked for in half a slot, by array and kind, and forget them."""
    notes, many = rack.notes, rack.many[0]
    order, before, seen = np.argsort(notes[:many, 0], kind="mergesort"), np.uint64(0), {np.uint64(0)}
    for k in range(many):
        point, word = notes[order[k], 0], notes[order[k], 1]
        if point != before:
            seen.clear()
            before = point
        block, index = np.int64(word >> np.uint64(BLOCK_SHIFT)), np.int64(word & np.uint64(INDEX))
        which, kind = 0, np.int64(word >> np.uint64(KIND_SHIFT)) & 3
        for x in range(starts.shape[0]):
            which = x if starts[x, 0] == block and starts[x, 1] <= index else which
        sector = np.uint64(block << BLOCK_SHIFT | index * BYTES[block] // 32)
        if sector not in seen:
            seen.add(sector)
            sums[which, kind] += 1
    rack.many[0] = 0


@device.device
def advance(plan, rack, slots, starts, sums):
    """Let a rack advance; returns what its nodes have counted."""
    acc, prints = np.zeros(VISITS + 1, np.int64), np.zeros(3, np.uint64)
    tally, air, channels = rack.counted, plan.air, plan.channels
    for slot in range(tally[SLOT], tally[SLOT] + slots):
        e, base = slot // plan.epoch - tally[BASE], slot % plan.epoch * channels
        back, last = (slot - plan.delay) % plan.epoch * channels, (slot - plan.delay) % air * channels
        for i in range(plan.n):
            begin(plan, rack, i, True, slot, acc, np.uint64(1))
            send(plan, rack, i, slot, e, base, slot % air * channels, acc, prints, np.uint64(2))
            if i & 31 == 31 or i == plan.n - 1:
                count(rack, starts, sums)
        for i in range(plan.n):
            receive(plan, rack, i, slot, e, base, back, last, acc, prints, np.uint64(3))
            if i & 31 == 31 or i == plan.n - 1:
                count(rack, starts, sums)
        for k in range(4):
            acc[VISITS] += np.int64(prints[2] >> np.uint64(16 * k)) & MOST_VISITS
        prints[2] = 0
    return acc


def noting() -> ModuleType:
    """The text, with notes of what it asks for."""
    source = Path(str(text.__file__)).read_text()
    tree = ast.parse(source)
    Noting({one.name for one in tree.body if isinstance(one, ast.FunctionDef)}).visit(tree)
    made = ModuleType("noted")
    made.__dict__.update(_next_point=_next_point, _note=_note, _load=_load, _store=_store)
    exec(compile(ast.fix_missing_locations(tree), "noted", "exec"), made.__dict__)
    for one in vars(made).values():
        if isinstance(one, FunctionType):
            one.__module__ = text.__name__
    return made


def compiled():
    """`advance`, compiled with a text that notes what it asks for."""
    noted = noting()
    names = {name: getattr(noted, name) for name in ("begin", "send", "receive")}
    return device.compiled(advance, device.loop(), jit=njit(error_model="numpy"), names=names)


def prepared(load, nodes, before):
    """A rack at that load, carried on by the fast kernel, `before` slots from empty."""
    rack = Shoal(nodes=nodes)
    flows = int(load * 2 * before * nodes * rack.slot_time * rack.link / 8e12 / 100_000) + 50
    run = rack.prepare(Poisson(load=load, flows=flows, sizes="pareto").draw(nodes=nodes, link=rack.link, seed=1))
    while run.slot < before and run.finished < run.total:
        why = run.step(before * rack.slot_time, 1 << 60)
        if why >= 3:
            run.grow(why)
    return run


def requests(run, slots, advance):
    """(names of the arrays, sectors by array and kind for each node-slot, what nodes counted for each)."""
    shape = racks.common_shape([racks.DeviceRack.of(run)])
    one, plan, layout = blank(run.plan, shape), convert.make_common(run.plan, shape), lay_out(run.plan, shape)
    convert.load(run.plan, run.state, shape, one)
    inside = {name: FAR.index(block) for name, block in layout.within.items() if block in FAR}
    arrays = sorted((block, layout.starts[name], name) for name, block in inside.items())
    arrays += [(FAR.index(name), 0, name) for name in FAR if name not in layout.within.values()]
    close = np.zeros(16 * plan.apart, np.uint64), np.zeros(24 * plan.apart, np.uint32)
    blocks = (
        one.u64,
        one.u32,
        one.leave,
        one.leave4,
        one.flows,
        one.near64,
        one.near32,
        one.few,
        one.counted,
        np.zeros(1, np.int32),
    )
    rack = Noted(*blocks, *close, np.zeros((NOTES, 2), np.uint64), np.zeros(1, np.int64))
    sums = np.zeros((len(arrays), 3), np.int64)
    acc = advance(plan, rack, slots, np.array([(block, at) for block, at, _ in arrays]), sums)
    total = slots * plan.n * plan.channels
    return [name for _, _, name in arrays], sums / total, acc / total


def main():
    """Print what a node-slot asks for, array by array."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=512)
    parser.add_argument("--loads", default="1,0.2")
    parser.add_argument("--before", type=int, default=2560, help="slots from empty that are not counted")
    parser.add_argument("--slots", type=int, default=256)
    given = parser.parse_args()
    advance = compiled()
    for load in map(float, given.loads.split(",")):
        names, sums, acc = requests(prepared(load, given.nodes, given.before), given.slots, advance)
        said = f"\nload {load:g}, {given.nodes} nodes, {given.slots} slots: of the queues {acc[VISITS]:.3f} looked at"
        relayed, arrived = acc[SENT] - acc[LOCAL], acc[DELIVERED]
        print(f"{said}, {acc[LOCAL]:.3f} own and {relayed:.3f} relayed cells sent, {arrived:.3f} arrived")
        print(f"{'sectors of':14}{'loads':>8}{'stores':>8}{'adds':>8}{'all':>8}")
        for name, some in [*zip(names, sums, strict=True), ("all", sums.sum(0))]:
            if some.sum() > 0.0005:
                print(f"{name:14}" + "".join(f"{x:8.3f}" for x in (*some, some.sum())))


if __name__ == "__main__":
    main()
