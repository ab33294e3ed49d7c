"""Parameters: fields read from text, and shown so that they can be read again."""

import json
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.errors import BadInput
from weft.parameters import REQUIRED, Hex, build, like, parameters
from weft.units import Rate, Size, Time, param


@dataclass(frozen=True, kw_only=True)
class Thing:
    """Something with a field of every kind."""

    count: int = param(help="how many")
    guard: Time = param(2750, "dark time")
    link: Rate | None = param(None, "rate")
    cell: Size = param(64, "bytes")
    share: float = param(0.5, "part")
    fair: bool = param(True, "whether")
    order: Literal["up", "down"] | None = param(None, "way")
    name: str = param("x", "what it is called")
    layer: Literal[0, 1] = param(1, "of the switches")
    answer: int = param(7, "a number or a word", words={"all": 99, "none-yet": 98})
    payload: Hex = param(b"", "bytes")
    files: tuple[str, ...] = param((), "several texts")


FIELDS = {p.name: p for p in parameters(Thing)}


def test_fields_say_what_they_are():
    assert [(p.name, p.kind, p.optional) for p in FIELDS.values()] == [
        ("count", "int", False), ("guard", "time", False), ("link", "rate", True), ("cell", "size", False),
        ("share", "float", False), ("fair", "bool", False), ("order", "str", True), ("name", "str", False),
        ("layer", "int", False), ("answer", "int", False), ("payload", "hex", False), ("files", "str", False),
    ]  # fmt: skip
    assert FIELDS["count"].default is REQUIRED
    assert FIELDS["order"].choices == ("up", "down")
    assert FIELDS["guard"].shown_default == "2.75ns"
    assert FIELDS["link"].shown_default is None


def test_texts_and_plain_values_mean_the_same():
    texts = {"count": "1e3", "guard": "2.5 ns", "link": "100Gbps", "cell": "1KB", "share": "0.25", "fair": "no"}
    plain = {"count": 1000, "guard": 2500, "link": 10**11, "cell": 1000, "share": 0.25, "fair": False}
    assert build(Thing, texts) == build(Thing, plain) == Thing(**plain)


def test_words_bytes_and_several_values_are_read():
    thing = build(Thing, {"count": "1", "answer": "all", "payload": "c0 ffee", "files": ["a", "b"], "layer": "0"})
    assert (thing.answer, thing.payload, thing.files, thing.layer) == (99, b"\xc0\xff\xee", ("a", "b"), 0)
    assert build(Thing, {"count": 1, "files": "a"}).files == ("a",)
    assert [FIELDS["answer"].show(x) for x in (99, 5)] == ["all", "5"]
    assert FIELDS["payload"].show(b"\xc0") == "c0"


def test_a_field_may_be_like_another_s_but_for_its_default():
    @dataclass(frozen=True, kw_only=True)
    class Other:
        guard: Time = like(Thing, "guard")
        cell: Size = like(Thing, "cell", default=9)

    guard, cell = parameters(Other)
    assert guard == FIELDS["guard"]
    assert (cell.help, cell.default, cell.kind) == ("bytes", 9, "size")


@given(st.integers(0, 2**62), st.sampled_from(["guard", "link", "cell", "count"]))
def test_what_is_shown_is_read_back_exactly(value, name):
    assert FIELDS[name].read(FIELDS[name].show(value)) == value


@given(st.text(max_size=12), st.sampled_from(sorted(FIELDS)))
def test_any_text_is_read_or_refused_in_one_sentence(text, name):
    try:
        FIELDS[name].read(text)
    except BadInput as error:
        assert name in str(error)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "count must be given: how many"),
        ({"count": 1, "colour": "red"},
         f"a parameter of Thing must be one of {', '.join(FIELDS)}, not 'colour'"),
        ({"count": True}, "count must be a whole number, not True"),
        ({"count": 1.5}, "count must be a whole number, not 1.5"),
        ({"count": [1]}, "count must be a whole number, not [1]"),
        ({"count": 1, "share": "half"}, "share must be a number, not 'half'"),
        ({"count": 1, "fair": "perhaps"}, "fair must be true or false, not 'perhaps'"),
        ({"count": 1, "guard": "1e999999999s"}, "guard: a time must look like 2750ps or 1.5us, not '1e999999999s'"),
        ({"count": 1, "guard": "1e18s"}, "guard: a time must be below 1e30 ps, not '1e18s'"),
        ({"count": 1, "guard": "soon"}, "guard: a time must look like 2750ps or 1.5us, not 'soon'"),
        ({"count": 1, "name": ["a"]}, "name must be a text, not ['a']"),
        ({"count": 1, "layer": "2"}, "layer must be one of 0, 1, not 2"),
        ({"count": 1, "answer": "some"}, "answer must be a whole number, all or none-yet, not 'some'"),
        ({"count": 1, "payload": "c0f"}, "payload must be pairs of hexadecimal digits, not 'c0f'"),
        ({"count": 1, "files": [["a"]]}, "files must be a text, not ['a']"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_said(given, sentence):
    with pytest.raises(BadInput) as said:
        build(Thing, given)
    assert str(said.value) == sentence


@pytest.mark.parametrize("cls", [weft.Shoal, weft.Crossbar, weft.Poisson, weft.Shorts, weft.Trace])
def test_every_default_of_a_description_is_read_back_from_what_help_shows(cls):
    for p in parameters(cls):
        if p.shown_default is not None:
            assert p.read(p.shown_default) == p.default, p.name


def test_a_field_answers_to_its_other_name_but_not_to_both():
    assert build(weft.Incast, {"senders": "7"}) == build(weft.Incast, {"fan_in": 7}) == weft.Incast(fan_in=7)
    with pytest.raises(BadInput) as error:
        build(weft.Incast, {"senders": 7, "fan_in": 7})
    assert str(error.value) == "fan_in must be given once, not as senders too"


@pytest.mark.parametrize("name", ["count", "guard", "link", "cell"])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, str(2**63), "1e25"])
def test_a_number_that_no_machine_word_holds_is_refused(name, value):
    with pytest.raises(BadInput) as said:
        FIELDS[name].read(value)
    assert str(said.value) == f"{name} must fit 63 bits, not {float(value):.6e}"


@pytest.mark.parametrize("name", ["count", "guard", "link", "cell"])
def test_the_largest_and_the_smallest_word_are_read(name):
    assert FIELDS[name].read(2**63 - 1) == FIELDS[name].read(str(2**63 - 1)) == 2**63 - 1
    assert FIELDS[name].read(-(2**63)) == FIELDS[name].read(str(-(2**63))) == -(2**63)


def test_a_number_beyond_all_floats_is_refused():
    with pytest.raises(BadInput, match=r"^share must be a number, not 10{400}$"):
        FIELDS["share"].read(10**400)


def test_a_choice_must_be_one_of_those_there_are():
    assert FIELDS["order"].read("up") == "up"
    assert FIELDS["order"].read("None") is None
    with pytest.raises(BadInput) as said:
        FIELDS["order"].read("sideways")
    assert str(said.value) == "order must be one of up, down, not 'sideways'"


@given(
    st.builds(
        Thing,
        count=st.integers(-(2**63), 2**63 - 1), guard=st.integers(0, 2**62), link=st.none() | st.integers(1, 2**62),
        cell=st.integers(1, 2**40), share=st.floats(allow_nan=False, allow_infinity=False), fair=st.booleans(),
        order=st.sampled_from([None, "up", "down"]),
        name=st.text(st.characters(codec="utf-8", exclude_characters="\x7f", exclude_categories=["Cc", "Cs"])),
    )
)  # fmt: skip
def test_a_description_survives_a_study_file_and_the_prompt(thing):
    """Object -> what a user would type -> object, once through TOML and once as flags."""
    import tomllib

    shown = {name: field.show(getattr(thing, name)) for name, field in FIELDS.items() if not field.many}
    if (shown.get("name") or "").lower() == "none":
        return
    typed = {name: text for name, text in shown.items() if not (text == "none" and getattr(thing, name) is None)}
    assert build(Thing, typed) == thing
    lines = "\n".join(f"{name} = {json.dumps(text, ensure_ascii=False)}" for name, text in typed.items())
    assert build(Thing, tomllib.loads(lines)) == thing


@given(st.booleans(), st.sampled_from(["true", "YES", "On", "1", "false", "No", "OFF", "0"]))
def test_yes_and_no_are_read_in_every_spelling(value, text):
    assert FIELDS["fair"].read(value) is value
    assert FIELDS["fair"].read(text) is (text.lower() in ("true", "yes", "on", "1"))
    assert FIELDS["fair"].read(FIELDS["fair"].show(value)) is value


def test_a_parameter_that_is_not_a_call_s_to_give_is_no_parameter():
    @dataclass(frozen=True, kw_only=True)
    class Made:
        given: int = param(1, "one")
        derived: int = field(init=False, default=2)

    assert [p.name for p in parameters(Made)] == ["given"]
    with pytest.raises(BadInput, match=r"^a parameter of Made must be one of given, not 'derived'$"):
        build(Made, {"derived": 3})


def test_a_whole_number_beyond_any_float_is_refused():
    with pytest.raises(BadInput, match=r"^link must fit 63 bits, not 1\.000000e\+400$"):
        build(weft.Shoal, {"nodes": 8, "link": 10**400})
