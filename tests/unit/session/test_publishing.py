"""What an account makes public is named before its first request, and is final."""

import pytest

import counterveil as cv
from counterveil.accounting import AccessPolicy
from counterveil.data import Range
from counterveil.data.public_columns import PublicColumn, public_columns
from counterveil.privacy import Unit
from counterveil.session import columns_to_publish

DATA = {
    "arm": [0, 1] * 50,
    "dose": [0, 1, 2, 0, 1] * 20,
    "y": [0, 1, 1, 0] * 25,
    "age": [20, 50] * 50,
    "sex": ["f", "m"] * 50,
}
COVARIATES = {"age": cv.Range(18, 90), "sex": cv.Categories(["f", "m"])}
STUDY = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 1)), COVARIATES, assignment=cv.Trial())
LEVELS = ("outcome", "treatment and outcome")


@pytest.fixture
def book(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        ledger.register("trial", cv.Budget(9))
        yield ledger


def ask(book, study=STUDY, protects="outcome", **words):
    return cv.ate(DATA, study, protects=protects, epsilon=1, ledger=book, **words)


@pytest.mark.parametrize("level", LEVELS)
def test_a_first_request_names_what_it_would_publish_and_costs_nothing(book, level):
    with pytest.raises(cv.CounterveilError, match="CV-L090") as refused:
        ask(book, protects=level)
    treatment = level == "outcome"
    listed = [name for name in ("arm", "age", "sex") if treatment or name != "arm"]
    assert f"ledger.publish('trial', {listed})" in refused.value.fix
    assert "'age' [18, 90]" in refused.value.got
    assert "'sex' {'f', 'm'}" in refused.value.got
    assert [entry.kind for entry in book.entries()] == ["register"]
    assert book.account("trial").access_policy is None
    # As it says, it is answered after that call.
    book.publish("trial", listed)
    assert ask(book, protects=level).estimate is not None
    assert book.verify().ok


def test_columns_of_later_studies_are_published_with_the_first(book):
    book.publish("trial", STUDY.public_columns("outcome"))
    book.publish("trial", ["dose"])
    ask(book)
    doses = cv.Study(
        cv.Treatment("dose", arms=(0, 1, 2), reference=0), cv.Outcome("y", (0, 1)), assignment=cv.Trial()
    )
    assert cv.arms(DATA, doses, protects="outcome", epsilon=1, ledger=book)
    assert book.account("trial").access_policy.public == ("age", "arm", "dose", "sex")
    assert book.verify().ok


def test_after_the_first_request_nothing_more_becomes_public(book):
    book.publish("trial", ["arm"])
    alone = STUDY._changed(covariates={})
    ask(book, alone)
    book.publish("trial", ["arm"])  # as when a notebook runs again
    with pytest.raises(cv.CounterveilError, match="CV-L091"):
        book.publish("trial", ["arm", "age"])
    with pytest.raises(cv.CounterveilError, match="CV-L041"):
        ask(book)
    assert book.account("trial").spent.epsilon == 1


def test_what_protects_records_publishes_nothing_and_is_asked_at_once(book):
    assert ask(book, protects="record").estimate is not None
    assert book.account("trial").access_policy.public == ()


def test_an_access_policy_says_it_beforehand(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        policy = AccessPolicy(public=["arm", "age", "sex"])
        ledger.register("trial", cv.Budget(1), access_policy=policy)
        assert columns_to_publish(ledger, "trial", STUDY, Unit.OUTCOME) == ()
        with pytest.raises(cv.CounterveilError, match="CV-L091"):
            ledger.publish("trial", ["dose"])
        assert ask(ledger).estimate is not None


def test_an_outcome_is_not_published(book):
    with cv.Session(DATA, STUDY, ledger=book) as session:
        with pytest.raises(cv.CounterveilError, match="CV-L092"):
            session.publish("arm", "y")
        session.publish("arm", "age")
        left = columns_to_publish(book, "trial", STUDY, Unit.OUTCOME)
        assert left == (PublicColumn("sex", "covariate", COVARIATES["sex"]),)
        with pytest.raises(cv.CounterveilError, match="CV-L090") as refused:
            session.ate(protects="outcome", epsilon=1)
        assert refused.value.got.startswith("'sex'")


def test_columns_beside_are_listed_by_their_role():
    study = cv.Study(
        "arm", cv.Outcome("y", (0, 1)), COVARIATES, people="id", where="age >= 30 and site == 'a'"
    )
    found = {column.name: column for column in public_columns(study, Unit.OUTCOME)}
    assert {name: column.role for name, column in found.items()} == {
        "arm": "treatment",
        "age": "covariate",
        "sex": "covariate",
        "id": "person",
        "site": "subset",
    }
    assert isinstance(found["age"].values, Range)
    assert public_columns(study, Unit.RECORD) == ()
