"""Brute force over all small tables of private records."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterveil.numerics.columns import arm_totals
from counterveil.statistics.moments.sensitivity import CentredContrast, mean_of_everyone
from counterveil.statistics.moments.trial import Setting, moments

RECORDS = tuple(product((False, True), (0, 1, 2)))
WIDTH = Fraction(2)


def statistics(records, setting):
    treated = np.array([t for t, _ in records])
    outcome = np.array([y for _, y in records], dtype=np.int64)
    arms = arm_totals(treated, outcome)
    contrast, moment = moments(arms, Fraction(1), setting)
    share = Fraction(arms.treated.count, arms.count)
    mean = Fraction(arms.treated.total + arms.control.total, arms.count)
    return share, mean, contrast, moment


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 5), Fraction(3, 4)])
@pytest.mark.parametrize("centre", [Fraction(0), Fraction(1), Fraction(2), Fraction(3, 2)])
def test_no_replacement_exceeds_the_claim(share, centre):
    n = 3
    setting = Setting(share, 0.0, centre, 0.0, 0.0)
    claim = CentredContrast(WIDTH, n, share, centre)
    bounds = (mean_of_everyone(Fraction(1), n), mean_of_everyone(WIDTH, n), claim.mean, claim.second_moment)
    known = {records: statistics(records, setting) for records in product(RECORDS, repeat=n)}
    worst = [Fraction(0)] * 4
    for records, values in known.items():
        for place, record in product(range(n), RECORDS):
            other = known[(*records[:place], record, *records[place + 1 :])]
            worst = [max(w, abs(a - b)) for w, a, b in zip(worst, values, other, strict=True)]
    assert all(w <= bound for w, bound in zip(worst, bounds, strict=True))
    assert worst[:3] == list(bounds[:3])
    # The square's claim counts on psi = 0, which a grid of three outcomes reaches for centres on it.
    if centre.denominator == 1:
        assert worst[3] == claim.second_moment


def test_variance_cap_is_never_exceeded():
    n, share, centre = 3, Fraction(1, 5), Fraction(3, 2)
    setting, claim = Setting(share, 0.0, centre, 0.0, 0.0), CentredContrast(WIDTH, n, share, centre)
    for records in product(RECORDS, repeat=n):
        _, _, contrast, moment = statistics(records, setting)
        assert moment - contrast**2 <= claim.variance_cap


def test_contrast_differs_from_means_by_the_product_of_errors():
    records = [(True, 2), (True, 0), (True, 1), (False, 0), (False, 1)]
    q, centre = Fraction(1, 2), Fraction(1, 3)
    _, _, contrast, _ = statistics(records, Setting(q, 0.0, centre, 0.0, 0.0))
    m1, m0, true_share = Fraction(1), Fraction(1, 2), Fraction(3, 5)
    best = (1 - q) * m1 + q * m0
    assert contrast - (m1 - m0) == (q - true_share) * (centre - best) / (q * (1 - q))
