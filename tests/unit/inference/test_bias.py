"""A bound on bias lengthens intervals at both ends and takes that much off the evidence."""

import pytest

from counterveil.inference.uncertainty import Uncertainty

PLAIN = Uncertainty(None, 0.04, 0.04)
BIASED = Uncertainty(None, 0.04, 0.04, bias=0.3)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_half_widths_grow_by_the_bound(level):
    assert BIASED.half_width(level) == pytest.approx(PLAIN.half_width(level) + 0.3)


def test_p_values_see_only_what_lies_beyond_it():
    assert BIASED.p_value(0.2, 0.95) == 1.0
    assert BIASED.p_value(-0.8, 0.95) == pytest.approx(PLAIN.p_value(0.5, 0.95))
    assert BIASED.total_sd == PLAIN.total_sd
