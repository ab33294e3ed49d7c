"""The twin: Stardust in plain objects, one cell at a time, written from the paper.

Hosts and their transports are those of `weft.hosts.reference`. Kernel and twin must end in the same fingerprint.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain

from weft.fabrics.stardust import bounds
from weft.fabrics.stardust.reachability import ERRORS, Tables, history
from weft.fabrics.stardust.wiring import HERE, NOWHERE
from weft.hosts.reference import Hosts
from weft.random import below_one, key, word
from weft.units import s, wire_time
from weft.wire.stardust import CONTROL, REACHABILITY
from weft.workload.traffic import Cells

TURNS, CONTROLS = 0x73640001, 0x73640002
GAPS = 20  # bytes of preamble and gap, which do not enter the fabric


class Walk:
    """Links that lead somewhere, walked in turn, in an order that is drawn anew every few rounds (§5.3)."""

    def __init__(self, links, own, rounds):
        self.links, self.own, self.every = list(links), own, rounds
        self.place, self.rounds, self.draws = 0, rounds, 0

    def next(self):
        if len(self.links) == 1:
            return self.links[0]
        if self.place == 0:
            if self.rounds >= self.every:
                self.shuffle()
            self.rounds += 1
        link = self.links[self.place]
        self.place = (self.place + 1) % len(self.links)
        return link

    def shuffle(self):
        for p in range(len(self.links) - 1, 0, -1):
            self.draws += 1
            q = below_one(word(self.own, self.draws), p + 1)
            self.links[p], self.links[q] = self.links[q], self.links[p]
        self.rounds = 0


@dataclass(eq=False)
class Link:
    number: int
    frm: int
    to: int
    down: bool
    queue: deque = field(default_factory=deque)
    debt: int = 0
    sent: int = 0  # bytes in slots before the last one …
    last: tuple = (0, 0)  # … which this is, and the bytes in it
    dead: bool = False
    noisy: bool = False


@dataclass(eq=False)
class Burst:
    serial: int
    voq: "Voq"
    packets: list
    size: int
    todo: int
    left: int
    came: int = 0
    shorts: int = 0  # cells that are not full, the last ones …
    tail: int = 0  # … and their bytes
    done: bool = False
    lost: bool = False
    targets: tuple = ()  # nodes that a packet for several is for, if elements are to copy it


@dataclass(eq=False)
class Cell:
    burst: Burst
    born: int
    size: int
    congested: bool = False


@dataclass(eq=False)
class Voq:
    """Packets at adapter `home` for `host`."""

    home: int
    host: int
    klass: int
    packets: deque = field(default_factory=deque)
    balance: int = 0
    owed: int = 0
    want: int = 0
    bursts: deque = field(default_factory=deque)

    @property
    def bytes(self):
        return sum(packet.size for packet in self.packets)


class Unit:
    """A packet without a host: a cell."""

    def __init__(self, size):
        self.size = size


class Port:
    """The port of a host, and its scheduler of credits (§4.1)."""

    def __init__(self, host, adapter):
        self.host, self.adapter = host, adapter
        self.rounds = (deque(), deque())  # VOQs that want credits, of the lower and the upper class
        self.credit_at = self.free_at = self.served = 0


class Adapter:
    """A Fabric Adapter."""

    def __init__(self, number):
        self.number = number
        self.to_send = (deque(), deque())  # bursts, of the lower and the upper class
        self.used, self.marks, self.seen, self.factor, self.waiting = 0, 0, 0, 1024, 0
        self.stopped = False  # whether its hosts are told to pause
        self.told = self.heard = 0  # bytes of control messages, not yet charged to its links


class Gate:
    """The port of a host that can be paused."""

    def __init__(self):
        self.queue, self.busy, self.paused = deque(), False, False


class Fabric(Hosts):
    """Adapters, elements and links."""

    def __init__(self, fabric, demand, seed):
        super().__init__(_Seen(fabric), demand.table, seed)
        self.stardust, self.demand = fabric, demand
        self.open_loop = isinstance(demand, Cells)
        wiring = fabric.wiring
        frm, to = (side.tolist() for side in wiring.ends)
        self.cables, self.n = wiring.cables, fabric.nodes
        self.links = [Link(k, frm[k], to[k], k >= self.cables) for k in range(2 * self.cables)]
        self.of_adapter = [[link for link in self.links[: wiring.edge] if link.frm == a] for a in range(fabric.edges)]
        self.wires: dict[int, list] = {}  # slot -> cells that arrive in it, with their links; then those behind them
        self.abreast = bounds.abreast(fabric)
        self.levels = 1 if fabric.classes == "one" and not fabric.low_latency else 2
        self.ports = [Port(h, h // fabric.per_adapter) for h in range(self.n)]
        self.adapters = [Adapter(a) for a in range(fabric.edges)]
        self.voqs = {}
        self.lines = [0] * self.n
        self.gates = [Gate() for _ in range(self.n)]
        self.control_key, self.controls = key(seed, CONTROLS), 0
        self.ticking, self.serial, self.unit_at = False, 0, 0
        self.look_at = self.window_at = self.period_at = 0
        self.pools = [pool.tolist() for pool in bounds.pools(fabric)]
        self.paused, self.pausing = {}, {}
        self.took, self.entered, self.arrived, self.lost_cells = [0] * self.n, 0, 0, 0
        self.streams = [None] * self.n
        routes = wiring.routes()
        self.learn(routes)
        self.far, self.aloft = wiring.distances(routes), [0] * (fabric.tiers + 1)
        if fabric.cold:
            self.learn(Tables(wiring, fabric.updates, cold=True).routes())
        self.moments = deque((moment.time, lambda m=moment: self.turn(m)) for moment in history(fabric, seed))

    def learn(self, routes):
        own = key(self.seed, TURNS)
        self.walks = [
            Walk(routes.choices[first : first + count].tolist(), word(own, g), self.stardust.rounds)
            for g, (first, count) in enumerate(zip(routes.first.tolist(), routes.number.tolist(), strict=True))
        ]
        self.table = routes.table.tolist()

    # ------------------------------------------------------------ failures

    def turn(self, moment):
        for cable in moment.failed:
            self.cut(self.links[cable])
            self.cut(self.links[self.cables + cable])
        for cable in moment.repaired:
            self.links[cable].dead = self.links[self.cables + cable].dead = False
        for noisy, some in ((True, moment.noisy), (False, moment.clean)):
            for cable in some:
                self.links[cable].noisy = self.links[self.cables + cable].noisy = noisy
        if moment.routes is not None:
            self.relearn(moment.routes)

    def cut(self, link):
        link.dead = True
        hop = self.stardust.hop
        for place in range(self.abreast):
            for slot in sorted(self.wires, key=lambda slot: slot % hop):
                for entry in [entry for entry in self.wires[slot][place] if entry[0] == link.number]:
                    self.wires[slot][place].remove(entry)
                    self.miss(entry[1])
        while link.queue:
            cell = link.queue.popleft()
            if link.frm < len(self.adapters):
                self.adapters[link.frm].waiting -= self.room(cell)
            self.miss(cell)

    def relearn(self, routes):
        """Tables follow, and every VOQ asks anew."""
        self.learn(routes)
        for port in self.ports:
            port.rounds = (deque(), deque())
        for v in sorted(self.voqs):
            q = self.voqs[v]
            q.want = q.owed = 0
            self.ask(q)

    # ------------------------------------------------------------ adapters: ingress

    def forward(self, packet, host):
        fabric = self.stardust
        if fabric.overflow == "pause":
            self.gates[host].queue.append(packet)
            self.begin(host)
            return
        self.lines[host] = max(self.lines[host], self.now) + wire_time(packet.size, fabric.link)
        self.at(self.lines[host] + fabric.edge_delay, lambda: self.accept(packet, host))

    def begin(self, host):
        """Let a host that can be paused send its next packet, if it may."""
        gate, fabric = self.gates[host], self.stardust
        if gate.busy or gate.paused or not gate.queue:
            return
        packet, gate.busy = gate.queue.popleft(), True
        if packet.kind == "data":
            self.sent_data(host)
        left = self.now + wire_time(packet.size, fabric.link)
        self.at(left + fabric.edge_delay, lambda: self.accept(packet, host))
        self.at(left, lambda: self.hear(host, busy=False))

    def hear(self, host, **news):
        """The line of a host is free, or a pause begins or ends."""
        for name, value in news.items():
            setattr(self.gates[host], name, value)
        self.begin(host)

    def waiting(self, host):
        return sum(packet.kind == "data" for packet in self.gates[host].queue)

    def weigh(self, adapter):
        """Pause the hosts of an adapter that is nearly full, and let them go on when it has room again (§5.4)."""
        fabric = self.stardust
        room = bounds.pause_room(fabric)
        stop = adapter.used > fabric.buffer - (2 if adapter.stopped else 1) * room
        if fabric.overflow == "pause" and stop != adapter.stopped:
            adapter.stopped = stop
            way = fabric.edge_delay + wire_time(84, fabric.link)
            for port in self.ports:
                if port.adapter == adapter.number:
                    self.at(self.now + way, lambda h=port.host: self.hear(h, paused=stop))

    def voq(self, source, host, klass):
        """The VOQ of what comes in by the port of `source`."""
        home = self.ports[source].adapter
        v = ((source if self.stardust.per_source else home) * self.n + host) * self.levels + klass
        return self.voqs.setdefault(v, Voq(home, host, klass))

    def accept(self, packet, host):
        fabric = self.stardust
        a = self.ports[host].adapter
        if self.adapters[a].used + packet.size > fabric.buffer:
            return self.lose(packet)
        q = self.voq(host, packet.dst, 1 if self.levels > 1 and packet.urgent else 0)
        packet.marked |= bool(fabric.mark) and packet.kind == "data" and q.bytes > fabric.mark
        return self.store(q, packet)

    def store(self, q, packet):
        q.packets.append(packet)
        self.adapters[q.home].used += packet.size
        self.weigh(self.adapters[q.home])
        if q.balance > 0 or self.unasked(q):
            self.serve(q)
        self.ask(q)

    def unasked(self, q):
        """Whether the VOQ sends without credits."""
        fabric = self.stardust
        return (fabric.low_latency and q.klass > 0) or self.ports[q.host].adapter == fabric.unlimited

    def ask(self, q):
        """Request credit for what waits (§3.3)."""
        fabric = self.stardust
        need = q.bytes - q.balance - q.owed
        if not q.packets or need <= 0 or (q.owed > 0 and need < fabric.credit) or self.unasked(q):
            return
        if fabric.whole:
            need = -(-need // fabric.credit) * fabric.credit
        q.owed += need
        self.dispatch(q.home, self.ports[q.host].adapter, lambda: self.on_request(q, need))

    def on_credit(self, q, size):
        q.owed = max(q.owed - size, 0)
        q.balance += size
        self.serve(q)
        self.ask(q)

    def serve(self, q):
        """Dequeue whole packets as long as credit is left; the burst is chopped into cells as one (§3.4)."""
        fabric, free = self.stardust, self.unasked(q)
        if not q.packets or (q.balance <= 0 and not free):
            return
        taken, size = [], 0
        while q.packets and (free or size < q.balance):
            taken.append(q.packets.popleft())
            size += taken[-1].size
        if not free:
            q.balance -= size
        if self.open_loop:
            cells = len(taken)
        else:
            frames = [packet.size - GAPS for packet in taken]
            pieces = [sum(frames)] if fabric.packing else frames
            cells = sum(-(-piece // fabric.filling) for piece in pieces)
        burst = Burst(self.serial, q, taken, size, cells, cells)
        if not self.open_loop:
            burst.shorts = len(pieces)
            burst.tail = fabric.cell - (cells * fabric.filling - sum(frames)) // len(pieces)
        self.serial += 1
        q.bursts.append(burst)
        adapter = self.adapters[q.home]
        if q.home == self.ports[q.host].adapter:
            burst.todo = burst.left = 0
            burst.done = True
            adapter.used -= size
            self.weigh(adapter)
            self.hand_out(q)
        else:
            adapter.to_send[q.klass].append(burst)
            self.wake()

    def inject(self, slot):
        """Adapters put cells on their uplinks, in the order in which credits came, the upper class first."""
        for adapter in self.adapters:
            slot_of_all = len(self.of_adapter[adapter.number]) * self.stardust.cell
            room = min(slot_of_all, bounds.AHEAD * slot_of_all - adapter.waiting)
            while room > 0 and any(adapter.to_send):
                waiting = adapter.to_send[1] or adapter.to_send[0]
                burst = waiting[0]
                d = self.ports[burst.targets[0] if burst.targets else burst.voq.host].adapter
                group = self.table[adapter.number][d]
                while room > 0 and burst.todo > 0:
                    cell = Cell(burst, slot, burst.tail if burst.todo <= burst.shorts else self.stardust.cell)
                    burst.todo -= 1
                    room -= self.room(cell)
                    self.entered += 1
                    if group == NOWHERE:
                        self.miss(cell)
                    else:
                        self.links[self.walks[group].next()].queue.append(cell)
                        adapter.waiting += self.room(cell)
                if burst.todo == 0:
                    waiting.popleft()
                    adapter.used -= burst.size
                    self.weigh(adapter)

    # ------------------------------------------------------------ control messages

    def dispatch(self, frm, to, action):
        """Send a control message, which crosses elements by a crossbar of its own and takes time of links."""
        fabric, crossed = self.stardust, int(self.far[frm][to])
        self.controls += 1
        self.adapters[frm].told += CONTROL
        self.adapters[to].heard += CONTROL
        for tier in range(2, crossed // 2 + 1):
            self.aloft[tier] += CONTROL
        incomplete = self.stardust.cold or any(link.dead for link in self.links)
        if incomplete and not self.survives(frm, to):
            return
        leaves = -(-self.now // fabric.slot)
        self.at((leaves + max(crossed * fabric.hop, 1)) * fabric.slot, action)

    def survives(self, node, to):
        i = self.controls * 16
        while node != to:
            group = self.table[node][to]
            if group in (HERE, NOWHERE) or i == self.controls * 16 + 16:
                return False
            links = self.walks[group].links
            link = self.links[links[below_one(word(self.control_key, i), len(links))]]
            if link.dead:
                return False
            node, i = link.to, i + 1
        return True

    def charge(self):
        """Links pay with time for the control messages that crossed them, if anything waits."""
        wiring = self.stardust.wiring
        each = [int((wiring.tier == tier).sum()) for tier in range(self.stardust.tiers + 1)]
        for link in self.links:
            if not link.queue:
                continue
            tier = int(wiring.tier[link.number % self.cables])
            if tier > 1:
                link.debt += self.aloft[tier] // each[tier]
            else:
                a = link.to if link.down else link.frm
                told = self.adapters[a].heard if link.down else self.adapters[a].told
                link.debt += told // len(self.of_adapter[a])
        for adapter in self.adapters:
            adapter.told %= len(self.of_adapter[adapter.number])
            adapter.heard %= len(self.of_adapter[adapter.number])
        self.aloft = [
            bytes_ % count if tier > 1 else 0 for tier, (bytes_, count) in enumerate(zip(self.aloft, each, strict=True))
        ]

    # ------------------------------------------------------------ adapters: egress

    def on_request(self, q, size):
        q.want += size
        if q.want > size:
            return
        port = self.ports[q.host]
        if not any(port.rounds):
            port.credit_at = max(port.credit_at, self.now)
        port.rounds[q.klass].append(q)
        self.wake()

    def give_credits(self):
        """Every port gives the credits that are due: round robin, and between classes as the policy says."""
        fabric = self.stardust
        weight = {"one": 0, "strict": 0, "weighted": fabric.weight}[fabric.classes]
        for port in self.ports:
            if not any(port.rounds):
                continue
            if port.free_at - self.now > fabric.full * 8 * s // fabric.link:
                port.credit_at = max(port.credit_at, self.now)
                continue
            factor = self.adapters[port.adapter].factor
            lower, upper = port.rounds
            while port.credit_at <= self.now and (lower or upper):
                high = bool(upper) and (not lower or weight == 0 or port.served < weight)
                q = (upper if high else lower).popleft()
                port.served = port.served + 1 if high else 0
                size = min(q.want, fabric.credit)
                q.want -= size
                if q.want:
                    port.rounds[q.klass].append(q)
                rate = fabric.link * Fraction(str(fabric.speedup))
                interval = max(1, int(fabric.credit * 8 * s / rate))
                port.credit_at += max(interval * size // fabric.credit * 1024 // factor, 1)
                self.dispatch(port.adapter, q.home, lambda q=q, size=size: self.on_credit(q, size))

    def receive(self, k, cell, slot):
        burst = cell.burst
        burst.left -= 1
        burst.came += 1
        self.arrived += 1
        self.print.fold(slot, k << 40 ^ burst.serial)
        self.adapters[self.links[k].to].marks += cell.congested
        self.adapters[self.links[k].to].seen += 1
        if burst.left == 0 and not burst.lost:
            burst.done = True
            self.hand_out(burst.voq)

    def miss(self, cell):
        """A cell is lost; its burst is given up when the timer of reassembly is over (§4.1)."""
        burst = cell.burst
        burst.left -= 1
        self.lost_cells += 1
        self.print.fold(~self.now, burst.serial)
        if not burst.lost:
            burst.lost = True
            self.at(self.now + max(self.stardust.reassembly, 1), lambda: self.expire(burst))

    def expire(self, burst):
        if burst.left:
            self.at(self.now + max(self.stardust.reassembly, 1), lambda: self.expire(burst))
            return
        burst.done = True
        self.hand_out(burst.voq)

    def hand_out(self, q):
        """Deliver what is whole, in order."""
        fabric, port = self.stardust, self.ports[q.host]
        while q.bursts and q.bursts[0].done:
            burst = q.bursts.popleft()
            for packet in burst.packets:
                if burst.lost:
                    if not self.open_loop:
                        self.lose(packet)
                    continue
                port.free_at = max(port.free_at, self.now) + wire_time(packet.size, fabric.link)
                if self.open_loop:
                    self.took[q.host] += fabric.filling
                else:
                    self.at(port.free_at + fabric.edge_delay, lambda packet=packet: self.deliver(packet))

    # ------------------------------------------------------------ slots

    def wake(self):
        if not self.ticking:
            self.ticking = True
            slot = self.stardust.slot
            self.at((self.now // slot + 1) * slot, self.tick)

    def tick(self):
        fabric = self.stardust
        slot = self.now // fabric.slot
        if self.open_loop:
            self.make_units()
        self.give_credits()
        self.pass_on(slot)
        self.inject(slot)
        self.transmit(slot)
        if slot >= self.look_at:
            self.look()
            self.charge()
            self.look_at = slot + fabric.hop
        if slot >= self.window_at:
            self.throttle()
            self.window_at = slot + fabric.window
        if slot >= self.period_at:
            for link in self.links:
                link.debt += REACHABILITY.size if link.queue else 0
            self.period_at = slot + max(1, fabric.period // fabric.slot)
        moving = any(some for both in self.wires.values() for some in both) or any(link.queue for link in self.links)
        moving = moving or any(any(adapter.to_send) for adapter in self.adapters)
        if moving or any(any(port.rounds) for port in self.ports) or self.open_loop:
            self.at(self.now + fabric.slot, self.tick)
        else:
            self.ticking = False

    def pass_on(self, slot):
        """Cells that have crossed a link join the next queue, or are at their adapter (§3.2)."""
        for k, cell in chain(*self.wires.pop(slot, ())):
            node = self.links[k].to
            if cell.burst.targets:
                self.branch(k, node, cell, slot)
                continue
            if node < len(self.adapters):
                self.receive(k, cell, slot)
                continue
            group = self.table[node][self.ports[cell.burst.voq.host].adapter]
            if group == NOWHERE:
                self.miss(cell)
                continue
            link = self.links[self.walks[group].next()]
            cell.congested |= self.full(link)
            link.queue.append(cell)

    def full(self, link):
        """Whether a queue is so long that what joins it is marked (§4.2): short cells count by their bytes."""
        return -(-sum(map(self.room, link.queue)) // self.stardust.cell) >= self.stardust.fci

    def room(self, cell):
        """Bytes of memory that a cell takes."""
        return max(cell.size, bounds.least(self.stardust))

    def branch(self, k, node, cell, slot):
        """A cell for several adapters goes up as one until all lie below, and then once into each branch."""
        burst = cell.burst
        if node < len(self.adapters):
            self.arrived += 1
            self.print.fold(slot, k << 40 ^ burst.serial)
            self.adapters[node].marks += cell.congested
            self.adapters[node].seen += 1
            for host in burst.targets:
                if self.ports[host].adapter == node:
                    self.hand_copy(host)
            return
        ways = [self.table[node][self.ports[host].adapter] for host in burst.targets]
        above = [g for g in ways if self.walks[g].links[0] < self.cables]
        if above and not self.links[k].down:
            ways = above[-1:]
        for g in dict.fromkeys(g for g in ways if g not in above or not self.links[k].down):
            link = self.links[self.walks[g].next()]
            copy = Cell(burst, cell.born, cell.size, cell.congested or self.full(link))
            link.queue.append(copy)

    def hand_copy(self, host):
        port = self.ports[host]
        port.free_at = max(port.free_at, self.now) + wire_time(self.stardust.cell, self.stardust.link)
        self.took[host] += self.stardust.filling

    def spread(self, source, outputs):
        """A packet for several nodes: one cell, without credit, for all that are at other adapters."""
        home = self.ports[source].adapter
        for j in outputs:
            if self.ports[j].adapter == home:
                self.hand_copy(j)
        away = tuple(j for j in outputs if self.ports[j].adapter != home)
        if away:
            self.adapters[home].used += self.stardust.cell
            burst = Burst(self.serial, None, [], self.stardust.cell, 1, 0, tail=self.stardust.cell, targets=away)
            self.serial += 1
            self.adapters[home].to_send[0].append(burst)
            self.wake()

    def transmit(self, slot):
        """Every queue sends its first cell, and what fits in the time that short ones leave."""
        fabric = self.stardust
        for link in self.links:
            if not link.queue:
                continue
            if link.debt >= fabric.cell:
                link.debt -= fabric.cell
                self.work(link, slot, fabric.cell)
                continue
            up, down = self.paused.get(link.to, (False, False))
            if down or (up and not link.down):
                continue
            link.debt -= fabric.cell - link.queue[0].size
            self.put(link, slot, 0)
            place = 1
            while link.queue and place < self.abreast and link.queue[0].size <= -link.debt:
                link.debt += link.queue[0].size
                self.put(link, slot, place)
                place += 1
            if place == self.abreast:
                link.debt = max(link.debt, -fabric.cell)
            self.work(link, slot, fabric.cell if link.queue else fabric.cell + max(min(link.debt, 0), -fabric.cell))
            if not link.queue:
                link.debt = max(link.debt, 0)

    def work(self, link, slot, size):
        """A link that is up sends for as long as so many bytes take: all of its slot, if something waits behind."""
        if not link.dead:
            link.sent, link.last = link.sent + link.last[1], (slot, size)

    def worked(self, link, now):
        """ps until `now` in which a link has sent."""
        cell, length, (slot, size) = self.stardust.cell, self.stardust.slot, link.last
        return (link.sent + min(size, now * cell // length - slot * cell)) * length // cell

    def put(self, link, slot, place):
        """The first cell of a queue goes on the wire, first in its slot or behind short ones."""
        cell = link.queue.popleft()
        if link.frm < len(self.adapters):
            self.adapters[link.frm].waiting -= self.room(cell)
        own = word(key(self.seed, ERRORS), link.number)
        corrupt = link.noisy and word(own, slot) >> 32 < round(self.stardust.error_rate * (1 << 32))
        if link.dead or corrupt:
            self.miss(cell)
        else:
            arriving = self.wires.setdefault(slot + self.stardust.hop, [[] for _ in range(self.abreast)])
            arriving[place].append((link.number, cell))

    def look(self):
        """Elements that are nearly full pause those who send to them, as a last resort (§5.5)."""
        held: dict = {}
        for link in self.links:
            if link.frm >= len(self.adapters):
                held.setdefault(link.frm, [0, 0])[link.down] += sum(map(self.room, link.queue))
        self.paused = self.pausing
        _, _, stop_up, stop_down = self.pools
        cell = self.stardust.cell
        self.pausing = {v: (up > stop_up[v] * cell, down > stop_down[v] * cell) for v, (up, down) in held.items()}

    def throttle(self):
        """Adapters that saw congestion give fewer credits for a while (§4.2)."""
        fabric = self.stardust
        for adapter in self.adapters:
            if adapter.marks:
                part = adapter.marks * 1024 // adapter.seen
                adapter.factor = max(adapter.factor - (adapter.factor * round(fabric.fci_cut * 1024) * part >> 20), 64)
            else:
                adapter.factor = min(adapter.factor + round(fabric.fci_gain * 1024), 1024)
            adapter.marks = adapter.seen = 0

    # ------------------------------------------------------------ traffic without hosts

    def make_units(self):
        fabric, demand, n = self.stardust, self.demand, self.n
        if not hasattr(self, "coming"):
            self.coming = demand.arrivals()
        while self.unit_at < demand.slots and (self.unit_at + 1) * fabric.node_slot <= self.now:
            for arrival in next(self.coming):
                if fabric.multicast == "fabric" and demand.fanout > 1:
                    if self.adapters[self.ports[arrival.i].adapter].used + fabric.cell <= fabric.buffer:
                        self.spread(arrival.i, sorted(arrival.outputs))
                    continue
                for j in arrival.outputs:
                    a = self.ports[arrival.i].adapter
                    if self.adapters[a].used + fabric.cell <= fabric.buffer:
                        self.store(self.voq(arrival.i, j, 0), Unit(fabric.cell))
            self.unit_at += 1
        assert n == demand.nodes

    def run_open(self, until):
        """Let traffic without hosts come until `until`, or until there is no more."""
        while self.unit_at < self.demand.slots:
            if not self.ticking:
                self.wake()
            if self.agenda[0][0] > until:
                return
            self.now, _, _, event = heapq.heappop(self.agenda)
            event.action()


class _Seen:
    """A fabric as `weft.hosts` sees it."""

    def __init__(self, fabric):
        self.hosts, self.link, self.ties = fabric.nodes, fabric.link, fabric.ties
        self.payload, self.wire_size, self.settings = fabric.payload, fabric.wire_size, fabric.settings
