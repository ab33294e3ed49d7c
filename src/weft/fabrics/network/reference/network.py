"""Switches and routes of the twin: where a packet goes, and what failures change."""

from functools import partial

from weft.fabrics.network.reference.port import Port
from weft.hosts.reference import Hosts
from weft.topology.routes import HERE, NO_ROUTE, routes


class Network(Hosts):
    """Hosts, and the ports and routes between them."""

    def __init__(self, fabric, flows, seed):
        super().__init__(fabric, flows, seed)
        self.graph, self.routes = fabric.graph, fabric.routes
        self.turns = [0] * len(self.routes.first)
        self.most_paths = fabric._paths(fabric.routes)
        self.buffered = [0] * self.graph.nodes
        self.ports = [Port(self, k) for k in range(self.graph.ports)]
        self.first_port = {}
        for port in reversed(self.ports):
            self.first_port[port.frm] = port
        self.pool = [0] * self.graph.nodes
        for port in self.ports:
            self.pool[port.frm] += self.set.buffer * fabric.wire_size if not port.host else 0
        self.count |= dict.fromkeys(("hops", "trims", "marks", "pauses", "bounces"), 0)
        self.classes = {"droptail": 0, "priority": 2}.get(self.set.queue, 1)
        self.prefer = self.set.prefer
        changes = {}
        for change in fabric.changes(seed):
            changes.setdefault(change.time, []).append(change)
            changes.setdefault(change.time + fabric.converge, [])
        for time in sorted(changes):
            self.moments.append((time, partial(self.change, time, changes[time])))

    # what hosts ask

    def rate(self, host):
        return self.first_port[host].rate

    def waiting(self, host):
        return len(self.first_port[host].data)

    def paths(self, src, dst):
        """The number of shortest paths, as the product of the choices along the first of them."""
        table = self.routes
        node, paths = src, 1
        while node != dst:
            if table.row[node] < 0:
                node = self.ports[-1 - table.row[node]].to
                continue
            g = int(table.table[table.row[node], table.anchor[dst]])
            if g < 0:
                break
            paths *= int(table.count[g])
            node = self.ports[table.choices[table.first[g]]].to
        return paths

    # failures

    def change(self, time, changes):
        """Fail, repair, and route by what was known `converge` ago."""
        for up in (False, True):
            for change in changes:
                if change.up == up:
                    for link in change.links:
                        for port in self.ports[2 * link : 2 * link + 2]:
                            port.repair() if up else port.fail()
        self.routes = routes(self.graph, self.fabric.alive(self.seed, time - self.fabric.converge))
        self.turns = [0] * len(self.routes.first)

    # packets

    def forward(self, packet, node):
        while packet is not None:
            port = self.route(packet, node)
            if port is None:
                self.lose(packet)
                return
            packet = port.accept(packet)

    def route(self, packet, node):
        table = self.routes
        if table.row[node] < 0:
            return self.ports[-1 - table.row[node]]
        g = int(table.table[table.row[node], table.anchor[packet.dst]])
        if g == NO_ROUTE:
            return None
        if g == HERE:
            return self.ports[table.down[packet.dst]]
        first, count = int(table.first[g]), int(table.count[g])
        if count == 1:
            turn = 0
        elif self.set.routing == "roundrobin":
            turn, self.turns[g] = self.turns[g], (self.turns[g] + 1) % count
        else:
            packet.path, turn = divmod(packet.path, count)
        return self.ports[table.choices[first + turn]]

    def arrive(self, packet, port):
        """A packet has crossed `port`."""
        self.count["hops"] += 1
        port.settle()
        if packet.crossed_in != port.failures:
            self.lose(packet)
        elif packet.kind in ("pause", "resume"):
            self.ports[packet.seq].heed(packet.kind)
        elif port.to >= self.fabric.hosts:
            packet.came = port
            self.forward(packet, port.to)
        else:
            self.deliver(packet)
