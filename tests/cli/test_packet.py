"""`weft run packet`: the commands that comparisons are made of, and what is said of networks that cannot be."""

import json

import pytest

PERMUTATION = ("run", "packet", "permutation", "--topology", "fattree", "--link", "10Gbps", "--mtu", 9000, "--seed", 1)


@pytest.mark.parametrize("transport", ["ndp", "dctcp", "dcqcn", "mptcp", "tcp"])
def test_a_permutation_reports_what_every_destination_received_in_the_second_half(weft, transport):
    said = weft(*PERMUTATION, "--hosts", 16, "--transport", transport, "--duration", "2ms", "--json")
    assert (said.code, said.err) == (0, "")
    data = json.loads(said.out)
    rates = data["throughput"]["per_destination_gbps"]
    assert 0 <= rates["min"] <= rates["mean"] <= rates["max"] <= 10
    assert data["throughput"]["window"] == "the second half of the run"
    best = 10 * (9000 - data["settings"]["header"]) / 9038  # of a link that carries full packets without a pause
    assert data["throughput"]["fraction_of_link"] == pytest.approx(rates["mean"] / best)
    assert data["simulated_ns"] == 2_000_000
    assert data["rate"]["packet_hops_per_s"] > 0 and data["rate"]["events_per_s"] > 0
    for key in ("queue", "drops", "trims", "marks", "pauses", "retransmissions", "timeouts"):
        assert key in data
    assert data["queue"]["unit"] == "packets" and data["queue"]["max_bytes"] >= data["queue"]["max"]


def test_rates_leave_compilation_out(weft):
    data = json.loads(weft(*PERMUTATION, "--hosts", 16, "--transport", "tcp", "--duration", "2ms", "--json").out)
    assert data["rate"]["packet_hops_per_s"] > 200_000  # with it, some thousands


@pytest.mark.parametrize("flag", ["--senders", "--fan-in"])
def test_an_incast_reports_the_first_and_the_last_completion(weft, flag):
    said = weft("run", "packet", "incast", "--hosts", 128, flag, 100, "--bytes", "450KB", "--mtu", 9000,
                "--transport", "ndp", "--topology", "single", "--json")  # fmt: skip
    data = json.loads(said.out)
    assert data["workload"]["fan_in"] == 100
    fct = data["fct_us"]
    assert 0 < fct["first"] < fct["all"]["p50"] < fct["last"] == fct["all"]["max"]
    assert fct["last"] > 100 * 360  # no link is faster than its rate
    assert data["rate"]["packet_hops_per_s"] > 0 and data["rate"]["events_per_s"] > 0


def test_every_fabric_counts_senders(weft):
    shoal = ("run", "shoal", "incast", "--nodes", 8, "--bytes", "13KB", "--json")
    data = [json.loads(weft(*shoal, flag, 4).out) for flag in ("--senders", "--fan-in")]
    assert data[0]["fingerprint"] == data[1]["fingerprint"]


def test_a_trace_that_shoal_takes_runs_on_a_leaf_spine(weft, tmp_path):
    trace = tmp_path / "flows.csv"
    trace.write_text("flow,src,dst,bytes,start_ps\n0,0,511,100000,0\n1,3,2,1,1000\n2,511,0,64,1000\n")
    given = ("trace", "--trace", trace, "--link", "50Gbps", "--json")
    packet = weft("run", "packet", *given, "--hosts", 512, "--topology", "leafspine", "--transport", "ndp@shoal-nsdi19")
    shoal = weft("run", "shoal", *given, "--nodes", 512)
    assert (packet.code, shoal.code) == (0, 0)
    assert json.loads(packet.out)["finished"] == json.loads(shoal.out)["finished"] == 3
    assert json.loads(packet.out)["rate"]["events_per_s"] > 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--link", "0Gbps"), "link must be more than 0, not 0"),
        (("--transport", "dctcp:mark_from=120"),
         "mark_from, where ECN marks, must be at most the buffer, 100 packets, not 120"),
        (("--transport", "dcqcn:headroom=10KB", "--mtu", 9000, "--link", "40Gbps"),
         "headroom must be at least 37198 bytes (37.198 KB) for this link, delay and MTU, not 10000"),
        (("--transport", "dctp"), "transport must be a known preset, not 'dctp': near it are dctcp, tcp, ndp"),
        (("--transport", "dctcp@stardust"),
         "transport must be a known preset, not 'dctcp@stardust': near it are dctcp@stardust-nsdi19, "
         "tcp@stardust-nsdi19, mptcp@stardust-nsdi19, dctcp, dctcp@shoal-nsdi19, dctcp@ndp-sigcomm17"),
    ],
)  # fmt: skip
def test_a_network_that_cannot_be_is_refused_in_a_sentence(weft, flags, message):
    said = weft("run", "packet", "permutation", "--hosts", 16, *flags)
    assert (said.code, said.out) == (2, "")
    assert said.err == f"weft run packet: {message}\n"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("h0,s0,10Gbps,1us\nh1,s0,10Gbps,1us\nh2,s1,10Gbps,1us\nh3,s1,10Gbps,1us\n",
         "every host must reach every other, but there is no path from 'h0' to 'h2'"),
        ("h0,s0,10Gbps,1us\nh1,s0,0Gbps,1us\n", "the rate of link h1-s0 must be more than 0, not 0"),
    ],
)  # fmt: skip
def test_a_graph_that_cannot_carry_is_refused_in_a_sentence(weft, tmp_path, lines, message):
    graph = tmp_path / "graph.csv"
    graph.write_text("a,b,rate,delay\n" + lines)
    hosts = lines.count("h")
    said = weft("run", "packet", "permutation", "--hosts", hosts, "--topology", graph, "--duration", "10us")
    assert (said.code, said.out) == (2, "")
    assert said.err == f"weft run packet: {message}\n"
