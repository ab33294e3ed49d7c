"""The twin of the kernel: the real manager and agents, one frame and one stream at a time."""

from collections import defaultdict, deque

import numpy as np

from weft import random
from weft.engine.calendar import Calendar
from weft.engine.fingerprint import Fingerprint
from weft.fabrics.tdma.agent import Agent
from weft.fabrics.tdma.fabric import TDMA
from weft.fabrics.tdma.hosts import visible
from weft.fabrics.tdma.kernel import LOSSES, REACTIONS
from weft.fabrics.tdma.manager import LATE, Manager, Report, by_switch, rotation
from weft.fabrics.tdma.packets import Line, Links, Window, carry_over
from weft.units import wire_time
from weft.wire.pfc import FRAME, GAP

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
        graph = fabric.network.graph
        self.links = Links(
            rate=np.repeat(graph.rate, 2).tolist(), delay=np.repeat(graph.delay, 2).tolist(), mtu=fabric.mtu,
            overhead=fabric.overhead, buffer=fabric.buffer, store=fabric.switching == "store",
        )  # fmt: skip
        self.coming: dict[int, int] = {}  # port -> ps until which what it is busy with was still arriving
        self.behind: dict[tuple, int] = {}  # (i, j) -> bytes that i's application has yet to write …
        self.wrote: dict[tuple, int] = {}  # … the time for which that is known …
        self.written: dict[tuple, int] = {}  # … and what it has written since i's last report
        self.begun = [-1] * len(self.flows)
        self.found: dict[int, tuple] = {}  # port -> what a frame finds there, see _held
        self.beside: dict[int, int] = {}  # the same for short flows
        self.aside: dict[int, Line] = defaultdict(Line)
        self.print_ = Fingerprint()
        self.streams: list[tuple] = []  # (src, dst, begin, end, bytes offered, path, bytes arrived, ps)
        self.overlaps = self.interleaved = self.queue = self.dropped = self.stranded = self.unused = self.sent = 0
        self.cut = self.shared = self.granted = self.absent = self.beyond = 0
        self.dead: set[int] = set()
        self.epoch = self.cycle = 0
        self.nics = fabric.controllers(seed)
        self.groups = by_switch(fabric.network)
        self.events = fabric.changes(seed)
        self.alive = np.ones(len(graph.ends), bool)  # links, as far as the manager knows
        self._appoint(0)

    def _appoint(self, now):
        """A manager begins."""
        self.manager = Manager(
            network=self.fabric.network, scheduler=self.fabric.scheduler, guard=self.fabric.guard,
            slots=self.fabric.slots, lead=self.fabric.lead, compute=self.fabric.compute, nics=self.nics,
            signal="extended", silence=self.fabric.silence, start=now, first=self.cycle, epoch=self.epoch,
            options={"spill": True} if self.fabric.spill else {},
        )  # fmt: skip
        self.manager.links(None if self.alive.all() else self.alive.copy())
        self.agents = [Agent(host=h, hosts=self.n, permit=self.fabric.permission) for h in range(self.n)]
        deaths = [time for time, kind, _, up in self.events if kind == "manager" and not up and time >= now]
        self.death = min(deaths, default=NEVER)

    # ------------------------------------------------------------ frames

    def told(self, h, c, phase):
        """When a cycle's frame for host h is at the last port before it."""
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
        return sent + self.fabric.transit - self.crossing

    def acts(self, h, c, phase):
        """When host h does what a cycle's frame says."""
        time = self.told(h, c, phase)
        if time == NEVER:
            return NEVER
        counter = (c * 2 + phase) * self.n + h
        drawn = random.below_one(random.word(random.key(self.seed, REACTIONS), counter), self.fabric.reacts.jitter + 1)
        held = self._held(h, time, phase) if self.fabric.inband else 0
        return time + held + self.crossing + self.fabric.reacts.lag + drawn

    @property
    def crossing(self):
        """ps of a frame from the port to its host."""
        return wire_time(FRAME, self.fabric.link) + self.fabric.delay

    def _held(self, h, time, phase):
        """ps that a frame waits for packets to host h that came before it."""
        port = int(self.fabric.network.host_port[h]) ^ 1
        came, began, step, last, end, later = self.found.get(port, (0, 0, 1, 0, 0, 0))
        if phase == GO:
            began, end = began + later, end + later
        if time < came or time >= last:
            return max(0, end - time) if time >= came else 0
        before, whole = (time - came) // step + 1, self.links.time(self.fabric.mtu, port)
        return max(0, began + before * whole - time, came + (before - 1) * step + whole - time)

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
            elif kind == "link":
                (self.links.down.difference_update if up else self.links.down.update)({2 * which, 2 * which + 1})
            elif kind == "known":
                self.alive[which] = up
                self.manager.links(None if self.alive.all() else self.alive.copy())

    def deaf(self, h):
        """Whether neither frames nor reports pass between a host and the manager."""
        return h in self.dead or int(self.fabric.network.host_port[h]) in self.links.down

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
        grants = self.manager.granted(c)
        now, paths = self.manager._now, []
        if grants:
            paths = [
                (now.path(g).tolist(), int(now.rate[g])) for g in now.slot((c - self.manager.first) % fabric.slots)
            ]
        self.granted += sum(granted for _, _, granted in grants)
        used = [port for path, _ in paths for port in path]
        for i, j, _ in grants:
            assert not opened or j in opened[i]  # what the frames say is what was granted
        assert not opened or sum(map(len, opened.values())) == len({(i, j) for i, j, _ in grants})
        self.opened = {}
        if fabric.inband:
            self._foretell(c, grants, paths)
        if len(used) == len(set(used)):
            for (i, j, granted), (path, rate) in zip(grants, paths, strict=True):
                start, end, size = self._window(i, j, c, granted, path)
                if size:
                    self._send(c, i, j, start, end, size, path, rate)
        else:
            self._meet(c, grants, paths)

    def _window(self, i, j, c, granted, path):
        """From when and before when the packets of a grant may begin, and bytes; none if the slot goes unused."""
        fabric = self.fabric
        start = NEVER if self.deaf(i) else self.opened.get(i, NEVER) if fabric.inband else self.acts(i, c, GO)
        if start == NEVER:
            self.unused += 1
            return start, start, 0
        stop = self.acts(i, c + 1, STOP)
        end = min(start + fabric.permission, self.acts(i, c + 1, GO) if stop == NEVER else stop)
        left = self._backlog(i, j, start)
        size = min(granted, left) if end > start else 0
        self.absent += granted - size
        self.unused += size == 0
        if size:
            most = min(int(fabric.network.capacity[port]) for port in path)
            self.beyond += max(0, min(most, left) - granted)
        return start, end, size

    def _foretell(self, c, grants, paths):
        """When hosts may begin, and what the frames that stop them will find: streams that nobody has stopped."""
        self.opened = {i: self.acts(i, c, GO) for i, _, _ in grants}
        for (i, j, granted), (path, rate) in zip(grants, paths, strict=True):
            size = min(granted, sum(left for _, left in self.waiting[i, j]) - self.behind.get((i, j), 0))
            if self.opened[i] == NEVER or not size or self.deaf(i):
                continue
            mtu, pace = self.fabric.mtu, self._packet(self.fabric.mtu, rate)
            packets = [mtu] * ((size - 1) // mtu) + [(size - 1) % mtu + 1]
            came, step = [self.opened[i] + k * pace for k in range(len(packets))], pace  # at a port, packet by packet
            for port in path:
                step = max(step, self.links.time(mtu, port))
                free, begins = self.links.busy.get(port, 0) if port == path[-1] else 0, []
                for time, payload in zip(came, packets, strict=True):
                    begins.append(max(time, free))
                    free = begins[-1] + self.links.time(payload, port)
                if port == path[-1]:
                    self.found[port] = came[0], begins[0], step, came[-1], free, 0
                delay = self.links.of(self.links.delay, port)
                stored = [self.links.time(payload, port) * self.links.store for payload in packets]
                came = [begin + took + delay for begin, took in zip(begins, stored, strict=True)]

    def _give_way(self, c, j, port, at, begun, last, final, tip, step):
        """ps by which the last packet begins later for the frames among the data."""
        whole, later = self.links.time(self.fabric.mtu, port), 0
        self.found[port] = at, begun, step, last, final + tip, 0
        for phase in (STOP, GO):
            time = self.told(j, c + 1, phase)
            if not at <= time < last:
                continue
            frame = wire_time(FRAME + GAP, self.links.of(self.links.rate, port))
            if step == whole:
                later += frame
            else:
                later = max(later, time + self._held(j, time, phase) + frame - final)
            if phase == STOP and step == whole:
                self.found[port] = at, begun, step, last, final + tip, later
        return later

    def _backlog(self, i, j, now):
        """Bytes that i has for j at `now`, after its application has written what it can."""
        left = sum(left for _, left in self.waiting[i, j]) - self.behind.get((i, j), 0)
        behind, rate = self.behind.get((i, j), 0), self.fabric.writing
        if rate is None or not behind:
            return left
        span = min(max(0, now - self.wrote[i, j]), 10**12)
        self.wrote[i, j] = max(self.wrote[i, j], now)
        room = NEVER if self.fabric.send_buffer is None else max(0, self.fabric.send_buffer - left)
        moved = min(behind, room, span // 1000 * (rate // 1000) // 8_000_000)
        self.behind[i, j] = behind - moved
        self.written[i, j] = self.written.get((i, j), 0) + moved
        return left + moved

    # ------------------------------------------------------------ hosts

    def _admit(self, now):
        while self.calendar and self.calendar.next <= now:
            start, f = self.calendar.next, self.calendar.pop()
            i, j, size = self.flows[f]
            self.begun[f] = start
            if size <= self.fabric.short and not {i, j} & self.dead and self.links.down.isdisjoint(self._way(i, j)):
                self._beside(f, i, j, size, start)
                continue
            place = len(self.waiting[i, j])
            if self._hurried(f):
                place = sum(self._hurried(g) for g, _ in self.waiting[i, j])
            self.waiting[i, j].insert(place, [f, size])
            if self.fabric.writing is not None:
                if not self.behind.get((i, j)):
                    self.wrote[i, j] = start
                self.behind[i, j] = self.behind.get((i, j), 0) + size

    def _report(self, now):
        for h in range(self.n):
            if self.deaf(h):
                continue
            backlog, room = [self._backlog(h, j, now) for j in range(self.n)], None
            if self.fabric.estimate == "trend":
                backlog = [left + self.written.get((h, j), 0) for j, left in enumerate(backlog)]
            for j in range(self.n):
                self.written[h, j] = 0
            if self.fabric.receive_buffer is not None:
                room = np.array([self.fabric.receive_buffer - self._unread(i, h, now) for i in range(self.n)])
            due, urgent = zip(*(self._due(h, j) for j in range(self.n)), strict=True)
            self.manager.report(Report(
                host=h, seen=self.cycle - 1, room=room, due=np.array(due), urgent=np.array(urgent),
                waiting=np.array([visible(b, self.fabric.send_buffer) for b in backlog]),
            ))  # fmt: skip

    def _due(self, i, j):
        """The last cycle in time for the flows to j with a deadline, which are first, and their bytes."""
        first = [(f, left) for f, left in self.waiting[i, j] if self._hurried(f)]
        if not first:
            return LATE, 0
        late = self.begun[first[0][0]] + self.fabric.deadline - self.manager.start
        return self.manager.first + late // self.fabric.cycle, sum(left for _, left in first)

    def _hurried(self, f):
        return self.flows[f][2] <= self.fabric.urgent

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

    def _send(self, c, i, j, start, end, size, path, rate):
        """Packets from `start`, `rate` apart, as long as one can begin before `end`; they cross ports as one."""
        fabric, mtu = self.fabric, self.fabric.mtu
        pace = step = self._packet(mtu, rate)
        size = min(size, -(-(end - start) // pace) * mtu)
        self.sent += size
        offered, at, arrivals = size, start, None  # arrivals: of the last two packets
        stored = fabric.switching == "store"
        for hop, port in enumerate(path):
            if port in self.links.down:
                self.cut += size
                self.streams.append((i, j, start, end, offered, path, 0, None))
                return
            packets = [mtu] * ((size - 1) // mtu) + [(size - 1) % mtu + 1]
            if arrivals is None:
                arrivals = [start + k * pace for k in range(len(packets))][-2:]
            whole = self.links.time(mtu, port)
            step = max(step, whole)
            busy, coming = self.links.busy.get(port, 0), self.coming.get(port, 0)
            if busy > at:
                self.overlaps += 1
                self.interleaved += coming > at
                held, most = (busy - at) * (mtu + fabric.overhead) // whole, fabric.buffer
                if hop and held > most:
                    gone = min(len(packets), -(-(held - most) // (mtu + fabric.overhead)))
                    self.dropped += sum(packets[:gone]) if gone == len(packets) else gone * mtu
                    packets, at, held = packets[gone:], at + gone * step, most
                    size = sum(packets)
                    if not packets:
                        break
                self.queue = max(self.queue, held)
            begun = max(at, busy)
            tip = self.links.time(packets[-1], port)
            last = arrivals[-1]
            final = max(begun, last)
            if len(packets) > 1:
                second = max(begun + (len(packets) - 2) * whole, arrivals[0])
                final = max(second + whole, last)
            if fabric.inband and port == path[-1]:
                final += self._give_way(c, j, port, at, begun, last, final, tip, step)
            if whole > pace:
                self.queue = max(self.queue, (final - last) * (mtu + fabric.overhead) // whole)
            self.links.lines[port].work(c, begun, sum(self.links.time(payload, port) for payload in packets))
            self.links.busy[port], self.coming[port] = final + tip, last
            delay = self.links.of(self.links.delay, port)
            at = begun + (self.links.time(packets[0], port) if stored else 0) + delay
            arrivals = [final + (tip if stored else 0) + delay]
            if len(packets) > 1:
                arrivals.insert(0, second + (whole if stored else 0) + delay)
            arrived = final + tip + delay
        self.streams.append((i, j, start, end, offered, path, size, arrived if size else None))
        if size and j in self.dead:
            self.stranded += size
        elif size:
            self._deliver(i, j, size, begun + whole + delay - step, step, arrived)
            self.print_.fold(start, i << 32 | j)
            self.print_.fold(arrived, size)

    def _meet(self, c, grants, paths):
        """A slot in which flows meet at a port, packet by packet."""
        self.shared += 1
        windows, taken = [], {}
        for (i, j, granted), (path, rate) in zip(grants, paths, strict=True):
            start, end, size = self._window(i, j, c, granted, path)
            waits = sum(left for _, left in self.waiting[i, j]) - self.behind.get((i, j), 0)
            size = min(size, waits - taken.get((i, j), 0))
            taken[i, j] = taken.get((i, j), 0) + size
            windows.append(Window(i, start, end, size, path, rate))
        self.links.cycle = c
        seen = carry_over(self.links, windows)
        self.queue = max(self.queue, seen.queue)
        self.cut += seen.cut
        self.sent += sum(seen.sent)
        for time, w, payload in seen.deliveries:
            i, j, _ = grants[w]
            if j in self.dead:
                self.stranded += payload
            else:
                self._deliver(i, j, payload, time, 0, time)
        self.dropped += sum(seen.sent) - sum(seen.bytes) - seen.cut
        for (i, j, _), window, arrived, got in zip(grants, windows, seen.arrived, seen.bytes, strict=True):
            self.streams.append((i, j, window.begin, window.end, window.size, window.path, got, arrived))
            if got and j not in self.dead:
                self.print_.fold(window.begin, i << 32 | j)
                self.print_.fold(arrived, got)

    def _deliver(self, i, j, size, before, step, arrived):
        """Bytes of a pair have arrived, the k-th packet k steps after `before` and all by `arrived`."""
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
                time = arrived if used == size else before + -(-used // self.fabric.mtu) * step
                self._done(entry[0], min(time, arrived))

    def _done(self, f, time):
        self.finish[f] = time
        self.print_.fold(time, f)
        self.calendar.ended(f, time)

    def _way(self, i, j):
        """The ports of a short flow."""
        from weft.fabrics.tdma.run import _shortest

        network = self.fabric.network
        return network.path(i, j) if network.tree is not None else _shortest(network, i, j)

    def _beside(self, f, i, j, size, start):
        """A short flow, in the bandwidth that is kept for such."""
        network, path = self.fabric.network, self._way(i, j)
        packets = [self.fabric.mtu] * ((size - 1) // self.fabric.mtu) + [(size - 1) % self.fabric.mtu + 1]
        times = [self._packet(payload, self.fabric.reserve) for payload in packets]
        at, delays = start, np.repeat(network.graph.delay, 2)
        for port in path:
            begun = max(at, self.beside.get(port, 0))
            self.beside[port] = begun + sum(times)
            self.aside[port].work(self.cycle, begun, sum(times))
            at = begun + (times[0] if self.fabric.switching == "store" else 0) + int(delays[port])
        self._done(f, self.beside[path[-1]] + int(delays[path[-1]]))
