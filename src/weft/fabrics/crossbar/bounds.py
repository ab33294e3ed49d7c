"""What can be said of a switch without running it: limits of throughput, mean waits, and the bound on starvation."""

from fractions import Fraction
from math import sqrt

KAROL_LIMIT = 2 - sqrt(2)  # Karol, Hluchyj, Morgan 1987: saturated FIFO inputs, many ports: 58.6 %


def karol(ports: int) -> float:
    """Saturation throughput of FIFO inputs with uniform traffic (Karol, Hluchyj, Morgan 1987, Table I).

    The outputs of the cells at the heads of the FIFOs form a Markov chain: n balls in n boxes; every slot one ball
    leaves each occupied box and is thrown again at random. Solved here by power iteration over the partitions of n.
    """
    states = _partitions(ports)
    index = {state: k for k, state in enumerate(states)}
    steps = [_throws(state, ports) for state in states]
    chance = [1.0 / len(states)] * len(states)
    for _ in range(100_000):
        after = [0.0] * len(states)
        for k, step in enumerate(steps):
            for state, probability in step.items():
                after[index[state]] += chance[k] * probability
        change = max(abs(a - b) for a, b in zip(after, chance, strict=True))
        chance = after
        if change < 1e-13:
            break
    return sum(c * len(state) for c, state in zip(chance, states, strict=True)) / ports


def _partitions(n, most=None):
    """Partitions of n as descending tuples: how many balls are in each occupied box."""
    most = n if most is None else most
    if n == 0:
        return [()]
    return [(k, *rest) for k in range(min(n, most), 0, -1) for rest in _partitions(n - k, k)]


def _throws(state, n):
    """Where one slot leads: state -> probability."""
    left = tuple(k - 1 for k in state)
    boxes = {tuple(sorted((*left, *[0] * (n - len(left))), reverse=True)): 1.0}
    for _ in state:
        after = {}
        for occupied, probability in boxes.items():
            for value in set(occupied):
                count = occupied.count(value)
                thrown = list(occupied)
                thrown[occupied.index(value)] += 1
                key = tuple(sorted(thrown, reverse=True))
                after[key] = after.get(key, 0.0) + probability * count / n
        boxes = after
    return {tuple(k for k in occupied if k): probability for occupied, probability in boxes.items()}


def output_queue_wait(ports: int, load: float) -> float:
    """Mean slots that a cell waits in an ideal output-queued switch with uniform traffic (Karol and others, eq. 2)."""
    return (ports - 1) / ports * load / (2 * (1 - load))


def load_balanced_delay(ports: int, load: float) -> float:
    """Mean delay in slots of a load-balanced switch under uniform Bernoulli traffic, exactly.

    A cell for output j comes to a middle port in any slot by chance load / N, whoever it is from, and every N-th slot
    one of them leaves. Seen after these, the queue is that of `output_queue_wait`, Q' = max(Q + B(N, load / N) - 1, 0)
    with mean (N - 1) / N load^2 / (2 (1 - load)); in between it grows by load / N a slot. So says Little's theorem
    (N - 1) / (2 (1 - load)), and a slot more because no cell leaves a memory in the slot in which it came.
    """
    return (ports - 1) / (2 * (1 - load)) + 1


def pim_match(ports: int) -> float:
    """Share of ports that one iteration of PIM matches when every queue has cells: 1 - (1 - 1/N)^N."""
    return 1 - (1 - 1 / ports) ** ports


def starvation(ports: int) -> int:
    """Slots within which iSLIP serves every request (McKeown 1999, section III).

    An output serves at most N - 1 other inputs first, and waits at most N slots to be accepted by each.
    """
    return ports * ports


def emulating_speedup(ports: int) -> Fraction:
    """Speed-up that is necessary and sufficient to emulate FIFO output queueing (Chuang and others 1999): 2 - 1/N."""
    return 2 - Fraction(1, ports)
