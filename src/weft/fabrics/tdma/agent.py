"""A host's side of the protocol (§5.3.1): frames in, to whom it may send out. It knows no simulator.

A class may send from the moment its pause is over. That a pause ends by itself after so many quanta is the standards'
rule (`expiry`); an agent that was made for TDMA rather stays silent until it is told to send, and with `permit` stops
by itself that long after it was told, so that a lost stop frame costs others no more than the difference.
"""

from dataclasses import dataclass

from weft.errors import require
from weft.fabrics.tdma.manager import CYCLES, EPOCHS, peer_of
from weft.units import Gbps, Rate, Time
from weft.wire.pfc import Extended, Pause, Pfc, quantum

FOREVER = 1 << 62


@dataclass(kw_only=True, eq=False)
class Agent:
    """What a host knows of when it may send. Times are those of its own clock."""

    host: int
    hosts: int
    link: Rate = 10 * Gbps
    permit: Time | None = None  # ps after which a permission ends without a frame; None for never
    expiry: bool = False  # whether a pause that nobody lifts ends after its quanta
    muted: bool = True  # whether nothing may be sent before the first frame

    def __post_init__(self):
        require(0 <= self.host < self.hosts, "host", f"from 0 to {self.hosts - 1}", self.host)
        require(self.permit is None or self.permit > 0, "permit", "more than 0", self.permit)
        self._until = dict.fromkeys(range(self.hosts - 1), FOREVER if self.muted else 0)  # class -> end of its pause
        self._ends: dict[int, int] = {}  # class -> end of its permission
        self.epoch, self.cycle = 0, -1  # of the newest frame
        self.ignored = 0  # frames that came late, or from a manager that was replaced

    @property
    def seen(self) -> int | None:
        """The last cycle that is over: the newest frame begins or opens the one after it; None without numbers."""
        return None if self.cycle < 0 else self.cycle - 1

    def frame(self, frame, now: int) -> bool:
        """Take a frame; False if it was ignored."""
        if isinstance(frame, Extended) and not self._newer(*divmod(frame.seq, CYCLES)):
            self.ignored += 1
            return False
        for c, quanta in self._times(frame):
            if quanta == 0:
                self._until[c] = now
                self._ends[c] = FOREVER if self.permit is None else now + self.permit
            else:
                self._until[c] = now + round(quanta * quantum(self.link)) if self.expiry else FOREVER
                self._ends[c] = FOREVER
        return True

    def _newer(self, epoch, low) -> bool:
        """Whether a frame's number is not behind the newest; both parts count around."""
        ahead = (epoch - self.epoch) % EPOCHS
        if ahead >= EPOCHS // 2:
            return False
        step = (low - self.cycle) % CYCLES
        if ahead == 0 and self.cycle >= 0 and step >= CYCLES // 2:
            return False
        self.epoch, self.cycle = epoch, low if self.cycle < 0 else self.cycle + step
        return True

    def _times(self, frame):
        """(class, quanta) of all classes that a frame is about."""
        if isinstance(frame, Pause):
            return [(c, frame.time) for c in self._until]
        if isinstance(frame, Pfc):
            return [(c, q) for c, q in enumerate(frame.times) if q is not None and c in self._until]
        own = [(frame.which, frame.time)] if frame.which in self._until else []
        others = [] if frame.others is None else [(c, frame.others) for c in self._until if c != frame.which]
        return own + others

    def may_send(self, now: int) -> list[int]:
        """The hosts that it may send to."""
        able = [c for c, until in self._until.items() if until <= now < self._ends.get(c, FOREVER)]
        return [peer_of(self.host, c, self.hosts) for c in able]

    def next_change(self, now: int) -> int | None:
        """When `may_send` changes without a frame; None for never."""
        times = [t for t in (*self._until.values(), *self._ends.values()) if now < t < FOREVER]
        return min(times, default=None)
