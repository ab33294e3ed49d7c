"""Traces: exact both ways, and a sentence with file, line and field for whatever is not one."""

import os
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from weft.errors import BadInput, BadTrace
from weft.units import Gbps
from weft.workload import ENDLESS, Flows, Poisson, Trace
from weft.workload.flows import LATEST
from weft.workload.traces import CHUNK, read

quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def draw(content, name="trace.csv", nodes=16):
    with open(name, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return Trace(path=name).draw(nodes=nodes, link=1, seed=0)


def said(content, name="trace.csv", nodes=16):
    with pytest.raises(BadTrace) as raised:
        draw(content, name, nodes)
    return str(raised.value)


def rows(flows):
    columns = ("id", "src", "dst", "size", "start", "klass")
    return list(zip(*(getattr(flows, name).tolist() for name in columns), strict=True))


HEAD = "flow,src,dst,bytes,start\n"


def test_a_start_is_exact_to_the_picosecond():
    flows = draw(HEAD + "7,0,1,100,0.000000005632\n8,1,2,200,12.345678901234\n9,2,3,300,100\n")
    assert rows(flows) == [(7, 0, 1, 100, 5632, 0), (8, 1, 2, 200, 12345678901234, 0), (9, 2, 3, 300, 10**14, 0)]
    assert flows.notes == ()


@pytest.mark.parametrize(
    ("text", "ps"),
    [
        ("0.000000005632", 5632), ("5.632e-9", 5632), ("5632e-12", 5632), (".5", 5 * 10**11), ("5.", 5 * 10**12),
        ("+1", 10**12), ("-0", 0), ("-0.0", 0), ("0e999999", 0), ("1.0000000000000000", 10**12), (' "2" ', 2 * 10**12),
        ("1234567", 1234567 * 10**12), ("1234567.8", 12345678 * 10**11), ("4611686.018427387904", LATEST),
    ],
)  # fmt: skip
def test_seconds_may_be_written_in_many_ways(text, ps):
    flows = draw(HEAD + f"0,0,1,100,{text}\n")
    assert flows.start.tolist() == [ps] and flows.notes == ()


@pytest.mark.parametrize(
    ("text", "ps"),
    [
        ("0.0000000000005", 0), ("0.0000000000015", 2), ("0.0000000000025", 2), ("0.00000000000250001", 3),
        ("1e-99999", 0),
    ],
)  # fmt: skip
def test_what_is_finer_than_a_picosecond_is_rounded_and_said(text, ps):
    flows = draw(HEAD + f"0,0,1,100,{text}\n")
    assert flows.start.tolist() == [ps] and flows.notes == ("1 start was rounded to a whole picosecond",)


@given(st.decimals(min_value=0, max_value=4_000_000, allow_nan=False, allow_infinity=False))
@quick
def test_any_decimal_is_read_as_decimal_arithmetic_rounds_it(value):
    flows = draw(HEAD + f"0,0,1,100,{value}\n")
    with localcontext(prec=1000):
        assert flows.start.tolist() == [int((value * 10**12).to_integral_value())]


numbers = st.integers(0, 2**40)
tables = st.lists(
    st.tuples(st.integers(0, 15), st.integers(1, 15), st.integers(1, ENDLESS), st.integers(0, LATEST),
              st.sampled_from([0, 0, 0, 5, 127])), max_size=20,
)  # fmt: skip


def table(rows, ids):
    src, step, size, start, klass = np.array(rows, np.int64).reshape(-1, 5).T
    order = np.argsort(start, kind="stable")
    src, dst, size, start, klass = (c[order] for c in (src, (src + step) % 16, size, start, klass))
    id = np.array(ids[: len(src)] + list(range(2**41, 2**41 + len(src) - len(ids))), np.int64)
    return Flows.of(nodes=16, src=src, dst=dst, size=size, start=start, klass=klass, id=id)


@given(tables.filter(len), st.lists(numbers, unique=True, max_size=20))
@example([(0, 1, ENDLESS, 0, 0), (1, 1, 7, LATEST, 127)], [5, 0])
@quick
def test_what_is_written_reads_back_exactly(rows, ids):
    flows = table(rows, ids)
    for write, name in ((flows.to_csv, "a.csv"), (flows.to_cm, "a.cm"), (flows.to_parquet, "a.parquet")):
        write(name)
        assert Trace(path=name).draw(nodes=16, link=1, seed=0) == flows


def test_rates_of_flows_read_back_in_their_units_and_a_connection_matrix_has_none():
    flows = Flows.of(nodes=4, src=[0, 1], dst=[1, 2], size=10, start=0, rate=[0, 2_500_000_000])
    for write, name in ((flows.to_csv, "a.csv"), (flows.to_parquet, "a.parquet")):
        write(name)
        assert Trace(path=name).draw(nodes=4, link=1, seed=0) == flows
    with open("b.csv", "w") as file:
        file.write("src,dst,bytes,start,rate_gbps\n0,1,10,0,0\n1,2,10,0,2.5\n")
    assert Trace(path="b.csv").draw(nodes=4, link=1, seed=0).rate.tolist() == [0, 2_500_000_000]
    with open("c.csv", "w") as file:
        file.write("src,dst,bytes,start,rate\n0,1,10,0,-1\n")
    with pytest.raises(BadTrace, match=r"c.csv, line 2: rate must be from 0, for no limit, to 10+ b/s, not -1"):
        Trace(path="c.csv").draw(nodes=4, link=1, seed=0)
    with pytest.raises(BadInput, match="flows of a connection matrix must have no rates of their own, not 1 of them"):
        flows.to_cm("a.cm")


def test_many_flows_read_back_exactly_whatever_the_reader():
    flows = Poisson(load=0.5, flows=CHUNK + 10).draw(nodes=16, link=100 * Gbps, seed=1)
    for write, name in ((flows.to_csv, "a.csv"), (flows.to_cm, "a.cm"), (flows.to_parquet, "a.parquet")):
        write(name)
        assert Trace(path=name).draw(nodes=16, link=1, seed=0) == flows
    with open("a.csv") as file:
        lines = file.readlines()
    lines[-1] = lines[-1].replace(",0.", ",+0.")  # sends the last chunk to the careful reader
    assert draw("".join(lines)) == flows
    lines[CHUNK + 5] = "x" + lines[CHUNK + 5]
    assert said("".join(lines)).startswith(f"trace.csv, line {CHUNK + 6}: flow must be a whole number, not 'x")


def test_a_csv_looks_as_documented():
    flows = Flows.of(nodes=4, src=[0, 1], dst=[1, 2], size=[10, 20], start=[5632, 10**12], id=[7, 8])
    flows.to_csv("a.csv")
    assert Path("a.csv").read_text() == "flow,src,dst,bytes,start\n7,0,1,10,0.000000005632\n8,1,2,20,1.000000000000\n"
    flows.to_cm("a.cm")
    assert Path("a.cm").read_text() == (
        "Nodes 4\nConnections 2\n0->1 id 7 start 5632 size 10\n1->2 id 8 start 1000000000000 size 20\n"
    )


PLAIN = [(7, 0, 1, 100, 5 * 10**11, 0), (8, 1, 2, 200, 10**12, 0)]


@pytest.mark.parametrize(
    "content",
    [
        "7,0,1,100,0.5\n8,1,2,200,1\n",
        HEAD + "7,0,1,100,0.5\n8,1,2,200,1",
        "# said by hand\n\n" + HEAD + "\n  \n7,0,1,100,0.5\n# more\n8,1,2,200,1\n",
        "\ufeff" + HEAD + "7,0,1,100,0.5\r\n8,1,2,200,1\r\n",
        " Flow ; SRC ; dst ; size ; start_s \n 7 ; 0 ; 1 ; 100 ; 0.5\n8;1;2;200;1\n",
        "id\tsource\tdestination\tbytes\tstart in seconds\n7\t0\t1\t100\t.5\n8\t1\t2\t200\t1\n",
        "flow src dst bytes start\n7 0 1 100 0.5\n8  1 2   200 1\n",
        '"flow","src","dst","bytes","start"\n"7","0","1","100","0.5"\n"8","1","2","200","1"\n',
        "start_ps,bytes,dst,src,flow\n500000000000,100,1,0,7\n1000000000000,200,2,1,8\n",
        "flow,src,dst,bytes,start,class\n7,0,1,100,0.5,0\n8,1,2,200,1,0\n",
        "7,0,1,100,0.5,0\n8,1,2,200,1,0\n",
    ],
)
def test_a_csv_may_be_written_in_many_ways(content):
    assert rows(draw(content)) == PLAIN


def test_flows_without_a_number_are_counted_and_classes_are_kept():
    flows = draw("src,dst,bytes,start_ps,klass\n0,1,100,0,3\n1,2,100,5,4\n")
    assert rows(flows) == [(0, 0, 1, 100, 0, 3), (1, 1, 2, 100, 5, 4)]


def test_what_was_made_sense_of_is_said():
    flows = draw(HEAD + "1,0,1,100,3\n1,2,2,100,2\n3,4,5,0,1\n4,5,6,7,0\n")
    assert rows(flows) == [(4, 5, 6, 7, 0, 0), (1, 0, 1, 100, 3 * 10**12, 0)]
    assert flows.notes == (
        "1 flow had a number that another flow has too",
        "1 flow from a node to itself was skipped",
        "1 flow of 0 bytes was skipped",
        "flows were sorted by start",
    )


LINE7 = HEAD + "0,0,1,100,0\n" * 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LINE7 + "6,0,1,abc,0\n", "trace.csv, line 7: bytes must be a whole number, not 'abc'"),
        (LINE7 + "6,0,1,1.5,0\n", "trace.csv, line 7: bytes must be a whole number, not '1.5'"),
        (LINE7 + "6,0,1,1_000,0\n", "trace.csv, line 7: bytes must be a whole number, not '1_000'"),
        (LINE7 + "6,0,1,0x10,0\n", "trace.csv, line 7: bytes must be a whole number, not '0x10'"),
        (LINE7 + "6,0,1,٣,0\n", "trace.csv, line 7: bytes must be a whole number, not '٣'"),
        (LINE7 + "6,0,1,,0\n", "trace.csv, line 7: bytes must be a whole number, not ''"),
        (LINE7 + "6,0,1,-5,0\n", "trace.csv, line 7: bytes must be from 0 to 70368744177664, not -5"),
        (LINE7 + f"6,0,1,{2**64},0\n", f"trace.csv, line 7: bytes must fit 63 bits, not {2**64}"),
        (LINE7 + "6,0,1,5\n", "trace.csv, line 7: a line must have 5 fields, not 4"),
        (LINE7 + "6,0,1,5,0,0\n", "trace.csv, line 7: a line must have 5 fields, not 6"),
        (LINE7 + "6,0,1,5,soon\n", "trace.csv, line 7: start must be a number of seconds, not 'soon'"),
        (LINE7 + "6,0,1,5,nan\n", "trace.csv, line 7: start must be a number of seconds, not 'nan'"),
        (LINE7 + "6,0,1,5,1.-5\n", "trace.csv, line 7: start must be a number of seconds, not '1.-5'"),
        (LINE7 + "6,0,1,5,.\n", "trace.csv, line 7: start must be a number of seconds, not '.'"),
        (LINE7 + "6,0,1,5,-0.5\n", "trace.csv, line 7: start must be at least 0 s, not -0.5"),
        (LINE7 + "6,0,1,5,1e30\n", "trace.csv, line 7: start must be at most 4611686 s, not 1e30"),
        (LINE7 + "6,0,1,5,9999999\n", "trace.csv, line 7: start must be at most 4611686 s, not 9999999"),
        (LINE7 + "6,16,1,5,0\n", "trace.csv, line 7: src must be a node from 0 to 15, not 16"),
        (LINE7 + "6,1,-1,5,0\n", "trace.csv, line 7: dst must be a node, at least 0, not -1"),
        ("src,dst,bytes,start_ps\n0,1,5,-3\n", f"trace.csv, line 2: start must be from 0 to {LATEST} ps, not -3"),
        ("src,dst,bytes,start,class\n0,1,5,0,200\n", "trace.csv, line 2: class must be from 0 to 127, not 200"),
        (
            "0,1,5,0\n",
            "trace.csv, line 1: a line must be flow, src, dst, bytes, start and perhaps class, not '0,1,5,0'",
        ),
        (
            "src,dst,bytes,colour\n",
            "trace.csv, line 1: a column must be flow, src, dst, bytes, start, start_ps, class, rate, after or "
            "delay_ps, not 'colour'; `columns` names others, as in start=ts:ms,src=from",
        ),
        ("src,src,dst,bytes,start\n", "trace.csv, line 1: column src must be there once, not 2 times"),
        ("src,dst,start\n", "trace.csv, line 1: column bytes must be there, not only src, dst, start"),
        ("src,dst,bytes\n", "trace.csv, line 1: column start or start_ps must be there, not only src, dst, bytes"),
        ("src,dst,bytes,start,start_ps\n", "trace.csv, line 1: the start must be one of start and start_ps, not both"),
        ("", "trace.csv must have at least one flow, not be empty"),
        ("\n# nothing\n", "trace.csv must have at least one flow, not be empty"),
        (HEAD, "trace.csv must have at least one flow, not 0"),
        (b"\x89PNG\r\n\x1a\n\0\0", "trace.csv must be a csv, htsim or Parquet trace, not another kind of binary file"),
        (b"\x80\x81", "trace.csv must be a csv, htsim or Parquet trace, not another kind of binary file"),
    ],
)
def test_a_malformed_csv_is_named_by_line_and_field(content, message):
    assert said(content) == message


def test_files_that_are_none_get_a_sentence(tmp_path):
    def missing(path):
        with pytest.raises(BadTrace) as raised:
            Trace(path=path).draw(nodes=4, link=1, seed=0)
        return str(raised.value)

    assert missing("no.csv") == "no.csv must be a trace, but there is no such file"
    os.mkdir("runs")
    assert missing("runs") == "runs must be a trace, not a directory"
    assert missing("a\0b").endswith("must be a file that can be read: embedded null byte")


MATRIX = "Nodes 4\nConnections 2\n"


def test_an_htsim_matrix_is_read():
    lines = "0->1 id 1 start 5632 size 2000000\n1->3 start 0 size 7 id 9 prio 3\n"
    flows = draw("# by hand\n" + MATRIX + lines, "t.cm")
    assert rows(flows) == [(9, 1, 3, 7, 0, 3), (1, 0, 1, 2000000, 5632, 0)]


def test_a_flow_of_no_size_never_ends_in_htsim():
    flows = draw(MATRIX + "0->1 id 1 start 0\n0->2 id 2 start 0 size 0\n", "t.cm")
    assert flows.size.tolist() == [ENDLESS] * 2 and flows.notes == ("2 flows of no size never end",)


def test_triggers_that_start_nothing_are_ignored_and_said():
    text = "Nodes 4\nConnections 1\nTriggers 1\n0->1 id 1 start 0 size 9 send_done_trigger 1 prio 2000000\n"
    flows = draw(text + "trigger id 1 oneshot\n", "t.cm")
    assert flows.notes == ("1 prio above 127 was ignored", "1 line on triggers or failures was ignored")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Nodes four\n", "t.cm, line 1: Nodes must be a whole number, not 'four'"),
        ("Nodes\n", "t.cm, line 1: Nodes must be a whole number, not ''"),
        (MATRIX + "0->1 start 0\n", "t.cm: Connections must be 1, the number of flows, not 2"),
        ("Nodes 4\n0-1 start 0\n", "t.cm, line 2: a flow must begin like 0->5, not '0-1'"),
        ("Nodes 4\n0->1 start soon\n", "t.cm, line 2: start must be a whole number, not 'soon'"),
        ("Nodes 4\n0->1 start\n", "t.cm, line 2: start must be followed by a number, not by the end of the line"),
        ("Nodes 4\n0->1\n", "t.cm, line 2: a flow must have a start or a trigger, not only its ends"),
        ("Nodes 4\n0->1 size 5\n", "t.cm, line 2: a flow must have a start or a trigger, not only size"),
        (
            "Nodes 4\n0->1 colour 5\n",
            "t.cm, line 2: what is said of a flow must be id, start, size, prio or triggers, not 'colour'",
        ),
        ("Nodes 4\n0->1 trigger 3 size 5\n", "t.cm, line 2: trigger 3 must have a line of its own"),
        ("Nodes 4\n0->4 start 0\n", "t.cm, line 2: dst must be below Nodes, 4, not 4"),
        ("Nodes 99\n0->20 start 0\n", "t.cm, line 2: dst must be a node from 0 to 15, not 20"),
        ("Nodes 4\n", "t.cm must have at least one flow, not 0"),
    ],
)
def test_a_malformed_matrix_is_named_by_line_and_field(text, message):
    assert said(text, "t.cm") == message


def parquet(**columns):
    given = {"src": [0, 1], "dst": [1, 2], "bytes": [5, 6], "start_ps": [0, 7]} | columns
    pq.write_table(pa.table({name: column for name, column in given.items() if column is not None}), "t.parquet")
    return Trace(path="t.parquet")


def test_parquet_seconds_may_be_floats_decimals_or_text():
    for start in ([0.0, 5.632e-9], pa.array([Decimal("0"), Decimal("0.000000005632")]), ["0", "5.632e-9"]):
        flows = parquet(start_ps=None, start=start).draw(nodes=4, link=1, seed=0)
        assert flows.start.tolist() == [0, 5632]
    flows = parquet(start_ps=None, start=[0.0, 5.632e-9]).draw(nodes=4, link=1, seed=0)
    assert flows.notes == ("starts were seconds in floating point, rounded to whole picoseconds",)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"bytes": ["a", "b"]}, "t.parquet: bytes must be whole numbers, not string"),
        ({"bytes": [1.5, 2]}, "t.parquet: bytes must be whole numbers, not double"),
        ({"bytes": [1, None]}, "t.parquet: bytes must have a value in every row, not 1 without"),
        ({"bytes": pa.array([1, 2**63], pa.uint64())}, "t.parquet: bytes must fit 63 bits"),
        ({"dst": [1, 9]}, "t.parquet, row 2: dst must be a node from 0 to 3, not 9"),
        ({"dst": None}, "t.parquet: column dst must be there, not only src, bytes, start_ps"),
        ({"start_ps": None, "start": [0.0, float("inf")]}, "t.parquet: start must be from 0 to 4611686 s"),
        ({"start_ps": None, "start": ["0", "-1"]}, "t.parquet, row 2: start must be at least 0 s, not -1"),
        ({"start_ps": None, "start": [True, False]}, "t.parquet: start must be numbers, not bool"),
    ],
)
def test_a_parquet_file_that_is_no_trace_gets_a_sentence(columns, message):
    with pytest.raises(BadTrace) as raised:
        parquet(**columns).draw(nodes=4, link=1, seed=0)
    assert str(raised.value) == message


def test_a_broken_parquet_file_gets_a_sentence():
    assert said(b"PAR1 and nothing else").startswith(
        "trace.csv must be a Parquet trace, not something that cannot be read: "
    )


def test_a_trace_may_say_when_the_run_stops():
    assert Trace(path="a.csv").until is None
    assert Trace(path="a.csv", duration=5).until == 5


almost = st.lists(
    st.sampled_from(["flow,src,dst,bytes,start", "Nodes", "Connections", "0->1", " id ", " start ", " size ", ",", "\n",
                     "0", "1", "17", "-", "+", ".", "e", "5e-9", "9" * 30, '"', "#", " ", "\t", ";", "\r", "_", "é",
                     "\x1c", "trigger", "start_ps", "after", "delay_ps", "oneshot",
                     "send_done_trigger", "0,1,2,3,4\n", "1,2,3,4,0.5\n"]), max_size=30,
).map("".join)  # fmt: skip


@given(st.binary(max_size=200) | almost.map(str.encode) | st.text(max_size=100).map(str.encode))
@example(b"PAR1")
@example(b"0,1,2,3,\xc2\xb25\n")  # a superscript two is a digit to some
@settings(quick, max_examples=600)
def test_any_bytes_are_a_trace_or_a_sentence(content):
    try:
        flows = draw(content)
    except BadTrace as error:
        assert str(error).startswith("trace.csv")
    else:
        assert isinstance(flows, Flows)


@given(st.lists(st.tuples(*[st.integers(0, 15)] * 4, st.integers(0, 10**15)), min_size=1, max_size=20))
@quick
def test_both_readers_say_the_same(lines):
    plain = "".join(f"{a},{b},{c},{d},{t // 10**12}.{t % 10**12:012}\n" for a, b, c, d, t in lines)
    careful = plain.replace(",", ", +")  # a sign is beyond the quick reader
    assert rows(draw(plain)) == rows(draw(careful))
    assert read("trace.csv").line.tolist() == list(range(1, len(lines) + 1))


# columns that others name


def test_headers_with_units_are_read_without_being_told():
    flows = draw("src,dst,size_kb,start_us\n0,1,1.5,2.25\n1,2,3,1800000000\n")
    assert rows(flows) == [(0, 0, 1, 1500, 2_250_000, 0), (1, 1, 2, 3000, 1800 * 10**12, 0)]


def test_columns_maps_other_names_and_units_and_leaves_the_rest_out():
    text = "ts;from;what;to;len\n7.5;2;x;3;10\n"
    with open("t.csv", "w") as file:
        file.write(text)
    flows = Trace(path="t.csv", columns="start=ts:ms,src=from,dst=to,bytes=len:kib").draw(nodes=4, link=1, seed=0)
    assert rows(flows) == [(0, 2, 3, 10240, 7_500_000_000, 0)]


def test_nodes_with_names_are_numbered_as_they_appear_and_a_note_says_so():
    with open("t.csv", "w") as file:
        file.write("a,b,n,t\n10.0.0.9,10.0.0.2,5,0\n10.0.0.2,10.0.0.7,6,1\n")
    flows = Trace(path="t.csv", columns="src=a,dst=b,bytes=n,start=t").draw(nodes=3, link=1, seed=0)
    assert rows(flows) == [(0, 0, 1, 5, 0, 0), (1, 1, 2, 6, 10**12, 0)]
    assert flows.notes == (
        "3 names of nodes were numbered in the order of the file: 10.0.0.9 is 0, 10.0.0.2 is 1, 10.0.0.7 is 2",
    )


def test_a_parquet_file_of_others_is_read_the_same_way():
    pq.write_table(pa.table({"src": [0], "dst": [1], "size_kb": [2], "start_us": [1.5]}), "t.parquet")
    assert rows(Trace(path="t.parquet").draw(nodes=2, link=1, seed=0)) == [(0, 0, 1, 2000, 1_500_000, 0)]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("start", "columns must look like start=ts_us,bytes=size_kb,src=from,dst=to, not 'start'"),
        ("start=a:h", "the unit of start must be one of s, ms, us, ns, ps, not 'h'"),
        ("start=a,start=b", "columns must name start once, not again as 'start=b'"),
        ("start=t", "t.csv, line 1: start must be one of src, dst, bytes, start, not 't'"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(columns, sentence):
    with open("t.csv", "w") as file:
        file.write("src,dst,bytes,start\n0,1,5,0\n")
    with pytest.raises(BadTrace) as error:
        Trace(path="t.csv", columns=columns).draw(nodes=2, link=1, seed=0)
    assert str(error.value) == sentence


def test_starts_that_span_too_long_for_their_flows_are_suspected_of_another_unit():
    flows = Trace(path="t.csv")
    with open("t.csv", "w") as file:
        file.write(HEAD + "".join(f"{k},0,1,100000,{10 * k}\n" for k in range(180)))
    (note,) = flows.draw(nodes=2, link=100 * Gbps, seed=0).notes
    assert note.startswith("starts span 1,790 s, in which the links could carry these flows 2,486,111 times: if they")
    assert Trace(path="t.csv", columns="start=start:us").draw(nodes=2, link=100 * Gbps, seed=0).notes == ()
