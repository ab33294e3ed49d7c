"""Do hosts speak over a network that they have never seen, kernel and twin alike?"""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hosts.ideal import Ideal, Switch, run
from weft.random import below, key, words
from weft.units import us
from weft.workload.flows import Flows

few = settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.generate))
TRANSPORTS = [  # those of one kernel are slow to compile, and run over tori and cell fabrics too
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            "tcp:rto_min=300us,rto_first=1ms",
            "tcp:rto_min=300us,rto_first=1ms,sack=true,ack_every=2,ack_delay=20us",
            "dctcp:rto_min=300us,rto_first=1ms",
            "mptcp:rto_min=300us,rto_first=1ms,subflows=3,reinject=true",
        )
    ),
    "ndp:rto_min=200us,initial_window=12",
    "dcqcn:rto_min=300us,rto_first=300us,raise_bytes=8KB",
]


def traffic(hosts, count, seed, largest=60_000, within=200 * us):
    draw = words(key(seed, 1), 4 * count).reshape(4, count)
    src = below(draw[0], hosts)
    dst = (src + 1 + below(draw[1], hosts - 1)) % hosts
    return Flows.of(
        nodes=hosts, src=src, dst=dst, size=1 + below(draw[2], largest), start=below(draw[3], within),
        klass=np.zeros(count, int),
    )  # fmt: skip


@pytest.mark.parametrize("nic", ["fifo", "fair"])
@pytest.mark.parametrize("transport", TRANSPORTS)
@few
@given(
    hosts=st.integers(2, 9), buffer=st.integers(2, 30), mark=st.integers(0, 9), mtu=st.sampled_from([300, 1500, 9000]),
    ties=st.sampled_from(["fifo", "lifo", "random"]), seed=st.integers(0, 2**32), count=st.integers(1, 24),
)  # fmt: skip
def test_every_transport_runs_over_another_network_as_its_twin_does(
    transport, nic, hosts, buffer, mark, mtu, ties, seed, count
):
    fabric = Ideal(
        hosts=hosts, buffer=buffer, mark=mark, mtu=mtu, ties=ties, transport=f"{transport},nic={nic}",
    )  # fmt: skip
    flows = traffic(hosts, count, seed)
    arrays, printed = run(fabric, flows, seed)
    twin = Switch(fabric, flows, seed)
    twin.run()
    assert_array_equal(arrays.traffic["finish"], twin.finish)
    assert_array_equal(arrays.traffic["received"], flows.size)
    assert printed == str(twin.print)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_packets_are_lost_and_sent_again_there_and_none_is_forgotten(transport):
    """So that what is compared above is more than a quiet network."""
    fabric = Ideal(hosts=9, buffer=4, mark=1, transport=transport)
    flows = Flows.of(nodes=9, src=range(1, 9), dst=[0] * 8, size=60_000, start=0)
    arrays, _ = run(fabric, flows, 1)
    world = arrays.world[0]
    assert world["resent"] > 0
    assert (arrays.traffic["finish"] > 0).all()
    assert arrays.hosts["delivered"].tolist() == [8 * 60_000] + [0] * 8
    assert 0 <= world["conserved_in"] - world["conserved_out"] <= world["alive"]


def test_a_network_takes_of_a_preset_what_it_knows_and_refuses_to_be_told_more():
    assert Ideal(transport="ndp@shoal-nsdi19").settings.initial_window == 35
    with pytest.raises(Exception, match="a setting of ndp must be one that transports have, not 'buffer'"):
        _ = Ideal(transport="ndp:buffer=3").settings
