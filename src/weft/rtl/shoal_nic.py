"""Shoal's network interface: per-peer queues, ready flows, the release rule, empty cells, counters (§3.3, §4.2).

A slot is `slot_cycles` cycles of 64 bits on each channel. It begins with four cycles for sending on each channel in
turn, and has four for receiving on each, once their cells are there:

    0         the throttles of the link to this channel's peer are read
    1         who may send (eq. 2), who is old enough (§3.3.3), whose turn it is
    2         the chosen flow's next cell joins the queue of the peer; the head of the queue is read
    3         feedback for the peer (eq. 6); the header; throttles count down and are written back
    4 …       the cell goes out, a word per cycle, header first: the four cycles the paper gives for sending
    receive   five cycles once the last word has come: checksum; feedback into the throttle of the subflow that it is
              about; the cell is delivered, or joins the queue of its destination

What feedback says is corrected by what the schedule tells: by how many turns the far node will have served its queue
when our cell is there. `notes.md` of the fabric derives it; here it is comparisons of places in the epoch. Feedback is
matched to the cell it is about by counting: the latency is fixed, so it is always the cell sent so many turns before.

A *seat* holds a pair: the cells of this node for one other. Host software opens a seat for a pair and adds cells to it;
it gives a seat to another pair when nothing of the old one is under way.

With `failures` (§3.5) a cell that was due and did not come makes its sender failed. It is sent to no more; what waited
for it is discarded, but for our own, which goes to the others, as does what was sent and cannot have been answered; and
every header says who is failed, so that others send nothing there through us.
"""

from types import SimpleNamespace

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.arbiter import beyond, count, first, select
from weft.rtl.parts import Block, place
from weft.rtl.shoal_header import HeaderDecoder, HeaderEncoder, layout_of
from weft.rtl.shoal_port import Receiver, Sender, word_bits
from weft.rtl.shoal_seat import BACKLOG, NODE, SEQ, THROTTLE, Seat
from weft.rtl.voq import step
from weft.schedule.rotation import rounds
from weft.wire.shoal import MOST_FEEDBACK, NODES, NOT_APPLICABLE, NOTHING

SEND = 4  # cycles that a channel takes until its header goes out
RECEIVE = 5  # cycles that a cell takes once its last word has come, the last for what it left behind to show
TAKING = RECEIVE - 1
WORD = 8  # bytes
# What the last cell of a peer was, for the answer: nothing, one we pass on, its own for us, another's for us.
NONE, PASSED, OWN, OTHER = range(4)


def least_delay(slot_cycles: int, latency: int, words: int, channels: int = 1) -> int:
    """Slots that a cell travels beyond the one it is sent in: it is taken in within a slot, when all are there."""
    complete = SEND * channels + words + latency  # the cycle after the one of the last word, from the start of the slot
    return max(0, -(-(complete - (slot_cycles - TAKING * channels)) // slot_cycles))


def receive_phase(slot_cycles: int, delay: int, latency: int, words: int, channels: int = 1) -> int:
    """The phase in which cells are taken in, `delay` slots after the one they were sent in; refused if it cannot be."""
    least = least_delay(slot_cycles, latency, words, channels)
    require(least == delay, "delay", f"{least} slots, what {latency} cycles from node to node take", delay)
    return max(SEND * channels, SEND * channels + words + latency - delay * slot_cycles)


class Nic(Block):
    """Members, those marked [c] for each channel
    me                              the number of this node
    tx_word, tx_valid, tx_first     [c]  what is sent: a word, whether it is one, whether it is the first of a cell
    rx_word, rx_valid, rx_first     [c]  what comes
    command_valid, _open, _seat, _dst, _cells   the host opens a seat for `dst`, or adds cells to it; any cycle after
                                    the one that follows the sending, and counts from the next slot on
    host_dst, _seq, _word           [c]  the word of an own cell that is sent next …
    host_data, host_remainder       [c]  … is this, and the remainder of its payload
    store_write, _at, _data         [c]  a word of a cell on its way is kept, at queue, place, word
    store_from, store_word          [c]  … and read, at the channel it came by, queue, place, word: a cycle later
    sent                            [c]  the header that went out last
    heard, heard_valid              [c]  the header that came in last; whether one came in the last slot
    delivered                       cells for us so far
    corrupt                         cells whose checksum was wrong
    longest                         most cells that a queue has held

    With failures
    down                            this node is: it sends nothing and takes in nothing
    over                            bit k: the pair in seat k has got all its cells, so none is repeated
    failed                          bit k: node k is taken for failed
    refused                         [c]  whether the cell of the last slot was discarded: it goes on to a failed node
    discarded                       cells that were, here or on their way in
    """

    decoder, seat = HeaderDecoder, Seat

    def __init__(self, *, nodes: int, channels: int = 1, delay: int = 0, slot_cycles: int = 20, latency: int = 3,
                 words: int = 8, seats: int = 0, age_interval: int = -1, schedule: str = "auto", values: int = 1,
                 failures: bool = False):  # fmt: skip
        require(2 <= nodes <= NODES, "nodes", f"from 2 to {NODES}", nodes)
        require(words >= 2, "words", "at least 2: a header and payload", words)
        least = SEND * channels + max(words, TAKING * channels)
        require(slot_cycles >= least, "slot_cycles", f"at least {least}", slot_cycles)
        self.nodes, self.channels, self.delay, self.slot_cycles = nodes, channels, delay, slot_cycles
        self.latency, self.words, self.values, self.failures = latency, words, values, failures
        self.seats = seats or nodes
        self.schedule = schedule
        self._rounds = rounds(nodes, channels, delay, schedule)
        self.age_interval = self._rounds.slots if age_interval < 0 else age_interval
        self.phase = receive_phase(slot_cycles, delay, latency, words, channels)
        self._news = nodes if failures else 0
        most = max(self._lags()) if failures else 0
        require(most <= 2, "delay", "so short that failures leave at most 3 cells in doubt", delay)
        bits = 8 * layout_of(values, self._news).size
        b = self._place = (nodes - 1).bit_length()
        c, word = channels, word_bits(words)
        self._index = max((self.seats - 1).bit_length(), 1)
        self._channel = (c - 1).bit_length()
        failing = {
            "down": In(1), "over": In(self.seats), "failed": Out(nodes), "refused": Out(c), "discarded": Out(32),
        }  # fmt: skip
        super().__init__({
            "me": In(NODE),
            "tx_word": Out(64).array(c), "tx_valid": Out(1).array(c), "tx_first": Out(1).array(c),
            "rx_word": In(64).array(c), "rx_valid": In(1).array(c), "rx_first": In(1).array(c),
            "command_valid": In(1), "command_open": In(1), "command_seat": In(self._index), "command_dst": In(NODE),
            "command_cells": In(BACKLOG),
            "host_dst": Out(NODE).array(c), "host_seq": Out(SEQ).array(c), "host_word": Out(word).array(c),
            "host_data": In(64).array(c), "host_remainder": In(8).array(c),
            "store_write": Out(1).array(c), "store_at": Out(2 * b + word).array(c), "store_data": Out(64).array(c),
            "store_from": Out(2 * b + word + self._channel).array(c), "store_word": In(64).array(c),
            "sent": Out(bits).array(c), "heard": Out(bits).array(c), "heard_valid": Out(c),
            "delivered": Out(32), "corrupt": Out(32), "longest": Out(range(nodes + 2)),
        } | (failing if failures else {}))  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        n, s, epoch, b, c = self.nodes, self.seats, self._rounds.slots, self._place, self.channels
        phase = Signal(range(self.slot_cycles))
        ends = Signal()
        m.d.comb += ends.eq(phase == self.slot_cycles - 1)
        m.d.sync += phase.eq(Mux(ends, 0, phase + 1))
        # Which channel sends in this cycle, or is listened to, and how far it is.
        sends = Signal()
        between = Signal()
        sending = [Signal(name=f"sending_{k}") for k in range(SEND)]
        taking = [Signal(name=f"taking_{k}") for k in range(TAKING)]
        since = Signal(range(self.slot_cycles))
        turn_of = Signal(range(max(c, 2)))
        outward = Signal(self._channel)
        inward = Signal(self._channel)
        m.d.comb += [
            sends.eq(phase < SEND * c), between.eq(phase == SEND * c), outward.eq(phase[2:]),
            since.eq(phase - self.phase), turn_of.eq(since[2:]),
            *(flag.eq(sends & (phase[:2] == k)) for k, flag in enumerate(sending)),
            *(flag.eq((phase >= self.phase) & (since < TAKING * c) & (since[:2] == k))
              for k, flag in enumerate(taking)),
        ]  # fmt: skip

        # Where we are in the epoch. The first slot is the last of an epoch, in which nothing is there to be sent yet.
        slot = Signal(range(max(epoch, 2)), init=epoch - 1)
        came = Signal(range(max(epoch, 2)), init=(epoch - 1 - self.delay) % epoch)  # in which this slot's cell was sent
        with m.If(ends):
            m.d.sync += [slot.eq(step(slot, epoch)), came.eq(step(came, epoch))]
        m.d.comb += inward.eq(self._order(m, came, turn_of))
        to, back = self._faces(m, "to", Cat(outward, slot)), self._faces(m, "from", Cat(inward, came))
        peer = Signal(b)
        lit = Signal()
        source = Signal(b)
        expected = Signal()
        ahead = Signal(b + 2)
        behind = Signal(b + 2)
        me = Signal(b)
        alive = ~self.down if self.failures else Const(1)
        m.d.comb += [
            me.eq(self.me),
            ahead.eq(me + to["shift"]), peer.eq(Mux(ahead >= n, ahead - n, ahead)),
            lit.eq((to["shift"] != 0) & (me >= to["first"]) & (me < to["last"]) & alive & ~self._is_failed(peer)),
            behind.eq(me + n - back["shift"]), source.eq(Mux(behind >= n, behind - n, behind)),
            expected.eq((back["shift"] != 0) & (source >= back["first"]) & (source < back["last"]) & alive),
        ]  # fmt: skip

        # What is kept for each peer; sending and receiving write in different phases.
        queue = [Signal(b, name=f"queue_{v}") for v in range(self.values)]  # those that are reported on
        onward = Signal(b)  # where a cell goes on to
        length = Table(m, "length", range(n + 2), n, (peer, *queue, onward, *([source] if self.failures else [])))
        head, tail = Table(m, "head", range(n), n, (peer,)), Table(m, "tail", range(n), n, (peer, onward))
        local, ready = Table(m, "local", 1, n, (peer, source)), Table(m, "ready", range(s + 1), n, tuple(queue))
        turn = Table(m, "turn", s, n, (peer,), init=(1 << s) - 1)
        owed = [Table(m, name, 2 + b, n, (peer,)) for name in ("owed", "told")[: self.values]]  # kind, queue
        dropped = Table(m, "dropped", 1, n, (peer,))
        link = Signal(b)
        here = Signal(range(n + 2))
        m.d.comb += [link.eq(Mux(sends, peer, source)), here.eq(length.read(peer))]
        seats = []
        for k in range(s):
            seat = place(m, f"seat_{k}", self.seat(
                nodes=n, epoch=epoch, age_interval=self.age_interval, failures=self.failures
            ))  # fmt: skip
            m.d.comb += [
                seat.between.eq(between), seat.link.eq(link), seat.length.eq(here),
                seat.command.eq(self.command_valid & (self.command_seat == k) & (phase > SEND * c)),
                seat.open.eq(self.command_open), seat.new_dst.eq(self.command_dst), seat.cells.eq(self.command_cells),
            ]  # fmt: skip
            seats.append(seat)

        # ---------------------------------------------------------------- 1: who may send, and whose turn it is
        may = Signal(s)
        can = Signal(s)
        m.d.comb += [
            may.eq(Cat(seat.may for seat in seats)),
            can.eq(may & Cat(seat.old for seat in seats) & (~local.read(peer)).replicate(s)),
        ]
        pick = Signal(s)
        released = Signal()
        waiting = Signal(range(s + 1))
        index = Signal(self._index)
        with m.If(sending[1]):
            m.d.sync += [
                pick.eq(Mux(lit, first(can, turn.read(peer)), 0)), released.eq(lit & can.any()),
                waiting.eq(count(may) - can.any()),
            ]  # fmt: skip
        m.d.comb += index.eq(encode(pick))

        # ---------------------------------------------------------------- 2: the chosen cell joins the queue
        # Of a cell in a queue: whether it is ours; its seat; the other end of its flow; its number; its remainder;
        # where its payload is kept.
        entry = {"own": 1, "seat": self._index, "node": b, "seq": SEQ, "remainder": 8, "at": b, "by": self._channel}
        queues = m.submodules.queues = Memory(shape=sum(entry.values()), depth=n << b, init=[])
        join = queues.write_port()
        look = queues.read_port(transparent_for=(join,))
        m.d.comb += look.addr.eq(Cat(head.read(peer), peer))
        m.d.comb += [seat.take.eq(sending[2] & pick[k]) for k, seat in enumerate(seats)]
        dst, seq = (select(pick, [getattr(seat, name) for seat in seats]) for name in ("dst", "seq"))
        with m.If(sending[2] & released):
            m.d.comb += [
                join.addr.eq(Cat(tail.read(peer), peer)), join.en.eq(1),
                join.data.eq(Cat(Const(1, 1), index, dst[:b], seq)),
            ]  # fmt: skip

        # ---------------------------------------------------------------- 3: header, and what is left behind
        top = fields(look.data, entry)
        held = Signal(range(n + 2))
        goes = Signal()
        own = Signal()
        direct = Signal()
        m.d.comb += [
            held.eq(here + released), goes.eq(lit & (held != 0)), own.eq(goes & top["own"]),
            direct.eq(own & (top["node"] == peer)),
        ]  # fmt: skip
        report = self._report(m, peer, queue, to["self"], sending[3], owed, length, ready)
        encoder = m.submodules.encoder = HeaderEncoder(WORD * self.words, self.values, self._news)
        ours_is = Array(self.host_remainder)[outward] if c > 1 else self.host_remainder[0]
        m.d.comb += [
            encoder.dst.eq(Mux(goes, Mux(top["own"], top["node"], peer), self.me)),
            encoder.src.eq(Mux(goes & ~top["own"], top["node"], self.me)),
            encoder.seq.eq(Mux(goes, top["seq"], 0)),
            *(field.eq(value) for field, value in zip(self._feedbacks(encoder), report, strict=True)),
            encoder.dropped.eq(dropped.read(peer)),
            encoder.remainder.eq(Mux(goes, Mux(top["own"], ours_is, top["remainder"]), 0)),
        ]
        # The last cells sent to each peer, newest first: whether it was ours and is passed on, its seat, its node;
        # with failures, whether it was ours at all, and its number.
        record = {"there": 1, "seat": self._index, "node": b}
        newest = [own & ~direct, top["seat"], top["node"]]
        if self.failures:
            record |= {"own": 1, "seq": SEQ}
            newest += [own, top["seq"]]
        size = sum(record.values())
        records = Table(m, "records", self._records * size, n, (peer, source))
        with m.If(sending[3] & lit):
            length.write(m, peer, held - goes)
            tail.write(m, peer, Mux(released, step(tail.read(peer), n), tail.read(peer)))
            head.write(m, peer, Mux(goes, step(head.read(peer), n), head.read(peer)))
            local.write(m, peer, (local.read(peer) | released) & ~own)
            ready.write(m, peer, waiting)
            turn.write(m, peer, Mux(released, beyond(pick), turn.read(peer)))
            for newer, older in zip([None, *owed], owed, strict=False):
                older.write(m, peer, NONE if newer is None else newer.read(peer))
            dropped.write(m, peer, 0)
            records.write(m, peer, Cat(*newest, records.read(peer)[: (self._records - 1) * size]))
            with m.If(held > self.longest):
                m.d.sync += self.longest.eq(held)
        for k, seat in enumerate(seats):
            m.d.comb += [
                seat.visit.eq(sending[3] & lit), seat.away.eq(pick[k]), seat.free.eq(direct & (top["seat"] == k)),
            ]  # fmt: skip
        for k in range(c):
            sender = place(m, f"sender_{k}", Sender(
                words=self.words, values=self.values, news=self._news, places=2 * b + self._channel
            ))  # fmt: skip
            m.d.comb += [
                sender.start.eq(sending[3] & (outward == k if c > 1 else 1)), sender.lit.eq(lit), sender.goes.eq(goes),
                sender.own.eq(own), sender.header.eq(encoder.header), sender.dst.eq(top["node"]),
                sender.seq.eq(top["seq"]), sender.stored.eq(Cat(top["at"], peer, top["by"])),
                sender.host_data.eq(self.host_data[k]), sender.store_word.eq(self.store_word[k]),
                *(getattr(self, name)[k].eq(getattr(sender, name)) for name in
                  ("tx_word", "tx_valid", "tx_first", "host_dst", "host_seq", "host_word", "store_from", "sent")),
            ]  # fmt: skip
        # For the link whose two directions share a slot: our cell that waits for it, and the one that left on it now.
        mine = Signal()
        mine_seat = Signal(self._index)
        held_seat = Signal(self._index)
        with m.If(sending[3] & to["self"]):
            m.d.sync += [mine.eq(own), mine_seat.eq(top["seat"])]
            with m.If(released):
                m.d.sync += held_seat.eq(index)

        # ---------------------------------------------------------------- receiving
        got = m.submodules.decoder = self.decoder(WORD * self.words, self.values, self._news)
        passes = Signal()
        stays = Signal()
        receivers, kept = [], []
        for k in range(c):
            receiver = place(m, f"receiver_{k}", Receiver(
                words=self.words, values=self.values, news=self._news, nodes=n
            ))  # fmt: skip
            chosen = inward == k if c > 1 else Const(1)
            kept.append(Table(m, f"kept_{k}", range(n), n, (receiver.coming,)))  # places in the store
            m.d.comb += [
                receiver.me.eq(self.me), receiver.rx_word.eq(self.rx_word[k]), receiver.rx_valid.eq(self.rx_valid[k]),
                receiver.rx_first.eq(self.rx_first[k]), receiver.place.eq(kept[k].read(receiver.coming)),
                receiver.passes.eq(passes & chosen), receiver.first.eq(taking[0] & chosen),
                receiver.expected.eq(expected), receiver.busy.eq(Cat(taking[:-1]).any() & chosen),
                receiver.done.eq(taking[-1] & chosen),
                *(getattr(self, name)[k].eq(getattr(receiver, name))
                  for name in ("store_write", "store_at", "store_data", "heard", "heard_valid")),
            ]  # fmt: skip
            receivers.append(receiver)

        def of_inward(name):
            values = [getattr(receiver, name) for receiver in receivers]
            return values[0] if c == 1 else Array(values)[inward]

        pending, header, remainder, at = (Signal.like(getattr(receivers[0], name), name=name) for name in
                                          ("pending", "header", "remainder", "at"))  # fmt: skip
        m.d.comb += [signal.eq(of_inward(signal.name)) for signal in (pending, header, remainder, at)]
        m.d.comb += [got.header.eq(header), got.remainder.eq(remainder)]
        kinds = [fields(records.read(source)[k * size : (k + 1) * size], record) for k in range(self._records)]
        past = {name: Array([one[name] for one in kinds]) for name in record}
        hearing = []
        good = Signal()
        repeated = back["self"] & ~past["there"][back["lag"]] if self.values == 1 else Const(0)
        for v, feedback in enumerate(self._feedbacks(got)):
            about = {name: Signal(width, name=f"about_{name}_{v}") for name, width in record.items()}
            m.d.comb += [signal.eq(past[name][back["lag"] + (repeated if v == 0 else v)])
                         for name, signal in about.items()]  # fmt: skip
            chased = back["self"] & mine & (mine_seat == about["seat"])
            early = back["self"] & local.read(source) & (held_seat == about["seat"])  # it is about an earlier cell
            value = self._throttle(m, v, back, source, about["node"], feedback, chased)
            hear, target, setting = (Signal(name=f"hear_{v}"), Signal(self._index, name=f"target_{v}"),
                                     Signal(THROTTLE, name=f"setting_{v}"))  # fmt: skip
            with m.If(taking[0]):
                m.d.sync += [
                    hear.eq(pending & expected & about["there"] & (feedback <= MOST_FEEDBACK) & ~early),
                    target.eq(about["seat"]), setting.eq(value),
                ]  # fmt: skip
            hearing.append((taking[2 - v] & hear, target, setting))  # older values first
        with m.If(taking[0]):
            m.d.sync += good.eq(pending & expected)
        for k, seat in enumerate(seats):
            m.d.comb += [
                seat.hear.eq(Cat(hear & (target == k) for hear, target, _ in hearing).any()),
                seat.throttle.eq(Mux(taking[1], hearing[-1][2], hearing[0][2])),
                seat.again.eq(taking[1] & ~back["self"]),
            ]  # fmt: skip
        now = Signal(range(n + 2))
        m.d.comb += [
            passes.eq(got.intact & ~got.empty & (got.dst != self.me) & ~self._is_failed(onward)),
            stays.eq(got.intact & ~got.empty & (got.dst == self.me)),
            onward.eq(got.dst), now.eq(length.read(onward) + 1),
        ]  # fmt: skip
        with m.If(taking[3] & good):
            with m.If(passes):
                m.d.comb += [
                    join.addr.eq(Cat(tail.read(onward), onward)), join.en.eq(1),
                    join.data.eq(Cat(Const(0, 1 + self._index), got.src[:b], got.seq, remainder, at, inward)),
                ]  # fmt: skip
                length.write(m, onward, now)
                tail.write(m, onward, step(tail.read(onward), n))
                for k in range(c):
                    with m.If(inward == k if c > 1 else 1):
                        kept[k].write(m, onward, step(at, n))
                with m.If(now > self.longest):
                    m.d.sync += self.longest.eq(now)
            with m.If(stays):
                m.d.sync += self.delivered.eq(self.delivered + 1)
            with m.If(~got.intact):
                m.d.sync += self.corrupt.eq(self.corrupt + 1)
                dropped.write(m, source, 1)
            kind = Mux(passes, PASSED, Mux(stays, Mux(got.src[:b] == source, OWN, OTHER), NONE))
            owed[0].write(m, source, Cat(kind[:2], onward))
        if self.failures:
            waits = Table(m, "waits", self._index + SEQ, n, (source,))  # our cell that waits for a peer
            with m.If(sending[2] & released):
                waits.write(m, peer, Cat(index, seq))
            tables = {"length": length, "head": head, "tail": tail, "ready": ready, "local": local}
            self._fail(m, SimpleNamespace(
                ends=ends, taking=taking, inward=inward, peer=peer, source=source, expected=expected, pending=pending,
                good=good, onward=onward, got=got, encoder=encoder, seats=seats, past=past, back=back, waits=waits,
                owed=owed, tables=tables,
            ))  # fmt: skip
        return m

    # ------------------------------------------------------------------ failures (§3.5)

    def _is_failed(self, node):
        """Whether a node is taken for failed."""
        return self.failed.bit_select(node, 1) if self.failures else Const(0)

    def _fail(self, m, at):
        """Whoever is not heard when he should be is failed; and who has told us that he cannot reach whom."""
        n, source, taking, got = self.nodes, at.source, at.taking, at.got
        passed = Signal(range(self.delay + 1))  # slots since the start: nothing can come before cells have travelled
        with m.If(at.ends & (passed != self.delay)):
            m.d.sync += passed.eq(passed + 1)
        silent = Signal()
        m.d.comb += [
            silent.eq(at.expected & ~at.pending & ~self._is_failed(source) & (passed == self.delay)),
            at.encoder.failed.eq(self.failed),
        ]
        parted = Table(m, "parted", n, n, (at.peer,))
        discards = Signal()
        m.d.comb += discards.eq(got.intact & ~got.empty & (got.dst != self.me) & self._is_failed(at.onward))
        chosen = [at.inward == k if self.channels > 1 else Const(1) for k in range(self.channels)]
        for k in range(self.channels):
            with m.If(taking[3] & chosen[k]):
                m.d.sync += self.refused[k].eq(at.good & discards)
        lost = Signal(range(n + 2))
        with m.If(taking[3]):
            with m.If(at.good):
                parted.write(m, source, got.failed)
                m.d.comb += lost.eq(discards)
            with m.If(silent):
                length, local = at.tables["length"], at.tables["local"]
                m.d.comb += lost.eq(length.read(source) - local.read(source))
                for name in ("length", "head", "tail", "ready", "local"):
                    at.tables[name].write(m, source, 0)
                for table in at.owed:
                    table.write(m, source, NONE)
                m.d.sync += self.failed.bit_select(source, 1).eq(1)
            m.d.sync += self.discarded.eq(self.discarded + lost)
        # What is repeated, oldest first: what was sent and cannot have been answered, then our cell that waits.
        repeat = Signal()
        seat_of = Signal(self._index)
        number = Signal(SEQ)
        waiting = fields(at.waits.read(source), {"seat": self._index, "seq": SEQ})
        for k, flag in enumerate(taking):
            with m.If(flag & silent):
                with m.If(at.back["lag"] >= k):
                    which = (at.back["lag"] - k)[: len(at.back["lag"])]
                    m.d.comb += [
                        seat_of.eq(at.past["seat"][which]), number.eq(at.past["seq"][which]),
                        repeat.eq(at.past["own"][which] & ~self.over.bit_select(seat_of, 1)),
                    ]  # fmt: skip
                with m.Elif(at.back["lag"] + 1 == k):
                    m.d.comb += [
                        seat_of.eq(waiting["seat"]), number.eq(waiting["seq"]),
                        repeat.eq(at.tables["local"].read(source)),
                    ]  # fmt: skip
        for k, seat in enumerate(at.seats):
            m.d.comb += [
                seat.parted.eq(parted.read(at.peer).bit_select(seat.dst[: self._place], 1)),
                seat.repeat.eq(repeat & (seat_of == k)), seat.repeat_seq.eq(number),
            ]  # fmt: skip

    # ------------------------------------------------------------------ parts

    def _feedbacks(self, header):
        """The feedback of a header, the newest value first."""
        return [getattr(header, name) for name in ("feedback", "older")[: self.values]]

    def _order(self, m, came, turn_of):
        """The channel that is taken in next: a link that is its own mirror first, then all in their order."""
        c, r = self.channels, self._rounds
        shared = [p for p, q in enumerate(r.mirror()) if self.delay == 0 and q == p]
        if c == 1 or not shared:
            return turn_of
        rows = []
        for slot in range(r.slots):
            own = [p % c for p in shared if p // c == slot]
            row = [*own, *(k for k in range(c) if k not in own)]
            rows += row + [0] * ((1 << self._channel) - c)
        return rom(m, "order", range(c), rows, Cat(turn_of[: self._channel], came))

    def _faces(self, m, name, place):
        """What the schedule says of a place: how far everybody sends, who does; for a cell that came, what follows."""
        r, epoch, d, c = self._rounds, self._rounds.slots, self.delay, self.channels
        mirror = r.mirror()
        back = [max(int(q), 0) for q in mirror]  # where we send to whoever sends to us in place p
        known, wide = range(len(back)), range(self.nodes + 1)
        rows = {
            "shift": (wide, r.shift), "first": (wide, r.first), "last": (wide, r.last),
            "self": (1, [int(d == 0 and mirror[p] == p) for p in known]),
        }  # fmt: skip
        if name == "from":
            # Turns that the far node has served when our next cell arrives, but for what depends on the cell; with
            # q the slot of our turn, rest and whole such that -q - delay = rest - whole * epoch.
            s, q = [p // c for p in known], [p // c for p in back]
            late = [2 + (s[p] + d - q[p]) // epoch - (-q[p] - d) // epoch for p in known]
            rows |= {
                "place": (range(len(back) + 1), known), "late": (range(max(late) + 1), late),
                "rest": (range(epoch + 1), [(-q[p] - d) % epoch for p in known]),
                "lag": (range(self._records + 1), [self._lag(s[p], q[p]) if mirror[p] >= 0 else 0 for p in known]),
            }  # fmt: skip
        spread = [p // c << self._channel | p % c for p in known]  # where its row is
        out = {}
        for key, (shape, values) in rows.items():
            padded = [0] * (epoch << self._channel)
            for p, value in zip(spread, values, strict=True):
                padded[p] = int(value)
            out[key] = rom(m, f"{name}_{key}", shape, padded, place)
        return out

    def _lag(self, p, q):
        """How many cells have gone to a peer, in slot q, since the one that its cell, sent in slot p, answers."""
        epoch, now = self._rounds.slots, p + self.delay
        return (now - q) // epoch - (now - 2 * self.delay - 1 - q) // epoch

    def _lags(self):
        """Those of all places."""
        c = self.channels
        return [self._lag(p // c, int(q) // c) for p, q in enumerate(self._rounds.mirror()) if q >= 0]

    @property
    def _records(self):
        """Cells to remember for each peer: one more for a second value, or where an answer may be repeated."""
        repeated = self.delay == 0 and any(q == p for p, q in enumerate(self._rounds.mirror()))
        return max(self._lags()) + 1 + int(self.values > 1 or repeated)

    def _report(self, m, peer, queue, shared, now, owed, length, ready):
        """What the cell to `peer` says of the last ones from it: eq. (6), or a code, the newest first."""
        said = []
        for v, table in enumerate(owed):
            kind, last = Signal(2, name=f"kind_{v}"), table.read(peer)
            m.d.comb += [kind.eq(last[:2]), queue[v].eq(last[2:])]
            if self.values == 1:
                # where both directions share a slot it is repeated once
                told = Signal()
                told_to = Signal(self._place)
                with m.If(shared & now):
                    m.d.sync += [told.eq(last[:2] == PASSED), told_to.eq(last[2:])]
                with m.If(shared & told & (last[:2] != PASSED)):
                    m.d.comb += [kind.eq(PASSED), queue[v].eq(told_to)]
            many, value = (
                Signal(range(self.nodes + self.seats + 2), name=f"many_{v}"),
                Signal(THROTTLE, name=f"say_{v}"),
            )
            m.d.comb += many.eq(length.read(queue[v]) + ready.read(queue[v]))
            with m.Switch(kind):
                with m.Case(NONE):
                    m.d.comb += value.eq(NOTHING)
                with m.Case(PASSED):
                    m.d.comb += value.eq(Mux(many > MOST_FEEDBACK, MOST_FEEDBACK, many))
                with m.Case(OWN):
                    m.d.comb += value.eq(0)
                with m.Case(OTHER):
                    m.d.comb += value.eq(NOT_APPLICABLE)
            said.append(value)
        return said

    def _throttle(self, m, v, back, source, node, feedback, chased):
        """The throttle that a feedback means for the subflow through `source` to `node`."""
        n, epoch, c = self.nodes, self._rounds.slots, self.channels
        apart, diff = Signal(self._place + 2, name=f"apart_{v}"), Signal(self._place, name=f"diff_{v}")
        at = Signal(range(2 * n), name=f"far_{v}")
        upper = source >= self._rounds.half
        places = [max(int(p), 0) for half in self._rounds.place for p in half]
        m.d.comb += [
            apart.eq(node + n - source), diff.eq(Mux(apart >= n, apart - n, apart)), at.eq(Mux(upper, diff + n, diff)),
        ]  # fmt: skip
        # the place in which the far node serves the cell, and its slot
        turn = rom(m, f"turn_of_{v}", range(epoch * c + 1), places, at)
        slot = turn if c == 1 else rom(m, f"slot_of_{v}", range(epoch + 1), [p // c for p in places], at)
        until, sum_ = Signal(range(2 * epoch + 1), name=f"until_{v}"), Signal(THROTTLE + 2, name=f"sum_{v}")
        out = Signal(THROTTLE, name=f"throttle_{v}")
        m.d.comb += [
            until.eq(slot + back["rest"]),
            sum_.eq(feedback + (turn < back["place"]) + (until != 0) + (until > epoch) + chased),
            out.eq(Mux(sum_ > back["late"], sum_ - back["late"], 0)),
        ]  # fmt: skip
        return out


class Table:
    """A small memory with one entry per node: read without a clock at the addresses named, written in one place."""

    def __init__(self, m, name, shape, depth, at, init=0):
        memory = m.submodules[name] = Memory(shape=shape, depth=depth, init=[init] * depth)
        self.port, self.reads = memory.write_port(), {}
        for address in at:
            read = memory.read_port(domain="comb")
            m.d.comb += read.addr.eq(address)
            self.reads[id(address)] = read.data

    def read(self, address):
        """The entry at one of the addresses."""
        return self.reads[id(address)]

    def write(self, m, address, value):
        """Change an entry at the next edge, if the conditions around this hold."""
        m.d.comb += [self.port.addr.eq(address), self.port.data.eq(value), self.port.en.eq(1)]


def rom(m, name, shape, values, at):
    """The entry `at` of a table that does not change."""
    memory = m.submodules[name] = Memory(shape=shape, depth=len(values), init=values)
    port = memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(at)
    return port.data


def fields(value, widths):
    """`value` taken apart: name -> so many bits, lowest first."""
    out, at = {}, 0
    for name, width in widths.items():
        out[name] = value[at : at + width]
        at += width
    return out


def encode(chosen):
    """The number of the bit that is set in one-hot `chosen`."""
    width = max((len(chosen) - 1).bit_length(), 1)
    return Cat(Cat(chosen[k] for k in range(len(chosen)) if k >> bit & 1).any() for bit in range(width))
