"""Matching where only outcomes are private: how often a unit may be used."""

import numpy as np
import pytest
from tests.unit.statistics.linear.matching_data import DATA, ask

import counterveil as cv
from counterveil.data import Table
from counterveil.statistics.linear.matching_design import (
    _ladder,
    chosen_match,
    expected_errors,
    match,
    scored,
)


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
    design = scored(table)
    for noise_variance in (0.0, 1.0, 100.0):
        best = chosen_match(design, cv.settings.Matching(), "ATE", 1.0, noise_variance)
        assert best.matching.unmatched == 0
        assert best.limits[0] == best.limits[1]
    free = match(design, 5, (None, None), "ATE")
    assert best.matching.largest < free.matching.largest / 3


@pytest.mark.parametrize("noise_variance", [1e-4, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
def test_limits_that_are_not_tried_could_not_have_been_the_best(noise_variance, estimand):
    design = scored(Table.attach(dict(DATA.frame), DATA.study))
    found = chosen_match(design, cv.settings.Matching(), estimand, 1.0, noise_variance)
    limits = _ladder(design, cv.settings.Matching(), estimand)
    tried = [match(design, 5, (limit, limit), estimand) for limit in limits]
    errors = expected_errors(design, estimand, noise_variance)(tried)
    assert found.limits == tried[int(np.argmin(errors))].limits


def test_outcomes_of_yes_and_no_get_higher_limits():
    # They spread as far as outcomes can, beside which noise is less and imbalance more.
    outcome = np.asarray(DATA.frame["y"], dtype=float)
    yes = (outcome > np.median(outcome)).astype(int)
    limits = []
    for bounds in ((0, 10), (0, 1)):
        declared = cv.Study("treated", "y", bounds, DATA.study.covariates, control=0)
        found = cv.ate(
            DATA.frame | {"y": yes}, declared, protects="outcome", epsilon=1, method="matching",
            noise=cv.SeededNoise(1),
        )  # fmt: skip
        limits.append(found.details["max_uses_treated"])
    assert limits[0] < limits[1]
