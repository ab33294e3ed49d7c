"""Settings of transports: presets that resolve to what they list, changes on top, and values that cannot be."""

import json
from dataclasses import asdict, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import Poisson
from weft.cli import main
from weft.errors import BadInput, WeftError
from weft.fabrics.network.settings import TRANSPORTS, Settings, origins, presets, settings
from weft.fabrics.packet import Packet
from weft.parameters import parameters

FIELDS = {parameter.name: parameter for parameter in parameters(Settings)}
FLOWS = Poisson(load=0.5, sizes="fixed:2KB", flows=5).draw(nodes=4, link=10**10, seed=1)
EXTREMES = (
    "", "0", "-1", "1", "9223372036854775807", "9223372036854775808", "1e40", "nan", "inf", "-inf", "x", "true", "0.5",
    "2parsecs", "é",
)  # fmt: skip


@pytest.mark.parametrize("name", presets())
def test_a_preset_resolves_to_what_it_lists_over_its_protocol_over_the_defaults(name):
    found = asdict(settings(name))
    protocol = presets()[name.partition("@")[0]]
    for key in FIELDS:
        written = presets()[name].get(key, protocol.get(key))
        expected = FIELDS[key].default if written is None else FIELDS[key].read(written)
        assert found[key] == expected, key


@pytest.mark.parametrize("name", presets())
def test_the_prompt_prints_what_a_preset_resolves_to(name, capsys):
    assert main(["presets", name, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.pop("from") == origins(name)
    assert printed == asdict(settings(name))
    assert main(["presets", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{name}: {settings(name).source}"
    shown = dict(line.split()[:2] for line in lines[2:])
    expected = {key: value for key, value in asdict(settings(name)).items() if key not in ("transport", "source")}
    assert {key: FIELDS[key].read(text) for key, text in shown.items()} == expected


def test_a_preset_is_of_the_protocol_it_is_named_after():
    assert {name.partition("@")[0] for name in presets()} == set(TRANSPORTS)
    for name in presets():
        assert settings(name).transport == name.partition("@")[0]


@given(st.sampled_from(sorted(presets())), st.integers(1, 10**12), st.integers(1, 200))
def test_a_change_on_top_wins_and_changes_nothing_else(name, rto, rounds):
    changed = settings(f"{name}:rto_min={rto}ps, fast_rounds={rounds}")
    assert asdict(changed) == {**asdict(settings(name)), "rto_min": rto, "fast_rounds": rounds}
    given = {key for key, where in origins(f"{name}:rto_min={rto}ps,fast_rounds={rounds}").items() if where == "given"}
    assert given == {"rto_min", "fast_rounds"}


@pytest.mark.parametrize("key", FIELDS)
def test_any_setting_at_its_limits_is_laid_out_or_refused_in_a_sentence(key):
    for value in EXTREMES:
        try:
            Packet(hosts=4, topology="single", transport=f"tcp:{key}={value}").prepare(FLOWS, seed=1)
        except WeftError as error:
            assert "\n" not in str(error), value
        except Exception as error:
            pytest.fail(f"{key}={value}: {type(error).__name__}: {error}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tcp:transport=foo", "transport must be one of tcp, dctcp, mptcp, ndp, dcqcn, not 'foo'"),
        ("tcp:rto_min=2parsecs",
         "rto_min: a time must be in one of ps, ns, us, µs, ms, s, not 'parsecs' as in '2parsecs'"),
        ("tcp:sack=perhaps", "sack must be true or false, not 'perhaps'"),
        ("tcp:initial_window=ten", "initial_window must be a whole number, not 'ten'"),
        ("tcp:share=inf", "share must be from 0 to 1048576, not inf"),
        ("tcp:share=nan", "share must be from 0 to 1048576, not nan"),
        ("tcp:header=-1", "header must be 0 or more, not -1"),
        ("tcp:ack_delay=-1us", "ack_delay must be 0 or more, not -1000000"),
        ("dcqcn:rate_step=-1Mbps", "rate_step must be 0 or more, not -1000000"),
        ("tcp:buffer=1e10", "buffer must be at most 10^9, not 10000000000"),
        ("tcp:rto_max=9e18ps", "rto_max must be at most 53 days, not '9e+06 s'"),
        ("tcp:prefer=256", "prefer must be at most 255, which is always, not 256"),
        ("tcp:buffer", "a change to tcp must be name=value, not 'buffer'"),
        ("tcp:,", "a change to tcp must be name=value, not ''"),
        ("tcp:colour=red", "a setting of tcp must be one that transports have, not 'colour'"),
        ("tcp:xon=20", "xon must be at most xoff, 15, not 20"),
        ("mptcp:penalise=true",
         "penalise must come with opportunistic, whose retransmissions it follows, not alone"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_meant_is_named(text, sentence):
    with pytest.raises(BadInput) as said:
        settings(text)
    assert str(said.value) == sentence


def test_what_a_fabric_sets_itself_is_above_its_preset():
    fabric = Packet(hosts=4, topology="single", transport="dctcp:buffer=50,mark_from=20", buffer=70, mark=40, rto=10**9)
    assert (fabric.settings.buffer, fabric.settings.mark_from) == (70, 40)
    assert (fabric.settings.rto_min, fabric.settings.rto_first) == (10**9, 10**9)
    assert Packet(hosts=4, topology="single", transport="dctcp:buffer=50,mark_from=20").settings.buffer == 50


def test_every_setting_says_what_it_is_and_where_its_default_is_from():
    for field in fields(Settings):
        assert field.metadata["help"], field.name
        assert field.metadata.get("origin") or field.name in ("transport", "source"), field.name
