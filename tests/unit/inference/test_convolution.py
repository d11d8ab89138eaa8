"""The convolution of sampling error and noise against closed forms."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parent))
from distributions import PlainLaplace, PlainNormal

from counterveil.inference.uncertainty import half_width, tail


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("x", [0.0, 0.01, 0.5, 2.0, 5.0, 20.0, 200.0])
def test_laplace_tail_equals_closed_form(scale, x):
    distribution = PlainLaplace(scale)
    expected = distribution.tail_with_normal(x, 1.0)
    assert tail(x, 1.0, distribution) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_normal_plus_normal_is_normal(scale):
    half = half_width(1.0, PlainNormal(scale), 0.05)
    assert half == pytest.approx(norm.ppf(0.975) * np.hypot(1.0, scale), rel=1e-7)


def test_half_width_without_noise_or_without_sampling_error():
    assert half_width(2.0, None, 0.05) == pytest.approx(2 * norm.ppf(0.975), rel=1e-8)
    assert half_width(0.0, PlainLaplace(1.0), 0.05) == pytest.approx(-np.log(0.05), rel=1e-8)
    assert half_width(0.0, None, 0.05) == 0.0


def test_half_width_never_rounds_inwards():
    distribution = PlainLaplace(0.7)
    for alpha in (0.2, 0.05, 0.001):
        assert 2 * tail(half_width(1.0, distribution, alpha), 1.0, distribution) <= alpha


@pytest.mark.parametrize("distribution", [PlainLaplace(1.0), PlainNormal(0.3)])
@pytest.mark.parametrize("sd", [1e-3, 0.1, 1.0, 30.0])
def test_half_width_is_hardly_longer_than_it_must_be(distribution, sd):
    for alpha in (0.5, 0.05, 1e-4):
        assert 2 * tail(half_width(sd, distribution, alpha) * (1 - 2e-8), sd, distribution) > alpha
