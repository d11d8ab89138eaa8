"""Noisy ratios: intervals of Fieller's kind cover, also where the size is hardly more than its noise."""

import numpy as np
import pytest

from counterveil.inference.measures import NoisyRatio, RatioDifference, p_value


def known(total=50.0, size=100.0, **rest):
    figures = {"row_variance": 1.0, "total_sd": 3.0, "size_sd": 4.0, "offset": 0.25, "limit": 5.0} | rest
    return NoisyRatio(total, size, **figures)


def test_without_noise_of_the_size_it_is_the_plain_interval():
    one = known(size_sd=0.0)
    low, high = one.interval(0.95)
    half = 1.959964 * np.sqrt(1.0 / 100 + (3.0 / 100) ** 2)
    assert one.estimate == pytest.approx(0.75)
    assert (low, high) == pytest.approx((0.75 - half, 0.75 + half), rel=1e-6)


@pytest.mark.parametrize("size", [1000.0, 120.0, 30.0, 8.0])
def test_intervals_cover_whatever_the_noise_of_the_size(size):
    generator = np.random.default_rng(int(size))
    truth, row_variance, total_sd, size_sd, draws = 0.6, 1.0, 5.0, 6.0, 4000
    totals = size * truth + generator.normal(size=draws) * np.sqrt(size * row_variance + total_sd**2)
    sizes = size + generator.normal(size=draws) * size_sd
    covered = 0
    for total, noisy in zip(totals, sizes, strict=True):
        low, high = NoisyRatio(total, noisy, row_variance, total_sd, size_sd, limit=50.0).interval(0.95)
        covered += low <= truth <= high
    # Where the size is known well, the level is met and not wasted.
    assert covered / draws > 0.94
    if size >= 100:
        assert covered / draws < 0.96


def test_laplace_noise_is_covered():
    generator = np.random.default_rng(3)
    size, truth, scale, draws = 400.0, 0.3, 20.0, 4000
    totals = size * truth + generator.normal(size=draws) * 10 + generator.laplace(size=draws) * scale
    one = [NoisyRatio(total, size, 100 / 400, scale * np.sqrt(2), 0.0, heavy=True) for total in totals]
    covered = np.mean([low <= truth <= high for low, high in (ratio.interval(0.99) for ratio in one)])
    assert 0.985 < covered < 0.999


def test_a_size_lost_in_noise_gives_the_whole_range():
    assert known(size=5.0).interval(0.95) == (-5.0, 5.0)
    assert known(size=-20.0).interval(0.95) == (-5.0, 5.0)
    assert -5.0 <= known(size=-20.0, total=1e6).estimate <= 5.0


def test_a_difference_covers():
    generator = np.random.default_rng(5)
    draws, covered = 3000, 0
    for _ in range(draws):
        ratios = []
        for size, mean in ((60.0, 1.0), (200.0, 0.4)):
            total = size * mean + generator.normal() * np.sqrt(size + 25.0)
            ratios.append(NoisyRatio(total, size + 5.0 * generator.normal(), 1.0, 5.0, 5.0, limit=20.0))
        low, high = RatioDifference(*ratios).interval(0.95)
        covered += low <= 0.6 <= high
    assert 0.94 < covered / draws < 0.965


def test_p_values_agree_with_intervals():
    one = known(total=0.0)
    p = p_value(one.interval)
    assert 1e-6 < p < 0.1
    low, high = one.interval(1 - p * 1.001)
    assert not low <= 0.0 <= high
    low, high = one.interval(1 - p * 0.999)
    assert low <= 0.0 <= high
    assert p_value(known(total=-25.0).interval) == pytest.approx(1.0, abs=0.01)
