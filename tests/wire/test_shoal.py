import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.wire.crc import Crc
from weft.wire.shoal import (
    CELL,
    HEADER,
    MOST_FEEDBACK,
    NODES,
    NOT_APPLICABLE,
    NOTHING,
    PACKET,
    SEQUENCE,
    SOURCE,
    Cell,
    Fragmenter,
    Reassembler,
    decode,
    feedback,
    missed_pairs,
)  # fmt: skip
from wire.test_crc import divided

cells = st.builds(
    Cell, dst=st.integers(0, 1023), src=st.integers(0, 1023), seq=st.integers(0, 2**22 - 1),
    feedback=st.integers(0, 2047), start=st.booleans(), end=st.booleans(), dropped=st.booleans(),
    payload=st.binary(min_size=56, max_size=56),
)  # fmt: skip
packets = st.lists(st.tuples(st.integers(1, 3), st.binary(max_size=300)), max_size=12)


# ---------------------------------------------------------------- the header


def test_the_header_has_the_widths_of_figure_5():
    printed = {"dst": 10, "end": 1, "dropped": 1, "crc": 8}
    widths = dict(HEADER.fields)
    assert {name: widths[name] for name in printed} == printed
    assert (HEADER.bits, HEADER.size) == (64, 8)
    assert {name for name, (_, source) in SOURCE.items() if source.startswith("printed")} == set(printed)


def test_the_header_names_1024_nodes_and_its_feedback_holds_their_longest_queues_and_two_codes():
    assert 2 ** dict(HEADER.fields)["dst"] == 2 ** dict(HEADER.fields)["src"] == NODES
    most = (NODES - 1) + (NODES - 1) - 1  # eq. 6: cells queued, one local; flows ready; less one
    assert (most, NOT_APPLICABLE, NOTHING) == (MOST_FEEDBACK, 2**11 - 2, 2**11 - 1)


def test_feedback_never_runs_into_its_codes():
    assert [feedback(value) for value in (-1, 0, 7, 2045, 2046, 10**6)] == [0, 0, 7, 2045, 2045, 2045]


def test_a_header_worked_out_by_hand():
    cell = Cell(dst=3, src=7, seq=1, feedback=5, start=True, end=False, dropped=True)
    # byte 0   dst = 3                                             0000 0011
    # byte 1   src = 7 from bit 10 on                              0001 1100
    # byte 2   seq = 1 from bit 20 on                              0001 0000
    # byte 3,4 the rest of seq
    # byte 5   feedback = 5 from bit 42 on                         0001 0100
    # byte 6   start bit 53, end bit 54, dropped bit 55            1010 0000
    assert cell.encode()[:7].hex(" ") == "03 1c 10 00 00 14 a0"
    # byte 7   CRC-8/SAE-J1850 of the other 63 bytes, by long division
    assert cell.encode()[7] == divided(bytes.fromhex("031c10000014a0") + bytes(56))


def test_all_ones_fill_the_header():
    cell = Cell(dst=1023, src=1023, seq=2**22 - 1, feedback=2047, start=True, end=True, dropped=True)
    assert cell.encode()[:7] == b"\xff" * 7


@given(cells)
def test_decode_undoes_encode(cell):
    assert decode(cell.encode()) == (cell, True)


@given(st.binary(min_size=8, max_size=200))
def test_any_bytes_decode_and_encode_to_themselves_but_for_the_crc(data):
    cell, intact = decode(data)
    again = cell.encode(len(data))
    assert again[:7] + again[8:] == data[:7] + data[8:]
    assert intact == (again == data)


@given(cells, st.integers(0, CELL - 1), st.integers(1, 255))
def test_damage_within_one_byte_is_always_seen(cell, at, flips):
    data = bytearray(cell.encode())
    data[at] ^= flips
    assert not decode(bytes(data))[1]


def test_a_dead_line_is_no_cell():
    assert not decode(bytes(CELL))[1]


def test_only_double_errors_255_or_510_bits_apart_go_unseen():
    good = Cell(dst=1, src=2, payload=b"weft").encode()

    def along(bit):  # the CRC reads header, payload, then itself, each byte from its highest bit
        byte = bit // 8
        return 8 * (63 if byte == 7 else byte - (byte > 7)) + 7 - bit % 8

    for a in (0, 60, 64, 300, 511):
        for b in set(range(512)) - {a}:
            bad = bytearray(good)
            bad[a // 8] ^= 1 << a % 8
            bad[b // 8] ^= 1 << b % 8
            assert decode(bytes(bad))[1] == ((along(a) - along(b)) % 255 == 0)


def test_a_primitive_polynomial_misses_a_third_of_the_double_errors(monkeypatch):
    assert missed_pairs() == (512 - 255) + (512 - 510) == 259
    monkeypatch.setattr("weft.wire.shoal.CRC", Crc("CRC-8/SMBUS", 8, 0x07))
    assert missed_pairs() == sum(512 - apart for apart in (127, 254, 381, 508)) == 778


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: Cell(dst=1024, src=0).encode(), "shoal_header.dst must fit in 10 bits, not 1024"),
        (lambda: Cell(dst=1, src=0, feedback=2048).encode(), "shoal_header.feedback must fit in 11 bits, not 2048"),
        (lambda: Cell(dst=1, src=0, payload=b"x" * 57).encode(),
         "payload must be at most 56 bytes in a cell of 64, not 57"),
        (lambda: Cell(dst=1, src=0).encode(7), "cell must be from 8 to 65,535 bytes, not 7"),
        (lambda: decode(bytes(7)), "cell must be at least 8 bytes, not 7"),
        (lambda: Fragmenter(1).cells(1, b""), "dst must be another node from 0 to 1023, not 1"),
        (lambda: Fragmenter(1).cells(2, bytes(65_536)), "packet must be at most 65,535 bytes, not 65536"),
        (lambda: Fragmenter(1, size=9), "cell must be at least 10 bytes to carry packets, not 9"),
        (lambda: Reassembler(1024), "me must be a node from 0 to 1023, not 1024"),
        (lambda: Reassembler(0, window=0), "window must be from 1 to 524,288 cells, not 0"),
        (lambda: Reassembler(0, memory=0), "memory must be at least 1 cell, not 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_cell_is_refused(call, sentence):
    with pytest.raises(BadInput) as error:
        call()
    assert str(error.value) == sentence


# ---------------------------------------------------------------- packets


def send(given, me=0, size=CELL):
    """The cells of (source, packet) pairs, as (source, which packet, bytes), each source's in order."""
    out, sources = [], {}
    for k, (src, packet) in enumerate(given):
        cut = sources.setdefault(src, Fragmenter(src, size)).cells(me, packet)
        out += [(src, k, cell.encode(size)) for cell in cut]
    return out


def receive(to, wire):
    return [done for data in wire for done in to.accept(data)]


@pytest.mark.parametrize("length, count", [(0, 1), (54, 1), (55, 2), (110, 2), (111, 3), (1500, 27), (PACKET, 1171)])
def test_a_packet_takes_a_cell_per_56_bytes_and_two_bytes_for_its_length(length, count):
    cut = Fragmenter(1).cells(0, bytes(length))
    assert len(cut) == count
    assert [cell.start for cell in cut] == [True] + [False] * (count - 1)
    assert [cell.end for cell in cut] == [False] * (count - 1) + [True]
    assert [cell.seq for cell in cut] == list(range(count))


@given(packets, st.integers(10, 130), st.randoms(use_true_random=False))
def test_packets_come_back_whole_and_in_order_whatever_the_order_of_their_cells(given, size, random):
    to, wire = Reassembler(0, size=size), [data for _, _, data in send(given, size=size)]
    random.shuffle(wire)
    got = receive(to, wire)
    for src in (1, 2, 3):
        assert [p for s, p in got if s == src] == [p for s, p in given if s == src]
    assert to.errors.total == to.held == to.stored == 0
    assert to.delivered == len(given)


@given(packets, st.randoms(use_true_random=False), st.floats(0, 1))
def test_exactly_the_packets_that_lost_no_cell_come_back(given, random, loss):
    wire = send(given)
    arrived = [one for one in wire if random.random() >= loss]
    hurt = {k for _, k, data in wire if (_, k, data) not in arrived}
    random.shuffle(arrived)
    to = Reassembler(0)
    got = receive(to, [data for _, _, data in arrived])
    for src in (1, 2, 3):
        got += to.give_up(src)
        assert [p for s, p in got if s == src] == [p for k, (s, p) in enumerate(given) if s == src and k not in hurt]
    assert to.held == to.stored == 0
    assert to.errors.lost <= len(wire) - len(arrived)  # nobody misses what comes after the last cell that came


@given(packets, st.randoms(use_true_random=False))
def test_a_cell_that_comes_again_is_counted_and_changes_nothing(given, random):
    wire = [data for _, _, data in send(given)]
    again = wire + random.sample(wire, len(wire) // 2)
    random.shuffle(again)
    to = Reassembler(0)
    got = receive(to, again)
    assert sorted(got) == sorted(given)
    assert to.errors.late + to.errors.duplicate == to.errors.total == len(wire) // 2


@settings(max_examples=30)
@given(packets, st.integers(1, 6), st.integers(1, 6), st.randoms(use_true_random=False))
def test_memory_is_bounded_and_what_comes_out_went_in(given, window, memory, random):
    wire = [data for _, _, data in send(given) if random.random() < 0.8]
    random.shuffle(wire)
    to, got = Reassembler(0, window=window, memory=memory, packet=200), []
    for data in wire:
        got += to.accept(data)
        assert to.held <= memory
        assert to.stored <= memory * 56 + 3 * 200
    left = list(given)
    for one in got:
        left.remove(one)
        assert len(one[1]) <= 200


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=130), max_size=40))
def test_any_bytes_go_in_and_only_counts_come_out(wire):
    to = Reassembler(0)
    for data in wire:
        to.accept(data)
    intact = [data for data in wire if len(data) == CELL and decode(data)[1]]
    assert to.errors.corrupt == len(wire) - len(intact)


wild = st.builds(
    Cell, dst=st.integers(0, 1), src=st.integers(0, 3),
    seq=st.integers(0, 12) | st.integers(2_000_000, 2_000_012) | st.integers(SEQUENCE - 12, SEQUENCE - 1),
    start=st.booleans(), end=st.booleans(), payload=st.binary(max_size=3),
)  # fmt: skip


@given(st.lists(wild, max_size=40), st.integers(1, 8), st.integers(1, 8))
def test_any_cells_go_in_and_each_is_held_used_or_counted(wire, window, memory):
    to = Reassembler(0, window=window, memory=memory, packet=100)
    for n, cell in enumerate(wire, 1):
        to.accept(cell.encode())
        e = to.errors
        assert n == e.misrouted + to.empty + e.duplicate + e.late + e.stray + to.used + to.held
        assert to.held <= memory


def test_numbers_wrap_around():
    source, to = Fragmenter(1), Reassembler(0)
    source._next[0] = SEQUENCE - 2
    to.accept(Cell(dst=0, src=1, seq=0).encode())  # an orphan, so that the flow is known
    to._flows[1].next = SEQUENCE - 2
    wire = [cell.encode() for cell in source.cells(0, bytes(range(200)))]
    assert receive(to, reversed(wire)) == [(1, bytes(range(200)))]


def singles(src, count, first=0):
    """Packets of one byte, each in one cell, numbered from `first`."""
    source = Fragmenter(src)
    source._next[0] = first
    return [source.cells(0, bytes([k]))[0].encode() for k in range(count)]


def test_the_end_of_one_packet_never_completes_another():
    source, to = Fragmenter(1), Reassembler(0)
    a, b = source.cells(0, b"a" * 160), source.cells(0, b"b" * 106)
    assert (len(a), len(b)) == (3, 2)
    assert receive(to, [cell.encode() for cell in (a[0], a[1], b[1])]) == []  # the right number of cells and bytes
    assert to.give_up(1) == []
    assert (to.errors.lost, to.errors.broken, to.errors.orphan) == (2, 1, 1)


def test_one_cell_from_nowhere_is_not_believed_but_two_that_agree_are():
    to = Reassembler(0, window=16)
    assert receive(to, singles(1, 1, 2_000_000)) == []
    assert receive(to, singles(1, 2)) == [(1, b"\0"), (1, b"\1")]
    assert receive(to, singles(1, 4, 3_000_000)) == [(1, b"\1"), (1, b"\2"), (1, b"\3")]  # the first was the price
    assert (to.errors.stray, to.errors.total) == (2, 2)


def test_cells_from_nowhere_that_disagree_are_not_believed():
    to = Reassembler(0, window=16)
    for seq in (2_000_000, 2_000_016, 2_000_016, 2_000_000):
        assert receive(to, singles(1, 1, seq)) == []
    assert (to.errors.stray, to.errors.total) == (4, 4)


def test_a_cell_in_its_place_makes_one_from_nowhere_forgotten():
    to = Reassembler(0, window=16)
    assert receive(to, [*singles(1, 1, 2_000_000), *singles(1, 1), *singles(1, 1, 2_000_001)]) == [(1, b"\0")]
    assert (to.errors.stray, to.errors.total) == (2, 2)


def test_a_flow_that_begins_anew_leaves_nothing_behind():
    to = Reassembler(0, window=16)
    assert receive(to, singles(1, 3)[1:]) == []
    assert receive(to, singles(1, 2, 2_000_000)) == [(1, b"\1"), (1, b"\2"), (1, b"\1")]  # old ones first
    assert (to.held, to.errors.lost, to.errors.stray) == (0, 1, 1)


def test_a_cell_a_window_ahead_gives_up_what_should_have_come_before():
    to, wire = Reassembler(0, window=4), singles(1, 8)
    assert receive(to, wire[1:4]) == []
    assert to.accept(wire[4]) == [(1, bytes([k])) for k in range(1, 5)]
    assert (to.errors.lost, to.errors.total) == (1, 1)
    assert to.accept(wire[0]) == [] and to.errors.late == 1


def test_a_full_memory_gives_up_on_the_source_that_fills_it():
    to = Reassembler(0, memory=3)
    assert receive(to, [singles(2, 2)[1], *singles(1, 3)[1:]]) == []
    assert to.accept(singles(3, 2)[1]) == [(1, b"\1"), (1, b"\2")]
    assert (to.held, to.errors.lost) == (2, 1)


def test_cells_for_others_and_empty_ones_are_left_out():
    to = Reassembler(0)
    to.accept(Cell(dst=5, src=1).encode())
    to.accept(Cell(dst=4, src=4, feedback=9).encode())
    assert (to.errors.misrouted, to.empty, to.errors.total) == (1, 1, 1)


def test_a_packet_whose_flags_and_length_disagree_is_given_up():
    def run(*given):
        to = Reassembler(0, packet=1000)
        got = []
        for seq, (start, end, head) in enumerate(given):
            payload = head.to_bytes(2, "little") + bytes(54)
            got += to.accept(Cell(dst=0, src=1, seq=seq, start=start, end=end, payload=payload).encode())
        return [len(p) for _, p in got], to.errors.broken, to.errors.orphan

    assert run((1, 1, 54)) == ([54], 0, 0)
    assert run((1, 1, 55)) == ([], 1, 0)  # ends too early
    assert run((1, 0, 54), (0, 1, 0)) == ([], 1, 0)  # and too late
    assert run((1, 0, 60), (1, 1, 3)) == ([3], 1, 0)  # another begins before it ends
    assert run((0, 1, 60)) == ([], 0, 1)  # never began
    assert run((1, 0, 1001), (0, 1, 0)) == ([], 1, 1)  # longer than this node takes
