"""Matching where only outcomes are private."""

import numpy as np
import pytest
from tests.unit.statistics.linear.matching_data import DATA, LARGE, ask

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import StudyError
from counterveil.statistics.linear.matching_design import scored


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
