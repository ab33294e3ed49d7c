"""Units: what is read, what is shown, and that the one undoes the other."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import units
from weft.errors import BadInput, BadQuantity
from weft.units import parse_rate, parse_size, parse_time, show_rate, show_size, show_time, time_of, wire_time

KINDS = {
    "time": (parse_time, show_time, {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "ms": 10**9, "s": 10**12}),
    "rate": (parse_rate, show_rate, {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}),
    "size": (
        parse_size, show_size,
        {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    ),
}  # fmt: skip
kinds = st.sampled_from(sorted(KINDS))


@given(kinds, st.integers(0, 10**15), st.integers(0, 12), st.data())
def test_a_number_with_a_unit_is_that_many_of_the_smallest_or_refused(kind, digits, places, data):
    """Against exact fractions, which know nothing of Decimal."""
    parse, _, known = KINDS[kind]
    unit = data.draw(st.sampled_from(sorted(known)))
    text = f"{Decimal(digits).scaleb(-places):f}"
    exact = Fraction(text) * known[unit]
    if exact.denominator == 1:
        for between in ("", " "):
            for spelled in {unit, unit.lower(), unit if "µ" in unit else unit.upper(), unit.replace("µ", "μ")}:
                assert parse(f"{text}{between}{spelled}") == exact
    else:
        with pytest.raises(BadQuantity) as said:
            parse(text + unit)
        smallest = {"time": "ps", "rate": "bps", "size": "b"}[kind]
        assert str(said.value) == f"a {kind} must be a whole number of {smallest}, not {text + unit!r}"


def test_no_digit_is_too_small_to_count():
    with pytest.raises(BadQuantity, match=r"^a time must be a whole number of ps"):
        parse_time("2.7500000000000000000000000000001ns")
    assert parse_time("2.7500000000000000000000000000000ns") == 2750
    assert parse_rate("10000000000000000000000000001") == 10**28 + 1


@given(kinds, st.integers(-(10**29), 10**29))
def test_a_bare_number_is_itself_whether_text_or_not(kind, number):
    parse = KINDS[kind][0]
    assert parse(number) == parse(str(number)) == parse(f"{number:_}") == parse(f"{number:,}") == number


@given(kinds, st.integers(0, 2**62))
def test_what_is_shown_is_within_a_millionth_and_reads_back(kind, value):
    parse, show, _ = KINDS[kind]
    shown = show(value)
    number, unit = shown.split(" ")
    scale = KINDS[kind][2][unit]
    assert abs(Fraction(number) * scale - value) <= Fraction(value, 10**5)
    if value:
        assert scale == 1 or float(number) >= 1  # the largest unit that leaves a digit before the point
    if (Fraction(number) * scale).denominator == 1:
        assert parse(shown) == Fraction(number) * scale


@given(kinds, st.integers(0, 999_999), st.integers(0, 12))
def test_six_digits_are_shown_exactly(kind, digits, zeros):
    parse, show, _ = KINDS[kind]
    assert parse(show(digits * 10**zeros)) == digits * 10**zeros


@given(kinds, st.text(max_size=20))
def test_any_text_is_a_whole_number_or_one_sentence_that_quotes_it(kind, text):
    try:
        assert isinstance(KINDS[kind][0](text), int)
    except BadQuantity as error:
        assert str(error).startswith(f"a {kind} must ")
        assert repr(text) in str(error) or text.strip() in str(error)
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_rate, "25 Gb/s", 25 * 10**9),
        (parse_rate, "25 Gbit/s", 25 * 10**9),
        (parse_rate, "2.5e3 Mbps", 2_500_000_000),
        (parse_rate, "1b/s", 1),
        (parse_time, "1,000 ns", 10**6),
        (parse_time, "+5us", 5 * 10**6),
        (parse_time, "-5us", -5 * 10**6),
        (parse_time, "0.000001us", 1),
        (parse_time, "  7ms  ", 7 * 10**9),
        (parse_size, "1.5 MB", 1_500_000),
        (parse_size, "0.5KiB", 512),
        (parse_size, "4kib", 4096),
    ],
)
def test_what_people_write_is_understood(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "sentence"),
    [
        (parse_rate, "100 GB/s", "a rate must be in bits, as in 100Gbps, not bytes: '100 GB/s'"),
        (parse_rate, "100GBps", "a rate must be in bits, as in 100Gbps, not bytes: '100GBps'"),
        (parse_rate, "1 B/s", "a rate must be in bits, as in 100Gbps, not bytes: '1 B/s'"),
        (parse_rate, "100 Gb", "a rate must be in one of bps, kbps, mbps, gbps, tbps, not 'Gb' as in '100 Gb'"),
        (parse_time, "5 minutes", "a time must be in one of ps, ns, us, µs, ms, s, not 'minutes' as in '5 minutes'"),
        (parse_time, "", "a time must look like 2750ps or 1.5us, not ''"),
        (parse_time, "ns", "a time must look like 2750ps or 1.5us, not 'ns'"),
        (parse_time, ".5ns", "a time must look like 2750ps or 1.5us, not '.5ns'"),
        (parse_time, "1 2 ns", "a time must look like 2750ps or 1.5us, not '1 2 ns'"),
        (parse_time, "0.5ps", "a time must be a whole number of ps, not '0.5ps'"),
        (parse_time, True, "a time must look like 2750ps or 1.5us, not True"),
        (parse_time, None, "a time must look like 2750ps or 1.5us, not None"),
        (parse_time, "1e30ps", "a time must be below 1e30 ps, not '1e30ps'"),
        (parse_time, "-1e30ps", "a time must be above -1e30 ps, not '-1e30ps'"),
        (parse_size, "-1e5000", "a size must be above -1e30 b, not '-1e5000'"),
        (parse_size, "12 parsecs",
         "a size must be in one of b, kb, mb, gb, tb, kib, mib, gib, not 'parsecs' as in '12 parsecs'"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_said(parse, text, sentence):
    with pytest.raises(BadQuantity) as said:
        parse(text)
    assert str(said.value) == sentence
    assert isinstance(said.value, BadInput) and isinstance(said.value, ValueError)


@given(st.integers(0, 2**50), st.integers(1, 2**50))
def test_wire_time_is_the_exact_time_rounded_up(size, rate):
    exact = Fraction(size * 8 * units.s, rate)
    assert exact <= wire_time(size, rate) < exact + 1


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**12))
def test_a_train_takes_no_longer_than_its_cells_one_by_one(one, other, rate):
    assert wire_time(one + other, rate) <= wire_time(one, rate) + wire_time(other, rate)
    assert wire_time(one + other, rate) >= max(wire_time(one, rate), wire_time(other, rate))


def test_the_smallest_units_are_one_and_the_rest_are_thousands_or_binary():
    assert (units.ps, units.bps, units.B) == (1, 1, 1)
    for row in (("ps", "ns", "us", "ms", "s"), ("bps", "Kbps", "Mbps", "Gbps", "Tbps"), ("B", "KB", "MB", "GB", "TB")):
        for small, large in pairwise(row):
            assert getattr(units, large) == 1000 * getattr(units, small)
    assert (units.KiB, units.MiB, units.GiB) == (1 << 10, 1 << 20, 1 << 30)


@pytest.mark.parametrize("show", [show_time, show_rate, show_size])
def test_nothing_is_shown_in_the_smallest_unit(show):
    assert show(0) == {show_time: "0 ps", show_rate: "0 bps", show_size: "0 B"}[show]
    assert show(-1500).startswith("-1.5 ")


def test_the_time_of_bytes_at_a_rate_may_be_asked_in_texts():
    assert time_of("1500B", "100Gbps") == time_of(1500, 10**11) == 120_000
    for size, rate in (("-1B", "1Gbps"), (-1, 10), (1, 0), ("1KB", "-1Gbps")):
        with pytest.raises(BadInput, match=r"^a (size must be at least 0 bytes|rate must be above 0), not "):
            time_of(size, rate)
