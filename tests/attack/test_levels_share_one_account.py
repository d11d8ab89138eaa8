"""Requests of all levels in one account: what they reveal together, and what refusals about rows may not tell."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest

import counterveil as cv
from counterveil.accounting import OverBudgetError, Uses
from counterveil.drafting import AccessPolicy, Drop, Fill
from counterveil.privacy import Budget, Charge, PureEvent, Unit
from counterveil.session import drafted_access_policy

PAIR = Unit.TREATMENT_AND_OUTCOME.value
# One access policy for all levels: an outcome-level study compares hospitals, a pair-level study a drug.
ACCESS_POLICY = AccessPolicy(public=["hospital", "age"], outcomes=["relapse", "drug"])
ABOUT = Uses(Unit.OUTCOME, "ate", "auto", "hospital", "relapse", ("age",))
ASKED = (
    ABOUT,
    replace(ABOUT, outcome="drug"),
    replace(ABOUT, unit=Unit.TREATMENT_AND_OUTCOME, treatment="drug"),
    replace(ABOUT, unit=Unit.RECORD),
    replace(ABOUT, unit=Unit.RECORD, treatment="drug", covariates=("age", "hiv")),
)
PRIVATE = ("drug", "relapse", "hiv")


def read_as_private(uses):
    return {
        name for name in uses.columns if name not in uses.made_public and name not in ACCESS_POLICY.public
    }


def losses(accepted, among):
    """Return the exact loss of randomized responses to what each request reads, for every set of changed columns."""
    changes = chain.from_iterable(combinations(sorted(among), size) for size in range(1, len(among) + 1))
    for changed in changes:
        yield sum((cost for uses, cost in accepted if read_as_private(uses) & {*changed}), Fraction(0))


@pytest.mark.parametrize("seed", range(20))
def test_mixed_levels_never_reveal_more_than_was_granted(seed):
    rng = np.random.default_rng(seed)
    accepted = []
    with cv.open_ledger(":memory:") as ledger:
        ledger.register("people", Budget(3), record_budget=Budget(1), access_policy=ACCESS_POLICY)
        for number in range(40):
            uses = ASKED[rng.integers(len(ASKED)) if number else 2]
            cost = Fraction(int(rng.integers(1, 8)), 10)
            charge = Charge(Budget(cost), (PureEvent(cost),))
            with suppress(OverBudgetError):
                ledger.reserve("people", f"r{number}", charge, uses=uses, fingerprint="f", description={})
                accepted.append((uses, cost))
        account = ledger.account("people")
        assert ledger.verify().ok
    about = {name for uses, _ in accepted if uses.unit is not Unit.RECORD for name in read_as_private(uses)}
    assert max(losses(accepted, PRIVATE)) <= account.spent.epsilon <= 3
    kept = [name for name in PRIVATE if name not in about]
    assert max(losses(accepted, kept), default=0) <= account.record_spent.epsilon <= 1
    # Against a change of treatment and outcome, the releases of this level and of the stronger one.
    pairs = [one for one in accepted if one[0].unit is not Unit.OUTCOME]
    assert max(losses(pairs, ("drug", "relapse"))) == sum(cost for _, cost in pairs) <= account.spent.epsilon


ROWS = 400
AGE = (20 + np.arange(ROWS) % 60).astype(float)
DATA = {
    "id": np.arange(ROWS),
    "arm": np.arange(ROWS) % 2,
    "y": (np.arange(ROWS) % 5) / 4,
    "age": AGE,
    # Measured for four people each: of the first four both arms, of the second one arm alone.
    "mixed": np.where(np.arange(ROWS) < 4, AGE, np.nan),
    "untreated": np.where(np.isin(np.arange(ROWS), [0, 2, 4, 6]), AGE, np.nan),
}
MIXED, UNTREATED = "id in [0, 1, 2, 3]", "id in [0, 2, 4, 6]"


@pytest.fixture
def book(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        known = ["id", "age", "mixed", "untreated"]
        ledger.register("private arms", Budget(10), access_policy=AccessPolicy(public=known))
        ledger.register("public arms", Budget(10), access_policy=AccessPolicy(public=[*known, "arm"]))
        ledger.register("open", Budget(10))
        yield ledger


def study(where=None, covariates=("age",), **more):
    domains = {name: cv.Range(18, 90) for name in covariates}
    return cv.Study("arm", "y", (0, 1), domains, where=where, randomised=True, **more)


def code(book, dataset, declared, protects=PAIR):
    before = book.account(dataset).spent.epsilon
    try:
        cv.ate(DATA, declared, protects=protects, epsilon=1, ledger=book, dataset=dataset)
    except cv.CounterveilError as error:
        assert book.account(dataset).spent.epsilon == before
        return error.code
    return "answered"


@pytest.mark.parametrize("dataset", ["private arms", "open"])
def test_a_subset_of_known_people_tells_nothing_about_their_arms(book, dataset):
    assert {code(book, dataset, study(where)) for where in (MIXED, UNTREATED)} == {"CV-L080"}


@pytest.mark.parametrize("protects", [PAIR, "record"])
def test_rows_that_a_public_column_leaves_out_are_no_free_query_about_arms(book, protects):
    told = [study(covariates=(name,), missing={name: Drop()}) for name in ("mixed", "untreated")]
    assert {code(book, "private arms", one, protects) for one in told} == {"CV-L043"}
    filled = [study(covariates=(name,), missing={name: Fill(50)}) for name in ("mixed", "untreated")]
    assert {code(book, "private arms", one, protects) for one in filled} == {"answered"}


@pytest.mark.parametrize("dataset", ["private arms", "public arms"])
def test_no_account_lets_treatments_choose_rows(book, dataset):
    assert code(book, dataset, study("arm == 1 or age > 30")) == "CV-P018"


def test_a_drafted_access_policy_permits_its_study_and_no_weaker_level(book):
    declared = study("age >= 30", missing={"age": Drop()})
    drafted = drafted_access_policy(declared, Unit.TREATMENT_AND_OUTCOME)
    assert drafted.public == ("age",)
    assert (dict(drafted.missing), drafted.subsets) == ({"age": "drop"}, ("age >= 30",))
    book.register("drafted", Budget(10), access_policy=drafted)
    assert code(book, "drafted", declared) == "answered"
    assert code(book, "drafted", declared, "outcome") == "CV-L044"
    assert code(book, "drafted", study("age >= 31", missing={"age": Drop()})) == "CV-L080"


def test_a_first_request_keeps_its_treatment_private(book):
    assert code(book, "open", study()) == "answered"
    assert book.account("open").access_policy.public == ("age",)
    assert code(book, "open", study(), "outcome") == "CV-L041"


def test_a_guarantee_says_where_other_answers_may_show_treatments(book):
    for dataset, said in (("private arms", False), ("public arms", True)):
        found = cv.ate(DATA, study(), protects=PAIR, epsilon=1, ledger=book, dataset=dataset)
        assert any("'arm'" in remark for remark in found.guarantee.remarks) is said


def test_what_needs_treatments_is_not_shown(book):
    found = cv.ate(DATA, study(), protects=PAIR, epsilon=1, ledger=book, dataset="private arms")
    assert found.by_arm == {}
    assert not {"treated", "control"} & {*found.details}
    shown = " ".join(found.guarantee.public)
    assert "every person's treatment" not in shown
    assert "who took part, with all covariates: the treatment 'arm' is protected" in shown
