"""DCTCP: a TCP that reacts to the extent of congestion (SIGCOMM '10; RFC 8257).

Switches mark packets that find more than K bytes in front of them, and the receiver echoes every mark. The sender keeps
`alpha`, its estimate of the fraction of bytes marked, and updates it once per window of data:

    F     = bytes acknowledged with a mark / bytes acknowledged, over the window just ended
    alpha = (1 - g) alpha + g F                                               RFC 8257 §3.3, g = 1/16

An ACK with an echo cuts the window to (1 - alpha/2) of itself, at most once a window, and does not grow it. Everything
else is `tcp.py`: slow start, recovery from loss, timeouts. alpha begins at 1 (§3.3), so the first mark halves.
With delayed ACKs the receiver answers at once when marks begin or end (§3.2), so that the echo stays exact.
"""

from weft.engine.jit import part
from weft.hosts.state import sub_at

ONE = 1 << 20  # alpha is counted in parts of this


@part
def react(s, i, newly, echoed):
    """Account for an ACK of `newly` segments, which has just moved una. True if the window may grow by it."""
    sub = sub_at(s, i)
    sub.acked += newly
    if echoed:
        sub.acked_marked += newly
    if sub.una >= sub.window_end:
        if sub.acked > 0:
            fraction = sub.acked_marked * ONE // sub.acked
            sub.alpha += (fraction - sub.alpha) >> s.gain_shift
        sub.acked = sub.acked_marked = 0
        sub.window_end = sub.nxt
        sub.cut = 0
    if not echoed:
        return True
    if sub.cut == 0 and sub.recovering == 0:
        sub.window = max(sub.window - sub.window * sub.alpha // (2 * ONE), s.payload)
        sub.threshold = sub.window
        sub.cut = 1
    return False
