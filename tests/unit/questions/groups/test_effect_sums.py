"""Sums of effects over cells, from cells without noise: they are those of the rows; and what is known of them."""

from dataclasses import replace

import numpy as np
import pytest

from counterveil.questions.policy import EffectSums, effect_sums
from counterveil.statistics.moments.kernels.scores import LinearModels
from counterveil.statistics.moments.scoring import AdjustedScore, MeanScore, Tallies

ROWS, CENTRE, OFFSET, UNIT, COST = 300, 0.3, 0.2, 1.5, 0.4
RNG = np.random.default_rng(3)
CODES, SCORES = RNG.integers(0, 3, ROWS), RNG.normal(0.5, 1.0, ROWS)
SCORE = MeanScore(0.0, 0.3, offset=OFFSET, extra=0.01, bias=0.02)


def per_cell(values):
    return np.bincount(CODES, weights=values, minlength=3)


SIZES = per_cell(np.ones(ROWS))
CELLS = Tallies(SIZES, per_cell(SCORES - CENTRE), per_cell((SCORES - CENTRE) ** 2), CENTRE, 2, 5, 7, True)


def test_means_and_squares_are_those_of_the_rows():
    gains = (SCORES + OFFSET) * UNIT - COST
    found = effect_sums(CELLS, SCORE, ROWS, UNIT, COST)
    assert found.means == pytest.approx(per_cell(gains) / ROWS)
    assert found.squares == pytest.approx(per_cell(gains**2) / ROWS)
    assert (found.noise_sd, found.bias, found.heavy) == (5.0 * UNIT / ROWS, 0.02 * UNIT, True)
    assert found.extra == pytest.approx(0.01 * UNIT**2 * (SIZES / ROWS) ** 2)


def test_sizes_add_up_to_the_public_number_of_rows():
    found = effect_sums(replace(CELLS, sizes=SIZES - 4), SCORE, ROWS, UNIT, COST)
    assert found.sizes == pytest.approx(SIZES)


def test_errors_that_both_models_show_are_taken_off():
    # A propensity that is wrong by a and an outcome's model that is wrong by b move a mean score by weight a b.
    none, a, b = np.zeros(2), 0.1, 0.2
    models = LinearModels(0.5, 0.0, none, none, none, OFFSET)
    score = AdjustedScore(None, models, 0.1, 0.5, 0.1, doubt=1e6, extra=0.0, bias=0.0)
    wrong = replace(
        CELLS,
        totals=SIZES * score.weight * a * b,
        centre=0.0,
        size_sd=0.0,
        treatment_residual=SIZES * a,
        residual=SIZES * b,
        treatment_residual_sd=1e-9,
        residual_sd=1e-9,
    )
    found = effect_sums(wrong, score, ROWS, UNIT, 0.0)
    assert found.means == pytest.approx(OFFSET * UNIT * SIZES / ROWS, rel=1e-4)


def test_a_weighted_sum_knows_its_noise_its_spread_and_its_errors():
    means, squares = np.array([0.2, -0.1, 0.3]), np.array([0.5, 0.4, 0.6])
    extra, weights = np.array([0.01, 0.04, 0.09]), np.array([1.0, -2.0, 0.5])
    sums = EffectSums(
        100, np.array([50.0, 30.0, 20.0]), means, squares, 0.03, 0.04, 0.5, extra, 0.1, 0.01, False
    )
    known = sums.sum(weights)
    value = float(weights @ means)
    assert known.total / known.size == pytest.approx(value)
    doubt = 0.7 * 0.5 * np.linalg.norm(weights**2)
    assert known.row_variance == pytest.approx(float(weights**2 @ squares) + doubt - value**2)
    assert known.total_sd / known.size == pytest.approx(np.sqrt(5.25) * 0.05)
    # Errors of the models may go together in all cells, whatever the signs of the weights.
    assert known.extra == pytest.approx((1 * 0.1 + 2 * 0.2 + 0.5 * 0.3) ** 2)
    # What was clipped may all lie in the cell of the largest weight.
    assert known.bias == pytest.approx(0.1 * (0.5 + 2 * 0.3 + 0.5 * 0.2) + 2 * 0.01)
