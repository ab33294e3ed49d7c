"""The twin of the kernel: the real manager and agents, one frame and one stream at a time."""

from collections import deque

import numpy as np

from weft import random
from weft.engine.calendar import Calendar
from weft.engine.fingerprint import Fingerprint
from weft.fabrics.tdma.agent import Agent
from weft.fabrics.tdma.fabric import TDMA
from weft.fabrics.tdma.hosts import visible
from weft.fabrics.tdma.kernel import LOSSES, REACTIONS
from weft.fabrics.tdma.manager import Manager, Report, by_switch, rotation
from weft.units import wire_time

STOP, GO = 0, 1
NEVER = 1 << 62


class Room:
    """A network, its manager and its flows. `run` lets cycles pass; `streams` keeps what was sent."""

    def __init__(self, fabric: TDMA, flows, seed: int = 0):
        self.fabric, self.seed, self.n = fabric, seed, fabric.nodes
        self.flows = [tuple(int(column[f]) for column in (flows.src, flows.dst, flows.size))
                      for f in range(len(flows))]  # fmt: skip
        self.calendar = Calendar(flows)
        self.waiting: dict[tuple, deque] = {
            (i, j): deque() for i in range(self.n) for j in range(self.n)
        }  # [flow, bytes left], in order
        self.held: dict[tuple, int] = {}  # (i, j) -> bytes in j's receive buffer …
        self.read: dict[tuple, int] = {}  # … and the time for which they are known
        self.finish = [-1] * len(self.flows)
        self.ports: dict[
            int, tuple[int, int]
        ] = {}  # port -> (ps until which it is busy, ps until which that was still arriving)
        self.beside: dict[int, int] = {}  # the same for short flows
        self.print_ = Fingerprint()
        self.streams: list[tuple] = []  # (src, dst, begin, end, bytes offered, path, bytes arrived, ps)
        self.overlaps = self.interleaved = self.queue = self.dropped = self.stranded = self.unused = self.sent = 0
        self.dead: set[int] = set()
        self.epoch = self.cycle = 0
        self.nics = fabric.controllers(seed)
        self.groups = by_switch(fabric.network)
        self.events = sorted(
            (time, outage.what, outage.which[0], up)
            for outage in fabric.outages(seed)
            for time, up in ((outage.at, False), (outage.until, True))
            if time is not None
        )
        self._appoint(0)

    def _appoint(self, now):
        """A manager begins."""
        self.manager = Manager(
            network=self.fabric.network, scheduler=self.fabric.scheduler, guard=self.fabric.guard,
            slots=self.fabric.slots, lead=self.fabric.lead, compute=self.fabric.compute, nics=self.nics,
            signal="extended", silence=self.fabric.silence, start=now, first=self.cycle, epoch=self.epoch,
        )  # fmt: skip
        self.agents = [Agent(host=h, hosts=self.n, permit=self.fabric.permission) for h in range(self.n)]
        deaths = [time for time, kind, _, up in self.events if kind == "manager" and not up and time >= now]
        self.death = min(deaths, default=NEVER)

    # ------------------------------------------------------------ frames

    def acts(self, h, c, phase):
        """When host h does what a cycle's frame says."""
        time = self.manager.begins(c) + (self.fabric.guard if phase == GO else 0)
        counter = (c * 2 + phase) * self.n + h
        lost = random.word(random.key(self.seed, LOSSES), counter) >> 11 < int(self.fabric.loss * 2**53)
        if time >= self.death or lost:
            return NEVER
        turns = {}
        for nic, host in rotation(self.groups, self.nics.count, c):
            turns.setdefault(nic, []).append(host)
        nic = next(nic for nic, hosts in turns.items() if h in hosts)
        sent = time + self.nics.late(nic, time) + turns[nic].index(h) * self.nics.spacing
        drawn = random.below_one(random.word(random.key(self.seed, REACTIONS), counter), self.fabric.reacts.jitter + 1)
        return sent + self.fabric.transit + self.fabric.reacts.lag + drawn

    # ------------------------------------------------------------ time

    def run(self, until: int = NEVER) -> None:
        """Let cycles pass that begin before `until`, until all flows are done."""
        while -1 in self.finish:
            begin = self.manager.begins(self.cycle)
            if begin >= self.death:
                begin = self._succession()
            if begin is None or begin >= until:
                return
            self._fail(begin)
            self._cycle(begin)
            self.cycle += 1

    def _fail(self, now):
        while self.events and self.events[0][0] <= now:
            _, kind, which, up = self.events.pop(0)
            if kind == "node":
                (self.dead.discard if up else self.dead.add)(which)

    def _succession(self):
        """The manager is dead: when and by whom it is replaced."""
        back = [time for time, kind, _, up in self.events if kind == "manager" and up and time >= self.death]
        if self.fabric.patience is not None:
            back.append(max(self.death, self.manager.begins(self.cycle - 1) + self.fabric.patience))
        if not back:
            return None
        now = min(back)
        self._fail(now)
        self.epoch += 1
        self._appoint(now)
        return now

    def _cycle(self, begin):
        fabric, c = self.fabric, self.cycle
        self._admit(begin)
        place = (c - self.manager.first) % fabric.slots
        if place == fabric.slots - fabric.lead - fabric.age:
            self._report(begin)
        orders = self.manager.stop()
        assert len(orders) == self.n and {order.frame.time for order in orders} == {65535}
        opened = {}
        if begin + fabric.guard < self.death:
            for order in self.manager.go():
                agent = self.agents[order.host]
                agent.frame(order.frame, order.time)
                opened[order.host] = agent.may_send(order.time)
        for i, j, granted in self.manager.granted(c):
            assert not opened or opened[i] == [j]  # what the frames say is what was granted
            start = NEVER if i in self.dead else self.acts(i, c, GO)
            if start == NEVER:
                self.unused += 1
                continue
            stop = self.acts(i, c + 1, STOP)
            end = min(start + fabric.permission, self.acts(i, c + 1, GO) if stop == NEVER else stop)
            size = min(granted, sum(left for _, left in self.waiting[i, j]))
            if end <= start or size == 0:
                self.unused += 1
                continue
            self._send(i, j, start, end, size)

    # ------------------------------------------------------------ hosts

    def _admit(self, now):
        while self.calendar and self.calendar.next <= now:
            start, f = self.calendar.next, self.calendar.pop()
            i, j, size = self.flows[f]
            if size <= self.fabric.short:
                self._beside(f, i, j, size, start)
            else:
                self.waiting[i, j].append([f, size])

    def _report(self, now):
        for h in range(self.n):
            if h in self.dead:
                continue
            backlog = [sum(left for _, left in self.waiting[h, j]) for j in range(self.n)]
            room = None
            if self.fabric.receive_buffer is not None:
                room = np.array([self.fabric.receive_buffer - self._unread(i, h, now) for i in range(self.n)])
            self.manager.report(Report(host=h, seen=self.cycle - 1, room=room, waiting=np.array(
                [visible(b, self.fabric.send_buffer) for b in backlog])))  # fmt: skip

    def _unread(self, i, j, now):
        """Bytes from i that j's application has not read by `now`."""
        span = min(max(0, now - self.read.get((i, j), 0)), 10**12)
        if self.fabric.reading is None:
            return 0
        self.held[i, j] = max(0, self.held.get((i, j), 0) - span // 1000 * (self.fabric.reading // 1000) // 8_000_000)
        self.read[i, j] = max(self.read.get((i, j), 0) + span, now - 10**12)
        return self.held[i, j]

    # ------------------------------------------------------------ links

    def _packet(self, payload, rate):
        return wire_time(payload + self.fabric.overhead, rate)

    def _path(self, i, j):
        now, place = self.manager._now, (self.cycle - self.manager.first) % self.fabric.slots
        return next(now.path(g).tolist() for g in now.slot(place) if (now.src[g], now.dst[g]) == (i, j))

    def _send(self, i, j, start, end, size):
        """Packets from `start`, back to back, as long as one can begin before `end`; they cross ports as one."""
        fabric, mtu, rate = self.fabric, self.fabric.mtu, self.fabric.rate
        whole = self._packet(mtu, rate)
        size = min(size, -(-(end - start) // whole) * mtu)
        path = self._path(i, j)
        self.sent += size
        offered, at, last = size, start, None
        delays = np.repeat(fabric.network.graph.delay, 2)
        for hop, port in enumerate(path):
            packets = [mtu] * ((size - 1) // mtu) + [(size - 1) % mtu + 1]
            last = start + (len(packets) - 1) * whole if last is None else last
            busy, coming = self.ports.get(port, (0, 0))
            if busy > at:
                self.overlaps += 1
                self.interleaved += coming > at
                held, most = (busy - at) * (mtu + fabric.overhead) // whole, fabric.buffer
                if hop and held > most:
                    gone = min(len(packets), -(-(held - most) // (mtu + fabric.overhead)))
                    self.dropped += sum(packets[:gone]) if gone == len(packets) else gone * mtu
                    packets, at, held = packets[gone:], at + gone * whole, most
                    size = sum(packets)
                    if not packets:
                        break
                self.queue = max(self.queue, held)
            begun = max(at, busy)
            tip = self._packet(packets[-1], rate)
            final = max(begun + (len(packets) - 1) * whole, last)
            self.ports[port] = final + tip, last
            stored = fabric.switching == "store"
            delay = int(delays[port])
            at = begun + (self._packet(packets[0], rate) if stored else 0) + delay
            last = final + (tip if stored else 0) + delay
            arrived = final + tip + delay
        self.streams.append((i, j, start, end, offered, path, size, arrived if size else None))
        if size and j in self.dead:
            self.stranded += size
        elif size:
            self._deliver(i, j, size, begun, arrived, delay, whole)
            self.print_.fold(start, i << 32 | j)
            self.print_.fold(arrived, size)

    def _deliver(self, i, j, size, begun, arrived, delay, whole):
        if self.fabric.reading is not None:
            self._unread(i, j, arrived)
            self.held[i, j] = self.held.get((i, j), 0) + size
            assert self.held[i, j] <= self.fabric.receive_buffer
        used, queue = 0, self.waiting[i, j]
        while used < size:
            entry = queue[0]
            part = min(size - used, entry[1])
            entry[1] -= part
            used += part
            if entry[1] == 0:
                queue.popleft()
                time = arrived if used == size else begun + -(-used // self.fabric.mtu) * whole + delay
                self._done(entry[0], min(time, arrived))

    def _done(self, f, time):
        self.finish[f] = time
        self.print_.fold(time, f)
        self.calendar.ended(f, time)

    def _beside(self, f, i, j, size, start):
        """A short flow, in the bandwidth that is kept for such."""
        from weft.fabrics.tdma.run import _shortest

        network = self.fabric.network
        path = network.path(i, j) if network.tree is not None else _shortest(network, i, j)
        packets = [self.fabric.mtu] * ((size - 1) // self.fabric.mtu) + [(size - 1) % self.fabric.mtu + 1]
        times = [self._packet(payload, self.fabric.reserve) for payload in packets]
        at, delays = start, np.repeat(network.graph.delay, 2)
        for port in path:
            begun = max(at, self.beside.get(port, 0))
            self.beside[port] = begun + sum(times)
            at = begun + (times[0] if self.fabric.switching == "store" else 0) + int(delays[port])
        self._done(f, self.beside[path[-1]] + int(delays[path[-1]]))
