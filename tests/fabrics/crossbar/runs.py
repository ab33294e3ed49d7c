"""What the tests of the crossbar share: a run without the rest of weft, and its cells slot by slot."""

from collections.abc import Iterator
from typing import NamedTuple

from weft.fabrics.crossbar import kernel, reference
from weft.fabrics.crossbar.state import IN, OUT, STAMP, TAG, Count
from weft.workload.demand import Demand


def carry(fabric, traffic, seed=1, until=None, watch=None):
    """(drawn traffic, state, observation) of a run."""
    drawn = draw(fabric, traffic, seed)
    run = fabric.prepare(drawn, seed=seed)
    run.advance(until=until, watch=watch)
    return drawn, run.state, run.observe()


def draw(fabric, traffic, seed=1):
    """Traffic drawn for the fabric; demand as it is."""
    return traffic if isinstance(traffic, Demand) else traffic.draw(nodes=fabric.nodes, link=fabric.link, seed=seed)


class Move(NamedTuple):
    """A cell that leaves: from whom, for whom, when it came in, and its flow if it has one."""

    i: int
    j: int
    born: int
    flow: int | None = None


def slots(fabric, traffic, seed=1) -> Iterator[tuple]:
    """(slot, state, cells that left in it) of every slot of a run, the kernel called for one at a time."""
    run = fabric.prepare(draw(fabric, traffic, seed), seed=seed)
    state, advance = run.state, run.kernel
    if advance is kernel.sprint:  # which keeps its cells to itself
        advance = kernel.matched
    while run.slot < run.last:
        slot, before = run.slot, int(state.count[Count.DELIVERED])
        advance(state, slot + 1)
        if run.slot == slot:
            return
        number = int(state.count[Count.DELIVERED]) - before
        gone = state.gone[:, :number].astype(int)
        tags = gone[TAG] if run.with_flows else [None] * number
        yield slot, state, [Move(*cell) for cell in zip(gone[IN], gone[OUT], gone[STAMP], tags, strict=True)]


def twin_slots(fabric, traffic, seed=1) -> dict[int, list[Move]]:
    """Slot -> cells that left in it, as the reference has it; slots in which none did are left out."""
    moved: dict[int, list[Move]] = {}
    for slot, i, j, born in reference.run(fabric, draw(fabric, traffic, seed), seed=seed).moves:
        moved.setdefault(slot, []).append(Move(i, j, born))
    return moved
