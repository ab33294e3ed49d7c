"""A figure under several seeds: each is measured and judged apart, and disagreement is not resolved."""

import json
from dataclasses import replace

import pytest

from weft.cli import figure as cli_figure
from weft.cli import main
from weft.errors import BadInput, WeftError
from weft.papers import Answer, answer, fpga, several
from weft.papers.fpga import iterations
from weft.papers.shoal import fig09, fig16, repair
from weft.papers.tdma import fig10 as later
from weft.papers.tdma import rtt
from weft.units import show_number, us


@pytest.fixture
def quick(monkeypatch):
    """Fig. 9 for 300 us, with two sizes of cells."""
    whole = fig09.study()
    short = replace(whole, fabrics=whole.fabrics[::7], workloads=[replace(whole.workloads[0], duration=300 * us)])
    monkeypatch.setattr(fig09, "study", lambda scale: short)
    return short


def queues(cells):
    """A table of Fig. 16, as the paper has it but for the longest queue."""
    row = {"node_cells": 336, "reorder_kb": 200.0, "broken": 0}
    return [{**row, "load_50": 2 * x, "load_100": x, "queue_cells": cells} for x in (0.1, 0.5)]


def verdicts(*tables):
    mean = several.mean(list(tables))
    return [c["verdict"] for c in Answer("shoal/16", "paper", fig16, mean, [], (1, 2, 3)[: len(tables)], tables).claims]


def test_a_claim_has_the_verdict_that_all_seeds_give():
    assert verdicts(queues(11), queues(11), queues(10))[0] == "reproduced"
    assert verdicts(queues(20), queues(30))[0] == "differs"


def test_seeds_that_reproduce_and_are_consistent_are_consistent():
    assert verdicts(queues(11), queues(13))[0] == "consistent"


def test_one_doctored_seed_leaves_its_claim_and_no_other_unresolved():
    assert verdicts(queues(11), queues(11), queues(20)) == ["not resolved", *["reproduced"] * 3]
    mean = several.mean([queues(9), queues(9), queues(20)])  # a check of the means would not see it
    assert fig16.CLAIMS[0].check(mean)[0] == "consistent"


def test_what_each_seed_gave_is_said():
    found = Answer("shoal/16", "paper", fig16, [], [], (4, 7), (queues(11), queues(20))).claims[0]
    assert found["ours"].startswith("seed 4: 11 up to load 1") and "; seed 7: 20 up to load 1" in found["ours"]


def test_numbers_become_means_with_half_of_their_interval():
    tables = [[{"name": "a", "x": x, "same": 3, "none": None, "deep": {"p": x}, "list": [x]}] for x in (1, 2, 3)]
    assert several.mean(tables) == [{"name": "a", "x": 2.0, "same": 3, "none": None, "deep": {"p": 2.0}, "list": [1]}]
    (off,) = several.spread(tables)
    assert list(off) == ["x"] and off["x"] == pytest.approx(4.3027 / 3**0.5, rel=1e-4)  # Student's t with 2 degrees


def test_a_value_that_one_seed_lacks_is_the_mean_of_the_others():
    tables = [[{"x": None}], [{"x": 1.0}], [{"x": 3.0}]]
    assert several.mean(tables) == [{"x": 2.0}] and several.spread(tables)[0]["x"] == pytest.approx(12.706, rel=1e-4)


@pytest.mark.parametrize("other", [[], [{"name": "b"}]])
def test_rows_of_other_things_are_not_put_together(other):
    with pytest.raises(WeftError, match="of several seeds must"):
        several.mean([[{"name": "a"}], other])


def test_every_seed_has_the_table_it_would_have_alone(quick):
    found = answer("shoal/9", seeds=(1, 2))
    alone = [fig09.measure(replace(quick, seeds=[seed]).run()) for seed in (1, 2)]
    assert list(found.tables) == alone and alone[0] != alone[1]
    assert found.table == several.mean(alone) and len(found.fingerprints) == 4
    assert answer("shoal/9", seeds=(2,)).table == alone[1]


def test_a_figure_that_pools_its_seeds_is_measured_once(quick, monkeypatch):
    monkeypatch.setattr(fig09, "study", lambda scale: replace(quick, seeds=[1, 2]))
    found = answer("shoal/9", seeds=(3, 4, 5))
    assert len(found.tables) == 1 and found.spread == [{}] * 6


def test_the_fpga_papers_tables_take_seeds_too(monkeypatch):
    few = iterations.study()[:2]
    monkeypatch.setattr(iterations, "study", lambda scale: few)
    tables = [fpga.measure(few, seed=seed) for seed in (1, 2)]
    monkeypatch.setattr(iterations, "CLAIMS", [])
    found = answer("fpga/iterations", seeds=(1, 2))
    assert list(found.tables) == tables and tables[0] != tables[1]


def test_what_is_repaired_is_what_the_seed_leaves_alive():
    made = repair.runs_of(16, 20 * us, seed=2)
    assert made.seeds == (2,)
    alive = [len(workload.alive(16, 2)) for workload in made.workloads[::2]]
    assert [fabric.nodes for fabric in made.fabrics[1::2]] == alive


def test_a_table_without_a_study_takes_seeds_if_anything_in_it_is_drawn(monkeypatch):
    monkeypatch.setattr(rtt, "OFFSETS", (0, 20))
    found = answer("tdma/10", seeds=(1, 2))
    assert list(found.tables) == [later.table(seed=1), later.table(seed=2)]
    assert answer("tdma/10").table == found.tables[0] != found.tables[1]
    assert found.spread[0]["mean_us"] > 0


def test_what_is_computed_takes_no_seeds():
    with pytest.raises(BadInput, match="seeds must be left out: shoal/table1 is computed, not run"):
        answer("shoal/table1", seeds=(1,))


@pytest.mark.parametrize(
    ("value", "off", "text"),
    [
        (82.67, 0.2137, "82.67 ± 0.21"), (87.4, 6.1e-05, "87.40 ± <0.01"), (0.9941, 6.9e-07, "0.9941 ± <0.0001"),
        (1075.3, 0.0024, "1,075 ± <1"), (12.0, 3.795, "12 ± 4"), (37614.2, 1234.5, "37,614 ± 1,234"),
        (0.6667, 2.8684, "0.6667 ± 2.868"), (1.5e-05, 2.3e-07, "1.500e-05 ± 2.300e-07"), (5, None, "5"),
    ],
)  # fmt: skip
def test_an_interval_has_the_digits_of_its_number(value, off, text):
    assert cli_figure._cell(value, off, show_number) == text


def test_the_command_prints_intervals(quick, capsys):
    main(["figure", "shoal/9", "--seeds", "1,2,2", "-q"])
    assert " ± " in capsys.readouterr().out
    main(["figure", "shoal/9", "--seeds", "1,2", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["seeds"] == [1, 2] and len(data["spread"]) == 2 and "gbps" in data["spread"][0]


@pytest.mark.parametrize("name", ["weft/seeds", "weft/map"])
def test_a_figure_about_the_spread_of_seeds_wants_two(name, tmp_path):
    with pytest.raises(BadInput) as said:
        answer(name, folder=tmp_path, seeds=(1,))
    assert str(said.value) == "seeds must be at least 2, of whose spread this figure speaks, not 1"
    assert list(tmp_path.iterdir()) == []
