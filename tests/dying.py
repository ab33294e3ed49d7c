"""A workload whose process is killed while it is drawn, as the system does when memory runs out."""

import os
import signal
from dataclasses import dataclass

from weft.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Dying(Workload):
    flows: int = 1

    def draw(self, *, nodes, link, seed):
        os.kill(os.getpid(), signal.SIGKILL)
