"""Planned looks: what a ledger takes, what their intervals share, and what stays the same."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import counterveil as cv
from counterveil.accounting import Looks
from counterveil.errors import CounterveilError
from counterveil.questions.ate import AteArguments
from counterveil.questions.ate import answer as answer_ate
from counterveil.questions.interim import SPENDING, alphas

STUDY = cv.Study("arm", cv.Outcome("y", (0, 1)), assignment=cv.Trial())
OTHER = cv.Study("arm", cv.Outcome("z", (0, 1)), assignment=cv.Trial())
ROWS = [100, 200, 400]


def people(rows, seed=1):
    rng = np.random.default_rng(seed)
    arm = np.arange(rows) % 2
    return {"arm": arm, "y": np.clip(rng.normal(0.4 + 0.2 * arm, 0.1), 0, 1), "z": rng.random(rows)}


@pytest.fixture
def book(tmp_path):
    looks = cv.interim.planned("y", ROWS, epsilon=3)
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        ledger.register(
            "trial", cv.Budget(9), access_policy=cv.drafting.AccessPolicy(public=["arm"], looks=looks)
        )
        yield ledger


def ask(book, number, rows=None, study=STUDY, protects="outcome"):
    data = people(ROWS[number - 1] if rows is None else rows)
    return cv.interim.look(data, study, number=number, protects=protects, ledger=book)


def code_of(call):
    with pytest.raises(cv.CounterveilError) as caught:
        call()
    return caught.value.code


def test_a_look_says_its_boundary_and_whether_to_go_on(book):
    for number, word in ((1, "continue"), (2, "continue"), (3, "no look is left")):
        data = people(ROWS[number - 1]) | {"y": np.full(ROWS[number - 1], 0.5)}
        found = cv.interim.look(data, STUDY, number=number, protects="outcome", ledger=book)
        boundary = found.details["look_boundary"]
        assert found.level == pytest.approx(1 - boundary)
        lines = " ".join(found.summary().split())
        assert f"Look: {number} of 3: " in lines
        assert f"boundary p {boundary:.2g}" in lines
        excluded = not found.interval()[0] <= 0 <= found.interval()[1]
        assert (found.p_value <= boundary) is excluded
        assert ("stop, as zero is ruled out" in lines) is excluded
        assert (word in repr(found)) is not excluded


def test_a_large_effect_stops_a_trial(book):
    data = people(200)
    found = cv.interim.look(data | {"y": data["arm"] * 1.0}, STUDY, number=1, protects="outcome", ledger=book)
    assert "look 1 of 3: stop, as zero is ruled out" in repr(found)


@pytest.mark.parametrize("spending", SPENDING)
@pytest.mark.parametrize("rows", [[7], [50, 100], [10, 300, 301, 1000], [1, 10**9]])
def test_the_looks_share_the_error_and_no_more(spending, rows):
    found = alphas(rows, Fraction(1, 20), spending)
    assert sum(found) == Fraction(1, 20)
    assert len(found) == len(rows)
    assert min(found) > 0


def test_the_parts_are_those_of_the_tables():
    # Two-sided 5 %, five equally spaced looks: DeMets and Lan (1994), cumulative error by look.
    late = np.cumsum([float(part) for part in alphas([1, 2, 3, 4, 5], Fraction(1, 20), "obrien_fleming")])
    even = np.cumsum([float(part) for part in alphas([1, 2, 3, 4, 5], Fraction(1, 20), "pocock")])
    np.testing.assert_allclose(late, [0.00001, 0.0019, 0.0114, 0.0284, 0.05], atol=1e-4)
    np.testing.assert_allclose(even, [0.01477, 0.02615, 0.03541, 0.04324, 0.05], atol=1e-4)


def test_looks_are_charged_in_order_and_answered_once(book):
    first = ask(book, 1)
    assert first.details["look"] == "1 of 3"
    assert first.details["level_of_all_looks"] == 0.95
    assert first.level > 0.999
    assert book.account("trial").spent.epsilon == 1
    assert ask(book, 1, rows=50).estimate == first.estimate
    assert book.account("trial").spent.epsilon == 1
    levels = [first.level, ask(book, 2).level, ask(book, 3).level]
    assert all(later < earlier for earlier, later in pairwise(levels))
    # A p-value of one look is not one of 5 %.
    assert first.not_covered[-1].alpha == pytest.approx(1 - first.level)
    assert book.account("trial").spent.epsilon == 3
    assert book.verify().ok


def test_what_was_not_planned_is_refused_and_costs_nothing(book):
    assert code_of(lambda: ask(book, 2)) == "CV-L083"
    # The outcome is looked at in no other way, and other outcomes are not looked at.
    for call in (
        lambda: cv.ate(people(100), STUDY, protects="outcome", epsilon=1, ledger=book),
        lambda: cv.ate(people(100), STUDY, protects="record", epsilon=1, ledger=book, method="trial"),
        lambda: ask(book, 1, study=OTHER),
    ):
        assert code_of(call) == "CV-L083"
    assert code_of(lambda: ask(book, 4, rows=900)) == "CV-P730"
    assert book.account("trial").requests == 0
    ask(book, 1)
    assert code_of(lambda: ask(book, 2, protects="record")) == "CV-L083"
    changed = cv.Study("arm", cv.Outcome("y", (0, 2)), assignment=cv.Trial())
    assert code_of(lambda: ask(book, 2, study=changed)) == "CV-L083"
    assert book.account("trial").requests == 1
    found = cv.ate(people(100), OTHER, protects="outcome", epsilon=1, ledger=book)
    assert found.outcome == "z"


def test_the_outcome_of_looks_is_read_in_no_other_role(book):
    """As a covariate of another outcome its arms were compared without a look: `overlap` shows both means."""
    beside = cv.Study("arm", cv.Outcome("z", (0, 1)), covariates={"y": cv.Range(0, 1)}, assignment=cv.Trial())
    chosen = cv.Study("arm", cv.Outcome("z", (0, 1)), assignment=cv.Trial(), where="y > 0.5")
    access_policy = cv.drafting.AccessPolicy(
        subsets=chosen.subsets, looks=cv.interim.planned("y", ROWS, epsilon=3)
    )
    book.register("subsets", cv.Budget(9), access_policy=access_policy)
    asked = {"protects": "record", "epsilon": 1, "ledger": book, "dataset": "subsets"}
    whole = asked | {"protects": "record", "method": "trial"}
    assert code_of(lambda: cv.overlap(people(100), beside, **asked)) == "CV-L083"
    assert code_of(lambda: cv.ate(people(100), beside, **whole)) == "CV-L083"
    assert code_of(lambda: cv.ate(people(100), chosen, **whole)) == "CV-L083"
    assert book.account("subsets").requests == 0
    cv.ate(people(100), OTHER, **whole)
    assert book.account("subsets").requests == 1


def test_the_names_of_looks_belong_to_them(book):
    """Another request took the name of a look, which was then refused for ever; and one look had several names."""
    other = {"protects": "outcome", "epsilon": 1, "ledger": book, "request_id": "look at y@1"}
    assert code_of(lambda: cv.ate(people(100), OTHER, **other)) == "CV-L083"
    first = ask(book, 1)
    with cv.Session(people(100), STUDY, ledger=book) as session:
        asked = AteArguments(protects="outcome", epsilon=1).about(STUDY)
        again = replace(asked, look=1, request_id="once more")
        assert code_of(lambda: answer_ate(session, again)) == "CV-L083"
    assert book.account("trial").requests == 1
    assert ask(book, 1).estimate == first.estimate


def test_a_plan_is_written_and_read(tmp_path):
    access_policy = cv.drafting.AccessPolicy(
        public=["arm"], missing={"y": "drop"}, looks=cv.interim.planned("y", ROWS, epsilon=1)
    )
    path = tmp_path / "access-policy.toml"
    path.write_text(access_policy.to_toml())
    assert cv.drafting.AccessPolicy.from_toml(path) == access_policy
    assert any(
        line.startswith("looks at 'y', no others: 100 rows, epsilon 0.333333")
        for line in access_policy.lines()
    )


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [3, 2, 9]},
        {"rows": [1, 2]},
        {"rows": "123"},
        {"alpha": [1, 1, 1]},
        {"epsilon": ["x", 1, 1]},
        {"more": 1},
    ],
)
def test_a_plan_that_is_none_is_refused(change):
    good = cv.interim.planned("y", ROWS, epsilon=1).to_dict()
    assert code_of(lambda: Looks.from_dict(good | change)) == "CV-L040"


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": " "},
        {"outcome": "y" * 195},
        {"outcome": "y\n"},
        {"epsilon": [1, 1, Fraction(10**150 + 1, 10**150)]},
    ],
)
def test_a_plan_that_could_not_be_read_back_is_refused(change):
    """Registered, it locked every account of its ledger: their access policies are read whenever a session begins."""
    given = {"outcome": "y", "rows": ROWS, "epsilon": 1} | change
    assert code_of(lambda: cv.interim.planned(**given)) == "CV-L040"
    look = cv.interim.planned("y", ROWS, epsilon=1).planned[0]
    assert code_of(lambda: Looks("y", (replace(look, alpha=Fraction(0)),))) == "CV-L040"


def test_what_is_looked_at_is_private():
    plan = cv.interim.planned("y", ROWS, epsilon=1)
    assert code_of(lambda: cv.drafting.AccessPolicy(public=["y"], looks=plan)) == "CV-L040"


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [1, 1]},
        {"rows": []},
        {"rows": 5},
        {"rows": [True]},
        {"spending": "all"},
        {"epsilon": [1]},
        {"level": 0.9999999},
    ],
)
def test_arguments_that_make_no_plan_are_refused(change):
    given = {"rows": ROWS, "epsilon": 1} | change
    assert code_of(lambda: cv.interim.planned("y", **given)) == "CV-P730"


def test_a_sequence_divides_error_and_budget_without_end():
    looks = cv.interim.sequence("y", 100, epsilon=2, delta="1e-6", growth=1.5)
    for number, look in enumerate(looks.planned, start=1):
        part = Fraction(1, number * (number + 1))
        assert (look.budget.epsilon, look.budget.delta) == (2 * part, Fraction(1, 10**6) * part)
        assert look.alpha == Fraction(1, 20) * part
    rows = [look.rows for look in looks.planned]
    assert rows[:4] == [100, 150, 225, 338]
    shorter = cv.interim.planned("y", rows[:3], epsilon=2, delta="1e-6", spending="always_valid")
    assert shorter.planned == looks.planned[:3]
    assert (
        cv.drafting.AccessPolicy.from_dict(
            cv.drafting.AccessPolicy(public=["t"], looks=looks).to_dict()
        ).looks
        == looks
    )
    with pytest.raises(CounterveilError, match="CV-P730"):
        cv.interim.sequence("y", 100, epsilon=2, growth=1)
