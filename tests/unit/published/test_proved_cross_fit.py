"""The cross-fitted effect: near the truth, its interval, what it says, what it refuses before it spends."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.datasets import synth
from counterveil.errors import ParameterError, StudyError
from counterveil.privacy.caveats import MisspecifiedModels
from counterveil.session import SeededNoise

DATA = synth(seed=30_001, n=12_000, covariates=5, outcome_range=(0, 3))


def ask(data=DATA.frame, study=DATA.study, **extra):
    given = {"epsilon": 2, "delta": "1e-6", "noise": SeededNoise(3)} | extra
    return cv.published.cross_fit_proved(data, study, **given)


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
@pytest.mark.parametrize(("epsilon", "delta"), [(2, "1e-6"), (8, 0)])
def test_is_near_the_truth_and_covers_it(estimand, epsilon, delta):
    result = ask(estimand=estimand, epsilon=epsilon, delta=delta)
    low, high = result.interval()
    assert low < 0.5 < high
    assert abs(result.estimate - 0.5) < 3 * result.std_error.total
    assert high - low < 0.015
    assert result.estimand.value == estimand
    assert result.interval_target is None


def test_a_declared_propensity_needs_no_model_and_leaves_no_product():
    rng = np.random.default_rng(5)
    frame = dict(DATA.frame)
    treated = rng.random(12_000) < 0.5
    frame["y"] = np.asarray(frame["y"]) + 0.5 * (treated.astype(float) - frame["treated"])
    frame["treated"] = treated.astype(int)
    study = cv.Study(
        "treated", "y", (0, 3), dict(DATA.study.covariates), control=0, randomised=True, treated_share="1/2"
    )
    result = ask(frame, study)
    low, high = result.interval()
    assert low < 0.5 < high
    assert result.uncertainty.extra == result.uncertainty.bias == 0
    assert result.details["declared_propensity"] == 0.5
    assert not isinstance(result.not_covered[0], MisspecifiedModels)
    treated_only = ask(frame, study, estimand="ATT")
    assert abs(treated_only.estimate - 0.5) < 4 * treated_only.std_error.total


def test_the_interval_covers_where_categories_confound():
    rng = np.random.default_rng(1)
    n = 8000
    site = rng.integers(0, 3, n)
    t = rng.random(n) < np.array([0.3, 0.5, 0.7])[site]
    y = 0.2 * site + 0.5 * t + 0.1 * rng.random(n)
    study = cv.Study("t", "y", (0, 2), {"site": cv.Categories([0, 1, 2])}, control=0)
    result = ask({"site": site, "t": t.astype(int), "y": y}, study)
    low, high = result.interval()
    assert low < 0.5 < high


def test_refuses_before_it_spends():
    with cv.Session(synth(n=2000).frame, synth(n=2000).study, budget=cv.Budget(4, "1e-5")) as session:
        with pytest.raises(ParameterError, match="CV-P431"):
            cv.published.cross_fit_proved(session, epsilon=1, delta="1e-6")
        assert session.remaining().epsilon == 4
    bare = cv.Study("treated", "y", (0, 5), control=0)
    with pytest.raises(StudyError, match="CV-S051"):
        ask(study=bare)


@pytest.mark.parametrize("method", ["cross_fit", "ipw"])
def test_the_core_names_the_place_of_a_published_form(method):
    with pytest.raises(ParameterError, match=f"cv.published.{method}_proved") as refused:
        cv.ate(DATA.frame, DATA.study, protects="record", epsilon=1, method=method)
    assert refused.value.code == "CV-P027"
