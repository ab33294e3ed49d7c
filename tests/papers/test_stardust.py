"""Stardust's incast: a small version can be run, measured, checked and drawn, and its checks can fail."""

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import pytest

from weft.cli import main
from weft.fabrics.network.settings import settings as preset
from weft.papers import Answer, figure
from weft.papers.stardust import SHOWN, SYSTEMS, fig10c
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


def test_claims_are_answered_and_those_about_stardust_itself_are_not_run(table):
    claims = Answer("stardust/10c", "small", fig10c, table, []).claims
    assert [claim["verdict"] for claim in claims][1:] == ["not run", "not run"]
    assert claims[0]["verdict"] == "consistent"  # on a smaller tree it cannot be more
    assert all("Stardust is not run" in claim["ours"] for claim in claims[1:])


def test_a_dctcp_that_ends_after_mptcp_is_noticed(table):
    other = {"DCTCP": "MPTCP", "MPTCP": "DCTCP", "DCQCN": "DCQCN", "NDP": "NDP"}
    swapped = [{**row, "system": other[row["system"]]} for row in table]
    verdicts = {fig10c.CLAIMS[0].check(rows)[0] for rows in (table, swapped)}
    assert verdicts == {True, False}


@pytest.mark.parametrize(("scale", "hosts"), [("small", 54), ("paper", 432)])
def test_the_papers_scale_is_the_papers_tree(scale, hosts):
    study = fig10c.study(scale)
    assert {fabric.hosts for fabric in study.fabrics} == {hosts}
    assert {(fabric.mtu, fabric.topology) for fabric in study.fabrics} == {(9000, "fattree")}
    assert max(workload.fan_in for workload in study.workloads) < hosts


def test_the_page_says_what_the_figure_prints(capsys):
    page = (Path(__file__).parents[2] / "docs/papers/stardust.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^```console\n\$ weft figure ([^\n]+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert list(said) == ["stardust/10c", "stardust/10c --scale paper"]
    assert main(["figure", "stardust/10c", "-q"]) == 0
    assert capsys.readouterr().out == said["stardust/10c"]


def test_every_cause_that_is_looked_for_can_be_built():
    path = Path(__file__).parents[2] / "verification/utilisation.py"
    spec = importlib.util.spec_from_file_location("utilisation", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, changes in module.CHANGES.items():
        built = [preset(f"{name}@stardust-nsdi19" + (f":{change}" if change else "")) for change in changes]
        assert len(set(built)) == len(changes)
