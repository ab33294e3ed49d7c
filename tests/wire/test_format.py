from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.wire.format import Format

TOY = Format("toy", (("kind", 3), ("seq", 12), ("last", 1), ("rest", 5)))
formats = st.lists(st.integers(1, 40), min_size=1, max_size=12).map(
    lambda widths: Format("any", tuple((f"f{k}", width) for k, width in enumerate(widths)))
)


@given(formats, st.data())
def test_unpack_undoes_pack(layout, data):
    values = {name: data.draw(st.integers(0, 2**width - 1)) for name, width in layout.fields}
    assert layout.unpack(layout.pack(**values)) == values


@given(st.binary(min_size=3, max_size=3))
def test_pack_undoes_unpack_but_for_the_padding(data):
    again = TOY.pack(**TOY.unpack(data))
    assert again[:2] == data[:2]
    assert again[2] == data[2] & 0x1F  # 21 bits: three of the last byte are padding


@given(formats)
def test_a_field_begins_where_the_one_before_it_ends(layout):
    at = 0
    for name, width in layout.fields:
        assert layout.offset(name) == at
        assert int.from_bytes(layout.pack(**dict.fromkeys(dict(layout.fields), 0) | {name: 1}), "little") == 1 << at
        at += width
    assert (layout.bits, layout.size) == (at, (at + 7) // 8)


def test_amaranth_sees_the_same_bits():
    pytest.importorskip("amaranth")
    values = dict(kind=5, seq=3000, last=1, rest=17)
    assert TOY.layout().const(values).as_value().value == int.from_bytes(TOY.pack(**values), "little")


@given(formats, st.data())
def test_in_network_order_the_first_field_has_the_highest_bits(layout, data):
    values = {name: data.draw(st.integers(0, 2**width - 1)) for name, width in layout.fields}
    ordered = replace(layout, network=True)
    bits = "".join(f"{values[name]:0{width}b}" for name, width in layout.fields).ljust(8 * layout.size, "0")
    assert ordered.pack(**values) == int(bits, 2).to_bytes(layout.size, "big")
    assert ordered.unpack(ordered.pack(**values)) == values


def test_amaranth_sees_the_bits_of_network_order():
    pytest.importorskip("amaranth")
    layout, values = replace(TOY, network=True), dict(kind=5, seq=3000, last=1, rest=17)
    assert layout.layout().const(values).as_value().value == int.from_bytes(layout.pack(**values), "big")


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: TOY.pack(kind=8, seq=0, last=0, rest=0), "toy.kind must fit in 3 bits, not 8"),
        (lambda: TOY.pack(kind=0, seq=-1, last=0, rest=0), "toy.seq must fit in 12 bits, not -1"),
        (lambda: TOY.pack(kind=0, seq=0, last=2, rest=0), "toy.last must fit in 1 bit, not 2"),
        (lambda: TOY.pack(kind="x", seq=0, last=0, rest=0), "toy.kind must be a whole number, not 'x'"),
        (lambda: TOY.pack(kind=0, seq=0, last=0), "toy.rest must be given a value"),
        (lambda: TOY.pack(colour=1), "a field of toy must be one of kind, seq, last, rest, not 'colour'"),
        (lambda: TOY.offset("colour"), "a field of toy must be one of kind, seq, last, rest, not 'colour'"),
        (lambda: TOY.unpack(b"ab"), "toy must be 3 bytes long, not 2"),
    ],
)
def test_what_does_not_fit_is_named(call, sentence):
    with pytest.raises(BadInput) as error:
        call()
    assert str(error.value) == sentence
