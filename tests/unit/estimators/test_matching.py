"""Matching where only outcomes are private."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.datasets import synth
from counterveil.errors import BudgetError, ClaimError, ParameterError, StudyError
from counterveil.estimators.ate import matching_spread
from counterveil.estimators.ate.covariates import Features, covariate_features
from counterveil.estimators.ate.matching_design import (
    Scored,
    _ladder,
    chosen_match,
    expected_errors,
    match,
    published_limits,
    scored,
)
from counterveil.estimators.ate.matching_spread import arm_spread, left_by_matches
from counterveil.estimators.ate.weighting_spread import chosen_spread
from counterveil.estimators.question import Question
from counterveil.privacy import Budget, Estimand, Proof

LARGE = 100_000  # a budget at which the noise is far below the tolerances here


@pytest.fixture(scope="module")
def study_data():
    return synth(3)


def ask(dataset, **more):
    arguments = {"protects": "outcome", "epsilon": 1, "method": "matching", "noise": cv.SeededNoise(1)}
    return cv.ate(dict(dataset.frame), dataset.study, **(arguments | more))


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
def test_unlimited_matching_agrees_with_a_full_table_of_distances(study_data, estimand, neighbours):
    settings = cv.MatchingSettings(neighbours=neighbours, limit=None)
    result = ask(study_data, epsilon=LARGE, estimand=estimand, settings=settings)
    table = Table.attach(dict(study_data.frame), study_data.study)
    score = scored(table, None).score
    expected = naive_matching(score, table.treated, study_data.frame["y"], neighbours, estimand)
    assert result.estimate == pytest.approx(expected, abs=1e-5)
    assert result.details["share of matches at the limit"] == 0
    assert result.estimand.value == estimand


def test_scores_are_those_of_a_plain_logistic_fit(study_data):
    table = Table.attach(dict(study_data.frame), study_data.study)
    design = scored(table, 1e-6)
    X = np.column_stack([design.features.values, np.ones(table.rows)])
    # Where the penalty vanishes the likelihood's gradient does.
    assert np.abs((design.score - table.treated) @ X).max() / table.rows < 1e-5


@pytest.mark.parametrize(
    "budget", [{"epsilon": 1}, {"epsilon": 1, "law": "laplace"}, {"epsilon": 1, "delta": 1e-6}]
)
def test_the_estimate_is_off_by_the_noise_it_reports(study_data, budget):
    exact = ask(study_data, epsilon=LARGE, settings=cv.MatchingSettings(limit=4))
    noisy = [
        ask(study_data, settings=cv.MatchingSettings(limit=4), noise=cv.SeededNoise(seed), **budget)
        for seed in range(20)
    ]
    errors = np.array([result.estimate - exact.estimate for result in noisy])
    sd = noisy[0].std_error.noise
    assert np.sqrt((errors**2).mean()) == pytest.approx(sd, rel=0.7)
    assert sd > 0.001


def test_the_noise_is_that_of_the_largest_coefficient(study_data):
    result = ask(study_data)
    reach = result.details["largest coefficient times rows"]
    assert float(result.uncertainty.noise.sensitivity) == pytest.approx(5 * reach / 1000, rel=1e-6)
    assert result.uncertainty.noise.name == "staircase"


def test_a_limit_keeps_coefficients_small(study_data):
    reach = {
        limit: ask(study_data, settings=cv.MatchingSettings(limit=limit)).details[
            "largest coefficient times rows"
        ]
        for limit in (1, 3, 10, None)
    }
    assert reach[1] <= reach[3] <= 4
    assert reach[3] < reach[10] <= 11
    assert reach[10] < reach[None]


def test_the_limits_follow_the_budget(study_data):
    tight, loose = (
        ask(study_data, epsilon=epsilon, settings=cv.MatchingSettings(limit=limit)).details
        for limit, epsilon in (("best", 0.25), ("best", 8))
    )
    assert tight["largest coefficient times rows"] < loose["largest coefficient times rows"]
    adaptive = [
        ask(study_data, epsilon=epsilon, settings=cv.MatchingSettings(limit="adaptive")).details
        for epsilon in (0.25, 8)
    ]
    assert adaptive[0]["most uses of a treated unit"] < adaptive[1]["most uses of a treated unit"]
    assert ask(study_data).details["limit"] == "best"


def test_the_best_limit_has_the_least_expected_error_of_those_tried(study_data):
    table = Table.attach(dict(study_data.frame), study_data.study)
    design = scored(table, None)
    for noise_variance in (0.0, 1.0, 100.0):
        best = chosen_match(design, cv.MatchingSettings(), "ATE", 1.0, noise_variance)
        assert best.matching.unmatched == 0
        assert best.limits[0] == best.limits[1]
    free = match(design, 5, (None, None), "ATE")
    assert best.matching.largest < free.matching.largest / 3


@pytest.mark.parametrize("noise_variance", [1e-4, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
def test_limits_that_are_not_tried_could_not_have_been_the_best(study_data, noise_variance, estimand):
    design = scored(Table.attach(dict(study_data.frame), study_data.study), None)
    found = chosen_match(design, cv.MatchingSettings(), estimand, 1.0, noise_variance)
    limits = _ladder(design, cv.MatchingSettings(), estimand)
    tried = [match(design, 5, (limit, limit), estimand) for limit in limits]
    errors = expected_errors(design, estimand, noise_variance)(tried)
    assert found.limits == tried[int(np.argmin(errors))].limits


def test_the_adaptive_limit_serves_everyone_in_lopsided_studies():
    rng = np.random.default_rng(0)
    x = rng.random(400)
    frame = {"t": (rng.random(400) < 0.05 + 0.1 * x).astype(int), "y": rng.random(400), "x": x}
    study = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)})
    settings = cv.MatchingSettings(limit="adaptive", c=1e-6)
    result = cv.ate(frame, study, protects="outcome", epsilon=1, method="matching", settings=settings)
    assert result.details["units without a match"] == 0
    literal = cv.ate(
        frame,
        study,
        protects="outcome",
        epsilon=1,
        method="matching",
        settings=cv.MatchingSettings(limit=1),
    )
    assert literal.details["units without a match"] > 0
    assert "found no match" in str(literal)


def test_the_truth_lies_in_the_interval_and_matching_is_nearer_than_the_plain_difference():
    inside, ours, plain = 0, [], []
    for seed in range(20, 30):
        dataset, noise = synth(seed), cv.SeededNoise(seed)
        result = ask(dataset, epsilon=20, noise=noise)
        low, high = result.interval()
        inside += low <= 0.5 <= high
        ours.append(result.estimate - 0.5)
        plain.append(ask(dataset, epsilon=20, method="difference_in_means", noise=noise).estimate - 0.5)
    assert inside >= 9
    assert np.abs(ours).mean() < np.abs(plain).mean() / 3


def test_real_noise_has_a_proof(study_data):
    result = ask(study_data, noise=None)
    assert result.guarantee.proof is Proof.FINITE_SAMPLE
    assert result.guarantee.pages[0] == "sensitivity/linear_estimate.proof.md"
    assert result.spent == cv.Budget(1)


def test_result_fields_survive_json(study_data):
    result = ask(study_data)
    copy = cv.Result.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert copy == result
    assert {"balance", "overlap", "effective_size"} <= result.diagnostics.keys()
    assert len(result.diagnostics["balance"]) == 20
    assert sum(result.diagnostics["overlap"]["treated"]) == result.details["treated"]
    assert sum(result.diagnostics["overlap"]["control"]) == result.details["control"]
    assert "x1" not in str(result).split("Public")[0]  # the summary stays short
    assert any("CONFOUNDING" in line for line in result.not_covered)


def test_balance_improves(study_data):
    rows = ask(study_data, epsilon=4).diagnostics["balance"]
    before, after = (np.abs([row[f"difference_{when}"] for row in rows]) for when in ("before", "after"))
    assert after.mean() < before.mean() / 2
    assert (after > 0.15).sum() == 0


def test_several_kinds_of_covariates_become_features():
    frame = {
        "t": [1, 0, 1, 0, 1, 0],
        "y": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "age": [20, 30, 40, 50, 60, 70],
        "smoker": [1, 0, 0, 0, 1, 1],
        "region": ["n", "s", "n", "s", "s", "s"],
        "site": ["a"] * 6,
    }
    domains = {
        "age": cv.Range(0, 100),
        "smoker": cv.Binary(),
        "region": cv.Categories(["n", "s"]),
        "site": cv.Categories(["a", "b"]),
    }
    table = Table.attach(frame, cv.Study("t", "y", (0, 1), domains))
    features = covariate_features(table)
    assert features.names == ("age", "smoker", "region=n", "region=s", "site=a", "site=b")
    np.testing.assert_allclose(features.values.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.abs(features.values).max(axis=0), [1, 1, 1, 1, 0, 0])
    assert np.corrcoef(features.values[:, 0], frame["age"])[0, 1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"neighbours": 0}, "neighbours"),
        ({"neighbours": 2.5}, "neighbours"),
        ({"limit": 0}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": True}, "limit"),
        ({"penalty": 0}, "penalty"),
        ({"c": float("nan")}, "c"),
        ({"spread": "pair"}, "spread"),
    ],
)
def test_settings_out_of_range_are_refused(settings, name):
    with pytest.raises(ParameterError, match=f"setting {name} ") as refused:
        cv.MatchingSettings(**settings)
    assert refused.value.code == "CV-P200"


def test_a_study_without_covariates_is_refused_before_anything_is_spent():
    frame = {"t": [0, 1, 0, 1], "y": [0.0, 1.0, 0.5, 0.5]}
    study = cv.Study("t", "y", (0, 1))
    with cv.Curator(frame, study, budget=cv.Budget(1)) as curator:
        for variant in (None, "paper"):
            with pytest.raises(StudyError) as refused:
                curator.ate(protects="outcome", epsilon=1, method="matching", variant=variant)
            assert refused.value.code == "CV-S051"
        assert curator.remaining().epsilon == 1


# What the variance is estimated from.


SPREAD_PAGE = "kernels/residual_variance.proof.md"
QUESTION = Question.ask(
    protects="outcome", epsilon=1, delta=0, estimand="ATE", method="matching", level=0.95, law=None,
    request_id=None,
)  # fmt: skip


def test_lines_take_out_of_the_variance_what_matches_balance_and_pairs_do_not(study_data):
    by_arm, by_row = (
        ask(study_data, epsilon=LARGE, settings=cv.MatchingSettings(limit=None, spread=spread))
        for spread in ("arm", "row")
    )
    assert by_arm.std_error.sampling < 0.8 * by_row.std_error.sampling
    assert by_arm.estimate == pytest.approx(by_row.estimate, abs=1e-5)
    assert SPREAD_PAGE in by_arm.guarantee.pages
    assert SPREAD_PAGE not in by_row.guarantee.pages
    uneven = [any("differ within an arm" in text for text in one.not_covered) for one in (by_arm, by_row)]
    assert uneven == [True, False]


@pytest.mark.parametrize("spread", ["arm", "row"])
def test_the_variance_of_either_kind_is_that_of_outcomes_that_are_noise_alone(study_data, spread):
    rng = np.random.default_rng(4)
    frame = dict(study_data.frame) | {"y": rng.integers(0, 2, len(study_data.frame["y"])) * 5.0}
    result = cv.ate(
        frame,
        study_data.study,
        protects="outcome",
        epsilon=LARGE,
        method="matching",
        settings=cv.MatchingSettings(limit=8, spread=spread),
        noise=cv.SeededNoise(1),
    )
    table = Table.attach(frame, study_data.study)
    design = scored(table, None)
    coefficients = chosen_match(design, cv.MatchingSettings(limit=8), "ATE", LARGE, 0.0).matching.coefficients
    expected = 2.5 * float(np.sqrt(coefficients @ coefficients))
    assert result.std_error.sampling == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("estimand", list(Estimand))
@pytest.mark.parametrize("epsilon", [1, 4])
def test_the_variance_keeps_room_for_the_imbalance_that_matches_leave(study_data, estimand, epsilon):
    question = replace(QUESTION, budget=Budget(epsilon), estimand=estimand)
    table = Table.attach(dict(study_data.frame), study_data.study)
    design = scored(table, None)
    coefficients = chosen_match(
        design, cv.MatchingSettings(), estimand.value, epsilon, 1.0
    ).matching.coefficients
    left = left_by_matches(table, design, coefficients, estimand)
    form = arm_spread(table, design, cv.MatchingSettings(), coefficients, question)
    without = sum(
        float(coefficients[arm] @ coefficients[arm]) * float(np.var(left.features[arm], axis=0).sum())
        for arm in (design.treated, ~design.treated)
    )
    assert form.loading >= min(left.imbalance**2, without)


def test_parts_of_an_arm_follow_spreads_that_go_with_the_coefficients(study_data):
    table = Table.attach(dict(study_data.frame), study_data.study)
    design = scored(table, None)
    found = chosen_match(design, cv.MatchingSettings(), "ATE", 1, 1.0).matching.coefficients
    left = left_by_matches(table, design, found, Estimand.ATE)
    part = np.abs(found) / np.abs(found).max()
    sign = np.random.default_rng(2).choice([-1, 1], table.rows)
    outcome = np.round((0.5 + 0.5 * part * sign) * OUTCOME_STEPS).astype(np.int64)
    true = float(found**2 @ (part / 2) ** 2)
    whole, cut = (
        float(chosen_spread(left, design.treated, QUESTION, parts).value(outcome, 24)) for parts in (1, 4)
    )
    assert whole < 0.75 * true
    assert 0.9 * true < cut < 1.1 * true


def test_every_row_is_in_one_part_and_larger_coefficients_are_in_later_ones(study_data):
    table = Table.attach(dict(study_data.frame), study_data.study)
    design = scored(table, None)
    found = chosen_match(design, cv.MatchingSettings(), "ATE", 1, 1.0).matching.coefficients
    form = arm_spread(table, design, cv.MatchingSettings(), found, QUESTION)
    rows = [part.fit.rows if hasattr(part, "fit") else part.rows for part in form.arms]
    assert len(rows) == 8
    assert sorted(np.concatenate(rows)) == list(range(table.rows))
    for inside in (rows[:4], rows[4:]):
        sizes = [np.abs(found[part]) for part in inside]
        assert all(a.max() <= b.min() for a, b in pairwise(sizes))
        assert len(inside[0]) == pytest.approx(sum(map(len, inside)) / 2, abs=1)


def test_wide_tables_and_tables_without_differences_use_pairs(study_data, monkeypatch):
    alike = {name: np.zeros_like(column) for name, column in study_data.frame.items() if name.startswith("x")}
    nothing = cv.ate(
        dict(study_data.frame) | alike,
        study_data.study,
        protects="outcome",
        epsilon=1,
        method="matching",
        settings=cv.MatchingSettings(spread="arm"),
        noise=cv.SeededNoise(1),
    )
    assert SPREAD_PAGE not in nothing.guarantee.pages
    assert SPREAD_PAGE in ask(study_data).guarantee.pages
    monkeypatch.setattr(matching_spread, "_MOST_WORK", len(study_data.frame["y"]) * 20**2 - 1)
    assert SPREAD_PAGE not in ask(study_data).guarantee.pages
    assert SPREAD_PAGE in ask(study_data, settings=cv.MatchingSettings(spread="arm")).guarantee.pages


# The published form.


def test_the_published_form_is_proved_where_nobody_runs_out(study_data):
    result = ask(study_data, variant="paper", noise=None)
    assert result.guarantee.proof is Proof.FINITE_SAMPLE
    assert "suffices" in result.guarantee.remarks[0]
    assert result.uncertainty.noise.name == "laplace_pair"
    k = [result.details[f"most uses of a {arm} unit"] / 5 for arm in ("treated", "control")]
    scales = sorted(5 * (part + 1) / 1000 for part in k)
    noise = result.uncertainty.noise
    assert [float(noise.narrow), float(noise.scale)] == pytest.approx(scales, rel=1e-8)
    assert cv.Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_one_draw_is_narrower_than_the_published_two(study_data):
    for epsilon in (0.5, 4):
        ours, published = (ask(study_data, epsilon=epsilon, variant=v) for v in (None, "paper"))
        share = 1 - ours.details["share of budget for the variance"]
        assert ours.std_error.noise * share < 0.75 * published.std_error.noise
        low, high = ours.interval()
        assert high - low < np.diff(published.interval())[0]


def lopsided():
    """A study in which the smaller arm runs out under a limit of one."""
    rng = np.random.default_rng(1)
    x = rng.random(60)
    t = np.zeros(60, int)
    t[:12] = 1
    return {"t": t, "y": rng.random(60), "x": x}, cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)})


def test_a_false_claim_needs_acceptance_names_the_true_epsilon_and_charges_it():
    frame, study = lopsided()
    arguments = {
        "protects": "outcome",
        "epsilon": 1,
        "method": "matching",
        "variant": "paper",
        "settings": cv.MatchingSettings(limit=1, neighbours=3),
    }
    with cv.Curator(frame, study, budget=cv.Budget(10)) as curator:
        with pytest.raises(ClaimError) as refused:
            curator.ate(**arguments)
        assert refused.value.code == "CV-C001"
        assert curator.remaining().epsilon == 10
        result = curator.ate(**arguments, accept="unproved")
        assert curator.remaining().epsilon == 10 - result.spent.epsilon
    true = result.details["true epsilon"]
    assert true > 1.5
    assert float(result.spent.epsilon) == pytest.approx(true)
    assert result.guarantee.proof is Proof.REFUTED
    assert str(result).startswith("*** NO GUARANTEE")
    assert f"{true:.4g}" in result.guarantee.remarks[0]
    assert result.guarantee.epsilon == 1
    with cv.Curator(frame, study, budget=cv.Budget(1)) as curator, pytest.raises(BudgetError):
        curator.ate(**arguments, accept="unproved")
    alone = cv.ate(frame, study, **arguments, accept="unproved")
    assert alone.spent == result.spent


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"settings": cv.MatchingSettings(limit="best")}, "CV-P202"),
        ({"settings": cv.MatchingSettings(limit=None)}, "CV-P202"),
        ({"estimand": "ATT"}, "CV-P203"),
        ({"delta": 1e-6}, "CV-P203"),
    ],
)
def test_the_published_form_refuses_what_it_does_not_have(study_data, wrong, code):
    with pytest.raises(ParameterError) as refused:
        ask(study_data, variant="paper", **wrong)
    assert refused.value.code == code


def test_the_published_limits_of_the_seven_row_example():
    treated = np.array([True] * 3 + [False] * 4)
    score = np.array([0.40, 0.41, 0.9, 0.40, 0.40, 0.41, 0.41])
    design = Scored(Features(("x",), score[:, None], (cv.Range(0, 1),)), treated, score)
    settings = cv.MatchingSettings(neighbours=2, limit="adaptive")
    assert published_limits(design, settings, 1.0, feasible=False) == (2, 2)
    matched = match(design, 2, (2, 2), "ATE")
    assert Fraction(matched.matching.largest * 7).limit_denominator(1000) == 3
