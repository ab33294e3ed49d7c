"""Does the bus do what its twin does, cell for cell? And does it keep the contract of rooms?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_bus import Bus
from weft_bus.reference import Twin

import weft
from weft.metrics import schema
from weft.workload import Flows

flows = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(1, 900), st.integers(0, 10**6)), min_size=1
)


def table(rows):
    src, gap, size, start = zip(*rows, strict=True)
    dst = [(i + g) % 5 for i, g in zip(src, gap, strict=True)]
    return Flows.of(nodes=5, src=src, dst=dst, size=size, start=start)


@settings(deadline=None)
@given(flows)
def test_kernel_moves_the_same_cells_as_the_reference(rows):
    bus, drawn = Bus(nodes=5), table(rows)
    run, twin = bus.prepare(drawn), Twin(bus, drawn).run()
    run.advance()
    seen = run.observe()
    assert seen.finish.tolist() == twin.finish
    assert seen.fingerprint == str(twin.print)
    assert (seen.finish - drawn.start >= bus.ideal(drawn) - bus.slot).all()


def test_a_run_resumes_and_its_summary_is_the_agreed_object():
    bus, load = Bus(nodes=8), weft.Poisson(load=0.05, sizes="fixed:2KB", flows=50)
    whole = weft.run(bus, load, seed=1)
    assert schema.problems(whole.summary()) == [] and whole.observation.finished.all()
    drawn = load.draw(nodes=8, link=bus.link, seed=1)
    half = bus.prepare(drawn)
    half.advance(until=whole.observation.now // 2)
    again = bus.thaw(drawn, {name: array.copy() for name, array in half.freeze().items()})
    again.advance()
    assert again.observe().fingerprint == whole.observation.fingerprint
    assert np.array_equal(again.observe().finish, whole.observation.finish)


def test_bad_input_is_named():
    with pytest.raises(weft.BadInput, match=r"^nodes must be at least 2, not 1$"):
        Bus(nodes=1)
