"""Finding B4: whoever chooses the study file cannot make public what an account has protected."""

from itertools import permutations

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv

RNG = np.random.default_rng(7)
ROWS = 600
TREATED = RNG.permutation([0, 1] * (ROWS // 2))
DATA = {
    "treated": TREATED,
    "relapse": RNG.binomial(1, 0.4 - 0.1 * TREATED).astype(float),
    "cost": RNG.uniform(0, 100, ROWS),
    "age": RNG.uniform(20, 80, ROWS),
    "dose": np.arange(ROWS) % 3,
}
AGE = {"age": cv.Range(18, 90)}
YES_NO = cv.Binary()


def study(outcome="relapse", covariates=None, missing=None, treatment="treated"):
    high = 100 if outcome == "cost" else 1
    return cv.Study(
        treatment,
        cv.Outcome(outcome, (0, high)),
        AGE if covariates is None else covariates,
        assignment=cv.Trial(),
        missing=missing,
    )


@pytest.fixture
def book(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        ledger.register("people", cv.Budget(10, "1e-3"))
        yield ledger


def refused(code):
    return pytest.raises(cv.CounterveilError, match=code)


def ask(book, declared, protects="outcome", data=None, **more):
    if book.account("people").access_policy is None:
        book.publish("people", declared.public_columns(protects))
    return cv.ate(DATA if data is None else data, declared, protects=protects, epsilon=1, ledger=book, **more)


def spent(book):
    return book.account("people").spent.epsilon


def test_a_protected_outcome_does_not_become_a_covariate_whose_balance_is_printed(book):
    ask(book, study())
    with refused("CV-L041"):
        cv.ate(
            DATA, study("cost", AGE | {"relapse": YES_NO}), protects="outcome", epsilon="0.001", ledger=book
        )
    assert spent(book) == 1


def test_nor_a_treatment(book):
    ask(book, study())
    with refused("CV-L041"):
        ask(book, study("cost", treatment="relapse"), method="difference_in_means")


def test_nor_groups_whose_sizes_are_printed(book):
    ask(book, study())
    declared = study("cost", {"relapse": YES_NO})
    with refused("CV-L041"):
        cv.groups(DATA, declared, by="relapse", protects="outcome", epsilon=1, ledger=book)


def test_nor_covariates_of_several_arms(book):
    ask(book, study(covariates=AGE | {"dose": cv.Categories([0, 1, 2])}))
    arms = {"arms": (0, 1, 2), "reference": 0}
    declared = study_of("dose", "cost", (0, 100), {"relapse": YES_NO}, **arms, randomised=True)
    with refused("CV-L041"):
        cv.arms(DATA, declared, protects="outcome", epsilon=1, ledger=book, method="weighting")


def test_a_column_that_was_shown_is_not_protected_afterwards(book):
    ask(book, study("cost", AGE | {"relapse": YES_NO}))
    with refused("CV-L042"):
        ask(book, study())


@pytest.mark.parametrize(("first", "second"), list(permutations((cv.Drop(), cv.Fill(0), None), 2)))
def test_two_missing_rules_do_not_show_how_many_outcomes_are_missing(book, first, second):
    gaps = DATA | {"relapse": np.where(np.arange(ROWS) % 10 == 0, np.nan, DATA["relapse"])}
    rules = [{} if rule is None else {"relapse": rule} for rule in (first, second)]
    ask(book, study(missing=rules[0]), data=DATA if first is None else gaps)
    # Refused before the rows are looked at: whether they are complete is not told.
    for data in (gaps, DATA):
        with refused("CV-L043"):
            ask(book, study(missing=rules[1]), data=data)
    assert spent(book) == 1


def test_records_that_were_protected_are_not_shown_at_outcome_level(book):
    ask(book, study(), "record")
    with refused("CV-L041"):
        ask(book, study())
    with refused("CV-L041"):
        cv.groups(DATA, study(), by={"age": (40,)}, protects="outcome", epsilon=1, ledger=book)


def test_nor_after_other_questions_about_records(book):
    cv.cate(DATA, study(), protects="record", epsilon=1, delta=1e-6, ledger=book)
    with refused("CV-L041"):
        ask(book, study())
    rule = cv.Policy.where(age=(40, 65))
    assert cv.policy_value(DATA, study(), policy=rule, protects="record", epsilon=1, ledger=book)
    assert cv.groups(DATA, study(), by={"age": (40,)}, protects="record", epsilon=1, ledger=book)
    bought = cv.settings.Stratified(cuts={"age": 2})
    assert ask(book, study(), "record", method="stratified", settings=bought)
    assert spent(book) == 4


def test_an_answer_about_records_says_what_its_account_takes_as_public(book):
    ask(book, study())
    found = ask(book, study(), "record")
    assert any(
        "may show its public columns exactly" in remark and "'age', 'treated'" in remark
        for remark in found.guarantee.remarks
    )
