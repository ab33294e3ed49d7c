"""Shoal's network interface: per-peer queues, ready flows, the release rule, empty cells, counters (§3.3, §4.2).

One channel. A slot is `slot_cycles` cycles of 64 bits; the phase of a slot decides what happens:

    0         the throttles of the link to this slot's peer are read
    1         who may send (eq. 2), who is old enough (§3.3.3), whose turn it is
    2         the chosen flow's next cell joins the queue of the peer; the head of the queue is read
    3         feedback for the peer (eq. 6); the header; throttles count down and are written back
    4 …       the cell goes out, a word per cycle, header first: the four cycles the paper gives for sending
    receive   five cycles once the last word has come: checksum; feedback into the throttle of the subflow that it is
              about; the cell is delivered, or joins the queue of its destination

A throttle is the number of cells that must wait here before another cell of the subflow may join them. It is set by
feedback and counts down at each visit of the link, once an epoch; all ones is "nothing heard yet". What feedback says
is corrected by what the schedule tells: by how many turns the far node will have served its queue when our cell is
there. `notes.md` of the fabric derives it; here it is comparisons of places in the epoch.

A *seat* holds a pair: the cells of this node for one other. Host software opens a seat for a pair and adds cells to it;
it gives a seat to another pair when nothing of the old one is under way. Feedback is matched to the cell it is about by
counting: the latency is fixed, so it is always the cell sent so many turns before.
"""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.arbiter import beyond, count, first, select
from weft.rtl.parts import Block, place
from weft.rtl.shoal_header import HeaderDecoder, HeaderEncoder, next_remainder
from weft.rtl.voq import step
from weft.schedule.rotation import rounds
from weft.wire.shoal import HEADER, MOST_FEEDBACK, NODES, NOT_APPLICABLE, NOTHING

SEND = 4  # phase in which the header goes out
RECEIVE = 5  # cycles that a cell takes once its last word has come, the last for what it left behind to show
TAKING = RECEIVE - 1
WORD = 8  # bytes
BACKLOG = 24  # bits of the cells that a seat may have left to send
NODE, SEQ = dict(HEADER.fields)["dst"], dict(HEADER.fields)["seq"]
THROTTLE = dict(HEADER.fields)["feedback"]
AWAY = (1 << THROTTLE) - 1
# What the last cell of a peer was, for the answer: nothing, one we pass on, its own for us, another's for us.
NONE, PASSED, OWN, OTHER = range(4)


def least_delay(slot_cycles: int, latency: int, words: int) -> int:
    """Slots that a cell travels beyond the one it is sent in: it is taken in within a slot, when it is all there."""
    complete = SEND + words + latency  # the cycle after the one of its last word, from the start of its slot
    return max(0, -(-(complete - (slot_cycles - TAKING)) // slot_cycles))


def receive_phase(slot_cycles: int, delay: int, latency: int, words: int) -> int:
    """The phase in which a cell is taken in, `delay` slots after the one it was sent in; refused if it cannot be."""
    least = least_delay(slot_cycles, latency, words)
    require(least == delay, "delay", f"{least} slots, what {latency} cycles from node to node take", delay)
    return max(SEND, SEND + words + latency - delay * slot_cycles)


class Nic(Block):
    """Members
    me                          the number of this node
    tx_word, tx_valid, tx_first   what is sent: a word, whether it is one, whether it is the first of a cell
    rx_word, rx_valid, rx_first   what comes
    command_valid, _open, _seat, _dst, _cells   the host opens a seat for `dst`, or adds cells to it; any cycle from
                                phase 5 on, and counts from the next slot on
    host_src, _dst, _seq, _word   the word of an own cell that is sent next …
    host_data, host_remainder   … is this, and the remainder of its payload
    store_write, _at, _data     a word of a cell on its way is kept, at queue, place, word
    store_from, store_word      … and read: the word follows a cycle later
    sent                        the header that went out last
    heard, heard_valid          the header that came in last; whether one came in the last slot
    delivered                   cells for us so far
    corrupt                     cells whose checksum was wrong
    longest                     most cells that a queue has held
    """

    def __init__(self, *, nodes: int, delay: int = 0, slot_cycles: int = 20, latency: int = 3, words: int = 8,
                 seats: int = 0, age_interval: int = -1, schedule: str = "auto"):  # fmt: skip
        require(2 <= nodes <= NODES, "nodes", f"from 2 to {NODES}", nodes)
        require(words >= 2, "words", "at least 2: a header and payload", words)
        least = SEND + max(words, TAKING)
        require(slot_cycles >= least, "slot_cycles", f"at least {least}", slot_cycles)
        self.nodes, self.delay, self.slot_cycles, self.latency, self.words = nodes, delay, slot_cycles, latency, words
        self.seats = seats or nodes
        self.schedule = schedule
        self._rounds = rounds(nodes, 1, delay, schedule)
        self.age_interval = self._rounds.slots if age_interval < 0 else age_interval
        self.phase = receive_phase(slot_cycles, delay, latency, words)
        places = (nodes - 1).bit_length()
        self._place, self._word = places, max((words - 2).bit_length(), 1)
        self._index = max((self.seats - 1).bit_length(), 1)
        super().__init__({
            "me": In(NODE),
            "tx_word": Out(64), "tx_valid": Out(1), "tx_first": Out(1),
            "rx_word": In(64), "rx_valid": In(1), "rx_first": In(1),
            "command_valid": In(1), "command_open": In(1), "command_seat": In(self._index), "command_dst": In(NODE),
            "command_cells": In(BACKLOG),
            "host_src": Out(NODE), "host_dst": Out(NODE), "host_seq": Out(SEQ), "host_word": Out(self._word),
            "host_data": In(64), "host_remainder": In(8),
            "store_write": Out(1), "store_at": Out(2 * places + self._word), "store_data": Out(64),
            "store_from": Out(2 * places + self._word), "store_word": In(64),
            "sent": Out(64), "heard": Out(64), "heard_valid": Out(1),
            "delivered": Out(32), "corrupt": Out(32), "longest": Out(range(nodes + 2)),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        n, s, epoch, b = self.nodes, self.seats, self._rounds.slots, self._place
        phase, ends = Signal(range(self.slot_cycles)), Signal()
        m.d.comb += ends.eq(phase == self.slot_cycles - 1)
        m.d.sync += phase.eq(Mux(ends, 0, phase + 1))

        # Where we are in the epoch. The first slot is the last of an epoch, in which nothing is there to be sent yet.
        slot = Signal(range(max(epoch, 2)), init=epoch - 1)
        came = Signal(range(max(epoch, 2)), init=(epoch - 1 - self.delay) % epoch)  # in which this slot's cell was sent
        with m.If(ends):
            m.d.sync += [slot.eq(step(slot, epoch)), came.eq(step(came, epoch))]
        to, back = self._faces(m, "to", slot), self._faces(m, "from", came)
        peer, lit, source, expected = Signal(b), Signal(), Signal(b), Signal()
        ahead, behind, me = Signal(b + 2), Signal(b + 2), Signal(b)
        m.d.comb += [
            me.eq(self.me),
            ahead.eq(me + to["shift"]), peer.eq(Mux(ahead >= n, ahead - n, ahead)),
            lit.eq((to["shift"] != 0) & (me >= to["first"]) & (me < to["last"])),
            behind.eq(me + n - back["shift"]), source.eq(Mux(behind >= n, behind - n, behind)),
            expected.eq((back["shift"] != 0) & (source >= back["first"]) & (source < back["last"])),
        ]  # fmt: skip
        taking = [Signal(name=f"taking_{k}") for k in range(TAKING)]
        m.d.comb += [flag.eq(phase == self.phase + k) for k, flag in enumerate(taking)]

        # What is kept for each peer; sending and receiving write in different phases.
        queue, onward, coming = (
            Signal(b),
            Signal(b),
            Signal(b),
        )  # reported on; where a cell goes on to, and the next one
        length = Table(m, "length", range(n + 2), n, (peer, queue, onward))
        head, tail = Table(m, "head", range(n), n, (peer,)), Table(m, "tail", range(n), n, (peer, onward))
        # places in the store
        kept, given = Table(m, "kept", range(n), n, (onward, coming)), Table(m, "given", range(n), n, (peer,))
        local, ready = Table(m, "local", 1, n, (peer, source)), Table(m, "ready", range(s + 1), n, (queue,))
        turn = Table(m, "turn", s, n, (peer,), init=(1 << s) - 1)
        owed, owed_to = Table(m, "owed", 2, n, (peer,)), Table(m, "owed_to", b, n, (peer,))
        dropped = Table(m, "dropped", 1, n, (peer,))
        link, here = Signal(b), Signal(range(n + 2))
        m.d.comb += [link.eq(Mux(phase < SEND, peer, source)), here.eq(length.read(peer))]
        seats = []
        for k in range(s):
            seat = place(m, f"seat_{k}", Seat(nodes=n, epoch=epoch, age_interval=self.age_interval))
            m.d.comb += [
                seat.between.eq(phase == SEND), seat.link.eq(link), seat.length.eq(here),
                seat.command.eq(self.command_valid & (self.command_seat == k) & (phase > SEND)),
                seat.open.eq(self.command_open), seat.new_dst.eq(self.command_dst), seat.cells.eq(self.command_cells),
            ]  # fmt: skip
            seats.append(seat)

        # ---------------------------------------------------------------- phase 1: who may send, and whose turn it is
        may, can = Signal(s), Signal(s)
        m.d.comb += [
            may.eq(Cat(seat.may for seat in seats)),
            can.eq(may & Cat(seat.old for seat in seats) & (~local.read(peer)).replicate(s)),
        ]
        pick, released, waiting, index = Signal(s), Signal(), Signal(range(s + 1)), Signal(self._index)
        with m.If(phase == 1):
            m.d.sync += [
                pick.eq(Mux(lit, first(can, turn.read(peer)), 0)), released.eq(lit & can.any()),
                waiting.eq(count(may) - can.any()),
            ]  # fmt: skip
        m.d.comb += index.eq(encode(pick))

        # ---------------------------------------------------------------- phase 2: the chosen cell joins the queue
        # Of a cell in a queue: whether it is ours; its seat; the other end of its flow; its number; its remainder.
        entry = {"own": 1, "seat": self._index, "node": b, "seq": SEQ, "remainder": 8}
        queues = m.submodules.queues = Memory(shape=sum(entry.values()), depth=n << b, init=[])
        join = queues.write_port()
        look = queues.read_port(transparent_for=(join,))
        m.d.comb += look.addr.eq(Cat(head.read(peer), peer))
        m.d.comb += [seat.take.eq((phase == 2) & pick[k]) for k, seat in enumerate(seats)]
        with m.If((phase == 2) & released):
            dst, seq = (select(pick, [getattr(seat, name) for seat in seats]) for name in ("dst", "seq"))
            m.d.comb += [
                join.addr.eq(Cat(tail.read(peer), peer)), join.en.eq(1),
                join.data.eq(Cat(Const(1, 1), index, dst[:b], seq, Const(0, 8))),
            ]  # fmt: skip

        # ---------------------------------------------------------------- phase 3: header, and what is left behind
        top = fields(look.data, entry)
        held, goes, own, direct = Signal(range(n + 2)), Signal(), Signal(), Signal()
        m.d.comb += [
            held.eq(here + released), goes.eq(lit & (held != 0)), own.eq(goes & top["own"]),
            direct.eq(own & (top["node"] == peer)),
        ]  # fmt: skip
        report = self._report(m, peer, queue, to["self"], phase == 3, owed, owed_to, length, ready)
        encoder = m.submodules.encoder = HeaderEncoder(WORD * self.words)
        m.d.comb += [
            encoder.dst.eq(Mux(goes, Mux(top["own"], top["node"], peer), self.me)),
            encoder.src.eq(Mux(goes & ~top["own"], top["node"], self.me)),
            encoder.seq.eq(Mux(goes, top["seq"], 0)),
            encoder.feedback.eq(report),
            encoder.dropped.eq(dropped.read(peer)),
            encoder.remainder.eq(Mux(goes, Mux(top["own"], self.host_remainder, top["remainder"]), 0)),
        ]
        # The last cells sent to each peer, newest first: whether it was ours and is passed on, its seat, its node.
        record = {"there": 1, "seat": self._index, "node": b}
        size = sum(record.values())
        records = Table(m, "records", self._records * size, n, (peer, source))
        with m.If((phase == 3) & lit):
            length.write(m, peer, held - goes)
            tail.write(m, peer, Mux(released, step(tail.read(peer), n), tail.read(peer)))
            head.write(m, peer, Mux(goes, step(head.read(peer), n), head.read(peer)))
            given.write(m, peer, Mux(goes & ~own, step(given.read(peer), n), given.read(peer)))
            local.write(m, peer, (local.read(peer) | released) & ~own)
            ready.write(m, peer, waiting)
            turn.write(m, peer, Mux(released, beyond(pick), turn.read(peer)))
            owed.write(m, peer, NONE)
            dropped.write(m, peer, 0)
            newest = Cat(own & ~direct, top["seat"], top["node"])
            records.write(m, peer, Cat(newest, records.read(peer)[: (self._records - 1) * size]))
            with m.If(held > self.longest):
                m.d.sync += self.longest.eq(held)
        for k, seat in enumerate(seats):
            m.d.comb += [
                seat.visit.eq((phase == 3) & lit), seat.away.eq(pick[k]), seat.free.eq(direct & (top["seat"] == k)),
            ]  # fmt: skip
        self._transmit(m, phase, lit, goes, own, top, encoder.header, Cat(given.read(peer), peer))
        # For the link whose two directions share a slot: our cell that waits for it, and the one that left on it now.
        mine, mine_seat, held_seat = Signal(), Signal(self._index), Signal(self._index)
        with m.If(phase == 3):
            m.d.sync += [mine.eq(own), mine_seat.eq(top["seat"])]
            with m.If(released & to["self"]):
                m.d.sync += held_seat.eq(index)

        # ---------------------------------------------------------------- receiving
        passes = Signal()
        pending, header, remainder = self._receive(m, kept, coming, passes, phase)
        got = m.submodules.decoder = HeaderDecoder(WORD * self.words)
        m.d.comb += [got.header.eq(header), got.remainder.eq(remainder)]
        kinds = [fields(records.read(source)[k * size : (k + 1) * size], record) for k in range(self._records)]
        about = {name: Signal(width, name=f"about_{name}") for name, width in record.items()}
        chosen = {name: Array([one[name] for one in kinds]) for name in record}
        lag = Signal(range(self._records + 1))
        repeated = back["self"] & ~chosen["there"][back["lag"]]
        m.d.comb += lag.eq(back["lag"] + repeated)
        m.d.comb += [signal.eq(chosen[name][lag]) for name, signal in about.items()]
        chased = back["self"] & mine & (mine_seat == about["seat"])
        early = back["self"] & local.read(source) & (held_seat == about["seat"])  # it is about an earlier cell
        value = self._throttle(m, back, source, about["node"], got.feedback, chased)
        good, hear, target, setting = Signal(), Signal(), Signal(self._index), Signal(THROTTLE)
        with m.If(taking[0]):
            m.d.sync += [
                good.eq(pending & expected),
                hear.eq(pending & expected & about["there"] & (got.feedback <= MOST_FEEDBACK) & ~early),
                target.eq(about["seat"]), setting.eq(value), self.heard_valid.eq(pending & expected),
            ]  # fmt: skip
            with m.If(pending):
                m.d.sync += self.heard.eq(header)
        for k, seat in enumerate(seats):
            m.d.comb += [seat.hear.eq(taking[2] & hear & (target == k)), seat.throttle.eq(setting)]
        ours, now = Signal(), Signal(range(n + 2))
        m.d.comb += [
            passes.eq(got.intact & ~got.empty & (got.dst != self.me)),
            ours.eq(got.intact & ~got.empty & (got.dst == self.me)),
            onward.eq(got.dst), now.eq(length.read(onward) + 1),
        ]  # fmt: skip
        with m.If(taking[3] & good):
            with m.If(passes):
                m.d.comb += [
                    join.addr.eq(Cat(tail.read(onward), onward)), join.en.eq(1),
                    join.data.eq(Cat(Const(0, 1 + self._index), got.src[:b], got.seq, remainder)),
                ]  # fmt: skip
                length.write(m, onward, now)
                tail.write(m, onward, step(tail.read(onward), n))
                kept.write(m, onward, step(kept.read(onward), n))
                with m.If(now > self.longest):
                    m.d.sync += self.longest.eq(now)
            with m.If(ours):
                m.d.sync += self.delivered.eq(self.delivered + 1)
            with m.If(~got.intact):
                m.d.sync += self.corrupt.eq(self.corrupt + 1)
                dropped.write(m, source, 1)
            own_end = got.src[:b] == source
            owed.write(m, source, Mux(passes, PASSED, Mux(ours, Mux(own_end, OWN, OTHER), NONE)))
            owed_to.write(m, source, onward)
        return m

    # ------------------------------------------------------------------ parts

    def _faces(self, m, name, place):
        """What the schedule says of a place: how far everybody sends, who does; for a cell that came, what follows."""
        r, epoch, d = self._rounds, self._rounds.slots, self.delay
        mirror = r.mirror()
        back = [max(int(q), 0) for q in mirror]  # where we send to whoever sends to us in place p
        known, wide = range(len(back)), range(self.nodes + 1)
        rows = {
            "shift": (wide, r.shift), "first": (wide, r.first), "last": (wide, r.last),
            "self": (1, [int(d == 0 and mirror[p] == p) for p in known]),
        }  # fmt: skip
        if name == "from":
            # Turns that the far node has served when our next cell arrives, but for what depends on the cell; with
            # q the place of our turn, rest and whole such that -q - delay = rest - whole * epoch.
            late = [2 + (p + d - back[p]) // epoch - (-back[p] - d) // epoch for p in known]
            rows |= {
                "place": (range(epoch + 1), known), "late": (range(max(late) + 1), late),
                "rest": (range(epoch + 1), [(-back[p] - d) % epoch for p in known]),
                "lag": (range(self._records + 1), [self._lag(p, back[p]) if mirror[p] >= 0 else 0 for p in known]),
            }  # fmt: skip
        return {
            key: rom(m, f"{name}_{key}", shape, [int(v) for v in values], place)
            for key, (shape, values) in rows.items()
        }

    def _lag(self, p, q):
        """How many cells have gone to a peer since the one that its cell, sent in place p, answers."""
        epoch, now = self._rounds.slots, p + self.delay
        return (now - q) // epoch - (now - 2 * self.delay - 1 - q) // epoch

    @property
    def _records(self):
        """Cells to remember for each peer: one more where an answer may be repeated."""
        mirror = self._rounds.mirror()
        lags = [self._lag(p, int(q)) for p, q in enumerate(mirror) if q >= 0]
        return max(lags) + 1 + int(self.delay == 0 and any(q == p for p, q in enumerate(mirror)))

    def _report(self, m, peer, queue, shared, now, owed, owed_to, length, ready):
        """What the cell to `peer` says of the last one from it: eq. (6), or a code."""
        kind = Signal(2)
        m.d.comb += [kind.eq(owed.read(peer)), queue.eq(owed_to.read(peer))]
        told, told_to = Signal(), Signal(self._place)  # where both directions share a slot an answer is repeated once
        with m.If(shared & now):
            m.d.sync += [told.eq(owed.read(peer) == PASSED), told_to.eq(owed_to.read(peer))]
        with m.If(shared & told & (owed.read(peer) != PASSED)):
            m.d.comb += [kind.eq(PASSED), queue.eq(told_to)]
        many, value = Signal(range(self.nodes + self.seats + 2)), Signal(THROTTLE)
        m.d.comb += many.eq(length.read(queue) + ready.read(queue))
        with m.Switch(kind):
            with m.Case(NONE):
                m.d.comb += value.eq(NOTHING)
            with m.Case(PASSED):
                m.d.comb += value.eq(Mux(many > MOST_FEEDBACK, MOST_FEEDBACK, many))
            with m.Case(OWN):
                m.d.comb += value.eq(0)
            with m.Case(OTHER):
                m.d.comb += value.eq(NOT_APPLICABLE)
        return value

    def _throttle(self, m, back, source, node, feedback, chased):
        """The throttle that a feedback means for the subflow through `source` to `node`."""
        n, epoch = self.nodes, self._rounds.slots
        apart, diff, at = Signal(self._place + 2), Signal(self._place), Signal(range(2 * n))
        upper = source >= self._rounds.half
        places = [max(int(p), 0) for half in self._rounds.place for p in half]
        m.d.comb += [
            apart.eq(node + n - source), diff.eq(Mux(apart >= n, apart - n, apart)), at.eq(Mux(upper, diff + n, diff)),
        ]  # fmt: skip
        turn = rom(m, "turn_of", range(epoch + 1), places, at)  # the place in which the far node serves the cell
        until, sum_, out = Signal(range(2 * epoch + 1)), Signal(THROTTLE + 2), Signal(THROTTLE)
        m.d.comb += [
            until.eq(turn + back["rest"]),
            sum_.eq(feedback + (turn < back["place"]) + (until != 0) + (until > epoch) + chased),
            out.eq(Mux(sum_ > back["late"], sum_ - back["late"], 0)),
        ]  # fmt: skip
        return out

    def _transmit(self, m, phase, lit, goes, own, top, header, stored):
        """Send header and payload: of an own cell from the host, of another from the store, zeros in an empty one."""
        sending, from_host, going = Signal(), Signal(), Signal()
        dst, seq, base = Signal(NODE), Signal(SEQ), Signal(len(stored))
        word = Signal(range(self.words))  # words of the payload sent
        m.d.comb += [
            self.host_src.eq(self.me),
            self.host_word.eq(word),
            self.host_dst.eq(Mux(phase == 3, top["node"], dst)),
            self.host_seq.eq(Mux(phase == 3, top["seq"], seq)),
            self.store_from.eq(Mux(phase == 3, Cat(Const(0, self._word), stored), Cat((word + 1)[: self._word], base))),
        ]
        m.d.sync += [self.tx_valid.eq(0), self.tx_first.eq(0), self.tx_word.eq(0)]
        with m.If(phase == 3):
            m.d.sync += [sending.eq(lit), from_host.eq(own), going.eq(goes), word.eq(0)]
            m.d.sync += [dst.eq(top["node"]), seq.eq(top["seq"]), base.eq(stored)]
            m.d.sync += [self.tx_valid.eq(lit), self.tx_first.eq(lit), self.tx_word.eq(Mux(lit, header, 0))]
            with m.If(lit):
                m.d.sync += self.sent.eq(header)
        with m.Elif(sending):
            payload = Mux(from_host, self.host_data, self.store_word)
            m.d.sync += [self.tx_valid.eq(1), self.tx_word.eq(Mux(going, payload, 0)), word.eq(word + 1)]
            with m.If(word == self.words - 2):
                m.d.sync += sending.eq(0)

    def _receive(self, m, kept, to, passes, phase):
        """Words as they come. Returns whether a whole cell waits to be taken in, its header, its remainder."""
        b = self._place
        pending, header, remainder = Signal(), Signal(64), Signal(8)
        arriving, so_far, word, at = Signal(64), Signal(8), Signal(range(self.words)), Signal(b)
        coming, now, before = (View(HEADER.layout(), signal) for signal in (self.rx_word, arriving, header))
        m.d.comb += to.eq(coming.dst)
        # the cell before it has a place in the same queue that is not counted yet
        ahead = pending & passes & (before.dst[:b] == to)
        following = next_remainder(so_far, self.rx_word)
        # A cell that is complete while the one before is taken in waits until that is done.
        busy, whole, waits = Signal(), Signal(), Signal()
        done = phase == self.phase + TAKING - 1
        m.d.comb += [
            busy.eq((phase >= self.phase) & (phase < self.phase + TAKING - 1)),
            whole.eq(self.rx_valid & ~self.rx_first & (word == self.words - 2)),
        ]
        with m.If(done):
            m.d.sync += pending.eq(0)
        with m.If(whole & busy):
            m.d.sync += waits.eq(1)
        with m.Elif(whole | (waits & done)):
            m.d.sync += [pending.eq(1), header.eq(arriving), remainder.eq(Mux(whole, following, so_far)), waits.eq(0)]
        with m.If(self.rx_valid & self.rx_first):
            m.d.sync += [arriving.eq(self.rx_word), so_far.eq(0), word.eq(0)]
            m.d.sync += at.eq(Mux(ahead, step(kept.read(to), self.nodes), kept.read(to)))
        with m.Elif(self.rx_valid):
            m.d.sync += [so_far.eq(following), word.eq(word + 1)]
        m.d.comb += [
            self.store_write.eq(self.rx_valid & ~self.rx_first & (now.dst != self.me) & (now.dst != now.src)),
            self.store_at.eq(Cat(word[: self._word], at, now.dst[:b])), self.store_data.eq(self.rx_word),
        ]  # fmt: skip
        return pending, header, remainder


class Seat(Block):
    """A pair and its throttles, one for each link.

    Members
    between                  phase 4: time passes
    command, open, new_dst, cells   the host opens the seat, or adds cells
    link                     whose throttle is looked at; read at the next edge
    length                   cells that wait for that link
    may, old                 eq. (2) lets it send; it is old enough for a queue of that length
    take                     a cell is released
    visit, away, free        phase 3: the throttle counts down, or becomes "nothing heard yet", or nothing
    hear, throttle           feedback sets it
    dst, seq                 where to, and the number of the next cell
    """

    def __init__(self, *, nodes: int, epoch: int, age_interval: int):
        self.nodes, self.epoch, self.age_interval = nodes, epoch, age_interval
        super().__init__({
            "between": In(1), "command": In(1), "open": In(1), "new_dst": In(NODE), "cells": In(BACKLOG),
            "link": In(max((nodes - 1).bit_length(), 1)), "length": In(range(nodes + 2)), "may": Out(1), "old": Out(1),
            "take": In(1), "visit": In(1), "away": In(1), "free": In(1), "hear": In(1), "throttle": In(THROTTLE),
            "dst": Out(NODE), "seq": Out(SEQ),
        })  # fmt: skip

    @property
    def aged(self) -> int:
        """The age from which a flow may use every queue."""
        return max((self.nodes - 1).bit_length(), 1)

    def elaborate(self, platform):
        m = Module()
        every = self.age_interval
        backlog, young = Signal(BACKLOG), Signal(range(self.epoch + 2))
        age, count = Signal(range(self.aged + 1)), Signal(range(max(every, 2)))
        throttles = m.submodules.throttles = Memory(shape=THROTTLE, depth=self.nodes, init=[])
        read, write = throttles.read_port(), throttles.write_port()
        need, left = Signal(THROTTLE), Signal(THROTTLE)
        m.d.comb += [
            need.eq(Mux(young != 0, 0, read.data)),  # while young, it is of the pair that had the seat before
            self.may.eq((backlog != 0) & (need != AWAY) & (self.length >= need)),
            self.old.eq(1 if every == 0 else (age == self.aged) | (self.length <= (1 << age))),
            left.eq(Mux((need == 0) | (need == AWAY), need, need - 1)),
            read.addr.eq(self.link), write.addr.eq(self.link), write.en.eq(self.visit | self.hear),
            write.data.eq(Mux(self.hear, self.throttle, Mux(self.free, 0, Mux(self.away, AWAY, left)))),
        ]  # fmt: skip
        with m.If(self.take):
            m.d.sync += [backlog.eq(backlog - 1), self.seq.eq(self.seq + 1)]
        with m.If(self.between):  # for the next slot
            with m.If(young != 0):
                m.d.sync += young.eq(young - 1)
            if every:
                m.d.sync += count.eq(Mux(count == every - 1, 0, count + 1))
                with m.If((count == every - 1) & (age != self.aged)):
                    m.d.sync += age.eq(age + 1)
        with m.If(self.command):
            with m.If(self.open | (backlog == 0)):
                m.d.sync += [age.eq(0), count.eq(0)]
            with m.If(self.open):
                m.d.sync += [
                    self.dst.eq(self.new_dst), self.seq.eq(0), young.eq(self.epoch), backlog.eq(self.cells),
                ]  # fmt: skip
            with m.Else():
                m.d.sync += backlog.eq(backlog + self.cells)
        return m


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
