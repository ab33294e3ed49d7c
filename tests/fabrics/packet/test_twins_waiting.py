"""Do flows that wait for flows start in the same picosecond in the kernel and its twin, whatever the transport?"""

import pytest
from hypothesis import Phase, given, settings

from graphs import waiting
from weft.fabrics.network import reference
from weft.fabrics.packet import Packet

few = settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
TRANSPORTS = (
    "tcp:rto_min=300us,rto_first=1ms", "dctcp:rto_min=300us,rto_first=1ms,mark_from=2",
    "mptcp:rto_min=300us,rto_first=1ms,subflows=2", "ndp:rto_min=300us", "dcqcn",
)  # fmt: skip


@pytest.mark.parametrize("transport", TRANSPORTS)
@few
@given(waiting(6, largest=30_000, latest=30_000_000, delays=(0, 0, 1, 5_000_000)))
def test_the_kernel_releases_as_the_reference_does(transport, flows):
    fabric = Packet(hosts=6, topology="dumbbell", transport=transport, buffer=8)
    run = fabric.prepare(flows, seed=1)
    run.advance()
    seen, twin = run.observe(), reference.run(fabric, flows, seed=1)
    assert seen.fingerprint == str(twin.print)
    assert seen.finish.tolist() == list(twin.finish)
    released = flows.released(seen.finish)
    assert (released >= 0).all() and (seen.finish - released >= fabric.ideal(flows)).all()
