"""People who do not exist have what was supposed of them."""

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import Table
from counterveil.privacy import Estimand
from counterveil.questions.plan import Assumptions, simulate

COVARIATES = {"age": cv.Range(18, 90), "sex": cv.Binary("f", "m"), "site": cv.Categories(["a", "b", "c"])}


def study(**changes):
    facts = {"treatment": "t", "outcome": "y", "outcome_range": (0, 10), "covariates": COVARIATES}
    return study_of(**facts | changes)


def people(declared, rows=40_000, seed=1, **assumed):
    supposed = Assumptions.of(declared, **assumed)
    return simulate(declared, rows, supposed, np.random.default_rng(seed))


def test_outcomes_have_the_mean_the_spread_the_effect_and_the_part_explained():
    found = people(
        study(randomised=True), mean=4, sd=1, effect=0.5, explained=0.4, share=0.3, correlation=0.0
    )
    assert found.treated.mean() == pytest.approx(0.3)
    without = found.outcome - found.gain * found.treated
    assert without.mean() == pytest.approx(4, abs=0.02)
    assert without.std() == pytest.approx(1, abs=0.02)
    assert found.effect(Estimand.ATE) == pytest.approx(0.5, abs=1e-3)
    fitted = np.linalg.lstsq(np.column_stack([np.ones(40_000), found.columns]), without, rcond=None)[0]
    explained = np.var(found.columns @ fitted[1:]) / without.var()
    assert explained == pytest.approx(0.4, abs=0.02)


def test_outcomes_that_hardly_vary_are_one_value():
    for sd in (1e-12, 1e-8):
        assert people(study(), rows=300, mean=3, sd=sd, effect=0.0).outcome == pytest.approx(3)


def test_confounding_moves_treatment_and_biases_the_difference_in_means():
    declared = study()
    for strength, low, high in ((0.0, -0.06, 0.06), (1.0, 0.3, 2.0)):
        found = people(declared, mean=5, sd=1, explained=0.5, confounding=strength, share=0.4)
        naive = found.outcome[found.treated].mean() - found.outcome[~found.treated].mean()
        assert low < naive < high
        assert found.treated.mean() == pytest.approx(0.4, abs=0.01)


def test_effects_on_those_treated_and_on_those_not_differ_where_effects_do():
    found = people(
        study(outcome_range=(0, 1)), mean=0.1, effect=0.3, explained=0.6, confounding=1.5, binary=True
    )
    treated, others = found.effect(Estimand.ATT), found.effect(Estimand.ATC)
    assert treated > others + 0.05
    share = found.treated.mean()
    assert share * treated + (1 - share) * others == pytest.approx(found.effect(Estimand.ATE))


@pytest.mark.parametrize("labels", [{"treated": "new", "control": "old"}, {"treated": "yes"}, {}])
def test_people_fit_the_study_that_they_were_made_from(labels):
    declared = study(**labels)
    found = people(declared, rows=300)
    table = Table.attach(found.frame, declared)
    assert table.rows == 300
    assert set(found.frame) == set(declared.columns)
    low, high = 18, 90
    assert low <= found.frame["age"].min() < found.frame["age"].max() <= high


@pytest.mark.parametrize(
    ("declared", "assumed"),
    [
        (study(), {"mean": 11}),
        (study(), {"mean": "3"}),
        (study(), {"mean": float("nan")}),
        (study(), {"sd": 0}),
        (study(), {"sd": 6}),
        (study(), {"mean": 9, "effect": 2}),
        (study(), {"share": 1}),
        (study(), {"explained": 1.1}),
        (study(covariates=None), {"explained": 0.1}),
        (study(randomised=True), {"confounding": 0.1}),
        (study(covariates=None), {"confounding": 0.1}),
        (study(), {"confounding": -1}),
    ],
)
def test_what_cannot_be_supposed_is_refused(declared, assumed):
    with pytest.raises(cv.CounterveilError, match="CV-P700"):
        Assumptions.of(declared, **assumed)


def test_covariates_have_the_summaries_and_the_correlations_that_are_public():
    declared = study(covariates=COVARIATES | {"visits": cv.Range(0, 50)})
    summaries = {
        "age": (60, 8),
        "visits": (3, 4),
        "sex": {"f": 0.7, "m": 0.3},
        "site": {"a": 0.1, "b": 0.2, "c": 0.7},
    }
    found = people(declared, covariates=summaries, correlation=0.6)
    age, visits = found.frame["age"], found.frame["visits"]
    assert (age.mean(), age.std()) == pytest.approx((60, 8), rel=0.02)
    assert (visits.mean(), visits.std()) == pytest.approx((3, 4), rel=0.05)
    assert (found.frame["sex"] == "f").mean() == pytest.approx(0.7, abs=0.01)
    assert (found.frame["site"] == "c").mean() == pytest.approx(0.7, abs=0.01)
    matrix = np.eye(4)
    matrix[0, 3] = matrix[3, 0] = -0.5
    apart = people(declared, covariates=summaries, correlation=matrix)
    assert np.corrcoef(apart.frame["age"], apart.frame["visits"])[0, 1] == pytest.approx(-0.42, abs=0.1)
    assert abs(np.corrcoef(apart.frame["age"], apart.frame["sex"] == "f")[0, 1]) < 0.03
    assert np.corrcoef(found.frame["age"], found.frame["sex"] == "f")[0, 1] > 0.3


@pytest.mark.parametrize(
    "assumed",
    [
        {"correlation": 1.5},
        {"correlation": [[1, 0], [0, 1]]},
        {"correlation": "high"},
        {"covariates": {"height": (1, 2)}},
        {"covariates": {"age": 40}},
        {"covariates": {"age": (40, -1)}},
        {"covariates": {"sex": {"f": 0.7}}},
        {"covariates": {"sex": {"f": 0.7, "m": 0.7}}},
    ],
)
def test_summaries_that_are_none_are_refused(assumed):
    with pytest.raises(cv.CounterveilError, match="CV-P700"):
        Assumptions.of(study(), **assumed)
