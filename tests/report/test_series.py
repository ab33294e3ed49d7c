"""Maps of queues and links: a row per place, and the right row is the full one, or the busy one."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import weft
from rooms import ONE
from weft.engine.series import bundle, sums
from weft.errors import BadInput
from weft.failures import entries
from weft.report.series import curve, heat, heat_table, link_table, links, queue_table, queues, series
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
        (weft.Crossbar(ports=8, buffers="load-balanced"), "middle port 2"),
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
        (weft.Ideal(nodes=8), "into node 2"),
    ],
)
def test_an_incast_keeps_the_link_of_its_receiver_busy(fabric, last):
    result = weft.run(fabric, FAN, seed=1)
    time, names, each = link_table(result)
    assert each.shape == (len(time) - 1, len(names)) and (each >= 0).all() and (each <= 1).all()
    assert names[each.mean(axis=0).argmax()].endswith(last)
    sent = (each * np.diff(time)[:, None]).sum(axis=0) * fabric.link / 8e12  # bytes, where a link has the node's rate
    if not isinstance(fabric, weft.Torus | weft.Stardust):
        assert sent.max() > 6 * 60 * KB - 1 and len(links(result).data) == each.size


@pytest.mark.parametrize(
    "fabric",
    [
        weft.Shoal(nodes=8),
        weft.Shoal(nodes=9, channels=3, delay=4),
        weft.Shoal(nodes=8, rules="released"),
        weft.Shoal(nodes=8, rules="literal"),
        weft.Shoal(nodes=8, ber=1e-5, transport="e2e"),
        weft.Shoal(nodes=8, fail="node 7 at 1us until 3us"),
    ],
)
def test_a_node_of_a_rack_sends_for_a_slot_of_one_channel_per_full_cell(fabric):
    """In an incast everybody relays: all but the receiver, and whoever fails, send on; empty cells count nothing."""
    result = weft.run(fabric, FAN, seed=1)
    _, names, each = link_table(result)
    assert names == [f"node {i}" for i in range(fabric.nodes)] and (each >= 0).all() and (each <= 1).all()
    seen = result.observation
    last, cells = seen.samples["busy_ps"][-1], seen.carried["local"] + seen.carried["forwarded"]
    assert last.sum() == pytest.approx(cells * fabric.slot_time / fabric.lanes, abs=fabric.nodes)
    assert (last[2] == 0) == (fabric.transport == "none")  # else it acknowledges
    assert (last[result.flows.src] > 0).all()
    relays = np.setdiff1d(np.arange(fabric.nodes), [2, *result.flows.src])
    assert (last[relays] > 0).all() and last[relays].max() < last[result.flows.src].max()


def test_the_links_of_a_rack_that_fails_fall_silent():
    fabric = weft.Shoal(nodes=8, fail="node 3 at 20us until 60us", transport="e2e")
    result = weft.run(fabric, weft.Permutation(bytes=400 * KB), seed=1, until=100 * us)
    time, _, each = link_table(result)
    down = (time[:-1] > 21 * us) & (time[1:] < 60 * us)
    assert down.any() and (each[down, 3] == 0).all() and (each[down][:, 4] > 0).all()
    assert each[time[:-1] > 62 * us, 3].max() > 0


def test_an_ideal_switch_fills_the_link_that_everybody_wants():
    result = weft.run(weft.Ideal(nodes=8), FAN, seed=1)
    time, names, each = link_table(result)
    into, out = each[:, names.index("into node 2")], each[:, names.index(f"out of node {result.flows.src[0]}")]
    assert into == pytest.approx(np.ones(len(each))) and out[:-1] == pytest.approx(np.full(len(each) - 1, 1 / 6))
    spent = (each * np.diff(time)[:, None]).sum(axis=0)
    assert spent[: len(names) // 2].sum() == pytest.approx(spent[len(names) // 2 :].sum(), abs=len(names))


@dataclass(frozen=True, kw_only=True)
class Silent(weft.Ideal):
    """A fabric of somebody's that says nothing of its links."""

    def lines(self):
        return []


def test_a_fabric_that_tells_nothing_of_its_links_says_why(monkeypatch):
    result = weft.run(weft.Ideal(nodes=8), FAN, seed=1)
    monkeypatch.setattr("weft.report.series._fabric", lambda result, what: Silent(nodes=8))
    with pytest.raises(BadInput, match=r"^links must be those of a fabric that tells of them, not of Silent: its "):
        links(result)


@pytest.mark.parametrize(("room", "fabric"), ONE, ids=[name for name, _ in ONE])
def test_how_busy_links_are_is_a_series_of_every_room(room, fabric):
    result = weft.run(fabric, FAN, seed=1)
    found, (time, _, each) = curve(result, "busy"), link_table(result)
    assert np.array_equal(found.mean, each.mean(axis=1)) and np.array_equal(found.high, each.max(axis=1))
    assert (np.diff(found.time) > 0).all() and 0 < found.high.max() <= 1
    drawn = series({"one": result, "again": result}, show="busy")
    assert len(drawn.data) == 2 * (len(time) - 1)


def test_a_last_sample_that_comes_soon_after_another_makes_no_rate():
    """A run may end a moment after a sample: what moved in that moment says nothing of what moves in an interval."""
    result = weft.run(weft.Shoal(nodes=8), FAN, seed=1)
    last = {name: column[-1:] for name, column in result.observation.samples.items()}
    soon = {name: np.concatenate([*[0 * column] * 9, column // 2, column]) for name, column in last.items()}
    soon["time_ps"] = np.array([*range(10), 9.001]) * us
    without = {name: np.delete(column, -2, axis=0) for name, column in soon.items()}
    odd, even = (replace(result, observation=replace(result.observation, samples=one)) for one in (soon, without))
    for kind in ("throughput", "use", "busy"):
        assert len(curve(odd, kind).time) == 9 and curve(odd, kind).mean[-1] > 0
        assert np.array_equal(curve(odd, kind).mean, curve(even, kind).mean)
    for table in (heat_table, link_table):
        assert np.array_equal(table(odd)[0], table(even)[0]) and np.array_equal(table(odd)[2], table(even)[2])
    assert len(curve(odd, "live").time) == 11  # what is there at a moment is there


@pytest.mark.parametrize(
    ("fabric", "said"),
    [
        (weft.Shoal(nodes=8, fail="node 3 at 1us until 5us"), ["node 3 fails", "node 3 is back"]),
        (weft.Packet(hosts=16, fail="host 5 at 2us, link h1-edge0.0 at 3us until 9us"),
         ["host 5 fails", "link h1-edge0.0 fails", "link h1-edge0.0 is back"]),
        (weft.TDMA(nodes=8, fail="node 3 at 5ms"), ["node 3 fails"]),
    ],
)  # fmt: skip
def test_failures_are_marked_in_series_and_maps_where_they_are(fabric, said):
    result = weft.run(fabric, weft.Permutation(bytes=60 * KB), seed=1, until=12_000 * us)
    moments = [
        moment / us for entry in entries(fabric.fail) for moment in (entry.at, entry.until) if moment is not None
    ]
    for drawn in (series(result), series(result, show="busy"), links(result), heat(result), queues(result)):
        ax = drawn.figure.axes[0]
        assert [text.get_text().strip() for text in ax.texts] == said
        marks = [line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1]
        assert marks == sorted(moments)
    close = [text.get_position()[1] for text in series(result).figure.axes[0].texts]
    assert len(set(close)) == min(len(said), 3)  # those that are close stand below each other


def test_cells_use_as_much_of_a_link_as_the_time_in_which_it_sends():
    result = weft.run(weft.Crossbar(ports=8), weft.Bernoulli(load=0.7, slots=4000), seed=1)
    use, busy = curve(result, "use"), curve(result, "busy")
    assert use.mean == pytest.approx(busy.mean, abs=0.01) and use.mean[1:].mean() == pytest.approx(0.7, rel=0.05)
    assert heat_table(result)[2] == pytest.approx(use.each)


def test_maps_of_several_results_share_a_scale_of_colours_and_say_which_is_which():
    named = {"rack": weft.run(weft.Shoal(nodes=8), FAN, seed=1), "ideal": weft.run(weft.Ideal(nodes=8), FAN, seed=1)}
    drawn = links(named)
    assert [row["series"] for row in drawn.data] == sorted((row["series"] for row in drawn.data), reverse=True)
    titles = [ax.get_title(loc="left") for ax in drawn.figure.axes]
    assert titles == ["Use of links: rack", "Use of links: ideal", ""]  # and the scale
    with pytest.raises(BadInput, match=r"^a map must be of 1 to 6 results, not 7$"):
        links({str(k): named["rack"] for k in range(7)})


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
