"""Do flows that wait for flows start in the same slot in every kernel and its twin?"""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import waiting
from weft.engine.calendar import Calendar
from weft.fabrics.shoal import Shoal
from weft.fabrics.shoal.plain.reference import PlainRack
from weft.fabrics.shoal.reference import ReferenceRack, ReleasedRack

few = settings(max_examples=60, deadline=None)


def carried(fabric, flows, until=None):
    run = fabric.prepare(flows, seed=1)
    run.advance(until=until)
    return run.observe()


def rows(fabric, flows):
    columns = flows.src.tolist(), flows.dst.tolist(), fabric.cells(flows.size).tolist(), flows.start.tolist()
    return list(zip(*columns, strict=True))


def agree(fabric, flows, twin):
    seen = carried(fabric, flows)
    assert seen.fingerprint == str(twin.fingerprint)
    assert seen.finish.tolist() == [(slot + 1) * fabric.slot_time for slot in twin.finish]
    released = flows.released(seen.finish)
    assert (released >= 0).all() and (seen.finish - released >= fabric.ideal(flows)).all()


@few
@given(waiting(6), st.sampled_from([(1, 0), (2, 0), (3, 2)]), st.booleans())
def test_the_fast_kernel_releases_as_the_reference_does(flows, shape, ready):
    channels, delay = shape
    fabric = Shoal(nodes=6, channels=channels, delay=delay, ready_queues=ready)
    calendar = Calendar(flows, fabric.slot_time)
    twin = ReferenceRack(fabric.rounds, rows(fabric, flows), delay=delay, ready_queues=ready, calendar=calendar).run()
    agree(fabric, flows, twin)


@few
@given(waiting(5))
def test_the_released_rules_release_as_their_reference_does(flows):
    fabric = Shoal(nodes=5, rules="released")
    twin = ReleasedRack(5, rows(fabric, flows), calendar=Calendar(flows, fabric.slot_time)).run()
    agree(fabric, flows, twin)


@few
@given(waiting(6), st.sampled_from([0, 40]))
def test_the_plain_kernel_releases_as_its_reference_does(flows, timeout):
    fabric = Shoal(nodes=6, classes=2, transport="e2e" if timeout else "none")
    if timeout:
        fabric = replace(fabric, timeout=timeout * fabric.slot_time)
    calendar = Calendar(flows, fabric.slot_time)
    twin = PlainRack(fabric.rounds, rows(fabric, flows), classes=2, timeout=fabric.patience, calendar=calendar).run()
    agree(fabric, flows, twin)


def test_a_chain_goes_on_over_the_change_of_kernels(monkeypatch):
    from weft.fabrics.shoal import plain_rack
    from weft.workload import Flows

    after = [[], *([k] for k in range(19))]
    flows = Flows.of(nodes=8, src=[k % 8 for k in range(20)], dst=[(k + 3) % 8 for k in range(20)], size=2000, start=0,
                     after=after, delay=1000)  # fmt: skip
    fabric = Shoal(nodes=8, fail="node 7 at 3us until 4us", transport="e2e")
    plain = carried(fabric, flows)
    monkeypatch.setattr(plain_rack, "WORTHWHILE", 1)
    both = carried(fabric, flows)
    assert both.fingerprint == plain.fingerprint and (both.finish == plain.finish).all()
    assert (both.finish >= 0).all() and both.finish.max() > 4_000_000
