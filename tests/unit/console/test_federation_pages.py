"""What waits for a site's steward, and what the sites of a study answered."""

import json

import pytest
from tests.attack.federation.conftest import Paper
from tests.unit.console.visitor import code_of, words
from tests.unit.federation.conftest import authority, new_site, new_study, records, trial  # noqa: F401

from counterveil.federation.messages import Ask, SiteRequest


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
