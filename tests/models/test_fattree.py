"""Fat trees as graphs: what the builder wires must be what the formulas count."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.topology.fattree import FatTree, max_flow

trees = st.builds(
    FatTree,
    radix=st.sampled_from([2, 4, 6]),
    tiers=st.integers(1, 3),
    uplinks=st.integers(1, 3),
    hosts_per_edge=st.integers(1, 3),
)


@given(trees)
@settings(max_examples=40, deadline=None)
def test_every_switch_uses_every_port(tree):
    degree = np.bincount(tree.links().ravel())
    edge = degree[tree.hosts : tree.hosts + tree.edges]
    assert (degree[: tree.hosts] == 1).all()
    assert (edge == tree.hosts_per_edge + tree.uplinks).all()
    assert degree[tree.hosts + tree.edges :].tolist() == [tree.radix] * tree.switches


@given(trees)
@settings(max_examples=40, deadline=None)
def test_what_crosses_the_middle_is_what_the_formula_says(tree):
    half = tree.hosts // 2
    assert max_flow(tree.links(), range(half), range(half, 2 * half)) == tree.bisection()


@pytest.mark.parametrize("radix, up", [(6, 1), (6, 2), (8, 2)])
def test_an_oversubscribed_tree_carries_what_its_narrowest_layer_carries(radix, up):
    tree = FatTree(radix=radix, tiers=2, uplinks=2, hosts_per_edge=2, up=up)
    assert (tree.edges, tree.switches) == (radix * (radix - up), 2 * (radix + up))
    half = tree.hosts // 2
    assert max_flow(tree.links(), range(half), range(half, tree.hosts)) == tree.bisection() < half


def test_no_equal_split_of_a_small_fat_tree_carries_less_than_half_its_hosts():
    """Every split of the 16 hosts, up to a renaming of pods and switches: one count per edge switch."""
    tree = FatTree.of_switches(4)
    links = tree.links()
    pods = list(combinations_with_replacement(range(3), 2))
    worst = tree.hosts
    for split in combinations_with_replacement(pods, 4):
        left = [count for pod in split for count in pod]
        if sum(left) != tree.hosts // 2:
            continue
        sources = [2 * edge + h for edge, count in enumerate(left) for h in range(count)]
        sinks = [h for h in range(tree.hosts) if h not in sources]
        worst = min(worst, max_flow(links, sources, sinks))
    assert worst == tree.bisection() == 8


def test_a_tree_of_k_port_switches_has_the_usual_counts():
    for k, (hosts, switches) in {4: (16, 20), 24: (3456, 720), 48: (27648, 2880)}.items():
        tree = FatTree.of_switches(k)
        assert (tree.hosts, tree.edges + tree.switches) == (hosts, switches)


@pytest.mark.parametrize(
    "given_, message",
    [
        ({"radix": 5}, "radix must be even, not 5"),
        ({"radix": 1}, "radix must be at least 2, not 1"),
        ({"radix": 4, "up": 4}, "up must be between 1 and 3, not 4"),
        ({"radix": 4, "tiers": 0}, "tiers must be at least 1, not 0"),
    ],
)
def test_a_tree_that_cannot_be_built_gets_a_sentence(given_, message):
    with pytest.raises(BadInput) as error:
        FatTree(**given_)
    assert str(error.value) == message


def test_parallel_links_and_capacities_add_up():
    links = np.array([[0, 2], [0, 2], [2, 1], [2, 1], [2, 1]])
    for a, b in product([1, 3], repeat=2):
        capacity = np.array([a, a, b, b, b])
        assert max_flow(links, [0], [1], capacity) == min(2 * a, 3 * b)
