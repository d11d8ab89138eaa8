"""What an analyst sees and may do, and what is the steward's."""

import re

import pytest
from tests.unit.console.visitor import ACCESS_POLICY, COLUMNS, SECRET, STUDY, code_of, words

import counterveil as cv


def test_an_analyst_asks_with_an_accepted_study(steward, analyst, folder):
    key = steward.register()
    answered = analyst.ask(key, request="mine")
    assert answered.status_code == 200
    with cv.open_ledger(folder / "ledger.db", inspect=True) as book:
        assert book.newest("trial", 1)[0].facts["asked_by"] == "bob"


def propose(analyst, name, more=None):
    """Write a proposal as a table of columns."""
    analyst.post("/studies/new", "/studies/new", name=name, source="trial")
    action = f"/studies/{name}"
    return analyst.fill(f"{action}?proposed=1", action, COLUMNS | (more or {}), assignment="trial")


def test_a_proposed_study_is_not_asked_with_until_the_steward_accepts_it(steward, analyst, folder):
    key = steward.register()
    propose(analyst, "idea")
    assert (folder / "studies" / "proposed" / "idea.toml").exists()
    page = analyst.form(f"/data/{key}/ask", f"/data/{key}/confirm")
    refused = analyst.client.post(f"/place/data/{key}/confirm", data=page | {"study": "idea", "epsilon": "1"})
    assert (refused.status_code, code_of(refused)) == (404, "CV-W007")
    steward.post("/studies/idea?proposed=1", "/studies/idea/accept")
    assert analyst.ask(key, study="idea").status_code == 200
    assert not (folder / "studies" / "proposed" / "idea.toml").exists()


def test_what_was_accepted_is_the_text_that_was_looked_at(steward, analyst, folder):
    steward.register()
    propose(analyst, "idea")
    form = steward.form("/studies/idea?proposed=1", "/studies/idea/accept")
    analyst.fill("/studies/idea?proposed=1", "/studies/idea", {"age": {"high": "91"}})
    found = steward.client.post("/place/studies/idea/accept", data=form)
    assert code_of(found) == "CV-W008"
    assert not (folder / "studies" / "idea.toml").exists()


def test_a_proposal_replaces_an_accepted_study_only_where_the_difference_was_shown(steward, analyst, folder):
    steward.register()
    page = propose(analyst, "primary", {"age": {"role": "covariate", "low": "18", "high": "120"}})
    wider = (folder / "studies" / "proposed" / "primary.toml").read_text()
    assert "Replace" not in words(page)
    form = steward.form("/studies/primary?proposed=1", "/studies/primary/accept")
    # An acceptance that did not look at what it replaces, or looked at an older text.
    for replaces in ("", "0" * 32):
        found = steward.client.post("/place/studies/primary/accept", data=form | {"replaces": replaces})
        assert code_of(found) == "CV-W008"
        assert (folder / "studies" / "primary.toml").read_text() == STUDY
    shown = steward.get("/studies/primary?proposed=1")
    assert "<del>- age = { range = [18, 90] }</del>" in shown.text
    assert "<ins>+ age = { range = [18, 120] }</ins>" in shown.text
    assert "A study of this name was accepted before." in words(shown)
    steward.client.post("/place/studies/primary/accept", data=form)
    assert (folder / "studies" / "primary.toml").read_text() == wider


def options(page, name):
    """Return the values that a choice of a page offers."""
    found = re.search(rf'<select[^>]*name="{name}"[^>]*>(.*?)</select>', page.text, re.S)
    return re.findall(r'<option value="([^"]*)"', found.group(1))


OUTCOME_ONLY = (
    ACCESS_POLICY
    + 'protects = ["outcome"]\nmax_epsilon = 0.5\nmethods = ["difference_in_means", "weighting"]\n'
)


def test_what_an_access_policy_refuses_is_neither_offered_nor_put_to_be_confirmed(steward, analyst):
    key = steward.register(access_policy=OUTCOME_ONLY)
    page = analyst.get(f"/data/{key}/ask")
    assert options(page, "protects") == ["outcome"]
    assert options(page, "method") == ["difference_in_means", "weighting"]
    assert {"overlap", "survival", "arms"}.isdisjoint(options(page, "question"))
    assert "The access policy allows at most 0.5 a request" in words(page)
    for typed, refused in (
        ({"epsilon": "1"}, "CV-L044"),
        ({"protects": "record", "method": "trial"}, "CV-L044"),
        ({"method": "matching"}, "CV-L044"),
        ({"delta": "0.1"}, "CV-B001"),
    ):
        found = analyst.confirm(key, **{"epsilon": "0.5"} | typed)
        assert (found.status_code, code_of(found)) == (409, refused), typed
        assert "/spend" not in found.text
    assert analyst.ask(key, epsilon="0.5").status_code == 200


def test_every_question_that_is_offered_can_be_confirmed(steward):
    key = steward.register(access_policy=OUTCOME_ONLY)
    page = steward.get(f"/data/{key}/ask")
    fields = {"groups": {"by-site": "each"}, "quantiles": {"method": "weighting"}}
    offered = options(page, "question")
    assert "groups" in offered
    # A policy is a file, which this folder has none of.
    for question in {*offered} - {"policy_value"}:
        found = steward.confirm(key, question=question, epsilon="0.5", **fields.get(question, {}))
        assert found.status_code == 200, (question, words(found))


def test_a_study_that_the_access_policy_refuses_is_not_asked_with(steward, folder):
    key = steward.register(access_policy='public = ["age", "treated"]\nprotects = ["outcome"]\n')
    page = steward.get(f"/data/{key}/ask")
    assert "Nothing can be asked with the study primary" in words(page)
    assert code_of(page) == "CV-L041"
    assert "/confirm" not in page.text
    # Another study is, and the page begins with the one that was chosen.
    (folder / "studies" / "second.toml").write_text(
        STUDY.replace("site = { categories", "age2 = { categories")
    )
    (folder / "studies" / "third.toml").write_text(STUDY.partition("site")[0])
    assert "With the study third" in words(steward.get(f"/data/{key}/ask?study=third"))


@pytest.mark.parametrize(
    "change",
    [
        ('"north", "south"', '"north", "east"'),  # a label that is not declared
        ("[covariates]\n", "[covariates]\nabsent = { range = [0, 1] }\n"),
        ('treatment = "treated"', 'treatment = { column = "treated", treated = 7 }'),
    ],
)
def test_rows_that_do_not_fit_are_one_code_to_an_analyst(steward, analyst, folder, change):
    steward.register(access_policy='public = ["age", "site", "treated", "absent"]\n')
    key = steward.get("/").text.split("/data/")[1][:12]
    (folder / "studies" / "primary.toml").write_text(STUDY.replace(*change))
    refused = analyst.ask(key)
    assert (refused.status_code, code_of(refused)) == (409, "CV-W006")
    told = steward.ask(key)
    assert code_of(told).startswith("CV-D")
    # The pages of an analyst are the same, whatever it was that did not fit.
    assert (
        words(refused)
        .partition("Sign out")[2]
        .startswith(" The data could not be used for this request Expected")
    )
    assert analyst.get(f"/studies/primary/check?data={key}").text.count("CV-D") == 0


def test_refusals_that_depend_on_requests_alone_are_told(steward, analyst):
    key = steward.register(epsilon="1")
    assert code_of(analyst.confirm(key, epsilon="2")) == "CV-B001"
    assert code_of(analyst.confirm(key, epsilon="-1")) == "CV-P004"
    assert code_of(analyst.confirm(key, method="trial")) == "CV-P018"


@pytest.mark.parametrize("path", ["/register", "/register?name=trial", "/people"])
def test_pages_of_the_steward_are_refused(analyst, path):
    found = analyst.get(path)
    assert (found.status_code, code_of(found)) == (403, "CV-W005")


def test_forms_of_the_steward_are_refused_with_a_token_of_ones_own(steward, analyst, folder):
    key = steward.register()
    for action in (
        "/register",
        "/register/confirm",
        "/people",
        "/studies/primary",
        "/studies/primary/accept",
        "/federation/0123456789ab",
    ):
        # The analyst's own session makes tokens for every action; what is refused is the role.
        token = analyst.token(action)
        found = analyst.client.post(
            f"/place{action}", data={"token": token, "text": "x", "name": "x", "epsilon": "1"}
        )
        assert (found.status_code, code_of(found)) == (403, "CV-W005"), action
    assert (folder / "studies" / "primary.toml").read_text() == STUDY
    assert steward.get(f"/data/{key}").status_code == 200


def test_a_policy_that_nobody_confirmed_is_not_registered(steward, folder):
    page = steward.post("/register?name=trial", "/register/confirm", epsilon="3", **{"protects-outcome": "1"})
    study = folder / "studies" / "primary.toml"
    study.write_text(STUDY.partition("site")[0])
    found = steward.post(page.text, "/register")
    assert (found.status_code, code_of(found)) == (409, "CV-W008")
    assert not (folder / "ledger.db").exists()


def test_an_analyst_sees_no_names_of_files_and_no_cells(steward, analyst):
    key = steward.register()
    analyst.ask(key)
    for path in ("/", f"/data/{key}", f"/data/{key}/ask", "/studies", "/ledgers", "/federation"):
        page = analyst.get(path)
        assert page.status_code == 200
        assert "trial.csv" not in page.text
        assert SECRET not in page.text
    assert "trial.csv" in steward.get(f"/data/{key}").text
