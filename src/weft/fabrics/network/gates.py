"""A packet network under way whose ports are held and let go, and whose links change their rate, at given moments.

What a port holds back waits there as behind a pause frame: the packet being sent is finished, nothing is lost at a
host's port, and a switch's port fills up to its buffer. A new rate holds from the next packet on. That needs ports that
decide when they are free (`queue` other than drop tail, or buffers that are shared), which an exact moment asks for.
"""

from typing import NamedTuple

from weft.engine.jit import bare
from weft.errors import BadInput
from weft.fabrics.network.run import NetworkRun
from weft.fabrics.network.switches import wake
from weft.units import s


class Moment(NamedTuple):
    """From `time` on port `port` is held or not, or has another rate."""

    time: int
    port: int
    held: bool | None = None  # None leaves it as it is
    rate: int | None = None  # b/s; None leaves it as it is


@bare
def let_go(world, k):
    """Port k may send again."""
    wake(world[0], k)


class GatedRun(NetworkRun):
    """A run with such moments, in order of time."""

    def __init__(self, fabric, flows, moments: list[Moment], seed: int = 0):
        super().__init__(fabric, flows, seed)
        if fabric.in_time or self.moments:
            raise BadInput("a network with gates must have shared buffers and no failures, not ports that look ahead")
        self.gates, self.past = sorted(moments, key=lambda moment: moment.time), 0

    def compile(self):
        super().compile()
        let_go(self.state.world, int(self.state.hosts["port"][0]))  # nothing waits there yet

    @property
    def next_change(self):
        return self.gates[self.past].time if self.past < len(self.gates) else None

    def change(self):
        world, ports, time = self.state.world, self.state.ports, self.next_change
        world["now"] = max(self.now, time)
        while self.next_change == time:
            _, port, held, rate = self.gates[self.past]
            self.past += 1
            if rate is not None:
                ports["rate"][port], ports["pace"][port] = rate, 8 * s // rate if 8 * s % rate == 0 else 0
            if held is not None and held != bool(ports["paused"][port]):
                ports["paused"][port] = held
                if not held:
                    let_go(world, port)

    def arrays(self):
        import numpy as np

        return super().arrays() | {"gates": np.array([self.past], np.int64)}

    def restore(self, arrays):
        super().restore(arrays)
        self.past = int(arrays["gates"][0])
