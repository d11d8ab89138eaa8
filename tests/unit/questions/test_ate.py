"""The front door for randomised trials."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import BudgetError, ParameterError, StudyError
from counterveil.privacy import Proof


def trial(n=4000, seed=0, share=0.5):
    rng = np.random.default_rng(seed)
    t = (rng.random(n) < share).astype(int)
    return {"arm": t, "y": rng.normal(50 + 5 * t, 10, n)}


def study(**extra):
    return cv.Study(treatment="arm", outcome="y", outcome_range=(0, 100), **({"randomised": True} | extra))


def test_noise_has_at_most_half_the_variance_of_two_draws():
    data = trial(n=1000)
    data["arm"] = np.tile([0, 1], 500)
    settings = cv.settings.DifferenceInMeans(variance_share="1/10")
    words = {"protects": "outcome", "method": "difference_in_means", "settings": settings}
    for epsilon in (0.25, 1, 4):
        result = cv.ate(data, study(), epsilon=epsilon, mechanism="laplace", noise=cv.SeededNoise(1), **words)
        two_draws = 2 * 2 * (100 / 500 / (epsilon * 0.9)) ** 2
        assert result.uncertainty.noise.variance <= two_draws / 2 * (1 + 1e-12)
        best = cv.ate(data, study(), epsilon=epsilon, noise=cv.SeededNoise(1), **words)
        assert best.uncertainty.noise.variance <= result.uncertainty.noise.variance * 1.05


def test_real_noise_has_a_proof_and_differs_between_calls():
    data = trial(n=200)
    first, second = (cv.ate(data, study(), protects="outcome", epsilon=1) for _ in range(2))
    assert first.guarantee.proof is Proof.FINITE_SAMPLE
    assert first.guarantee.warning is None
    assert first.estimate != second.estimate


def test_session_spends_one_budget_over_several_questions():
    with cv.Session(trial(n=300), study(), budget=cv.Budget(epsilon=1)) as session:
        session.ate(protects="outcome", epsilon="0.6")
        assert session.remaining().epsilon == pytest.approx(0.4)
        with pytest.raises(BudgetError):
            session.ate(protects="outcome", epsilon="0.5")
        session.ate(protects="record", epsilon="0.4")
        assert session.remaining().epsilon == 0


def test_confounding_is_said_where_no_trial_is_declared():
    data = trial(n=300)
    with pytest.raises(StudyError, match="CV-S050"):
        cv.ate(data, study(randomised=None), protects="outcome", epsilon=1)
    named = cv.ate(data, study(randomised=None), protects="outcome", epsilon=1, method="difference_in_means")
    assert "CONFOUNDING" in str(named)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"protects": "label"}, "CV-P001"),
        ({"estimand": "LATE"}, "CV-P002"),
        ({"epsilon": "much"}, "CV-P003"),
        ({"epsilon": 0}, "CV-P004"),
        ({"delta": 1}, "CV-P005"),
        ({"mechanism": "cauchy"}, "CV-P010"),
        ({"mechanism": "gaussian"}, "CV-P011"),
        ({"level": 95}, "CV-P015"),
        ({"method": "magic"}, "CV-P016"),
    ],
)
def test_wrong_arguments_are_refused_before_the_data_are_looked_at(wrong, code):
    arguments = {"protects": "outcome", "epsilon": 1} | wrong
    with pytest.raises(ParameterError, match=code):
        cv.ate("no such file.csv", study(), **arguments)


def test_the_name_that_a_method_has_elsewhere_is_told():
    with pytest.raises(ParameterError) as refusal:
        cv.ate("no such file.csv", study(), protects="record", epsilon=1, method="AIPW")
    assert "here it is called 'doubly_robust'" in refusal.value.fix
