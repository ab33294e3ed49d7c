from decimal import Decimal
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.models.cabling import Floor, copper_between_pods, fibre
from weft.models.merchant import NETWORKS, Switch, eep_overhead, growth, moved_cables
from weft.models.parts import Catalogue
from weft.models.tables import agrees
from weft.topology.cabling import FIELDS, Wiring
from weft.topology.fattree import FatTree, max_flow

RADICES = st.integers(1, 16).map(lambda n: 8 * n)
networks = pytest.mark.parametrize("network", NETWORKS)


# ---------------------------------------------------------------- counts


@given(RADICES)
def test_a_full_switch_is_the_fat_tree_of_its_chips(radix):
    tree = FatTree.of_switches(radix)
    for network in NETWORKS:
        switch = Switch(radix=radix, network=network)
        assert switch.ports == tree.hosts
        assert switch.parts()["ASIC"] == tree.edges + tree.switches
        assert switch.chips == {"edge": tree.edges, "aggregation": tree.switches_in(1), "core": tree.switches_in(2)}
        assert switch.bisection == 2 * tree.bisection(switch.link)
        assert switch.oversubscription == 1


@given(RADICES)
def test_board_parts_follow_the_cube_law(radix):
    one, two, three = (Switch(radix=radix, network=n).parts() for n in NETWORKS)
    cube = radix**3 // 4
    assert (one["PHY"], two["PHY"], three["PHY"]) == (5 * cube, 5 * cube, 3 * cube)
    assert (one["SFP+"], two["SFP+"], three["SFP+"]) == (5 * cube, 3 * cube, cube)
    assert three["EEP"] == three["QSFP"] == cube // 2


def test_many_radices_are_answered_at_once():
    radices = np.arange(8, 8 * 1001, 8)
    many = Switch(radix=radices)
    catalogue = Catalogue.named("merchant-2009")
    chips = many.chips_and_optics()
    assert catalogue.price(chips).shape == radices.shape
    for i in (0, 2, 999):
        one = Switch(radix=int(radices[i])).parts()
        assert {name: n[i] for name, n in chips.items()} == {name: one[name] for name in chips}


@given(st.sampled_from(["ASIC", "CPU", "PHY", "SFP+", "EEP", "QSFP"]), st.integers(0, 1000))
def test_a_dearer_part_never_makes_a_network_cheaper(part, more):
    cheap = Catalogue.named("merchant-2009")
    dear = cheap.change(part, price=cheap[part].price + more)
    for network in NETWORKS:
        bill = Switch(network=network).chips_and_optics()
        assert dear.price(bill) - cheap.price(bill) == more * bill[part]


@pytest.mark.parametrize(
    "ports, message",
    [
        (
            3000,
            "ports must be k^3/4 for a multiple k of 8, nearest 1024 (k = 16) below and 3456 (k = 24) above, not 3000",
        ),
        (100, "ports must be k^3/4 for a multiple k of 8, nearest 128 (k = 8), not 100"),
    ],
)
def test_ports_that_no_tree_has_are_told_their_neighbours(ports, message):
    with pytest.raises(BadInput) as error:
        Switch.of_ports(ports)
    assert str(error.value) == message
    assert Switch.of_ports(65_536) == Switch(radix=64)


@pytest.mark.parametrize(
    "given_, message",
    [
        ({"radix": 26}, "radix must be a multiple of 8, not 26"),
        ({"network": 4}, "network must be 1, 2 or 3, not 4"),
        ({"pods": 25}, "pods must be between 1 and 24, not 25"),
        ({"pods": 2, "line_cards": 7}, "line_cards must be between 2 and 6, not 7"),
        ({"uplink_cards": 7}, "uplink_cards must be between 1 and 6, not 7"),
        ({"core_cards": 0}, "core_cards must be between 1 and 18, not 0"),
    ],
)
def test_a_switch_that_cannot_be_built_gets_a_sentence(given_, message):
    with pytest.raises(BadInput) as error:
        Switch(**given_)
    assert str(error.value) == message


def test_eep_costs_nothing_more_for_a_frame_that_fills_its_segments():
    assert eep_overhead(payload=64 * 3 - 18)["header_bytes"] == 3
    assert eep_overhead(payload=64 * 3 - 17)["header_bytes"] == 5


def pairs_that_fit(field, cpu, phy, scale, printed, cpus):
    """Pairs of a value for CPU and one for PHY with which all three networks have the printed sum."""
    catalogue = Catalogue.named("merchant-2009").change("CPU", **{field: 0}).change("PHY", **{field: 0})
    total = {"price": catalogue.price, "watts": catalogue.watts}[field]
    found = []
    for a in cpu:
        for b in phy:
            for network, value in printed.items():
                bill = Switch(network=network).chips_and_optics()
                count = cpus if network > 1 else bill["CPU"]
                if not agrees(Decimal(value), (total(bill) + count * a + bill["PHY"] * b) / scale):
                    break
            else:
                found.append((a, b))
    return found


def test_the_fitted_watts_are_the_only_ones_on_the_grid_and_need_132_cpus():
    cpu, phy = [n / 2 for n in range(8, 25)], [n / 20 for n in range(1, 41)]
    printed = {1: "52.7", 2: "41.0", 3: "36.4"}
    assert pairs_that_fit("watts", cpu, phy, 1e3, printed, cpus=132) == [(8, 0.8)]
    assert pairs_that_fit("watts", cpu, phy, 1e3, printed, cpus=114) == []


def test_the_fitted_prices_are_some_of_four_on_the_grid():
    cpu, phy = range(50, 250, 10), [n / 2 for n in range(10, 31)]
    found = pairs_that_fit("price", cpu, phy, 1e6, {1: "4.88", 2: "3.07", 3: "2.33"}, cpus=132)
    assert found == [(130, 10), (140, 9.5), (140, 10), (150, 9.5)]


# ---------------------------------------------------------------- deployment


@networks
@given(st.integers(1, 3456))
@settings(max_examples=60)
def test_the_smallest_deployment_serves_its_hosts_at_full_rate(network, hosts):
    switch = Switch.for_hosts(hosts, network=network)
    assert hosts <= switch.ports < hosts + 48
    assert switch.oversubscription == 1
    assert switch.plugs * switch.pods <= switch.core_cards * 48


def test_a_core_module_serves_twelve_pods_and_the_thirteenth_moves_two_cables_of_each():
    steps = growth()
    assert [s.modules for s in steps] == [0] + 11 * [1] + 12 * [2]
    assert all(s.oversubscription == 1 for s in steps)
    moves = [moved_cables(a, b) for a, b in pairwise(steps)]
    assert {pods: n for pods, n in enumerate(moves, 1) if n} == {12: 24}


def test_fewer_cards_oversubscribe_in_proportion():
    assert Switch(uplink_cards=3).oversubscription == 2
    assert Switch(core_cards=9).oversubscription == 2
    assert Switch(pods=13, core_cards=9).oversubscription == 2
    assert Switch(pods=12, core_cards=9).oversubscription == 1
    assert Switch(pods=1, uplink_cards=2).oversubscription == 3


def test_the_fullest_pod_decides_how_much_is_oversubscribed():
    assert Switch(pods=2, line_cards=4, core_cards=1).oversubscription == Switch(pods=2, core_cards=1).oversubscription
    assert Switch(pods=2, line_cards=4, core_cards=1).plugs == 24
    assert Switch(pods=2, line_cards=4, core_cards=1).oversubscription == 144 / (4 * 24)


def test_a_single_pod_needs_no_core_and_no_qsfp():
    pod = Switch(pods=1)
    assert (pod.core_cards, pod.plugs, pod.parts()["QSFP"], pod.long_cables) == (0, 0, 0, 0)


# ---------------------------------------------------------------- wiring


def up_and_down(wiring):
    """The network as links that only go up, then down: hosts, chips and core, pods twice."""
    k, half = wiring.radix, wiring.radix // 2
    pods = wiring.pods
    hosts = pods * half * half
    up_edge = hosts + np.arange(pods * half).reshape(pods, half)
    up_agg, down_agg, down_edge = (up_edge + pods * half * n for n in (1, 2, 3))
    core = hosts + 4 * pods * half
    sink_hosts = core + 8 * wiring.cards
    links = [(h, up_edge.flat[h // half]) for h in range(hosts)]
    links += [(down_edge.flat[h // half], sink_hosts + h) for h in range(hosts)]
    for p in range(pods):
        links += [(up_edge[p, e], up_agg[p, a]) for e in range(half) for a in range(half)]
        links += [(down_agg[p, a], down_edge[p, e]) for e in range(half) for a in range(half)]
    for p, u, a, _, card, row, _ in wiring.cables.tolist():
        for chip in range(4):
            links += [
                (up_agg[p, 2 * u + a], core + 8 * card + 4 * row + chip),
                (core + 8 * card + 4 * row + chip, down_agg[p, 2 * u + a]),
            ]
    per_pod = hosts // pods
    return np.array(links), per_pod, sink_hosts, k


def directed_flow(links, sources, sinks):
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_flow

    nodes = int(links.max()) + 3
    a = np.concatenate([links[:, 0], np.full(len(sources), nodes - 2), sinks])
    b = np.concatenate([links[:, 1], sources, np.full(len(sinks), nodes - 1)])
    graph = coo_matrix((np.ones(len(a), np.int32), (a, b)), shape=(nodes, nodes), dtype=np.int32).tocsr()
    return int(maximum_flow(graph, nodes - 2, nodes - 1).flow_value)


@given(st.lists(st.tuples(st.integers(0, 31), st.integers(0, 31)), max_size=6))
@settings(max_examples=30, deadline=None)
def test_what_a_wrong_cable_costs_is_what_max_flow_finds(swaps):
    wiring = Wiring.right(8)
    for i, j in swaps:
        wiring = wiring.swap(i, j)
    report = wiring.check()
    assert report.exact
    links, per_pod, sink_hosts, k = up_and_down(wiring)
    right = [p for p in range(k) if p not in report.left]
    sources = [p * per_pod + h for p in report.left for h in range(per_pod)]
    sinks = [sink_hosts + p * per_pod + h for p in right for h in range(per_pod)]
    assert directed_flow(links, sources, sinks) == report.bisection
    assert report.bisection + report.lost == len(sources)


def test_no_equal_split_of_the_pods_is_worse_than_the_one_reported():
    wiring = Wiring.right(8).swap(0, 6).swap(3, 13).swap(8, 29)
    report = wiring.check()
    links, per_pod, sink_hosts, k = up_and_down(wiring)
    flows = [
        directed_flow(
            links,
            [p * per_pod + h for p in left for h in range(per_pod)],
            [sink_hosts + p * per_pod + h for p in range(k) if p not in left for h in range(per_pod)],
        )
        for left in combinations(range(k), k // 2)
    ]
    assert min(flows) == report.bisection < k * per_pod // 2


def test_the_right_wiring_has_no_fault_at_any_radix():
    for radix in (8, 16, 24, 64):
        report = Wiring.right(radix).check()
        assert (report.faults, report.harmless, report.lost) == ((), (), 0)
        assert report.bisection == radix**3 // 8


def test_two_pods_on_each_others_row_are_found_and_cost_eight_links():
    wiring = Wiring.right(24)
    upper = next(i for i, row in enumerate(wiring.cables.tolist()) if row[:4] == [0, 0, 0, 0])
    lower = next(i for i, row in enumerate(wiring.cables.tolist()) if row[:4] == [1, 0, 1, 0])
    report = wiring.swap(upper, lower).check()
    assert report.faults == (
        "pod 0 has 0 cables on the upper row of core card 0 and should have 1",
        "pod 0 has 2 cables on the lower row of core card 0 and should have 1",
        "pod 1 has 2 cables on the upper row of core card 0 and should have 1",
        "pod 1 has 0 cables on the lower row of core card 0 and should have 1",
    )
    assert (report.lost, report.bisection) == (8, 1720)


def test_cables_exchanged_within_a_pod_are_named_and_cost_nothing():
    report = Wiring.right(24).swap(0, 1).check()
    assert report.harmless == ("pod 0 has cables exchanged among its own uplink cards; no bandwidth is lost",)
    assert (report.faults, report.lost) == ((), 0)


def test_a_missing_cable_costs_its_four_links():
    whole = Wiring.right(24)
    report = Wiring(24, whole.cables[1:], whole.cards).check()
    assert report.faults == ("pod 0 has 0 cables on the upper row of core card 0 and should have 1",)
    assert report.lost == 4


def test_many_wrong_cables_give_a_bound_and_say_so():
    wiring = Wiring.right(24)
    for n in range(40):
        wiring = wiring.swap(7 * n, 863 - 11 * n)
    report = wiring.check()
    assert not report.exact
    assert report.lost > 0


def test_a_wiring_survives_its_file(tmp_path):
    path = tmp_path / "cables.csv"
    wiring = Wiring.right(8)
    wiring.save(path)
    assert (Wiring.load(path, radix=8).cables == wiring.cables).all()


@pytest.mark.parametrize(
    "line, message",
    [
        ("0,0,0,9,0,0,0", "qsfp on line 2 of cables.csv must be a whole number from 0 to 2, not '9'"),
        ("0,0,0,x,0,0,0", "qsfp on line 2 of cables.csv must be a whole number from 0 to 2, not 'x'"),
        ("0,0,0", "qsfp on line 2 of cables.csv must be a whole number from 0 to 2, not ''"),
    ],
)
def test_a_bad_line_of_a_wiring_is_named(tmp_path, line, message):
    path = tmp_path / "cables.csv"
    path.write_text(",".join(FIELDS) + f"\n{line}\n")
    with pytest.raises(BadInput) as error:
        Wiring.load(path)
    assert str(error.value) == message


def test_two_cables_in_one_port_are_a_fault():
    wiring = Wiring.right(8)
    cables = wiring.cables.copy()
    cables[1, 4:] = cables[0, 4:]
    faults = Wiring(8, cables, wiring.cards).check().faults
    assert "2 cables share one core port (card 0 row 0 position 0)" in faults


# ---------------------------------------------------------------- lengths


def test_fibre_metres_and_kilograms_scale_with_the_floor():
    long, short = (fibre(Switch(), Floor(climb=c)) for c in (2.5, 1.5))
    assert long["metres"] - short["metres"] == pytest.approx(96 * 2)
    assert long["kg"] / long["metres"] == pytest.approx(0.264)
    assert long["longest"] - short["longest"] == pytest.approx(2)


def test_discrete_switches_take_36_times_the_cables_over_the_same_fibres():
    boards, discrete = fibre(Switch()), fibre(Switch(network=1))
    assert discrete["fibres"] == boards["fibres"] == 6912
    assert (boards["cables"], discrete["cables"]) == (96, 3456)
    assert boards["bundles"] == discrete["bundles"] == 24


def test_a_spread_core_has_a_bundle_between_any_two_pods():
    copper = copper_between_pods(48)
    assert copper["bundles"] == 1128
    assert copper["cables"] == 48**3 // 4 * 47 // 48  # one link in 48 stays in its pod


def test_max_flow_of_the_built_tree_is_the_printed_bisection_in_one_direction():
    tree = FatTree.of_switches(24)
    half = tree.hosts // 2
    assert 2 * max_flow(tree.links(), range(half), range(half, tree.hosts)) == Switch().bisection // Switch().link
