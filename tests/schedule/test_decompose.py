from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput, ScheduleConflict
from weft.random import key, permutation
from weft.schedule.decompose import NOBODY, colour, decompose, uplinks_of_shift, verify
from weft.schedule.rotation import rounds
from weft.topology.circuit import CircuitClos


def proper(peers, uplinks, half):
    """No two circuits of an uplink leave or enter the same leaf, and there are no more than `half` uplinks."""
    i = np.flatnonzero(peers != NOBODY)
    up = set(zip(i // half, uplinks[i], strict=True))
    down = set(zip(peers[i] // half, uplinks[i], strict=True))
    return len(up) == len(down) == len(i) and all(0 <= u < half for u in uplinks[i])


def fig3():
    return decompose(CircuitClos(nodes=8, ports=4), rounds(8))


@st.composite
def fabrics(draw, most=12):
    ports = 2 * draw(st.integers(1, most // 2))
    return CircuitClos(nodes=draw(st.integers(2, max(2, ports**2 // 2))), ports=ports)


@pytest.mark.parametrize("k", [4, 8, 16, 32])
def test_a_full_leaf_sends_each_node_over_its_own_uplink_in_every_slot(k):
    n = k * k // 2
    for shift in range(1, n):
        np.testing.assert_array_equal(uplinks_of_shift(n, k // 2, shift), np.arange(n) % (k // 2))


@pytest.mark.parametrize("k", [4, 8, 16, 32])
def test_the_closed_form_is_a_proper_colouring_of_a_full_fabric(k):
    n = k * k // 2
    assert verify(decompose(CircuitClos(nodes=n, ports=k), rounds(n))) == n * (n - 1)


@pytest.mark.parametrize("half", range(1, 7))
def test_the_closed_form_is_a_proper_colouring_of_every_population(half):
    for n in range(2, 2 * half * half + 1):
        i = np.arange(n)
        for shift in range(1, n):
            assert proper((i + shift) % n, uplinks_of_shift(n, half, shift), half), (n, shift)


def test_counting_modulo_half_alone_would_clash_in_a_rack_of_seven():
    assert not proper((np.arange(7) + 1) % 7, np.arange(7) % 2, 2)


@given(fabrics(), st.integers(0, 2**32), st.data())
def test_any_partial_permutation_is_coloured_with_half_the_ports(clos, seed, data):
    peers = permutation(key(seed, 1), clos.nodes).astype(np.int32)
    dark = data.draw(st.lists(st.integers(0, clos.nodes - 1), max_size=clos.nodes))
    peers[dark] = NOBODY
    assert proper(peers, colour(peers, clos.half), clos.half)


@settings(max_examples=30)
@given(fabrics(8), st.integers(0, 2**32))
def test_a_schedule_of_random_permutations_reaches_every_peer(clos, seed):
    peers = np.array([permutation(key(seed, t), clos.nodes) for t in range(5)])
    assert verify(decompose(clos, peers)) == 5 * clos.nodes


@settings(max_examples=40)
@given(st.integers(2, 40), st.integers(1, 4), st.integers(0, 5), st.sampled_from(["auto", "rotation", "mirrored"]))
def test_every_order_of_the_rounds_reaches_every_peer_once_an_epoch(nodes, channels, delay, order):
    channels = min(channels, nodes - 1)
    schedule = rounds(nodes, channels, delay, order)
    assert verify(decompose(CircuitClos(nodes=nodes, ports=10, planes=channels), schedule)) == nodes * (nodes - 1)


@settings(max_examples=30)
@given(fabrics(8))
def test_the_colouring_serves_the_rotation_as_well_as_the_closed_form(clos):
    assert verify(decompose(clos, rounds(clos.nodes).peers())) == clos.nodes * (clos.nodes - 1)


def test_the_first_leaf_of_figure_4_by_hand():
    # nodes 0 and 1 on ports 0 and 1 climb over uplinks 2 and 3; in slot t (shift t + 1) uplink 2 + u brings down
    # the cell of the one node i ≡ u (mod 2) that faces node 0 or 1
    np.testing.assert_array_equal(
        fig3().outputs("leaf0"),
        [[2, 3, 1, 0], [2, 3, 0, 1], [2, 3, 1, 0], [2, 3, 0, 1], [2, 3, 1, 0], [2, 3, 0, 1], [2, 3, 1, 0]],
    )


def test_the_first_spine_of_figure_4_by_hand():
    # spine 0 carries the even nodes, one of each leaf: node 2a faces node 2a + t + 1, on leaf a + (t + 1) // 2
    np.testing.assert_array_equal(
        fig3().outputs("spine0"), [[(a + (t + 1) // 2) % 4 for a in range(4)] for t in range(7)]
    )


def test_selectors_are_the_inverse_of_outputs():
    circuits = decompose(CircuitClos(nodes=7, ports=4), rounds(7))
    for name in circuits.clos.names:
        for outputs, picks in zip(circuits.outputs(name), circuits.selectors(name), strict=True):
            wired = {(i, o) for i, o in enumerate(outputs) if o != NOBODY}
            assert wired == {(i, o) for o, i in enumerate(picks) if i != NOBODY}


def corrupt(name, slot, port, output):
    circuits = fig3()
    circuits.outputs(name)[slot, port] = output
    return circuits


@pytest.mark.parametrize(
    "circuits, sentence",
    [
        (corrupt("leaf2", 3, 1, 2), "port 2 of leaf2 must carry one circuit in slot 3, not those of ports 0 and 1"),
        (corrupt("spine1", 6, 0, 3), "port 3 of spine1 must carry one circuit in slot 6, not those of ports 0 and 3"),
        (corrupt("leaf1", 5, 0, NOBODY), "port 0 of leaf1 must lead from node 2 to node 0 in slot 5, not elsewhere"),
        (corrupt("spine0", 0, 2, NOBODY), "port 2 of spine0 must lead from node 4 to node 5 in slot 0, not elsewhere"),
        (corrupt("leaf3", 1, 2, NOBODY), "port 2 of leaf3 must lead from node 4 to node 6 in slot 1, not elsewhere"),
    ],
)
def test_a_corrupted_table_is_found_and_its_switch_port_and_slot_are_named(circuits, sentence):
    with pytest.raises(ScheduleConflict) as error:
        verify(circuits)
    assert str(error.value) == sentence


def test_an_uplink_taken_twice_is_found():
    good = fig3()
    uplinks = good.uplinks.copy()
    uplinks[4, 0, 5] = uplinks[4, 0, 4]
    with pytest.raises(ScheduleConflict, match=r"^port 2 of leaf2 must carry one circuit in slot 4, not those of"):
        verify(replace(good, uplinks=uplinks))


def test_looking_at_few_cells_at_a_time_finds_the_same(monkeypatch):
    whole = fig3()
    monkeypatch.setattr("weft.schedule.decompose.CHUNK", 20)  # two slots of eight nodes
    parts = fig3()
    assert verify(parts) == 56
    for name in whole.clos.names:
        np.testing.assert_array_equal(parts.outputs(name), whole.outputs(name))


def test_two_nodes_that_face_one_peer_are_refused():
    with pytest.raises(ScheduleConflict) as error:
        decompose(CircuitClos(nodes=4, ports=4), np.array([[1, 2, 3, 0], [1, 2, 1, 0]]))
    assert str(error.value) == "port 1 of leaf0 must carry one circuit in slot 1, not those of nodes 0 and 2"


def test_a_schedule_for_another_rack_is_refused():
    with pytest.raises(BadInput, match=r"^the schedule must be for 8 nodes, not 9$"):
        decompose(CircuitClos(nodes=8, ports=4), rounds(9))
    with pytest.raises(BadInput, match=r"^the schedule must be for 1 planes, not 2$"):
        decompose(CircuitClos(nodes=8, ports=4), rounds(8, 2))


def test_a_peer_that_is_not_in_the_rack_is_refused():
    with pytest.raises(BadInput, match=r"^a peer must be a node from 0 to 3, or -1 for nobody, not 4$"):
        decompose(CircuitClos(nodes=4, ports=4), np.array([[1, 2, 3, 4]]))


def test_a_colouring_is_the_same_on_every_machine():
    peers = permutation(key(1, 2), 18).astype(np.int32)
    assert colour(peers, 3).tolist() == [0, 1, 2, 0, 1, 2, 2, 0, 1, 1, 0, 2, 1, 2, 0, 0, 1, 2]
