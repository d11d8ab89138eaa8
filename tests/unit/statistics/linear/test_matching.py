"""Matching where only outcomes are private."""

import numpy as np
import pytest
from tests.unit.statistics.linear.matching_data import DATA, LARGE, ask

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import StudyError
from counterveil.statistics.linear.matching_design import (
    _ladder,
    chosen_match,
    expected_errors,
    match,
    scored,
)


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
    score = scored(table).score
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
    study = cv.Study("t", "y", (0, 1))
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
            DATA.frame | {"y": yes},
            declared,
            protects="outcome",
            epsilon=1,
            method="matching",
            noise=cv.SeededNoise(1),
        )
        limits.append(found.details["max_uses_treated"])
    assert limits[0] < limits[1]
