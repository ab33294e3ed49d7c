"""Follow a flow through a switch: when each cell came in, where it waited, behind how many, and how often it lost.

The twin carries the run again, and after every slot it is looked where the cells of the flow are. Twin and kernel move
the same cells in the same slots, so what is told is what happened.
"""

from collections import deque

from weft.fabrics.base import Step, require_few
from weft.fabrics.crossbar.reference import build, carry_flows

MOST = 200_000  # cells that the twin is asked to carry
PLACES = {  # attribute of a switch -> what its queues are called, by their indices
    "queues": ("input {0}", "input {0}, queue {1}"), "lists": ("input {0}",), "outputs": ("output {0}",),
    "crosspoints": ("", "crosspoint {0}.{1}"), "buffers": ("", "row {0}, buffer of output {1}"),
    "pointers": ("", "memory {0}, queue to {1}"), "middle": ("", "middle port {0}, queue to {1}"),
}  # fmt: skip


def follow(fabric, flows, f: int, *, seed: int, until: int) -> tuple[list[Step], int]:
    """(steps of flow f up to `until`, the ps at which it was done or -1), in order of time."""
    require_few(flows, fabric.payload, fabric.link, until, MOST, "cells")
    switch = build(fabric, seed)
    told = Followed(switch, flows, f)
    slots = -(-max(until - fabric.way, 0) // fabric.slot)
    carry_flows(switch, flows, slots)
    end = switch.log.finish.get(f)
    return told.steps, -1 if end is None else (end + 1) * fabric.slot + fabric.way


class Followed:
    """Stands between the switch and those who let it carry, and looks."""

    def __init__(self, switch, flows, f):
        self.switch, self.fabric, self.f, self.steps = switch, switch.fabric, f, []
        self.i, self.j = int(flows.src[f]), int(flows.dst[f])
        self.numbers: dict[int, int] = {}  # slot in which a cell came in -> its number in the flow
        self.at: dict[int, tuple] = {}  # number -> (where it waits, since which slot, slots in which it was first)
        self.refused, self.last = 0, None
        self._admit, self._step, self._room = switch.admit, switch.step, switch.room_for
        switch.admit, switch.step, switch.room_for = self.admit, self.step, self.room_for

    def tell(self, slot, number, what, where, why=""):
        self.steps.append(Step(slot * self.fabric.slot, number, what, where, why))

    def room_for(self, i, j):
        room = self._room(i, j)
        self.refused += (i, j) == (self.i, self.j) and not room
        return room

    def admit(self, cell, slot):
        refused = self._admit(cell, slot)
        if cell.flow == self.f:
            number = self.numbers[cell.born] = len(self.numbers)
            why = f"the queue was full {self.refused} times" if self.refused else ""
            if self.last is not None and slot > self.last + 1 and not self.refused:
                why = f"other flows had its line for {slot - self.last - 1} slots"
            self.last, self.refused = slot, 0
            self.tell(slot, number, "lost" if refused else "entered", f"input {cell.i}", "no room" if refused else why)
        return refused

    def step(self, slot):
        before = dict(self._places())  # cells that came in this slot are where they wait
        for number, (where, place) in before.items():
            if number not in self.at:
                self._queued(slot, number, where, place)
        gone = self._step(slot)
        after = dict(self._places())
        for number, (where, place) in after.items():
            if number not in self.at or self.at[number][0] != where:
                self._left(slot, number)
                self._queued(slot + 1, number, where, place)
            elif before[number][1] == 0:  # it was first, and is still there
                self.at[number][2] += 1
        for cell in gone:
            if cell.flow == self.f:
                number = self.numbers[cell.born]
                self._left(slot, number)
                there = (slot + 1) * self.fabric.slot + self.fabric.way
                self.steps.append(Step(there, number, "delivered", f"node {cell.j}", ""))
        self.steps.sort(key=lambda step: step.time)
        return gone

    def _queued(self, slot, number, where, place):
        self.at[number] = [where, slot, 0]
        self.tell(slot, number, "queued", where, f"behind {place}")

    def _left(self, slot, number):
        if number in self.at:
            where, since, first = self.at.pop(number)
            waited = slot - since
            held = "not its turn" if where.startswith("middle port") else "not chosen, or no room ahead"
            first_of = f"{first} of them as the first: {held}"
            why = f"waited {waited} slots, {first_of}" if waited else "at once"
            self.tell(slot, number, "left", where, why)

    def _places(self):
        """(number, (where, how many are before it)) of every cell of the flow in the switch."""
        for name, patterns in PLACES.items():
            for where, queue in _queues(getattr(self.switch, name, None), patterns):
                for place, entry in enumerate(queue):
                    cell = self._cell(where, entry)
                    if cell is not None and cell.flow == self.f:
                        yield self.numbers[cell.born], (where, place)

    def _cell(self, where, entry):
        if isinstance(entry, int):  # an address of a shared memory, which is that of the flow's input or not
            return self.switch.memory[self.i].get(entry) if where.startswith(f"memory {self.i},") else None
        return entry[0] if isinstance(entry, tuple) else entry


def _queues(queues, patterns):
    """(name, queue) of every queue in a table of one or two dimensions; arbiters are no queues."""
    for a, row in enumerate(queues or ()):
        if isinstance(row, deque) or (len(patterns) == 1 and isinstance(row, list)):
            yield patterns[0].format(a), row
        elif isinstance(row, list):
            for b, queue in enumerate(row):
                yield patterns[-1].format(a, b), queue
