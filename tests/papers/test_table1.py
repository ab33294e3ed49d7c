"""Table 1 of Shoal: its counts are those of the failures themselves, and its checks can fail."""

import numpy as np
import pytest

import weft
from weft.failures import Outage
from weft.papers import answer, judge
from weft.papers.shoal import table1
from weft.schedule.outage import cuts, plan, unpack, unused
from weft.schedule.rotation import rounds
from weft.topology.circuit import CircuitClos
from weft.units import us


def every(component, nodes, ports):
    """Every outage of one component, and the nodes that it cuts off."""
    clos = CircuitClos(nodes=nodes, ports=ports)
    way = "upward" if component.endswith(table1.ONE) else None
    kind = component.removesuffix(table1.ONE)
    if kind == "node-leaf link":
        return [(Outage("link", (i,), way=way), [i]) for i in range(nodes)]
    if kind == "leaf switch":
        return [(Outage("leaf", (a,)), range(a * clos.half, (a + 1) * clos.half)) for a in range(clos.leaves)]
    if kind == "spine switch":
        return [(Outage("spine", (x,)), []) for x in range(clos.spines)]
    return [(Outage("uplink", (a, u), way=way), []) for a in range(clos.leaves) for u in range(clos.half)]


@pytest.mark.parametrize(("nodes", "ports"), [(8, 4), (32, 8), (24, 12)])
def test_the_counts_are_those_of_failing_each_component_in_turn(nodes, ports):
    schedule = rounds(nodes)
    for row in table1._rows(nodes, ports):
        shares = []
        for outage, gone in every(row["component"], nodes, ports):
            lost = unpack(cuts(schedule, [outage], 1, ports).cut[0], nodes)
            dark, kept = unused(schedule, lost), np.setdiff1d(np.arange(nodes), list(gone))
            slots = nodes - 1
            shares.append([
                lost.sum() / (nodes * slots), dark.sum() / (nodes * slots),
                lost[:, kept].sum() / (len(kept) * slots), dark[:, kept].sum() / (len(kept) * slots),
            ])  # fmt: skip
        ours = [row[key] for key in ("lost", "unused", "lost_survivors", "unused_survivors")]
        np.testing.assert_allclose(ours, np.mean(shares, axis=0), err_msg=row["component"])


@pytest.mark.parametrize("what", ["spine 0", "leaf 1", "link 3", "uplink 0.1", "uplink 0.1 upward"])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_run_leaves_unused_what_the_table_counts(what, channels):
    rack = weft.Shoal(nodes=18, channels=channels, ports=6, fail=what)
    summary = weft.run(rack, weft.Permutation(duration=100 * us), seed=1).summary()
    lost = unpack(cuts(rack.rounds, plan(what, rack.rounds, 6), rack.slot_time, 6).cut[0], 18)
    epochs = 100 * us / rack.epoch
    assert summary["cells"]["failed_slots"] == pytest.approx(unused(rack.rounds, lost).sum() * epochs, rel=0.01)


@pytest.fixture(scope="module")
def table():
    return table1.table()


def test_one_way_of_counting_serves_all_four_formulas(table):
    for claim in table1.CLAIMS:
        assert judge(claim, table, "paper")["verdict"] == "consistent"


def test_no_count_of_all_slots_does(table):
    for key in ("lost", "unused", "lost_survivors"):
        doctored = [{**row, "unused_survivors": row[key]} for row in table]
        assert "differs" in {judge(claim, doctored, "paper")["verdict"] for claim in table1.CLAIMS}


def test_a_leaf_that_failed_whole_costs_its_neighbours_its_nodes(table):
    for row in table:
        if row["component"] == "leaf switch":
            assert row["unused_survivors"] == pytest.approx((row["ports"] // 2) / (row["nodes"] - 1))


def test_every_check_fails_where_the_paper_would_be_wrong(table):
    doctored = [{**row, "unused_survivors": 2 * row["printed"]} for row in table]
    assert {judge(claim, doctored, "paper")["verdict"] for claim in table1.CLAIMS} == {"differs"}


def test_the_table_answers_as_a_figure_does(tmp_path):
    data = answer("shoal/table1").data()
    assert (data["figure"], data["fingerprints"], len(data["claims"])) == ("shoal/table1", [], 4)
    printed = next(line for line in data["series"] if (line["name"], line["y"]) == ("spine switch", "printed"))
    assert printed["points"] == [[8, 1.0], [32, 0.5], [128, 0.25], [512, 0.125]]
    table1.draw(table1.table()).save(tmp_path / "table.svg")
    assert (tmp_path / "table.csv").read_text().count("\n") > 10
