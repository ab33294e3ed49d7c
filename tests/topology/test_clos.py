import numpy as np
import pytest

from weft.errors import BadInput
from weft.topology.clos import TOPOLOGIES, suited, topology
from weft.topology.graph import from_edges
from weft.topology.routes import HERE, require_connected, routes
from weft.units import Gbps, us

SIZES = {"fattree": 16, "leafspine": 24, "clos": 24, "single": 5, "dumbbell": 6, "tree": 24}


def network(name, hosts=None, **more):
    return topology(name, hosts or SIZES[name], 10 * Gbps, 1 * us, **more)


def degrees(graph):
    return np.bincount(graph.ends.reshape(-1), minlength=graph.nodes)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_host_has_one_link_and_reaches_every_other(name):
    graph = network(name)
    assert (degrees(graph)[: graph.hosts] == 1).all()
    require_connected(graph, routes(graph))


def test_432_hosts_make_a_fat_tree_of_180_switches_of_12_ports():
    graph = network("fattree", 432)
    assert graph.switches == 180
    assert (degrees(graph)[432:] == 12).all()


def test_512_hosts_take_24_switches_of_64_ports():
    graph = network("leafspine", 512)  # Shoal §5
    assert graph.switches == 24
    assert (degrees(graph)[512:] == 64).all()


def test_oversubscription_multiplies_the_hosts_and_not_the_uplinks():
    graph = network("fattree", 64, oversubscription=4.0)
    edges = [k for k, name in enumerate(graph.names) if name.startswith("edge")]
    assert (degrees(graph)[edges] == 2 + 8).all()
    graph = network("leafspine", 48, radix=8, oversubscription=3.0)
    leaf = degrees(graph)[graph.node("leaf0")]
    assert leaf == 8 and len(graph.links_of(graph.node("leaf0"))) == 8
    hosts_below = sum(graph.ends[link, 0] < 48 for link in graph.links_of(graph.node("leaf0")))
    assert hosts_below == 6


def test_the_tree_has_one_uplink_a_pod():
    graph = network("tree", 24)
    assert graph.switches == 4 and degrees(graph)[graph.node("root")] == 3


def test_a_fat_tree_of_the_wrong_size_names_the_near_ones():
    with pytest.raises(BadInput) as error:
        network("fattree", 400)
    assert str(error.value) == (
        "hosts of a fat tree must be k³/4 times the oversubscription for an even k (near: 128, 250, 432, 686), not 400"
    )


def test_an_unknown_topology_names_the_near_ones():
    with pytest.raises(BadInput) as error:
        network("fatree", 16)
    assert str(error.value) == (
        "topology must be one of fattree, leafspine, clos, single, dumbbell, tree or the path of an edge list, not "
        "'fatree'; did you mean fattree or tree?"
    )


@pytest.mark.parametrize(
    ("hosts", "link", "message"),
    [
        (1, 10, "hosts must be at least 2, not 1"),
        (4, 0, "link must be more than 0, not 0"),
        (25, 10, "hosts of the tree must be a multiple of its 3 pods, not 25"),
    ],
)
def test_what_cannot_be_built_is_said(hosts, link, message):
    with pytest.raises(BadInput) as error:
        topology("tree", hosts, link, 0)
    assert str(error.value) == message


def test_an_edge_list_becomes_a_graph(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("a,b,rate,delay\nh10,s,40Gbps,1us\n# spare\nh2,s,10 Gb/s,500ns\ns,t,100Gbps,0ps\nh2,t,10Gbps,1us\n")
    graph = from_edges(path)
    assert graph.names == ("h2", "h10", "s", "t")
    assert graph.rate.tolist() == [40 * Gbps, 10 * Gbps, 100 * Gbps, 10 * Gbps]
    table = routes(graph)
    require_connected(graph, table)
    assert table.row[0] >= 0  # h2 has two links, and so a row of its own
    assert table.table[table.row[0], table.anchor[0]] == HERE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h0,s,10Gbps\n", "{path}, line 1: a link must be a,b,rate,delay, not 'h0,s,10Gbps'"),
        ("h0,s,fast,1us\n", "{path}, line 1: a rate must look like 100Gbps, not 'fast'"),
        ("h0,s,0bps,1us\nh1,s,1bps,0ps\n", "the rate of link h0-s must be more than 0, not 0"),
        ("h0,h0,1bps,1us\nh1,h0,1bps,0ps\n", "a link must join two nodes, not 'h0' to itself"),
        ("", "{path} must hold at least one link, not none"),
    ],
)
def test_a_bad_edge_list_is_named_by_line(tmp_path, text, message):
    path = tmp_path / "net.csv"
    path.write_text(text)
    with pytest.raises(BadInput) as error:
        from_edges(path)
    assert str(error.value) == message.format(path=path)


def test_a_disconnected_graph_names_two_hosts(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("h0,s,1Gbps,0ps\nh1,s,1Gbps,0ps\nh2,t,1Gbps,0ps\nh3,t,1Gbps,0ps\n")
    graph = from_edges(path)
    with pytest.raises(BadInput) as error:
        require_connected(graph, routes(graph))
    assert str(error.value) == "every host must reach every other, but there is no path from 'h0' to 'h2'"


def walk(graph, table, src, dst, path):
    """Nodes from src to dst when the packet carries path number `path`."""
    _, to = graph.port_ends()
    nodes = [src]
    while nodes[-1] != dst:
        here = nodes[-1]
        if table.row[here] < 0:
            port = -1 - table.row[here]
        else:
            group = table.table[table.row[here], table.anchor[dst]]
            if group == HERE:
                port = table.down[dst]
            else:
                path, turn = divmod(path, int(table.count[group]))
                port = table.choices[table.first[group] + turn]
        nodes.append(int(to[port]))
        assert len(nodes) < 10
    return nodes


def test_path_numbers_name_every_path_of_a_fat_tree_once():
    graph = network("fattree", 54)
    table = routes(graph)
    between_pods = {tuple(walk(graph, table, 0, 53, path)) for path in range(9)}
    assert len(between_pods) == 9 and {len(nodes) for nodes in between_pods} == {7}
    within_a_pod = {tuple(walk(graph, table, 0, 8, path)) for path in range(3)}
    assert len(within_a_pod) == 3 and {len(nodes) for nodes in within_a_pod} == {5}


def test_routes_avoid_links_that_are_down():
    graph = network("fattree", 16)
    alive = np.ones(len(graph.ends), bool)
    alive[graph.links_between(graph.node("edge0.0"), graph.node("agg0.0"))] = False
    table = routes(graph, alive)
    for path in range(4):
        assert graph.node("agg0.0") not in walk(graph, table, 0, 15, path)
        assert graph.node("agg0.0") not in walk(graph, table, 15, 0, path)


def test_near_sizes_are_named_below_and_above_however_far_the_next_one_is():
    with pytest.raises(BadInput, match=r"near: 16, 54, 128, 250"):
        network("fattree", 64)


@pytest.mark.parametrize(
    ("hosts", "oversubscription", "name"),
    [(16, 1.0, "fattree"), (54, 1.0, "fattree"), (64, 1.0, "clos"), (64, 4.0, "fattree"), (8, 1.0, "clos")],
)
def test_hosts_that_fit_no_fat_tree_are_suited_by_a_clos(hosts, oversubscription, name):
    assert suited(hosts, oversubscription) == name
    assert network(name, hosts, oversubscription=oversubscription).hosts == hosts
