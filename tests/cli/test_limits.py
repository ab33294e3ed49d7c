"""Flags at their limits: every flag of every command that needs no run takes a value, or says a sentence."""

import json
import re

import pytest

VALUES = ("0", "-1", "9223372036854775808", "nan", "é", "1ps")
COMMANDS = {
    ("cost", "shoal"): (), ("cost", "stardust"): (), ("cost", "merchant"): (), ("cost", "fpga"): (),
    ("cost", "tdma"): (), ("cost", "compare"): (), ("schedule", "shoal"): ("--nodes", "8"),
    ("schedule", "tdma"): ("--hosts", "8"),
    ("wire", "shoal", "encode"): ("--dst", "1", "--src", "2"), ("wire", "shoal", "decode"): ("00",),
    ("wire", "pfc", "encode"): (), ("wire", "pfc", "decode"): ("00" * 60,),
    ("presets",): (), ("figure",): ("none/1",), ("show",): ("none",), ("rerun",): ("none",), ("resume",): ("none",),
    ("sweep",): ("none.toml",), ("stress",): ("none.toml",), ("fabrics",): (), ("workloads",): (),
}  # fmt: skip


def without(flag, tokens):
    """`tokens` but for `flag` and its value."""
    tokens = list(tokens)
    if flag in tokens:
        place = tokens.index(flag)
        del tokens[place : place + 2]
    return tokens


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_any_value_of_any_flag_is_taken_or_refused_in_a_sentence(weft, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("weft.study.run", lambda *a, **k: pytest.fail("run"))
    text = weft(*command, "--help").out
    flags = sorted(set(re.findall(r"--[a-z][a-z-]+", text)) - {"--help", "--version", "--output", "--plot", "--csv"})
    refused = 0
    for flag in flags:
        for value in VALUES:
            said = weft(*command, *without(flag, COMMANDS[command]), flag, value)
            assert said.code in (0, 2), (flag, value, said)
            if said.code == 2:
                refused += 1
                assert said.out == "", (flag, value)
                assert said.err.startswith("weft "), (flag, value, said.err)
                assert said.err.count("\n") == 1, (flag, value, said.err)
            else:
                assert said.err == "", (flag, value, said.err)
    assert refused or not flags


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_word_too_many_is_refused_in_a_sentence(weft, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = weft(*command, *COMMANDS[command], "one", "two", "three")
    assert (said.code, said.out) == (2, "")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("command", [command for command in COMMANDS if command[0] == "cost"], ids=" ".join)
def test_a_cost_in_json_has_no_number_that_json_lacks(weft, command):
    def no_such(constant):
        raise AssertionError(constant)

    said = weft(*command, "--json")
    assert said.code == 0
    assert json.loads(said.out, parse_constant=no_such)
