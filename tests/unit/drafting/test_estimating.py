"""Estimated ranges and labels: charged, named in the study, and never without a delta."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.ranges_and_labels import (
    _cell,
    epsilon_of_range,
    range_of,
    rows_of_range,
)
from counterveil.privacy import Unit
from counterveil.rows.undescribed_columns import CELLS

ANSWERS = {
    "treatment": "arm",
    "treated": 1,
    "control": 0,
    "outcome": "y",
    "assignment": "trial",
    "covariates": "all",
}


def people(rows=4000):
    place = np.arange(rows)
    return pd.DataFrame(
        {
            "arm": place % 2,
            "y": (place * 7 % 100).astype(float),
            "age": 18 + place % 70,
            "site": np.where(place == 5, "single person", np.where(place % 3, "A", "B")),
        }
    )


def estimated(frame, **more):
    asked = {"epsilon": 4, "delta": "1e-6", "noise": cv.SeededNoise(3)} | more
    return cv.drafting.estimate_ranges(frame, None, ANSWERS, **asked)


def test_what_was_open_is_known_and_named_with_its_cost():
    made = estimated(people())
    study = made.study()
    assert study.outcome_range == (0, 100)
    assert study.covariates == {
        "age": cv.Range(10, 100),
        "site": cv.Categories(["A", "B", "other"], other="other"),
    }
    cost = "epsilon 1.33333"
    assert dict(study.estimated) == {
        "age": f"range: {cost}",
        "y": f"range: {cost}",
        "site": f"labels: {cost}, delta 1e-06",
    }
    assert made.toml.startswith("# SIMULATED, NOT A PRIVATE RELEASE")
    assert "single person" not in made.toml
    facts = study.public_facts(Unit.RECORD)
    assert any("not stated beforehand but released from the data" in fact for fact in facts)
    assert Table.attach(people(), study).rows == 4000


def test_it_is_charged_and_repeated_for_nothing(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register(
            "people", cv.Budget(5, "1e-5"), access_policy=cv.drafting.AccessPolicy(missing={"age": "fill"})
        )
        made = [estimated(people(), ledger=book, request_id="draft", noise=None).toml for _ in range(2)]
        account = book.account("people")
    assert made[0] == made[1]
    assert "SIMULATED" not in made[0]
    assert (account.spent.epsilon, account.record_spent.epsilon, account.requests) == (4, 4, 1)
    assert float(account.spent.delta) == 1e-6


def test_ranges_alone_need_no_delta():
    frame = people().drop(columns="site")
    with_delta = estimated(frame, delta="1e-6")
    assert with_delta.toml == estimated(frame, delta=0).toml


def test_several_outcomes_have_a_range_each():
    frame = people().assign(z=lambda rows: rows["y"] / 100)
    answers = {key: told for key, told in ANSWERS.items() if key not in ("outcome", "covariates")}
    answers |= {"outcomes": ["y", "z"], "covariates": []}
    made = cv.drafting.estimate_ranges(frame, None, answers, epsilon=4, noise=cv.SeededNoise(3))
    assert made.study().to_dict()["outcome"]["ranges"] == {"y": [0, 100], "z": [0, 1]}
    assert set(made.estimated) == {"y", "z"}


def test_one_column_at_a_time():
    made = estimated(people(), columns=["age"], delta=0)
    assert list(made.estimated) == ["age"]
    assert made.document["outcome"]["range"] == "?"


def test_people_with_several_rows_count_once():
    frame = people(400).assign(who=np.arange(400) // 4)
    # Four rows would be enough to be told.
    frame.loc[frame["who"] == 9, "site"] = "one person's"
    alone = frame.groupby("who", as_index=False).first()
    answers = ANSWERS | {"people": "who"}
    asked = {"epsilon": 40, "delta": "1e-3", "noise": cv.SeededNoise(1)}
    several, single = (cv.drafting.estimate_ranges(data, None, answers, **asked) for data in (frame, alone))
    assert several.document == single.document
    assert several.document["covariates"]["site"]["categories"] == ["A", "B", "other"]


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("CV-P724", {"delta": 0}),
        ("CV-P724", {"delta": "0.9"}),
        ("CV-P723", {"columns": ["arm"]}),
        ("CV-P004", {"epsilon": 0}),
    ],
)
def test_what_is_refused_costs_nothing(tmp_path, code, more):
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register("people", cv.Budget(5, "1e-5"), access_policy=cv.drafting.AccessPolicy())
        with pytest.raises(cv.CounterveilError, match=code):
            estimated(people(), ledger=book, noise=None, **more)
        assert book.account("people").spent.epsilon == 0


def test_an_account_without_an_access_policy_sells_nothing(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register("people", cv.Budget(5, "1e-5"))
        with pytest.raises(cv.CounterveilError, match="CV-L081"):
            estimated(people(), ledger=book, noise=None)


def test_published_columns_say_what_the_draft_may_fix(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register("people", cv.Budget(5, "1e-5"))
        book.publish("people", ["arm", "age"])
        assert estimated(people(), ledger=book, noise=None).estimated
        assert book.account("people").access_policy.public == ("age", "arm")


def test_what_cannot_be_found_is_refused_before_it_is_paid_for(tmp_path):
    rows = len(people())
    least = epsilon_of_range(rows)
    # Half of the rows are enough at the least epsilon, and not below it.
    assert rows_of_range(Fraction(least)) <= -(-rows // 2) < rows_of_range(Fraction(least) * 9 / 10)
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register("people", cv.Budget(5, "1e-5"), access_policy=cv.drafting.AccessPolicy())
        asked = {"ledger": book, "noise": None, "columns": ["age"], "delta": 0}
        with pytest.raises(cv.CounterveilError, match="CV-P832"):
            estimated(people(), epsilon=least * 0.9, **asked)
        assert book.account("people").spent.epsilon == 0
        assert estimated(people(), epsilon=least * 1.1, **asked).estimated


def test_rows_that_are_needed_are_found_as_often_as_is_said():
    amount, draws = Fraction(1, 10), 400
    needed = rows_of_range(amount)
    counts = np.zeros(CELLS)
    noise = np.random.default_rng(5).laplace(0, float(2 / amount), (draws, CELLS))
    held = CELLS - 5
    counts[held] = needed
    low, high = _cell(held)
    found = [range_of(list(counts + one), amount) for one in noise]
    share = np.mean([one is not None and one[0] <= low and high <= one[1] for one in found])
    assert abs(share - 0.95) < 4 * np.sqrt(0.95 * 0.05 / draws)


def test_treatment_and_outcome_come_first():
    with pytest.raises(cv.CounterveilError, match="CV-P723"):
        cv.drafting.estimate_ranges(people(), epsilon=1)
    closed = ANSWERS | {"outcome_range": (0, 100), "covariates": []}
    with pytest.raises(cv.CounterveilError, match="CV-P723"):
        cv.drafting.estimate_ranges(people(), None, closed, epsilon=1)


def test_columns_of_text_where_numbers_are_expected_are_no_refusal():
    frame = people().assign(age="old")
    made = estimated(frame, columns=["age"], delta="1e-6")
    assert made.document["covariates"]["age"] == {"categories": ["old", "other"], "other": "other"}
