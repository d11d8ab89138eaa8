"""Total uncertainty: parts, intervals, p-values."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from distributions import PlainLaplace

from counterveil.inference import Uncertainty
from counterveil.inference.uncertainty import HEADROOM


def test_parts_add_in_squares():
    known = Uncertainty(PlainLaplace(1.0), variance=4.0, variance_cap=9.0, extra=0.25)
    assert known.sampling_sd == 2.0
    assert known.noise_sd == pytest.approx((2 + 0.25) ** 0.5)
    assert known.total_sd == pytest.approx((4 + 2.25) ** 0.5)


def test_interval_is_wider_than_without_noise_and_grows_with_level():
    known = Uncertainty(PlainLaplace(1.0), 4.0, 9.0, PlainLaplace(0.5))
    assert known.half_width(0.95) > known.naive_half_width(0.95)
    assert known.half_width(0.99) > known.half_width(0.95) > known.half_width(0.8)


def test_variance_is_used_up_to_a_little_above_its_cap_only():
    capped = Uncertainty(PlainLaplace(1.0), 9.0, 9.0, PlainLaplace(50.0))
    plain = Uncertainty(PlainLaplace(1.0), 9.0 * HEADROOM, 9.0)
    assert capped.half_width(0.95) == pytest.approx(plain.half_width(0.95))


def test_p_value_agrees_with_interval():
    known = Uncertainty(PlainLaplace(1.0), 4.0, 9.0, PlainLaplace(0.5))
    half = known.half_width(0.95)
    assert known.p_value(half * 1.001, 0.95) < 0.05 < known.p_value(half * 0.999, 0.95)
    assert known.p_value(0.0, 0.95) == pytest.approx(1.0)
