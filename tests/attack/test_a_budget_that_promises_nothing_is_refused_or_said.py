"""A delta of 1/n permits publishing a row: refused before anything is spent. A large epsilon says what it means."""

import json
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import counterveil as cv
from counterveil.errors import CounterveilError

ROWS = 500
STUDY = cv.Study(
    "t", "y", (0, 1), {"a": cv.Range(0, 1).cut("1/2")}, control=0, randomised=True, treated_share="1/2"
)


def people(rows=ROWS):
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
    ("overlap", {}),
]


@pytest.mark.parametrize(("question", "asked"), QUESTIONS)
def test_a_delta_from_one_over_n_on_is_refused_first(question, asked):
    for delta in ("0.2", f"1/{ROWS}"):
        with cv.Session(people(), STUDY, budget=cv.Budget(5, "1/2")) as session:
            with pytest.raises(CounterveilError, match="CV-P006"):
                getattr(session, question)(epsilon=1, delta=delta, **asked)
            left = session.remaining(asked.get("protects", "record"))
            assert (left.epsilon, left.delta) == (5, Fraction(1, 2))


def test_below_it_questions_are_answered():
    asked = {"protects": "record", "epsilon": 1, "delta": f"1/{ROWS + 1}"}
    assert cv.ate(people(), STUDY, **asked).spent.delta * (ROWS + 1) == 1


def test_people_count_and_not_their_rows(tmp_path):
    """Of people with several rows, and of rows that are counted in an engine."""
    rows = {name: np.repeat(values, 3) for name, values in people(40).items()}
    rows["id"] = np.repeat(np.arange(40), 3)
    asked = {"protects": "record", "epsilon": 1, "delta": "1/100", "method": "trial"}
    by_person = cv.Study("t", "y", (0, 1), control=0, randomised=True, treated_share="1/2", person="id")
    assert cv.ate(rows, by_person, **asked)
    with pytest.raises(CounterveilError, match="CV-P006"):
        cv.ate(rows, STUDY, **asked)
    stratified = {"protects": "record", "epsilon": 1, "method": "stratified", "mechanism": "gaussian"}
    relation = duckdb.from_df(pd.DataFrame(people()))
    with pytest.raises(CounterveilError, match="CV-P006"):
        cv.ate(relation, STUDY, delta=f"1/{ROWS}", **stratified)


def test_plans_and_looks_are_refused_likewise():
    for rows in (ROWS, [100, ROWS]):
        with pytest.raises(CounterveilError, match="CV-P006"):
            cv.plan(STUDY, rows=rows, protects="record", epsilon=1, delta=f"1/{ROWS}", draws=2)
    with pytest.raises(CounterveilError, match="CV-P006"):
        cv.interim.planned("y", [100, ROWS], epsilon=2, delta=f"1/{ROWS}")
    assert cv.interim.planned("y", [100, ROWS], epsilon=2, delta=f"1/{ROWS + 1}")


def test_a_large_epsilon_is_said_in_words():
    usual, large, endless = (
        cv.ate(people(), STUDY, protects="record", epsilon=epsilon) for epsilon in (10, "10.5", 5000)
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
    again = cv.ate(people(), STUDY, protects="record", epsilon=5000)
    sites = [json.loads(json.dumps(one.to_dict())) for one in (endless, again)]
    # It follows from epsilon, whatever a document shows.
    for shown in (endless.guarantee.odds_factor, "many", 1.0):
        sites[0]["guarantee"]["odds_factor"] = shown
        assert cv.pool(sites).guarantee.odds_factor == endless.guarantee.odds_factor
    assert replace(large.guarantee, epsilon=usual.guarantee.epsilon).large == ""


def test_estimated_labels_are_refused_likewise():
    frame = pd.DataFrame({"arm": np.arange(ROWS) % 2, "y": 1.0, "site": "A"})
    answers = {"treatment": "arm", "treated": 1, "control": 0, "outcome": "y", "covariates": "all"}
    with pytest.raises(CounterveilError, match="CV-P006"):
        cv.drafting.estimate_ranges(frame, None, answers, epsilon=4, delta=f"1/{ROWS}")
