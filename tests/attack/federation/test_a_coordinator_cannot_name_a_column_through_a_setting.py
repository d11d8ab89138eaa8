"""E14: a refused setting, spelled so that a parser of text finds it again, told whether a private column is whole."""

import json

import pytest

import counterveil as cv
from counterveil.federation.messages import QUESTIONS

SMUGGLED = "order='id'#"


@pytest.mark.parametrize("name", ["order", SMUGGLED, " order", "order "])
def test_the_setting_is_refused_however_it_is_spelled(world, name):
    site = world.site("East", 9, estimators=["stratified"])
    settings = {"limit": 2, name: "id"}
    facts = json.loads(world.request("North", "r1", method="stratified", settings=settings))
    reply = json.loads(site.answer(json.dumps(facts | {"site": "East"} if "site" in facts else facts)))
    assert reply["result"] is None
    # Refused for what it asks, not for what became of it: nothing was read or spent.
    assert reply["refusal"] in ("CV-F001", "CV-F013")


def test_the_value_of_a_setting_is_not_parsed(world):
    site = world.site("East", 9, estimators=["stratified"])
    settings = {"limit": "2', order='id"}
    facts = json.loads(world.request("North", "r2", method="stratified", settings=settings))
    reply = json.loads(site.answer(json.dumps(facts | {"site": "East"} if "site" in facts else facts)))
    assert reply["refusal"] in ("CV-F001", "CV-F013")


GROUPS, MOMENTS = {"question": "groups"}, {"question": "moments", "method": "moments"}
# What no site answers, whatever its policy allows.
HOSTILE = [
    GROUPS,
    *(
        GROUPS | {"options": {"by": by}}
        for by in ("id", ["sex", "id"], {"sex": ["id"]}, 5, [], {"sex": {}}, None)
    ),
    *(GROUPS | {"options": {"by": "sex", name: 1}} for name in ("where", "data", "ledger", "request_id")),
    GROUPS | {"options": {"by": "sex"}, "measure": "ratio"},
    GROUPS | {"options": {"by": "sex"}, "estimand": "ATT"},
    GROUPS | {"options": {"by": "sex"}, "method": "moments"},
    GROUPS | {"options": {"by": "sex"}, "settings": {"order": "id"}},
    *(
        MOMENTS | {"options": {"terms": terms}}
        for terms in (["id"], ["t:id"], "abc", 1, [["t"]], ["log(id)"])
    ),
    MOMENTS | {"options": {"outcomes": ["id"]}},
    MOMENTS | {"options": {"robust": ["y ~ t"]}},
    MOMENTS | {"method": "difference_in_means"},
    MOMENTS | {"settings": {"strata": ["id"]}},
    {"question": "survival", "method": "kaplan_meier"},
    {"question": "outcomes"},
    {"question": "arms"},
    {"question": "cate"},
    {"question": ["ate"]},
    {"options": {"by": "sex"}},
]


def test_no_question_names_what_is_not_declared_and_nothing_is_charged(world):
    every = ["difference_in_means", "moments", "kaplan_meier"]
    site = world.site("East", 9, estimators=every, questions=[*QUESTIONS])
    for number, ask in enumerate(HOSTILE):
        facts = json.loads(world.request("North", f"h{number}", **ask))
        reply = json.loads(site.answer(json.dumps(facts | {"site": "East"})))
        assert reply["refusal"] in ("CV-F001", "CV-F002", "CV-F013"), ask
    narrow = world.site("South-East", 9)
    facts = json.loads(world.request("North", "r3", **GROUPS, options={"by": "sex"})) | {"site": "South-East"}
    assert json.loads(narrow.answer(json.dumps(facts)))["refusal"] == "CV-F002"
    for each in (site, narrow):
        with cv.open_ledger(each.file.ledger) as ledger:
            assert ledger.account(each.file.dataset).spent.epsilon == 0
    facts = json.loads(world.request("North", "r4", **GROUPS, options={"by": "sex"})) | {"site": "East"}
    assert json.loads(site.answer(json.dumps(facts)))["result"]["kind"] == "GroupsResult"
    with cv.open_ledger(site.file.ledger) as ledger:
        assert ledger.account(site.file.dataset).spent.epsilon == 1
