"""Execution traces: what protobuf says, what becomes flows, who meets whom, and a sentence for what is no trace."""

import gzip
from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from weft_fluid import Fluid

import weft
from weft.errors import BadInput, BadTrace
from weft.units import us
from weft.workload import Chakra
from weft.workload.chakra import read

EXAMPLE = Path(__file__).parents[2] / "examples/chakra/step"
quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER, BARRIER = 0, 1, 2, 6, 7, 9

# an attribute of every kind, written by Google's protobuf 7.36
WRITTEN = b64decode(
    "BwoFMC4wLjTdAQgDEgVuw6RtZRgHOAxSDAoBYRkAAAAAAAD0P1IICgFiLQAAAD9SDgoBYzj7//////////8BUg4KAWRIgIDm2ZXQnP7/AVIJCgFl"
    "WIDQrPMOUg4KAWZogYCAgICAgICAAVIFCgFneA1SCwoBaIgB//////8/UgkKAWmdAU0AAABSDQoBaqkBAAAAAAABAABSCQoBa70B/f///1INCgFs"
    "yQEAAAAAAAD8/1IGCgFu2AEBUgsKAW/qAQVwZyDDvFIKCgFw4gEECgIBAFILCgFxQgYKBAECrAJSBQoBelgADAgJEgFiGAQqAQM4AQ=="
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def part(number, value):
    """A field of a message: a number, a text or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(id, type, needs=(), micros=0, **attr):
    out = part(1, id) + part(3, type) + part(7, micros) + b"".join(part(5, need) for need in needs)
    for name, value in attr.items():
        if isinstance(value, list):
            out += part(10, part(1, name) + part(14, b"".join(part(1, one) for one in value)))
        else:
            out += part(10, part(1, name) + part(29 if isinstance(value, str) else 13, value))
    return out


def write(*ranks, name="t", pack=bytes):
    for rank, nodes in enumerate(ranks):
        messages = [part(1, "0.0.4"), *nodes]
        Path(f"{name}.{rank}.et").write_bytes(pack(b"".join(varint(len(one)) + one for one in messages)))
    return Chakra(trace=name)


def said(chakra, nodes=4):
    with pytest.raises(BadInput) as raised:
        chakra.draw(nodes=nodes, link=1, seed=0)
    return str(raised.value)


def test_what_googles_protobuf_writes_is_read():
    Path("x.0.et").write_bytes(WRITTEN)
    first, second = read("x.0.et")
    assert (first.id, first.name, first.type, first.duration) == (3, "näme", 7, 12 * us) and second.needs == [3]
    assert first.attr == {
        "a": 1.25, "b": 0.5, "c": -5, "d": -(10**15), "e": 4 * 10**9, "f": 2**63 + 1, "g": -7, "h": -(2**40), "i": 77,
        "j": 2**40, "k": -3, "l": -(2**50), "n": 1, "o": "pg ü", "p": [1, 0], "q": [1, 2, 300], "z": 0,
    }  # fmt: skip


def test_the_example_takes_what_can_be_worked_out_by_hand():
    """20 µs forwards, 15 of a layer, 48 of its all-reduce, 24 of the other, 5 of the optimizer, 4 of a message."""
    section = weft.run(Fluid(nodes=4), Chakra(trace=EXAMPLE), seed=0).summary()["training"]
    assert section["step_us"]["mean"] == pytest.approx(20 + 15 + 48 + 24 + 5 + 4) and section["over_bound"] >= 1
    assert section["compute_us"] == pytest.approx(20 + 15 + 15 + 5)


@pytest.mark.parametrize(
    ("kind", "flows", "size"),
    [(ALL_REDUCE, 12, 100), (ALL_GATHER, 6, 300), (REDUCE_SCATTER, 6, 100), (ALL_TO_ALL, 6, 100)],
)
def test_collectives_become_flows(kind, flows, size):
    ranks = [[node(1, COLLECTIVE, comm_type=kind, comm_size=300)]] * 3
    drawn = write(*ranks).draw(nodes=5, link=1, seed=0)
    assert len(drawn) == flows and set(drawn.size.tolist()) == {size} and drawn.dst.max() == 2


def test_process_groups_meet_apart_and_barriers_wait():
    def rank(group):
        return [
            node(1, COLLECTIVE, micros=0, comm_type=ALL_REDUCE, comm_size=100, pg_name=group),
            node(2, COLLECTIVE, (1,), comm_type=BARRIER),
            node(3, COLLECTIVE, (2,), comm_type=ALL_REDUCE, comm_size=100, pg_name=group),
        ]

    drawn = write(rank("a"), rank("a"), rank("b"), rank("b")).draw(nodes=4, link=1, seed=0)
    assert {frozenset((a, b)) for a, b in zip(drawn.src.tolist(), drawn.dst.tolist(), strict=True)} == {
        frozenset((0, 1)), frozenset((2, 3)),
    }  # fmt: skip
    again = [f for f in range(len(drawn)) if drawn.id[f] >= 8 and len(drawn.predecessors(f)) > 2]
    for f in again:
        assert {int(drawn.src[g]) // 2 for g in drawn.predecessors(f)} == {0, 1}  # both groups were done


def test_a_receive_waits_for_its_message_and_for_what_it_depends_on():
    message = {"comm_src": 0, "comm_dst": 1, "comm_tag": 3, "comm_size": 1000}
    sender = [node(1, COMPUTE, micros=7), node(2, SEND, (1,), **message)]
    receiver = [
        node(1, COMPUTE, micros=50), node(2, RECEIVE, (1,), **message), node(3, COMPUTE, (2,), micros=2),
        node(4, SEND, (3,), comm_src=1, comm_dst=0, comm_size=1000),
    ]  # fmt: skip
    back = node(5, RECEIVE, comm_src=1, comm_dst=0, comm_size=1000)
    result = weft.run(Fluid(nodes=2), write([*sender, back], receiver), seed=0)
    assert result.flows.start.tolist() == [7 * us, 52 * us]


def test_a_trace_may_be_packed():
    ranks = [[node(1, COLLECTIVE, comm_type=ALL_REDUCE, comm_size=300)]] * 2
    assert len(write(*ranks, pack=gzip.compress).draw(nodes=2, link=1, seed=0)) == 4


ONE = [node(1, COLLECTIVE, comm_type=ALL_REDUCE, comm_size=300)]


@pytest.mark.parametrize(
    ("ranks", "sentence"),
    [
        ([ONE] * 5, "nodes must be at least the 5 ranks of t, 2 or more, not 4"),
        ([[node(1, COMPUTE, micros=3)]] * 2, "t must have ranks that send each other something, not only compute"),
        ([[node(1, COMPUTE, (9,))]] * 2, "t.0.et, message 2: node 1 must need nodes of the file, not 9"),
        ([[node(1, COMPUTE), node(1, COMPUTE)]] * 2, "t.0.et must have every node once, not 1 numbers again"),
        ([[node(1, COMPUTE, (2,)), node(2, COMPUTE, (1,))]] * 2,
         "t.0.et: node 1 must be done in the end, not wait for others in a circle"),
        ([[node(1, COLLECTIVE, comm_type=REDUCE, comm_size=5)]] * 2,
         "t.0.et: node 1 must be one of ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, "
         "BARRIER, not REDUCE"),
        ([ONE, [node(1, COLLECTIVE, comm_type=ALL_REDUCE, comm_size=7)]],
         "t.0.et: node 1 must be the same collective at all ranks, not (0, 300) and others"),
        ([ONE, [*ONE, node(2, COLLECTIVE, comm_type=ALL_REDUCE, comm_size=7)]],
         "t must have as many messages in group '' at each rank, not 1 at rank 0, 2 at rank 1"),
        ([[node(1, SEND, comm_dst=1, comm_size=5)], []],
         "t must have as many messages from rank 0 to rank 1 at each rank, not 1 at rank 0, 0 at rank 1"),
        ([[node(1, SEND, comm_dst=8, comm_size=5)], []], "t.0.et: node 1 must name another rank, not 8"),
        ([[node(1, SEND, comm_dst=1, comm_size=5, comm_tag=[7])], [node(1, RECEIVE, comm_src=0, comm_tag=[7])]],
         "t.0.et: node 1 must have one comm_tag, not a list"),
        ([[node(1, COLLECTIVE, comm_type=ALL_REDUCE, comm_size=[5])]] * 2,
         "t.0.et: node 1 must have a comm_size from 0 to 70368744177663 bytes, not [5]"),
        ([[node(1, COLLECTIVE, comm_type=ALL_REDUCE)]] * 2,
         "t.0.et: node 1 must have a comm_size from 0 to 70368744177663 bytes, not None"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_gets_a_sentence(ranks, sentence):
    assert said(write(*ranks)) == sentence


def test_files_that_are_missing_are_named():
    assert said(Chakra(trace="none")) == "none must be a trace of ranks from 0 on, but there is no none.0.et"
    write(ONE, ONE, ONE)
    Path("t.1.et").unlink()
    assert said(Chakra(trace="t.0.et")) == "t.0.et must be a trace of ranks from 0 on, but there is no t.1.et"


def test_a_file_that_is_cut_short_is_named():
    write(ONE, ONE)
    path = Path("t.0.et")
    path.write_bytes(path.read_bytes()[:-3])
    assert said(Chakra(trace="t")).startswith("t.0.et, message 2 must be of ")


@given(st.binary(max_size=80) | st.builds(lambda cut: WRITTEN[:cut] + b"\xff" + WRITTEN[cut:], st.integers(8, 240)))
@quick
def test_any_bytes_are_nodes_or_a_sentence(data):
    Path("x.0.et").write_bytes(data)
    try:
        read("x.0.et")
    except BadTrace as error:
        assert str(error).startswith("x.0.et")
