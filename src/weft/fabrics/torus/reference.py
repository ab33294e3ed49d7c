"""The torus once more, with objects and a packet at a time, to be checked by eye.

`run(fabric, flows, seed)` carries flows over a fabric in plain Python. It shares descriptions with the kernel (the
grid, its routes, settings, the plan of failures) and nothing that moves a packet or computes a rate.
"""

from collections import deque
from functools import partial
from typing import ClassVar

from weft.fabrics.network.reference.port import Port
from weft.fabrics.torus.settings import CHANCES, CHOICE_STREAM, LOSS_STREAM
from weft.hosts.reference import Hosts
from weft.hosts.reference.dcqcn import Paced, RdmaNic
from weft.hosts.reference.dctcp import Dctcp
from weft.hosts.reference.flow import Flow
from weft.hosts.reference.tcp import Tcp
from weft.random import below_one, word
from weft.units import wire_time

ONE = 1 << 20


def loads(toward, grid, src, dst) -> dict[int, int]:
    """port -> parts of ONE of what src sends to dst, every node splitting what passes evenly among its ports."""
    found: dict[int, int] = {}
    amounts = {src: ONE}  # of the nodes at one distance from dst
    while amounts:
        onward: dict[int, int] = {}
        for node, amount in amounts.items():
            if node == dst:
                continue
            ports = [p for p in range(grid.degree) if int(toward[dst, node]) >> p & 1]
            for place, p in enumerate(ports):
                share = amount // len(ports)
                if place == 0:
                    share = amount - share * (len(ports) - 1)
                if share:
                    port, there = int(grid.port[node, p]), int(grid.to[node, p])
                    found[port] = found.get(port, 0) + share
                    onward[there] = onward.get(there, 0) + share
        amounts = onward
    return found


def spread_loads(toward, grid, src, dst) -> dict[int, int]:
    """The same of what goes by way of any node, each as likely as the others."""
    out: dict[int, int] = {}
    back: dict[int, int] = {}
    for way in range(grid.nodes):
        for sums, a, b in ((out, src, way), (back, way, dst)):
            for port, part in loads(toward, grid, a, b).items():
                sums[port] = sums.get(port, 0) + part
    total = {
        port: out.get(port, 0) // grid.nodes + back.get(port, 0) // grid.nodes for port in out.keys() | back.keys()
    }
    return {port: part for port, part in total.items() if part}


def fill(flows, capacity, *, strict=False) -> list[int]:
    """Max-min fair rates, b/s: flows is a list of (weight, class, {port: part}, most), capacity the b/s of each port.

    most: b/s that a flow asks for, or None. A flow without ports has no path just now: it gets 0.
    """
    rates = [0] * len(flows)
    left = [rate * ONE for rate in capacity]
    classes = sorted({klass for _, klass, _, _ in flows}, reverse=True)
    for group in [[one] for one in classes] if strict else [classes]:
        rising = {f for f, (_, klass, parts, _) in enumerate(flows) if klass in group and parts}
        while rising:
            levels = []
            for port, room in enumerate(left):
                thirst = sum(flows[f][0] * flows[f][2].get(port, 0) for f in rising)
                if thirst:
                    levels.append((room // thirst, port))
            level, port = min(levels)
            fixed = {f for f in rising if port in flows[f][2]}
            enough = {f: flows[f][3] // flows[f][0] for f in rising if flows[f][3]}
            if enough and min(enough.values()) <= level:
                level = min(enough.values())
                fixed = {f for f in enough if enough[f] == level}
            for f in fixed:
                weight, _, parts, _ = flows[f]
                rates[f] = max(weight * level, 1)
                for port, part in parts.items():
                    left[port] -= part * weight * level
            rising -= fixed
    return rates


class Patient(Flow):
    """A flow that is given up if there is no path and never will be."""

    def begin(self):
        self.net.open.append(self)
        if self.net.hopeless(self):
            self.net.abandoned += 1
            self.close()
        else:
            super().begin()


class R2c2(Patient, Paced):
    """A flow whose rate is computed from all that are known; see torus/r2c2.py."""

    def on_lost(self, packet):
        self.subflows[0].resend(packet.seq)

    class Subflow(Paced.Subflow):
        def __init__(self, flow, k):
            super().__init__(flow, k)
            self.sent_at = self.size = 0
            fabric = flow.net.fabric
            self.rate = min(fabric.link, flow.net.asks_for(flow.f) or fabric.link, fabric.first or fabric.link)

        def timers(self):
            return [self.turn]

        def begin(self):
            net = self.net
            self.known_at = net.announce(self.flow.src)
            self.entry = Entry(self)
            net.at(self.known_at, partial(net.know, self.entry))
            self.ready()

        def may_send(self):
            return self.flow.taken < self.flow.segments

        def emit(self):
            """Send the next segment; bytes it takes on the wire."""
            net = self.net
            self.claim()
            seq, self.nxt = self.nxt, self.nxt + 1
            self.send_segment(seq)
            self.sent_at, self.size = net.now, net.outbox[-1][0].size
            self.wait = net.now + wire_time(self.size, self.rate)
            if not self.may_send():
                self.entry.ended = True
                net.at(max(net.announce(self.flow.src), self.known_at + 1), partial(net.forget, self.entry))
            return self.size

        def resend(self, seq):
            self.send_segment(seq)
            self.wait = max(self.wait, self.net.now) + wire_time(self.net.outbox[-1][0].size, self.rate)

        def change_rate(self, rate):
            if rate == self.rate:
                return
            self.rate = rate
            if self.turn is not None:
                self.turn.cancel()
                self.turn = None
                self.wait = self.sent_at + wire_time(self.size, rate)
                self.ready()

        def on_data(self, packet):
            self.book(packet.seq)
            if self.flow.done:
                self.flow.close()


class Entry:
    """A flow as nodes know it."""

    def __init__(self, sub):
        flow, fabric, net = sub.flow, sub.net.fabric, sub.net
        self.number = net.free_numbers.pop() if net.free_numbers else net.take_number()
        self.sub, self.src, self.dst = sub, flow.src, flow.dst
        self.klass, self.most = net.class_of(flow.f), net.asks_for(flow.f)
        self.weight = fabric.weights[min(self.klass, len(fabric.weights) - 1)]
        self.ended = self.gone = False
        self.spread = fabric.routing == "valiant"

    @property
    def spread_now(self):
        """Whether packets go by way of a random node: not those that are sent again after the last."""
        return self.spread and not self.ended


class PatientTcp(Patient, Tcp):
    """TCP."""


class PatientDctcp(Patient, Dctcp):
    """DCTCP."""


class Network(Hosts):
    """Nodes of a torus and the ports between them."""

    protocols: ClassVar[dict] = {"r2c2": R2c2, "tcp": PatientTcp, "dctcp": PatientDctcp}
    nic_kinds: ClassVar[dict] = {"r2c2": RdmaNic}

    def __init__(self, fabric, flows, seed):
        super().__init__(fabric, flows, seed)
        self.graph, self.grid, self.toward = fabric.graph, fabric.grid, fabric.toward()
        self.ports = [Port(self, k) for k in range(self.graph.ports)]
        for port in self.ports:
            port.host = False  # every port is one of a switch …
            if fabric.buffer is None and self.set.transport == "r2c2":
                port.capacity = 1 << 62  # … which R2C2 need not bound
        self.count |= dict.fromkeys(("hops", "crossed", "marks"), 0)
        demands = fabric.demands or (fabric.demand,)
        self.flow_classes = max(len(fabric.weights), len(demands))
        self.demands = [demands[min(klass, len(demands) - 1)] or None for klass in range(self.flow_classes)]
        self.calls = [0] * fabric.nodes
        self.known: list[Entry] = []
        self.free_numbers: list[int] = []  # entries have numbers, and are told of their rates in that order
        self.numbers = 0
        self.ticking = self.choosing = self.settled = False
        self.tried = self.switched = 0
        self.laid: dict = {}  # what flows put on ports, as long as routes are what they are
        self.abandoned = self.broadcasts = self.computations = 0
        self.open: list[Flow] = []
        changes = {}
        for change in fabric.changes(seed):
            changes.setdefault(change.time, []).append(change)
            changes.setdefault(change.time + fabric.converge, [])
        for time in sorted(changes):
            self.moments.append((time, partial(self.change, time, changes[time], time == max(changes))))

    # packets

    def forward(self, packet, host):
        packet.way = None
        if self.goes_round(packet):
            packet.path, way = divmod(packet.path, self.fabric.nodes)
            if self.reaches(host, way) and self.reaches(way, packet.dst):
                packet.way = way
        self.pass_on(packet, host)

    def goes_round(self, packet):
        """Whether a packet is to go by way of a random node."""
        if self.fabric.routing == "chosen":
            return packet.flow.subflows[0].entry.spread_now
        return self.fabric.routing == "valiant"

    def reaches(self, a, b):
        return a == b or self.toward[b, a] != 0

    def pass_on(self, packet, node):
        if packet.way == node:
            packet.way = None
        mask = int(self.toward[packet.dst if packet.way is None else packet.way, node])
        ports = [p for p in range(self.grid.degree) if mask >> p & 1]
        if not ports:
            self.lose(packet)
            return
        turn = 0
        if len(ports) > 1:
            packet.path, turn = divmod(packet.path, len(ports))
            if packet.path == 0:
                turn = (turn + node) % len(ports)
        self.ports[self.grid.port[node, ports[turn]]].accept(packet)

    def arrive(self, packet, port):
        """A packet has crossed `port`."""
        self.count["hops"] += 1
        self.count["crossed"] += packet.size
        if packet.crossed_in != port.failures:
            self.lose(packet)
        elif port.to == packet.dst and packet.way in (None, port.to):
            self.deliver(packet)
        else:
            self.pass_on(packet, port.to)

    # what everybody knows

    def announce(self, src):
        """Broadcast from a node until no copy is lost; when the last one hears of it."""
        late, chance = 0, self.fabric.loss_chance
        while True:
            heard = self.broadcast(src)
            if below_one(word(self.key ^ LOSS_STREAM, self.broadcasts), CHANCES) >= chance:
                return heard + late
            late += self.fabric.notice

    def broadcast(self, src):
        """Broadcast along the next tree of a node; when the last one would hear of it."""
        tree, self.calls[src] = self.calls[src] % self.fabric.trees, self.calls[src] + 1
        self.broadcasts += 1
        took = wire_time(self.fabric.broadcast, self.fabric.rate)
        hops = {src: 0}
        waiting = deque(node for node in range(self.fabric.nodes) if self.toward[src, node])
        while waiting:
            node = waiting.popleft()
            ports = [p for p in range(self.grid.degree) if int(self.toward[src, node]) >> p & 1]
            p = ports[tree % len(ports)]
            parent = int(self.grid.to[node, p])
            if parent not in hops:
                waiting.append(node)
                continue
            hops[node] = hops[parent] + 1
            port = self.ports[int(self.grid.port[node, p]) ^ 1]
            if port.up:
                port.worked(max(port.busy, self.now), took)
        return self.now + max(hops.values()) * (took + self.fabric.delay)

    def class_of(self, f):
        """The class of a flow, the last one standing for all further ones."""
        return min(int(self.flows.klass[f]), self.flow_classes - 1)

    def asks_for(self, f):
        """b/s that a flow asks for at most, by its class and for itself, or None."""
        own = int(self.flows.rate[f]) if self.flows.limited else 0
        return min(filter(None, (self.demands[self.class_of(f)], own)), default=None)

    def take_number(self):
        self.numbers += 1
        return self.numbers - 1

    def know(self, entry):
        if entry.gone:
            self.free_numbers.append(entry.number)
        else:
            self.known.append(entry)
            self.known.sort(key=lambda e: e.number)
            self.tick_later()
            if self.fabric.routing == "chosen":
                self.choose_later()

    def forget(self, entry):
        self.known.remove(entry)
        self.free_numbers.append(entry.number)
        self.tick_later()

    def tick_later(self):
        if not self.ticking:
            self.ticking = True
            period = self.fabric.period
            self.at((self.now // period + 1) * period, self.tick)

    def tick(self):
        self.ticking = False
        for entry, rate in zip(self.known, self.rates(), strict=True):
            if rate and not entry.ended:
                entry.sub.change_rate(rate)

    def rates(self):
        """The rates of all flows that are known, with the routes they have now."""
        self.computations += 1
        fabric = self.fabric
        flows = [(e.weight, e.klass, self.loads_of(e), e.most) for e in self.known]
        capacity = [int(fabric.rate * (1 - fabric.headroom))] * len(self.ports)
        return fill(flows, capacity, strict=fabric.strict)

    def loads_of(self, entry):
        key = entry.src, entry.dst, entry.spread
        if key not in self.laid:
            lay = spread_loads if entry.spread else loads
            self.laid[key] = lay(self.toward, self.grid, entry.src, entry.dst)
        return self.laid[key]

    def choose_later(self):
        if not self.choosing:
            self.choosing = True
            self.at((self.now // self.fabric.choose + 1) * self.fabric.choose, self.choose)

    def choose(self):
        """Try some flows the other way, many at once or few, and keep what makes all rates together larger."""
        self.choosing = False
        mine = [entry for entry in self.known if not entry.ended]
        if not mine:
            return
        worth, before = sum(self.rates()), self.switched
        for _ in range(self.fabric.tries):
            self.tried += 1
            draw = word(self.key ^ CHOICE_STREAM, self.tried)
            one_in = 1 << below_one(draw, len(mine).bit_length())  # from all of them to about one
            some = [entry for entry in mine if below_one(word(draw, entry.number), one_in) == 0]
            for entry in some:
                entry.spread = not entry.spread
            other = sum(self.rates())
            if other > worth:
                worth, self.switched = other, self.switched + 1
            else:
                for entry in some:
                    entry.spread = not entry.spread
        if self.switched > before:
            self.tick_later()
        self.choose_later()

    # failures

    def hopeless(self, flow):
        return self.settled and not self.reaches(flow.src, flow.dst)

    def change(self, time, changes, last):
        """Fail, repair, and route by what was known `converge` ago; after the last change, give up what is cut off."""
        for up in (False, True):
            for change in changes:
                if change.up == up:
                    for link in change.links:
                        for port in self.ports[2 * link : 2 * link + 2]:
                            port.repair() if up else port.fail()
        self.toward = self.fabric.toward(self.fabric.alive(self.seed, time - self.fabric.converge))
        self.laid = {}
        self.settled = last
        for flow in [flow for flow in self.open if flow.open]:
            if self.hopeless(flow):
                self.give_up(flow)
        if last:
            self.free_numbers.sort(reverse=True)

    def give_up(self, flow):
        if self.set.transport == "r2c2":
            entry = flow.subflows[0].entry
            if not entry.ended:
                if entry in self.known:
                    self.forget(entry)
                else:
                    entry.gone = True
        self.abandoned += 1
        flow.close()


def run(fabric, flows, *, seed=0, until=None) -> Network:
    """Carry `flows` over `fabric` and return the torus afterwards."""
    net = Network(fabric, flows, seed)
    net.run(until)
    return net
