"""Every law of `laws.py`, asked of every fabric under several patterns; and what else every fabric promises."""

import numpy as np
import pytest

import weft
from laws import LAWS
from weft import catalogue
from weft.checkpoint import Checkpoint

FABRICS = {
    "shoal": [weft.Shoal(nodes=8), weft.Shoal(nodes=7, channels=2, delay=3), weft.Shoal(nodes=9, sharing="shortest")],
    "crossbar": [weft.Crossbar(ports=8), weft.Crossbar(ports=8, buffers="cicq")],
    "packet": [],
}
if "packet" in catalogue.available():
    FABRICS["packet"] = [weft.Packet(hosts=16, topology="fattree"), weft.Packet(hosts=16, transport="ndp")]
PATTERNS = [
    weft.Poisson(load=0.7, sizes="fixed:5KB", flows=60),
    weft.Poisson(load=0.5, sizes="uniform:1B,40KB", flows=60),
    weft.Incast(fan_in=5, bytes=9_000),
    weft.AllToAll(bytes=300),
]
CASES = [(fabric, pattern) for fabrics in FABRICS.values() for fabric in fabrics for pattern in PATTERNS]
NAMES = [f"{type(fabric).__name__}-{k}-{type(pattern).__name__}" for k, (fabric, pattern) in enumerate(CASES)]


def test_every_fabric_is_asked():
    assert {name for name, fabrics in FABRICS.items() if fabrics} == set(catalogue.available())


@pytest.mark.parametrize(("fabric", "pattern"), CASES, ids=NAMES)
def test_every_law_holds(fabric, pattern):
    flows = pattern.draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    run = fabric.prepare(flows, seed=1)
    fabric.advance(run)
    seen = fabric.observe(run, flows)
    broken = []
    for law in LAWS:
        try:
            law(fabric, flows, seen)
        except AssertionError as error:
            broken.append(f"{law.__name__}: {error}")
    assert not broken, broken


@pytest.mark.parametrize(
    "fabric", [fabrics[0] for fabrics in FABRICS.values() if fabrics], ids=lambda f: type(f).__name__
)
def test_every_fabric_goes_through_run_a_folder_and_back(fabric, tmp_path):
    result = weft.run(fabric, PATTERNS[0], seed=1)
    result.save(tmp_path / "r")
    loaded = weft.Result.load(tmp_path / "r")
    assert loaded.summary() == result.summary()
    again = weft.run(*catalogue.rebuild_call(loaded.provenance), seed=1)
    assert again.observation.fingerprint == result.observation.fingerprint


@pytest.mark.parametrize(
    "fabric", [fabrics[0] for fabrics in FABRICS.values() if fabrics], ids=lambda f: type(f).__name__
)
def test_every_fabric_that_can_be_kept_resumes_to_the_same_bits(fabric, tmp_path):
    if not hasattr(fabric, "freeze"):
        pytest.skip("this fabric cannot be put into arrays yet")
    whole, looks = weft.run(fabric, PATTERNS[0], seed=1), []

    def stop(run):
        looks.append(run)
        if len(looks) == 2:
            raise KeyboardInterrupt

    checkpoint = Checkpoint(tmp_path / "c", every=0.0)
    try:
        weft.run(fabric, PATTERNS[0], seed=1, progress=stop, checkpoint=checkpoint)
        pytest.skip("the run is over in two strides")
    except KeyboardInterrupt:
        assert checkpoint.exists()
    resumed = weft.run(fabric, PATTERNS[0], seed=1, checkpoint=checkpoint)
    assert resumed.observation.fingerprint == whole.observation.fingerprint
    assert np.array_equal(resumed.observation.finish, whole.observation.finish)
