"""Small racks carried for a while, for the tests of Shoal."""

from weft.workload import ENDLESS, Flows


def endless(nodes, pairs):
    src, dst = zip(*pairs, strict=True)
    return Flows.of(nodes=nodes, src=src, dst=dst, size=ENDLESS, start=0)


def carry(fabric, flows, until=None):
    run = fabric.prepare(flows)
    run.advance(until=until)
    return run.observe()


def share(fabric, flows, epochs=240):
    return carry(fabric, flows, until=epochs * fabric.epoch).sections["line"]["fraction_of_slots"]


def rates(fabric, flows, warm=300, epochs=1000):
    """Cells per place that each flow gets, after the rack has settled."""
    run = fabric.prepare(flows)
    run.advance(until=warm * fabric.epoch)
    before = run.observe().received
    run.advance(until=(warm + epochs) * fabric.epoch)
    return (run.observe().received - before) / fabric.payload / (epochs * (fabric.nodes - 1))
