import json

import pytest
from tests.unit.federation.conftest import QUESTION

from counterveil.accounting import Ledger
from counterveil.data import Table
from counterveil.errors import CounterveilError, FederationError
from counterveil.federation.coordinator import Clock, Round, pooled, states
from counterveil.federation.messages import Reply, SiteRequest
from counterveil.federation.site_files import APPROVED
from counterveil.federation.study_files import StudyFolder
from counterveil.questions.pooling.reading import rows_of
from counterveil.session import BaseSession, Gate


class Time:
    """A clock that a round moves by sleeping; `plans` happen when it gets there."""

    def __init__(self, plans=None):
        self.at = 1000.0
        self.plans = dict(plans or {})

    def sleep(self, seconds):
        self.at += seconds
        for moment in [moment for moment in self.plans if moment <= self.at - 1000]:
            self.plans.pop(moment)()

    @property
    def clock(self):
        return Clock(lambda: self.at, self.sleep)


@pytest.fixture
def run_round(pigeons):
    def run(folder, answers, plans=None, engine=None):
        backend = engine or pigeons(answers)
        said = []
        time = Time(plans)
        Round(folder, backend, said.append, time.clock).run()
        return backend, said, time.at - 1000

    return run


def refuses(code):
    def answer(text):
        request = SiteRequest.from_text(text)
        return Reply.to(request, refusal=code).to_text()

    return answer


def silent(_):
    return "silence"


def found(folder):
    return {each.site: each.state for each in states(folder)}


def test_all_answer_and_are_pooled(new_site, new_study, run_round):
    sites = {name: new_site(name) for name in ("North", "South")}
    folder = new_study(*sites)
    backend, said, seconds = run_round(folder, {name: site.answer for name, site in sites.items()})
    assert {name: len(sent) for name, sent in backend.sent.items()} == {"North": 1, "South": 1}
    assert seconds < 1
    assert found(folder) == {"North": "answered", "South": "answered"}
    assert "North: answered" in said
    assert [each.name for each in pooled(folder).sites] == ["North", "South"]


def test_late_dead_and_refusing_sites_are_reported_and_the_rest_is_pooled(new_site, new_study, run_round):
    sites = {name: new_site(name) for name in ("North", "South")}
    folder = new_study("North", "South", "Slow", "Dead", "Poor", quorum=2)
    answers = {name: site.answer for name, site in sites.items()} | {
        "Slow": silent,
        "Poor": refuses("CV-F004"),
    }
    backend, said, seconds = run_round(folder, answers)
    assert 100 <= seconds < 102
    assert found(folder) == {
        "North": "answered",
        "South": "answered",
        "Slow": "no answer in time",
        "Dead": "never connected",
        "Poor": "refused, CV-F004: the site has too little budget left",
    }
    assert "Dead: never connected" in said
    # Asked at 0, 10 and 30 seconds, then at 70: silence is met with patience.
    assert len(backend.sent["Slow"]) == 4
    assert len({SiteRequest.from_text(text).fingerprint() for text in backend.sent["Slow"]}) == 1
    result = pooled(folder)
    assert len(result.sites) == 2
    assert result.not_covered[0].sites == ("Slow", "Dead", "Poor")
    assert result.not_covered[0].states[:2] == ("no answer in time", "never connected")


def test_too_few_answers_are_no_result(new_site, new_study, run_round):
    folder = new_study("North", "South")
    run_round(folder, {"North": new_site().answer, "South": refuses("CV-F009")})
    with pytest.raises(FederationError, match="CV-F020") as caught:
        pooled(folder)
    assert "South (refused, CV-F009" in caught.value.got
    assert caught.value.exit_code == 8


def test_a_second_run_asks_those_missing_under_the_ids_they_had(
    new_site, new_study, run_round, budget_spent, tmp_path
):
    sites = {name: new_site(name) for name in ("North", "South")}
    folder = new_study(*sites)

    def dies(text):
        sites["South"].answer(text)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_round(folder, {"North": sites["North"].answer, "South": dies})
    restarted = StudyFolder(tmp_path / "study")
    run_round(restarted, {name: site.answer for name, site in sites.items()})
    # Both were paid for in the first run, whose coordinator died with the replies in its hands.
    assert all(budget_spent(site).requests == 1 for site in sites.values())
    assert len(pooled(restarted).sites) == 2
    third, _, _ = run_round(restarted, dict.fromkeys(sites, silent))
    assert not third.sent


def test_a_lost_message_is_sent_again_soon(new_site, new_study, run_round):
    south = new_site("South")
    folder = new_study("North", "South")
    lost = [None, None]
    _, _, seconds = run_round(
        folder, {"North": new_site().answer, "South": lambda text: lost.pop() if lost else south.answer(text)}
    )
    assert seconds < 5
    assert found(folder)["South"] == "answered"


def test_approval_is_waited_for(new_site, new_study, run_round, budget_spent):
    north, south = new_site(), new_site("South", approval="by hand")

    def approve():
        (waiting,) = south.records.waiting()
        south.records.decide(waiting.key, APPROVED)

    folder = new_study("North", "South")
    _, said, seconds = run_round(folder, {"North": north.answer, "South": south.answer}, {25: approve})
    assert 25 < seconds < 80
    assert said.count("South: refused, CV-F006: the site's steward has not decided yet") == 1
    assert found(folder)["South"] == "answered"
    assert budget_spent(south).requests == 1


def result_of(site, text):
    return json.loads(site.answer(text))


@pytest.mark.parametrize(
    "forge",
    [
        lambda facts: "MRN 209316574812 has outcome 7.1",
        lambda facts: json.dumps(facts | {"request_id": "another"}),
        lambda facts: json.dumps(facts | {"request": "0" * 64}),
        lambda facts: json.dumps(facts | {"refusal": "MRN 209316574812 has outcome 7.1", "result": None}),
        lambda facts: json.dumps(facts | {"result": facts["result"] | {"estimate": float("nan")}}),
    ],
)
def test_what_is_no_answer_to_the_request_is_not_kept_and_not_quoted(
    new_site, new_study, run_round, forge, capsys
):
    south = new_site("South")
    folder = new_study("North", "South")
    answers = {"North": new_site().answer, "South": lambda text: forge(result_of(south, text))}
    backend, said, seconds = run_round(folder, answers)
    assert folder.reply("South") is None
    assert said.count("South: sent a message that is not an answer to this request") == 3
    # After three of them the site is set aside, long before the deadline.
    assert len(backend.sent["South"]) == 3
    assert seconds < 100
    assert found(folder)["South"].startswith("set aside, CV-F041")
    kept = b"".join(path.read_bytes() for path in folder.path.rglob("*") if path.is_file())
    assert b"209316574812" not in kept + "".join([*said, *capsys.readouterr()]).encode()


def test_a_result_is_not_replaced_by_a_refusal(new_study):
    folder = new_study("North", "South")
    request = folder.request("North")
    folder.keep("North", Reply.to(request, result={"estimate": 1.0}))
    folder.keep("North", Reply.to(request, refusal="CV-F009"))
    assert folder.reply("North").ok


def test_another_question_needs_another_study(new_study, tmp_path):
    folder = new_study("North", "South")
    before = folder.request("North")
    path = tmp_path / "study" / "study.toml"
    path.write_text(path.read_text().replace('epsilon = "1"', 'epsilon = "2"'))
    changed = StudyFolder(tmp_path / "study")
    with pytest.raises(FederationError, match="CV-F024"):
        changed.request("North")
    changed.renew("North")
    assert changed.request("North").request_id != before.request_id


def test_one_run_at_a_time(new_study):
    folder = new_study("North", "South")
    with (
        folder.running(),
        pytest.raises(FederationError, match="CV-F023"),
        StudyFolder(folder.path).running(),
    ):
        pass


@pytest.mark.parametrize(
    "settings",
    [
        {"quorum": 1},
        {"quorum": 3},
        {"deadline": 0},
        {"retry": 10**400},
        {"id": "a b"},
        {"address": "nowhere"},
        {"quorums": 2},
    ],
)
def test_a_study_that_cannot_be_run_is_not_made(new_study, settings, tmp_path):
    with pytest.raises(CounterveilError):
        new_study("North", "South", **settings)
    assert not (tmp_path / "study" / "study.toml").exists()


@pytest.mark.parametrize("question", ["ate", "moments"])
def test_a_coordinator_opens_no_rows_no_ledger_and_no_gate(
    question, new_site, new_study, run_round, monkeypatch
):
    asked = {"ate": {}, "moments": {"question": "moments", "method": "moments", "protects": "record"}}[
        question
    ]
    policy = {"questions": [question], "protects": ["outcome", "record"]}
    policy["estimators"] = [asked.get("method", "difference_in_means")]
    sites = {name: new_site(name, **policy) for name in ("North", "South")}
    folder = new_study(*sites, question=QUESTION | asked)
    kept = {name: site.answer(folder.request(name, 5000.0).to_text()) for name, site in sites.items()}

    def opened(*args, **named):
        raise AssertionError("a coordinator opened what a site holds")

    for kind in (Table, Ledger, Gate, BaseSession):
        monkeypatch.setattr(kind, "__init__", opened)
    run_round(folder, {name: lambda _, text=text: text for name, text in kept.items()})
    assert rows_of(pooled(folder)) == 800
