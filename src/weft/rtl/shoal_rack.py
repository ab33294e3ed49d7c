"""A rack in gates: NICs, the circuit switches of its Clos, and links with delay; a host that makes up payload.

`latency` cycles lie between a word's appearance at a NIC and its appearance at another: three switches of one cycle
each and the four links of the path. Commands of a slot are given to a NIC one after another in the last cycles of the
slot before; `sent` and `heard` change once per slot. Cycle 0 is the first of a slot before the first, in which all send
empty cells.
"""

from functools import cached_property

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.crc import linear, parity, raw
from weft.rtl.parts import Block, place
from weft.rtl.shoal_nic import BACKLOG, NODE, RECEIVE, SEND, SEQ, TAKING, Nic
from weft.rtl.shoal_switch import FIRST, LINK, VALID, CircuitSwitch
from weft.rtl.voq import step
from weft.schedule.decompose import decompose
from weft.schedule.rotation import rounds
from weft.topology.circuit import CircuitClos
from weft.wire.shoal import CRC

SWITCHES = 3  # on every path


def default_cycles(delay: int, words: int) -> int:
    """Cycles of a slot: the prototype's 1 of guard, 3 of overhead and a word each; more where cells arrive at once."""
    return SEND + max(words, TAKING) if delay else SEND + words + SWITCHES + RECEIVE


def default_latency(delay: int, slot_cycles: int, words: int) -> int:
    """The longest path that a cell travels in `delay` slots."""
    return (delay + 1) * slot_cycles - RECEIVE - SEND - words


class Delay(Block):
    """What comes in goes out `cycles` later: a memory that goes around, or nothing. Members: `incoming`, `outgoing`."""

    def __init__(self, cycles: int, width: int = LINK):
        self.cycles, self.width = cycles, width
        super().__init__({"incoming": In(width), "outgoing": Out(width)})

    def elaborate(self, platform):
        m = Module()
        if self.cycles == 0:
            m.d.comb += self.outgoing.eq(self.incoming)
        elif self.cycles == 1:
            m.d.sync += self.outgoing.eq(self.incoming)
        else:
            store = m.submodules.store = Memory(shape=self.width, depth=self.cycles, init=[])
            write, read, at = store.write_port(), store.read_port(domain="comb"), Signal(range(self.cycles))
            m.d.sync += at.eq(step(at, self.cycles))
            m.d.comb += [
                write.addr.eq(at), write.data.eq(self.incoming), write.en.eq(1), read.addr.eq(at),
                self.outgoing.eq(read.data),
            ]  # fmt: skip
        return m


class Host(Block):
    """Makes up payload as the prototype does: every word repeats who sends what to whom, and is numbered.

    Members: `src`, `dst`, `seq`, `word` of a cell in; `data` of the word and `remainder` of the cell's payload out.
    """

    def __init__(self, words: int = 8):
        self.words = words
        super().__init__({
            "src": In(NODE), "dst": In(NODE), "seq": In(SEQ), "word": In(range(max(words - 1, 2))), "data": Out(64),
            "remainder": Out(8),
        })  # fmt: skip

    def payload(self, name: int) -> bytes:
        """The payload of the cell whose source, destination and number stand in the bits of `name`."""
        size = 2 * NODE + SEQ
        return b"".join((name | k << size).to_bytes(8, "little") for k in range(self.words - 1))

    def elaborate(self, platform):
        m = Module()
        name = Cat(self.src, self.dst, self.seq)
        start = raw(CRC, 0, self.payload(0))
        masks = linear(lambda bits: raw(CRC, 0, self.payload(bits)) ^ start, len(name), CRC.width)
        m.d.comb += [self.data.eq(Cat(name, self.word)), self.remainder.eq(parity(masks, name) ^ Const(start, 8))]
        return m


class Station(Block):
    """A NIC with its host, its store, and the commands of a slot one after another. Members: as the rack's."""

    def __init__(self, *, nodes, delay, slot_cycles, latency, words, seats, age_interval, schedule, lanes):
        self.nodes, self.delay, self.slot_cycles, self.latency, self.words = nodes, delay, slot_cycles, latency, words
        self.seats, self.age_interval, self.schedule, self.lanes = seats, age_interval, schedule, lanes
        index = max((seats - 1).bit_length(), 1)
        self._command = 2 + index + NODE + BACKLOG
        super().__init__({
            "me": In(NODE), "commands": In(self._command).array(lanes), "incoming": In(LINK), "outgoing": Out(LINK),
            "sent": Out(64), "heard": Out(64), "heard_valid": Out(1), "delivered": Out(32), "corrupt": Out(32),
            "longest": Out(range(nodes + 2)),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        nic = m.submodules.nic = Nic(
            nodes=self.nodes, delay=self.delay, slot_cycles=self.slot_cycles, latency=self.latency, words=self.words,
            seats=self.seats, age_interval=self.age_interval, schedule=self.schedule,
        )  # fmt: skip
        host = m.submodules.host = Host(self.words)
        store = m.submodules.store = Memory(shape=64, depth=1 << len(nic.store_at), init=[])
        write, read = store.write_port(), store.read_port()
        phase = Signal(range(self.slot_cycles))
        m.d.sync += phase.eq(Mux(phase == self.slot_cycles - 1, 0, phase + 1))
        # kept from the first cycle of a slot on: simulators work through all that depends on an input twice a cycle
        asked = [Signal(self._command, name=f"asked_{k}") for k in range(self.lanes)]
        with m.If(phase == 0):
            m.d.sync += [mine.eq(given) for mine, given in zip(asked, self.commands, strict=True)]
        command = Signal(self._command)
        for k in range(self.lanes):
            with m.If(phase == self.slot_cycles - self.lanes + k):
                m.d.comb += command.eq(asked[k])
        m.d.comb += [
            Cat(nic.command_valid, nic.command_open, nic.command_seat, nic.command_dst, nic.command_cells).eq(command),
            nic.me.eq(self.me), nic.rx_word.eq(self.incoming[:64]), nic.rx_valid.eq(self.incoming[VALID]),
            nic.rx_first.eq(self.incoming[FIRST]), self.outgoing.eq(Cat(nic.tx_word, nic.tx_valid, nic.tx_first)),
            host.src.eq(nic.host_src), host.dst.eq(nic.host_dst), host.seq.eq(nic.host_seq),
            host.word.eq(nic.host_word),
            nic.host_data.eq(host.data), nic.host_remainder.eq(host.remainder),
            write.addr.eq(nic.store_at), write.data.eq(nic.store_data), write.en.eq(nic.store_write),
            read.addr.eq(nic.store_from), nic.store_word.eq(read.data),
            *(getattr(self, name).eq(getattr(nic, name))
              for name in ("sent", "heard", "heard_valid", "delivered", "corrupt", "longest")),
        ]  # fmt: skip
        return m


class Rack(Block):
    """Members
    commands    [i][k]  the k-th command of the next slot for node i: valid, open, seat, destination, cells
    sent        [i]  the header that node i sent in this slot
    heard, heard_valid   [i]  the header that came to node i in this slot, and whether one did
    passed      [switch, output]  the header that went through last
    delivered, corrupt, longest   [i]  the counters of each NIC
    """

    def __init__(self, *, nodes: int, ports: int, delay: int = 0, slot_cycles: int | None = None,
                 latency: int | None = None, words: int = 8, seats: int | None = None, age_interval: int = -1,
                 schedule: str = "auto", lanes: int | None = None):  # fmt: skip
        self.nodes, self.ports, self.delay, self.words = nodes, ports, delay, words
        self.schedule, self.age_interval = schedule, age_interval
        self.slot_cycles = slot_cycles or default_cycles(delay, words)
        self.latency = default_latency(delay, self.slot_cycles, words) if latency is None else latency
        self.seats = seats or 3 * nodes
        self.lanes = min(nodes - 1, self.slot_cycles - SEND - 1) if lanes is None else lanes
        require(self.latency >= SWITCHES, "latency", f"at least {SWITCHES} cycles, one for each switch", self.latency)
        room = self.slot_cycles - SEND - 1
        require(1 <= self.lanes <= room, "lanes", f"from 1 to {room}, the cycles left in a slot", self.lanes)
        self.clos = CircuitClos(nodes=nodes, ports=ports)
        self.rounds = rounds(nodes, 1, delay, schedule)
        self.circuits = decompose(self.clos, self.rounds)
        wires = self.latency - SWITCHES
        self.hops = [wires // 4 + (k < wires % 4) for k in range(4)]  # cycles of the four links of a path
        index = max((self.seats - 1).bit_length(), 1)
        self.command = 2 + index + NODE + BACKLOG
        switches = len(self.clos.names)
        super().__init__({
            "commands": In(self.command).array(nodes, self.lanes),
            "sent": Out(64).array(nodes), "heard": Out(64).array(nodes), "heard_valid": Out(nodes),
            "passed": Out(64).array(switches, ports), "delivered": Out(32).array(nodes),
            "corrupt": Out(32).array(nodes), "longest": Out(range(nodes + 2)).array(nodes),
        })  # fmt: skip

    @cached_property
    def offsets(self) -> tuple[int, int, int]:
        """Cycles from a NIC to the inputs of the leaf on the way up, of the spine, and of the leaf on the way down."""
        a, b, c, _ = self.hops
        return a, a + 1 + b, a + 1 + b + 1 + c

    def offsets_of(self, name: str) -> list[int]:
        """Those of each output of a switch: a leaf's uplinks serve the way up, its other ports the way down."""
        up, spine, down = self.offsets
        if self.clos.locate(name)[1] == "spine":
            return [spine] * self.ports
        return [down] * self.clos.half + [up] * (self.ports - self.clos.half)

    def elaborate(self, platform):
        m = Module()
        clos, half = self.clos, self.clos.half
        stations = []
        for i in range(self.nodes):
            station = place(m, f"node_{i}", Station(
                nodes=self.nodes, delay=self.delay, slot_cycles=self.slot_cycles, latency=self.latency,
                words=self.words, seats=self.seats, age_interval=self.age_interval, schedule=self.schedule,
                lanes=self.lanes,
            ))  # fmt: skip
            stations.append(station)
            m.d.comb += [
                station.me.eq(i), self.sent[i].eq(station.sent), self.heard[i].eq(station.heard),
                self.heard_valid[i].eq(station.heard_valid), self.delivered[i].eq(station.delivered),
                self.corrupt[i].eq(station.corrupt), self.longest[i].eq(station.longest),
                *(station.commands[k].eq(self.commands[i][k]) for k in range(self.lanes)),
            ]  # fmt: skip
        switches = {}
        for number, name in enumerate(clos.names):
            switch = m.submodules[name] = switches[name] = CircuitSwitch(
                self.circuits.selectors(name), slot_cycles=self.slot_cycles, offsets=self.offsets_of(name), name=name
            )
            for y in range(self.ports):
                with m.If(switch.links_out[y][VALID] & switch.links_out[y][FIRST]):
                    m.d.sync += self.passed[number][y].eq(switch.links_out[y][:64])

        def wire(name, cycles, begin, end):
            line = place(m, name, Delay(cycles))
            m.d.comb += [line.incoming.eq(begin), end.eq(line.outgoing)]

        to_leaf, to_spine, from_spine, from_leaf = self.hops
        for i, station in enumerate(stations):
            leaf = switches[clos.leaf(0, i // half)]
            wire(f"up_{i}", to_leaf, station.outgoing, leaf.links_in[i % half])
            wire(f"down_{i}", from_leaf, leaf.links_out[i % half], station.incoming)
        for a in range(clos.leaves):
            leaf = switches[clos.leaf(0, a)]
            for u in range(half):
                x, port = clos.spine_port(u, a)
                spine = switches[clos.spine(0, x)]
                wire(f"uplink_{a}_{u}", to_spine, leaf.links_out[half + u], spine.links_in[port])
                wire(f"downlink_{a}_{u}", from_spine, spine.links_out[port], leaf.links_in[half + u])
        return m


def through(rack: Rack) -> dict[tuple[int, int], np.ndarray]:
    """(number of a switch, output) -> (slots,) the node whose cell goes through it in each slot of an epoch, or -1."""
    clos, circuits, half = rack.clos, rack.circuits, rack.clos.half
    numbers = {name: k for k, name in enumerate(clos.names)}
    out = {(k, y): np.full(circuits.slots, -1) for k in numbers.values() for y in range(rack.ports)}
    for t in range(circuits.slots):
        for i in range(rack.nodes):
            j, u = int(circuits.peers[t, 0, i]), int(circuits.uplinks[t, 0, i])
            if j < 0:
                continue
            x, port = clos.spine_port(u, j // half)
            out[numbers[clos.leaf(0, i // half)], half + u][t] = i
            out[numbers[clos.spine(0, x)], port][t] = i
            out[numbers[clos.leaf(0, j // half)], j % half][t] = i
    return out
