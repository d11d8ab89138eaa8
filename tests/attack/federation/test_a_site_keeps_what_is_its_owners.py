"""Older ledgers answer nothing (C10), keys and tokens are their owner's (E16), settings name no column (E14)."""

import json
import os
import shutil
import stat

import pytest

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.federation.messages import QUESTIONS
from counterveil.federation.site import check_site
from counterveil.federation.study_files import StudyFolder


def copy_of(world, name):
    """Keep a copy of everything that belongs to a site's ledger."""
    files = list((world.path / name).glob("ledger.db*"))
    return [(path, path.read_bytes()) for path in files]


def put_back(world, name, copy):
    for path in (world.path / name).glob("ledger.db*"):
        path.unlink()
    for path, content in copy:
        path.write_bytes(content)


def answer(world, name, request_id):
    return json.loads(world.sites[name].answer(world.request(name, request_id)))


def test_a_ledger_that_was_put_back_answers_nothing(world):
    assert answer(world, "North", "a")["result"]
    copy = copy_of(world, "North")
    assert answer(world, "North", "b")["result"]
    assert answer(world, "North", "c")["result"]
    put_back(world, "North", copy)
    # The budget is 3. The ledger knows of one request, the answers of three.
    refused = answer(world, "North", "d")
    assert refused["result"] is None
    assert refused["refusal"] == "CV-F042"
    with pytest.raises(CounterveilError):
        check_site(world.path / "North")


def test_the_coordinator_remembers_a_ledger_whose_answers_went_too(world):
    world.run()
    folder = world.path / "North"
    copy = copy_of(world, "North")
    shutil.copytree(folder / "answers", folder / "older")
    world.study.renew("North")
    world.run()
    put_back(world, "North", copy)
    shutil.rmtree(folder / "answers")
    shutil.move(folder / "older", folder / "answers")
    # The site alone cannot know; the coordinator has seen a later end of its ledger, and sends it with its request.
    world.study.renew("North")
    said = world.run()
    assert any(line.startswith("North: refused, CV-F042") for line in said)


def test_site_run_refuses_what_site_check_finds(world):
    assert answer(world, "North", "a")["result"]
    path = world.path / "North" / "ledger.db"
    content = bytearray(path.read_bytes())
    # In the middle of the answer, which no total is made of.
    content[content.rindex(b"difference in means")] ^= 1
    path.write_bytes(content)
    with pytest.raises(CounterveilError):
        check_site(world.path / "North")


def open_to_others(folder):
    paths = [folder, *folder.rglob("*")]
    return [path.name for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077]


@pytest.fixture
def permissive():
    before = os.umask(0)
    yield
    os.umask(before)


def test_nothing_in_the_folders_can_be_opened_by_others(permissive, world):
    world.run()
    assert open_to_others(world.path / "study") == []
    assert [name for name in open_to_others(world.path / "North") if not name.startswith("ledger")] == []


@pytest.mark.parametrize("name", ["", "keys", "keys/token", "keys/secret", "keys/server.key"])
def test_a_study_whose_secrets_are_open_is_not_run(world, name):
    (world.path / "study" / name).chmod(0o755)
    with pytest.raises(CounterveilError, match="CV-F045"):
        StudyFolder(world.path / "study")


@pytest.mark.parametrize("name", ["", "keys", "keys/node", "keys/secret", "site.toml"])
def test_a_site_whose_secrets_are_open_does_not_run(world, name):
    (world.path / "North" / name).chmod(0o744)
    with pytest.raises(CounterveilError, match="CV-F045"):
        check_site(world.path / "North")


@pytest.mark.federation
def test_the_api_does_not_describe_itself():
    pytest.importorskip("flwr", reason="needs the extra [federation]")
    from counterveil.federation.engines.flower import child

    made = child._without_pages(dict, title="SuperLink API", docs_url="/docs")
    assert made == {"title": "SuperLink API", "docs_url": None, "redoc_url": None, "openapi_url": None}


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
