"""Rates by water-filling: the max-min fair rate of every flow that is known, its traffic split as it is routed.

A flow of weight w that is given level x sends w x b/s, and a port carries of it the part that its routing puts there,
counted in 1/ONE. All levels rise together until a port is full; the flows that cross it keep the level they have, the
others go on. In whole numbers: the level of a port is what it has left, divided by what its unfixed flows take of it
for each unit of level, rounded down; the port of the least level, and among equals of the least number, is next.
Fixing flows never lowers the level of another port, because what they take is at most their share of what is left.

So levels in the heap may be old, but are never too high: the first of the heap is brought up to date, and is the next
port if that did not change it. Each load of a flow is visited once to sort flows by port and once to fix them.

Where classes are strict, the flows of a higher class are given rates first, the others what is left. Flows that ask for
no more than so much, by their class or for themselves, stop rising there. Flows that are spread (Valiant) load all
ports; they are kept in rows of their two ends, `cast` and `landed`, and not in `loads`.
"""

import numpy as np

from weft.engine.jit import hot, part
from weft.fabrics.torus.state import (
    COUNT,
    ONE,
    SHARE,
    TOLD,
    UNLIMITED,
    asked,
    begins,
    capacity,
    cast,
    crossing,
    demands,
    enough,
    entry_at,
    heap_ports,
    landed,
    left,
    level,
    limits,
    line,
    loads,
    mass,
    members,
    modest_ones,
    port_of,
    shares,
    thirst,
    to_of,
    toward,
)


@part
def lay(s, src, dst, at):
    """Write what each port carries of the traffic from src to dst to `loads` from `at` on; how many ports that are.

    Every node splits what passes evenly among the ports that begin a shortest path; the first takes what remains.
    """
    mass_, line_, loads_, row = mass(s), line(s), loads(s), toward(s)[dst]
    mass_[src] = ONE
    line_[0] = src
    first, last, out = 0, 1, at
    while first < last:
        u = np.uint64(line_[np.uint64(first)])
        first += 1
        here = mass_[u]
        mass_[u] = 0
        if u == np.uint64(dst):
            continue
        mask = np.uint64(row[u])
        if mask == 0:
            continue
        several = shares(s)[mask]
        ports = np.uint64(several.ports)
        count = np.int64(ports >> np.uint64(COUNT))
        share = np.int64(np.uint64(here) * np.uint64(several.whole) >> np.uint64(SHARE))
        amount = here - share * (count - 1)
        for i in range(count):
            if amount > 0:
                p = (ports >> np.uint64(4 * i)) & np.uint64(15)
                load = loads_[np.uint64(out)]
                load.port, load.part = port_of(s)[u, p], amount
                out += 1
                v = np.uint64(to_of(s)[u, p])
                if mass_[v] == 0:
                    line_[np.uint64(last)] = v
                    last += 1
                mass_[v] += amount
            amount = share
    return out - at


@part
def add(s, e, sign):
    """Enter the loads of entry e in the accounts of the ports, or take them off (sign -1)."""
    entry = entry_at(s, e)
    klass, weight = np.int64(entry.klass), sign * np.int64(entry.weight)
    asked_ = asked(s)[klass]
    if entry.spread == 1:
        out, back = cast(s)[entry.src], landed(s)[entry.dst]
        entry.count = 0
        for k in range(s.ports_size):
            amount = np.int64(out[k]) + np.int64(back[k])
            asked_[k] += weight * amount
            entry.count += 1 if amount > 0 else 0
        return
    crossing_ = crossing(s)[klass]
    loads_ = loads(s)
    for i in range(entry.first, entry.first + entry.count):
        k = np.uint64(loads_[np.uint64(i)].port)
        asked_[k] += weight * np.int64(loads_[np.uint64(i)].part)
        crossing_[k] += sign


@hot
def _before(level_, a, b):
    return (level_[a] < level_[b]) | ((level_[a] == level_[b]) & (a < b))


@part
def sink(heap, level_, i, size):
    """Let the number in place i of a heap by (level, number), of so many, sink to where it belongs."""
    port = np.int64(heap[i])
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _before(level_, np.int64(heap[child + 1]), np.int64(heap[child])):
            child += 1
        if not _before(level_, np.int64(heap[child]), port):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = port


@part
def _gather(s, low, high):
    """Lay out the ports of the flows of classes low … high: what they ask for, who crosses them, and the heap.

    Returns how many ports are in the heap.
    """
    left_, thirst_, level_, heap, begins_ = left(s), thirst(s), level(s), heap_ports(s), begins(s)
    size, at = 0, np.int64(0)
    for k in range(s.ports_size):
        ask = np.int64(0)
        begins_[k] = at
        for klass in range(low, high + 1):
            ask += asked(s)[klass, k]
            at += crossing(s)[klass, k]
        thirst_[k] = ask
        if ask > 0:
            level_[k] = left_[k] // ask
            heap[size] = k
            size += 1
    begins_[s.ports_size] = at
    for i in range((size >> 1) - 1, -1, -1):
        sink(heap, level_, i, size)
    members_, loads_ = members(s), loads(s)
    for e in range(s.used_entries):
        entry = entry_at(s, e)
        if entry.state == TOLD and entry.spread == 0 and low <= entry.klass <= high:
            for i in range(entry.first, entry.first + entry.count):
                k = np.uint64(loads_[np.uint64(i)].port)
                members_[np.uint64(begins_[k])] = e
                begins_[k] += 1
    return size


@hot
def _fix(s, e, x):
    """Fix the rate of entry e at level x, and take it off the ports it crosses."""
    entry = entry_at(s, e)
    weight = np.int64(entry.weight)
    rate = weight * x
    entry.frozen = s.computations
    entry.rate = max(rate, 1)
    left_, thirst_ = left(s), thirst(s)
    if entry.spread == 1:
        out, back = cast(s)[entry.src], landed(s)[entry.dst]
        for k in range(s.ports_size):
            amount = np.int64(out[k]) + np.int64(back[k])
            left_[k] -= amount * rate
            thirst_[k] -= amount * weight
        return
    loads_ = loads(s)
    for i in range(entry.first, entry.first + entry.count):
        k = np.uint64(loads_[np.uint64(i)].port)
        amount = np.int64(loads_[np.uint64(i)].part)
        left_[k] -= amount * rate
        thirst_[k] -= amount * weight


@hot
def _rising(s, e, low, high):
    """Whether entry e is of one of the classes, has a path, and no rate yet."""
    entry = entry_at(s, e)
    there = entry.state == TOLD and entry.frozen < s.computations and entry.count > 0
    return there and low <= entry.klass <= high


@part
def _fix_spread(s, k, x, low, high):
    """Fix the spread flows that cross port k."""
    for e in range(s.used_entries):
        entry = entry_at(s, e)
        if entry.spread == 0 or not _rising(s, e, low, high):
            continue
        if cast(s)[entry.src, k] + landed(s)[entry.dst, k] > 0:
            _fix(s, e, x)


@hot
def asks_for(s, entry):
    """b/s that an entry asks for at most, or UNLIMITED."""
    most = demands(s)[np.uint64(entry.klass)]
    return min(most, limits(s)[np.uint64(entry.id)]) if s.limits_size > 0 else most


@part
def _ask(s, low, high):
    """Put the flows that ask for no more than so much into a heap. How many those are."""
    heap, enough_, size = modest_ones(s), enough(s), 0
    for e in range(s.used_entries):
        if _rising(s, e, low, high):
            most = asks_for(s, entry_at(s, e))
            if most < UNLIMITED:
                enough_[e] = most // np.int64(entry_at(s, e).weight)
                heap[size] = e
                size += 1
    for i in range((size >> 1) - 1, -1, -1):
        sink(heap, enough_, i, size)
    return size


@part
def _satisfy(s, x, size):
    """Fix the flow that has all it asks for at the least level, if that is not above x. (whether any, flows left)."""
    heap, enough_ = modest_ones(s), enough(s)
    while size > 0:
        e = np.int64(heap[0])
        rising = entry_at(s, e).frozen < s.computations
        if rising and enough_[e] > x:
            return False, size
        size -= 1
        heap[0] = heap[size]
        sink(heap, enough_, 0, size)
        if rising:
            _fix(s, e, enough_[e])
            return True, size
    return False, size


@part
def _pour(s, low, high):
    """Give rates to the flows of classes low … high."""
    size = _gather(s, low, high)
    asking = np.int64(_ask(s, low, high) if s.modest == 1 else 0)
    left_, thirst_, level_, heap, begins_ = left(s), thirst(s), level(s), heap_ports(s), begins(s)
    while size > 0:
        k = np.int64(heap[0])
        if thirst_[k] == 0:
            size -= 1
            heap[0] = heap[size]
            sink(heap, level_, 0, size)
            continue
        x = left_[k] // thirst_[k]
        if x > level_[k]:
            level_[k] = x
            sink(heap, level_, 0, size)
            continue
        if asking > 0:
            fixed, asking = _satisfy(s, x, asking)
            if fixed:
                continue
        s.frozen_ports += 1
        first = begins_[k - 1] if k > 0 else np.int64(0)  # filling has moved each to where the next one began
        for i in range(first, begins_[k]):
            e = np.int64(members(s)[i])
            if entry_at(s, e).frozen < s.computations:
                _fix(s, e, x)
        if s.cast_size > 0:
            _fix_spread(s, k, x, low, high)
        thirst_[k] = 0  # it is, unless somebody else wrote the tables; then this ends the loop


@part
def pour(s):
    """Compute the rates of all flows that are known."""
    s.computations += 1
    for k in range(s.ports_size):
        left(s)[k] = capacity(s)[k]
    if s.strict == 0:
        _pour(s, 0, s.classes_of_flows - 1)
        return
    for klass in range(s.classes_of_flows - 1, -1, -1):
        _pour(s, klass, klass)
