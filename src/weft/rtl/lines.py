"""Lines narrower than a cell: adapters before and behind a switch, so that a port takes and gives words at line rate.

A cell of W bits (Table I: destination bits, data, source) crosses a line in as many words as a slot has cycles, lowest
bits first: a switch of k iterations takes a cell every k cycles, which is a line of W / k bits per cycle and no slower;
a grouped one takes a cell every slow cycle, which is a line of W / k bits on a fast clock of k times its rate.
In front, the words are put together as they come and the last goes straight in: nothing is waited for. Behind, the
first word is on the line in the cycle in which the whole cell would have shown, so a cell is as late as without, and
its last word comes k - 1 cycles later. With one cycle a slot a line is as wide as a cell and the adapters are wires.
"""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.crossbar import Switch
from weft.rtl.gcq import GroupedSwitch
from weft.rtl.parts import Block, place


class LineIn(Block):
    """Members
    valid, word     a word of a cell; all words of a slot are of one cell, or there is none
    beat            which word of the slot it is
    there, cell     the cell, in the last cycle of the slot
    """

    def __init__(self, width: int, beats: int, clock: str):
        self.width, self.beats, self.clock = width, beats, clock
        line = width // beats
        super().__init__({
            "valid": In(1), "word": In(line), "beat": In(range(max(beats, 2))), "there": Out(1), "cell": Out(width),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        kept = [Signal(len(self.word), name=f"word_{k}") for k in range(self.beats - 1)]
        whole = Signal(init=1)  # no word of this slot has been missing
        for k, word in enumerate(kept):
            with m.If(self.beat == k):
                m.d[self.clock] += word.eq(self.word)
        last = self.beat == self.beats - 1
        m.d[self.clock] += whole.eq(last | whole & self.valid)
        m.d.comb += [self.cell.eq(Cat(*kept, self.word)), self.there.eq(whole & self.valid & last)]
        return m


class LineOut(Block):
    """Members
    there, cell     what leaves the switch; it holds for a slot
    beat            which word of it is due
    valid, word     the line
    """

    def __init__(self, width: int, beats: int):
        self.width, self.beats = width, beats
        super().__init__({
            "there": In(1), "cell": In(width), "beat": In(range(max(beats, 2))),
            "valid": Out(1), "word": Out(width // beats),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        words = Array(self.cell.word_select(k, len(self.word)) for k in range(self.beats))
        m.d.comb += [self.valid.eq(self.there), self.word.eq(words[self.beat])]
        return m


class LineSwitch(Block):
    """A switch whose ports are lines, on the clock that counts the cycles of its slots.

    Members
    valid_in, lines_in     [i]  a word comes in; the first of a cell in the first cycle of a slot
    valid_out, lines_out   [j]  a word goes out
    first                  it is the first of its cell
    last                   this is the last cycle of a slot
    granted, refused       as those of the switch; a grouped one grants nothing
    """

    def __init__(self, switch: Switch | GroupedSwitch):
        ports, width, beats = switch.ports, switch.width, switch.slot_cycles
        require(width % beats == 0, "width", f"a multiple of the {beats} words in which a cell comes", width)
        self.switch, self.beats = switch, beats
        self.ports, self.width, self.ratio, self.grants = ports, width, switch.ratio, switch.grants
        self.cycle_of, self.shows = switch.cycle_of, switch.shows
        self.told = ["refused", *(["granted"] if switch.grants else [])]
        line = width // beats
        super().__init__({
            "valid_in": In(ports), "lines_in": In(line).array(ports),
            "valid_out": Out(ports), "lines_out": Out(line).array(ports), "first": Out(1), "last": Out(1),
            **{name: switch.signature.members[name] for name in self.told},
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        switch, k, clock = self.switch, self.beats, self.switch.clock
        m.submodules.switch = switch
        beat = Signal(range(max(k, 2)))
        behind = Signal(range(max(k, 2)))
        m.d[clock] += beat.eq(Mux(self.last, 0, beat + 1))
        late = (self.shows(0) - self.cycle_of(0)) % k
        m.d.comb += [
            behind.eq(Mux(beat >= late, beat - late, beat + (k - late))), self.first.eq(behind == 0),
            self.last.eq(beat == k - 1),
        ]  # fmt: skip
        for p in range(self.ports):
            into = place(m, f"line_in_{p}", LineIn(self.width, k, clock))
            out = place(m, f"line_out_{p}", LineOut(self.width, k))
            m.d.comb += [
                into.valid.eq(self.valid_in[p]), into.word.eq(self.lines_in[p]), into.beat.eq(beat),
                switch.valid_in[p].eq(into.there), switch.cells_in[p].eq(into.cell),
                out.there.eq(switch.valid_out[p]), out.cell.eq(switch.cells_out[p]), out.beat.eq(behind),
                self.valid_out[p].eq(out.valid), self.lines_out[p].eq(out.word),
                *(getattr(self, name)[p].eq(getattr(switch, name)[p]) for name in self.told),
            ]  # fmt: skip
        return m
