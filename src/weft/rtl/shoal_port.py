"""The two ends of a channel in Shoal's NIC: what sends a cell word by word, and what puts one together.

The first word of a cell is the first of its header. What a wider header has beyond it, the rest, are the lowest bytes
of the second word; payload fills what is left of that word, and the words behind it.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from weft.rtl.parts import Block
from weft.rtl.shoal_header import WORD, layout_of, next_remainder
from weft.rtl.shoal_seat import NODE, SEQ
from weft.rtl.voq import step


def word_bits(words: int) -> int:
    """Bits that count the words of a payload."""
    return max((words - 2).bit_length(), 1)


class Sender(Block):
    """Sends header and payload: of an own cell from the host, of another from the store, zeros in an empty one.

    Members
    start                    the rest is as follows, and the first word goes out in the next cycle
    lit, goes, own           something is sent at all; it is a cell and not empty; it is ours
    header, dst, seq, stored   its header; where to, and its number, if it is ours; where it is stored, if not
    tx_*, host_*, store_*    as those of the NIC
    sent                     the header that went out last
    """

    def __init__(self, *, words: int, values: int, news: int, places: int):
        self.words, self.values, self.news, self.places = words, values, news, places
        bits = 8 * layout_of(values, news).size
        word = word_bits(words)
        super().__init__({
            "start": In(1), "lit": In(1), "goes": In(1), "own": In(1), "header": In(bits), "dst": In(NODE),
            "seq": In(SEQ), "stored": In(places),
            "tx_word": Out(64), "tx_valid": Out(1), "tx_first": Out(1),
            "host_dst": Out(NODE), "host_seq": Out(SEQ), "host_word": Out(word), "host_data": In(64),
            "store_from": Out(places + word), "store_word": In(64), "sent": Out(bits),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        sending = Signal()
        from_host = Signal()
        going = Signal()
        dst = Signal(NODE)
        seq = Signal(SEQ)
        base = Signal(self.places)
        word = Signal(range(self.words))  # words of the payload sent
        start, more = self.start, len(self.header) - 8 * WORD
        m.d.comb += [
            self.host_word.eq(word),
            self.host_dst.eq(Mux(start, self.dst, dst)), self.host_seq.eq(Mux(start, self.seq, seq)),
            self.store_from.eq(
                Mux(start, Cat(Const(0, len(self.host_word)), self.stored),
                    Cat((word + 1)[: len(self.host_word)], base))
            ),
        ]  # fmt: skip
        m.d.sync += [self.tx_valid.eq(0), self.tx_first.eq(0), self.tx_word.eq(0)]
        with m.If(start):
            m.d.sync += [
                sending.eq(self.lit), from_host.eq(self.own), going.eq(self.goes), word.eq(0),
                dst.eq(self.dst), seq.eq(self.seq), base.eq(self.stored),
                self.tx_valid.eq(self.lit), self.tx_first.eq(self.lit),
                self.tx_word.eq(Mux(self.lit, self.header[: 8 * WORD], 0)),
            ]  # fmt: skip
            with m.If(self.lit):
                m.d.sync += self.sent.eq(self.header)
        with m.Elif(sending):
            payload = Mux(going, Mux(from_host, self.host_data, self.store_word), 0)
            if more:
                payload = Mux(word == 0, Cat(self.sent[8 * WORD :], payload[more:]), payload)
            m.d.sync += [self.tx_valid.eq(1), self.tx_word.eq(payload), word.eq(word + 1)]
            with m.If(word == self.words - 2):
                m.d.sync += sending.eq(0)
        return m


class Receiver(Block):
    """Puts cells together, keeps the payload of those that go on, and holds a whole cell until it is taken in.

    Members
    me                       the number of this node
    rx_*, store_*            as those of the NIC
    coming, place            the queue for which a cell begins to come; the next place in it
    pending                  a whole cell waits to be taken in:
    header, remainder, at    … its header, the remainder of its payload, and its place in the store
    passes                   it goes on from here (once `pending`)
    first, expected          it is looked at first in this cycle; a cell was due
    busy, done               it is being taken in; it is taken in in this cycle
    heard, heard_valid       the header that came in last; whether one came when it was due last
    """

    def __init__(self, *, words: int, values: int, news: int, nodes: int):
        self.words, self.values, self.news, self.nodes = words, values, news, nodes
        bits, b = 8 * layout_of(values, news).size, (nodes - 1).bit_length()
        super().__init__({
            "me": In(NODE), "rx_word": In(64), "rx_valid": In(1), "rx_first": In(1),
            "coming": Out(b), "place": In(b), "pending": Out(1), "header": Out(bits), "remainder": Out(8),
            "at": Out(b), "passes": In(1), "first": In(1), "expected": In(1), "busy": In(1), "done": In(1),
            "store_write": Out(1), "store_at": Out(2 * b + word_bits(words)), "store_data": Out(64),
            "heard": Out(bits), "heard_valid": Out(1),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        layout, b = layout_of(self.values, self.news).layout(), len(self.coming)
        bits, more = len(self.header), len(self.header) - 8 * WORD
        arriving = Signal(bits)
        so_far = Signal(8)
        word = Signal(range(self.words))
        at = Signal(b)
        starts = View(layout, Cat(self.rx_word, Const(0, more)) if more else self.rx_word)
        now, before = View(layout, arriving), View(layout, self.header)
        # the cell before it has a place in the same queue that is not counted yet
        ahead = self.pending & self.passes & (before.dst[:b] == self.coming)
        of_header = Signal()  # this word begins with the rest of a header
        m.d.comb += [self.coming.eq(starts.dst), of_header.eq((word == 0) & bool(more))]
        payload = Mux(of_header, Cat(Const(0, more), self.rx_word[more:]), self.rx_word) if more else self.rx_word
        full = Mux(of_header, Cat(arriving[: 8 * WORD], self.rx_word[:more]), arriving) if more else arriving
        following = next_remainder(so_far, payload)
        # A cell that is complete while the one before is taken in waits until that is done.
        whole = Signal()
        waits = Signal()
        m.d.comb += whole.eq(self.rx_valid & ~self.rx_first & (word == self.words - 2))
        with m.If(self.done):
            m.d.sync += self.pending.eq(0)
        with m.If(whole & self.busy):
            m.d.sync += waits.eq(1)
        with m.Elif(whole | (waits & self.done)):
            m.d.sync += [
                self.pending.eq(1), self.header.eq(Mux(whole, full, arriving)), self.at.eq(at),
                self.remainder.eq(Mux(whole, following, so_far)), waits.eq(0),
            ]  # fmt: skip
        with m.If(self.rx_valid & self.rx_first):
            m.d.sync += [arriving[: 8 * WORD].eq(self.rx_word), so_far.eq(0), word.eq(0)]
            m.d.sync += at.eq(Mux(ahead, step(self.place, self.nodes), self.place))
        with m.Elif(self.rx_valid):
            m.d.sync += [so_far.eq(following), word.eq(word + 1), arriving.eq(full)]
        m.d.comb += [
            self.store_write.eq(self.rx_valid & ~self.rx_first & (now.dst != self.me) & (now.dst != now.src)),
            self.store_at.eq(Cat(word[: word_bits(self.words)], at, now.dst[:b])), self.store_data.eq(self.rx_word),
        ]  # fmt: skip
        with m.If(self.first):
            m.d.sync += self.heard_valid.eq(self.pending & self.expected)
            with m.If(self.pending):
                m.d.sync += self.heard.eq(self.header)
        return m
