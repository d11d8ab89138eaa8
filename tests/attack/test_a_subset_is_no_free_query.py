"""No private column chooses rows, periods or clusters for nothing: refusals would tell about single people."""

import numpy as np
import pytest
from tests.command_line import said

import counterveil as cv
from counterveil.privacy import Unit

POLICY = cv.drafting.AccessPolicy
ROWS = 400
NUMBER = np.arange(ROWS)
DATA = {"id": NUMBER, "arm": NUMBER % 2, "y": (NUMBER % 5) / 4, "age": 20 + NUMBER % 60}
# Both hold for four rows; of the second, none is treated, so that attaching it is refused.
MIXED, UNTREATED = "id in [0, 1, 2, 3]", "id in [0, 2, 4, 6]"


def study(where=None, person=None):
    covariates = {"age": cv.Range(18, 90)}
    return cv.Study(
        "arm", cv.Outcome("y", (0, 1)), covariates, assignment=cv.Trial(), people=person, where=where
    )


@pytest.fixture
def book(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        ledger.register("open", cv.Budget(10))
        ledger.register("private treatment", cv.Budget(10), access_policy=POLICY(public=["id", "age"]))
        ledger.register("listed", cv.Budget(10), access_policy=POLICY(subsets=["age >= 40"]))
        everything = POLICY(public=["id", "age", "arm"])
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


FUNCTION = {"queries": {"age": [40]}, "accept": "unproved"}


@pytest.mark.parametrize("question", [cv.cate, cv.published.cate_finite, cv.overlap, cv.quantiles])
@pytest.mark.parametrize("code", ["CV-L080", "CV-L049"])
def test_no_question_reads_rows_before_the_access_policy(book, question, code):
    more = FUNCTION if question is cv.published.cate_finite else {"protects": "record"}
    for where, pair in ((MIXED, [0, 2]), (UNTREATED, [0, 1])):
        # Both pairs have one age; of the second, one is treated.
        data = DATA | {"age": 20 + 0 * NUMBER, "pair": np.where(np.isin(NUMBER, pair), -1, NUMBER)}
        own = study(where) if code == "CV-L080" else study(person="pair")
        with pytest.raises(cv.CounterveilError, match=code):
            question(data, own, ledger=book, dataset="listed", epsilon=1, **more)


def test_a_listed_subset_is_answered_and_no_other(book):
    assert ask(book, "listed", "40 <= age") == "answered"
    assert ask(book, "listed", "age >= 41") == "CV-L080"


def test_where_all_but_the_outcome_is_public_a_condition_tells_nothing_more(book):
    assert ask(book, "public but the outcome", "age >= 41") == "answered"
    assert ask(book, "public but the outcome", "age >= 41", "outcome") == "answered"
    assert ask(book, "public but the outcome", UNTREATED, "outcome") == "CV-D004"


def test_at_outcome_level_a_private_column_chooses_no_rows(book):
    private = POLICY(public=["age", "arm"])
    book.register("private id", cv.Budget(10), access_policy=private)
    for where in (MIXED, UNTREATED):
        assert ask(book, "private id", where, "outcome") == "CV-L041"


def test_arms_ask_the_access_policy_first(book):
    data = DATA | {"arm": np.arange(ROWS) % 3}
    several = cv.Study(
        cv.Treatment("arm", arms=(0, 1, 2), reference=0),
        cv.Outcome("y", (0, 1)),
        assignment=cv.Trial(),
        where=MIXED,
    )
    book.register("arms", cv.Budget(10), access_policy=POLICY(public=["arm"]))
    with pytest.raises(cv.CounterveilError, match="CV-L041"):
        cv.arms(data, several, protects="outcome", epsilon=1, ledger=book, dataset="arms")


def test_a_first_request_fixes_its_subset():
    with cv.Session(DATA, study("age >= 40"), budget=cv.Budget(5)) as session:
        session.ate(protects="record", epsilon=1)
        assert session.account().access_policy.subsets == ("age >= 40",)


def test_the_access_policy_of_a_study_lists_its_condition(tmp_path):
    (tmp_path / "study.toml").write_text(study("age >= 40").to_toml())
    policy = said("ledger", "access-policy", "--study", tmp_path / "study.toml", "--protects", "record")
    assert 'subsets = ["age >= 40"]' in policy


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
def clusters_book(tmp_path):
    with cv.open_ledger(tmp_path / "book.db", create=True) as ledger:
        yield ledger


def clusters_ask(
    clusters_book, data, study, access_policy=None, protects="record", question=cv.ate, method="trial"
):
    name = f"account {len(clusters_book.datasets())}"
    clusters_book.register(name, cv.Budget(10), access_policy=access_policy)
    try:
        method = method if protects == "record" else "difference_in_means"
        asked = {"protects": protects, "epsilon": 2} | ({"method": method} if question is cv.ate else {})
        question(data, study, ledger=clusters_book, dataset=name, **asked)
    except cv.CounterveilError as error:
        assert clusters_book.account(name).requests == 0
        return error.code
    return "answered"


def clustered(column, assigned=False):
    return cv.Study(
        "arm",
        cv.Outcome("y", (0, 1)),
        assignment=cv.Trial(),
        clusters=cv.Clusters(column, assigned=assigned),
    )


def panel(*after):
    return cv.Study(
        "arm",
        cv.Change("y", (0, 1), before=[2001], time="year", after=after),
        assignment=cv.Trial(),
        people="id",
    )


ACCESS_POLICY = {"person": "id"}


@pytest.mark.parametrize("assigned", [False, True])
@pytest.mark.parametrize("access_policy", [None, POLICY(), POLICY(clusters=["site"])])
def test_a_cluster_column_is_chosen_by_the_access_policy(clusters_book, assigned, access_policy):
    found = {
        clusters_ask(clusters_book, CLUSTERED, clustered(name, assigned), access_policy)
        for name in ("diagnosis", "ward")
    }
    assert found == {"CV-L082"}


@pytest.mark.parametrize(
    ("access_policy", "assigned", "code"),
    [
        (POLICY(clusters=["diagnosis"]), False, "answered"),
        (POLICY(clusters=["diagnosis"]), True, "CV-L082"),
        (POLICY(public=["diagnosis"]), True, "CV-L082"),
        (POLICY(public=["diagnosis", "arm"]), True, "answered"),
        (POLICY(assigned_clusters=["diagnosis"]), True, "answered"),
        (POLICY(assigned_clusters=["diagnosis"]), False, "answered"),
    ],
)
def test_listed_clusters_are_answered(clusters_book, access_policy, assigned, code):
    assert clusters_ask(clusters_book, CLUSTERED, clustered("diagnosis", assigned), access_policy) == code


@pytest.mark.parametrize(
    "access_policy", [None, POLICY(**ACCESS_POLICY), POLICY(subsets=["year > 2000"], **ACCESS_POLICY)]
)
def test_periods_that_differ_in_who_has_rows_get_the_same_refusal(clusters_book, access_policy):
    asked = [clusters_ask(clusters_book, PANEL, panel(year), access_policy) for year in (2002, 2003)]
    assert asked == ["CV-L080", "CV-L080"]
    asked = clusters_ask(clusters_book, PANEL, panel(2002, 2003), access_policy, question=cv.event_study)
    assert asked == "CV-L080"


def test_listed_periods_are_answered_and_no_others(clusters_book):
    listed = POLICY(subsets=["year is each of [2001, 2003]"], **ACCESS_POLICY)
    assert clusters_ask(clusters_book, PANEL, panel(2003), listed) == "answered"
    assert clusters_ask(clusters_book, PANEL, panel(2002), listed) == "CV-L080"


@pytest.mark.parametrize("study", [panel(2003), clustered("diagnosis"), clustered("ward")])
def test_an_account_without_an_access_policy_takes_none_at_outcome_level_either(clusters_book, study):
    data = PANEL if study.person is not None else CLUSTERED
    assert clusters_ask(clusters_book, data, study, protects="outcome") == "CV-L090"
    shown = study.public_columns(Unit.OUTCOME)
    public = POLICY(public=shown, **(ACCESS_POLICY if study.person is not None else {}))
    assert clusters_ask(clusters_book, data, study, public, protects="outcome") == "answered"


@pytest.mark.parametrize("study", [panel(2003), clustered("diagnosis", True), clustered("ward")])
def test_the_access_policy_that_is_drafted_permits_the_study(clusters_book, study):
    from counterveil.session import drafted_access_policy

    data = PANEL if study.person is not None else CLUSTERED
    drafted = drafted_access_policy(study, Unit.RECORD)
    assert cv.drafting.AccessPolicy.from_dict(drafted.to_dict()) == drafted
    assert clusters_ask(clusters_book, data, study, drafted) == "answered"


@pytest.mark.parametrize(
    ("public", "code"), [(["arm", "year"], "CV-L080"), (["arm", "year", "id"], "answered")]
)
def test_how_many_people_a_subset_has_is_shown_only_where_their_column_is_public(clusters_book, public, code):
    study = cv.Study("arm", cv.Outcome("y", (0, 1)), assignment=cv.Trial(), people="id", where="year > 2002")
    assert clusters_ask(clusters_book, PANEL, study, POLICY(public=public, **ACCESS_POLICY)) == code
