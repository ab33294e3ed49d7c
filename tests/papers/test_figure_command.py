"""`weft figure`: what it lists, prints, saves and refuses."""

import json
from dataclasses import replace

import pytest

from weft.cli import main
from weft.papers import MODULES
from weft.papers.shoal import fig10


@pytest.fixture
def weft(capsys):
    def call(*tokens):
        capsys.readouterr()
        code = main([str(token) for token in tokens])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def quick(monkeypatch):
    """Fig. 9 for 300 us."""
    from weft.papers.shoal import fig09

    whole = fig09.study()
    short = replace(whole, workloads=[replace(whole.workloads[0], duration=300_000_000)])
    monkeypatch.setattr(fig09, "study", lambda scale: short)


def test_all_figures_are_listed_with_a_sentence_each(weft):
    code, out, _ = weft("figure")
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == list(MODULES)
    assert all(len(line.split()) > 5 for line in lines)
    assert [item["figure"] for item in json.loads(weft("figure", "--json")[1])["figures"]] == list(MODULES)


def test_json_has_series_claims_and_fingerprints(weft, quick):
    code, out, err = weft("figure", "shoal/9", "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert list(data) == ["figure", "scale", "series", "claims", "fingerprints"]
    assert (data["figure"], data["scale"], len(data["fingerprints"])) == ("shoal/9", "small", 8)
    assert list(data["series"][0]) == ["name", "x", "y", "points"]
    assert list(data["claims"][0]) == ["id", "printed", "ours", "verdict"]


def test_a_figure_that_is_drawn_nowhere_says_so(weft):
    said = weft("figure", "shoal/table1")
    assert said[2].endswith("nothing drawn: with -o DIR the picture and its numbers are put there\n")
    assert "nothing drawn" not in "".join(weft("figure", "shoal/table1", "--json")[1:])


def test_a_figure_is_saved_and_its_runs_are_found_again(weft, quick, tmp_path):
    first = weft("figure", "shoal/9", "-o", tmp_path, "-q")
    assert (tmp_path / "shoal-9-small.svg").exists() and (tmp_path / "shoal-9-small.csv").exists()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/result.json")}
    second = weft("figure", "shoal/9", "-o", tmp_path, "-q")
    assert len(kept) == 8 and first[:2] == second[:2]
    assert kept == {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/result.json")}


def test_the_other_papers_figures_answer_the_same_way(weft):
    code, out, _ = weft("figure", "fpga/latency", "--json")
    data = json.loads(out)
    assert code == 1 and data["figure"] == "fpga/latency"
    assert {claim["verdict"] for claim in data["claims"]} == {"printed", "differs"}
    assert data["series"][0]["ports"] == 8


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_claim_that_differs_makes_the_command_end_with_1(weft, monkeypatch, json):
    from weft.papers.shoal import table1

    assert weft("figure", "shoal/table1", *json)[0] == 0
    monkeypatch.setattr(table1, "WITHIN", 0)
    assert weft("figure", "shoal/table1", *json)[0] == 1


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (["shoal/99"], f"weft figure: a figure must be one of {', '.join(MODULES)}, not 'shoal/99'\n"),
        (["shoal/9", "--scale", "large"], "weft figure: scale must be small or paper, not 'large'\n"),
        (["shoal/9", "--workers", "0"], "weft figure: workers must be from 1 to 1024, not 0\n"),
    ],
)
def test_what_cannot_be_meant_is_said_in_a_sentence(weft, tokens, sentence):
    assert weft("figure", *tokens) == (2, "", sentence)


@pytest.mark.parametrize("name", ["shoal/9", "shoal/table1"])
def test_a_file_in_the_place_of_the_folder_is_named(weft, tmp_path, name):
    (tmp_path / "file").write_text("")
    assert weft("figure", name, "-q", "-o", tmp_path / "file") == (
        2, "", f"weft figure: {tmp_path / 'file'} must be a folder, not a file\n",
    )  # fmt: skip


def test_the_rules_of_fig_10_have_different_names():
    assert len(set(fig10.NAMES.values())) == len(fig10.NAMES)
