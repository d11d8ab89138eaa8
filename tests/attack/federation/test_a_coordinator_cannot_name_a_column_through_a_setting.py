"""E14: a refused setting, spelled so that a parser of text finds it again, told whether a private column is whole."""

import json

import pytest

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
