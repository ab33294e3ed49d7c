"""Topology: hosts, switches and the links between them, as arrays."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from weft import reading
from weft.errors import BadInput, require
from weft.units import parse_rate, parse_time, show_rate

FASTEST = SLOWEST = 2**62  # b/s, ps: what a machine word holds, and a sum of two


def led(names, frm, to) -> list[str]:
    """Names of links by the nodes that they lead from and to; of links between the same two, the second is #2."""
    seen: Counter = Counter()
    out = []
    for name in (f"{names[a]} to {names[b]}" for a, b in zip(frm, to, strict=True)):
        seen[name] += 1
        out.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return out


@dataclass(frozen=True, eq=False)
class Topology:
    """Nodes 0 … hosts-1 are hosts, the rest switches. Link n is two ports: 2n from its first end, 2n+1 back.

    A port is a direction of a link, and the queue in front of it; `port ^ 1` is the other direction.
    """

    hosts: int
    names: tuple[str, ...]  # of every node
    ends: np.ndarray  # (links, 2) int32  the two nodes of a link
    rate: np.ndarray  # (links,)  int64  b/s, each direction
    delay: np.ndarray  # (links,) int64  ps from one end to the other

    def __post_init__(self):
        require(self.hosts >= 2, "hosts", "at least 2", self.hosts)
        for link in np.flatnonzero(self.rate <= 0)[:1]:
            raise BadInput(f"the rate of link {self.link_name(link)} must be more than 0, not {self.rate[link]}")
        for link in np.flatnonzero(self.delay < 0)[:1]:
            raise BadInput(f"the delay of link {self.link_name(link)} must be 0 or more, not {self.delay[link]}")
        for link in np.flatnonzero(self.ends[:, 0] == self.ends[:, 1])[:1]:
            raise BadInput(f"a link must join two nodes, not {self.names[self.ends[link, 0]]!r} to itself")
        for host in np.setdiff1d(np.arange(self.hosts), self.ends)[:1]:
            raise BadInput(f"every host must have a link, but {self.names[host]!r} has none")

    @property
    def nodes(self) -> int:
        """Hosts and switches together."""
        return len(self.names)

    @property
    def switches(self) -> int:
        return self.nodes - self.hosts

    @property
    def ports(self) -> int:
        """Directions of links."""
        return 2 * len(self.ends)

    def port_ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(ports,) int32 twice: the node that sends into each port, and the node it leads to."""
        return self.ends.reshape(-1).copy(), self.ends[:, ::-1].reshape(-1).copy()

    def port_names(self, most: int) -> list[str]:
        """Every port, by the nodes it leads from and to; every node with all its ports, where they are more."""
        return list(self.names) if self.ports > most else led(self.names, *self.port_ends())

    def link_name(self, link: int) -> str:
        return f"{self.names[self.ends[link, 0]]}-{self.names[self.ends[link, 1]]}"

    def node(self, name: str) -> int:
        """The number of the node called `name`."""
        if name not in self.names:
            raise BadInput(f"a node must be one of {_some(self.names)}, not {name!r}")
        return self.names.index(name)

    def links_between(self, a: int, b: int) -> list[int]:
        """Every link that joins a and b."""
        ends = self.ends
        return np.flatnonzero(((ends == (a, b)) | (ends == (b, a))).all(1)).tolist()

    def links_of(self, node: int) -> list[int]:
        """Every link with an end at `node`."""
        return np.flatnonzero((self.ends == node).any(1)).tolist()

    def parts(self) -> dict[str, int]:
        """Switches by the ports they use and the fastest of them, NICs and cables: counts by name."""
        ports = np.bincount(self.ends.reshape(-1), minlength=self.nodes)
        fastest = np.zeros(self.nodes, np.int64)
        np.maximum.at(fastest, self.ends, self.rate[:, None])
        rates = [show_rate(rate) for rate in fastest.tolist()]
        names = [f"packet switch of {ports[n]} x {rates[n]}" for n in range(self.hosts, self.nodes)]
        names += [f"packet NIC of {rates[h]}" for h in range(self.hosts)]
        for ends, rate in zip(self.ends.tolist(), self.rate.tolist(), strict=True):
            names.append(f"{'host cable' if min(ends) < self.hosts else 'cable'} of {show_rate(rate)}")
        return dict(Counter(names))


def _some(names) -> str:
    return ", ".join(names[:4]) + (f" … {names[-1]}" if len(names) > 4 else "")


def build(hosts, switches, links) -> Topology:
    """A topology of `hosts` and `switches` (lists of names) and `links`: (name, name, rate, delay)."""
    names = (*hosts, *switches)
    number = {name: k for k, name in enumerate(names)}
    for a, b, rate, delay in links:
        require(rate <= FASTEST, f"the rate of link {a}-{b}", "at most 2^62 b/s", rate)
        require(delay <= SLOWEST, f"the delay of link {a}-{b}", "at most 2^62 ps", delay)
    return Topology(
        hosts=len(hosts),
        names=names,
        ends=np.array([(number[a], number[b]) for a, b, _, _ in links], np.int32).reshape(-1, 2),
        rate=np.array([rate for _, _, rate, _ in links], np.int64),
        delay=np.array([delay for _, _, _, delay in links], np.int64),
    )


def from_edges(path) -> Topology:
    """A topology read from a csv of `a,b,rate,delay`, a link a line; names that begin with h are hosts.

    Hosts are numbered by the number in their name (h2 before h10), so that host 7 of a trace is h7.
    """
    text = reading.text(path, "a csv of links")
    links = []
    seen: dict[str, None] = {}
    for k, row in reading.rows(text.splitlines(), path):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#") or [c.lower() for c in cells[:2]] == ["a", "b"]:
            continue
        if len(cells) != 4 or not all(cells):
            raise BadInput(f"{path}, line {k}: a link must be a,b,rate,delay, not {','.join(row)!r}")
        try:
            rate, delay = parse_rate(cells[2]), parse_time(cells[3])
        except BadInput as error:
            raise BadInput(f"{path}, line {k}: {error}") from None
        links.append((cells[0], cells[1], rate, delay))
        seen |= {cells[0]: None, cells[1]: None}
    if not links:
        raise BadInput(f"{path} must hold at least one link, not none")
    hosts = sorted((n for n in seen if n[0] in "hH"), key=lambda n: (int((re.findall(r"\d+", n) or ["-1"])[0]), n))
    return build(hosts, [n for n in seen if n[0] not in "hH"], links)
