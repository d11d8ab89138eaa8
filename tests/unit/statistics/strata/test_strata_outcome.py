"""One outcome moves the stratified effect and its variance by at most what is claimed, and by as much."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterveil.statistics.strata.sensitivity import StrataOutcome

VALUES = (Fraction(0), Fraction(1, 2), Fraction(1))
# (treated, control, h) of every stratum.
DESIGNS = [
    [(2, 2, 4)],
    [(1, 3, 4)],
    [(2, 1, 2), (1, 2, 3)],
    [(3, 2, Fraction(5, 2))],
]


def _statistics(design, outcomes):
    total = sum(Fraction(h) for _, _, h in design)
    effect = variance = Fraction(0)
    rest = list(outcomes)
    for treated, control, h in design:
        means = []
        for m in (treated, control):
            arm, rest = rest[:m], rest[m:]
            mean = sum(arm) / m
            q = Fraction(1, 4) if m == 1 else sum((y - mean) ** 2 for y in arm) * m / (m - 1)
            variance += (Fraction(h) / m) ** 2 * q
            means.append(mean)
        effect += h * (means[0] - means[1])
    return effect / total, variance / total**2


@pytest.mark.parametrize("design", DESIGNS)
def test_all_outcomes(design):
    treated, control, weights = (np.array(column) for column in zip(*design, strict=True))
    total = sum(Fraction(h) for _, _, h in design)
    claim = StrataOutcome.of(Fraction(1), weights.astype(float), treated, control, total)
    rows = claim.rows
    known = {outcomes: _statistics(design, outcomes) for outcomes in product(VALUES, repeat=rows)}
    worst = [Fraction(0), Fraction(0)]
    for outcomes, here in known.items():
        for place, value in product(range(rows), VALUES):
            there = known[(*outcomes[:place], value, *outcomes[place + 1 :])]
            worst = [max(seen, abs(a - b)) for seen, a, b in zip(worst, here, there, strict=True)]
    assert worst[0] <= claim.effect
    assert worst[1] <= claim.variance
    assert float(worst[0] / claim.effect) == pytest.approx(1, abs=1e-9)
    if min(min(t, c) for t, c, _ in design) > 1:
        assert float(worst[1] / claim.variance) == pytest.approx(1, abs=1e-9)


def _of_arms(design, outcomes):
    """Return mean and variance of treated, then of controls."""
    total = sum(Fraction(h) for _, _, h in design)
    found, rest = [Fraction(0)] * 4, list(outcomes)
    for *sizes, h in design:
        for arm, m in enumerate(sizes):
            own, rest = rest[:m], rest[m:]
            mean = sum(own) / m
            q = Fraction(1, 4) if m == 1 else sum((y - mean) ** 2 for y in own) * m / (m - 1)
            found[2 * arm] += h * mean / total
            found[2 * arm + 1] += (Fraction(h) / m) ** 2 * q / total**2
    return found


@pytest.mark.parametrize("design", DESIGNS)
def test_one_outcome_moves_one_arm_by_at_most_its_own_bound(design):
    treated, control, weights = (np.array(column) for column in zip(*design, strict=True))
    total, rows = sum(Fraction(h) for _, _, h in design), int(treated.sum() + control.sum())
    one, other = (
        StrataOutcome.of_arm(Fraction(1), weights.astype(float), counts, total, rows)
        for counts in (treated, control)
    )
    known = {outcomes: _of_arms(design, outcomes) for outcomes in product(VALUES, repeat=rows)}
    worst = [Fraction(0)] * 4
    for outcomes, here in known.items():
        for place, value in product(range(rows), VALUES):
            there = known[(*outcomes[:place], value, *outcomes[place + 1 :])]
            moves = [abs(a - b) for a, b in zip(here, there, strict=True)]
            assert not any(moves[:2]) or not any(moves[2:])
            worst = [max(pair) for pair in zip(worst, moves, strict=True)]
    for (mean, variance), claim in zip((worst[:2], worst[2:]), (one, other), strict=True):
        assert mean <= claim.effect
        assert variance <= claim.variance
        assert float(mean / claim.effect) == pytest.approx(1, abs=1e-9)
