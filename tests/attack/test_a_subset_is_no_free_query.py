"""Refusals about a freely chosen subset would tell about single people for nothing."""

import numpy as np
import pytest

import counterveil as cv

ROWS = 400
DATA = {
    "id": np.arange(ROWS),
    "arm": np.arange(ROWS) % 2,
    "y": (np.arange(ROWS) % 5) / 4,
    "age": 20 + np.arange(ROWS) % 60,
}
# Both hold for four rows; of the second, none is treated, so that attaching it is refused.
MIXED, UNTREATED = "id in [0, 1, 2, 3]", "id in [0, 2, 4, 6]"


def study(where):
    return cv.Study("arm", "y", (0, 1), {"age": cv.Range(18, 90)}, where=where, randomised=True)


@pytest.fixture
def book(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        ledger.register("open", cv.Budget(10))
        public = cv.drafting.AccessPolicy(public=["id", "age"])
        ledger.register("private treatment", cv.Budget(10), access_policy=public)
        ledger.register(
            "listed", cv.Budget(10), access_policy=cv.drafting.AccessPolicy(subsets=["age >= 40"])
        )
        everything = cv.drafting.AccessPolicy(public=["id", "age", "arm"])
        ledger.register("public but the outcome", cv.Budget(10), access_policy=everything)
        yield ledger


def ask(book, dataset, where, protects="record"):
    try:
        method = "trial" if protects == "record" else "difference_in_means"
        asked = {"protects": protects, "epsilon": "0.1", "method": method}
        cv.ate(DATA, study(where), ledger=book, dataset=dataset, **asked)
    except cv.CounterveilError as error:
        return error.code
    return "answered"


@pytest.mark.parametrize("dataset", ["open", "private treatment", "listed"])
def test_two_subsets_that_differ_in_private_columns_get_the_same_refusal(book, dataset):
    assert {ask(book, dataset, where) for where in (MIXED, UNTREATED)} == {"CV-L080"}
    assert book.account(dataset).spent.epsilon == 0


def test_a_listed_subset_is_answered_and_no_other(book):
    assert ask(book, "listed", "40 <= age") == "answered"
    assert ask(book, "listed", "age >= 41") == "CV-L080"


def test_where_all_but_the_outcome_is_public_a_condition_tells_nothing_more(book):
    assert ask(book, "public but the outcome", "age >= 41") == "answered"
    assert ask(book, "public but the outcome", "age >= 41", "outcome") == "answered"
    assert ask(book, "public but the outcome", UNTREATED, "outcome") == "CV-D004"


def test_at_outcome_level_a_private_column_chooses_no_rows(book):
    private = cv.drafting.AccessPolicy(public=["age", "arm"])
    book.register("private id", cv.Budget(10), access_policy=private)
    for where in (MIXED, UNTREATED):
        assert ask(book, "private id", where, "outcome") == "CV-L041"


def test_arms_ask_the_access_policy_first(book):
    data = DATA | {"arm": np.arange(ROWS) % 3}
    several = cv.Study("arm", "y", (0, 1), arms=(0, 1, 2), reference=0, where=MIXED, randomised=True)
    book.register("arms", cv.Budget(10), access_policy=cv.drafting.AccessPolicy(public=["arm"]))
    with pytest.raises(cv.CounterveilError, match="CV-L041"):
        cv.arms(data, several, protects="outcome", epsilon=1, ledger=book, dataset="arms")


def test_a_first_request_fixes_its_subset():
    with cv.Session(DATA, study("age >= 40"), budget=cv.Budget(5)) as session:
        session.ate(protects="record", epsilon=1)
        assert session.account().access_policy.subsets == ("age >= 40",)


def test_the_access_policy_of_a_study_lists_its_condition(tmp_path):
    from typer.testing import CliRunner

    from counterveil.cli.app import app

    (tmp_path / "study.toml").write_text(study("age >= 40").to_toml())
    words = ["ledger", "access-policy", "--study", str(tmp_path / "study.toml"), "--protects", "record"]
    run = CliRunner().invoke(app, words)
    assert 'subsets = ["age >= 40"]' in run.stdout
