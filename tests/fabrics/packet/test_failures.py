"""What a plan of failures takes out of a packet network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.errors import BadInput
from weft.fabrics.network.failures import NEVER, Change, cut_off, plan
from weft.fabrics.packet.fabric import Packet
from weft.units import ms, us

GRAPH = Packet(hosts=16).graph


def names(change):
    return sorted(GRAPH.link_name(link) for link in change.links)


def test_a_link_goes_down_and_comes_back():
    down, up = plan("link edge0.0-agg0.1 at 10us until 2ms", GRAPH, 0)
    assert names(down) == names(up) == ["edge0.0-agg0.1"]
    assert (down[:2], up[:2]) == ((10 * us, False), (2 * ms, True))


def test_a_switch_takes_all_its_links_with_it():
    (change,) = plan("switch core0.1", GRAPH, 0)
    assert change.time == 0 and len(change.links) == 4
    assert all("core0.1" in name for name in names(change))


def test_an_entry_may_name_several_links():
    (change,) = plan("link edge0.0-agg0.0 edge0.0-agg0.1 at 1us", GRAPH, 0)
    assert names(change) == ["edge0.0-agg0.0", "edge0.0-agg0.1"]


def test_a_repair_comes_before_a_failure_of_the_same_moment():
    changes = plan("switch core0.0 at 2us, link edge0.0-agg0.0 until 2us", GRAPH, 0)
    assert [(change.time, change.up) for change in changes] == [(0, False), (2 * us, True), (2 * us, False)]


@pytest.mark.parametrize("seed", range(5))
def test_a_share_of_links_is_drawn_among_those_between_switches(seed):
    (change,) = plan("links 25% at 1us", GRAPH, seed)
    inner = np.flatnonzero((GRAPH.ends >= GRAPH.hosts).all(1))
    assert len(change.links) == inner.size // 4 and np.isin(change.links, inner).all()


def test_all_switches_are_all_links():
    (change,) = plan("switches 100%", GRAPH, 1)
    assert change == Change(0, False, tuple(range(len(GRAPH.ends))))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "links:5%@1ms",
            "a failure must look like link A-B at 10us until 2ms, switch A at 1ms, node 3 at 1ms or links 5% at 1ms, "
            "not 'links:5%@1ms'",
        ),
        (
            "swich core0.0",
            "a failure must look like link A-B at 10us until 2ms, switch A at 1ms, node 3 at 1ms or links 5% at 1ms, "
            "not 'swich core0.0' (near it: switch, switches)",
        ),
        ("link core0.0", "a link must be named A-B after its ends, not 'core0.0'"),
        ("switch h3", "a switch to fail must be a switch, not the host 'h3'"),
        ("switches 200%", "a share of switches must be a percentage from 0% to 100%, not '200%'"),
        (
            "switch core0.0 at 2us until 1us",
            "a failure must end after it begins, not 'switch core0.0 at 2us until 1us'",
        ),
        (
            "link edge0.0-agg0.0 at 1us until 9us, link agg0.0-edge0.0 at 3us",
            "link agg0.0-edge0.0 must be back before it fails again, not fail at 1 us, come back at 9 us, and fail at "
            "3 us",
        ),
    ],
)
def test_nonsense_is_refused_in_a_sentence(text, sentence):
    with pytest.raises(BadInput) as error:
        plan(text, GRAPH, 0)
    assert str(error.value) == sentence


def test_a_link_stays_down_while_its_switch_is():
    changes = plan("link edge0.0-agg0.0 at 1us until 3us, switch agg0.0 at 2us until 5us", GRAPH, 0)
    assert [(change.time, change.up, "edge0.0-agg0.0" in names(change)) for change in changes] == [
        (1 * us, False, True), (2 * us, False, False), (5 * us, True, True),
    ]  # fmt: skip


NAMED = [f"link {GRAPH.link_name(link)}" for link in range(14, 20)] + [f"switch {GRAPH.names[k]}" for k in (16, 17, 24)]
SHARES = ["links 10%", "links 50%", "switches 25%"]
spans = st.tuples(st.integers(0, 6), st.none() | st.integers(1, 6))


@given(
    st.tuples(st.sampled_from(NAMED + SHARES), spans),
    st.lists(st.tuples(st.sampled_from(NAMED), spans), max_size=4),
    st.integers(0, 3),
)
def test_a_link_is_down_exactly_while_some_entry_takes_it(first, others, seed):
    """Against each entry by itself, looked at between the moments; a share is drawn by its place, so it is first."""
    entries = [first, *others]
    texts = [f"{thing} at {at}us" + (f" until {at + span}us" if span else "") for thing, (at, span) in entries]
    try:
        changes = plan(", ".join(texts), GRAPH, seed)
    except BadInput as error:
        assert "must be back before it fails again" in str(error)
        return
    alone = [plan(text, GRAPH, seed)[0].links for text in texts]
    for moment in range(14):
        now = moment * us + 1
        up = dict.fromkeys(range(len(GRAPH.ends)), True)
        for change in changes:
            if change.time <= now:
                up |= dict.fromkeys(change.links, change.up)
        taken = {
            link
            for links, (_, (at, span)) in zip(alone, entries, strict=True)
            if at * us <= now and (span is None or now < (at + span) * us)
            for link in links
        }
        assert {link for link in up if not up[link]} == taken


def test_a_host_fails_with_all_its_links_and_several_are_listed_with_commas():
    changes = plan("nodes 3,h5 at 1us until 2us, host 7 at 3us", GRAPH, 0)
    assert [names(change) for change in changes] == [["h3-edge0.1", "h5-edge1.0"]] * 2 + [["h7-edge1.1"]]
    with pytest.raises(BadInput, match=r"^a node must be from 0 to 15, not '16'$"):
        plan("node 16 at 1us", GRAPH, 0)


def test_a_share_of_hosts_is_drawn_among_all_of_them():
    (change,) = plan("nodes 25%", GRAPH, 3)
    assert len(change.links) == 4 and all(name.startswith("h") for name in names(change))


def test_a_host_is_cut_off_from_the_moment_its_last_link_goes_for_good():
    off = cut_off(plan("node 3 at 1us until 2us, node 4 at 5us, switch edge3.1 at 7us", GRAPH, 0), GRAPH)
    assert {h: t for h, t in enumerate(off.tolist()) if t < NEVER} == {4: 5 * us, 14: 7 * us, 15: 7 * us}


def test_a_run_ends_when_only_flows_of_failed_hosts_are_left_and_counts_them(tmp_path):
    fabric = Packet(hosts=16, transport="ndp", fail="node 1 at 1us")
    weft.Flows.of(nodes=16, src=[0, 2, 1], dst=[1, 3, 5], size=20_000, start=0).to_csv(tmp_path / "flows.csv")
    result = weft.run(fabric, weft.Trace(path=tmp_path / "flows.csv"))
    assert result.observation.finished.tolist() == [False, True, False]
    assert result.summary()["lost"]["flows"] == 2
    assert result.observation.now < 100 * us
