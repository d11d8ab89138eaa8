"""Noise of the simple rivals: no neighbour moves a statistic further than it is made for, and it has that scale."""

from math import log, sqrt

import numpy as np
import pytest

from counterveil_lab.reproduce.rivals import simple
from counterveil_lab.reproduce.rivals.encoding import Budget, Records
from counterveil_lab.reproduce.rivals.ours import dpci_sd, global_matching, matched_effect
from counterveil_lab.reproduce.rivals.privsyn import dependence, measure, records_for, rho_of
from counterveil_lab.reproduce.rivals.simple import groups, noisy_counts


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 1, (60, 2))
    return Records(x, np.arange(60) % 3 == 0, rng.uniform(0, 2, 60), ((0, 1), (0, 1)), (0, 2))


@pytest.mark.parametrize(
    ("estimate", "coefficients"),
    [
        (simple.outcome_means, simple.means_coefficients),
        (simple.outcome_ols, simple.ols_coefficients),
        (simple.outcome_weighting, simple.weighting_coefficients),
    ],
)
def test_outcome_noise_has_the_scale_of_the_largest_coefficient(records, estimate, coefficients):
    weights = coefficients(records)
    assert weights[records.treated].sum() == pytest.approx(1)
    assert weights[~records.treated].sum() == pytest.approx(-1)
    scale = simple.public_scale(weights, records, 0.5)
    assert scale == pytest.approx(2 * np.abs(weights).max() / 0.5)
    drawn = np.array([estimate(records, Budget(0.5, 0.0), seed).value for seed in range(300)])
    off = drawn - weights @ records.y
    assert np.abs(off).mean() == pytest.approx(scale, rel=0.15)


def test_no_row_moves_a_gram_matrix_further_than_its_noise_is_made_for():
    rng = np.random.default_rng(0)
    size, most_square, most_sum = 4, 0.0, 0.0
    upper = np.triu_indices(size)
    for _ in range(800):
        rows = np.where(
            rng.random((2, size)) < 0.5, rng.choice([-1.0, 1.0], (2, size)), rng.uniform(-1, 1, (2, size))
        )
        rows[:, 0] = 1.0
        gap = np.outer(rows[0], rows[0]) - np.outer(rows[1], rows[1])
        most_square = max(most_square, float(np.linalg.norm(gap)))
        # The last square, of the outcome, is not released.
        most_sum = max(most_sum, float(np.abs(gap[upper][:-1]).sum()))
    assert most_square <= sqrt(2) * size
    largest = simple.gram_scale(size, Budget(1.0, 0.0)) / sqrt(2)
    assert 0.8 * largest <= most_sum <= largest


def test_gram_noise_has_its_scale_and_leaves_the_rows_alone():
    rng = np.random.default_rng(0)
    budget = Budget(1.0, 1e-6)
    drawn = np.array([simple.gram_noise(3, budget, rng) for _ in range(1200)])
    sd = sqrt(2) * 3 / simple.gaussian_mu(1.0, 1e-6)
    assert np.all(drawn[:, [0, 2], [0, 2]] == 0)
    assert np.array_equal(drawn, drawn.transpose(0, 2, 1))
    assert drawn[:, 1, 1].std() == pytest.approx(sd, rel=0.06)
    assert drawn[:, 0, 1].std() == pytest.approx(sd / sqrt(2), rel=0.06)
    pure = np.array([simple.gram_noise(3, Budget(1.0, 0.0), rng)[0, 1] for _ in range(1200)])
    assert np.abs(pure).mean() == pytest.approx(5, rel=0.08)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_ridge_exceeds_the_noise_nineteen_times_in_twenty(delta):
    rng = np.random.default_rng(0)
    budget, size = Budget(1.0, delta), 4
    drawn = [simple.gram_noise(size + 1, budget, rng)[:-1, :-1] for _ in range(300)]
    ridge = simple.gram_ridge(np.zeros((size, size)), simple.gram_scale(size + 1, budget))
    assert np.mean([np.linalg.norm(noise, 2) > ridge for noise in drawn]) <= 0.06
    lifted = [
        noise + simple.gram_ridge(noise, simple.gram_scale(size + 1, budget)) * np.eye(size)
        for noise in drawn
    ]
    assert all(np.linalg.eigvalsh(one)[0] > 0 for one in lifted)


def test_papers_noise_is_what_they_print(records):
    value = matched_effect(records)
    drawn = np.array([global_matching(records, Budget(0.5, 0.0), seed).value - value for seed in range(400)])
    assert np.abs(drawn).mean() == pytest.approx(2 / 0.5, rel=0.15)
    printed = 5 * sqrt(2 * log(60) * log(2e6)) / (0.5 * 60)
    assert dpci_sd(records, Budget(0.5, 1e-6), 1.0) == pytest.approx(printed)


def test_one_record_moves_a_dependence_by_no_more_than_is_said():
    rng = np.random.default_rng(3)
    most = 0.0
    for _ in range(400):
        codes = rng.integers(0, 2, (6, 2))
        other = codes.copy()
        other[0] = 1 - other[0] if rng.random() < 0.5 else rng.integers(0, 2, 2)
        most = max(most, abs(dependence(codes, (0, 1), (2, 2)) - dependence(other, (0, 1), (2, 2))))
    assert 2 <= most <= 6 + 4 / 6


def test_privsyn_takes_dependent_pairs_and_makes_records_with_their_marginals():
    rng = np.random.default_rng(2)
    first = rng.integers(0, 3, 3000)
    codes = np.column_stack([first, np.where(rng.random(3000) < 0.9, first, 0), rng.integers(0, 2, 3000)])
    sizes = (3, 3, 2)
    marginals = measure(codes, sizes, Budget(50.0, 1e-6), rng)
    assert (0, 1) in [one.columns for one in marginals]
    made = records_for(marginals, sizes, 3000, rng)
    assert np.mean(made[:, 0] == made[:, 1]) == pytest.approx(np.mean(codes[:, 0] == codes[:, 1]), abs=0.03)
    assert rho_of(Budget(1.0, 1e-6)) + 2 * sqrt(rho_of(Budget(1.0, 1e-6)) * log(1e6)) == pytest.approx(1)


def test_mondrian_keeps_groups_of_k():
    rng = np.random.default_rng(0)
    sizes = np.bincount(groups(rng.normal(size=(203, 3)), 10))
    assert sizes.min() >= 10
    assert sizes.max() < 20
    assert sizes.sum() == 203
    assert set(groups(np.zeros((50, 1)), 10)) == {0}


def test_counts_have_geometric_noise(records):
    yes = records.y > 1
    drawn = np.array([noisy_counts(records, Budget(0.5, 0.0), seed) for seed in range(500)])
    off = drawn - [yes[records.treated].sum(), yes[~records.treated].sum()]
    ratio = np.exp(-0.5)
    assert off.var(axis=0) == pytest.approx(np.full(2, 2 * ratio / (1 - ratio) ** 2), rel=0.25)
