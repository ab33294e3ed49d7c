"""Parts of transports as kernels, so that tests can call them one at a time."""

from weft.engine.jit import bare
from weft.hosts import mptcp, sack


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
