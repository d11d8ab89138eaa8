"""Matching with private records: what it estimates, what it says about it, what it refuses."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.errors import ClaimError, ParameterError, StudyError
from counterveil.numerics.propensity import fit_propensity
from counterveil.privacy import Proof
from counterveil.published import matching as paper
from counterveil.published.matching import USUAL, record_matching_plan
from counterveil.results.question import Question
from counterveil.session import Gate, Kind, Responses, SeededNoise

STUDY = cv.Study(
    treatment="t", outcome="y", outcome_range=(0, 1),
    covariates={"a": cv.Range(0, 1), "b": cv.Binary(), "c": cv.Categories(["p", "q", "r"])}, control=0,
)  # fmt: skip


def people(n=400, seed=0, effect=0.4):
    rng = np.random.default_rng(seed)
    a, b = rng.random(n), rng.integers(0, 2, n)
    t = (rng.random(n) < 0.3).astype(int)
    y = 0.2 + 0.2 * a + effect * t + 0.1 * rng.random(n)
    return {"a": a, "b": b, "c": np.array(list("pqr"))[rng.integers(0, 3, n)], "t": t, "y": y}


def ask_for(**extra):
    given = {"epsilon": 2, "noise": SeededNoise(1)} | extra
    return cv.published.record_matching_proved(people(), STUDY, **given)


def draws(proved, epsilon, count, weights):
    table = Table.attach(people(), STUDY)
    question = Question.ask(
        method="published.record_matching_proved", protects="record", epsilon=epsilon, delta=0, estimand="ATE",
        level=0.95, mechanism="laplace", request_id=None,
    )  # fmt: skip
    plan = record_matching_plan(question, weights, "laplace")
    features = UnitFeatures.of(STUDY)
    z, found = features.values(table), []
    box = z + features.middle
    fitted = fit_propensity(z, table.treated, 0.1).weights
    published = paper.fit_without_intercept(box, table.treated, 0.1)
    for seed in range(count):
        gate = Gate(plan, SeededNoise(seed))
        if proved:
            scores, responses = paper.release_proved_scores(gate, table, features, z, fitted)
            matched = paper.match_released(scores, responses, float(plan.amount("effect")))
            effect, _ = paper.release_sum(gate, table, matched)
        else:
            scores, responses = paper.release_scores(gate, table, box, published, 0.1)
            matched = paper.match_records(scores, responses, USUAL, float(plan.amount("effect")))
            effect = paper.release_sums(gate, plan, table, matched)
        found.append((float(effect), paper.shrinkage_of(responses).factor))
    return np.array(found)


@pytest.mark.parametrize(("proved", "weights"), [(True, Kind.VECTOR), (False, Kind.CELLS)])
def test_it_is_a_difference_in_means_shrunk_by_randomized_response(proved, weights):
    data, epsilon = people(), 2
    y, t = data["y"], data["t"] == 1
    difference, q = y[t].mean() - y[~t].mean(), t.mean()
    p = np.exp(0.7 * epsilon) / (1 + np.exp(0.7 * epsilon))
    s = p * q + (1 - p) * (1 - q)
    predicted = p * q / s - (1 - p) * q / (1 - s)
    found = draws(proved, epsilon, 60, weights)
    mean, error = found[:, 0].mean(), found[:, 0].std() / 60**0.5
    assert abs(mean - predicted * difference) < 4 * error
    # The unshrunk effect is far outside, so that this test can fail.
    assert abs(mean - difference) > 8 * error
    assert found[:, 1].mean() == pytest.approx(predicted, rel=0.15)


def test_proved_form_is_proved_and_published_one_is_refuted():
    assert ask_for(noise=None).guarantee.proof is Proof.FINITE_SAMPLE
    with pytest.raises(ClaimError, match="CV-C001"):
        cv.published.record_matching(people(), STUDY, epsilon=2)
    accepted = cv.published.record_matching(people(), STUDY, epsilon=2, accept="unproved")
    assert accepted.guarantee.proof is Proof.REFUTED
    assert str(accepted).startswith("*** NO GUARANTEE")
    assert accepted.details["min_epsilon_loss"] >= 2


def test_published_form_loses_more_than_it_claims_where_units_run_out():
    # One in ten treated: equation 12 allows one use a neighbour, and the controls outnumber that by far.
    scores = np.random.default_rng(0).random(200)
    few = Responses(np.arange(200) < 20, 0.99)
    matched = paper.match_records(scores, few, USUAL, 0.2)
    assert matched.limits == (1, 1)
    assert matched.excess > 1.5
    # Where limits leave enough room the published noise is enough.
    roomy = paper.PaperNumbers(h=10.0)
    assert paper.match_records(scores, Responses(np.arange(200) < 100, 0.99), roomy, 0.2).excess <= 1.0


def test_empty_arm_after_randomized_response_is_survived():
    scores = np.arange(10.0)
    for value in (True, False):
        responses = Responses(np.full(10, value), 0.6)
        assert not paper.match_released(scores, responses, 0.1).coefficients.any()
        assert 0 < paper.shrinkage_of(responses).factor < 1
    tiny = {k: v[:6] for k, v in people(seed=3).items()}
    tiny["t"] = np.array([0, 1, 0, 1, 0, 0])
    for seed in range(40):
        result = cv.published.record_matching_proved(tiny, STUDY, epsilon=0.1, noise=SeededNoise(seed))
        assert np.isfinite(result.interval()).all()


def test_questions_it_cannot_answer_are_refused():
    with pytest.raises(ParameterError, match="CV-P242"):
        ask_for(estimand="ATT")
    with pytest.raises(ParameterError, match="CV-P240"):
        ask_for(delta=1e-6)
    with pytest.raises(ParameterError, match="CV-P019"):
        ask_for(settings=cv.settings.Matching())
    bare = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), control=0)
    with pytest.raises(StudyError, match="CV-S051"):
        cv.published.record_matching_proved(people(), bare, epsilon=1)
    with pytest.raises(ParameterError, match=r"cv\.published\.record_matching_proved") as moved:
        cv.ate(people(), STUDY, protects="record", method="matching", epsilon=1)
    assert moved.value.code == "CV-P027"
