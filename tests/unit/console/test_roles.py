"""What an analyst sees and may do, and what is the steward's."""

import pytest
from tests.unit.console.visitor import SECRET, STUDY, code_of, words

import counterveil as cv


def test_an_analyst_asks_with_an_accepted_study(steward, analyst, folder):
    key = steward.register()
    answered = analyst.ask(key, request="mine")
    assert answered.status_code == 200
    with cv.open_ledger(folder / "ledger.db", inspect=True) as book:
        assert book.newest("trial", 1)[0].facts["asked_by"] == "bob"


def test_a_proposed_study_is_not_asked_with_until_the_steward_accepts_it(steward, analyst, folder):
    key = steward.register()
    analyst.post("/studies/new", "/studies/new", name="idea")
    analyst.post("/studies/idea?proposed=1", "/studies/idea", text=STUDY)
    assert (folder / "studies" / "proposed" / "idea.toml").exists()
    page = analyst.form(f"/data/{key}/ask", f"/data/{key}/confirm")
    refused = analyst.client.post(f"/place/data/{key}/confirm", data=page | {"study": "idea", "epsilon": "1"})
    assert (refused.status_code, code_of(refused)) == (404, "CV-W007")
    steward.post("/studies/idea?proposed=1", "/studies/idea/accept")
    assert analyst.ask(key, study="idea").status_code == 200
    assert not (folder / "studies" / "proposed" / "idea.toml").exists()


def test_what_was_accepted_is_the_text_that_was_looked_at(steward, analyst, folder):
    steward.register()
    analyst.post("/studies/new", "/studies/new", name="idea")
    analyst.post("/studies/idea?proposed=1", "/studies/idea", text=STUDY)
    form = steward.form("/studies/idea?proposed=1", "/studies/idea/accept")
    analyst.post("/studies/idea?proposed=1", "/studies/idea", text=STUDY.replace("[18, 90]", "[18, 91]"))
    found = steward.client.post("/place/studies/idea/accept", data=form)
    assert code_of(found) == "CV-W008"
    assert not (folder / "studies" / "idea.toml").exists()


@pytest.mark.parametrize(
    "change",
    [
        ('"north", "south"', '"north", "east"'),  # a label that is not declared
        ("[covariates]\n", "[covariates]\nabsent = { range = [0, 1] }\n"),
        ("treated = 1", "treated = 7"),
    ],
)
def test_rows_that_do_not_fit_are_one_code_to_an_analyst(steward, analyst, folder, change):
    steward.register(charter='public = ["age", "site", "treated", "absent"]\n')
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
    assert code_of(analyst.ask(key, epsilon="2")) == "CV-B001"
    assert code_of(analyst.confirm(key, epsilon="-1")) == "CV-P004"
    assert code_of(analyst.confirm(key, method="ipw")) == "CV-P018"


@pytest.mark.parametrize("path", ["/register", "/register?name=trial"])
def test_pages_of_the_steward_are_refused(analyst, path):
    found = analyst.get(path)
    assert (found.status_code, code_of(found)) == (403, "CV-W005")


def test_forms_of_the_steward_are_refused_with_a_token_of_ones_own(steward, analyst, folder):
    key = steward.register()
    for action in ("/register", "/studies/primary", "/studies/primary/accept", "/federation/0123456789ab"):
        # The analyst's own session makes tokens for every action; what is refused is the role.
        token = analyst.token(action)
        found = analyst.client.post(
            f"/place{action}", data={"token": token, "text": "x", "name": "x", "epsilon": "1"}
        )
        assert (found.status_code, code_of(found)) == (403, "CV-W005"), action
    assert (folder / "studies" / "primary.toml").read_text() == STUDY
    assert steward.get(f"/data/{key}").status_code == 200


def test_an_analyst_sees_no_names_of_files_and_no_cells(steward, analyst):
    key = steward.register()
    analyst.ask(key)
    for path in ("/", f"/data/{key}", f"/data/{key}/ask", "/studies", "/ledgers", "/federation"):
        page = analyst.get(path)
        assert page.status_code == 200
        assert "trial.csv" not in page.text
        assert SECRET not in page.text
    assert "trial.csv" in steward.get(f"/data/{key}").text
