"""The contrast stratified by a private score."""

import json

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import ParameterError, StudyError
from counterveil.privacy import Proof
from counterveil.privacy.caveats import Caveat
from counterveil.session import SeededNoise

NAMES = ("a", "b", "c")
STUDY = cv.Study(
    treatment="t",
    outcome="y",
    outcome_range=(0, 1),
    covariates=dict.fromkeys(NAMES, cv.Range(0, 1)),
    control=0,
)
EFFECT = 0.2


def people(n=4000, seed=0, confounded=3.0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 3))
    t = rng.random(n) < 1 / (1 + np.exp(-confounded * (x.sum(axis=1) - 1.5)))
    y = 0.1 + 0.2 * x.sum(axis=1) + EFFECT * t
    return dict(zip(NAMES, x.T, strict=True)) | {"t": t.astype(int), "y": y}


def ask_for(data, declared=STUDY, **extra):
    return cv.ate(data, declared, protects="record", method="score_strata", **({"epsilon": 1} | extra))


def stratified(data, strata=3):
    """The contrast within thirds of the sum of covariates, which is the true direction."""
    x = data["a"] + data["b"] + data["c"]
    place = np.searchsorted(np.quantile(x, np.arange(1, strata) / strata), x)
    t, y, total = data["t"] == 1, data["y"], 0.0
    for k in range(strata):
        here = place == k
        total += here.mean() * (y[here & t].mean() - y[here & ~t].mean())
    return total


def test_it_removes_most_of_the_confounding_and_agrees_with_strata_made_without_privacy():
    data = people()
    y, t = data["y"], data["t"] == 1
    raw = y[t].mean() - y[~t].mean()
    sharp = ask_for(data, epsilon=2000, noise=SeededNoise(0))
    assert sharp.estimate == pytest.approx(stratified(data), abs=0.01)
    assert abs(sharp.estimate - EFFECT) < 0.5 * (raw - EFFECT)
    noisy = [ask_for(data, epsilon=2, noise=SeededNoise(seed)).estimate for seed in range(20)]
    assert abs(np.mean(noisy) - EFFECT) < 0.7 * (raw - EFFECT)


def test_more_strata_leave_less_confounding():
    data = people(20_000)
    errors = [
        abs(
            ask_for(data, epsilon=2000, settings=cv.settings.ScoreStrata(k), noise=SeededNoise(0)).estimate
            - EFFECT
        )
        for k in (2, 4, 8)
    ]
    assert errors[0] > errors[1] > errors[2]


def test_small_budgets_fall_back_to_the_plain_contrast():
    data = people(300)
    weights = [
        np.mean([ask_for(data, epsilon=e, noise=SeededNoise(s)).details["strata_weight"] for s in range(10)])
        for e in (0.1, 100)
    ]
    assert weights[0] < 0.3
    assert weights[1] > 0.8


def test_estimands_differ_where_the_effect_does():
    data = people(20_000)
    x = data["a"] + data["b"] + data["c"]
    data["y"] = np.where(data["t"] == 1, 0.1 + 0.25 * x, 0.1)
    found = {
        e: ask_for(data, estimand=e, epsilon=5000, noise=SeededNoise(0)).estimate
        for e in ("ATT", "ATE", "ATC")
    }
    assert found["ATT"] > found["ATE"] > found["ATC"]


def test_result_says_that_there_is_no_interval_for_the_effect_and_survives_json():
    result = ask_for(people(500))
    assert "NO VALID INTERVAL FOR THE EFFECT" in str(result).replace("\n", " ")
    assert result.not_covered[0] is Caveat.CONFOUNDING_BUT_ONE_DIRECTION
    assert result.guarantee.proof is Proof.FINITE_SAMPLE
    assert cv.results.Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    with cv.Curator(people(500), STUDY, budget=cv.Budget(1), noise=SeededNoise(0)) as curator:
        curator.ate(protects="record", epsilon=1, method="score_strata")
        assert curator.remaining().epsilon == 0


def test_hopeless_data_do_not_break_it():
    n = 60
    data = dict.fromkeys(NAMES, np.zeros(n)) | {"t": [1] * 2 + [0] * (n - 2), "y": [1.0] * n}
    for seed in range(3):
        assert np.isfinite(ask_for(data, epsilon=0.05, noise=SeededNoise(seed)).interval()).all()


def test_refusals():
    for wrong in (1, 21, 2.5, True):
        with pytest.raises(ParameterError, match="CV-P025"):
            cv.settings.ScoreStrata(wrong)
    with pytest.raises(ParameterError, match="CV-P240"):
        ask_for(people(100), delta=1e-6)
    bare = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), control=0)
    with pytest.raises(StudyError, match="CV-S051"):
        ask_for(people(100), bare)
