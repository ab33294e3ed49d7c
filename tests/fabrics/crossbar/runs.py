"""What the tests of the crossbar share: a run without the rest of weft."""

from weft.workload.flows import Flows


def carry(fabric, traffic, seed=1, until=None, watch=None):
    """(drawn traffic, state, observation) of a run."""
    drawn = traffic if isinstance(traffic, Flows) else traffic.draw(nodes=fabric.nodes, link=fabric.link, seed=seed)
    run = fabric.prepare(drawn, seed=seed)
    run.advance(until=until, watch=watch)
    return drawn, run.state, run.observe()
