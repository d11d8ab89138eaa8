"""Total uncertainty: parts, intervals, p-values."""

import sys
from math import exp, pi
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from distributions import PlainLaplace

from counterveil.inference.pooling import PooledUncertainty
from counterveil.inference.uncertainty import HEADROOM, Uncertainty


def test_a_noisy_variance_is_enlarged_for_an_interval():
    known = Uncertainty(PlainLaplace(1.0), 4.0, 900.0, PlainLaplace(3.0))
    assert known.known_variance(0.05) > known.likely_variance() > 4.0
    assert known.sampling_sd == pytest.approx(known.likely_variance() ** 0.5)


def test_variance_is_used_up_to_a_little_above_its_cap_only():
    capped = Uncertainty(PlainLaplace(1.0), 9.0, 9.0, PlainLaplace(50.0))
    plain = Uncertainty(PlainLaplace(1.0), 9.0 * HEADROOM, 9.0)
    assert capped.half_width(0.95) == pytest.approx(plain.half_width(0.95))


def test_p_value_agrees_with_interval():
    known = Uncertainty(PlainLaplace(1.0), 4.0, 9.0, PlainLaplace(0.5))
    half = known.half_width(0.95)
    assert known.p_value(half * 1.001, 0.95) < 0.05 < known.p_value(half * 0.999, 0.95)
    assert known.p_value(0.0, 0.95) == pytest.approx(1.0)


@pytest.mark.parametrize(("dimensions", "beyond"), [(3, lambda q: exp(-q) * (2 + q) / 2), (2, None)])
def test_noise_of_the_ball_reaches_as_far_as_it_does_at_every_level(dimensions, beyond):
    known = Uncertainty(None, 0.0, 0.0, ball_variance=dimensions + 1.0, ball_dimensions=dimensions)
    if beyond is None:
        generator = np.random.default_rng(3)
        # A direction of the plane, and a length of gamma(2).
        drawn = np.abs(generator.gamma(2.0, size=10**6) * np.sin(generator.uniform(0, 2 * pi, 10**6)))

        def beyond(q):
            return np.mean(drawn > q)

    for level in (0.95, 0.99, 0.999):
        half = known.half_width(level)
        assert beyond(half) == pytest.approx(1 - level, rel=0.1)
        # P-values are those of the intervals, whatever the level that they are asked at.
        assert known.p_value(half, 0.9) == pytest.approx(1 - level, rel=2e-3)
    assert known.noise_sd == pytest.approx((dimensions + 1) ** 0.5)


def test_pooled_noise_of_the_ball_keeps_its_reach():
    site = Uncertainty(None, 1.0, 1.0, ball_variance=4.0, ball_dimensions=3)
    pooled = PooledUncertainty((site, site), (0.5, 0.5))
    for level in (0.95, 0.999):
        assert pooled.half_width(level) == pytest.approx(site.half_width(level) / 2**0.5)
        assert pooled.p_value(pooled.half_width(level), 0.9) == pytest.approx(1 - level, rel=2e-3)
