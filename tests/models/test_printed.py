"""Printed numbers beside ours: the rules of the comparison, and what must hold for every paper's tables."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.models import fpga, merchant, shoal, stardust, tables, tdma

MODELS = {"shoal": shoal, "merchant": merchant, "stardust": stardust, "fpga": fpga, "tdma": tdma}
EXACT = {
    "shoal": "c01 c02 c03 c04 c05 c06 c07 c09 c10 c11 c14 c16 c17 c19 c22 c26 c39 c40",
    "merchant": "c01 c02 c03 c04 c05 c06 c07 c08 c09 c10 c11 c12 c13 c14 c15 c19 c21 c23",
    "stardust": "c01 c02 c04 c05 c06 c07 c10 c12 c13 c14 c16 c22 c27 c28 c30 c33 c38",
    "fpga": "c01 c03 c04 c05 c08 c11 c13 c16 c20 c22 c23 c24",
    "tdma": "c06 c09 c10 c14 c18",
}
EVERY = [(paper, key) for paper in MODELS for key in tables.printed(paper)]


@pytest.mark.parametrize("paper, key", EVERY)
def test_a_number_that_differs_or_was_fitted_says_why(paper, key):
    for row in MODELS[paper].table(key).rows:
        if row.verdict in (tables.DIFFERS, tables.FITTED):
            assert row.note, row.name


@pytest.mark.parametrize("paper, key", EVERY)
def test_a_row_with_nothing_beside_it_says_why(paper, key):
    table = MODELS[paper].table(key)
    for row in table.rows:
        if row.verdict == tables.NOT_KNOWN:
            assert row.note or table.note, row.name


def test_the_numbers_that_differ_are_the_ones_we_know_of():
    """`differences.txt` is the list; a change to it is a change to what we say of a paper."""
    found = [
        f"{paper} {key}: {row.name}"
        for paper, key in EVERY
        for row in MODELS[paper].table(key).rows
        if row.verdict == tables.DIFFERS
    ]
    assert found == (Path(__file__).parent / "differences.txt").read_text().splitlines()


def test_seventy_claims_can_be_checked_by_arithmetic():
    assert sum(len(claims.split()) for claims in EXACT.values()) == 70


@pytest.mark.parametrize("paper", MODELS)
def test_every_claim_that_arithmetic_can_check_is_checked(paper):
    claimed = {
        row.claim
        for key in tables.printed(paper)
        for row in MODELS[paper].table(key).rows
        if row.claim and row.computed is not None
    }
    assert claimed >= set(EXACT[paper].split())


@pytest.mark.parametrize("paper, key", EVERY)
def test_no_row_has_the_name_of_another(paper, key):
    names = [row.name for row in MODELS[paper].table(key).rows]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "printed, computed, same",
    [
        ("41.0", 41.088, True),  # truncated, as Table VII of merchant silicon does
        ("41.0", 41.04, True),
        ("41.0", 41.1, False),
        ("41.0", 40.94, False),
        ("71", 70.75, True),
        ("71", 69.9, False),
        ("-0.5", -0.52, True),
    ],
)
def test_agreement_is_rounding_or_truncation_to_the_printed_digits(printed, computed, same):
    assert tables.agrees(Decimal(printed), computed) is same


@given(st.decimals(-(10**6), 10**6, places=3))
def test_a_printed_number_agrees_with_itself_and_not_with_a_neighbour(number):
    assert tables.agrees(number, float(number))
    assert not tables.agrees(number, float(number) + 0.0025)
    assert not tables.agrees(number, float(number) - 0.0025)


def test_texts_agree_only_when_equal():
    assert tables.agrees("NDA", "NDA")
    assert not tables.agrees("NDA", "20 W")


def test_a_fitted_number_that_stops_matching_is_called_different():
    row = tables.Row(name="x", printed=Decimal("1.5"), computed=1.5, kind="fitted")
    assert row.verdict == "fitted"
    assert tables.Row(name="x", printed=Decimal("1.5"), computed=1.7, kind="fitted").verdict == "differs"
    assert tables.Row(name="x", printed=None, computed=1.7).verdict == "not known"


def test_a_computed_row_that_nobody_printed_is_an_error_of_ours():
    with pytest.raises(KeyError, match="table 1 of shoal prints no row 'moonlight'"):
        tables.beside("shoal", "1", {"moonlight": 3})


def test_a_table_that_is_not_printed_gets_the_list():
    with pytest.raises(BadInput) as error:
        shoal.table("IX")
    assert str(error.value) == "table must be one of 1, fig3, fig5, appB, claims of shoal, not 'IX'"


def test_a_tables_json_has_what_was_promised():
    for row in shoal.table("claims").as_json()["rows"]:
        assert row.keys() >= {"name", "printed", "computed", "unit", "note"}
