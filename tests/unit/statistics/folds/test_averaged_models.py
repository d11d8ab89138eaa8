"""Brute force and search: one record moves the mean of scores under averaged models by its claim at most."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterveil.statistics.folds.sensitivity import AveragedModels

CLIP, HALF = 0.2, 0.5


def scores(records, models, folds, averaged):
    """Return the scores of (x, t, y) under fold models x -> (m1, m0, p), averaged over the next folds in a circle."""
    found = []
    for place, (x, t, y) in enumerate(records):
        (own,) = (k for k, fold in enumerate(folds) if place in fold)
        others = [models[(own + 1 + step) % len(folds)] for step in range(averaged)]
        m1, m0, p = (np.array([model[part][x] for model in others]) for part in range(3))
        r1, r0 = (1 / p).mean(), (1 / (1 - p)).mean()
        m1, m0 = m1.mean(), m0.mean()
        found.append(m1 - m0 + t * r1 * (y - m1) - (1 - t) * r0 * (y - m0))
    return np.array(found)


PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


@pytest.mark.parametrize(
    ("folds", "averaged"),
    [
        ([(0, 1), (2, 3)], 1),
        ([(0,), (1,), (2,), (3,)], 3),
        ([(0, 1, 2), (3,), (4,)], 2),
        ([(0, 1, 2), (3,), (4,)], 1),
        (PAIRS, 1),
        (PAIRS, 2),
    ],
)
def test_no_replacement_exceeds_the_claims_whatever_the_models(folds, averaged):
    rng = np.random.default_rng(0)
    worst = 0.0
    rows, sizes = sum(map(len, folds)), [len(fold) for fold in folds]
    claim = AveragedModels(Fraction(1), Fraction(1, 5), rows, min(sizes), max(sizes), averaged, Fraction(0))
    for _ in range(300):
        # The first fold's record and models change in any way at all; corners are where changes are large.
        def model():
            values = rng.choice([-HALF, HALF], (2, 2))
            return values[0], values[1], rng.choice([CLIP, 1 - CLIP], 2)

        def record():
            return int(rng.integers(2)), int(rng.integers(2)), float(rng.choice([-HALF, HALF]))

        records, models = [record() for _ in range(rows)], [model() for _ in folds]
        place = int(rng.choice(folds[0]))
        changed = [record() if row == place else old for row, old in enumerate(records)]
        before = scores(records, models, folds, averaged)
        after = scores(changed, [model(), *models[1:]], folds, averaged)
        assert np.abs(before).max() <= float(claim.bound) + 1e-12
        elsewhere = [row for row in range(rows) if row not in folds[0]]
        assert np.abs(after - before)[elsewhere].max() <= float(claim.others) + 1e-12
        assert abs(after.mean() - before.mean()) <= float(claim.mean) + 1e-12
        assert abs((after**2).mean() - (before**2).mean()) <= float(claim.square) + 1e-12
        worst = max(worst, np.abs(after - before)[elsewhere].max() / float(claim.others))
    assert worst > 0.55


@pytest.mark.parametrize(("rows", "folds"), [(100, 10), (1000, 30)])
def test_the_models_term_does_not_shrink_with_rows(rows, folds):
    size = rows // folds
    claim = AveragedModels(
        Fraction(1), Fraction(1, 10), rows, size, -(-rows // folds), folds - 1, Fraction(0)
    )
    expected = 2 * 10 / rows + (1 - (rows // folds) / rows) * (20 - 10 / 9) / (folds - 1)
    assert float(claim.mean) == pytest.approx(expected)


def test_averaging_fewer_models_costs_hardly_more_noise():
    claims = [
        AveragedModels(Fraction(1), Fraction(1, 10), 100_000, 50, 50, models, Fraction(0))
        for models in (1999, 64)
    ]
    assert float(claims[1].mean) == pytest.approx(float(claims[0].mean), rel=1e-3)


def test_all_models_of_two_folds():
    # Every model that is constant in x, for both folds, before and after; one row a fold.
    folds, values = [(0,), (1,)], (-HALF, HALF)
    claim = AveragedModels(Fraction(1), Fraction(1, 5), 2, 1, 1, 1, Fraction(0))
    models = [([a], [b], [p]) for a, b, p in product(values, values, (CLIP, 1 - CLIP))]
    rows = [(0, t, y) for t, y in product((0, 1), values)]
    # A row's score depends on itself and the other fold's model alone.
    alone = {
        (place, row): scores([row, row], [model, model], folds, 1)[0]
        for (place, model), row in product(enumerate(models), rows)
    }
    worst = 0.0
    for first, new, second, mine, changed, other in product(
        range(len(models)), range(len(models)), range(len(models)), rows, rows, rows
    ):
        before, after = alone[second, mine] + alone[first, other], alone[second, changed] + alone[new, other]
        worst = max(worst, abs(after - before) / 2)
    assert 0.55 * float(claim.mean) < worst <= float(claim.mean)
