"""Routes on any graph: every way ends, none goes in circles or through a host, and all are as short as can be."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.topology.clos import clos, leafspine, topology
from weft.topology.graph import Topology, build, from_edges
from weft.topology.routes import HERE, NO_ROUTE, require_connected, routes
from weft.units import Gbps, us


@st.composite
def graphs(draw, most=7):
    """Some hosts and switches with random links between them, parallel ones too; every host has a link."""
    hosts, switches = draw(st.integers(2, 5)), draw(st.integers(1, most))
    names = [f"h{k}" for k in range(hosts)], [f"s{k}" for k in range(switches)]
    every = [*names[0], *names[1]]
    links = [(host, draw(st.sampled_from(names[1])), Gbps, us) for host in names[0]]
    more = st.tuples(st.sampled_from(every), st.sampled_from(every)).filter(lambda ends: ends[0] != ends[1])
    links += [(*ends, Gbps, us) for ends in draw(st.lists(more, max_size=14))]
    return build(*names, draw(st.permutations(links)))


def hops(graph, target, alive):
    """{node: least hops to target}, hosts other than the ends passing nothing on; found by looking around."""
    found, queue = {target: 0}, deque([target])
    while queue:
        here = queue.popleft()
        if here < graph.hosts and here != target:
            continue  # reached, but it forwards for nobody
        for link in graph.links_of(here):
            a, b = graph.ends[link].tolist()
            other = b if a == here else a
            if alive[link] and other not in found:
                found[other] = found[here] + 1
                queue.append(other)
    return found


def ports(graph, table, here, dst):
    """Every port that the table lets a packet for `dst` take at `here`; None if there is no way."""
    if table.row[here] < 0:
        return [-1 - int(table.row[here])]
    group = int(table.table[table.row[here], table.anchor[dst]])
    if group == NO_ROUTE:
        return None
    if group == HERE:
        return [int(table.down[dst])]
    first, count = int(table.first[group]), int(table.count[group])
    return table.choices[first : first + count].tolist()


@settings(max_examples=150)
@given(graphs(), st.data())
def test_every_port_of_every_route_is_one_hop_nearer_and_none_is_left_out(graph, data):
    links = len(graph.ends)
    down = data.draw(st.sets(st.integers(0, links - 1), max_size=3))
    alive = np.array([link not in down for link in range(links)])
    table = routes(graph, alive)
    frm, to = graph.port_ends()
    for dst in range(graph.hosts):
        if table.down[dst] >= 0 and not alive[table.down[dst] // 2]:
            continue  # its only link is down: packets go as far as its switch
        least = hops(graph, dst, alive)
        for here in range(graph.nodes):
            if here == dst or table.row[here] < 0:
                continue  # a host with one link has nothing to choose
            found = ports(graph, table, here, dst)
            if here not in least:
                assert found is None
                continue
            shortest = {
                port
                for port in range(graph.ports)
                if frm[port] == here and alive[port // 2] and least.get(int(to[port]), 99) + 1 == least[here]
                and (to[port] >= graph.hosts or to[port] == dst)
            }  # fmt: skip
            assert set(found) == shortest
            assert found == sorted(found)


@given(graphs(), st.integers(0, 2**30))
def test_every_path_number_leads_there_in_as_few_hops_as_can_be(graph, path):
    table = routes(graph)
    _, to = graph.port_ends()
    alive = np.ones(len(graph.ends), bool)
    for src in range(graph.hosts):
        for dst in range(graph.hosts):
            least = hops(graph, dst, alive)
            if src == dst or src not in least:
                continue
            here, rest, steps = src, path, 0
            while here != dst:
                choice = ports(graph, table, here, dst)
                rest, turn = divmod(rest, len(choice))
                here, steps = int(to[choice[turn]]), steps + 1
                assert here >= graph.hosts or here == dst  # nobody else's host
                assert steps <= graph.nodes
            assert steps == least[src]


@given(graphs())
def test_a_graph_is_refused_exactly_if_two_hosts_cannot_reach_each_other(graph):
    alive = np.ones(len(graph.ends), bool)
    reach = all(src in hops(graph, dst, alive) for src in range(graph.hosts) for dst in range(graph.hosts))
    if reach:
        require_connected(graph, routes(graph))
    else:
        with pytest.raises(BadInput, match=r"^every host must reach every other, but there is no path from 'h"):
            require_connected(graph, routes(graph))


@given(graphs())
def test_a_port_and_the_other_way_of_its_link(graph):
    frm, to = graph.port_ends()
    for port in range(graph.ports):
        assert (frm[port], to[port]) == (to[port ^ 1], frm[port ^ 1])
        assert port // 2 in graph.links_between(frm[port], to[port])
        assert port // 2 in graph.links_of(frm[port])


# networks of every size


@settings(max_examples=60)
@given(st.integers(2, 90), st.sampled_from([4, 6, 8, 16]), st.sampled_from([1.0, 2.0, 3.0]))
def test_a_leaf_spine_of_any_size_is_whole_and_keeps_to_its_ports(hosts, radix, oversubscription):
    try:
        graph = leafspine(hosts, Gbps, us, radix, oversubscription)
    except BadInput as error:
        assert str(error).startswith(f"hosts of a leaf-spine of {radix}-port switches must be at most ")
        return
    degree = np.bincount(graph.ends.reshape(-1), minlength=graph.nodes)
    assert graph.hosts == hosts
    assert (degree[:hosts] == 1).all()
    assert (degree[hosts:] <= radix).all()
    assert (degree[hosts:] >= 1).all()
    require_connected(graph, routes(graph))


@pytest.mark.parametrize(("hosts", "tiers"), [(2, 1), (8, 1), (9, 2), (32, 2), (54, 3)])
def test_a_clos_is_as_low_as_its_radix_allows(hosts, tiers):
    graph = clos(hosts, Gbps, us, radix=8 if hosts < 54 else 6)
    kinds = {name.rstrip("0123456789.") for name in graph.names[hosts:]}
    assert kinds == {1: {"switch"}, 2: {"leaf", "spine"}, 3: {"edge", "agg", "core"}}[tiers]


@pytest.mark.parametrize("oversubscription", [0.5, 0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["fattree", "leafspine", "single"])
def test_an_oversubscription_below_one_or_beyond_all_is_refused(name, oversubscription):
    with pytest.raises(BadInput) as said:
        topology(name, 16, Gbps, us, oversubscription=oversubscription)
    assert str(said.value) == f"oversubscription must be a finite number, 1 or more, not {oversubscription!r}"


def test_hosts_that_no_memory_holds_are_refused_before_they_are_made():
    with pytest.raises(BadInput) as said:
        topology("single", 10**9, Gbps, us)
    assert str(said.value) == "hosts must be at most 1,048,576, not 1000000000"


# edge lists


def edges(tmp_path, content):
    path = tmp_path / "net.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


LINES = ("h0,s,10Gbps,1us", "h1,s,10Gbps,1us", "h2,s,40Gbps,500ns")


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(LINES), "\r\n".join(LINES) + "\r\n", "\n\n".join(LINES) + "\n\n  \n",
        "a,b,rate,delay\n" + "\n".join(LINES), "A, B, Rate, Delay\n" + "\n".join(LINES),
        "# a comment, with, four, cells\n" + "\n#another\n".join(LINES), " , ".join(LINES[0].split(",")) + "\n"
        + "\n".join(LINES[1:]), "\ufeff" + "\n".join(LINES), "\ufeffa,b,rate,delay\n" + "\n".join(LINES),
    ],
    ids=["plain", "crlf", "blank lines", "header", "spaced header", "comments", "spaces", "bom", "bom and header"],
)  # fmt: skip
def test_an_edge_list_may_be_written_in_many_ways(tmp_path, content):
    graph = from_edges(edges(tmp_path, content))
    assert graph.names == ("h0", "h1", "h2", "s")
    assert graph.rate.tolist() == [10 * Gbps, 10 * Gbps, 40 * Gbps]
    assert graph.delay.tolist() == [us, us, us // 2]


def test_parallel_links_are_links_of_their_own(tmp_path):
    graph = from_edges(edges(tmp_path, "h0,s,1Gbps,1us\nh1,t,1Gbps,1us\ns,t,1Gbps,1us\nt,s,2Gbps,1us\n"))
    assert graph.links_between(graph.node("s"), graph.node("t")) == [2, 3]
    table = routes(graph)
    assert ports(graph, table, graph.node("s"), 1) == [4, 7]  # forward on the one, backward on the other


def test_hosts_are_numbered_by_the_number_in_their_name(tmp_path):
    text = "".join(f"h{k},s,1Gbps,1us\n" for k in (10, 2, 33, 1))
    assert from_edges(edges(tmp_path, text)).names == ("h1", "h2", "h10", "h33", "s")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("h0,s,1e20bps,1us\nh1,s,1bps,1us\n",
         "the rate of link h0-s must be at most 2^62 b/s, not 100000000000000000000"),
        ("h0,s,1bps,1e10s\nh1,s,1bps,1us\n",
         "the delay of link h0-s must be at most 2^62 ps, not 10000000000000000000000"),
        ("h0,s,1bps,-1us\nh1,s,1bps,1us\n", "the delay of link h0-s must be 0 or more, not -1000000"),
        ("h0,s,-1bps,1us\nh1,s,1bps,1us\n", "the rate of link h0-s must be more than 0, not -1"),
        ("h0,s,1bps,1us\n", "hosts must be at least 2, not 1"),
        ("s,t,1bps,1us\n", "hosts must be at least 2, not 0"),
        ("s,s,1bps,1us\nh0,s,1bps,1us\nh1,s,1bps,1us\n", "a link must join two nodes, not 's' to itself"),
        ("h0,s,10Gbps,1us,extra\n", "{path}, line 1: a link must be a,b,rate,delay, not 'h0,s,10Gbps,1us,extra'"),
        ("\nh0,,10Gbps,1us\n", "{path}, line 2: a link must be a,b,rate,delay, not 'h0,,10Gbps,1us'"),
        ("h0,s,10 GB/s,1us\n", "{path}, line 1: a rate must be in bits, as in 100Gbps, not bytes: '10 GB/s'"),
        ("h0,s,1bps,soon\n", "{path}, line 1: a time must look like 2750ps or 1.5us, not 'soon'"),
        (b"\xff\xfe\x00", "{path} must be a csv of links, not binary"),
        ("# nothing\n\n", "{path} must hold at least one link, not none"),
    ],
)  # fmt: skip
def test_an_edge_list_that_cannot_be_is_said(tmp_path, content, sentence):
    path = edges(tmp_path, content)
    with pytest.raises(BadInput) as said:
        from_edges(path)
    assert str(said.value) == sentence.format(path=path)


def test_an_edge_list_that_is_not_there_or_a_folder_is_said(tmp_path):
    for path, why in ((tmp_path / "none.csv", ", but there is no such file"), (tmp_path, ", not a directory")):
        with pytest.raises(BadInput) as said:
            from_edges(path)
        assert str(said.value) == f"{path} must be a csv of links{why}"


def test_the_hosts_of_an_edge_list_must_be_those_of_the_fabric(tmp_path):
    path = edges(tmp_path, "\n".join(LINES))
    with pytest.raises(BadInput) as said:
        topology(str(path), 4, Gbps, us)
    assert str(said.value) == f"hosts must be the 3 hosts of {path}, not 4"
    assert topology(str(path), 3, Gbps, us).hosts == 3


def test_a_node_is_found_by_its_name_or_the_names_are_told(tmp_path):
    graph = from_edges(edges(tmp_path, "\n".join(LINES)))
    assert graph.node("s") == 3
    with pytest.raises(BadInput) as said:
        graph.node("spine")
    assert str(said.value) == "a node must be one of h0, h1, h2, s, not 'spine'"


def test_a_host_without_a_link_is_named():
    with pytest.raises(BadInput) as said:
        Topology(hosts=2, names=("h0", "h1", "s"), ends=np.array([[0, 2]]), rate=np.array([1]), delay=np.array([0]))
    assert str(said.value) == "every host must have a link, but 'h1' has none"
