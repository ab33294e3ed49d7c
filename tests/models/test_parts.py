import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadPart
from weft.models.parts import NAMES, Bill, Catalogue, Part

PARTS = ("chip", "lens", "box")
CATALOGUE = Catalogue(
    title="toys",
    parts={
        "chip": Part(name="chip", price=7, watts=3, rack_units=0),
        "lens": Part(name="lens", price=2, watts=1, rack_units=0),
        "box": Part(name="box", price=11, watts=0, rack_units=4),
        "rock": Part(name="rock"),
    },
)
bills = st.dictionaries(st.sampled_from(PARTS), st.integers(0, 1000)).map(Bill)


@given(bills, bills)
def test_the_price_of_two_bills_is_the_sum_of_their_prices(a, b):
    for total in (CATALOGUE.price, CATALOGUE.watts, CATALOGUE.rack_units):
        assert total(a + b) == total(a) + total(b)


@given(bills, st.integers(0, 50))
def test_a_number_of_bills_costs_that_number_of_times(bill, times):
    assert CATALOGUE.price(bill * times) == times * CATALOGUE.price(bill)


@given(bills, st.sampled_from(PARTS), st.integers(0, 100), st.integers(0, 100))
def test_a_dearer_part_never_makes_a_bill_cheaper(bill, part, price, more):
    cheap, dear = CATALOGUE.change(part, price=price), CATALOGUE.change(part, price=price + more)
    assert dear.price(bill) - cheap.price(bill) == more * bill[part]


@given(bills, bills)
def test_bills_add_in_any_order_and_forget_nothing(a, b):
    assert a + b == b + a
    assert {part: (a + b)[part] for part in PARTS} == {part: a[part] + b[part] for part in PARTS}


def test_a_bill_of_arrays_is_priced_as_an_array():
    assert CATALOGUE.price(Bill(chip=np.arange(3), box=1)).tolist() == [11, 18, 25]


def test_what_has_no_price_makes_no_sum_and_is_named():
    bill = Bill(chip=1, rock=1)
    assert CATALOGUE.price(bill) is None
    assert CATALOGUE.unknown(bill, "price") == ["rock"]
    assert CATALOGUE.price(Bill(chip=1, rock=0)) == 7


@pytest.mark.parametrize("name", NAMES)
def test_every_catalogue_says_where_and_when_each_number_is_from(name):
    catalogue = Catalogue.named(name)
    assert catalogue.source and catalogue.date
    for part in catalogue.parts.values():
        assert part.source and part.date


def write(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_a_users_catalogue_overrides_field_by_field_and_adds(tmp_path):
    mine = Catalogue.load(write(tmp_path, '[parts."SFP+"]\nprice = "100 USD"\n[parts.laser]\nprice = "1 USD"\n'))
    merged = Catalogue.named("merchant-2009") | mine
    assert (merged["SFP+"].price, merged["SFP+"].watts) == (100, 1)
    assert merged["laser"].price == 1
    assert merged["ASIC"].price == 410


def test_prices_in_two_currencies_are_never_added(tmp_path):
    mine = Catalogue.load(write(tmp_path, '[parts."packet switch"]\nprice = "16200 USD"\n'))
    merged = Catalogue.named("shoal-2019") | mine
    assert merged.currency == "USD"
    assert merged.price(Bill({"packet switch": 2})) == 32400
    assert merged.price(Bill({"packet switch": 2, "packet NIC": 1})) is None


def test_a_catalogue_of_watts_alone_changes_no_price(tmp_path):
    mine = Catalogue.load(write(tmp_path, '[parts."packet switch"]\npower = "300 W"\n'))
    base = Catalogue.named("shoal-2019")
    merged = base | mine
    assert (merged.currency, merged["packet NIC"].price) == (base.currency, base["packet NIC"].price)
    assert merged["packet switch"].watts == 300


def test_power_may_be_written_in_milliwatts_and_kilowatts(tmp_path):
    mine = Catalogue.load(write(tmp_path, '[parts.a]\npower = "500 mW"\n[parts.b]\npower = "4 kW"\n'))
    assert (mine["a"].watts, mine["b"].watts) == (0.5, 4000)


@pytest.mark.parametrize(
    "text, message",
    [
        ("[parts.CPU]\nprice = 130\n", "price of part 'CPU' in mine.toml must carry its unit as in '1 USD', not 130"),
        (
            '[parts.CPU]\nprice = "130"\n',
            "price of part 'CPU' in mine.toml must carry its unit as in '1 USD', not '130'",
        ),
        (
            '[parts.CPU]\nprice = "130 EUR"\n',
            "price of part 'CPU' in mine.toml must carry its unit as in '1 USD', not '130 EUR'",
        ),
        ('[parts.CPU]\npower = "8"\n', "power of part 'CPU' in mine.toml must carry its unit as in '1 W', not '8'"),
        (
            '[parts.CPU]\nspace = "two RU"\n',
            "space of part 'CPU' in mine.toml must carry its unit as in '1 RU', not 'two RU'",
        ),
        ('[parts.CPU]\nprice = "-3 USD"\n', "price of part 'CPU' must be at least 0, not -3"),
        (
            '[parts.CPU]\nprize = "3 USD"\n',
            "part 'CPU' in mine.toml must have only price, power, space, date, source, fitted, facts, not 'prize'",
        ),
        ("parts = 3\n", "catalogue mine.toml must hold tables named [parts.NAME], not 3"),
    ],
)
def test_a_catalogue_that_cannot_be_meant_gets_a_sentence(tmp_path, text, message):
    with pytest.raises(BadPart) as error:
        Catalogue.load(write(tmp_path, text))
    assert str(error.value) == message


def test_a_file_that_is_no_catalogue_gets_a_sentence(tmp_path):
    with pytest.raises(BadPart, match=r"mine.toml must be a TOML file: invalid "):
        Catalogue.load(write(tmp_path, "= ="))
    missing = tmp_path / "none.toml"
    with pytest.raises(BadPart) as error:
        Catalogue.load(missing)
    assert str(error.value) == f"{missing} must be a catalogue, but there is no such file"
    with pytest.raises(BadPart) as error:
        Catalogue.named("ikea-1999")
    assert str(error.value) == f"catalogue must be one of {', '.join(NAMES)}, not 'ikea-1999'"


def test_an_unknown_part_is_told_its_neighbour():
    with pytest.raises(BadPart) as error:
        CATALOGUE.price(Bill(chop=1))
    assert str(error.value) == "part must be one of chip, lens, box, rock of toys, not 'chop' (did you mean 'chip'?)"


def test_a_count_below_nothing_gets_a_sentence():
    with pytest.raises(BadPart) as error:
        Bill(chip=-2)
    assert str(error.value) == "count of part 'chip' must be at least 0, not -2"
