"""The torus: its shape, what it refuses, what R2C2 promises, and what failures do to it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import weft
from weft import Packet, Poisson, Torus, Trace, cost
from weft.errors import BadInput, BadResult
from weft.fabrics.network.run import NetworkRun
from weft.fabrics.torus import bounds
from weft.fabrics.torus import state as st
from weft.hosts.flow import PATHS
from weft.topology.torus import Grid, shapes
from weft.units import Gbps, Mbps, ms, ns, s, us, wire_time
from weft.workload.flows import ENDLESS, Flows

SHAPES = [(2,), (7,), (2, 2), (3, 5), (8, 8), (2, 3, 4), (4, 4, 4), (2, 3, 2, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_port_leads_to_a_neighbour_and_back(shape):
    grid = Grid(shape)
    frm, to = grid.graph(1, 0).port_ends()
    for node in range(grid.nodes):
        for p in range(grid.degree):
            port = grid.port[node, p]
            assert frm[port] == node and to[port] == grid.to[node, p]
            assert grid.port[grid.to[node, p], grid.back[p]] == port ^ 1
            assert grid.distance(node, int(to[port])) == 1
    assert len({*grid.port.ravel().tolist()}) == grid.nodes * grid.degree == len(frm)


@pytest.mark.parametrize("shape", SHAPES)
def test_masks_of_a_whole_torus_are_those_that_a_search_finds(shape):
    grid = Grid(shape)
    links = np.ones(grid.port.size // 2, bool)
    searched = Grid(shape)._distances(links[grid.port >> 1])
    assert_array_equal(searched, grid.distance(np.arange(grid.nodes)[:, None], np.arange(grid.nodes)))
    toward = grid.toward()
    for target in range(grid.nodes):
        for node in range(grid.nodes):
            nearer = [p for p in range(grid.degree) if searched[target, grid.to[node, p]] < searched[target, node]]
            assert int(toward[target, node]) == sum(1 << p for p in nearer)


def test_routes_go_round_what_has_failed():
    fabric = Torus(dimensions=(4, 4), fail="node 5, link 0-1")
    toward = fabric.toward(fabric.alive(0, 0))
    assert toward[5].sum() == 0 and toward[:, 5].sum() == 0  # nobody reaches a dead node, nor it anybody
    others = [node for node in range(16) if node != 5]
    for a in others:
        for b in others:
            assert (toward[b, a] == 0) == (a == b)
    steps, node = 0, 0
    while node != 1:
        p = int(fabric.grid.picks[toward[1, node], 1])
        node, steps = int(fabric.grid.to[node, p]), steps + 1
    assert steps == 3


def test_dimension_order_finishes_a_dimension_before_it_begins_the_next():
    fabric = Torus(dimensions=(5, 5, 5), routing="dimension")
    grid, toward = fabric.grid, fabric.toward()
    for src, dst in ((0, 62), (7, 118), (124, 1)):
        node, seen = src, []
        while node != dst:
            assert grid.picks[toward[dst, node], 0] == 1
            p = int(grid.picks[toward[dst, node], 1])
            seen.append(int(grid.dimension[p]))
            node = int(grid.to[node, p])
        assert seen == sorted(seen) and len(seen) == grid.distance(src, dst)


# what it refuses


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dimensions": (8, 1, 8)}, r"^every dimension must be at least 2 nodes, not '1, as in 8x1x8'$"),
        ({"dimensions": (0, 8)}, r"^every dimension must be at least 2 nodes, not '0, as in 0x8'$"),
        ({"dimensions": "8x"}, r"^dimensions must look like 8x8x8, not '8x'$"),
        ({"dimensions": ()}, r"^dimensions must be 1 to 6 of them, not ''$"),
        ({"dimensions": (2,) * 7}, r"^dimensions must be 1 to 6 of them, not '2x2x2x2x2x2x2'$"),
        ({"dimensions": (100, 100, 100)}, r"^nodes must be at most 16,384, not '1,000,000'$"),
        (
            {"nodes": 500},
            r"^nodes must be the 512 of 8x8x8, not 500: shapes near that are 5x10x10 \(500\), .*$",
        ),
        ({"nodes": 63, "dimensions": (8, 8)}, r"not 63: shapes near that are 7x9 \(63\), "),
        ({"link": 7}, r"^link must divide among the 6 ports of a node to a part in a million, not 7 b/s: near it are"),
        ({"link": 100_003}, r"near it are 100002 b/s and 100008 b/s$"),
        ({"routing": "best"}, r"^routing must be one of minimal, dimension, valiant, chosen, not 'best'$"),
        ({"transport": "ndp"}, r"^transport must be r2c2, tcp or dctcp on a torus, not ndp$"),
        ({"transport": "r2d2"}, r"^transport must be a known preset, not 'r2d2'"),
        ({"transport": "tcp:queue=priority"}, r"drop-tail"),
        ({"headroom": 1.0}, r"^headroom must be from 0 to below 1, not 1.0$"),
        ({"weights": ()}, r"^weights must be 1 to 128 numbers, not \(\)$"),
        ({"fail": "node 512"}, r"^a node must be one of 0, 1, 2 … 511, not '512'$"),
        ({"fail": "link 0-9"}, r"^there must be a link 0-9 to fail, but the topology has none$"),
        ({"fail": "nod 3"}, r"a failure must look like .* not 'nod 3' \(near it: node"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_refused_in_a_sentence(given, said):
    with pytest.raises(BadInput, match=said):
        Torus(**given)


def test_shapes_near_a_number_of_nodes_have_sides_alike():
    assert shapes(512, 3)[0] == (8, 8, 8)
    assert shapes(500, 3)[0] == (5, 10, 10)
    assert shapes(7, 2)[0] == (2, 3)


def test_a_rate_that_does_not_divide_exactly_is_rounded_down_for_every_port():
    assert Torus().rate == 16_666_666_666
    assert Torus(dimensions=(4, 4)).rate == 25 * Gbps and Torus(dimensions=(2, 2)).rate == 50 * Gbps


# what it promises


def test_a_packet_alone_takes_the_ideal_time():
    fabric = Torus(dimensions=(8, 8, 8), broadcast=0)
    flows = Flows.of(nodes=512, src=[0], dst=[8 * 8 * 3 + 8 * 2 + 4], size=1000, start=0)
    run = fabric.prepare(flows)
    run.advance()
    size = 1000 + 32 + 38
    assert run.observe().finish[0] == 9 * (wire_time(size, fabric.rate) + 100 * ns)
    assert abs(int(fabric.ideal(flows)[0]) - run.observe().finish[0]) < 20  # rounded


def test_an_endless_flow_gets_all_its_paths_can_carry_but_the_headroom():
    flows = Flows.of(nodes=16, src=[0], dst=[10], size=10**7, start=0)  # two hops in either dimension: four ports
    fabric = Torus(dimensions=(4, 4), link=40 * Gbps, period=10 * us, headroom=0.1)
    assert bounds.fair_rates(fabric, flows)[0] == pytest.approx(36e9, rel=1e-5)  # a third is no whole part
    run = fabric.prepare(flows)
    run.advance()
    goodput = 10**7 * 8 * s / int(run.observe().finish[0])
    assert goodput == pytest.approx(36e9 * 1468 / 1538, rel=0.02)


def test_routes_in_a_checkpoint_must_be_those_that_failures_have_left():
    fabric = Torus(dimensions=(3, 3), fail="link 0-1 at 5us until 60us", converge=10 * us, period=5 * us)
    flows = Poisson(load=0.3, sizes="fixed:9KB", flows=60).draw(nodes=9, link=fabric.link, seed=1)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=20 * us)
    kept = run.freeze()
    fabric.thaw(flows, kept, seed=1)
    kept["run.toward"] = np.roll(kept["run.toward"], 1)  # round in circles, for ever
    with pytest.raises(BadResult, match=r"^toward of a checkpoint must be what the description says"):
        fabric.thaw(flows, kept, seed=1)


def test_what_a_torus_is_made_of_is_listed_and_what_it_costs_is_not_known():
    found = cost(Torus(dimensions=(4, 4, 4), link=60 * Gbps))
    assert found.parts == {"torus NIC of 6 x 10 Gbps": 64, "cable of 10 Gbps": 192} and not found.sums
    assert found.unknown == ("price, watts and space of torus NIC of 6 x 10 Gbps: no catalogue has one",)


def test_weights_priorities_and_demands_are_kept():
    flows = Flows.of(nodes=4, src=[0, 0], dst=[1, 1], size=10**6, start=0, klass=[0, 1])
    ring = Torus(dimensions=(4,), link=20 * Gbps, headroom=0.0)
    assert bounds.fair_rates(ring, flows).tolist() == [5 * Gbps, 5 * Gbps]
    assert bounds.fair_rates(replace(ring, weights=(1, 3)), flows).tolist() == [2500 * Mbps, 7500 * Mbps]
    assert bounds.fair_rates(replace(ring, weights=(1, 1), strict=True), flows).tolist() == [1, 10 * Gbps]
    assert bounds.fair_rates(replace(ring, demand=3 * Gbps), flows).tolist() == [3 * Gbps, 3 * Gbps]
    assert bounds.fair_rates(replace(ring, demands=(0, 3 * Gbps)), flows).tolist() == [7 * Gbps, 3 * Gbps]
    both = replace(ring, weights=(1, 1), strict=True, demand=8 * Gbps)
    assert bounds.fair_rates(both, flows).tolist() == [2 * Gbps, 8 * Gbps]


def test_a_flow_sends_no_faster_than_its_own_rate_and_others_get_the_rest():
    ring = Torus(dimensions=(4,), link=20 * Gbps, headroom=0.0, period=5 * us)
    flows = Flows.of(nodes=4, src=[0, 0, 0], dst=[1, 1, 1], size=10**6, start=0, rate=[0, 3 * Gbps, 1 * Gbps])
    assert bounds.fair_rates(ring, flows).tolist() == [6 * Gbps, 3 * Gbps, 1 * Gbps]
    assert bounds.fair_rates(replace(ring, demand=2 * Gbps), flows).tolist() == [2 * Gbps, 2 * Gbps, 1 * Gbps]
    run = ring.prepare(flows)
    run.advance()
    took = 1_000_000 * 8 / 1e9 / (ring.payload / ring.wire_size)  # alone, at its own rate
    assert run.observe().finish[2] / s == pytest.approx(took, rel=0.01)


@pytest.mark.parametrize(("fabric", "said"), [
    (Torus(dimensions=(4,), transport="tcp"),
     "flows with rates of their own must go under r2c2 on a torus, not 1 under tcp"),
    (Packet(hosts=4), "Packet must be given flows without rates of their own, not 1 that have one"),
])  # fmt: skip
def test_who_cannot_limit_a_flow_refuses_one_that_is(tmp_path, fabric, said):
    flows = Flows.of(nodes=4, src=[0, 1], dst=[1, 2], size=1000, start=0, rate=[1 * Gbps, 0])
    flows.to_csv(tmp_path / "trace.csv")
    with pytest.raises(BadInput) as refused:
        weft.run(fabric, Trace(path=tmp_path / "trace.csv"))
    assert str(refused.value) == said


def test_chosen_routes_carry_more_of_a_tornado_than_shortest_paths_and_as_much_of_neighbours():
    def carried(routing, away):
        fabric = Torus(dimensions=(8,), routing=routing, period=20 * us, choose=50 * us, tries=8, headroom=0.0)
        nodes = np.arange(8)
        flows = Flows.of(nodes=8, src=nodes, dst=(nodes + away) % 8, size=ENDLESS, start=0)
        run = fabric.prepare(flows, seed=1)
        run.advance(until=1 * ms)
        before = int(run.observe().received.sum())
        run.advance(until=2 * ms)
        seen = run.observe()
        return (int(seen.received.sum()) - before) * 8 * s / (1 * ms), seen.sections["r2c2"]

    shortest, _ = carried("minimal", 3)
    spread, _ = carried("valiant", 3)
    chosen, told = carried("chosen", 3)
    assert told["routes_switched"] > 0 and chosen > 1.1 * shortest and chosen > 0.95 * spread
    assert carried("chosen", 1)[0] == pytest.approx(carried("minimal", 1)[0], rel=0.01)


@pytest.mark.parametrize("routing", ["minimal", "dimension", "valiant"])
def test_no_port_is_promised_more_than_it_has_and_none_could_give_more(routing):
    from weft.fabrics.torus import kernel

    fabric = Torus(dimensions=(4, 4, 4), routing=routing)
    flows = Poisson(load=0.5, sizes="fixed:1MB", flows=300).draw(nodes=64, link=fabric.link, seed=3)
    run = bounds.known(fabric, flows)
    kernel.pour(run.state.world)
    left, part = run.state.left, 1 << 20
    assert (left >= 0).all()
    full = left < len(flows) * part  # what rounding leaves
    entries = run.state.entries[:300]
    for entry in entries:  # every flow crosses a port that is full
        if routing == "valiant":
            assert full.any()
        else:
            crossed = run.state.loads["port"][entry["first"] : entry["first"] + entry["count"]]
            assert full[crossed].any()


def test_a_path_number_is_divided_exactly_by_as_many_ports_as_a_node_may_have():
    fabric = Torus(dimensions=(3,) * 6)
    shares = fabric.prepare(Flows.of(nodes=729, src=[0], dst=[1], size=1, start=0)).state.shares
    for count in range(1, 13):
        share = shares[(1 << count) - 1]
        assert int(share["ports"]) >> st.COUNT == count
        largest = (PATHS - 1) // count * count
        for path in (0, 1, count - 1, count, largest - 1, largest, PATHS - 1):
            assert path * int(share["whole"]) >> st.SHARE == path // count


@pytest.mark.parametrize("shape", [(4, 4), (5, 5, 5), (9, 8, 8)])
def test_a_sample_is_that_of_any_network_whether_ports_nodes_or_several_have_a_row(shape):
    fabric = Torus(dimensions=shape)
    flows = Poisson(load=0.5, sizes="fixed:20KB", flows=300).draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=int(flows.start[150]))
    seen, plain = run.sample(), NetworkRun.sample(run)
    assert seen.keys() == plain.keys() and plain["queued"].sum() == plain["waiting"] > 0 < plain["busy_ps"].sum()
    for name, values in plain.items():
        assert_array_equal(seen[name], values, err_msg=name)


def test_broadcasts_take_their_bytes_on_every_link_of_a_tree():
    flows = Flows.of(nodes=64, src=[5], dst=[6], size=100, start=0)
    fabric = Torus(dimensions=(4, 4, 4), broadcast=160)
    run = fabric.prepare(flows)
    run.advance()
    took = wire_time(160, fabric.rate)
    assert run.observe().sections["r2c2"]["broadcasts"] == 2
    assert run.observe().sections["r2c2"]["broadcast_bytes"] == 2 * 63 * 160
    assert (run.state.lines > 0).sum() >= 63
    assert run.state.lines.max() >= took


def test_tiny_flows_spend_a_quarter_of_the_bytes_on_broadcasts_as_the_paper_says():
    """SIGCOMM '15: 26.66 % for flows of 10 KB over six hops: two broadcasts of 16 B on 511 links."""
    fabric = Torus()
    assert 2 * 16 * 511 / (10 * 1024 * bounds.mean_hops(fabric)) == pytest.approx(0.2666, abs=0.001)


def test_valiant_takes_twice_the_hops():
    flows = Poisson(load=0.05, sizes="fixed:5KB", flows=300).draw(nodes=64, link=100 * Gbps, seed=1)
    hops = {}
    for routing in ("minimal", "valiant"):
        fabric = Torus(dimensions=(4, 4, 4), routing=routing)
        run = fabric.prepare(flows, seed=1)
        run.advance()
        seen = run.observe()
        hops[routing] = seen.work["packet_hops"] / seen.carried["data"]
        assert hops[routing] == pytest.approx(bounds.mean_hops(fabric), rel=0.06)
    assert hops["valiant"] / hops["minimal"] == pytest.approx(2, rel=0.1)


def test_flows_of_a_dead_node_are_given_up_and_those_round_it_arrive():
    flows = Flows.of(nodes=16, src=[0, 5, 1, 9], dst=[5, 0, 9, 1], size=200_000, start=0)
    fabric = Torus(dimensions=(4, 4), fail="node 5 at 5us", converge=10 * us, notice=20 * us, period=10 * us)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=50 * ms)
    seen = run.observe()
    assert (seen.finish[:2] < 0).all() and (seen.finish[2:] > 0).all()
    assert seen.lost.flows == 2 and seen.lost.causes["link_down"] > 0


def test_a_flow_that_waits_for_one_that_is_lost_is_lost_too():
    flows = Flows.of(nodes=4, src=[0, 2], dst=[1, 3], size=1000, start=0, after=[[], [0]])
    run = Torus(dimensions=(4,), fail="node 1", converge=0).prepare(flows)
    run.advance()
    assert run.observe().lost.flows == 2 and run.now < ms


def test_the_command_of_the_contract_prints_the_agreed_object(capsys):
    from weft.cli import main

    command = (
        "run torus poisson --dimensions 4x4x4 --link 100Gbps --load 0.6 --flows 300 --sizes pareto --seed 1 --json"
    )
    assert main(command.split()) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["rate"]["packet_hops_per_s"] > 0 and data["fabric"]["dimensions"] == [4, 4, 4]
    assert data["finished"] == 300 and data["r2c2"]["broadcasts"] == 600


def test_the_command_says_what_is_wrong_in_a_sentence(capsys):
    from weft.cli import main

    assert main(["run", "torus", "poisson", "--dimensions", "8x1", "--load", "0.5", "--flows", "5"]) != 0
    assert "every dimension must be at least 2 nodes" in capsys.readouterr().err
    assert main(["run", "torus", "poisson", "--nodes", "100", "--load", "0.5", "--flows", "5"]) != 0
    assert "shapes near that are 4x5x5 (100)" in capsys.readouterr().err
