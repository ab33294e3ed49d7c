"""Follow a flow through TDMA Ethernet: when it was reported, in which slots it was granted what, and what arrived.

The twin carries the run again: streams of packets in the slots that the manager gives. Items are numbers of the slots
in which the flow's host might send to its destination.
"""

from weft.fabrics.base import Step, require_few
from weft.fabrics.tdma.reference import NEVER, Room
from weft.units import show_size, show_time

MOST = 500_000  # packets that the twin is asked to carry


def follow(fabric, flows, f: int, *, seed: int, until: int) -> tuple[list[Step], int]:
    """(steps of flow f up to `until`, the ps at which it was done or -1), in order of time."""
    require_few(flows, fabric.mtu, fabric.link, until, MOST)
    room = Followed(fabric, flows, seed, f)
    room.run(until)
    return sorted(room.steps, key=lambda step: (step.time, step.what == "flow ends")), room.finish[f]


class Followed(Room):
    """A network that tells of one flow."""

    def __init__(self, fabric, flows, seed, f):
        self.f, self.steps, self.slots = f, [], 0
        super().__init__(fabric, flows, seed)
        self.i, self.j, _ = self.flows[f]

    def tell(self, time, item, what, where, why=""):
        self.steps.append(Step(int(time), item, what, where, why))

    @property
    def left(self):
        """Bytes of the flow that have not arrived, or None where it has not begun or is done."""
        return next((left for g, left in self.waiting[self.i, self.j] if g == self.f), None)

    def run(self, until=NEVER):
        """Let cycles pass, until the flow is done or time is up."""
        while self.finish[self.f] < 0:
            before = self.cycle, self.epoch
            super().run(min(until, self.manager.begins(self.cycle) + 1))
            if (self.cycle, self.epoch) == before:
                return

    def _admit(self, now):
        before = self.left
        super()._admit(now)
        if before is None and self.left is not None and self.finish[self.f] < 0:
            ahead = 0
            for g, left in self.waiting[self.i, self.j]:
                if g == self.f:
                    break
                ahead += left
            why = f"behind {show_size(ahead)} of its host for the same one" if ahead else "nothing before it"
            self.tell(self.begun[self.f], -1, "flow begins", f"host {self.i}", why)

    def _beside(self, f, i, j, size, start):
        super()._beside(f, i, j, size, start)
        if f == self.f:
            self.tell(start, -1, "flow begins", f"host {i}", "short: in the bandwidth that is kept for such")

    def _report(self, now):
        super()._report(now)
        if self.left is not None:
            heard = not self.deaf(self.i)
            backlog = sum(left for _, left in self.waiting[self.i, self.j])
            why = f"{show_size(backlog)} wait for host {self.j}" if heard else "not heard: a link or a host is down"
            self.tell(now, -1, "backlog reported", f"host {self.i} to the manager", why)

    def _window(self, i, j, c, granted, path):
        start, end, size = super()._window(i, j, c, granted, path)
        if (i, j) == (self.i, self.j) and self.left is not None:
            where = f"host {i}, slot of cycle {c}"
            if size:
                why = f"granted {show_size(granted)}, for {show_time(end - start)} at most"
                self.tell(start, self.slots, f"{show_size(size)} may be sent", where, why)
            else:
                why = "no frame told it to begin" if start == NEVER else "nothing that could be sent in time"
                self.tell(self.manager.begins(c), self.slots, "slot unused", where, why)
            self.slots += 1
        return start, end, size

    def _deliver(self, i, j, size, before, step, arrived):
        left = self.left if (i, j) == (self.i, self.j) else None
        super()._deliver(i, j, size, before, step, arrived)
        if left is not None:
            got = left - (self.left or 0)
            if got:
                done = self.finish[self.f]
                time = arrived if done < 0 else done
                self.tell(
                    time, self.slots - 1, f"{show_size(got)} arrived", f"host {j}", f"{show_size(left - got)} to go"
                )

    def _done(self, f, time):
        super()._done(f, time)
        if f == self.f:
            self.tell(time, -1, "flow ends", f"host {self.j}", f"{show_time(time - self.begun[f])} after its start")
