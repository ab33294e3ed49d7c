"""Hosts: transports (TCP, DCTCP, MPTCP, NDP, DCQCN), NICs and flows, for any network whose time is events.

A host hands its NIC packets and is handed those that arrive. What lies between is the network's, which no file here
knows: the loop of events (`loop.advance`) is compiled for one transport and one network, each a few functions.
`tests/hosts/ideal.py` is a whole network in sixty lines, kernel and twin, to be copied. A network writes:

**A description** with `hosts`, `link` (b/s of a host's port), `payload` and `wire_size` (bytes of a full packet without
and with all headers), `ties`, and `settings`, a `settings.Settings` or a class derived from it.

**A state**: a dataclass derived from `state.Arrays` with its own tables, and a world, `state.world(numbers, tables)`,
with its own numbers and the addresses of those tables. To lay one out:

    arrays = State(**memory.zeros({"world": (1, WORLD), **state.tables(fabric, flows), "queues": ...}))
    state.begin(arrays, fabric, flows, seed=seed, shift=events.shift_for(...))   # hosts, flows and the event queue
    arrays.hosts["rate"] = ...                                                   # b/s of each host's port
    views.bind(arrays.world, **{name: getattr(arrays, name) for name in (*state.TABLES, "queues")})

Tables that are full (`loop.GROW_ROWS`, `loop.GROW_SLOTS`) grow between strides: those of `state.PER_PACKET`, or of
`state.PER_FLOW`, are replaced by `memory.longer` ones and bound again.

**Five functions**, parts of kernels that take the world, in a `loop.Network`:

    forward(s, r, host)     take packet r, which its host sends now. The network has the queue of the host's port, in
                            which nothing is lost. `nic.leave` is such a port where it is first come, first served. A
                            fair NIC sends a packet when the line is free, so the queue then stays empty.
    arrive(s, r)            row r is due, which the network had scheduled by `events.push`: a packet, or a row of a kind
                            of its own, from `state.OWN` up to but without `state.FIRST_TIMER`. Move it on, end it by
                            `state.lose`, or return True if the packet is at its host, `packet_at(s, r).dst`.
    waiting(s, host)        data packets that wait on the host's port, the one being sent left out; `loop.none_waiting`
                            where ports are never paused. Else, when a data packet leaves the port of a host that is
                            `blocked`, the network sets `s.has_room` to that host.
    paths(s, src, dst)      how many paths there are. Packets choose one by `packet_at(s, r).path`: a number below
                            this count where transports walk all paths in turn, below 2**30 where they draw one.
    look_ahead(s)           prefetch, or `loop.nothing_ahead`.

A packet belongs to the network between `forward` and `arrive`: it may use `port`, `epoch` and `path`, set the flags
MARKED (congestion) and TRIMMED (without its payload, `size` changed), or turn it round (BOUNCED, to `flow_at(s,
p.flow).src`, if that flow still has its slot). Frames of the network's own take a row by `events.take`, count in
`s.conserved_in`, and when they end, `s.conserved_out` and `events.give`.

**A kernel for each transport**, three lines each, as in `loop`, because Numba finds a kernel in its cache by the file
that it is written in: TCP, DCTCP and MPTCP are one, NDP and DCQCN one each.

**A twin**: a class derived from `reference.Hosts` with `forward`, and `paths`, `rate` and `waiting` where they differ
from a single path at the rate of `link`; it calls `deliver` and `lose`. Both must end in the same fingerprint.
"""
