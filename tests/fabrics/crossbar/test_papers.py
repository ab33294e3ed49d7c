"""The figures of the FPGA paper: every one can be run, checked and drawn."""

import importlib
from dataclasses import replace

import pytest

from weft.errors import BadInput
from weft.papers.fpga import FIGURES, depth, latency, measure, tabulate, text


def short(run):
    """The same run, of a hundred slots."""
    return run._replace(traffic=replace(run.traffic, slots=100, warmup=0))


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in ("latency", "depth", "loads")])
def test_every_figure_can_be_measured_checked_and_drawn(name, tmp_path):
    figure = importlib.import_module(f"weft.papers.fpga.{name}")
    table = measure(short(run) for run in figure.study("small") if run.fabric.ports <= 16)
    for claim in figure.CLAIMS:
        holds, measured = claim.check(table)
        assert holds in (True, False) and measured
    figure.draw(table).save(tmp_path / "figure.svg")
    assert (tmp_path / "figure.csv").exists()
    assert text(table, figure.COLUMNS).count("\n") == len(table)


def test_every_run_of_every_study_can_be_described():
    for name in ("loads", "blocking", "unbalanced", "iterations", "depth", "sharing"):
        for scale in ("small", "paper"):
            runs = importlib.import_module(f"weft.papers.fpga.{name}").study(scale)
            assert len({tuple(run.labels.items()) for run in runs}) == len(runs) > 10


def test_a_depth_without_loss_is_the_least_with_which_a_run_loses_nothing():
    for row in depth.least(5000, [(8, 0.5), (8, 0.95)]):
        near = [depth._attempt(8, row["load"], row["slots"], row["depth"] - less) for less in (1, 0)]
        lost = [tried["lost"] for tried in measure(near)]
        assert lost[0] > 0 == lost[1]


def test_a_search_says_when_the_deepest_queues_lose_cells_too(monkeypatch):
    monkeypatch.setattr(depth, "DEEPEST", 2)
    (row,) = depth.least(5000, [(8, 0.99)])
    assert row == {"name": "gcq", "ports": 8, "load": 0.99, "slots": 5000, "depth": 3}


def test_runs_of_a_figure_are_kept_and_not_run_again(tmp_path, monkeypatch):
    from weft.papers.fpga import blocking

    monkeypatch.setattr(blocking, "study", lambda scale, study=blocking.study: [short(run) for run in study(scale)[:3]])
    seen = []
    first = tabulate(blocking, folder=tmp_path, progress=lambda shares, found: seen.append(found))
    again = tabulate(blocking, folder=tmp_path, workers=2, progress=lambda shares, found: seen.append(found))
    assert first == again == tabulate(blocking)
    assert (seen[0], seen[-1]) == (0, 3) and len(list((tmp_path / "runs").glob("crossbar-*"))) == 3


def test_latency_reproduces_the_entries_that_eq_6_fits_and_no_others():
    rows = [row for row in latency.table() if row["design"] == "smislip"]
    exact = [
        (row["ports"], row["bits"]) for row in rows if row["stages_ns"] == pytest.approx(row["printed_ns"], rel=2e-4)
    ]
    assert exact == [(8, 256), (32, 1280), (64, 256)]
    assert all(row["stages_ns"] == pytest.approx(row["formula_ns"], rel=1e-4) for row in rows)


def test_three_designs_share_the_best_aggregate_bandwidth():
    claim = next(claim for claim in latency.CLAIMS if claim.id == "fpga.c08")
    assert claim.check([]) == (
        False,
        "line rate times ports of Table IV, 1.6 Tb/s at most: smislip 32 x 50G, gcq 64 x 25G, gcq 32 x 50G",
    )


def test_a_scale_that_does_not_exist_is_named():
    with pytest.raises(BadInput) as raised:
        depth.study("large")
    assert str(raised.value) == "scale must be small or paper, not 'large'"
