"""What can be proved of the bus without running it."""


def alone(fabric, flows):
    """(flows,) int64 ps: a flow of c cells needs c turns of its node; the first may come at once."""
    return ((fabric.cells(flows.size) - 1) * fabric.nodes + 1) * fabric.slot
