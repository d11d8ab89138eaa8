"""Two Laplace draws on one number."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from counterveil.mechanisms import Grid, LaplacePair, SeededNoise, mechanism_from_dict
from counterveil.privacy import LaplaceEvent

SCALES = [("1", "1"), ("1", "0.9999999"), ("3", "2"), ("3", "1/100")]


def pair(wide, narrow):
    return LaplacePair(Fraction(wide), 1, narrow)


@pytest.mark.parametrize(("wide", "narrow"), SCALES)
def test_density_tail_and_quantile_belong_together(wide, narrow):
    noise = pair(wide, narrow)
    total = 2 * sum(
        quad(lambda x: np.exp(noise.log_density(x)), *ends)[0] for ends in ((0, 1), (1, 8), (8, 150))
    )
    assert total == pytest.approx(1, abs=1e-9)
    p = np.array([1e-9, 0.01, 0.25, 0.5, 0.75, 0.999])
    assert np.allclose(noise.cdf(noise.quantile(p)), p, rtol=1e-9, atol=0)
    assert np.isinf(noise.quantile(np.array([0.0, 1.0]))).all()
    x = np.array([0.3, 2.0])
    slope = (noise.cdf(x + 1e-5) - noise.cdf(x - 1e-5)) / 2e-5
    assert np.allclose(slope, np.exp(noise.log_density(x)), rtol=1e-6)


def test_it_is_the_signed_mixture_of_both_scales():
    noise, x = pair("3", "2"), np.array([0.0, 0.5, 4.0, 40.0])
    density = (3 * np.exp(-x / 3) - 2 * np.exp(-x / 2)) / (2 * (9 - 4))
    assert np.allclose(np.exp(noise.log_density(-x)), density)
    tail = (9 * np.exp(-x / 3) - 4 * np.exp(-x / 2)) / (2 * (9 - 4))
    assert np.allclose(noise.cdf(-x), tail)
    assert noise.variance == pytest.approx(2 * (9 + 4))


@pytest.mark.parametrize(("wide", "narrow"), SCALES)
def test_draws_and_releases_follow_the_law(wide, narrow):
    noise = pair(wide, narrow)
    grid = Grid.for_scale(noise.scale)
    draws = noise.draw(20_000, grid, SeededNoise(5)).astype(float) * float(grid.step)
    assert stats.kstest(draws, noise.cdf).pvalue > 1e-3
    source = SeededNoise(6)
    released = [float(one) - 10 for one in noise.release_all([Fraction(10)] * 2000, grid, source)]
    assert stats.kstest(released, noise.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("wide", "narrow"), SCALES)
def test_the_largest_loss_is_the_claim_and_a_third_of_the_noise_breaks_it(wide, narrow):
    noise = pair(wide, narrow)

    def loss(distribution):
        x = -np.concatenate([np.linspace(0, 10, 200), np.geomspace(10, 1e5, 200)])
        return float(
            np.max(distribution.log_density(x) - distribution.log_density(x - float(noise.sensitivity)))
        )

    assert 0.95 < loss(noise) <= 1 + 1e-9
    assert loss(LaplacePair(noise.sensitivity / 3, 1, noise.narrow / 3)) > 1.5


def test_event_and_facts():
    noise = LaplacePair("1/2", "1/4", 1)
    assert noise.event == LaplaceEvent(Fraction(1, 4))
    assert noise.scale == 2
    assert mechanism_from_dict(noise.to_dict()) == noise
    assert np.array_equal(noise.kinks(-1.0, 1.0, 1), [0.0])
