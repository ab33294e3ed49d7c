"""Values at and beyond the limits: every parameter of every fabric and workload takes them, or says a sentence."""

import json
import re
from dataclasses import fields

import pytest

from weft import Poisson, catalogue
from weft.errors import BadInput, WeftError
from weft.experiment import allow
from weft.fabrics import FABRICS
from weft.metrics.provenance import describe, rebuild
from weft.parameters import REQUIRED, build, parameters

FLOWS = Poisson(load=0.5, sizes="fixed:2KB", flows=5)
MEMORY = 200_000_000  # bytes a run may need here
OWN = catalogue.own_workloads()
SMALL = {
    "shoal": {"nodes": "8"},
    "crossbar": {"ports": "4"},
    "packet": {"hosts": "4", "topology": "single"},
    "tdma": {"nodes": "4"},
    "merchant": {"radix": "8", "pods": "1"},
    "torus": {"dimensions": "2x2"},
    "stardust": {"hosts": "4"},
    "ideal": {"nodes": "4"},
}
NEEDED = {
    "load": "0.5", "fan_in": "3", "fan_out": "3", "flows": "1", "mappers": "2", "reducers": "2", "path": "/none.csv",
    "bytes": "4KB", "model": "bert-large", "trace": "/none",
}  # fmt: skip
WHOLE = ("0", "-1", "1", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e29", "-1e5000")
EXTREMES = {
    "time": (*WHOLE, "1ps", "1e29s", "9e18ps"),
    "rate": (*WHOLE, "1bps", "1e30Tbps"),
    "size": (*WHOLE, "1B", "1e30TB"),
    "int": (*WHOLE, "2", "1e39"),
    "float": ("0", "-1", "1e-300", "1e300", "nan", "inf", "-inf"),
    "bool": ("true", "off"),
    "shape": ("", "x", "0", "1", "2", "-2", "1x1", "0x8", "2x", "3x3", "2x2x2x2x2x2x2", "9223372036854775808", "nan",
              "1e9x1e9", "9e999x2"),
    "str": ("", " ", ",", ":", "=", "%", "\0", "é😀", "a" * 5000, "/", ".", "none", "fixed:", "fixed:0", "node 1 at"),
}  # fmt: skip


def cases(cls, base):
    """{parameters} for every parameter of `cls` at every extreme, the others as in `base`."""
    needed = {p.name: NEEDED[p.name] for p in parameters(cls) if p.default is REQUIRED and p.name not in base}
    for parameter in parameters(cls):
        for value in EXTREMES[parameter.kind]:
            yield {**needed, **base, parameter.name: value}


def says_a_sentence_at_most(make, given):
    """What `make` returns; None if it refused in one sentence. Anything else that is raised is a bug."""
    try:
        return make()
    except WeftError as error:
        assert str(error) and "\n" not in str(error), given
        assert len(str(error)) < 10_000, given
    except Exception as error:
        pytest.fail(f"{given}: {type(error).__name__}: {error}")


@pytest.mark.parametrize("name", FABRICS)
def test_a_fabric_at_its_limits_is_laid_out_or_refused_in_a_sentence(name):
    cls, refused = catalogue.fabric_class(name), 0

    def lay_out(given):
        fabric = build(cls, given)
        allow(fabric, FLOWS.planned(fabric.nodes), MEMORY)
        flows = FLOWS.draw(nodes=fabric.nodes, link=fabric.link, seed=1)
        allow(fabric, flows, MEMORY)
        assert (fabric.ideal(flows) > 0).all(), given
        return fabric.prepare(flows, seed=1)

    for given in cases(cls, SMALL[name]):
        refused += says_a_sentence_at_most(lambda given=given: lay_out(given), given) is None
    assert refused > 5 * len(parameters(cls))


@pytest.mark.parametrize("name", OWN)
def test_a_workload_at_its_limits_is_drawn_or_refused_in_a_sentence(name):
    cls = catalogue.every_workload()[name]
    few = {"flows": "5"} if "flows" in {field.name for field in fields(cls)} else {}

    def draw(given):
        workload = build(cls, given)
        count = getattr(workload, "flows", None)
        if isinstance(count, int) and count > 10**6:
            return None  # the memory that they would need is refused before they are drawn
        flows = workload.draw(nodes=8, link=10**11, seed=1)
        assert getattr(flows, "nodes", 8) == 8
        return flows

    for given in cases(cls, few):
        says_a_sentence_at_most(lambda given=given: draw(given), given)


@pytest.mark.parametrize("name", [name for name in FABRICS if name != "ideal"])  # which has nothing to choose
def test_a_choice_that_there_is_not_is_refused_with_those_that_there_are(name):
    cls = catalogue.fabric_class(name)
    chosen = [parameter for parameter in parameters(cls) if parameter.choices]
    assert chosen
    for parameter in chosen:
        with pytest.raises(BadInput) as said:
            build(cls, {**SMALL[name], parameter.name: "sideways"})
        assert str(said.value) == f"{parameter.name} must be one of {', '.join(parameter.choices)}, not 'sideways'"


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("shoal", {"cell": "9223372036854775807"}, "a slot must be at most 53 days, not '2.95148e+09 s'"),
        ("shoal", {"cell": "1e25"}, "cell must fit 63 bits, not 1.000000e+25"),
        ("shoal", {"guard": "-1e5000ps"}, "guard: a time must be above -1e30 ps, not '-1e5000ps'"),
        ("shoal", {"age_interval": "9223372036854775808"}, "age_interval must fit 63 bits, not 9.223372e+18"),
        ("crossbar", {"group": "0"}, "group must be at least 1 port, not 0"),
        ("crossbar", {"depth": "1e13"}, "depth must be at most 1,099,511,627,776, not 10000000000000"),
        ("crossbar", {"cell": "9223372036854775807"}, "a slot must be at most 53 days, not '7.3787e+09 s'"),
        ("crossbar", {"cycle": "9223372036854775807"},
         "the way through an empty switch must be at most 53 days, not '1.84467e+07 s'"),
        ("packet", {"link": "9e18bps"}, "the rate of link h0-switch must be at most 2^62 b/s, not 9000000000000000000"),
        ("packet", {"delay": "9e18ps"}, "the delay of link h0-switch must be at most 2^62 ps, not 9000000000000000000"),
        ("packet", {"buffer": "1e10"}, "buffer must be at most 10^9, not 10000000000"),
        ("packet", {"topology": "fattree", "hosts": "16", "oversubscription": "inf"},
         "oversubscription must be a finite number, 1 or more, not inf"),
        ("packet", {"topology": "leafspine", "oversubscription": "nan"},
         "oversubscription must be a finite number, 1 or more, not nan"),
    ],
)  # fmt: skip
def test_what_is_beyond_a_limit_is_named_with_the_limit(name, given, sentence):
    with pytest.raises(BadInput) as said:
        build(catalogue.fabric_class(name), {**SMALL[name], **given})
    assert str(said.value) == sentence


def test_ties_are_checked_in_python_too():
    with pytest.raises(BadInput) as said:
        catalogue.fabric_class("packet")(hosts=4, topology="single", ties="alphabetical")
    assert str(said.value) == "ties must be one of fifo, lifo, random, not 'alphabetical'"


@pytest.mark.parametrize(("room", "field"), [("sizes", "sizes"), ("topology", "topology")])
def test_a_name_too_long_for_a_file_is_no_file(room, field):
    cls = Poisson if room == "sizes" else catalogue.fabric_class("packet")
    given = {"load": 0.5} if room == "sizes" else {"hosts": 4}
    with pytest.raises(BadInput) as said:
        workload = build(cls, {**given, field: "a" * 5000})
        getattr(workload, "graph", None)
    assert re.fullmatch(rf"{field} must be .* not 'a+ … a+'", str(said.value))


def test_a_load_that_leaves_no_time_between_arrivals_is_too_many_flows():
    with pytest.raises(BadInput) as said:
        Poisson(load=1e300, load_rate=10**18, duration=10**9).draw(nodes=8, link=10**11, seed=1)
    assert str(said.value) == "duration must be short enough for fewer than 10^9 flows to arrive, not 1000000000"


# what is written down is read back


def described(name, given):
    """The description, and the one rebuilt from its JSON."""
    classes = {**{name: catalogue.fabric_class(name) for name in FABRICS}, **catalogue.every_workload()}
    made = build(classes[name], given)
    return made, rebuild(json.loads(json.dumps(describe(made))), classes[name])


@pytest.mark.parametrize("name", FABRICS)
def test_every_fabric_that_can_be_made_is_rebuilt_equal_from_json(name):
    cls, made = catalogue.fabric_class(name), 0
    for parameter in parameters(cls):
        for value in (*EXTREMES[parameter.kind], *parameter.choices):
            try:
                one, again = described(name, {**SMALL[name], parameter.name: value})
            except WeftError:
                continue
            assert again == one and hash(again) == hash(one)
            made += 1
    assert made > len(parameters(cls))


@pytest.mark.parametrize("name", [name for name in OWN if name not in ("trace", "chakra")])
def test_every_workload_that_can_be_made_is_rebuilt_equal_and_draws_the_same(name):
    cls = catalogue.every_workload()[name]
    given = {p.name: NEEDED[p.name] for p in parameters(cls) if p.default is REQUIRED}
    made, again = described(name, given)
    assert again == made
    one, other = (workload.draw(nodes=8, link=10**11, seed=3) for workload in (made, again))
    assert one == other if hasattr(one, "src") else describe(one) == describe(other)


def test_what_lacks_a_field_or_has_one_more_cannot_be_rebuilt():
    with pytest.raises(BadInput) as said:
        rebuild({"kind": "Poisson", "flows": 5}, Poisson)
    assert str(said.value) == "Poisson must be made of all its fields, not of flows"
    with pytest.raises(BadInput) as said:
        rebuild({"kind": "Poisson", "load": 0.5, "colour": "red"}, Poisson)
    assert str(said.value) == "Poisson must be made of fields it has, not 'colour'"
    with pytest.raises(BadInput, match=r"^a workload must be one of Poisson, .*, not 'Poissson'$"):
        catalogue.class_of({"kind": "Poissson", "load": 0.5}, "workload")


@pytest.mark.parametrize("data", [{}, {"fabric": 1}, {"fabric": {"nodes": 8}}, {"fabric": {"kind": 1}}])
def test_a_call_without_a_fabric_and_a_workload_is_said(data):
    with pytest.raises(BadInput, match=r"^a (fabric|workload) must be a table with its kind, not "):
        catalogue.rebuild_call(data)
