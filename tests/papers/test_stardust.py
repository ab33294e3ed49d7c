"""Stardust's figures: small versions can be run, measured, checked and drawn, and their checks can fail."""

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import pytest

from weft.cli import main
from weft.fabrics.network.settings import settings as preset
from weft.papers import Answer, figure
from weft.papers.stardust import SHOWN, SYSTEMS, fig09, fig10c
from weft.units import Gbps
from weft.workload import Incast


@pytest.fixture(scope="module")
def table():
    study = fig10c.study("small")
    fabrics = [replace(fabric, hosts=16) for fabric in study.fabrics]
    workloads = [Incast(fan_in=m, bytes=450_000) for m in (1, 15)]
    return fig10c.measure(replace(study, fabrics=fabrics, workloads=workloads).run())


def test_every_network_is_run_with_every_number_of_senders(table):
    assert {(row["system"], row["senders"]) for row in table} == {(name, m) for name in SYSTEMS for m in (1, 15)}
    assert set(SHOWN) <= set(SYSTEMS)


def test_no_incast_ends_before_the_link_to_its_receiver_allows(table):
    for row in table:
        assert row["first_ms"] <= row["last_ms"] >= row["optimum_ms"]
        assert row["optimum_ms"] > 0.36 * row["senders"]  # 450 KB at 10 Gb/s, and headers
    ndp = next(row for row in table if (row["system"], row["senders"]) == ("NDP", 15))
    assert ndp["last_ms"] < 1.05 * ndp["optimum_ms"] and ndp["drops"] == 0


def test_the_figure_is_drawn_and_saved_with_its_points(table, tmp_path):
    assert figure("stardust/10c") is fig10c
    fig10c.draw(table).save(tmp_path / "figure.svg")
    lines = (tmp_path / "figure.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * len(table) + 2


def test_claims_are_answered_and_stardust_is_fair_and_loses_nothing(table):
    claims = Answer("stardust/10c", "small", fig10c, table, []).claims
    verdicts = [claim["verdict"] for claim in claims]
    assert verdicts[0] == verdicts[2] == verdicts[3] == "consistent"  # on a smaller tree it cannot be more
    ours = next(row for row in table if (row["system"], row["senders"]) == ("Stardust", 15))
    assert ours["spread"] < 1.1 and ours["last_ms"] < 1.05 * ours["optimum_ms"] and ours["drops"] == 0


def test_a_stardust_that_is_unfair_or_drops_is_noticed(table):
    worse = [{**row, "spread": 99, "drops": 1} if row["system"] == "Stardust" else row for row in table]
    for claim in fig10c.CLAIMS[2:]:
        assert claim.check(table)[0] and not claim.check(worse)[0]


def test_a_dctcp_that_ends_after_mptcp_is_noticed(table):
    other = {"DCTCP": "MPTCP", "MPTCP": "DCTCP"}
    swapped = [{**row, "system": other.get(row["system"], row["system"])} for row in table]
    verdicts = {fig10c.CLAIMS[0].check(rows)[0] for rows in (table, swapped)}
    assert verdicts == {True, False}


@pytest.mark.parametrize(("scale", "hosts"), [("small", 54), ("paper", 432)])
def test_the_papers_scale_is_the_papers_tree(scale, hosts):
    study = fig10c.study(scale)
    assert {fabric.hosts for fabric in study.fabrics} == {hosts}
    assert {(fabric.mtu, getattr(fabric, "topology", "fattree")) for fabric in study.fabrics} == {(9000, "fattree")}
    assert study.fabrics[0].wiring.elements == {54: (18, 9), 432: (72, 36)}[hosts]
    assert max(workload.fan_in for workload in study.workloads) < hosts


@pytest.mark.parametrize("name", ["7", "8", "12", pytest.param("10c", marks=pytest.mark.long)])
def test_the_page_says_what_the_figure_prints(name, capsys):
    page = (Path(__file__).parents[2] / "docs/papers/stardust.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^```console\n\$ weft figure ([^\n]+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert main(["figure", f"stardust/{name}", "-q"]) < 2
    assert capsys.readouterr().out == said[f"stardust/{name}"]


@pytest.mark.parametrize("name", ["7", "8", "12"])
def test_a_figure_that_is_computed_is_drawn_and_its_checks_can_fail(name, tmp_path):
    module = figure(f"stardust/{name}")
    table = module.table("small")
    module.draw(table).save(tmp_path / "figure.svg")
    nothing = [{key: value if key in ("fabric", "bytes") else 0.5 for key, value in row.items()} for row in table]
    held = [claim for claim in module.CLAIMS[:2] if claim.check(table)[0] is True]
    assert held or name == "8"
    assert all(claim.check(nothing)[0] is not True for claim in held)


def test_the_networks_of_figure_9_are_the_paper_s():
    usual, over = fig09.fabrics("paper")
    assert usual.wiring.elements == (128, 64) and usual.nodes * usual.edges == 131_072
    assert over.link == 1.2 * usual.link and usual.link * 2 == 32 * 50 * Gbps


def test_every_cause_that_is_looked_for_can_be_built():
    path = Path(__file__).parents[2] / "verification/utilisation.py"
    spec = importlib.util.spec_from_file_location("utilisation", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, changes in module.CHANGES.items():
        built = [preset(f"{name}@stardust-nsdi19" + (f":{change}" if change else "")) for change in changes]
        assert len(set(built)) == len(changes)
