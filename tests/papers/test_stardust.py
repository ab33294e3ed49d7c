"""Stardust's figures: small versions can be run, measured, checked and drawn, and their checks can fail."""

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import pytest

from weft.cli import main
from weft.fabrics.network.settings import settings as preset
from weft.papers import Answer, figure
from weft.papers.stardust import SHOWN, SYSTEMS, fig09, fig10b, fig10c, nics, single
from weft.units import Gbps
from weft.workload import Incast, Shorts


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


@pytest.mark.parametrize(
    "name",
    [
        *("7", "8", "12", "10c", "incast"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("9", "10a", "10b", "nic", "single")),
    ],
)
def test_the_page_says_what_the_figure_prints(name, capsys):
    page = (Path(__file__).parents[2] / "docs/papers/stardust.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n\$ weft (figure [^\n]+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ((command, said),) = (
        (one, said) for one, said in blocks if one.split()[1] == f"stardust/{name}" and "paper" not in one
    )
    assert main([*command.split(), "-q"]) < 2
    assert capsys.readouterr().out == said


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


@pytest.fixture(scope="module")
def pair():
    study = fig10b.study("small")
    short = Shorts(flows=4, bytes=10**6, gap=10**8, background="long", drain=8 * 10**9)
    fabrics = [replace(fabric, hosts=16) for fabric in study.fabrics[:2]]
    return fig10b.measure(replace(study, fabrics=fabrics, workloads=[short]).run())


def test_flows_between_a_pair_are_timed_from_when_they_could_begin(pair):
    assert [(row["system"], row["bytes"], row["flows"]) for row in pair] == [
        ("Stardust", 10**6, 4), ("DCTCP", 10**6, 4),
    ]  # fmt: skip
    assert all(row["least_us"] < row["p50_us"] <= row["max_us"] < 4000 for row in pair)


def test_a_stardust_that_is_slow_between_a_pair_is_noticed(pair):
    fast = [{**row, "system": system, "max_us": 900, "mean_us": mean} for row, system, mean in (
        (pair[0], "Stardust", 800), (pair[1], "DCTCP", 900), (pair[1], "MPTCP", 1900), (pair[1], "DCQCN", 1000),
    )]  # fmt: skip
    slow = [{**row, "max_us": 1100, "mean_us": 950} if row["system"] == "Stardust" else row for row in fast]
    for claim in fig10b.CLAIMS:
        assert claim.check(fast)[0] is True and claim.check(slow)[0] is False
    assert fig10b.CLAIMS[0].check([{**fast[0], "flows": 0}])[0] == "not run"


def test_the_paper_s_systems_are_configurations():
    for ports, each in ((960, 40), (1152, 48)):
        fabric = single.system(ports, 384)
        assert (fabric.edges, fabric.per_adapter, fabric.wiring.elements) == (24, each, (12,))
        assert fabric.wire_size == 384 + 20 and not fabric.packing
    tor, nic = nics.networks(12)
    assert tor.nodes == nic.nodes == 432 and tor.wiring.elements == (72, 36)
    assert nic.edges == 432 and nic.lanes == 1 and sum(nic.wiring.elements) == 72 + 72 + 36


def test_a_packet_of_the_single_tier_system_takes_no_less_than_its_lines_do():
    row = single.row_of(960, False, 512, 10 * 10**6)
    assert row["cells"] == 3 and row["lost"] == 0
    assert row["min_us"] > 2 * (512 + 20) * 8 / 10_000 and row["mean_us"] < row["max_us"] < 8
