"""Parts of transports as kernels, so that tests can call them one at a time."""

from weft.engine.jit import bare
from weft.hosts import dcqcn, dctcp, flow, mptcp, nic, sack
from weft.hosts.state import host_at


@bare
def remember(s, i, seq):
    sack.remember(s, i, seq)


@bare
def name(s, i, r):
    sack.name(s, i, r)


@bare
def grow(s, slot, i, newly):
    mptcp.grow(s, slot, i, newly)


@bare
def take(s, slot, i):
    return mptcp.take(s, slot, i)


@bare
def give_up(s, slot, i):
    mptcp.give_up(s, slot, i)


@bare
def heed(s, slot, i, r):
    return mptcp.heed(s, slot, i, r)


@bare
def heights(s, i):
    return sack.heights(s, i)


@bare
def lost(s, i):
    return sack.lost(s, i)


@bare
def recover(s, slot, k):
    sack.recover(s, slot, k)


@bare
def react(s, i, newly, echoed):
    return dctcp.react(s, i, newly, echoed)


@bare
def sample_rtt(s, i, rtt):
    flow.sample_rtt(s, i, rtt)


@bare
def judge(s, i, paths):
    flow.judge(s, i, paths)


@bare
def on_cnp(s, r):
    dcqcn.on_cnp(s, r)


@bare
def on_alpha(s, r):
    dcqcn.on_alpha(s, r)


@bare
def on_raise(s, r):
    dcqcn.on_raise(s, r)


@bare
def join(s, r, h):
    nic.join(s, r, h)


@bare
def take_turn(s, h, high):
    return nic.take_turn(s, host_at(s, h), high)
