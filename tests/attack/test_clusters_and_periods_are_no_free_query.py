"""Periods choose people and a cluster column is counted for nothing, so that no private column may serve freely."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.privacy import Unit

ROWS = 400
NUMBER = np.arange(ROWS)
CLUSTERED = {
    "arm": NUMBER % 2,
    "y": (NUMBER % 5) / 4,
    "diagnosis": NUMBER % 40,  # each in one arm
    "ward": NUMBER // 2 % 40,  # both arms in each
}
# Everyone has rows in 2001; in 2002, nobody who is treated, and in 2003 everyone.
YEARS = [2001, 2002, 2003]
PANEL = {
    "id": np.repeat(NUMBER, 3),
    "year": np.tile(YEARS, ROWS),
    "arm": np.repeat(NUMBER % 2, 3),
    "y": np.tile([0.2, 0.4, 0.6], ROWS),
}
PANEL = {
    name: cells[(PANEL["year"] != 2002) | (np.repeat(NUMBER % 2, 3) == 0)] for name, cells in PANEL.items()
}


@pytest.fixture
def book(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        yield ledger


def ask(book, data, study, access_policy=None, protects="record", question=cv.ate, method="trial"):
    name = f"account {len(book.datasets())}"
    book.register(name, cv.Budget(10), access_policy=access_policy)
    try:
        method = method if protects == "record" else "difference_in_means"
        asked = {"protects": protects, "epsilon": 2} | ({"method": method} if question is cv.ate else {})
        question(data, study, ledger=book, dataset=name, **asked)
    except cv.CounterveilError as error:
        assert book.account(name).requests == 0
        return error.code
    return "answered"


def clustered(column, assigned=False):
    return cv.Study("arm", "y", (0, 1), cluster=column, assigned_by_cluster=assigned, randomised=True)


def panel(*after):
    return cv.Study("arm", "y", (0, 1), person="id", time="year", before=[2001], after=after, randomised=True)


ACCESS_POLICY = {"person": "id"}


@pytest.mark.parametrize("assigned", [False, True])
@pytest.mark.parametrize(
    "access_policy", [None, cv.drafting.AccessPolicy(), cv.drafting.AccessPolicy(clusters=["site"])]
)
def test_a_cluster_column_is_chosen_by_the_access_policy(book, assigned, access_policy):
    found = {ask(book, CLUSTERED, clustered(name, assigned), access_policy) for name in ("diagnosis", "ward")}
    assert found == {"CV-L082"}


@pytest.mark.parametrize(
    ("access_policy", "assigned", "code"),
    [
        (cv.drafting.AccessPolicy(clusters=["diagnosis"]), False, "answered"),
        (cv.drafting.AccessPolicy(clusters=["diagnosis"]), True, "CV-L082"),
        (cv.drafting.AccessPolicy(public=["diagnosis"]), True, "CV-L082"),
        (cv.drafting.AccessPolicy(public=["diagnosis", "arm"]), True, "answered"),
        (cv.drafting.AccessPolicy(assigned_clusters=["diagnosis"]), True, "answered"),
        (cv.drafting.AccessPolicy(assigned_clusters=["diagnosis"]), False, "answered"),
    ],
)
def test_listed_clusters_are_answered(book, access_policy, assigned, code):
    assert ask(book, CLUSTERED, clustered("diagnosis", assigned), access_policy) == code


@pytest.mark.parametrize(
    "access_policy",
    [
        None,
        cv.drafting.AccessPolicy(**ACCESS_POLICY),
        cv.drafting.AccessPolicy(subsets=["year > 2000"], **ACCESS_POLICY),
    ],
)
def test_periods_that_differ_in_who_has_rows_get_the_same_refusal(book, access_policy):
    asked = [ask(book, PANEL, panel(year), access_policy) for year in (2002, 2003)]
    assert asked == ["CV-L080", "CV-L080"]
    assert ask(book, PANEL, panel(2002, 2003), access_policy, question=cv.event_study) == "CV-L080"


def test_listed_periods_are_answered_and_no_others(book):
    listed = cv.drafting.AccessPolicy(subsets=["year is each of [2001, 2003]"], **ACCESS_POLICY)
    assert ask(book, PANEL, panel(2003), listed) == "answered"
    assert ask(book, PANEL, panel(2002), listed) == "CV-L080"


@pytest.mark.parametrize("study", [panel(2003), clustered("diagnosis"), clustered("ward")])
def test_an_account_without_an_access_policy_takes_none_at_outcome_level_either(book, study):
    data = PANEL if study.person is not None else CLUSTERED
    assert ask(book, data, study, protects="outcome") in ("CV-L080", "CV-L082")
    shown = study.public_columns(Unit.OUTCOME)
    public = cv.drafting.AccessPolicy(public=shown, **(ACCESS_POLICY if study.person is not None else {}))
    assert ask(book, data, study, public, protects="outcome") == "answered"


@pytest.mark.parametrize("study", [panel(2003), clustered("diagnosis", True), clustered("ward")])
def test_the_access_policy_that_is_drafted_permits_the_study(book, study):
    from counterveil.session import drafted_access_policy

    data = PANEL if study.person is not None else CLUSTERED
    drafted = drafted_access_policy(study, Unit.RECORD)
    assert cv.drafting.AccessPolicy.from_dict(drafted.to_dict()) == drafted
    assert ask(book, data, study, drafted) == "answered"


@pytest.mark.parametrize(
    ("public", "code"), [(["arm", "year"], "CV-L080"), (["arm", "year", "id"], "answered")]
)
def test_how_many_people_a_subset_has_is_shown_only_where_their_column_is_public(book, public, code):
    study = cv.Study("arm", "y", (0, 1), person="id", where="year > 2002", randomised=True)
    assert ask(book, PANEL, study, cv.drafting.AccessPolicy(public=public, **ACCESS_POLICY)) == code
