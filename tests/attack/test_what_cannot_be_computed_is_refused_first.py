"""Budgets, ranges and cuts that leave nothing, or pass double precision, are refused before the charge, or said."""

import json
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.session import SeededNoise

TRIAL = {"randomised": True, "treated_share": "1/2"}


def session(rows=20, outcome_range=(0, 1), covariates=("a",), **design):
    draw = np.random.default_rng(0)
    data = {name: draw.random(rows) for name in covariates}
    data |= {"t": np.arange(rows) % 2, "y": draw.random(rows)}
    domains = dict.fromkeys(covariates, cv.Range(0, 1))
    study = study_of("t", "y", outcome_range, domains, control=0, **(design or TRIAL))
    return cv.Session(data, study, budget=cv.Budget("1e9", "1e-2"), noise=SeededNoise(1))


def refused(held, code, **asked):
    with pytest.raises(CounterveilError, match=code):
        held.ate(**({"protects": "record", "epsilon": 1} | asked))
    assert held.account().requests == 0


@pytest.mark.parametrize(
    "budget",
    [{"epsilon": "1e-90"}, {"epsilon": "1e-13", "delta": "1e-6"}, {"epsilon": "1e13"}],
)
@pytest.mark.parametrize("protects", ["outcome", "record"])
def test_budgets_that_are_not_doubles(budget, protects):
    with session() as held:
        refused(held, "CV-P641", protects=protects, **budget)


@pytest.mark.parametrize("bounds", [("-1e300", "1e300"), (0, "1e-190"), (0, "1e120")])
def test_ranges_whose_squares_are_not_doubles(bounds):
    with session(outcome_range=bounds) as held:
        refused(held, "CV-P642", method="trial")


@pytest.mark.parametrize("rows", [4, 5, 6, 7])
def test_fewer_than_eight_rows_with_a_declared_share(rows):
    with session(rows) as held:
        found = held.policy_value(policy=cv.Policy.where(a=(0, 0.5)), protects="record", epsilon=1)
        assert np.isfinite(found.estimate)


ROWS = 200
STUDY = cv.Study(
    treatment=cv.Treatment("t", control=0),
    outcome=cv.Outcome("y", (0, 1)),
    covariates={"b": cv.Binary()},
    assignment=cv.Trial(),
)


def people():
    draw = np.random.default_rng(0)
    return {"b": draw.integers(0, 2, ROWS), "t": np.arange(ROWS) % 2, "y": draw.random(ROWS)}


@pytest.mark.parametrize("epsilon", ["1e-12"])
@pytest.mark.parametrize(
    ("method", "protects"),
    [("difference_in_means", "outcome"), ("stratified", "record"), ("trial", "record")],
)
def test_noise_that_dwarfs_everything_gets_its_interval(method, protects, epsilon):
    found = cv.ate(people(), STUDY, protects=protects, method=method, epsilon=epsilon, noise=SeededNoise(2))
    half = found.uncertainty.half_width(0.95)
    # No noise of this epsilon is shorter, whatever the method: a mean of the rows moves by at least 1/n.
    assert half > 0.5 / (ROWS * float(epsilon))
    low, high = found.interval()
    assert low < high or abs(found.estimate) > half


def test_noise_with_few_rows_and_many_steps_beside_the_sampling_error():
    found = cv.ate(
        people(), STUDY, protects="record", method="stratified", epsilon="1e-12", noise=SeededNoise(2)
    )
    assert found.p_value > 0.01
    assert str(found)


def test_twenty_bought_cuts_are_refused_and_nineteen_leave_something():
    for count in (20, 19):
        names = tuple(f"a{k}" for k in range(count))
        asked = {"method": "stratified", "settings": cv.settings.Stratified(cuts=dict.fromkeys(names, 2))}
        with session(100, covariates=names, randomised=None) as held:
            if count == 20:
                refused(held, "CV-P640", **asked)
            else:
                assert np.isfinite(held.ate(protects="record", epsilon=1, **asked).estimate)


DELTA_ROWS = 500
DELTA_STUDY = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (0, 1)),
    {"a": cv.Range(0, 1).cut("1/2")},
    assignment=cv.Trial(share="1/2"),
)


def delta_people(rows=DELTA_ROWS):
    place = np.arange(rows)
    return {"t": place % 2, "y": place % 7 / 7, "a": place % 10 / 10, "e": place % 2}


QUESTIONS = [
    ("ate", {"protects": "record"}),
    ("ate", {"protects": "outcome", "method": "difference_in_means", "mechanism": "gaussian"}),
    ("ate", {"protects": "record", "method": "stratified", "mechanism": "gaussian"}),
    ("groups", {"protects": "record", "by": "a"}),
    ("moments", {"protects": "record"}),
    ("moments", {"protects": "outcome"}),
    ("policy_value", {"protects": "record", "policy": cv.Policy.where(a=(0, 0.5))}),
    ("overlap", {"protects": "record"}),
]


@pytest.mark.parametrize(("question", "asked"), QUESTIONS)
def test_a_delta_from_one_over_n_on_is_refused_first(question, asked):
    for delta in ("0.2", f"1/{DELTA_ROWS}"):
        with cv.Session(delta_people(), DELTA_STUDY, budget=cv.Budget(5, "1/2")) as session:
            with pytest.raises(CounterveilError, match="CV-P006"):
                getattr(session, question)(epsilon=1, delta=delta, **asked)
            left = session.remaining(asked["protects"])
            assert (left.epsilon, left.delta) == (5, Fraction(1, 2))


def test_below_it_questions_are_answered():
    asked = {"protects": "record", "epsilon": 1, "delta": f"1/{DELTA_ROWS + 1}"}
    assert cv.ate(delta_people(), DELTA_STUDY, **asked).spent.delta * (DELTA_ROWS + 1) == 1


def test_people_count_and_not_their_rows(tmp_path):
    """Of people with several rows, and of rows that are counted in an engine."""
    rows = {name: np.repeat(values, 3) for name, values in delta_people(40).items()}
    rows["id"] = np.repeat(np.arange(40), 3)
    asked = {"protects": "record", "epsilon": 1, "delta": "1/100", "method": "trial"}
    by_person = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 1)),
        assignment=cv.Trial(share="1/2"),
        people="id",
    )
    assert cv.ate(rows, by_person, **asked)
    with pytest.raises(CounterveilError, match="CV-P006"):
        cv.ate(rows, DELTA_STUDY, **asked)
    stratified = {"protects": "record", "epsilon": 1, "method": "stratified", "mechanism": "gaussian"}
    relation = duckdb.from_df(pd.DataFrame(delta_people()))
    with pytest.raises(CounterveilError, match="CV-P006"):
        cv.ate(relation, DELTA_STUDY, delta=f"1/{DELTA_ROWS}", **stratified)


def test_plans_and_looks_are_refused_likewise():
    for rows in (DELTA_ROWS, [100, DELTA_ROWS]):
        with pytest.raises(CounterveilError, match="CV-P006"):
            cv.plan(DELTA_STUDY, rows=rows, protects="record", epsilon=1, delta=f"1/{DELTA_ROWS}", draws=2)
    with pytest.raises(CounterveilError, match="CV-P006"):
        cv.interim.planned("y", [100, DELTA_ROWS], epsilon=2, delta=f"1/{DELTA_ROWS}")
    assert cv.interim.planned("y", [100, DELTA_ROWS], epsilon=2, delta=f"1/{DELTA_ROWS + 1}")


def test_a_large_epsilon_is_said_in_words():
    usual, large, endless = (
        cv.ate(delta_people(), DELTA_STUDY, protects="record", epsilon=epsilon)
        for epsilon in (10, "10.5", 5000)
    )
    assert usual.guarantee.odds_factor is None
    assert large.guarantee.odds_factor == pytest.approx(np.exp(10.5))
    for text in (str(large), large.full(), large.guarantee.sentence()):
        assert (
            " ".join(text.split()).count("odds about one person may change by a factor of up to 36,316") == 1
        )
    assert "odds_factor" not in usual.to_dict()["guarantee"]
    assert large.to_dict()["guarantee"]["odds_factor"] == large.guarantee.odds_factor
    assert type(large).from_dict(large.to_dict()).guarantee == large.guarantee
    assert "1e+304" in endless.guarantee.sentence()
    again = cv.ate(delta_people(), DELTA_STUDY, protects="record", epsilon=5000)
    sites = [json.loads(json.dumps(one.to_dict())) for one in (endless, again)]
    # It follows from epsilon, whatever a document shows.
    for shown in (endless.guarantee.odds_factor, "many", 1.0):
        sites[0]["guarantee"]["odds_factor"] = shown
        assert cv.pool(sites).guarantee.odds_factor == endless.guarantee.odds_factor
    assert replace(large.guarantee, epsilon=usual.guarantee.epsilon).large == ""


def test_estimated_labels_are_refused_likewise():
    frame = pd.DataFrame({"arm": np.arange(DELTA_ROWS) % 2, "y": 1.0, "site": "A"})
    answers = {"treatment": "arm", "treated": 1, "control": 0, "outcome": "y", "covariates": "all"}
    with pytest.raises(CounterveilError, match="CV-P006"):
        cv.drafting.estimate_ranges(frame, None, answers, epsilon=4, delta=f"1/{DELTA_ROWS}")
