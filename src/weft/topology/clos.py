"""Clos networks and their small relatives: fat trees, leaf-spine, a single switch, a dumbbell, a tree."""

import difflib
from math import inf
from os.path import isfile

from weft.errors import BadInput, require
from weft.topology.graph import Topology, build, from_edges


def fattree(hosts: int, link: int, delay: int, oversubscription: float = 1.0) -> Topology:
    """The k-ary fat tree (Al-Fares et al., SIGCOMM '08) with `hosts` = oversubscription · k³/4 hosts.

    k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches; oversubscription puts that many times k/2
    hosts below an edge switch, whose uplinks stay k/2.
    """
    _check_oversubscription(oversubscription)
    k = next((k for k in range(2, 130, 2) if round(oversubscription * k**3 / 4) >= hosts), 130)
    below = oversubscription * k / 2
    if k * k / 2 * below != hosts or below != int(below):
        sizes = [int(oversubscription * j**3 / 4) for j in range(2, 130, 2) if (oversubscription * j / 2) % 1 == 0]
        near = [*[n for n in sizes if n < hosts][-2:], *[n for n in sizes if n > hosts][:2]]
        raise BadInput(
            f"hosts of a fat tree must be k³/4 times the oversubscription for an even k (near: "
            f"{', '.join(map(str, near))}), not {hosts}"
        )
    half, below = k // 2, int(below)
    edges = [f"edge{p}.{e}" for p in range(k) for e in range(half)]
    aggs = [f"agg{p}.{a}" for p in range(k) for a in range(half)]
    cores = [f"core{a}.{c}" for a in range(half) for c in range(half)]
    links = [(f"h{h}", edges[h // below], link, delay) for h in range(hosts)]
    links += [(f"edge{p}.{e}", f"agg{p}.{a}", link, delay) for p in range(k) for e in range(half) for a in range(half)]
    links += [(f"agg{p}.{a}", f"core{a}.{c}", link, delay) for p in range(k) for a in range(half) for c in range(half)]
    return build([f"h{h}" for h in range(hosts)], edges + aggs + cores, links)


def leafspine(hosts: int, link: int, delay: int, radix: int = 64, oversubscription: float = 1.0) -> Topology:
    """A two-tier folded Clos of `radix`-port switches: 512 hosts take 16 leaves and 8 spines of 64 ports (Shoal §5).

    A leaf gives `down` ports to hosts and down / oversubscription to spines; where a leaf has more uplinks than there
    are spines, they are parallel links.
    """
    require(radix >= 2, "radix", "at least 2", radix)
    _check_oversubscription(oversubscription)
    up = max(1, int(radix / (1 + oversubscription)))
    down = min(radix - up, hosts)
    leaves = -(-hosts // down)
    if leaves > radix:
        raise BadInput(f"hosts of a leaf-spine of {radix}-port switches must be at most {down * radix}, not {hosts}")
    if leaves > 1 and down * leaves != hosts:  # spread evenly rather than leave one leaf nearly empty
        down = -(-hosts // leaves)
    up = min(up, max(1, -(-down // 1) if oversubscription == 1 else int(down / oversubscription)))
    spines = -(-leaves * up // radix)
    while up % spines:  # every leaf reaches every spine equally
        spines += 1
    links = [(f"h{h}", f"leaf{h // down}", link, delay) for h in range(hosts)]
    if leaves > 1:
        links += [(f"leaf{i}", f"spine{u % spines}", link, delay) for i in range(leaves) for u in range(up)]
    switches = [f"leaf{i}" for i in range(leaves)] + ([f"spine{i}" for i in range(spines)] if leaves > 1 else [])
    return build([f"h{h}" for h in range(hosts)], switches, links)


def suited(hosts: int, oversubscription: float = 1.0) -> str:
    """The topology that so many hosts fit: a fat tree if they can, or else the smallest folded Clos."""
    _check_oversubscription(oversubscription)
    whole = (oversubscription * k * k * k / 4 for k in range(2, 130, 2) if (oversubscription * k / 2) % 1 == 0)
    return "fattree" if hosts in whole else "clos"


def clos(hosts: int, link: int, delay: int, radix: int = 64, oversubscription: float = 1.0) -> Topology:
    """The smallest folded Clos of `radix`-port switches for `hosts`: one switch, two tiers, or a fat tree."""
    if hosts <= radix:
        return single(hosts, link, delay)
    if hosts <= radix * radix // 2 * oversubscription:
        return leafspine(hosts, link, delay, radix, oversubscription)
    return fattree(hosts, link, delay, oversubscription)


def single(hosts: int, link: int, delay: int) -> Topology:
    """Every host on one switch."""
    names = [f"h{h}" for h in range(hosts)]
    return build(names, ["switch"], [(name, "switch", link, delay) for name in names])


def dumbbell(hosts: int, link: int, delay: int) -> Topology:
    """The first half of the hosts on one switch, the rest on another, and one link between them."""
    names = [f"h{h}" for h in range(hosts)]
    links = [(name, "left" if h < hosts // 2 else "right", link, delay) for h, name in enumerate(names)]
    return build(names, ["left", "right"], [*links, ("left", "right", link, delay)])


def tree(hosts: int, link: int, delay: int, pods: int = 3) -> Topology:
    """The tree of the TDMA paper (EuroSys '12, §6.1.2): `pods` edge switches with one uplink each to one root."""
    if hosts % pods:
        raise BadInput(f"hosts of the tree must be a multiple of its {pods} pods, not {hosts}")
    names = [f"h{h}" for h in range(hosts)]
    links = [(name, f"edge{h // (hosts // pods)}", link, delay) for h, name in enumerate(names)]
    links += [(f"edge{p}", "root", link, delay) for p in range(pods)]
    return build(names, [f"edge{p}" for p in range(pods)] + ["root"], links)


MOST_HOSTS = 1 << 20  # twice the largest fat tree here; the graph is made before memory is asked for
TOPOLOGIES = ("fattree", "leafspine", "clos", "single", "dumbbell", "tree")


def topology(name: str, hosts: int, link: int, delay: int, radix: int = 64, oversubscription: float = 1.0) -> Topology:
    """The topology called `name`, or read from the edge list that `name` is the path of."""
    require(hosts >= 2, "hosts", "at least 2", hosts)
    require(hosts <= MOST_HOSTS, "hosts", f"at most {MOST_HOSTS:,}", hosts)
    require(link > 0, "link", "more than 0", link)
    require(delay >= 0, "delay", "0 or more", delay)
    _check_oversubscription(oversubscription)
    match name:
        case "fattree":
            return fattree(hosts, link, delay, oversubscription)
        case "leafspine":
            return leafspine(hosts, link, delay, radix, oversubscription)
        case "clos":
            return clos(hosts, link, delay, radix, oversubscription)
        case "single":
            return single(hosts, link, delay)
        case "dumbbell":
            return dumbbell(hosts, link, delay)
        case "tree":
            return tree(hosts, link, delay)
    if "/" in name or "." in name or isfile(name):
        graph = from_edges(name)
        if graph.hosts != hosts:
            raise BadInput(f"hosts must be the {graph.hosts} hosts of {name}, not {hosts}")
        return graph
    near = difflib.get_close_matches(name, TOPOLOGIES, 2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise BadInput(f"topology must be one of {', '.join(TOPOLOGIES)} or the path of an edge list, not {name!r}{hint}")


def _check_oversubscription(times):
    require(1 <= times < inf, "oversubscription", "a finite number, 1 or more", times)
