"""Matching as published and as proved: noise against what one outcome moves, sums, answers, refusals."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.plain_questions import question
from tests.unit.estimators.linear.matching_data import DATA

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.errors import BudgetError, ClaimError, ParameterError, StudyError
from counterveil.numerics.matching import matching_coefficients
from counterveil.numerics.propensity import fit_propensity, logistic_scores
from counterveil.privacy import Proof
from counterveil.published import matching as paper
from counterveil.published.matching import (
    DEFAULTS,
    SCORE_STEPS,
    CapacityMatching,
    ScoreRange,
    record_matching_plan,
)
from counterveil.published.strata import match_in_order
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.session import Gate, Kind, Responses, SeededNoise


def ask(**more):
    given = {"epsilon": 1, "noise": cv.SeededNoise(1)} | more
    return cv.published.outcome_matching(dict(DATA.frame), DATA.study, **given)


def test_the_published_form_is_proved_where_nobody_runs_out():
    result = ask(noise=None)
    assert result.guarantee.proof is Proof.FINITE_SAMPLE
    assert "suffices" in result.guarantee.remarks[0]
    assert result.uncertainty.noise.name == "laplace_pair"
    k = [result.details[f"max_uses_{arm}"] / 5 for arm in ("treated", "control")]
    scales = sorted(5 * (part + 1) / 1000 for part in k)
    noise = result.uncertainty.noise
    assert [float(noise.narrow), float(noise.scale)] == pytest.approx(scales, rel=1e-8)
    assert cv.results.Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def lopsided():
    """A study in which the smaller arm runs out under a limit of one."""
    rng = np.random.default_rng(1)
    x = rng.random(60)
    t = np.zeros(60, int)
    t[:12] = 1
    return {"t": t, "y": rng.random(60), "x": x}, cv.Study(
        "t", cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 1)}
    )


def test_a_false_claim_needs_acceptance_names_the_true_epsilon_and_charges_it():
    frame, study = lopsided()
    arguments = {"epsilon": 1, "settings": cv.settings.Matching(limit=1, neighbours=3)}
    asked = cv.published.outcome_matching
    with cv.Session(frame, study, budget=cv.Budget(10)) as session:
        with pytest.raises(ClaimError, match="CV-C001"):
            asked(session, **arguments)
        assert session.remaining().epsilon == 10
        result = asked(session, **arguments, accept="unproved")
        assert session.remaining().epsilon == 10 - result.spent.epsilon
    true = result.details["true_epsilon"]
    assert true > 1.5
    assert float(result.spent.epsilon) == pytest.approx(true)
    assert result.guarantee.proof is Proof.REFUTED
    assert str(result).startswith("*** NO GUARANTEE")
    assert f"{true:.4g}" in result.guarantee.remarks[0]
    assert result.guarantee.epsilon == 1
    with cv.Session(frame, study, budget=cv.Budget(1)) as session, pytest.raises(BudgetError):
        asked(session, **arguments, accept="unproved")
    alone = asked(frame, study, **arguments, accept="unproved")
    assert alone.spent == result.spent


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"settings": cv.settings.Matching(limit="best")}, "CV-P202"),
        ({"settings": cv.settings.Matching(limit=None)}, "CV-P202"),
        ({"estimand": "ATT"}, "CV-P203"),
        ({"delta": 1e-6}, "CV-P203"),
    ],
)
def test_the_published_form_refuses_what_it_does_not_have(wrong, code):
    with pytest.raises(ParameterError, match=code):
        ask(**wrong)


TREATED = np.array([True] * 3 + [False] * 4)
SCORE = np.array([0.40, 0.41, 0.9, 0.40, 0.40, 0.41, 0.41])


def published(treated, score, neighbours, k):
    found = matching_coefficients(treated, score, neighbours, k * neighbours, k * neighbours)
    return CapacityMatching(Fraction(1), len(score), (k, k), linear_form(found.coefficients).largest)


def test_the_seven_row_example_loses_half_as_much_again():
    noise = published(TREATED, SCORE, 2, 1)
    assert float(noise.estimate * 7) == pytest.approx(3, rel=1e-8)
    assert noise.scales(Fraction(1)) == (Fraction(2, 7), Fraction(2, 7))
    assert float(noise.loss(Fraction(1))) == pytest.approx(1.5, rel=1e-8)


def test_one_neighbour_keeps_the_claim_while_everyone_is_matched():
    # With one neighbour every match set has one member or none: K_i <= k unless units are left out.
    for score in product((0.0, 1.0, 2.0), repeat=5):
        treated = np.array([True, False, True, False, False])
        matched = matching_coefficients(treated, np.array(score), 1, 2, 2)
        noise = published(treated, np.array(score), 1, 2)
        assert matched.unmatched == 0
        assert noise.loss(Fraction(1)) <= 1


def test_the_loss_is_the_largest_change_over_the_wider_scale():
    for k, (treated, score) in enumerate(
        product(product((False, True), repeat=6), product((0.0, 1.0), repeat=6))
    ):
        if k % 17 or not 0 < sum(treated) < 6:
            continue
        arm, at = np.array(treated), np.array(score)
        noise = published(arm, at, 2, 1)
        c = matching_coefficients(arm, at, 2, 2, 2).coefficients
        largest = max(abs(c @ y) for y in np.eye(6))
        assert float(noise.loss(Fraction(2))) == pytest.approx(2 * largest * 6 / 2, rel=1e-7)


def by_definition(stratum, treated):
    partner = np.full(len(stratum), -1)
    for x in set(stratum.tolist()):
        arms = [[i for i in range(len(stratum)) if stratum[i] == x and treated[i] == arm] for arm in (0, 1)]
        for arm in (0, 1):
            for j, i in enumerate(arms[arm]):
                if arms[1 - arm]:
                    partner[i] = arms[1 - arm][j % len(arms[1 - arm])]
    return partner


@pytest.mark.parametrize("seed", range(40))
def test_partners_and_uses(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    stratum, treated = rng.integers(0, 4, n), rng.random(n) < rng.random()
    partner, uses = match_in_order(stratum * 7, treated)
    expected = by_definition(stratum, treated)
    assert (partner == expected).all()
    assert (uses == [np.sum(expected == i) for i in range(n)]).all()


STUDY = cv.Study(
    treatment=cv.Treatment("t", control=0),
    outcome=cv.Outcome("y", (0, 1)),
    covariates={"a": cv.Range(0, 1), "b": cv.Binary(), "c": cv.Categories(["p", "q", "r"])},
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
    asked = question("record", "published.record_matching_proved", epsilon=epsilon, mechanism="laplace")
    plan = record_matching_plan(asked, weights, "laplace")
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
            matched = paper.match_records(scores, responses, DEFAULTS, float(plan.amount("effect")))
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
    matched = paper.match_records(scores, few, DEFAULTS, 0.2)
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
    bare = cv.Study(treatment=cv.Treatment("t", control=0), outcome=cv.Outcome("y", (0, 1)))
    with pytest.raises(StudyError, match="CV-S051"):
        cv.published.record_matching_proved(people(), bare, epsilon=1)
    with pytest.raises(ParameterError, match=r"cv\.published\.record_matching_proved") as moved:
        cv.ate(people(), STUDY, protects="record", method="matching", epsilon=1)
    assert moved.value.code == "CV-P027"


SCORES_STUDY = STUDY._changed(covariates=dict(STUDY.covariates) | {"a": cv.Range(-3, 5)})


def corners():
    rows = list(product((-3.0, 5.0), (0, 1), "pqr"))
    a, b, c = zip(*rows, strict=True)
    t = [0, 1] * (len(rows) // 2)
    return Table.attach(
        {"a": list(a), "b": list(b), "c": list(c), "t": t, "y": [0.0] * len(rows)}, SCORES_STUDY
    )


def test_scores_of_all_corners_fill_the_range_and_never_leave_it():
    table, features = corners(), UnitFeatures.of(SCORES_STUDY)
    z = features.values(table)
    assert z.shape == (12, features.columns) == (12, 5)
    assert float((z**2).sum(axis=1).max()) <= features.squared_max_norm
    rng = np.random.default_rng(0)
    for size in (0.0, 0.01, 1.0, 30.0, 1000.0):
        for _ in range(20):
            weights = rng.normal(size=6) * size
            low, high = features.index_range(weights[:-1])
            within = ScoreRange.of_logits(low + weights[-1], high + weights[-1])
            steps = np.floor(logistic_scores(z, weights) * SCORE_STEPS)
            assert steps.min() >= within.low
            assert steps.max() <= within.high
            # Not wider than what the corners show, but for the margin of a step or two.
            assert within.high - within.low <= steps.max() - steps.min() + 5


def test_width_is_never_zero():
    assert ScoreRange.of_logits(0.0, 0.0).width > 0
    assert ScoreRange.of_logits(-1e6, -1e6).width > 0


def test_features_lie_in_the_unit_box_with_the_middle_added():
    features = UnitFeatures.of(SCORES_STUDY)
    box = features.values(corners()) + features.middle
    assert box.min() == 0
    assert box.max() == 1


def test_matched_sum_moves_by_the_claim_at_most_and_reaches_it():
    rng = np.random.default_rng(1)
    for _ in range(30):
        treated = np.array([True, False, *(rng.random(4) < 0.5)])
        form = linear_form(matching_coefficients(treated, rng.random(6), 2, 2, 4).coefficients)
        claim = LinearEstimate(Fraction(2), form.largest, form.squares, Fraction(0))
        worst = Fraction(0)
        for place, low, high in product(range(6), (0, 1, 2), (0, 1, 2)):
            y = rng.integers(0, 3, 6)
            y[place] = low
            before = form.total(y)
            y[place] = high
            worst = max(worst, abs(form.total(y) - before))
        assert worst == claim.estimate
        for y in ((0, 2) * 3, (2, 2, 0, 0, 2, 0)):
            centred = np.array(y) - 1
            assert form.total(centred) ** 2 <= claim.variance_cap * 6
