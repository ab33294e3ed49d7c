"""One matching per slot: who of the inputs may send to whom of the outputs, one algorithm per name.

Every algorithm is an object with the pointers it keeps and one method,

    match(waiting, slot) -> [(i, j), …]

where `waiting[i][j]` is a `Queue` (length, age) for every pair that has cells waiting, and nothing for the others.
The code here is for reading and for checking faster code against: sets and loops, no bits.

| name | algorithm | source |
| --- | --- | --- |
| islip | pointers that move only when a grant is accepted, in the first iteration | McKeown, ToN 7(2), 1999 |
| rrm | the same, but the grant pointer always moves: pointers synchronise and stay so | ibid., section II |
| pim | grants and accepts at random | Anderson, Owicki, Saxe, Thacker, TOCS 11(4), 1993 |
| drrm | an input asks one output, an output grants one input | Chao, IEEE Comm. Mag. 38(12), 2000 |
| wavefront | diagonals of the request matrix in turn, wrapped | Tamir and Chi, TPDS 4(1), 1993 |
| lqf | outputs grant, and inputs accept, the longest queue, in iterations | McKeown, PhD thesis, 1995 (i-LQF) |
| ocf | the same with the oldest cell | ibid. (i-OCF) |
| mwm | maximum weight, by length of queue | McKeown, Mekkittikul, Anantharam, Walrand, 1999 |
| msm | maximum size | Hopcroft and Karp, 1973 |
| eslip | multicast: a common pointer, every grant accepted, fanout split over slots | McKeown, Cisco GSR, 1997 |
"""

from typing import NamedTuple

from weft import random
from weft.errors import require

CHOICES = 0x58430000  # stream of a scheduler's random choices
NOISE = 36  # bits below a weight that break ties
HEAVIEST = (1 << 16) - 1  # weights beyond count as this: sums over 1,024 ports must fit 63 bits


class Queue(NamedTuple):
    """What a scheduler may know of cells that wait at one input for one output."""

    length: int
    age: int  # slots since the first of them arrived


def at_or_after(pointer: int, ports) -> int:
    """The member of `ports` that comes first at or after `pointer`, going around."""
    return min(ports, key=lambda port: (port < pointer, port))


class RoundRobin:
    """An arbiter that serves whoever comes first at or after the one behind the last it served."""

    def __init__(self, ports: int):
        self.ports, self.pointer = ports, 0

    def pick(self, asking):
        """The one to serve among those `asking`, or None; the pointer moves only if there is one."""
        if not asking:
            return None
        chosen = at_or_after(self.pointer, asking)
        self.pointer = (chosen + 1) % self.ports
        return chosen


class Scheduler:
    """What all have: a number of ports, a number of iterations, and a seed for those that choose at random."""

    def __init__(self, ports: int, iterations: int = 1, seed: int = 0):
        require(ports >= 2, "ports", "at least 2", ports)
        require(iterations >= 1, "iterations", "at least 1", iterations)
        self.ports, self.iterations = ports, iterations
        self.key = random.key(seed, CHOICES)
        self.used = 0  # iterations of the last match that found something

    def match(self, waiting, slot: int) -> list[tuple[int, int]]:
        raise NotImplementedError  # derived classes say it

    def _iterate(self, waiting, slot, grant, accept):
        """Rounds of request, grant and accept among those still unmatched, until one of them adds nothing."""
        pairs = {}
        self.used = 0
        for iteration in range(self.iterations):
            asking = {}  # j -> the unmatched inputs that have a cell for it
            for i, queues in enumerate(waiting):
                for j in queues:
                    if i not in pairs and j not in pairs.values():
                        asking.setdefault(j, set()).add(i)
            grants = {}  # i -> the outputs that grant it
            for j in sorted(asking):
                grants.setdefault(grant(j, asking[j], iteration), set()).add(j)
            for i in sorted(grants):
                pairs[i] = accept(i, grants[i], iteration)
            if not grants:
                break
            self.used = iteration + 1
        return sorted(pairs.items())


class Islip(Scheduler):
    """Round-robin grants and accepts, with pointers that move one beyond a pair only once it is matched."""

    always = False  # do grant pointers move although the grant was not accepted?

    def __init__(self, ports, iterations=1, seed=0):
        super().__init__(ports, iterations, seed)
        self.grants, self.accepts = [0] * ports, [0] * ports

    def match(self, waiting, slot):
        def grant(j, asking, iteration):
            i = at_or_after(self.grants[j], asking)
            if self.always and iteration == 0:
                self.grants[j] = (i + 1) % self.ports
            return i

        def accept(i, granting, iteration):
            j = at_or_after(self.accepts[i], granting)
            if iteration == 0:  # later iterations would let a favoured pair starve
                self.accepts[i] = (j + 1) % self.ports
                if not self.always:
                    self.grants[j] = (i + 1) % self.ports
            return j

        return self._iterate(waiting, slot, grant, accept)


class Rrm(Islip):
    """Round-robin matching, iSLIP's predecessor: grant pointers move whether or not the grant is accepted."""

    always = True


class Pim(Scheduler):
    """Grants and accepts at random."""

    def match(self, waiting, slot):
        n = self.ports

        def draw(port, ports, iteration, step):
            counter = ((slot * self.iterations + iteration) * 2 + step) * n + port
            return sorted(ports)[random.below_one(random.word(self.key, counter), len(ports))]

        return self._iterate(
            waiting,
            slot,
            lambda j, asking, iteration: draw(j, asking, iteration, 0),
            lambda i, granting, iteration: draw(i, granting, iteration, 1),
        )


class Drrm(Scheduler):
    """Every input asks one output, every output grants one input; both pointers move only on a match."""

    def __init__(self, ports, iterations=1, seed=0):
        super().__init__(ports, iterations, seed)
        self.asks, self.grants = [0] * ports, [0] * ports

    def match(self, waiting, slot):
        pairs = {}
        self.used = 0
        for iteration in range(self.iterations):
            asking = {}
            for i, queues in enumerate(waiting):
                free = set(queues) - set(pairs.values())
                if i not in pairs and free:
                    asking.setdefault(at_or_after(self.asks[i], free), set()).add(i)
            for j, inputs in asking.items():
                i = at_or_after(self.grants[j], inputs)
                pairs[i] = j
                if iteration == 0:
                    self.asks[i], self.grants[j] = (j + 1) % self.ports, (i + 1) % self.ports
            if not asking:
                break
            self.used = iteration + 1
        return sorted(pairs.items())


class Wavefront(Scheduler):
    """Sweep the wrapped diagonals i + j = d; no two crosspoints of one share a port. The first d turns every slot."""

    def match(self, waiting, slot):
        pairs, n = {}, self.ports
        for d in range(slot, slot + n):
            for i in range(n):
                j = (d - i) % n
                if j in waiting[i] and i not in pairs and j not in pairs.values():
                    pairs[i] = j
        self.used = 1 if pairs else 0
        return sorted(pairs.items())


class Lqf(Scheduler):
    """Outputs grant the longest queue, inputs accept the longest; ties go to the first from port `slot` mod n on."""

    def weigh(self, queue: Queue) -> int:
        return queue.length

    def match(self, waiting, slot):
        turn = slot % self.ports

        def best(ports, weight):
            return min(ports, key=lambda p: (-weight(p), (p - turn) % self.ports))

        return self._iterate(
            waiting,
            slot,
            lambda j, asking, _: best(asking, lambda i: self.weigh(waiting[i][j])),
            lambda i, granting, _: best(granting, lambda j: self.weigh(waiting[i][j])),
        )


class Ocf(Lqf):
    """The same by the age of the oldest cell."""

    def weigh(self, queue):
        return queue.age + 1


class Mwm(Scheduler):
    """The matching with the largest sum of queue lengths; SciPy finds it.

    Random bits far below the weights single out one of several, so that a faster solver must find the same.
    """

    def weigh(self, queue: Queue) -> int:
        return min(queue.length, HEAVIEST)

    def match(self, waiting, slot):
        import numpy as np
        from scipy.optimize import linear_sum_assignment

        n = self.ports
        weight = np.zeros((n, n), np.int64)
        for i, queues in enumerate(waiting):
            for j, queue in queues.items():
                noise = (random.word(self.key, (slot * n + i) * n + j) >> (64 - NOISE)) // n
                weight[i, j] = (self.weigh(queue) << NOISE) + noise
        rows, columns = linear_sum_assignment(weight, maximize=True)
        pairs = [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if weight[i, j]]
        self.used = 1 if pairs else 0
        return pairs


class Msm(Mwm):
    """The matching with the most pairs, any of them alike."""

    def weigh(self, queue):
        return 1


class Eslip(Scheduler):
    """Multicast: every output grants the first input from one common pointer on, every input accepts every grant.

    The first input gets its whole fanout at once; the others get what is left of theirs, and keep the rest for later
    (fanout splitting). The pointer moves beyond the first.
    """

    def __init__(self, ports, iterations=1, seed=0):
        super().__init__(ports, iterations, seed)
        self.pointer = 0

    def match(self, waiting, slot):
        asking = {}
        for i, queues in enumerate(waiting):
            for j in queues:
                asking.setdefault(j, set()).add(i)
        pairs = [(at_or_after(self.pointer, asking[j]), j) for j in sorted(asking)]
        if pairs:
            served = at_or_after(self.pointer, {i for i, _ in pairs})
            self.pointer = (served + 1) % self.ports
        self.used = 1 if pairs else 0
        return pairs


def stable(urgent: dict, rank) -> dict:
    """Stable matching of outputs to cells: Gale and Shapley, the outputs proposing.

    `urgent[j]` lists the cells (i, …) for output j, most urgent first; `rank(cell)` is a cell's place in the list of
    its input i, lower is better. Returns j -> cell; no output and input are left that would both rather have another
    cell between them.
    """
    left = {j: list(cells) for j, cells in urgent.items()}
    held = {}  # i -> (output, cell)
    free = sorted(left, reverse=True)
    while free:
        j = free.pop()
        while left[j]:
            cell = left[j].pop(0)
            i = cell[0]
            if i not in held:
                held[i] = (j, cell)
                break
            if rank(cell) < rank(held[i][1]):
                free.append(held[i][0])
                held[i] = (j, cell)
                break
    return dict(held.values())


ALGORITHMS = {
    "islip": Islip,
    "rrm": Rrm,
    "pim": Pim,
    "drrm": Drrm,
    "wavefront": Wavefront,
    "lqf": Lqf,
    "ocf": Ocf,
    "mwm": Mwm,
    "msm": Msm,
    "eslip": Eslip,
}


def scheduler(name: str, ports: int, iterations: int = 1, seed: int = 0) -> Scheduler:
    """The algorithm of that name, its pointers at zero."""
    require(name in ALGORITHMS, "a scheduler", f"one of {', '.join(ALGORITHMS)}", name)
    return ALGORITHMS[name](ports, iterations, seed)
