"""Where outcomes lie, from two histograms."""

import numpy as np
import pytest
from tests.unit.estimators.moments.small_records import NotingGate

from counterveil.estimators.moments.outcome_location import locate_outcomes


def test_place_of_outcomes_in_a_range_twenty_times_too_wide():
    rng = np.random.default_rng(0)

    class Rows:
        count = 20_000

        @staticmethod
        def parts():
            class Part:
                y = 0.3 + 0.01 * rng_values

            yield Part

        @classmethod
        def run(cls, kernel, *arguments, covariates=True):
            assert not covariates
            return kernel(cls, *arguments)

    rng_values = rng.normal(size=20_000)
    found = locate_outcomes(NotingGate(), Rows, pure=False, cells=32)
    assert found.centre == pytest.approx(0.3, abs=0.001)
    assert found.scale == pytest.approx(0.01, rel=0.15)
    assert found.tail < 0.01
    rng_values = np.minimum(rng.exponential(size=20_000) ** 2, 60.0)
    found = locate_outcomes(NotingGate(), Rows, pure=False, cells=32)
    assert found.heavy
    # A value that nearly all have, two values, and one value alone: what noise hides may lie anywhere.
    for rare in (
        np.where(rng.random(20_000) < 0.03, 50.0, 0.0),
        np.where(rng.random(20_000) < 0.4, 70.0, -130.0),
    ):
        rng_values = rare
        assert locate_outcomes(NotingGate(), Rows, pure=False, cells=32).whole
    rng_values = np.zeros(20_000)
    assert locate_outcomes(NotingGate(), Rows, pure=False, cells=8).whole
    # Few outcomes far out of the cells that are looked at again stand where they may be hidden, at their distance.
    rng_values = np.append(rng.normal(size=19_980), np.full(20, 60.0))
    found = locate_outcomes(NotingGate(), Rows, pure=False, cells=32)
    far = found.hidden.shares > 0
    assert found.hidden.shares[far].sum() == pytest.approx(0.001)
    assert found.hidden.distances[far] == pytest.approx(0.6, rel=0.3)
    assert found.hidden.distances.max() > 1.0
    lost, noise = found.hidden.lost(lambda distances: np.maximum(distances - 0.1, 0.0)[None])
    assert lost == pytest.approx(0.001 * 0.5, rel=0.35)
    assert noise < 1e-6
