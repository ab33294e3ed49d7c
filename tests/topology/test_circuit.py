import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.models.shoal import PricedRack
from weft.topology.circuit import CircuitClos

NINE = "nodes must be at most 8 with 4-port switches in two stages, not 9 (switches of 6 ports would do)"


@st.composite
def fabrics(draw):
    ports = 2 * draw(st.integers(1, 12))
    return CircuitClos(nodes=draw(st.integers(2, max(2, ports**2 // 2))), ports=ports, planes=draw(st.integers(1, 3)))


@pytest.mark.parametrize("k", [2, 4, 8, 16, 32, 64])
def test_a_full_fabric_has_k_leaves_and_half_as_many_spines(k):
    clos = CircuitClos(nodes=k * k // 2, ports=k)
    assert (clos.leaves, clos.spines, clos.trunk, clos.switches) == (k, k // 2, 1, 3 * k // 2)


def test_64_ports_connect_2048_nodes():
    assert CircuitClos(nodes=2048, ports=64).switches == 96  # §3.2


@pytest.mark.parametrize("nodes, ports", [(512, 64), (2048, 64), (1024, 64), (256, 32), (128, 16)])
def test_the_fabric_has_the_switches_that_the_cost_model_buys(nodes, ports):
    bought = PricedRack(nodes=nodes, ports=ports, planes=2)
    assert CircuitClos(nodes=nodes, ports=ports, planes=2).switches == bought.circuit_switches


@given(fabrics())
def test_every_wire_between_switches_has_two_ends_that_name_each_other(clos):
    for name in clos.names:
        for port, far in enumerate(clos.wires(name)):
            if "port" in far:
                switch, number = re.fullmatch(r"(\S+) port (\d+)", far).groups()
                assert clos.wires(switch)[int(number)] == f"{name} port {port}"


@given(fabrics())
def test_every_node_hangs_on_one_port_of_every_plane(clos):
    hung = sorted(far for name in clos.names for far in clos.wires(name) if far.startswith("node "))
    assert hung == sorted(f"node {i}" for i in range(clos.nodes) for _ in range(clos.planes))


@given(fabrics())
def test_all_uplinks_of_a_leaf_are_wired(clos):
    for name in clos.names:
        if clos.locate(name)[1] == "leaf":
            assert all(clos.wires(name)[clos.half :])


@pytest.mark.parametrize(
    "fields, sentence",
    [
        (dict(nodes=1, ports=4), "nodes must be at least 2, not 1"),
        (dict(nodes=8, ports=3), "ports must be even and at least 2, not 3"),
        (dict(nodes=8, ports=0), "ports must be even and at least 2, not 0"),
        (dict(nodes=9, ports=4), NINE),
        (dict(nodes=8, ports=4, planes=0), "planes must be at least 1, not 0"),
    ],
)
def test_a_fabric_that_cannot_be_built_is_refused(fields, sentence):
    with pytest.raises(BadInput) as error:
        CircuitClos(**fields)
    assert str(error.value) == sentence


def test_a_switch_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match=r"^switch must be one of leaf0 … spine1, not 'leaf9'$"):
        CircuitClos(nodes=8, ports=4).locate("leaf9")
