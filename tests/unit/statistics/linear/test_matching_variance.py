"""Matching where only outcomes are private: what the variance is estimated from."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.unit.statistics.linear.matching_data import DATA, LARGE, ask

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat
from counterveil.results.question import Question
from counterveil.statistics.linear import effect as outcome_variance
from counterveil.statistics.linear.effect import chosen_residual_variance, left_by_matches, variance_by_arm
from counterveil.statistics.linear.kernels.balancing import arm_rows
from counterveil.statistics.linear.kernels.residual_variance import MOST_REACH
from counterveil.statistics.linear.matching_design import chosen_match, scored
from counterveil.statistics.linear.weighting_design import Weighted

VARIANCE_PAGE = "statistics/linear/kernels/residual_variance.proof.md"
QUESTION = Question.ask(
    protects="outcome", epsilon=1, delta=0, estimand="ATE", method="matching", level=0.95, mechanism=None,
    request_id=None,
)  # fmt: skip


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
    design = scored(table)
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
    design = scored(table)
    coefficients = chosen_match(
        design, cv.settings.Matching(), estimand.value, epsilon, 1.0
    ).matching.coefficients
    left = left_by_matches(table, design, coefficients, estimand)
    form = variance_by_arm(table, design, cv.settings.Matching(), coefficients, question)
    without = sum(
        float(coefficients[arm] @ coefficients[arm]) * float(np.var(left.features[arm], axis=0).sum())
        for arm in (design.treated, ~design.treated)
    )
    assert form.loading >= min(left.imbalance**2, without)


def test_parts_of_an_arm_follow_variances_correlated_with_the_coefficients():
    table = Table.attach(dict(DATA.frame), DATA.study)
    design = scored(table)
    found = chosen_match(design, cv.settings.Matching(), "ATE", 1, 1.0, 1 / 16).matching.coefficients
    left = left_by_matches(table, design, found, Estimand.ATE)
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
    design = scored(table)
    found = chosen_match(design, cv.settings.Matching(), "ATE", 1, 1.0).matching.coefficients
    form = variance_by_arm(table, design, cv.settings.Matching(), found, QUESTION)
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
    reach = [float(fit.strengths @ (np.diagonal(fit.covariance) + fit.centre**2)) for fit in fits]
    assert 1e5 < max(reach) <= MOST_REACH


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
    monkeypatch.setattr(outcome_variance, "_MOST_WORK", len(DATA.frame["y"]) * 20**2 - 1)
    assert VARIANCE_PAGE not in ask(DATA).guarantee.pages
    assert VARIANCE_PAGE in ask(DATA, settings=cv.settings.Matching(variance_by="arm")).guarantee.pages
