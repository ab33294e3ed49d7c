import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.models import stardust
from weft.models.parts import Catalogue
from weft.models.stardust import Network, Reachability, Tree, against
from weft.topology.fattree import FatTree
from weft.units import us

small = {"radix": st.sampled_from([2, 4, 6, 8]), "uplinks": st.integers(1, 3), "tiers": st.integers(1, 4)}


@given(**small)
@settings(max_examples=40, deadline=None)
def test_the_formulas_count_what_the_built_graph_has(radix, uplinks, tiers):
    tree = Tree(radix=radix, uplinks=uplinks, tiers=tiers)
    if tree.bundles > 50_000:
        return
    built = FatTree(radix=radix, uplinks=uplinks, tiers=tiers)
    assert (tree.tors, tree.switches) == (built.edges, built.switches)
    assert tree.bundles == len(built.links()) - built.hosts


@given(st.integers(2, 9), st.integers(1, 8), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_an_oversubscribed_tree_counts_as_built_too(radix, up, uplinks, tiers):
    if up >= radix:
        return
    tree = Tree(radix=radix, uplinks=uplinks, tiers=tiers, up=up)
    built = FatTree(radix=radix, uplinks=uplinks, tiers=tiers, up=up)
    assert (tree.tors, tree.switches, tree.bundles) == (built.edges, built.switches, len(built.links()) - built.hosts)
    if tiers == 2:  # as Appendix A prints it
        assert (tree.tors, tree.switches) == (radix * (radix - up), uplinks * (radix + up))


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 4))
def test_bundling_costs_its_factor_once_for_every_tier(bundle, tiers):
    whole, bundled = Tree(radix=256, tiers=tiers), Tree(radix=256 // bundle, tiers=tiers)
    assert whole.tors == bundled.tors * bundle**tiers


@given(**small)
def test_links_per_tor_grow_by_the_same_with_every_tier(radix, uplinks, tiers):
    tree = Tree(radix=radix, uplinks=uplinks, bundle=2, tiers=tiers)
    assert tree.links_per_tor == tiers * uplinks * 2
    assert tree.switches_per_tor == pytest.approx((2 * tiers - 1) * uplinks / radix)


@given(st.integers(1, 2_000_000), st.sampled_from([1, 2, 4]))
def test_a_network_has_the_fewest_tiers_that_reach_its_hosts(hosts, bundle):
    net = Network(hosts=hosts, stardust=False, bundle=bundle)
    assert net.tors <= Tree(radix=net.radix, tiers=net.tiers).tors
    if net.tiers > 1:
        assert net.tors > Tree(radix=net.radix, tiers=net.tiers - 1).tors


def test_a_full_network_has_the_devices_and_links_of_the_tree():
    for tiers in (1, 2, 3):
        tree = Tree(radix=64, uplinks=10, tiers=tiers)
        net = Network(hosts=tree.hosts(40), stardust=False, bundle=4)
        assert (net.tiers, net.tors, net.devices, net.links) == (tiers, tree.tors, tree.switches, tree.bundles)


@given(st.integers(100, 1_000_000), st.sampled_from([1, 2, 4]))
def test_stardust_with_the_cheapest_modules_is_never_dearer_and_never_hungrier(hosts, bundle):
    assert min(against(hosts, bundle, module=module)["cost"] for module in (1, 2, 4)) <= 1
    assert against(hosts, bundle)["power"] <= 1


@given(st.sampled_from(["switch", "25G module", "fibre 10 m", "copper 2 m"]), st.integers(1, 500))
def test_a_dearer_part_never_makes_a_network_cheaper(part, more):
    cheap = Catalogue.named("stardust-2018")
    dear = cheap.change(part, price=cheap[part].price + more)
    bill = Network(hosts=20_000, stardust=False).parts()
    assert dear.price(bill) - cheap.price(bill) == more * bill[part]


def test_a_thousand_sizes_are_answered_at_once():
    hosts = np.arange(1000, 1_001_000, 1000)
    many = against(hosts, 4)
    for i in (0, 9, 99, 999):
        one = against(int(hosts[i]), 4)
        for what, value in one.items():
            assert many[what][i] == pytest.approx(value)


def test_watts_follow_once_a_switch_has_them():
    catalogue = Catalogue.named("stardust-2018").change("switch", watts=300)
    net = Network(hosts=10_240)
    assert net.catalogue(catalogue).watts(net.device_parts()) == pytest.approx(300 * net.relative_power)
    assert net.catalogue().watts(net.device_parts()) is None


def test_queues_sized_for_a_chance_keep_it():
    for speedup in (1.02, 1.05, 1.2):
        cells = stardust.queue_for(speedup, 1e-6)
        assert stardust.queue_overflow(speedup, cells) <= 1e-6 < stardust.queue_overflow(speedup, cells - 1)


@given(st.integers(1, 10**6), st.integers(1, 5))
def test_news_takes_longer_in_a_larger_network(hosts, tiers):
    r = Reachability(hosts=hosts, tiers=tiers)
    assert r.messages * 5120 >= hosts > (r.messages - 1) * 5120
    assert r.update == pytest.approx(10 * us * r.messages * (2 * tiers - 1))


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: Tree(radix=5), "radix must be even, not 5"),
        (lambda: Tree(radix=4, up=4), "up must be between 1 and 3, not 4"),
        (lambda: Tree(uplinks=0), "uplinks must be at least 1, not 0"),
        (lambda: Network(hosts=0), "hosts must be at least 1, not 0"),
        (lambda: Network(bundle=2), "bundle must be 1 in a Stardust fabric, not 2"),
        (lambda: Network(stardust=False, bundle=3), "bundle must be 1, 2, 4 or 8, not 3"),
        (lambda: Network(module=8), "module must be 1, 2 or 4 lanes, not 8"),
        (lambda: Reachability(tiers=3).recovery, "delays must be 5 for 3 tiers, not 3"),
    ],
)
def test_a_network_that_cannot_be_built_gets_a_sentence(build, message):
    with pytest.raises(BadInput) as error:
        build()
    assert str(error.value) == message
