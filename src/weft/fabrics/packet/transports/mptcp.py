"""MPTCP: one flow over several subflows whose windows grow together (NSDI '11; RFC 6356).

Each subflow is a TCP of its own (`tcp.py`) on its own path: slow start, loss recovery and timeouts are uncoupled. Only
congestion avoidance is coupled, by the Linked Increases Algorithm: an ACK on subflow i adds to its window

    min( a · payload² / total ,  payload² / window_i ),
    a = total · max_j(window_j / rtt_j²) / (Σ_j window_j / rtt_j)²                        RFC 6356 §3

so that all subflows together take no more than one TCP would on the best path. A segment belongs to the subflow that
first took it; the flow is complete when every segment of every subflow has arrived. Segments stuck on a dead path wait
there for its timeout: they are not sent again on another one.

The increase is computed in floating point, by + - * / in a fixed order, and counted in parts of 2**-16 byte.
"""

from weft.engine.views import kernel
from weft.fabrics.packet.state import subs


@kernel
def grow(s, slot, i):
    """Grow the window of subflow i by one ACK in congestion avoidance."""
    payload = float(s.payload)
    total, best, pull = 0.0, 0.0, 0.0
    for j in range(slot * s.subflows, (slot + 1) * s.subflows):
        other = subs(s)[j]
        if other.rtt > 0:
            window, rtt = float(other.window), float(other.rtt)
            total += window
            pull += window / rtt
            best = max(best, window / rtt / rtt)
    sub = subs(s)[i]
    step = payload * payload / float(sub.window)
    if total > 0.0:
        step = min(step, best / pull / pull * payload * payload)
    sub.credit += int(step * 65536.0)
    sub.window += sub.credit >> 16
    sub.credit &= 65535
