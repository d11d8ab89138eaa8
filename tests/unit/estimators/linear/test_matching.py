"""Matching where only outcomes are private: its estimate, its pairs and its variance."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.plain_questions import question
from tests.unit.estimators.linear.matching_data import DATA, LARGE, ask
from tests.unit.rows.exact_gate import public_rows

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.errors import StudyError
from counterveil.estimators.linear import matching
from counterveil.estimators.linear.kernels.balancing import arm_rows
from counterveil.estimators.linear.kernels.pairing import (
    _STEP_BITS,
    CELL,
    _in_steps,
    covariate_pairs,
    score_pairs,
)
from counterveil.estimators.linear.matching import left_by_matches, variance_by_arm
from counterveil.estimators.linear.matching_design import (
    _compared_limits,
    chosen_match,
    expected_errors,
    match,
    scored,
)
from counterveil.estimators.linear.variance_choice import chosen_residual_variance
from counterveil.estimators.linear.weighting_design import Weighted
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat
from counterveil.rows.linear.ranged_fit import MOST_WEIGHTED_SQUARES


def naive_matching(score, treated, y, neighbours, estimand):
    """Nearest neighbours with unlimited reuse, by a full table of distances."""
    effects = []
    for unit in range(len(y)):
        if estimand in ("ATE", "ATT" if treated[unit] else "ATC"):
            others = np.flatnonzero(treated != treated[unit])
            order = np.lexsort((others, score[others], np.abs(score[others] - score[unit])))
            gap = y[unit] - y[others[order[:neighbours]]].mean()
            effects.append(gap if treated[unit] else -gap)
    return np.mean(effects)


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
@pytest.mark.parametrize("neighbours", [1, 5])
def test_unlimited_matching_agrees_with_a_full_table_of_distances(estimand, neighbours):
    settings = cv.settings.Matching(neighbours=neighbours, limit=None)
    result = ask(DATA, epsilon=LARGE, estimand=estimand, settings=settings)
    table = Table.attach(dict(DATA.frame), DATA.study)
    score = scored(public_rows(table)).score
    expected = naive_matching(score, table.treated, DATA.frame["y"], neighbours, estimand)
    assert result.estimate == pytest.approx(expected, abs=1e-5)
    assert result.details["matches_at_limit"] == 0
    assert result.estimand.value == estimand


@pytest.mark.parametrize(
    "budget", [{"epsilon": 1}, {"epsilon": 1, "mechanism": "laplace"}, {"epsilon": 1, "delta": 1e-6}]
)
def test_the_estimate_is_off_by_the_noise_it_reports(budget):
    exact = ask(DATA, epsilon=LARGE, settings=cv.settings.Matching(limit=4))
    noisy = [
        ask(DATA, settings=cv.settings.Matching(limit=4), noise=cv.SeededNoise(seed), **budget)
        for seed in range(20)
    ]
    errors = np.array([result.estimate - exact.estimate for result in noisy])
    sd = noisy[0].std_error.noise
    assert np.sqrt((errors**2).mean()) == pytest.approx(sd, rel=0.7)
    assert sd > 0.001


def test_a_study_without_covariates_is_refused_before_anything_is_spent():
    frame = {"t": [0, 1, 0, 1], "y": [0.0, 1.0, 0.5, 0.5]}
    study = cv.Study("t", cv.Outcome("y", (0, 1)))
    with cv.Session(frame, study, budget=cv.Budget(1)) as session:
        with pytest.raises(StudyError, match="CV-S051"):
            session.ate(protects="outcome", epsilon=1, method="matching")
        with pytest.raises(StudyError, match="CV-S051"):
            cv.published.outcome_matching(session, epsilon=1)
        assert session.remaining().epsilon == 1


def test_a_limit_keeps_coefficients_small():
    reach = {
        limit: ask(DATA, settings=cv.settings.Matching(limit=limit)).details["max_weight_times_rows"]
        for limit in (1, 3, 10, None)
    }
    assert reach[1] <= reach[3] <= 4
    assert reach[3] < reach[10] <= 11
    assert reach[10] < reach[None]


def test_the_limits_follow_the_budget():
    tight, loose = (
        ask(DATA, epsilon=epsilon, settings=cv.settings.Matching(limit=limit)).details
        for limit, epsilon in (("best", 0.25), ("best", 8))
    )
    assert tight["max_weight_times_rows"] < loose["max_weight_times_rows"]
    adaptive = [
        ask(DATA, epsilon=epsilon, settings=cv.settings.Matching(limit="adaptive")).details
        for epsilon in (0.25, 8)
    ]
    assert adaptive[0]["max_uses_treated"] < adaptive[1]["max_uses_treated"]
    assert ask(DATA).details["limit"] == "best"


def test_the_best_limit_serves_everyone_and_is_low_where_noise_is_large():
    table = Table.attach(dict(DATA.frame), DATA.study)
    design = scored(public_rows(table))
    for noise_variance in (0.0, 1.0, 100.0):
        best = chosen_match(design, cv.settings.Matching(), "ATE", 1.0, noise_variance)
        assert best.matching.unmatched == 0
        assert best.limits[0] == best.limits[1]
    free = match(design, 5, (None, None), "ATE")
    assert best.matching.largest < free.matching.largest / 3


@pytest.mark.parametrize("noise_variance", [1e-4, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
def test_limits_that_are_not_tried_could_not_have_been_the_best(noise_variance, estimand):
    design = scored(public_rows(Table.attach(dict(DATA.frame), DATA.study)))
    found = chosen_match(design, cv.settings.Matching(), estimand, 1.0, noise_variance)
    limits = _compared_limits(design, cv.settings.Matching(), estimand)
    tried = [match(design, 5, (limit, limit), estimand) for limit in limits]
    errors = expected_errors(design, estimand, noise_variance)(tried)
    assert found.limits == tried[int(np.argmin(errors))].limits


def test_outcomes_of_yes_and_no_get_higher_limits():
    # They spread as far as outcomes can, beside which noise is less and imbalance more.
    outcome = np.asarray(DATA.frame["y"], dtype=float)
    yes = (outcome > np.median(outcome)).astype(int)
    limits = []
    for bounds in ((0, 10), (0, 1)):
        declared = cv.Study(
            cv.Treatment("treated", control=0), cv.Outcome("y", bounds), DATA.study.covariates
        )
        words = {"protects": "outcome", "epsilon": 1, "method": "matching", "noise": cv.SeededNoise(1)}
        found = cv.ate(DATA.frame | {"y": yes}, declared, **words)
        limits.append(found.details["max_uses_treated"])
    assert limits[0] < limits[1]


VARIANCE_PAGE = "rows/linear/residual_variance.proof.md"
QUESTION = question("outcome", "matching")


def test_lines_take_out_of_the_variance_what_matches_balance_and_pairs_do_not():
    by_arm, by_row = (
        ask(DATA, epsilon=LARGE, settings=cv.settings.Matching(limit=None, variance_by=variance_by))
        for variance_by in ("arm", "row")
    )
    assert by_arm.std_error.sampling < 0.8 * by_row.std_error.sampling
    assert by_arm.estimate == pytest.approx(by_row.estimate, abs=1e-5)
    assert VARIANCE_PAGE in by_arm.guarantee.pages
    assert VARIANCE_PAGE not in by_row.guarantee.pages
    uneven = [Caveat.UNEVEN_VARIANCE in one.not_covered for one in (by_arm, by_row)]
    assert uneven == [True, False]


@pytest.mark.parametrize("variance_by", ["arm", "row"])
def test_the_variance_of_either_kind_is_that_of_outcomes_that_are_noise_alone(variance_by):
    rng = np.random.default_rng(4)
    frame = dict(DATA.frame) | {"y": rng.integers(0, 2, len(DATA.frame["y"])) * 5.0}
    result = cv.ate(
        frame, DATA.study, protects="outcome", epsilon=LARGE, method="matching",
        settings=cv.settings.Matching(limit=8, variance_by=variance_by), noise=cv.SeededNoise(1),
    )  # fmt: skip
    table = Table.attach(frame, DATA.study)
    design = scored(public_rows(table))
    coefficients = chosen_match(
        design, cv.settings.Matching(limit=8), "ATE", LARGE, 0.0
    ).matching.coefficients
    expected = 2.5 * float(np.sqrt(coefficients @ coefficients))
    assert result.std_error.sampling == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("estimand", [Estimand.ATE, Estimand.ATT, Estimand.ATC])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_the_variance_keeps_room_for_the_imbalance_that_matches_leave(estimand, epsilon):
    question = replace(QUESTION, budget=Budget(epsilon), estimand=estimand)
    table = Table.attach(dict(DATA.frame), DATA.study)
    design = scored(public_rows(table))
    coefficients = chosen_match(
        design, cv.settings.Matching(), estimand.value, epsilon, 1.0
    ).matching.coefficients
    left = left_by_matches(public_rows(table), design, coefficients, estimand)
    form = variance_by_arm(public_rows(table), design, cv.settings.Matching(), coefficients, question)
    without = sum(
        float(coefficients[arm] @ coefficients[arm]) * float(np.var(left.features[arm], axis=0).sum())
        for arm in (design.treated, ~design.treated)
    )
    assert form.loading >= min(left.imbalance**2, without)


def test_parts_of_an_arm_follow_variances_correlated_with_the_coefficients():
    table = Table.attach(dict(DATA.frame), DATA.study)
    design = scored(public_rows(table))
    found = chosen_match(design, cv.settings.Matching(), "ATE", 1, 1.0, 1 / 16).matching.coefficients
    left = left_by_matches(public_rows(table), design, found, Estimand.ATE)
    part = np.abs(found) / np.abs(found).max()
    sign = np.random.default_rng(2).choice([-1, 1], table.rows)
    outcome = np.round((0.5 + 0.5 * part * sign) * OUTCOME_STEPS).astype(np.int64)
    true = float(found**2 @ (part / 2) ** 2)
    whole, cut = (
        float(chosen_residual_variance(left, design.treated, QUESTION, parts).value(outcome, 24))
        for parts in (1, 4)
    )
    assert whole < 0.75 * true
    assert 0.9 * true < cut < 1.1 * true


def test_every_row_is_in_one_part_and_larger_coefficients_are_in_later_ones():
    table = Table.attach(dict(DATA.frame), DATA.study)
    design = scored(public_rows(table))
    found = chosen_match(design, cv.settings.Matching(), "ATE", 1, 1.0).matching.coefficients
    form = variance_by_arm(public_rows(table), design, cv.settings.Matching(), found, QUESTION)
    rows = [part.fit.rows if hasattr(part, "fit") else part.rows for part in form.groups]
    assert len(rows) == 8
    assert sorted(np.concatenate(rows)) == list(range(table.rows))
    for inside in (rows[:4], rows[4:]):
        sizes = [np.abs(found[part]) for part in inside]
        assert all(a.max() <= b.min() for a, b in pairwise(sizes))
        assert len(inside[0]) == pytest.approx(sum(map(len, inside)) / 2, abs=1)


def test_lines_follow_features_no_closer_than_rounding_allows():
    """A small arm beside a large one, which weights balance to the last digit: any strength leaves room enough."""
    rows = np.arange(40_000)
    treated, features = rows < 20, np.where(rows % 2, 1.0, -1.0)[:, None]
    features[:20] *= 30
    arms = arm_rows(features, treated)
    # Few and heavy: degrees of freedom matter more than the slope does.
    weights = np.where(treated, 1 / 20, -1 / len(rows))
    left = Weighted.of(features, arms, weights, np.zeros((2, 1)), Estimand.ATE)
    chosen = chosen_residual_variance(left, treated, replace(QUESTION, budget=Budget(LARGE)))
    fits = [part.fit for part in chosen.groups]
    squares = [float(fit.strengths @ (np.diagonal(fit.covariance) + fit.centre**2)) for fit in fits]
    assert 1e5 < max(squares) <= MOST_WEIGHTED_SQUARES


def test_wide_tables_and_tables_without_differences_use_pairs(monkeypatch):
    arm_correlation = {
        name: np.zeros_like(column) for name, column in DATA.frame.items() if name.startswith("x")
    }
    nothing = cv.ate(
        dict(DATA.frame) | arm_correlation, DATA.study, protects="outcome", epsilon=1, method="matching",
        settings=cv.settings.Matching(variance_by="arm"), noise=cv.SeededNoise(1),
    )  # fmt: skip
    assert VARIANCE_PAGE not in nothing.guarantee.pages
    assert VARIANCE_PAGE in ask(DATA).guarantee.pages
    monkeypatch.setattr(matching, "_MOST_WORK", len(DATA.frame["y"]) * 20**2 - 1)
    assert VARIANCE_PAGE not in ask(DATA).guarantee.pages
    assert VARIANCE_PAGE in ask(DATA, settings=cv.settings.Matching(variance_by="arm")).guarantee.pages


def arms_of(n, seed=0):
    arm = np.random.default_rng(seed).random(n) < 0.3
    arm[:2], arm[-2:] = True, False
    return arm


def pairs_of(kind, arm, features):
    return score_pairs(arm, features[:, 0]) if kind == "score" else covariate_pairs(arm, features)


@pytest.mark.parametrize("kind", ["score", "covariates"])
@pytest.mark.parametrize("n", [4, 5, 7, 63, 64, 65, 1001])
def test_every_row_is_in_a_pair_of_its_arm_and_few_in_two(kind, n):
    arm = arms_of(n)
    first, second = pairs_of(kind, arm, np.random.default_rng(n).normal(size=(n, 3)))
    assert (arm[first] == arm[second]).all()
    assert (first != second).all()
    count = np.bincount(np.concatenate([first, second]), minlength=n)
    assert count.min() == 1
    assert count.max() <= 2
    # At most one row of an arm, or of a cell of it, is left over.
    spare = 2 if kind == "score" else 2 + 2 * n // CELL
    assert (count == 2).sum() <= spare


@pytest.mark.parametrize("kind", ["score", "covariates"])
def test_ties_and_constants_are_no_trouble(kind):
    n = 500
    arm = arms_of(n)
    features = np.round(np.random.default_rng(3).random((n, 2)) * (2, 0))
    assert len(np.unique(np.concatenate(covariate_pairs(arm, features[:, :0])))) == n
    first, second = pairs_of(kind, arm, features)
    assert len(np.unique(np.concatenate([first, second]))) == n
    # Ties: all but the pairs that straddle two values are equal.
    assert (features[first, 0] != features[second, 0]).sum() <= (4 if kind == "score" else n // CELL * 2)


def test_neighbours_on_the_score_are_paired():
    first, second = score_pairs(np.zeros(6, int), np.array([0.1, 0.9, 0.5, 0.2, 0.6, 0.8]))
    assert {frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)} == {
        frozenset((0, 3)),
        frozenset((2, 4)),
        frozenset((5, 1)),
    }


def test_several_arms_are_kept_apart():
    arm = np.repeat([0, 1, 2], [5, 4, 7])
    first, second = score_pairs(arm, np.arange(16.0))
    assert (arm[first] == arm[second]).all()
    assert len(first) == 3 + 2 + 4


def test_pairs_on_covariates_are_closer_than_chance_and_than_the_score():
    rng = np.random.default_rng(5)
    features = rng.random((4000, 4))
    arm = rng.random(4000) < 0.5

    def gap(pairs):
        return ((features[pairs[0]] - features[pairs[1]]) ** 2).sum(axis=1).mean()

    close, by_score = gap(covariate_pairs(arm, features)), gap(score_pairs(arm, features @ np.ones(4)))
    assert close < 0.2 * by_score
    assert by_score < 4 * 2 / 12  # two independent rows


@pytest.mark.parametrize("width", [1, 4, 300])
def test_steps_are_whole_and_sums_of_their_products_exact(width):
    features = np.random.default_rng(width).normal(size=(40, width)) * 1e-3
    whole = _in_steps(features, np.arange(len(features)), float(np.abs(features).max())).astype(float)
    assert (whole == np.rint(whole)).all()
    assert np.abs(whole).max() <= 2**_STEP_BITS
    assert 4 * width * np.abs(whole).max() ** 2 < 2**53
    scale = np.abs(whole).max() / np.abs(features).max()
    np.testing.assert_allclose(whole, features * scale, atol=1.0)


def test_the_closest_two_of_a_cell_come_first():
    x = np.array([0.0, 10.0, 1.0, 40.0, 12.0])
    first, second = covariate_pairs(np.zeros(5, int), x[:, None])
    assert (first.tolist(), second.tolist()) == ([0, 1, 3], [2, 4, 4])
