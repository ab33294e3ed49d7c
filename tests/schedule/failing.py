"""Racks that fail, at random, and what their cells cross: a walk through the switches' own tables and wires."""

from hypothesis import strategies as st

from weft.failures import Outage
from weft.schedule.outage import fabric
from weft.schedule.rotation import rounds
from weft.units import ns

SLOT = 100 * ns


def walk(circuits, t, plane, i):
    """All that the cell that i sends in slot t of a plane crosses, by name: links and uplinks with their direction."""
    clos = circuits.clos
    name, port = clos.leaf(plane, i // clos.half), i % clos.half
    crossed, number = [("node", (i,)), ("link", (i,), "upward")], i // clos.half
    for kind in ("leaf", "spine", "leaf"):
        crossed.append((kind, (number,)))
        out = int(circuits.outputs(name)[t, port])
        far = clos.wires(name)[out]
        if far.startswith("node "):
            j = int(far.removeprefix("node "))
            return [*crossed, ("link", (j,), "downward"), ("node", (j,))]
        next_name, _, next_port = far.rpartition(" port ")
        if kind == "leaf":
            crossed.append(("uplink", (number, out - clos.half), "upward"))
        else:
            crossed.append(("uplink", (clos.locate(next_name)[2], int(next_port) - clos.half), "downward"))
        name, port = next_name, int(next_port)
        number = clos.locate(name)[2]


def hit(outage, plane, crossed):
    """Whether an outage takes something that was crossed on a plane."""
    if outage.plane is not None and outage.plane != plane:
        return False
    return any(
        (outage.what, outage.which) == step[:2] and (outage.way is None or step[2:] in ((), (outage.way,)))
        for step in crossed
    )


@st.composite
def failing_racks(draw):
    ports = 2 * draw(st.integers(1, 3))
    nodes = draw(st.integers(2, max(2, ports**2 // 2)))
    channels = draw(st.integers(1, min(3, nodes - 1)))
    schedule = rounds(nodes, channels, draw(st.integers(0, 3)), draw(st.sampled_from(["auto", "rotation", "mirrored"])))
    clos = fabric(schedule, ports)
    sizes = {"node": nodes, "link": nodes, "leaf": clos.leaves, "spine": clos.spines}
    outages = []
    for _ in range(draw(st.integers(1, 4))):
        what = draw(st.sampled_from([*sizes, "uplink"]))
        if what == "uplink":
            which = draw(st.integers(0, clos.leaves - 1)), draw(st.integers(0, clos.half - 1))
        else:
            which = (draw(st.integers(0, sizes[what] - 1)),)
        begin = draw(st.integers(0, 4 * SLOT))
        end = draw(st.one_of(st.none(), st.integers(begin + 1, begin + 4 * SLOT)))
        plane = draw(st.one_of(st.none(), st.integers(0, channels - 1))) if what != "node" else None
        way = draw(st.sampled_from([None, "upward", "downward"])) if what in ("link", "uplink") else None
        outages.append(Outage(what, which, begin, end, plane, way))
    return schedule, outages, ports
