"""Who waits for whom, in files: columns and triggers, both ways, and a sentence for what cannot be meant."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphs import waiting
from weft.errors import BadInput, BadTrace
from weft.workload import AllReduce, Flows, Trace

quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
HEAD = "flow,src,dst,bytes,start,after,delay_ps\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def draw(content, name="t.csv", nodes=8):
    with open(name, "w") as file:
        file.write(content)
    return Trace(path=name).draw(nodes=nodes, link=1, seed=0)


def said(content, name="t.csv"):
    with pytest.raises(BadTrace) as raised:
        draw(content, name)
    return str(raised.value)


def graph(flows):
    """{flow: {flow it waits for: ps}}, by their numbers."""
    ids = flows.id.tolist()
    return {
        ids[f]: {ids[g]: gap for g, gap in zip(flows.predecessors(f), flows.gaps(f), strict=True)}
        for f in range(len(flows))
    }


def test_flows_of_a_csv_wait_for_those_that_after_names():
    flows = draw(HEAD + "7,0,1,10,0,,\n8,1,2,10,0,7,500\n9,2,3,10,0,7+8,20+30\n4,2,3,10,0.000000000001,-,-\n")
    assert graph(flows) == {7: {}, 4: {}, 8: {7: 500}, 9: {7: 20, 8: 30}}
    finish = np.array([{7: 100, 4: 100, 8: 1000, 9: 5000}[id] for id in flows.id.tolist()])
    assert dict(zip(flows.id.tolist(), flows.released(finish).tolist(), strict=True)) == {7: 0, 4: 1, 8: 600, 9: 1030}


@given(waiting(6))
@quick
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_waits_is_read_back_as_it_was_written(suffix, flows):
    getattr(flows, f"to_{suffix}")(f"t.{suffix}")
    assert Trace(path=f"t.{suffix}").draw(nodes=6, link=1, seed=0) == flows


@given(st.lists(st.sets(st.integers(0, 9), max_size=3), min_size=10, max_size=10))
@quick
def test_a_matrix_is_read_back_as_it_was_written_or_refused_in_a_sentence(some):
    after = [sorted(g for g in each if g < f) for f, each in enumerate(some)]
    src = np.arange(10) % 4
    flows = Flows.of(nodes=4, src=src, dst=(src + 1) % 4, size=9, start=0, after=after, id=np.arange(1, 11))
    try:
        flows.to_cm("t.cm")
    except BadInput as refused:
        assert "must fire one trigger in htsim" in str(refused)
        return
    again = Trace(path="t.cm").draw(nodes=4, link=1, seed=0)
    assert graph(again) == graph(flows) and again.size.tolist() == flows.size.tolist()


def test_an_all_reduce_goes_through_htsims_format():
    flows = AllReduce(bytes=900).draw(nodes=3, link=1, seed=0)
    flows.to_cm("ring.cm")
    assert "\n1->2 id 1 start 0 size 300 send_done_trigger 3\n" in Path("ring.cm").read_text()
    assert graph(Trace(path="ring.cm").draw(nodes=3, link=1, seed=0)) == graph(flows)


TRIGGERED = """Nodes 8
Connections 5
Triggers 2
0->1 id 1 start 0 size 100 send_done_trigger 1
1->2 id 2 trigger 1 size 100 recv_done_trigger 2
1->3 id 3 trigger 1 size 100 send_done_trigger 2
4->5 id 4 start 7 size 100 send_done_trigger 2
5->6 id 5 trigger 2 size 100
trigger id 1 oneshot
trigger id 2 barrier count 3
"""


def test_triggers_of_htsim_start_what_waits_for_them():
    flows = draw(TRIGGERED, "t.cm")
    assert graph(flows) == {1: {}, 4: {}, 2: {1: 0}, 3: {1: 0}, 5: {2: 0, 3: 0, 4: 0}} and not flows.notes


def test_a_multishot_trigger_starts_one_flow_each_time():
    head = "Nodes 8\n0->1 id 1 start 0 size 9 send_done_trigger 1\n"
    chain = "1->2 id 2 trigger 1 size 9 send_done_trigger 1\n2->3 id 3 trigger 1 size 9 send_done_trigger 1\n"
    flows = draw(head + chain + "trigger id 1 multishot\n", "t.cm")
    assert graph(flows) == {1: {}, 2: {1: 0}, 3: {2: 0}} and not flows.notes
    flows = draw(head + "4->1 id 8 start 0 size 9 send_done_trigger 1\n" + chain + "trigger id 1 multishot\n", "t.cm")
    assert graph(flows) == {1: {}, 8: {}, 2: {1: 0}, 3: {8: 0}}
    assert flows.notes == (
        "1 multishot trigger may be fired in any order: flows start as if they were fired in the order of the file",
    )


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("1,0,1,9,0,2,\n2,1,2,9,0,3,\n3,1,2,9,0,1,\n4,1,2,9,0,5,\n5,1,2,9,0,4,\n",
         "t.csv: flows must not wait for each other in a circle, as 4 waits for 5 waits for 4"),
        ("1,0,1,9,0,1,\n", "t.csv: flow 1 must wait for others, not for itself"),
        ("1,0,1,9,0,,\n2,0,1,9,0,1+99,\n", "t.csv, line 3: after must name flows of the trace, not 99"),
        ("1,0,1,9,0,,\n1,0,1,9,0,,\n2,0,1,9,0,1,\n",
         "t.csv, line 4: after must name a flow that is there once, not 2 times: 1"),
        ("1,0,1,9,0,,\n2,0,1,9,0,1+x,\n", "t.csv, line 3: after must be a whole number, not 'x'"),
        ("1,0,1,9,0,,\n2,0,1,9,0,1,1+2\n",
         "t.csv, line 3: delay_ps must be one number, or one for each flow in after, 1, not 2"),
        ("1,0,1,9,0,,\n2,0,1,9,0,1,-5\n",
         "t.csv: delay of flow 2 must be from 0 to 4611686018427387904 ps (4.61169e+06 s), not -5"),
        ("1,0,0,9,0,,\n2,0,1,9,0,1,0\n",
         "t.csv: flow 1, which flow 2 waits for, must be of at least 1 byte and between two nodes"),
        ("1,0,1,9,0,,\n2,0,8,9,0,1,0\n", "t.csv, line 3: dst must be a node from 0 to 7, not 8"),
    ],
)  # fmt: skip
def test_what_cannot_be_waited_for_is_named(rows, sentence):
    assert said(HEAD + rows) == sentence


def test_a_delay_needs_somebody_to_wait_for():
    text = "flow,src,dst,bytes,start,delay_ps\n1,0,1,9,0,5\n"
    assert said(text) == "t.csv, line 1: column after must be there, or delay_ps must not"


FIRED = "Nodes 8\n0->1 id 1 start 0 size 9 send_done_trigger 1\n0->2 id 2 start 0 size 9 send_done_trigger 1\n"


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("1->2 id 3 trigger 1 size 9\ntrigger id 1 oneshot\n", "line 5: trigger 1 must be fired by 1 flow, not 2"),
        ("1->2 id 3 trigger 1 size 9\ntrigger id 1 barrier count 3\n",
         "line 5: trigger 1 must be fired by as many flows as its count, 3, not 2"),
        ("1->2 id 3 trigger 1\n1->2 id 4 trigger 1\n1->2 id 5 trigger 1\ntrigger id 1 multishot\n",
         "line 7: trigger 1 must be fired at least 3 times, for each flow, not 2"),
        ("1->2 id 3 trigger 1 start 0\n", "line 4: a flow must have a start or a trigger, not both"),
        ("1->2 id 3 start 0 send_done_trigger 8\ntrigger id 1 oneshot\n",
         "line 4: trigger 8 must have a line of its own"),
        ("trigger id 1\n", "line 4: a trigger must have one of oneshot, multishot, barrier, not only id 1"),
        ("trigger oneshot\n", "line 4: a trigger must have an id above 0, not only oneshot"),
        ("trigger id 1 twice\n",
         "line 4: what is said of a trigger must be id, count, oneshot, multishot, barrier, not 'twice'"),
        ("trigger id 1 oneshot\ntrigger id 1 oneshot\n", "line 5: trigger 1 must be there once, not again"),
    ],
)  # fmt: skip
def test_a_trigger_that_cannot_be_meant_is_named(lines, sentence):
    assert said(FIRED + lines, "t.cm") == f"t.cm, {sentence}"


def test_triggers_are_counted():
    assert said(TRIGGERED.replace("Triggers 2", "Triggers 3"), "t.cm") == (
        "t.cm: Triggers must be 2, the number of triggers, not 3"
    )


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"delay": 5}, "flow 2 must wait for others and for no time beside, or htsim cannot say it"),
        ({"id": [1, 0]}, "a flow that waits must have a number above 0 in htsim, not 0"),
    ],
)
def test_what_htsim_cannot_say_is_refused(more, sentence):
    given = {"id": [1, 2], **more}
    flows = Flows.of(nodes=4, src=[0, 1], dst=[1, 2], size=9, start=0, after=[[], [0]], **given)
    with pytest.raises(BadInput) as refused:
        flows.to_cm("t.cm")
    assert str(refused.value) == sentence


def test_the_shortest_circle_is_found_in_whatever_part_it_is():
    """A circle of two in a part of six is shorter than a part that is one circle of five; a long ring takes no time."""
    small = [[1], [2], [3], [4], [0]]
    large = [[6], [7], [8], [9], [5, 10], [9]]
    with pytest.raises(BadInput, match=r"as 9 waits for 10 waits for 9$"):
        Flows.of(nodes=4, src=[0] * 11, dst=[1] * 11, size=1, start=0, after=small + large)
    ring = (np.arange(200_001), (np.arange(200_000) + 1) % 200_000)
    with pytest.raises(BadInput, match="in a circle"):
        Flows.of(nodes=4, src=np.zeros(200_000, int), dst=np.ones(200_000, int), size=1, start=0, after=ring)
