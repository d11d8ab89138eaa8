"""Requests of all levels in one account (B6), unproved forms (B5), and refusals about private rows: coded, public."""

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.accounting import OverBudgetError, Uses
from counterveil.data import Drop, Fill, Layout, Table, engines, strata, strata_of_source
from counterveil.drafting import AccessPolicy
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
    return study_of("arm", "y", (0, 1), domains, where=where, randomised=True, **more)


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
    if dataset == "open":
        book.publish("open", ["id", "age", "mixed", "untreated"])
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
    assert code(book, "open", study()) == "CV-L090"
    book.publish("open", ["age"])
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


RNG = np.random.default_rng(6)
TREATED = RNG.permutation([0, 1] * 100)
TOTALS_DATA = {"treated": TREATED, "relapse": RNG.binomial(1, 0.4 - 0.1 * TREATED)}
STUDY = cv.Study("treated", cv.Outcome("relapse", (0, 1)), assignment=cv.Trial())


def ask(totals_book, protects, epsilon):
    return cv.ate(TOTALS_DATA, STUDY, protects=protects, epsilon=epsilon, ledger=totals_book)


@pytest.fixture
def totals_book(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        access_policy = cv.drafting.AccessPolicy(public=["treated"], outcomes=["relapse"])
        ledger.register("people", cv.Budget(3), record_budget=cv.Budget(1), access_policy=access_policy)
        yield ledger


def test_two_totals_are_shown(totals_book):
    ask(totals_book, "outcome", 1)
    ask(totals_book, "record", "0.5")
    account = totals_book.account("people")
    assert (account.spent.epsilon, account.record_spent.epsilon) == (Fraction(3, 2), Fraction(1, 2))
    assert (account.remaining.epsilon, account.record_remaining.epsilon) == (Fraction(3, 2), Fraction(1, 2))
    assert "outcomes: spent epsilon 1.5" in str(account)
    assert "records: spent epsilon 0.5" in str(account)
    assert totals_book.verify().ok


def test_each_total_is_a_limit(totals_book):
    ask(totals_book, "record", 1)
    with pytest.raises(cv.CounterveilError, match=r"CV-B001[^[]*\n.*protect records"):
        ask(totals_book, "record", "0.1")
    ask(totals_book, "outcome", 2)
    for level in ("outcome", "record"):
        with pytest.raises(cv.CounterveilError, match="CV-B001"):
            ask(totals_book, level, "0.1")


def test_a_session_says_what_is_left_at_each_level(totals_book):
    with cv.Session(TOTALS_DATA, STUDY, ledger=totals_book) as session:
        session.ate(protects="outcome", epsilon="2.5")
        assert session.remaining().epsilon == Fraction(1, 2)
        assert session.remaining("record").epsilon == Fraction(1, 2)


UNPROVED_RNG = np.random.default_rng(5)
UNPROVED_TREATED = UNPROVED_RNG.permutation([0, 1] * 150)
UNPROVED_DATA = {
    "treated": UNPROVED_TREATED,
    "relapse": UNPROVED_RNG.binomial(1, 0.4 - 0.1 * UNPROVED_TREATED),
    "age": UNPROVED_RNG.uniform(20, 80, 300),
}
UNPROVED_STUDY = cv.Study(
    "treated", cv.Outcome("relapse", (0, 1)), {"age": cv.Range(18, 90)}, assignment=cv.Trial()
)
PAPER = {"epsilon": 1, "accept": "unproved"}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "book.db"


def test_a_lasting_ledger_refuses_them(place):
    with cv.open_ledger(place, create=True) as book:
        book.register("people", cv.Budget(50))
        book.publish("people", UNPROVED_STUDY.public_columns("outcome"))
        with pytest.raises(cv.CounterveilError, match="CV-L045"):
            cv.published.outcome_matching(UNPROVED_DATA, UNPROVED_STUDY, ledger=book, **PAPER)
        # Neither as the first request nor later.
        cv.ate(UNPROVED_DATA, UNPROVED_STUDY, ledger=book, protects="outcome", epsilon=1)
        with pytest.raises(cv.CounterveilError, match="CV-L045"):
            cv.published.outcome_matching(UNPROVED_DATA, UNPROVED_STUDY, ledger=book, **PAPER)
        assert book.account("people").spent.epsilon == 1


def test_where_an_access_policy_allows_them_the_account_and_later_results_say_so(place):
    access_policy = cv.drafting.AccessPolicy(public=["treated", "age"], unproved=True)
    with cv.open_ledger(place, create=True) as book:
        book.register("people", cv.Budget(50), access_policy=access_policy)
        assert str(book.account("people")).startswith("people: finite-sample guarantee")
        cv.published.outcome_matching(UNPROVED_DATA, UNPROVED_STUDY, ledger=book, **PAPER)
        first = str(book.account("people")).splitlines()[0]
        assert first.startswith("people: NO FINITE-SAMPLE GUARANTEE: 1 of 1 requests")
        later = cv.ate(UNPROVED_DATA, UNPROVED_STUDY, ledger=book, protects="outcome", epsilon=1)
        assert any("its total is not proved" in remark for remark in later.guarantee.remarks)
        assert "its total is not proved" in " ".join(str(later).split())
        assert book.account("people").unproved == 1


REFUSED_ROWS = {"t": [1, 0, 1, 0], "y": [0.5, 0.5, 0.5, 0.5], "x": [0.1, 0.2, 0.3, 0.4]}
REFUSED_STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 1)})


def refused_code(call):
    with pytest.raises(cv.CounterveilError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize("column", ["t", "y", "x"])
@pytest.mark.parametrize(
    "cell", [Decimal("sNaN"), Decimal("-sNaN123"), Decimal("NaN"), pd.NA, pd.NaT], ids=repr
)
def test_cells_that_hold_nothing_are_missing_and_no_traceback(cell, column):
    cells = [Decimal(str(value)) for value in REFUSED_ROWS[column][:3]] + [cell]
    for held in (cells, np.array(cells, dtype=object)):
        assert (
            refused_code(lambda held=held: Table.attach(REFUSED_ROWS | {column: held}, REFUSED_STUDY))
            == "CV-D003"
        )
    frame = pd.DataFrame(REFUSED_ROWS).astype({column: object})
    frame[column] = pd.Series(cells, dtype=object)
    assert refused_code(lambda: Table.attach(frame, REFUSED_STUDY)) == "CV-D003"


def test_both_levels_say_that_other_data_are_refused():
    for unit in (Unit.OUTCOME, Unit.RECORD):
        facts = [fact for fact in REFUSED_STUDY.public_facts(unit) if "at least 2" in fact]
        assert len(facts) == 1
        assert "not refused" in facts[0]


@pytest.mark.parametrize(
    ("method", "protects"),
    [
        ("difference_in_means", "outcome"),
        ("trial", "record"),
        ("stratified", "outcome"),
        ("stratified", "record"),
    ],
)
def test_guarantees_of_results_say_it(method, protects):
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 1)),
        {"x": cv.Range(0, 1).cut("1/4")},
        assignment=cv.Trial(),
    )
    rows = {name: values * 50 for name, values in REFUSED_ROWS.items()}
    result = cv.ate(rows, study, protects=protects, epsilon=1, method=method, noise=cv.SeededNoise(1))
    assert any("at least 2" in fact for fact in result.guarantee.public)


def occupied(count):
    """Return rows in so many strata of a hundred."""
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"k": cv.Categories(range(100))})
    frame = pd.DataFrame({"t": [1, 0] * 50, "y": [0.5] * 100, "k": [place % count for place in range(100)]})
    duckdb = pytest.importorskip("duckdb")
    return lambda: strata_of_source(duckdb.from_df(frame), study, Layout.of(study)).place.tolist()


def test_whether_strata_are_too_many_depends_on_public_numbers_alone(monkeypatch):
    for module in (engines, strata):
        monkeypatch.setattr(module, "MOST_GROUPS", 20, raising=False)
    # A hundred declared strata and a hundred rows: refused, however few are occupied.
    assert refused_code(occupied(4)) == refused_code(occupied(90)) == "CV-D055"
    for module in (engines, strata):
        monkeypatch.setattr(module, "MOST_GROUPS", 100, raising=False)
    # As many groups as rows at most: never refused.
    assert occupied(4)() == [0, 1, 2, 3]
    assert len(occupied(90)()) == 90
