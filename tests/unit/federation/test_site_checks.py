"""Checks of a site that look alike from outside: each is shown to decide where nothing else does."""

import pytest

import counterveil as cv
from counterveil.federation.messages import Ask, Reply, SiteRequest

STUDY = cv.Study("t", "y", (0, 1), {"sex": cv.Binary()}, control=0)


@pytest.fixture
def two_strata(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [f"{k % 2},{(k * 7 % 10) / 10},{k % 4 // 2},{k}" for k in range(200)]
    path.write_text("t,y,sex,id\n" + "\n".join(rows) + "\n")
    return path


def reply(site, study_id, ask):
    request = SiteRequest(study_id, "r1", "North", STUDY.to_dict(), ask, 2000.0)
    return Reply.from_text(site.answer(request.to_text()))


def test_an_order_is_refused_where_the_rest_of_the_question_is_not(new_site, two_strata):
    site = new_site(data=two_strata, study=STUDY, estimators=["stratified"])
    ordered = Ask("stratified", "outcome", "1/2", settings={"order": "id"})
    assert reply(site, "a", ordered).refusal == "CV-F013"
    assert reply(site, "a", Ask("stratified", "outcome", "1/2")).ok


def test_what_a_study_spent_is_not_counted_for_one_whose_name_it_begins_with(new_site, two_strata):
    site = new_site(data=two_strata, study=STUDY, epsilon=10)
    whole = Ask("difference_in_means", "outcome", "2")
    assert reply(site, "heart-2", whole).ok
    assert reply(site, "heart", whole).ok
    assert reply(site, "heart-2", Ask("difference_in_means", "outcome", "1/100")).refusal == "CV-F008"
    later = SiteRequest("heart", "r2", "North", STUDY.to_dict(), whole, 2000.0)
    assert Reply.from_text(site.answer(later.to_text())).refusal == "CV-F003"
