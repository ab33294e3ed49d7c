"""Traffic of a disaggregated rack: processors fetch from memory and storage, most of them from a busy few.

Shoal, section 7.4, maps nodes to processors, memory and storage and draws flows from traces of six applications (Gao et
al., Network Requirements for Resource Disaggregation, OSDI '16). Neither the traces nor their distributions are in
either text. The paper states the mean gap between flows, 12.65 ns for 512 nodes, and that more than 84 % of the flows
are among a third of the nodes; the source, that memory moves in whole pages. The rest is ours, and a parameter.
"""

from dataclasses import dataclass, replace

import numpy as np

from weft import random
from weft.errors import require
from weft.units import KB, Size, Time, param
from weft.workload.arrivals import FLOWS, check_fabric
from weft.workload.base import Workload
from weft.workload.flows import LATEST, Flows
from weft.workload.sizes import sizes
from weft.workload.streams import Stream

ROLES = ("processor", "memory", "storage")


@dataclass(frozen=True, kw_only=True)
class Disaggregated(Workload):
    """Flows between processors and memory or storage, at random moments, most of them among a busy third.

    Nodes are dealt to the three roles in equal parts, and the busy ones drawn in each role, at random. A flow has a
    processor at one end, in either direction with equal chance.
    """

    gap: Time = param(12_650, "mean time between two flows anywhere in the rack")
    storage: float = param(0.01, "fraction of the flows that are for or from storage; the others are memory's")
    hot: float = param(0.3333, "fraction of the nodes of every role that are busy")
    share: float = param(0.84, "fraction of the flows that are among them")
    pages: str = param("exponential:mean=2KB", "sizes of memory's flows, before they are rounded up to whole pages")
    blocks: str = param("exponential:mean=256KB", "sizes of storage's flows, rounded up too")
    page: Size = param(4096, "bytes of a page")
    flows: int = param(FLOWS, "number of flows")

    def __post_init__(self):
        require(self.gap >= 1, "gap", "at least 1 ps", self.gap)
        require(self.flows >= 1, "flows", "at least 1", self.flows)
        require(self.gap * self.flows * 64 < LATEST, "gap", "short enough for all flows to arrive in time", self.gap)
        for name in ("storage", "share"):
            require(0 <= getattr(self, name) <= 1, name, "from 0 to 1", getattr(self, name))
        require(0 < self.hot <= 1, "hot", "above 0, up to 1", self.hot)
        require(1 <= self.page <= 1024 * KB, "page", "from 1 B to 1.024 MB", self.page)
        for name in ("pages", "blocks"):
            object.__setattr__(self, name, str(sizes(getattr(self, name))))

    def roles(self, nodes: int, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """For each role its busy nodes and its others; at least one is busy."""
        order = random.permutation(random.key(seed, Stream.CHOSEN), nodes)
        out = {}
        for k, role in enumerate(ROLES):
            own = np.sort(order[k::3])
            busy = max(1, round(self.hot * len(own)))
            chosen = np.sort(random.permutation(random.key(seed, Stream.ROLES + k), len(own))[:busy])
            out[role] = own[chosen], np.delete(own, chosen)
        return out

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes."""
        check_fabric(nodes, link, least=6)
        count = self.flows
        gaps = -random.ln(random.unit(random.words(random.key(seed, Stream.GAPS), count))) * float(self.gap)
        start = np.cumsum(np.rint(gaps).astype(np.int64))
        stored = random.unit(random.words(random.key(seed, Stream.SIDES), count)) <= self.storage
        busy = random.unit(random.words(random.key(seed, Stream.BURST_ENDS), count)) <= self.share
        roles = self.roles(nodes, seed)
        near = _pick(roles["processor"], busy, random.words(random.key(seed, Stream.SOURCES), count))
        words = random.words(random.key(seed, Stream.DESTINATIONS), count)
        far = np.where(stored, _pick(roles["storage"], busy, words), _pick(roles["memory"], busy, words))
        away = random.words(random.key(seed, Stream.OFFSETS), count) >> np.uint64(63) == 1
        words = random.words(random.key(seed, Stream.SIZES), count)
        size = np.where(stored, sizes(self.blocks).draw(words), sizes(self.pages).draw(words))
        flows = Flows.of(
            nodes=nodes,
            src=np.where(away, near, far),
            dst=np.where(away, far, near),
            size=-(-size // self.page) * self.page,
            start=start,
        )
        among = len(np.concatenate([own for own, _ in roles.values()]))
        note = f"{busy.mean():.1%} of the flows are among {among} of {nodes} nodes; sizes and roles are assumed"
        return replace(flows, notes=(*flows.notes, note))


def _pick(role, busy, words):
    """A node of a role for each flow: of its busy ones, or of its others, or of all if all are busy."""
    own, others = role
    rest = others if len(others) else own
    return np.where(busy, own[random.below(words, len(own))], rest[random.below(words, len(rest))])
