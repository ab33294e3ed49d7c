"""The switch of §IV, chip by chip: pods of line cards and uplink cards, core cards, and the cables between them.

A deployment is a `weft.topology.deployment.Deployment`, which the planning models price, and its cables are a
`weft.topology.cabling.Wiring`. Here both become a graph: what is soldered, what is plugged, and what a failed chip,
card, module or cable takes with it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.errors import BadInput, require
from weft.topology.cabling import FIELDS, ROW, Wiring
from weft.topology.deployment import Deployment
from weft.topology.graph import Topology

HOST, EDGE, AGGREGATION, CORE = range(4)  # tiers, from below
KINDS = ("chip", "pod", "line-card", "uplink-card", "module", "core-card", "cable")


def plug(switch: Deployment) -> Wiring:
    """The cables of a deployment, full or not: every pod alike, as evenly over the rows of the core cards as they go.

    Chip a of an uplink card is plugged into rows a, one core card after the other; a row has room for `radix` cables in
    all. With a full core that is the map of §IV-E: one cable of every pod on every row.
    """
    k, pods, cards = switch.radix, switch.pods, switch.core_cards
    ports = [(u, a, q) for u in range(switch.uplink_cards) for a in range(2) for q in range(k // 8)]
    room = k // pods  # positions of one pod on a row
    cables = []
    for p in range(pods if cards else 0):
        used = np.zeros((cards, 2), int)
        for u, a, q in ports:
            card = (k // 8 * u + q) % cards
            if used[card, a] < room:
                cables.append((p, u, a, q, card, a, p * room + used[card, a]))
                used[card, a] += 1
    return Wiring(k, np.array(cables, int).reshape(-1, 7), cards)


@dataclass(frozen=True, eq=False)
class Boards:
    """Every chip and link of a deployment.

    Chips are called after their boards: edge3.1.2 is chip 2 on line card 1 of pod 3, agg3.5.0 chip 0 on uplink card 5
    of pod 3, core17.upper.3 chip 3 in the upper row of core card 17. Hosts are numbered pod by pod, line card by line
    card.
    """

    switch: Deployment
    wiring: Wiring
    delay: int = 0  # ps of a link on a board or to a host
    cable_delay: int = 0  # ps of a link through EEP and fibre

    def __post_init__(self):
        switch, cables = self.switch, self.wiring.cables
        radix = self.wiring.radix
        require(radix == switch.radix, "radix of the cables", f"the {switch.radix} of the chips", radix)
        limits = (switch.pods, switch.uplink_cards, 2, switch.radix // 8, switch.core_cards, 2, switch.radix)
        for column, (name, limit) in enumerate(zip(FIELDS, limits, strict=True)):
            for value in cables[cables[:, column] >= limit, column][:1]:
                raise BadInput(f"{name} of a cable must be below {limit} in this deployment, not {value}")

    @classmethod
    def of(cls, switch: Deployment, **more) -> "Boards":
        """A deployment with the cables that `plug` gives it."""
        return cls(switch, plug(switch), **more)

    # -------------------------------------------------------- chips

    @cached_property
    def line_cards(self) -> list[tuple[int, int]]:
        """(pod, card) of every line card: pods are filled one after the other, each with one at least."""
        each, left = self.switch.radix // 8, self.switch.line_cards - self.switch.pods
        found = []
        for p in range(self.switch.pods):
            here = 1 + min(left, each - 1)
            left -= here - 1
            found += [(p, card) for card in range(here)]
        return found

    @cached_property
    def edges(self) -> list[tuple[int, int, int]]:
        """(pod, line card, chip) of every edge chip."""
        return [(p, card, i) for p, card in self.line_cards for i in range(4)]

    @cached_property
    def aggregations(self) -> list[tuple[int, int, int]]:
        """(pod, uplink card, chip) of every aggregation chip."""
        return [(p, u, a) for p in range(self.switch.pods) for u in range(self.switch.uplink_cards) for a in range(2)]

    @cached_property
    def cores(self) -> list[tuple[int, int, int]]:
        """(card, row, chip) of every core chip."""
        return [(card, row, i) for card in range(self.switch.core_cards) for row in range(2) for i in range(4)]

    @property
    def hosts(self) -> int:
        return int(self.switch.ports)

    @cached_property
    def tier(self) -> np.ndarray:
        """(nodes,) int: tier of every node."""
        counts = (self.hosts, len(self.edges), len(self.aggregations), len(self.cores))
        return np.repeat(np.arange(4), counts)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes, hosts first."""
        return (
            *(f"h{h}" for h in range(self.hosts)),
            *(f"edge{p}.{card}.{i}" for p, card, i in self.edges),
            *(f"agg{p}.{u}.{a}" for p, u, a in self.aggregations),
            *(f"core{card}.{ROW[row]}.{i}" for card, row, i in self.cores),
        )

    # -------------------------------------------------------- links

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        """((links, 2) int32 lower and upper end, (links,) int cable of each link, -1 on boards)."""
        half, hosts = self.switch.radix // 2, self.hosts
        first = {EDGE: hosts, AGGREGATION: hosts + len(self.edges)}
        first[CORE] = first[AGGREGATION] + len(self.aggregations)
        up = np.array([(h, hosts + h // half) for h in range(hosts)])
        each = 2 * self.switch.uplink_cards  # aggregation chips of a pod: one trace to each (§IV-C, IV-D)
        pod = np.array([p for p, _, _ in self.edges])
        e = np.repeat(np.arange(len(self.edges)), each)
        boards = np.stack(
            [hosts + e, first[AGGREGATION] + pod[e] * each + np.tile(np.arange(each), len(self.edges))], 1
        )
        cables = self.wiring.cables
        lower = first[AGGREGATION] + (cables[:, 0] * self.switch.uplink_cards + cables[:, 1]) * 2 + cables[:, 2]
        upper = first[CORE] + (cables[:, 4] * 2 + cables[:, 5]) * 4
        fibres = np.stack([np.repeat(lower, 4), (upper[:, None] + np.arange(4)).ravel()], 1)  # four different chips
        cable = np.repeat([-1, -1], [len(up), len(boards)])
        return (
            np.concatenate([up, boards, fibres]).astype(np.int32),
            np.concatenate([cable, np.repeat(np.arange(len(cables)), 4)]),
        )

    @property
    def ends(self) -> np.ndarray:
        """(links, 2) int32: lower and upper end of every link."""
        return self._table[0]

    @property
    def cable(self) -> np.ndarray:
        """(links,) int: the cable that a link goes through, or -1."""
        return self._table[1]

    @cached_property
    def graph(self) -> Topology:
        """The deployment as a network of links of the ports' rate: EEP gives each of the four in a cable its own."""
        through = self.cable >= 0
        return Topology(
            hosts=self.hosts,
            names=self.names,
            ends=self.ends,
            rate=np.full(len(self.ends), self.switch.link, np.int64),
            delay=np.where(through, self.cable_delay, self.delay).astype(np.int64),
        )

    # -------------------------------------------------------- what fails together

    @cached_property
    def parts(self) -> dict[str, dict[str, np.ndarray]]:
        """kind -> name -> links that go down with a part.

        A chip is named as a node is, a line card 3.1 after its pod, an uplink card 3.5 likewise, a core card 17, a
        module 1, a cable 3.5.0.2 after pod, uplink card, chip and QSFP, a pod 3.
        """
        first = len(self.names) - len(self.edges) - len(self.aggregations) - len(self.cores)
        chips = {self.names[n]: n for n in range(first, len(self.names))}
        at: list[list[int]] = [[] for _ in self.names]
        for link, (a, b) in enumerate(self.ends.tolist()):
            at[a].append(link)
            at[b].append(link)
        groups: dict[str, dict] = {kind: {} for kind in KINDS}
        groups["chip"] = {name: np.array(at[n]) for name, n in chips.items()}

        def gather(kind, name, *members):
            groups[kind].setdefault(name, []).extend(link for member in members for link in at[chips[member]])

        for p, card, i in self.edges:
            gather("line-card", f"{p}.{card}", f"edge{p}.{card}.{i}")
            gather("pod", f"{p}", f"edge{p}.{card}.{i}")
        for p, u, a in self.aggregations:
            gather("uplink-card", f"{p}.{u}", f"agg{p}.{u}.{a}")
            gather("pod", f"{p}", f"agg{p}.{u}.{a}")
        whole = max(self.switch.radix**2 // 64, 1)  # core cards of a module: nine with 24-port chips
        for card, row, i in self.cores:
            gather("core-card", f"{card}", f"core{card}.{ROW[row]}.{i}")
            gather("module", f"{card // whole}", f"core{card}.{ROW[row]}.{i}")
        for n, (p, u, a, q) in enumerate(self.wiring.cables[:, :4].tolist()):
            groups["cable"].setdefault(f"{p}.{u}.{a}.{q}", []).extend(np.flatnonzero(self.cable == n).tolist())
        return {kind: {name: np.unique(links) for name, links in parts.items()} for kind, parts in groups.items()}

    # -------------------------------------------------------- bandwidth

    def flow(self, sources, sinks, alive: np.ndarray | None = None) -> int:
        """Links' worth that can go from some hosts to others at once, up and then down, as packets are routed."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import maximum_flow

        up = np.ones(len(self.ends), bool) if alive is None else alive
        low, high = self.ends[up].T.astype(np.int64)
        n = len(self.names)
        chips = np.arange(self.hosts, n)  # each twice: on the way up n, on the way down n + its number
        turn = np.full(len(chips), len(self.ends), np.int64)
        source, sink = 2 * n, 2 * n + 1
        a = np.concatenate([low, n + high, chips, np.full(len(sources), source), n + np.asarray(sinks)])
        b = np.concatenate([high, n + low, n + chips, np.asarray(sources), np.full(len(sinks), sink)])
        ones = np.ones(2 * len(low), np.int64)
        weight = np.concatenate([ones, turn, np.ones(len(sources) + len(sinks), np.int64)]).astype(np.int32)
        net = coo_matrix((weight, (a, b)), shape=(2 * n + 2, 2 * n + 2), dtype=np.int32).tocsr()
        return int(maximum_flow(net, source, sink).flow_value)

    def splits(self, hosts: np.ndarray | None = None, draws: int = 4) -> list[np.ndarray]:
        """Halves of some hosts, or of all, that are tried for the worst: pods apart, as the wiring is worst, line cards
        and chips of every pod apart, and some drawn at random."""
        from weft.random import key, permutation

        hosts = np.arange(self.hosts) if hosts is None else hosts
        half = hosts.size // 2
        chip = hosts // (self.switch.radix // 2)
        pod = np.array([p for p, _, _ in self.edges])[chip]
        ways = [np.arange(hosts.size), chip % 2, hosts % 2]
        if self._even:
            ways.append(~np.isin(pod, self.wiring.check().left))
        found = [hosts[np.argsort(way, kind="stable")[:half]] for way in ways]
        return found + [hosts[permutation(key(draw, 0x626973), hosts.size)[:half]] for draw in range(draws)]

    @property
    def _even(self) -> bool:
        """Whether every pod should have the same number of cables on every row, so that wrong ones can be told."""
        pods, cards = self.switch.pods, self.switch.core_cards
        each, rest = divmod(self.switch.radix**2 // 16, 2 * cards) if cards else (0, 0)
        cabled = pods > 1 and len(self.wiring.cables) > 0 and self.wiring.pods == pods
        return cabled and not rest and each * pods <= self.switch.radix

    def bisection(self, alive: np.ndarray | None = None, draws: int = 4) -> int:
        """Bandwidth in b/s over the worst of the `splits` of the ports whose link is up, both directions, as the paper
        counts it (§I-A)."""
        hosts = np.arange(self.hosts) if alive is None else np.flatnonzero(alive[: self.hosts])
        flows = []
        for left in self.splits(hosts, draws):
            right = np.setdiff1d(hosts, left)
            flows.append(self.flow(left, right, alive) + self.flow(right, left, alive))
        return min(flows) * int(self.switch.link)
