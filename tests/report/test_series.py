"""Maps of queues and links: a row per place, and the right row is the full one, or the busy one."""

import numpy as np
import pytest

import weft
from rooms import ONE
from weft.engine.series import bundle, sums
from weft.errors import BadInput
from weft.report.series import link_table, links, queue_table, queues
from weft.units import KB, Gbps, us

FAN = weft.Incast(fan_in=6, bytes=60 * KB, dst=2)


def fullest(fabric):
    """The names of the fullest places in an incast to node 2, and the result."""
    result = weft.run(fabric, FAN, seed=1)
    _, names, each = queue_table(result)
    assert len(names) == each.shape[1] == len(set(names)) and (each >= 0).all() and each.max() > 0
    assert (each.sum(axis=1) <= result.observation.samples["waiting"]).all()
    return [names[k] for k in np.flatnonzero(each.max(axis=0) == each.max())], result


@pytest.mark.parametrize(
    ("fabric", "place"),
    [
        (weft.Packet(hosts=16, transport="tcp"), "to h2"),
        (weft.Crossbar(ports=8, buffers="oq"), "output 2"),
        (weft.Crossbar(ports=8, buffers="gcq"), "output 2"),
        (weft.Crossbar(ports=8, buffers="cicq", depth=2), "crosspoints to output 2"),
        (weft.Torus(dimensions=(3, 3), transport="tcp:rto_min=300us", link=10 * Gbps), "to 2"),
    ],
)
def test_an_incast_fills_the_queue_before_its_receiver(fabric, place):
    names, result = fullest(fabric)
    assert any(name.endswith(place) for name in names), names
    plot = queues(result)
    assert {"time_us", "queue", result.observation.unit} == set(plot.data[0])
    assert len(plot.data) == result.observation.samples["queued"].size


@pytest.mark.parametrize(
    "fabric",
    [
        weft.Shoal(nodes=8),
        weft.TDMA(nodes=8),
        weft.Stardust(hosts=16),
        weft.Crossbar(ports=8),
        weft.Crossbar(ports=8, buffers="cioq", scheduler="ccf"),
    ],
)
def test_the_senders_of_an_incast_have_something_in_their_queues(fabric):
    _, result = fullest(fabric)
    _, names, each = queue_table(result)
    senders = set(np.unique(result.flows.src).tolist())
    busy = {name for name, most in zip(names, each.max(axis=0), strict=True) if most}
    for kind in ("node", "host", "input"):
        if any(name.startswith(f"{kind} ") for name in names):
            assert len(busy & {f"{kind} {i}" for i in senders}) > len(senders) / 2  # one may be done before a sample


@pytest.mark.parametrize(
    ("fabric", "last"),
    [
        (weft.Packet(hosts=16, transport="tcp"), "to h2"),
        (weft.Packet(hosts=16, transport="ndp"), "to h2"),
        (weft.Merchant(radix=8, pods=4, transport="dctcp"), "to h2"),
        (weft.Torus(dimensions=(8,), link=10 * Gbps), "to 2"),
        (weft.Stardust(hosts=16), "to adapter 1"),
        (weft.TDMA(nodes=8), "to h2"),
        (weft.TDMA(nodes=9, topology="tree"), "to h2"),
        (weft.Crossbar(ports=8), "output 2"),
    ],
)
def test_an_incast_keeps_the_link_of_its_receiver_busy(fabric, last):
    result = weft.run(fabric, FAN, seed=1)
    time, names, each = link_table(result)
    assert each.shape == (len(time) - 1, len(names)) and (each >= 0).all() and (each <= 1).all()
    assert names[each.mean(axis=0).argmax()].endswith(last)
    sent = (each * np.diff(time)[:, None]).sum(axis=0) * fabric.link / 8e12  # bytes, where a link has the node's rate
    if not isinstance(fabric, weft.Torus | weft.Stardust):
        assert sent.max() > 6 * 60 * KB and len(links(result).data) == each.size


@pytest.mark.parametrize(
    ("fabric", "why"),
    [
        (weft.Shoal(nodes=8), "Shoal: a node sends a cell in every slot, full or empty"),
        (dict(ONE)["ideal"], "Ideal: it has none but those of nodes, of which heat shows how much they receive"),
    ],
)
def test_a_fabric_without_links_inside_says_why(fabric, why):
    with pytest.raises(BadInput, match=f"^links must be those of a fabric that tells of them, not of {why}"):
        links(weft.run(fabric, FAN, seed=1))


def test_a_fabric_without_queues_and_an_old_result_are_told_so():
    result = weft.run(dict(ONE)["ideal"], FAN, seed=1)
    with pytest.raises(BadInput, match=r"^queues must be those of a fabric that has some, which Ideal has not$"):
        queues(result)
    old = weft.run(weft.TDMA(nodes=8), FAN, seed=1)
    del old.observation.samples["queued"]
    with pytest.raises(BadInput, match=r"^queues must be in the samples of a result, which one of an older version"):
        queues(old)


def test_too_many_places_share_rows():
    rows, names = bundle([f"node {i}" for i in range(10)], 4)
    assert names == ["node 0 … node 2", "node 3 … node 4", "node 5 … node 7", "node 8 … node 9"]
    assert sums(rows, np.arange(10), 4).tolist() == [3, 7, 18, 17] and len(bundle([])[1]) == 0
    fabric = weft.Packet(hosts=128, transport="ndp")
    result = weft.run(fabric, weft.Incast(fan_in=20, bytes=50 * KB), seed=1, until=20 * us)
    names = queue_table(result)[1]
    assert fabric.graph.ports > 512 and names == list(fabric.graph.names)
