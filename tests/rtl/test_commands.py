"""`weft rtl` says what it did, as text and as JSON, and refuses what it cannot do in one sentence."""

import json

import pytest

from weft.cli import main


@pytest.fixture
def weft(capsys):
    def call(*tokens):
        capsys.readouterr()
        code = main([str(token) for token in tokens])
        return code, *capsys.readouterr()

    return call


SMALL = ("--ports", 4, "--depth", 2, "--width", 16)


def test_the_designs_are_listed(weft):
    code, out, _ = weft("rtl", "list")
    assert code == 0 and out.splitlines()[0].startswith("islip ")
    data = json.loads(weft("rtl", "list", "--json")[1])
    assert {one["name"] for one in data["designs"]} >= {"islip", "crossbar"}
    assert "iterations" in weft("rtl", "list", "islip")[1]


def test_a_check_prints_what_was_compared(weft):
    code, out, _ = weft("rtl", "check", "crossbar", *SMALL, "--slots", 200, "--seed", 1)
    assert code == 0 and "gates agree with the kernel over 200 slots and the reference over 200 slots" in out


def test_a_check_as_json_has_what_was_promised(weft):
    code, out, _ = weft("rtl", "check", "crossbar", *SMALL, "--cycles", 300, "--seed", 1, "--json")
    data = json.loads(out)
    assert code == 0 and data["agree"] is True and data["first_difference"] is None
    assert data["design"] == "crossbar-voq" and data["slots"] == 300 and data["cells"] > 900
    assert data["cycles_per_s"] > 0 and data["build_s"] >= 0


def test_verilog_is_written_with_the_names_of_the_ports(weft, tmp_path):
    code, out, _ = weft("rtl", "emit", "islip", "--ports", 4)
    assert code == 0 and "module islip(" in out and "requests__3" in out
    assert weft("rtl", "emit", "islip", "--ports", 4, "-o", tmp_path / "islip.v")[0] == 0
    assert (tmp_path / "islip.v").read_text() == out


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (("list", "abacus"), "weft rtl list: a design must be one of islip, crossbar"),
        (("check", "crossbar", "--ports", 65), "weft rtl check: ports must be from 2 to 64 in gates, not 65\n"),
        (
            ("check", "crossbar", "--engine", "steam"),
            "weft rtl check: engine must be one of verilator, amaranth, not 'steam'\n",
        ),
        (("emit", "islip", "--ports", "many"), "weft rtl emit: ports must be a whole number, not 'many'\n"),
    ],
)
def test_bad_input_is_one_sentence(weft, tokens, says):
    code, out, err = weft("rtl", *tokens)
    assert code == 2 and out == "" and err.startswith(says) and err.count("\n") == 1


def test_every_design_and_verb_is_on_the_page():
    from pathlib import Path

    from weft.cli.rtl import VERBS
    from weft.rtl.designs import DESIGNS

    page = (Path(__file__).parents[2] / "docs/rtl.md").read_text(encoding="utf-8")
    for name in DESIGNS:
        assert f"`{name}" in page, name
    for verb in VERBS:
        assert f"`weft rtl {verb} " in page, verb


@pytest.mark.parametrize("design", [("shoal-nic", "--failures"), ("crossbar", "--buffers", "gcq"), ("eep",)])
def test_every_signal_in_the_verilog_has_a_name(weft, design):
    code, out, _ = weft("rtl", "emit", *design, *(("--ports", 4) if design[0] != "shoal-nic" else ("--nodes", 5)))
    assert code == 0 and "endmodule" in out and "$signal" not in out
