"""Contrasts of several outcomes: one record moves all of them at once, within their bounds."""

from fractions import Fraction
from itertools import product

import numpy as np

from counterveil.data import OUTCOME_STEPS
from counterveil.numerics.columns import arm_totals
from counterveil.statistics.moments.sensitivity import CentredContrast
from counterveil.statistics.moments.trial import Setting, moments

WIDTHS = (Fraction(1), Fraction(5))
SHARE = Fraction(1, 3)
CENTRES = (Fraction(1, 4), Fraction(3))


def exact(records):
    treated = np.array([t for t, *_ in records], bool)
    found = []
    for place, (width, centre) in enumerate(zip(WIDTHS, CENTRES, strict=True)):
        steps = np.array([OUTCOME_STEPS * record[place + 1] for record in records])
        setting = Setting(SHARE, 0.0, centre, 0.0, 0.0)
        found.append(moments(arm_totals(treated, steps), width / OUTCOME_STEPS, setting))
    return found


def test_one_record_moves_all_contrasts_within_their_bounds():
    bounds = [CentredContrast(width, 4, SHARE, centre) for width, centre in zip(WIDTHS, CENTRES, strict=True)]
    kinds = list(product((0, 1), repeat=3))
    rest = ((1, 0, 1), (0, 1, 0), (0, 0, 0))
    found = [exact((kind, *rest)) for kind in kinds]
    largest = [Fraction(0)] * 2
    for before, after in product(found, repeat=2):
        for j, bound in enumerate(bounds):
            first, second = (abs(a - b) for a, b in zip(before[j], after[j], strict=True))
            assert first <= bound.mean
            assert second <= bound.second_moment
            largest[j] = max(largest[j], first)
    assert largest == [bound.mean for bound in bounds]
