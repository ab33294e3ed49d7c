"""Links that are compared: one meaning of propagation in every room, one place that sets them, and said to differ."""

from dataclasses import dataclass, fields, replace

import pytest
from weft_fluid import Fluid

import weft
from rooms import ONE, SMALL
from weft.errors import BadInput
from weft.fabrics import FABRICS
from weft.links import differences, fair
from weft.units import Gbps, ns, us
from weft.workload import Flows, Workload

FAR = 40 * us  # along a cable, beside which all else is short


@dataclass(frozen=True, kw_only=True)
class Single(Workload):
    """One flow of 40 bytes from node 0 to node 1, which share a switch."""

    def draw(self, *, nodes, link, seed):
        return Flows.of(nodes=nodes, src=[0], dst=[1], size=40, start=0)


ALONE = {name: fabrics[0] for name, fabrics in SMALL.items()} | {"fluid": Fluid(nodes=8)}
ALONE["stardust"] = replace(ALONE["stardust"], depth=1 << 14)  # what is on long cables must find room
# Cables that the flow crosses: two to a neighbour on the same switch. A cell of Shoal may go over another node; a host
# of TDMA also waits for the frame that lets it send, which comes over two cables.
CROSSED = dict.fromkeys(("crossbar", "packet", "merchant", "ideal", "fluid"), (2,)) | {"shoal": (2, 4), "tdma": (4,)}
SLOTTED = {"shoal", "tdma", "stardust"}  # times are rounded up to slots


def completion(fabric):
    return weft.run(fabric, Single()).fct().max


@pytest.mark.parametrize("room", ALONE)
def test_propagation_is_the_time_along_one_cable_in_every_room(room):
    """Completion time less serialisation and all else that does not depend on cables."""
    near, far = (fair(ALONE[room], propagation=p)[0] for p in (FAR, 3 * FAR))
    assert near.links()["propagation"] == FAR and far.links()["propagation"] == 3 * FAR
    slope = (completion(far) - completion(near)) / (2 * FAR)
    rounding = 0.02 if room in SLOTTED else 0
    assert any(abs(slope - crossed) <= rounding for crossed in CROSSED.get(room, range(1, 13))), slope
    flow = Single().draw(nodes=near.nodes, link=near.link, seed=0)
    least = (far.ideal(flow) - near.ideal(flow))[0] / (2 * FAR)
    assert least == pytest.approx(2 if room in CROSSED else round(least), abs=rounding) and 0 < least <= slope


def test_every_room_is_asked_and_knows_its_rate_and_propagation():
    assert set(FABRICS) <= set(ALONE)
    for fabric in ALONE.values():
        assert {"rate", "propagation"} <= fabric.links().keys()


def test_one_place_gives_all_fabrics_the_same_links():
    alike = fair(*ALONE.values(), rate="40Gbps", propagation="100ns", mtu=1000)
    assert all(one.link == 40 * Gbps and one.links()["propagation"] == 100 * ns for one in alike)
    assert {one.mtu for one in alike if hasattr(one, "mtu")} == {1000}
    assert differences((type(one).__name__, one) for one in alike) == []


def test_a_way_that_a_rack_is_given_whole_is_two_cables_or_four_in_a_clos():
    assert weft.Shoal(nodes=8, path=300).links()["propagation"] == 150
    assert weft.Shoal(nodes=128, propagation=100).way == 400
    assert fair(weft.Shoal(nodes=8, delay=3), propagation=7)[0] == weft.Shoal(nodes=8, propagation=7)


def test_links_that_differ_are_said():
    named = [("Shoal", weft.Shoal(nodes=8)), ("NDP", weft.Packet(hosts=16)), ("TCP", weft.Packet(hosts=16, mtu=9000))]
    assert differences(named) == [
        "link differs: Shoal 100 Gbps; NDP, TCP 10 Gbps",
        "propagation differs: Shoal 0 ps; NDP, TCP 1 us",
        "mtu differs: NDP 1.5 KB; TCP 9 KB",
    ]


def test_what_links_do_not_have_is_refused():
    from weft.links import read

    with pytest.raises(BadInput, match=r"^links must have some of rate, propagation, mtu, not 'colour'$"):
        read({"colour": 1})


def test_quantities_may_be_texts_in_python():
    assert weft.Shoal(nodes=8, link="25Gbps", guard="10ns") == weft.Shoal(nodes=8, link=25 * Gbps, guard=10 * ns)
    assert weft.Incast(fan_in=2, bytes="130KB").bytes == 130_000
    assert weft.Merchant(radix=8, pods=2, link="40Gbps").link == 40 * Gbps
    with pytest.raises(BadInput, match=r"^link: a rate must look like 100Gbps, not 'fast'$"):
        weft.Shoal(nodes=8, link="fast")
    assert weft.units.time_of("125KB", "100Gbps") == 10 * us


@pytest.mark.parametrize(("room", "fabric"), ONE, ids=[name for name, _ in ONE])
def test_every_room_may_be_given_its_propagation_by_that_name(room, fabric):
    """In Python, as in a study and at the prompt, whatever its own name for it is."""
    kind, given = type(fabric), {one.name: getattr(fabric, one.name) for one in fields(fabric) if one.init}
    own = fabric.link_fields()["propagation"]
    given.pop(own)
    made = kind(**given, propagation="120ns")
    assert made.links()["propagation"] == 120 * ns and made == replace(fabric, **{own: 120 * ns})
    if own != "propagation":
        with pytest.raises(BadInput, match=r"^delay must be given once, not as propagation too$"):
            kind(**given, propagation="120ns", delay=5)
