"""Every page of the console, from rows to a verified ledger: drafts, people, and what waits at a site."""

import json
import re
import tomllib
from fractions import Fraction

import pytest
from tests.attack.federation.conftest import Paper
from tests.command_line import as_json
from tests.unit.console.visitor import COLUMNS, HOST, PLACE, SECRET, STUDY, code_of, words
from tests.unit.federation.conftest import authority, new_site, new_study, records, trial  # noqa: F401

import counterveil as cv
from counterveil.accounting import Uses
from counterveil.federation.messages import Ask, SiteRequest
from counterveil.privacy import Budget, Charge, LaplaceEvent, Unit
from counterveil.report.text import rounded


def test_from_rows_to_a_result_and_its_files(steward, folder):
    first = steward.get("/")
    assert "Not registered" in words(first)
    assert "Register trial" in words(first)
    # Enough epsilon that noise decides nothing below.
    key = steward.register(epsilon="300")
    assert "epsilon 300 left of epsilon 300" in words(steward.get("/"))
    checked = steward.get(f"/studies/primary/check?data={key}")
    assert "fits the access policy and the rows" in words(checked)
    page = steward.confirm(key, request="primary", epsilon="100")
    said = words(page)
    assert "Left now: epsilon 300. Left afterwards: epsilon 200." in said
    assert "every person's treatment 'treated' and all covariates" in said
    answered = steward.post(page.text, f"/data/{key}/spend")
    assert answered.status_code == 200
    assert "Effect of treated on score" in words(answered)
    with cv.open_ledger(folder / "ledger.db", inspect=True) as book:
        (entry,) = book.newest("trial", 5)
        assert entry.request_id == "primary"
        assert entry.facts["asked_by"] == "ada"
    for name in ("report.html", "write-up.txt", "table.tex", "effects.csv", "result.json"):
        file = steward.get(f"{answered.url}/{name}")
        assert file.status_code == 200
        assert file.headers["content-disposition"] == f'attachment; filename="{name}"'
    found = json.loads(steward.get(f"{answered.url}/result.json").text)
    assert 0 < found["estimate"] < 60
    assert f"{rounded(found['estimate'], found['std_error']['total'])} (95% interval" in words(answered)


def test_the_command_that_is_shown_returns_the_same_answer(steward, folder):
    answered = steward.ask(steward.register())
    said = words(answered)
    command = said[said.index("counterveil estimate") : said.index("Back to trial")].split()[1:]
    places = {
        "DATA": folder / "trial.csv",
        "STUDY": folder / "studies/primary.toml",
        "ledger.db": folder / "ledger.db",
    }
    found = as_json(*(places.get(word, word) for word in command))
    assert found["estimate"] == json.loads(steward.get(f"{answered.url}/result.json").text)["estimate"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"question": "groups", "by-site": "each", "method": "difference_in_means"}, "site=north"),
        ({"question": "ate", "protects": "record", "method": "trial"}, "one row"),
        ({"question": "cate", "protects": "record", "delta": "1e-6", "method": "t_learner"}, "as a function"),
    ],
)
def test_other_questions_have_a_page_too(steward, typed, said):
    key = steward.register(epsilon="100", delta="1e-5")
    answered = steward.ask(key, epsilon="20", **typed)
    assert answered.status_code == 200, words(answered)
    assert code_of(answered) is None
    assert said.lower() in words(answered).lower()
    assert steward.get(f"{answered.url}/report.html").status_code == 200
    assert steward.get(f"{answered.url}/effects.csv").status_code == 200


def test_a_plan_has_every_level_and_method_side_by_side_and_points_for_the_slider(steward):
    key = steward.register()
    typed = {"rows": "60", "epsilons": "0.5 2", "draws": "1", "data": key}
    found = steward.post("/studies/primary/plan", "/studies/primary/plan", **typed)
    assert found.status_code == 200
    lines = re.findall(
        r"data-points='([^']+)' data-left=\"([\d.]+)\"[^>]*><td>([^<]+)</td>.*?>([^<]+)</th>", found.text
    )
    assert {("outcomes only", "matching"), ("the whole record", "trial")} <= {line[2:] for line in lines}
    points = next(json.loads(line[0]) for line in lines if line[3] == "difference in means")
    assert [point[0] for point in points] == [0.5, 2.0]
    assert points[0][1] > points[1][1]
    assert {line[1] for line in lines} == {"3.0"}
    with_sign = steward.post("/studies/primary/plan", "/studies/primary/plan", epsilons="1 " * 13)
    assert code_of(with_sign) == "CV-W004"


def test_a_study_is_written_saved_and_read(steward, folder):
    made = steward.post("/studies/new", "/studies/new", name="second")
    assert made.status_code == 200
    assert "3 open questions" in words(made)
    saved = steward.fill("/studies/second", "/studies/second", COLUMNS, assignment="trial")
    assert "Effect of treated on score, 2 covariates. Nothing is open." in words(saved)
    assert cv.Study.from_toml(folder / "studies" / "second.toml") == cv.Study.from_dict(tomllib.loads(STUDY))
    assert (folder / "studies" / "second.toml").stat().st_mode & 0o077 == 0
    # What cannot be saved is shown as it was sent.
    twice = {"age": {"role": "treatment", "low": "17"}}
    for change, more in (
        (twice, ""),
        ({}, "treatment = "),
        ({}, 'treatment = "age"'),
        ({}, "x = 1979-05-27"),
    ):
        broken = steward.fill("/studies/second", "/studies/second", change, more=more)
        assert (broken.status_code, code_of(broken)) == (400, "CV-W004")
        assert ('value="17"' in broken.text) == bool(change)
    assert code_of(steward.post("/studies/new", "/studies/new", name="second")) == "CV-W010"
    assert code_of(steward.post("/studies/new", "/studies/new", name="../out")) == "CV-W010"


def test_a_text_that_another_program_changed_is_not_overwritten(steward, folder):
    form = steward.form("/studies/primary", "/studies/primary")
    (folder / "studies" / "primary.toml").write_text(STUDY + "# mine\n")
    found = steward.client.post("/place/studies/primary", data=form | {"more": "grid = 3"})
    assert (found.status_code, code_of(found)) == (409, "CV-W008")
    assert "# mine" in (folder / "studies" / "primary.toml").read_text()


def test_a_ledger_is_listed_by_pages_and_verified(steward, folder):
    key = steward.register()
    price = Charge(Budget("1/100"), (LaplaceEvent(Fraction(1, 100)),))
    uses = Uses(Unit.OUTCOME, "ate", "difference_in_means", "treated", "score")
    with cv.open_ledger(folder / "ledger.db") as book:
        for number in range(30):
            kept = book.reserve("trial", f"r{number}", price, uses=uses, fingerprint="f", description={})
            book.settle(kept, "{}")
    place = steward.get("/ledgers").text.split("/ledgers/")[1][:12]
    newest = steward.get(f"/ledgers/{place}")
    assert "r29" in words(newest)
    assert "Older" in words(newest)
    assert "Newer" not in words(newest)
    older = steward.get(f"/ledgers/{place}?before=12")
    assert "Newer" in words(older)
    assert "r29" not in words(older)
    assert "61 entries verified" in words(
        steward.post(f"/ledgers/{place}", f"/ledgers/{place}/verify", full="1")
    )
    wrong = steward.post(f"/ledgers/{place}", f"/ledgers/{place}/verify", head="0" * 64)
    assert "First problem" in words(wrong)
    assert "r29" in words(steward.get(f"/data/{key}"))
    assert "no page here" in words(steward.get(f"/data/{key}/requests/2"))


def test_a_request_without_an_answer_says_that_it_goes_on(steward, folder):
    key = steward.register()
    study = cv.Study.from_toml(folder / "studies" / "primary.toml")
    with cv.Session(folder / "trial.csv", study, ledger=folder / "ledger.db") as session:
        session.ledger.settle = None  # what a crash before settling leaves
        with pytest.raises(TypeError):
            session.ate(protects="outcome", epsilon=1, method="difference_in_means", request_id="lost")
    assert "charged and has no answer" in words(steward.get(f"/data/{key}/requests/2"))
    assert "goes on where it stopped" in words(steward.confirm(key, request="lost"))


def test_a_ledger_that_cannot_be_read_is_named(steward, folder):
    steward.register()
    (folder / "other.db").write_bytes(b"no ledger")
    assert "other.db cannot be read" in words(steward.get("/"))
    assert "Cannot be charged" in words(steward.get("/ledgers"))


def test_settings_trimming_and_rules_are_asked_for_in_the_form(steward):
    key = steward.register()
    page = steward.confirm(key, method="matching", settings="neighbours = 2 ; limit=3", trim="0.1")
    assert page.status_code == 200
    assert "neighbours = 2 ; limit=3" in words(page)
    rule = {"question": "policy_value", "protects": "record", "method": "auto"}
    page = steward.confirm(key, **rule, policy="age = 20, 50; site = north", cost="1")
    assert page.status_code == 200
    assert "value of a treatment rule" in words(page)


WRONG = [
    ({"method": "matching", "settings": "neighbors=2"}, "CV-P020"),
    ({"method": "matching", "settings": "neighbours=0"}, "CV-P025"),
    ({"trim": "0.7"}, "CV-P669"),
    ({"trim": "0.1", "protects": "record", "method": "auto"}, "CV-P668"),
    ({"question": "overlap", "protects": "treatment and outcome"}, "CV-P018"),
    ({"question": "policy_value", "protects": "record", "method": "auto"}, "CV-W004"),
    ({"question": "policy_value", "protects": "record", "policy": "ward = 1"}, "CV-W004"),
    ({"question": "policy_value", "protects": "record", "policy": "age = 1"}, "CV-W004"),
    ({"question": "policy_value", "protects": "record", "policy": "age = a, b"}, "CV-W004"),
    ({"question": "policy_value", "protects": "record", "policy": "site = east"}, "CV-W004"),
]


def test_what_is_wrong_in_these_fields_is_refused_before_the_price(steward):
    key = steward.register()
    for typed, code in WRONG:
        assert code_of(steward.confirm(key, **typed)) == code, typed


CODEBOOK = """\
name,kind,low,high,labels
score,range,0,100,
age,range,18,90,
site,categories,,,north|south
"""


def test_a_draft_places_every_column_and_lists_what_is_open(steward, folder):
    (folder / "codebooks").mkdir()
    (folder / "codebooks" / "book.csv").write_text(CODEBOOK)
    typed = {"name": "second", "source": "trial", "codebook": "codebooks/book.csv"}
    made = steward.post("/studies/new", "/studies/new", **typed)
    assert made.status_code == 200, words(made)
    text = (folder / "studies" / "second.toml").read_text()
    assert "[ignored]" in text
    assert "age = { range = [18, 90] }" in text
    assert "3 open questions" in words(made)
    assert SECRET not in made.text
    roles = {"treated": {"role": "treatment"}, "score": {"role": "outcome"}}
    saved = steward.fill("/studies/second", "/studies/second", roles, assignment="trial", described="1")
    assert "Effect of treated on score, 2 covariates. Nothing is open." in words(saved)


def test_a_draft_takes_only_what_is_in_the_folder(steward, analyst, folder):
    steward.register()
    (folder / "other.csv").write_text(CODEBOOK)
    outside = {"name": "new", "codebook": "../../etc/passwd"}
    assert code_of(steward.post("/studies/new", "/studies/new", **outside)) == "CV-W004"
    assert code_of(steward.post("/studies/new", "/studies/new", name="new", source="absent")) == "CV-W004"
    # A file that lies beside the rows may be rows that are not registered yet.
    assert "other.csv" in steward.get("/studies/new").text
    assert "other.csv" not in analyst.get("/studies/new").text
    assert (
        code_of(analyst.post("/studies/new", "/studies/new", name="new", codebook="other.csv")) == "CV-W004"
    )


def test_a_check_finds_everything_at_once_and_shows_labels_to_the_steward_alone(steward, analyst, folder):
    access_policy = 'public = ["age", "site", "treated", "ward", "absent"]\n'
    key = steward.register(access_policy=access_policy)
    wrong = STUDY.replace('"north", "south"', '"north", "east"') + 'ward = { categories = ["a", "b"] }\n'
    (folder / "studies" / "primary.toml").write_text(wrong + "absent = { range = [0, 1] }\n")
    found = words(steward.get(f"/studies/primary/check?data={key}"))
    assert all(f"'{name}'" in found for name in ("site", "ward", "absent"))
    assert SECRET not in found
    shown = words(steward.get(f"/studies/primary/check?data={key}&labels=1"))
    assert f"{SECRET}: 60" in shown
    kept = words(analyst.get(f"/studies/primary/check?data={key}&labels=1"))
    assert "The study fits the access policy." in kept
    assert SECRET not in kept
    assert "'absent'" not in kept


def test_proposals_are_limited(steward, analyst, folder):
    steward.register()
    place = folder / "studies" / "proposed"
    place.mkdir()
    for number in range(100):
        (place / f"p{number}.toml").write_text("")
    assert code_of(analyst.post("/studies/new", "/studies/new", name="more")) == "CV-W004"


def test_nothing_is_ticked_beforehand(steward):
    """What an account permits for good is the steward's to tick."""
    page = steward.get("/register?name=trial").text
    assert 'type="checkbox"' in page
    assert " checked" not in page
    found = steward.post(page, "/register/confirm", epsilon="3")
    assert (found.status_code, code_of(found)) == (400, "CV-W004")
    assert "at least one level of protection" in words(found)


def test_what_was_typed_into_a_registration_is_kept(steward):
    """By a wrong number, which is told beside its field, and by changing what would be registered."""
    typed = {
        "epsilon": "3",
        "delta": "1e-6",
        "protects-record": "1",
        "method-matching": "1",
        "note": "board 7",
    }
    typed |= {"max_epsilon": "2", "public-age": "1", "any_outcome": "1"}
    page = "/register?name=trial"
    for field, value, code in (
        ("epsilon", "-1", "CV-P004"),
        ("epsilon", "two", "CV-P003"),
        ("delta", "7", "CV-P005"),
        ("record_epsilon", "x", "CV-P003"),
        ("max_epsilon", "0", "CV-P004"),
    ):
        wanted = typed | {field: value}
        found = steward.post(page, "/register/confirm", **wanted)
        assert (found.status_code, code_of(found)) == (400, code), field
        assert f'<input id="f-{field}"' in found.text
        beside = found.text.partition(f'<input id="f-{field}"')[2].partition("</div>")[0]
        assert 'aria-invalid="true"' in beside
        assert code in beside
        assert found.text.count("aria-invalid") == 1
        assert steward.form(found.text, "/register/confirm").items() >= wanted.items(), field
    confirmed = steward.post(page, "/register/confirm", **typed)
    assert "This cannot be undone" in confirmed.text
    again = steward.post(confirmed.text, "/register/change")
    form = steward.form(again.text, "/register/confirm")
    assert form.items() >= typed.items()
    assert "protects-outcome" not in form
    assert "<details open>" in again.text


def test_what_was_typed_into_a_request_is_kept(steward):
    key = steward.register()
    typed = {"epsilon": "0.5", "request": "first", "level": "0.9"}
    for field, value, code in (
        ("epsilon", "-1", "CV-P004"),
        ("epsilon", "1/0", "CV-P003"),
        ("delta", "2", "CV-P005"),
        ("level", "95", "CV-P015"),
        ("trim", "lots", "CV-W004"),
    ):
        wanted = typed | {field: value}
        found = steward.confirm(key, **wanted)
        assert (found.status_code, code_of(found)) == (400, code), field
        beside = found.text.partition(f'<input id="f-{field}"')[2].partition("</div>")[0]
        assert code in beside, field
        form = steward.form(found.text, f"/data/{key}/confirm")
        assert form.items() >= wanted.items(), field
    too_much = steward.confirm(key, **typed | {"epsilon": "30"})
    assert (too_much.status_code, code_of(too_much)) == (409, "CV-B001")
    assert (
        steward.form(too_much.text, f"/data/{key}/confirm").items()
        >= {"epsilon": "30", "request": "first"}.items()
    )


def test_what_was_typed_into_a_plan_or_a_new_study_is_kept(steward):
    for field, value in (("rows", "many"), ("epsilons", "1 -2"), ("draws", "51"), ("sd", "x")):
        typed = {"rows": "200", "draws": "1", "epsilons": "1", "effect": "2"} | {field: value}
        found = steward.post("/studies/primary/plan", "/studies/primary/plan", **typed)
        assert found.status_code == 400
        assert "CV-" in found.text.partition(f'<input id="f-{field}"')[2].partition("</div>")[0], field
        assert steward.form(found.text, "/studies/primary/plan").items() >= typed.items()
    found = steward.post("/studies/new", "/studies/new", name="../x", source="trial")
    assert code_of(found) == "CV-W010"
    assert steward.form(found.text, "/studies/new").items() >= {"name": "../x", "source": "trial"}.items()


def test_what_becomes_public_for_good_is_ticked_before_the_first_request(steward, folder):
    with cv.open_ledger(folder / "ledger.db", create=True) as book:
        book.register("trial", cv.Budget(3))
    key = re.search(r"/data/([0-9a-f]{12})\"", steward.get("/").text).group(1)
    page = steward.confirm(key, protects="outcome")
    assert "These columns become public, for good: treated, age, site." in words(page)
    assert " checked" not in page.text
    refused = steward.post(page.text, f"/data/{key}/spend")
    assert (refused.status_code, code_of(refused)) == (400, "CV-W004")
    with cv.open_ledger(folder / "ledger.db") as book:
        assert book.account("trial").requests == 0
    assert steward.post(page.text, f"/data/{key}/spend", fixed="1").status_code == 200
    later = steward.confirm(key, protects="outcome")
    assert "for good" not in words(later)
    assert steward.post(later.text, f"/data/{key}/spend").status_code == 200


def link_in(page):
    return re.search(rf"{HOST}{PLACE}/enter\?token=[\w-]+", page.text).group()


def test_a_link_is_renewed_and_a_session_revoked(steward, console):
    bob = console("bob", steward=False)
    made = steward.post("/people", "/people", name="eve", role="analyst")
    first = link_in(made)
    assert "eve, analyst A link is not used yet; 0 sessions open." in words(made)
    second = link_in(steward.post("/people", "/people", name="eve", role="analyst", do="renew"))
    bob.client.cookies.clear()
    assert code_of(bob.client.get(first)) == "CV-W001"
    assert "eve, analyst" in words(bob.client.get(second))
    revoked = steward.post("/people", "/people", name="eve", role="analyst", do="revoke")
    assert "eve is signed out everywhere" in words(revoked)
    assert code_of(bob.get("/")) == "CV-W001"
    # The steward signs out instead, and nobody else has that name.
    assert code_of(steward.post("/people", "/people", name="ada", do="revoke")) == "CV-W004"
    assert "New link for ada" in words(steward.post("/people", "/people", name="ada", do="renew"))


@pytest.mark.parametrize("name", ["ada", "Ada", "\uff21da"])
def test_the_steward_s_name_is_no_analyst_s_and_makes_nobody_a_steward(steward, name):
    invited = steward.post("/people", "/people", name=name, role="analyst")
    assert code_of(invited) == "CV-W013"
    assert "enter?token" not in invited.text
    for typed in ({"name": "eve", "role": "steward"}, {"name": "ada", "role": ""}):
        assert code_of(steward.post("/people", "/people", **typed)) == "CV-W004"
    assert words(steward.get("/people")).count("session open") == 1


@pytest.fixture
def waiting(folder, new_site, trial):  # noqa: F811
    """A site in the folder whose steward decides by hand, with one request that waits."""
    site = new_site(approval="by hand")
    ask = Ask(method="difference_in_means", protects="outcome", epsilon="1")
    request = SiteRequest("s1", "r1", "North", trial.study.to_dict(), ask, 2000.0, None)

    def answer():
        return site.answer(request.to_text())

    assert "CV-F006" in answer()
    return answer


def test_the_steward_approves_what_waits(waiting, steward):
    page = steward.get("/federation")
    assert "s1@r1 waiting" in words(page)
    action = page.text.split('action="/place')[2].split('"')[0]
    decided = steward.post(page.text, action, decision="approve")
    assert "s1@r1 approved" in words(decided)
    assert "CV-F006" not in waiting()


def test_the_steward_declines_and_nothing_else_is_a_decision(waiting, steward):
    page = steward.get("/federation").text
    action = page.split('action="/place')[2].split('"')[0]
    assert code_of(steward.post(page, action, decision="perhaps")) == "CV-W004"
    assert code_of(steward.post(page, action, decision="approve", request="s1@other")) == "CV-P605"
    steward.post(page, action, decision="decline")
    assert "CV-F007" in waiting()


def test_an_analyst_sees_no_requests(waiting, analyst):
    assert "s1@r1" not in words(analyst.get("/federation"))


def test_a_coordinator_sees_where_its_sites_stand(new_study, steward):  # noqa: F811
    new_study("North", "South")
    assert "North 1 no answer yet South 1 no answer yet" in words(steward.get("/federation"))


def test_a_steward_chooses_masked_sums_until_sites_are_asked(new_study, steward, analyst):  # noqa: F811
    asked = {"method": "trial", "protects": "record", "epsilon": "1", "settings": {"adjustment": "none"}}
    study = new_study("North", "South", "West", question=asked)
    page = steward.get("/federation")
    assert "rests on a person's own site alone" in words(page)
    assert "<select" not in analyst.get("/federation").text
    action = page.text.split('action="/place')[-1].split('"')[0]
    assert code_of(steward.post(page.text, action, aggregation="secure", colluding="3")) == "CV-P600"
    page = steward.post(page.text, action, aggregation="secure", colluding="2")
    assert "holds against the coordinator and any 2 of them together" in words(page)
    assert type(study)(study.path).study.colluding == 2
    study.request("North")
    assert code_of(steward.post(page.text, action, aggregation="none")) == "CV-F024"
    assert "<select" not in steward.get("/federation").text


def test_a_coordinator_sees_the_pooled_answer_or_why_there_is_none(folder, steward):
    told = Paper(folder / "study", "groups")
    declined = {"result": None, "refusal": "CV-F004", "head": None}
    told.run(North=lambda facts: json.dumps(facts | declined))
    page = words(steward.get("/federation"))
    assert "refused, CV-F004" in page
    assert "Pooled answer" in page
    assert "sex=1" in page
    (told.study.path / "replies" / "West.json").unlink()
    page = words(steward.get("/federation"))
    assert "No pooled answer yet" in page
    assert "CV-F020" in page


UNREADABLE = {
    "latin.csv": "treated,score,caf\xe9\n0,1,2\n".encode("latin-1"),
    "wide.csv": "treated,score,caf\xe9\n0,1,2\n".encode("utf-16"),
    "long.csv": b"treated," + b"x" * 131_073 + b"\n0,1\n",
    "twice.csv": b"treated,treated\n0,1\n",
    "broken.parquet": b"PAR1 this is not it",
}
PAGES = ("/", "/studies", "/studies/new", "/register", "/register?name=trial", "/ledgers", "/studies/primary")


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_listed_as_such_and_stops_nothing_else(steward, analyst, folder, name):
    key = steward.register()
    (folder / name).write_bytes(UNREADABLE[name])
    for path in (*PAGES, f"/data/{key}", f"/data/{key}/ask", f"/studies/primary/check?data={key}"):
        assert steward.get(path).status_code == 200, path
        assert analyst.get(path).status_code in (200, 403), path
    code = {"twice.csv": "CV-D010", "broken.parquet": "CV-D015", "long.csv": "CV-D311"}.get(name, "CV-D310")
    for path in ("/", "/studies/new", "/register"):
        page = steward.get(path)
        said = words(page)
        assert f"{name} cannot be read:" in said, path
        assert code_of(page) == code
        assert "To fix: " in said
        assert name not in words(analyst.get(path))
    # It is not there to be chosen, and a form that names it all the same is refused with the same code.
    assert f'<option value="{name.partition(".")[0]}"' not in steward.get("/studies/new").text
    sent = steward.post("/studies/new", "/studies/new", name="other", source=name.partition(".")[0])
    assert (sent.status_code, code_of(sent)) == (409, code)


def test_rows_of_an_account_that_cannot_be_read_are_said_to_be_so(steward, analyst, folder):
    key = steward.register()
    (folder / "trial.csv").write_bytes((folder / "trial.csv").read_bytes().replace(b"ward", b"w\xe4rd", 1))
    for path in ("/", f"/data/{key}"):
        assert "trial.csv cannot be read" in words(steward.get(path))
        assert "trial.csv" not in words(analyst.get(path))
    assert "Its rows cannot be read" in words(analyst.get("/"))
