"""Round robin, greedy and Birkhoff once more, one pair and one link at a time: twins of the kernels, to be read.

Each `plan(demand, slots)` returns [(slot, src, dst, bytes, rate, [port, …]), …].
"""

from weft.fabrics.tdma.plan import NEVER
from weft.fabrics.tdma.schedulers.roundrobin import SCALE
from weft.topology.routes import HERE


class RoundRobin:
    """Weighted round robin on a tree."""

    def __init__(self, network):
        self.network, tree = network, network.tree
        self.order = tree.order.tolist()  # host at each place
        self.below = {v: range(tree.first[v], tree.last[v]) for v in range(network.graph.nodes)}
        self.above = {i: self._climb(host) for i, host in enumerate(self.order)}
        self.tag = dict.fromkeys(self.below, 0)
        self.own = {(i, v): 0 for i, pairs in self.above.items() for _, v in pairs}
        self.pointer = {(i, v): self._begin(i, a, v) for i, pairs in self.above.items() for a, v in pairs}
        self.waited = dict.fromkeys(self.above, 0)
        self.active = set()  # nodes that had bytes in the last round

    def _climb(self, node):
        """[(child, node), …] from a host up to the root."""
        parent, out = self.network.tree.parent, []
        while parent[node] >= 0:
            out.append((node, int(parent[node])))
            node = int(parent[node])
        return out

    def _begin(self, i, a, v):
        """The place as far into v's next child as i is into its own child a."""
        place = self.below[a].stop + i - self.below[a].start
        return place if place < self.below[v].stop else place - len(self.below[v])

    def plan(self, demand, slots):
        n = len(self.order)
        left = {(i, j): int(demand.want[self.order[i], self.order[j]]) for i in range(n) for j in range(n)}
        weight = [int(demand.weights[host]) for host in self.order]
        self._settle({v for v, places in self.below.items() if any(left[i, j] for i in places for j in range(n))})
        grants = []

        def towards(i, a, v):
            """The first place at or after i's pointer that it can send to by way of v."""
            for k in range(n):
                j = (self.pointer[i, v] + k) % n
                if j in self.below[v] and j not in self.below[a] and left[i, j]:
                    path = self.network.path(self.order[i], self.order[j])
                    if used.isdisjoint(path):
                        return j, path
            return None

        def send(i, a, v, j, path):
            given = min(left[i, j], min(int(self.network.capacity[p]) for p in path))
            rate = min(int(self.network.rate[p]) for p in path)
            grants.append((t, self.order[i], self.order[j], given, rate, path))
            left[i, j] -= given
            used.update(path)
            sent.add(i)
            self.pointer[i, v] = (j + 1) % n
            self.tag[a] += SCALE // sum(weight[k] for k in self.below[a])
            self.own[i, v] += SCALE // weight[i]

        for t in range(slots):
            used, sent = set(), set()
            for k in range(n):
                i = (k + t) % n
                if self.waited[i] * weight[i] >= sum(weight):
                    for a, v in self.above[i]:
                        if found := towards(i, a, v):
                            send(i, a, v, *found)
                            break
            for v in self.network.tree.inner.tolist():
                children = [a for a in self.below if self.network.tree.parent[a] == v and len(self.below[a])]
                children.sort(key=lambda a: self.below[a].start)
                for a in sorted(children, key=lambda a: self.tag[a]):
                    able = [(self.own[i, v], i, found) for i in self.below[a] if (found := towards(i, a, v))]
                    if able:
                        _, i, found = min(able)
                        send(i, a, v, *found)
            for i in range(n):
                idle = i not in sent and any(left[i, j] for j in range(n))
                self.waited[i] = self.waited[i] + 1 if idle else 0
        return grants

    def _settle(self, busy):
        """Begin where the others are after a time without bytes; then take off what all have."""
        for v in self.network.tree.inner.tolist():
            children = [a for a in self.below if self.network.tree.parent[a] == v]
            self._level(self.tag, children, [a in busy for a in children], [a in self.active for a in children])
            for a in children:
                if len(self.below[a]) > 1:
                    hosts = [self.order[i] for i in self.below[a]]
                    keys = [(i, v) for i in self.below[a]]
                    self._level(self.own, keys, [h in busy for h in hosts], [h in self.active for h in hosts])
        self.active = busy

    @staticmethod
    def _level(tags, keys, busy, active):
        old = [tags[k] for k, now, before in zip(keys, busy, active, strict=True) if now and before]
        for k, now, before in zip(keys, busy, active, strict=True):
            if now and not before and old:
                tags[k] = max(tags[k], min(old))
        base = min([tags[k] for k, now in zip(keys, busy, strict=True) if now], default=0)
        for k in keys:
            tags[k] = max(0, tags[k] - base)


class Greedy:
    """The first path with room, on any topology."""

    def __init__(self, network, spill=False):
        self.network, self.spill = network, spill
        self.hosts = list(range(network.hosts))  # in the order in which they last sent
        self.pointer = {i: (i + 1) % network.hosts for i in self.hosts}
        self.waiting = {}  # port -> bytes of slots before
        _, self.receiver = network.graph.port_ends()

    def plan(self, demand, slots):
        network, n = self.network, self.network.hosts
        left = {(i, j): int(demand.want[i, j]) for i in range(n) for j in range(n)}
        urgent = []
        if demand.due is not None:
            urgent = sorted((int(demand.due[i, j]), i, j) for i, j in left if left[i, j] and demand.due[i, j] < NEVER)
        some = demand.want if demand.urgent is None else demand.urgent
        rush = {(i, j): min(left[i, j], int(some[i, j])) for _, i, j in urgent}
        grants = []

        def attempt(t, i, j):
            """Send from i to j in slot t if there is a way."""
            size, rate = self._amount(i, j, left[i, j], flows)
            path = self._path(i, j, size, rate, i + t, flows) if size else None
            if path is None:
                return False
            grants.append((t, i, j, size, rate, path))
            left[i, j] -= size
            for port in path:
                flows.setdefault(port, []).append((size, rate))
            sent.add(i)
            return True

        for t in range(slots):
            flows, sent = {}, set()  # port -> [(bytes, rate), …]
            for _, i, j in urgent:
                before = left[i, j]
                if before and rush[i, j] > 0:
                    attempt(t, i, j)
                    rush[i, j] -= before - left[i, j]
            for i in list(self.hosts):
                begin = self.pointer[i]
                for k in range(n):
                    j = (begin + k) % n
                    if left[i, j] and attempt(t, i, j):
                        self.pointer[i] = (j + 1) % n
            for port in flows.keys() | self.waiting.keys():
                total = self.waiting.get(port, 0) + sum(size for size, _ in flows.get(port, []))
                self.waiting[port] = max(0, total - int(network.capacity[port]))
            self.hosts = [i for i in self.hosts if i not in sent] + [i for i in self.hosts if i in sent]
        return grants

    def _amount(self, i, j, left, flows):
        network = self.network
        own, down = int(network.host_port[i]), int(network.host_port[j]) ^ 1
        capacity = {port: int(network.capacity[port]) for port in (own, down)}
        used = {port: sum(size for size, _ in flows.get(port, [])) for port in (own, down)}
        rates, carried = self._widest(int(self.receiver[own]), j)
        fast = min(rates, int(network.rate[own]))
        slow = min(fast, int(network.rate[down]))
        if self.spill and fast > slow:
            size = min(left, capacity[own], carried)
            alone = (size == left or not used[own]) and not used[down]
            if alone and max(size - size * slow // fast, size - capacity[down]) <= network.buffer:
                return size, fast
        size = min(left, carried, capacity[own], capacity[down])
        if size < left and (used[own] + size > capacity[own] or used[down]):
            return 0, slow
        return size, slow

    def _ports(self, node, j):
        """The ports of a shortest path from a switch to host j's switch; None at that switch."""
        way = self.network.routes
        group = way.table[way.row[node], way.anchor[j]]
        return None if group == HERE else way.choices[way.first[group] : way.first[group] + way.count[group]].tolist()

    def _widest(self, node, j):
        """(rate, bytes of a slot) of the widest shortest path from a switch to host j's."""
        ports = self._ports(node, j)
        if ports is None:
            return 1 << 62, 1 << 62
        beyond = {p: self._widest(int(self.receiver[p]), j) for p in ports}
        own = {p: (int(self.network.rate[p]), int(self.network.capacity[p])) for p in ports}
        return tuple(max(min(own[p][k], beyond[p][k]) for p in ports) for k in (0, 1))

    def _fits(self, port, size, rate, flows):
        network = self.network
        if self.waiting.get(port):
            return False
        there = flows.get(port, [])
        total, capacity = size + sum(b for b, _ in there), int(network.capacity[port])
        own = int(network.rate[port])
        if rate + sum(r for _, r in there) <= own:
            return total <= capacity
        if network.buffer == 0:
            return False
        if port in network.host_port:
            return total <= capacity
        if total > capacity and there:
            return False
        sent = max(b * min(own, r) // r for b, r in [*there, (size, rate)])
        return max(total - sent, total - capacity) <= network.buffer

    def _path(self, i, j, size, rate, turn, flows):
        own, down = int(self.network.host_port[i]), int(self.network.host_port[j]) ^ 1
        if not (self._fits(own, size, rate, flows) and self._fits(down, size, rate, flows)):
            return None

        def onward(node):
            ports = self._ports(node, j)
            if ports is None:
                return [down]
            for k in range(len(ports)):
                port = ports[(k + turn) % len(ports)]
                if self._fits(port, size, rate, flows):
                    rest = onward(int(self.receiver[port]))
                    if rest is not None:
                        return [port, *rest]
            return None

        rest = onward(int(self.receiver[own]))
        return None if rest is None else [own, *rest]


class Birkhoff:
    """Batches of permutations on one switch; a matching is completed row by row, along a shortest augmenting path."""

    def __init__(self, network):
        self.network, self.batch = network, []

    def plan(self, demand, slots):
        network, n = self.network, self.network.hosts
        own = network.host_port.tolist()
        left = {(i, j): int(demand.want[i, j]) for i in range(n) for j in range(n)}
        most, grants = max(1, slots // max(1, n - 1)), []
        for t in range(slots):
            if not self.batch:
                if not any(left.values()):
                    break
                units = [[min(-(-left[i, j] // self._block(i, j)), most) for j in range(n)] for i in range(n)]
                self.batch = [row for length, row in decompose(units) for _ in range(length)]
            for i, j in enumerate(self.batch.pop(0)):
                given = min(left[i, j], self._block(i, j))
                if given:
                    left[i, j] -= given
                    path = [own[i], own[j] ^ 1]
                    grants.append((t, i, j, given, min(int(network.rate[p]) for p in path), path))
        return grants

    def _block(self, i, j):
        """Bytes of a pair in a slot."""
        own = self.network.host_port
        return min(int(self.network.capacity[own[i]]), int(self.network.capacity[own[j] ^ 1]))


def decompose(units):
    """[(how often, [column of each row]), …] that add up to `units`, padded so that all rows and columns are equal."""
    n = len(units)
    full = [list(row) for row in units]
    most = max([sum(row) for row in full] + [sum(column) for column in zip(*full, strict=True)])
    for i in range(n):
        for j in range(n):
            missing = min(most - sum(full[i]), most - sum(row[j] for row in full))
            full[i][j] += missing
    partner, out = [None] * n, []
    while any(full[0]):
        for root in range(n):
            if partner[root] is None:
                _augment(full, partner, root)
        length = min(full[i][partner[i]] for i in range(n))
        out.append((length, list(partner)))
        for i in range(n):
            full[i][partner[i]] -= length
            if full[i][partner[i]] == 0:
                partner[i] = None
    return out


def _augment(full, partner, root):
    """Give row `root` a column, moving others along the shortest chain: rows in the order in which they are met."""
    came, queue = {}, [root]  # column -> the row from which it was reached
    for i in queue:
        for j in range(len(full)):
            if not full[i][j] or j in came:
                continue
            came[j] = i
            if j not in partner:
                while True:
                    i = came[j]
                    j, partner[i] = partner[i], j
                    if i == root:
                        return
            queue.append(partner.index(j))
