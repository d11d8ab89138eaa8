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


def ask(book, data, study, charter=None, protects="record", question=cv.ate, method="trial"):
    name = f"account {len(book.datasets())}"
    book.register(name, cv.Budget(10), charter=charter)
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


CHARTER = {"person": "id"}


@pytest.mark.parametrize("assigned", [False, True])
@pytest.mark.parametrize("charter", [None, cv.drafting.Charter(), cv.drafting.Charter(clusters=["site"])])
def test_a_cluster_column_is_chosen_by_the_charter(book, assigned, charter):
    found = {ask(book, CLUSTERED, clustered(name, assigned), charter) for name in ("diagnosis", "ward")}
    assert found == {"CV-L082"}


@pytest.mark.parametrize(
    ("charter", "assigned", "code"),
    [
        (cv.drafting.Charter(clusters=["diagnosis"]), False, "answered"),
        (cv.drafting.Charter(clusters=["diagnosis"]), True, "CV-L082"),
        (cv.drafting.Charter(public=["diagnosis"]), True, "CV-L082"),
        (cv.drafting.Charter(public=["diagnosis", "arm"]), True, "answered"),
        (cv.drafting.Charter(assigned_clusters=["diagnosis"]), True, "answered"),
        (cv.drafting.Charter(assigned_clusters=["diagnosis"]), False, "answered"),
    ],
)
def test_listed_clusters_are_answered(book, charter, assigned, code):
    assert ask(book, CLUSTERED, clustered("diagnosis", assigned), charter) == code


@pytest.mark.parametrize(
    "charter", [None, cv.drafting.Charter(**CHARTER), cv.drafting.Charter(subsets=["year > 2000"], **CHARTER)]
)
def test_periods_that_differ_in_who_has_rows_get_the_same_refusal(book, charter):
    asked = [ask(book, PANEL, panel(year), charter) for year in (2002, 2003)]
    assert asked == ["CV-L080", "CV-L080"]
    assert ask(book, PANEL, panel(2002, 2003), charter, question=cv.event_study) == "CV-L080"


def test_listed_periods_are_answered_and_no_others(book):
    listed = cv.drafting.Charter(subsets=["year is each of [2001, 2003]"], **CHARTER)
    assert ask(book, PANEL, panel(2003), listed) == "answered"
    assert ask(book, PANEL, panel(2002), listed) == "CV-L080"


@pytest.mark.parametrize("study", [panel(2003), clustered("diagnosis"), clustered("ward")])
def test_an_account_without_a_charter_takes_none_at_outcome_level_either(book, study):
    data = PANEL if study.person is not None else CLUSTERED
    assert ask(book, data, study, protects="outcome") in ("CV-L080", "CV-L082")
    shown = study.public_columns(Unit.OUTCOME)
    public = cv.drafting.Charter(public=shown, **(CHARTER if study.person is not None else {}))
    assert ask(book, data, study, public, protects="outcome") == "answered"


@pytest.mark.parametrize("study", [panel(2003), clustered("diagnosis", True), clustered("ward")])
def test_the_charter_that_is_drafted_permits_the_study(book, study):
    from counterveil.session import drafted_charter

    data = PANEL if study.person is not None else CLUSTERED
    drafted = drafted_charter(study, Unit.RECORD)
    assert cv.drafting.Charter.from_dict(drafted.to_dict()) == drafted
    assert ask(book, data, study, drafted) == "answered"


@pytest.mark.parametrize(
    ("public", "code"), [(["arm", "year"], "CV-L080"), (["arm", "year", "id"], "answered")]
)
def test_how_many_people_a_subset_has_is_shown_only_where_their_column_is_public(book, public, code):
    study = cv.Study("arm", "y", (0, 1), person="id", where="year > 2002", randomised=True)
    assert ask(book, PANEL, study, cv.drafting.Charter(public=public, **CHARTER)) == code
