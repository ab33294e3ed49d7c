"""Time series that begin as wide as they end."""

import numpy as np
import pytest

from weft import Poisson, Shoal, run
from weft.engine.series import Series


@pytest.mark.parametrize("seed", range(20))
def test_a_series_that_knows_how_long_it_lasts_keeps_the_same_rows(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        every, nodes, end = int(rng.integers(1, 50)), int(rng.choice([2, 512, 100_000])), int(rng.integers(1, 40_000))
        series = [Series(every, nodes), Series(every, nodes)]
        series[1].expect(int(rng.integers(0, end + 1)))
        for one in series:
            one.add(0, 0, {"x": 0})
            while one.due <= end:
                one.add(one.due, one.due, {"x": one.due})
        assert series[0].times == series[1].times and series[0].values == series[1].values
        assert (series[0].every, series[0].due) == (series[1].every, series[1].due)


@pytest.mark.parametrize("until", [None, 500_000_000])
def test_a_rack_has_the_same_samples_though_its_series_begins_wide(monkeypatch, until):
    flows = Poisson(load=0.5, flows=300, sizes="uniform:60B,300KB")
    wide = run(Shoal(nodes=16), flows, seed=1, until=until)
    seen = []
    monkeypatch.setattr(Series, "expect", lambda self, end: seen.append(end))
    narrow = run(Shoal(nodes=16), flows, seed=1, until=until)
    assert 0 < seen[0] <= narrow.observation.now
    assert seen[0] // (8 * Shoal(nodes=16).epoch) > 256  # so that it does begin wide
    for name, values in wide.observation.samples.items():
        np.testing.assert_array_equal(values, narrow.observation.samples[name])
