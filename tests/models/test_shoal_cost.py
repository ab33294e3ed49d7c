import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.models import shoal
from weft.models.parts import Catalogue
from weft.topology.fattree import folded_clos
from weft.units import Gbps


def test_512_nodes_take_24_packet_switches_or_48_circuit_switches():
    rack = shoal.PricedRack()
    assert (rack.leaves, rack.spines) == (16, 8)
    assert (rack.packet_switches, rack.circuit_switches) == (24, 48)


@given(st.integers(1, 64).map(lambda half: 2 * half))
def test_a_full_rack_has_half_the_square_of_the_ports_as_nodes_and_three_halves_as_switches(ports):
    leaves, spines = folded_clos(ports * ports // 2, ports)
    assert (leaves, spines) == (ports, ports // 2)


@given(st.integers(2, 2048))
def test_the_tree_has_room_for_all_its_links(nodes):
    leaves, spines = folded_clos(nodes, 64)
    assert leaves * 32 >= nodes > (leaves - 1) * 32
    assert spines * 64 >= leaves * 32  # every leaf's uplinks find a spine port
    assert (64 // leaves) * spines >= 32  # and every plane is whole


def test_power_is_that_of_section_5():
    watts = shoal.PricedRack().watts()
    assert watts["packet"] == pytest.approx(24 * 350 + 512 * 0.62)
    assert watts["shoal"] == pytest.approx(48 * 38.5 + 512 * 1.37)


@given(st.floats(0.0, 1.0), st.floats(0.001, 1.0))
def test_the_cost_ratio_grows_with_the_price_of_a_circuit_switch(price, more):
    rack = shoal.PricedRack()
    assert rack.cost_ratio(price) < rack.cost_ratio(price + more)


@given(st.floats(0.0, 0.5), st.sampled_from([2, 3]), st.integers(2, 2048))
def test_the_price_for_a_saving_gives_that_saving(saving, nic, nodes):
    rack = shoal.PricedRack(nodes=nodes, nic=nic)
    price = rack.switch_price(saving)
    if price >= 0:
        assert rack.cost_ratio(price) == pytest.approx(1 - saving)


@given(st.integers(2, 1024))
def test_buffers_follow_their_scaling_laws(nodes):
    rack = shoal.PricedRack(nodes=nodes)
    assert rack.buffer_total == nodes * rack.buffer_on_chip
    assert rack.state_bits["feedback"] == (nodes - 1) ** 2 * (nodes - 1).bit_length()


def test_a_thousand_racks_are_answered_at_once():
    nodes = np.arange(2, 2049)
    rack = shoal.PricedRack(nodes=nodes)
    one_by_one = [shoal.PricedRack(nodes=int(n)).watts()["shoal"] for n in nodes[::97]]
    assert rack.watts()["shoal"][::97].tolist() == one_by_one


def test_dollars_are_known_once_a_user_prices_the_parts(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[parts."packet switch"]\nprice = "16000 USD"\n[parts."packet NIC"]\nprice = "125 USD"\n'
        '[parts."circuit switch"]\nprice = "2400 USD"\n'
    )
    mine = Catalogue.named("shoal-2019") | Catalogue.load(path)
    rack = shoal.PricedRack()
    assert rack.catalogue(mine).price(rack.parts()) == 48 * 2400 + 512 * 250
    assert rack.cost_ratio(catalogue=mine) == pytest.approx(rack.cost_ratio(0.15))


@pytest.mark.parametrize("ports", [8, 16])
def test_failures_follow_their_printed_formulas_under_one_rule(ports):
    nodes = ports * ports // 2

    def lost(component):
        return shoal.failed_slots(ports, component, survivors=True, duplex=False)

    assert lost("node-leaf link") == pytest.approx(1 / nodes, rel=2 / nodes)
    assert lost("leaf switch") == pytest.approx((2 * nodes) ** -0.5, rel=2 / nodes)
    assert lost("leaf-spine link") == pytest.approx(2 / nodes)
    share = 2 / ports
    assert lost("spine switch") == pytest.approx(1 - (1 - share) ** 2, rel=0.1)


def test_the_model_counts_what_the_fabric_does():
    from weft.papers.shoal import table1

    rows = {row["component"]: row for row in table1._rows(32, 8)}
    for component in shoal.FAILURES:
        one = rows.get(f"{component}{table1.ONE}", rows[component])
        ours = shoal.failed_slots(8, component, survivors=True, duplex=False)
        assert ours == pytest.approx(one["unused_survivors"], rel=1e-9)
        assert shoal.failed_slots(8, component) == pytest.approx(rows[component]["unused"], rel=0.01)


def test_appendix_a_is_held_against_the_schedule_that_runs(monkeypatch):
    """Another schedule, the plain rotation, has no empty slot and answers at once: both rows then differ."""
    from weft.schedule.rotation import rounds

    def rows():
        return {row.name: row.verdict for row in shoal.table("claims").rows if row.claim == "c39"}

    assert rows() == {"empty slots, even N": "same", "feedback gap, odd N": "same"}
    monkeypatch.setattr(shoal, "rounds", lambda nodes, channels, delay: rounds(nodes, channels, 0, "rotation"))
    assert rows() == {"empty slots, even N": "differs", "feedback gap, odd N": "differs"}


def test_header_fields_fill_the_header():
    assert sum(shoal.header_bits().values()) == 64


def test_the_chassis_strawman_needs_three_for_512_nodes_and_breaks_the_rack():
    straw = shoal.chassis(512, 100 * Gbps)
    assert straw["chassis"] == 3
    assert straw["space_share"] > 1


@pytest.mark.parametrize(
    "given_, message",
    [
        (
            {"nodes": 3000},
            "nodes must be at most 2048 with 64-port switches in two stages, not 3000 (switches of 78 ports would do)",
        ),
        ({"nodes": 1}, "nodes must be at least 2, not 1"),
        ({"ports": 63}, "ports must be even and at least 2, not 63"),
        ({"planes": 0}, "planes must be at least 1, not 0"),
        ({"cell": 0}, "cell must be at least 1 B, not 0"),
    ],
)
def test_a_rack_that_cannot_be_built_gets_a_sentence(given_, message):
    with pytest.raises(BadInput) as error:
        shoal.PricedRack(**given_)
    assert str(error.value) == message
