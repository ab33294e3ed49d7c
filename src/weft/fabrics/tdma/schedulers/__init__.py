"""Who may send in which slot: schedulers behind one interface, by name.

| name | takes | idea | source |
| --- | --- | --- | --- |
| wrr | trees | weighted round robin from the root down; the default | §4.3, §5.2.2 |
| greedy | any topology | the first path with room; mixed rates, shared slots, deadlines | left open in §4.3, §5.2.2 |
| mwm | one switch | the matching with the most bytes in every slot | McKeown et al., IEEE Trans. Comm. 47(8), 1999 |
| bvn | one switch | batches of permutations (Birkhoff, von Neumann) | Chang, Chen and Huang, INFOCOM 2000 |
"""

from weft.errors import require
from weft.fabrics.tdma.schedulers.greedy import Greedy
from weft.fabrics.tdma.schedulers.optimal import Birkhoff, Heaviest
from weft.fabrics.tdma.schedulers.roundrobin import RoundRobin

SCHEDULERS = {made.name: made for made in (RoundRobin, Greedy, Heaviest, Birkhoff)}


def scheduler(name: str, network, **options):
    """The scheduler called `name` for a network, its memory fresh."""
    require(name in SCHEDULERS, "scheduler", f"one of {', '.join(SCHEDULERS)}", name)
    return SCHEDULERS[name](network, **options)
