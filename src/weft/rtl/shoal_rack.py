"""A rack in gates: NICs, the circuit switches of its Clos, and links with delay; a host that makes up payload.

`latency` cycles lie between a word's appearance at a NIC and its appearance at another: three switches of one cycle
each and the four links of the path. Every channel has a plane of switches of its own. Commands of a slot are given to a
NIC one after another in the last cycles of the slot before; `sent` and `heard` change once per slot. Cycle 0 is the
first of a slot before the first, in which all send empty cells.

With `failures` nodes, links, uplinks and switches can be broken, from the slot on whose cells they would carry: nodes
and their upward links while an input says so, outputs of switches where they take up the circuits of a slot.
"""

from functools import cached_property

import numpy as np
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.crc import linear, parity, raw
from weft.rtl.parts import Block, place
from weft.rtl.shoal_header import layout_of
from weft.rtl.shoal_nic import SEND, TAKING, WORD, Nic
from weft.rtl.shoal_seat import BACKLOG, NODE, SEQ
from weft.rtl.shoal_switch import FIRST, LINK, VALID, CircuitSwitch
from weft.rtl.voq import step
from weft.schedule.decompose import decompose
from weft.schedule.rotation import rounds
from weft.topology.circuit import CircuitClos
from weft.wire.shoal import CRC

SWITCHES = 3  # on every path


def default_cycles(delay: int, words: int, channels: int = 1) -> int:
    """Cycles of a slot: the prototype's 1 of guard, 3 of overhead and a word each; more where cells arrive at once."""
    sends, takes = SEND * channels, TAKING * channels
    return sends + max(words, takes) if delay else sends + words + SWITCHES + takes + 1


def default_latency(delay: int, slot_cycles: int, words: int, channels: int = 1) -> int:
    """The longest path that a cell travels in `delay` slots."""
    return (delay + 1) * slot_cycles - (SEND + TAKING) * channels - 1 - words


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
            write, read = store.write_port(), store.read_port(domain="comb")
            at = Signal(range(self.cycles))
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

    def __init__(self, words: int = 8, rest: int = 0):
        """`rest`: bytes of the first of these words that are the header's."""
        self.words, self.rest = words, rest
        super().__init__({
            "src": In(NODE), "dst": In(NODE), "seq": In(SEQ), "word": In(range(max(words - 1, 2))), "data": Out(64),
            "remainder": Out(8),
        })  # fmt: skip

    def payload(self, name: int) -> bytes:
        """The payload of the cell whose source, destination and number stand in the bits of `name`."""
        size = 2 * NODE + SEQ
        return b"".join((name | k << size).to_bytes(8, "little") for k in range(self.words - 1))[self.rest :]

    def elaborate(self, platform):
        m = Module()
        name = Cat(self.src, self.dst, self.seq)
        start = raw(CRC, 0, self.payload(0))
        masks = linear(lambda bits: raw(CRC, 0, self.payload(bits)) ^ start, len(name), CRC.width)
        m.d.comb += [self.data.eq(Cat(name, self.word)), self.remainder.eq(parity(masks, name) ^ Const(start, 8))]
        return m


COUNTERS = ("sent", "heard", "heard_valid", "delivered", "corrupt", "longest")  # of a NIC, that a rack shows
FAILING = ("failed", "refused", "discarded")  # … where something can fail


class Station(Block):
    """A NIC with its hosts and stores, one for each channel, and the commands of a slot one after another.

    Members: as the rack's, and `me`; `incoming`, `outgoing` [c], the channels.
    """

    nic = Nic

    def __init__(self, *, lanes: int, **options):
        self._nic = self.nic(**options)
        for name, value in options.items():
            setattr(self, name, value)
        self.lanes = lanes
        nic, seats, c = self._nic, self._nic.seats, self._nic.channels
        self._command = 2 + nic._index + NODE + BACKLOG
        self._until = c.bit_length()  # bits that say from which of a slot's turns on a pair is over
        shown = COUNTERS + (FAILING if nic.failures else ())
        failing = {"down": In(1), "unplugged": In(c), "ends": In(self._until).array(seats)} if nic.failures else {}
        super().__init__({
            "me": In(NODE), "commands": In(self._command).array(lanes), "incoming": In(LINK).array(c),
            "outgoing": Out(LINK).array(c), **{name: nic.signature.members[name] for name in shown},
        } | failing)  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        nic, c = self._nic, self._nic.channels
        m.submodules.nic = nic
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
            nic.me.eq(self.me),
        ]
        for name in COUNTERS + (FAILING if nic.failures else ()):
            mine, its = getattr(self, name), getattr(nic, name)
            m.d.comb += [a.eq(b) for a, b in zip(mine, its, strict=True)] if name in ("sent", "heard") else mine.eq(its)
        stores = []
        for k in range(c):
            store = m.submodules[f"store_{k}"] = Memory(shape=64, depth=1 << len(nic.store_at[k]), init=[])
            write = store.write_port()
            stores.append([store.read_port() for _ in range(c)])
            m.d.comb += [
                write.addr.eq(nic.store_at[k]), write.data.eq(nic.store_data[k]), write.en.eq(nic.store_write[k]),
            ]  # fmt: skip
        for k in range(c):
            host = place(m, f"host_{k}", Host(self.words, len(nic.sent[k]) // 8 - WORD))
            plugged = ~self.unplugged[k] if nic.failures else Const(1)
            m.d.comb += [
                nic.rx_word[k].eq(self.incoming[k][:64]), nic.rx_valid[k].eq(self.incoming[k][VALID]),
                nic.rx_first[k].eq(self.incoming[k][FIRST]),
                self.outgoing[k].eq(Mux(plugged, Cat(nic.tx_word[k], nic.tx_valid[k], nic.tx_first[k]), 0)),
                host.src.eq(self.me), host.dst.eq(nic.host_dst[k]), host.seq.eq(nic.host_seq[k]),
                host.word.eq(nic.host_word[k]), nic.host_data[k].eq(host.data),
                nic.host_remainder[k].eq(host.remainder),
            ]  # fmt: skip
            reads, size = [ports[k] for ports in stores], len(nic.store_at[k])
            bank = Signal(nic._channel, name=f"bank_{k}")
            m.d.comb += [read.addr.eq(nic.store_from[k][:size]) for read in reads]
            m.d.sync += bank.eq(nic.store_from[k][size:])
            m.d.comb += nic.store_word[k].eq(reads[0].data if c == 1 else Array(read.data for read in reads)[bank])
        if nic.failures:
            m.d.comb += nic.down.eq(self.down)
            over = Signal(nic.seats)
            turn = Signal(range(self.slot_cycles))
            m.d.comb += turn.eq(Mux(phase < nic.phase, 0, phase - nic.phase))
            for k, ends in enumerate(self.ends):  # 1 is from the first turn on in which this slot's cells are taken in
                with m.If(ends.any() & (phase == self.slot_cycles - 1)):
                    m.d.sync += over[k].eq(1)
                m.d.comb += nic.over[k].eq(over[k] | ends.any() & ((turn >> 2) + 1 >= ends))
                opened = nic.command_valid & nic.command_open & (nic.command_seat == k)
                with m.If(opened):
                    m.d.sync += over[k].eq(0)
        return m


class Rack(Block):
    """Members
    commands    [i][k]  the k-th command of the next slot for node i: valid, open, seat, destination, cells
    sent        [i][c]  the header that node i sent on channel c in this slot
    heard, heard_valid   [i][c]  the header that came to node i in this slot, and whether one did
    passed      [switch, output]  the header that went through last
    delivered, corrupt, longest   [i]  the counters of each NIC

    With failures
    down        [i]  whether node i is down in this slot
    unplugged   [i]  bit c: what node i sends on channel c in this slot is lost on its first link
    broken      [switch]  bit y: output y gives nothing, where and when it takes up the circuits of a slot
    ends        [i][k]  the pair in seat k of node i is over, from the so manieth turn of this slot on, counted from 1
    failed, refused, discarded   [i]  as the NIC's
    """

    station = Station

    def __init__(self, *, nodes: int, ports: int, channels: int = 1, delay: int = 0, slot_cycles: int | None = None,
                 latency: int | None = None, words: int = 8, seats: int | None = None, age_interval: int = -1,
                 schedule: str = "auto", values: int = 1, failures: bool = False,
                 lanes: int | None = None):  # fmt: skip
        self.nodes, self.ports, self.channels, self.delay, self.words = nodes, ports, channels, delay, words
        self.schedule, self.age_interval, self.values, self.failures = schedule, age_interval, values, failures
        self.slot_cycles = slot_cycles or default_cycles(delay, words, channels)
        self.latency = default_latency(delay, self.slot_cycles, words, channels) if latency is None else latency
        self.seats = seats or 3 * nodes
        room = self.slot_cycles - SEND * channels - 1
        self.lanes = min(nodes - 1, room) if lanes is None else lanes
        require(self.latency >= SWITCHES, "latency", f"at least {SWITCHES} cycles, one for each switch", self.latency)
        require(1 <= self.lanes <= room, "lanes", f"from 1 to {room}, the cycles left in a slot", self.lanes)
        self.clos = CircuitClos(nodes=nodes, ports=ports, planes=channels)
        self.rounds = rounds(nodes, channels, delay, schedule)
        self.circuits = decompose(self.clos, self.rounds)
        self.layout = layout_of(values, nodes if failures else 0)
        wires = self.latency - SWITCHES
        self.hops = [wires // 4 + (k < wires % 4) for k in range(4)]  # cycles of the four links of a path
        one, bits = self._station(), 8 * self.layout.size
        switches = len(self.clos.names)
        failing = {
            "down": In(1).array(nodes), "unplugged": In(channels).array(nodes), "broken": In(ports).array(switches),
            "ends": In(one._until).array(nodes, self.seats), "failed": Out(nodes).array(nodes),
            "refused": Out(channels).array(nodes), "discarded": Out(32).array(nodes),
        }  # fmt: skip
        super().__init__({
            "commands": In(one._command).array(nodes, self.lanes),
            "sent": Out(bits).array(nodes, channels), "heard": Out(bits).array(nodes, channels),
            "heard_valid": Out(channels).array(nodes),
            "passed": Out(bits).array(switches, ports), "delivered": Out(32).array(nodes),
            "corrupt": Out(32).array(nodes), "longest": Out(range(nodes + 2)).array(nodes),
        } | (failing if failures else {}))  # fmt: skip

    def _station(self) -> Station:
        return self.station(
            nodes=self.nodes, channels=self.channels, delay=self.delay, slot_cycles=self.slot_cycles,
            latency=self.latency, words=self.words, seats=self.seats, age_interval=self.age_interval,
            schedule=self.schedule, values=self.values, failures=self.failures, lanes=self.lanes,
        )  # fmt: skip

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
            station = place(m, f"node_{i}", self._station())
            stations.append(station)
            shown = ("heard_valid", "delivered", "corrupt", "longest") + (FAILING if self.failures else ())
            m.d.comb += [
                station.me.eq(i), *(getattr(self, name)[i].eq(getattr(station, name)) for name in shown),
                *(getattr(self, name)[i][c].eq(getattr(station, name)[c])
                  for name in ("sent", "heard") for c in range(self.channels)),
                *(station.commands[k].eq(self.commands[i][k]) for k in range(self.lanes)),
            ]  # fmt: skip
            if self.failures:
                m.d.comb += [
                    station.down.eq(self.down[i]), station.unplugged.eq(self.unplugged[i]),
                    *(station.ends[k].eq(self.ends[i][k]) for k in range(self.seats)),
                ]  # fmt: skip
        switches = {}
        more = 8 * (self.layout.size - WORD)
        for number, name in enumerate(clos.names):
            switch = m.submodules[name.replace(".", "_")] = switches[name] = CircuitSwitch(
                self.circuits.selectors(name), slot_cycles=self.slot_cycles, offsets=self.offsets_of(name), name=name,
                failures=self.failures,
            )  # fmt: skip
            if self.failures:
                m.d.comb += switch.broken.eq(self.broken[number])
            for y in range(self.ports):
                link, passed = switch.links_out[y], self.passed[number][y]
                begins = link[VALID] & link[FIRST]
                if not more:
                    with m.If(begins):
                        m.d.sync += passed.eq(link[:64])
                    continue
                second, word = Signal(name=f"second_{number}_{y}"), Signal(64, name=f"word_{number}_{y}")
                m.d.sync += second.eq(begins)
                with m.If(begins):
                    m.d.sync += word.eq(link[:64])
                with m.If(second):
                    m.d.sync += passed.eq(Cat(word, link[:more]))

        def wire(name, cycles, begin, end):
            line = place(m, name, Delay(cycles))
            m.d.comb += [line.incoming.eq(begin), end.eq(line.outgoing)]

        to_leaf, to_spine, from_spine, from_leaf = self.hops
        for plane in range(self.channels):
            of = f"{plane}_" if self.channels > 1 else ""
            for i, station in enumerate(stations):
                leaf = switches[clos.leaf(plane, i // half)]
                wire(f"up_{of}{i}", to_leaf, station.outgoing[plane], leaf.links_in[i % half])
                wire(f"down_{of}{i}", from_leaf, leaf.links_out[i % half], station.incoming[plane])
            for a in range(clos.leaves):
                leaf = switches[clos.leaf(plane, a)]
                for u in range(half):
                    x, port = clos.spine_port(u, a)
                    spine = switches[clos.spine(plane, x)]
                    wire(f"uplink_{of}{a}_{u}", to_spine, leaf.links_out[half + u], spine.links_in[port])
                    wire(f"downlink_{of}{a}_{u}", from_spine, spine.links_out[port], leaf.links_in[half + u])
        return m


def through(rack: Rack) -> dict[tuple[int, int], np.ndarray]:
    """(number of a switch, output) -> (slots,) the node whose cell goes through it in each slot of an epoch, or -1."""
    clos, circuits, half = rack.clos, rack.circuits, rack.clos.half
    numbers = {name: k for k, name in enumerate(clos.names)}
    out = {(k, y): np.full(circuits.slots, -1) for k in numbers.values() for y in range(rack.ports)}
    for t, plane, i in np.ndindex(circuits.slots, rack.channels, rack.nodes):
        j, u = int(circuits.peers[t, plane, i]), int(circuits.uplinks[t, plane, i])
        if j < 0:
            continue
        x, port = clos.spine_port(u, j // half)
        out[numbers[clos.leaf(plane, i // half)], half + u][t] = i
        out[numbers[clos.spine(plane, x)], port][t] = i
        out[numbers[clos.leaf(plane, j // half)], j % half][t] = i
    return out
