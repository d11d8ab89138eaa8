"""What a coordinator and a site may send in a secure sum, for every kind of sum: no charge, no part and no answer."""

import json
import os
from collections import Counter
from dataclasses import replace

import pytest
from tests.thinned import thinned
from tools.fuzzing.messages import SUMS, charged, heard, sum_world

import counterveil as cv
from counterveil.federation.masking import (
    MODULUS,
    Step,
    new_key,
    public_key,
    read_numbers,
    read_request,
    sum_request,
    total_of,
)
from counterveil.federation.messages import DAMAGED_LEDGER, FAILED, Reply

KINDS = thinned(range(len(SUMS)), 1)


def of(member, **facts):
    return replace(member, **facts)


# Lists that a coordinator may make up; a site must know every member and mask for no other list.
LISTS = {
    "one fewer than collude": lambda north, south, west: (north,),
    "twice the same": lambda north, south, west: (north, south, south),
    "without the site": lambda north, south, west: (south, west),
    "a site of its own": lambda north, south, west: (north, south, of(west, site="East")),
    "another's key": lambda north, south, west: (north, south, of(west, key=public_key(new_key()))),
    "the site's key": lambda north, south, west: (of(north, key=south.key), south, west),
    "more rows elsewhere": lambda north, south, west: (north, south, of(west, rows=10**9)),
    "more rows here": lambda north, south, west: (of(north, rows=10**9), south, west),
    "another request": lambda north, south, west: (north, south, of(west, request_id="r2")),
    "no signature": lambda north, south, west: (north, south, of(west, signature="00")),
    "another's signature": lambda north, south, west: (north, south, of(west, signature=south.signature)),
}
# Questions that a coordinator may put in the place of the one that was asked, under the same id or another.
QUESTIONS = {
    "more epsilon": {"epsilon": "80"},
    "a larger delta": {"delta": "1e-3"},
    "noise of one site": {"mechanism": "laplace"},
    "another level": {"protects": "outcome"},
    "what does not add up": {"question": "ate", "method": "doubly_robust", "options": {}, "settings": {}},
    "a model": {
        "question": "ate",
        "method": "trial",
        "options": {},
        "settings": {"adjustment": "covariates"},
    },
}


def refused(site, text):
    """Return the code of the refusal of a text, which is no accident."""
    reply = Reply.from_text(site.answer(text))
    assert reply.refusal != FAILED
    return reply.refusal


@pytest.mark.parametrize("kind", KINDS)
def test_no_list_and_no_question_of_a_coordinator_s_own_is_masked_or_charged(kind):
    world = sum_world(os.getpid(), kind, False)
    site, before = world.sites["North"], charged(world)
    question, step = read_request(next(text for name, text, reply in world.said if not reply))
    for name, lie in LISTS.items():
        assert refused(site, sum_request(question, replace(step, members=lie(*step.members)))), name
    for colluding in (3, 100):
        assert refused(site, sum_request(question, replace(step, colluding=colluding)))
    for name, lie in QUESTIONS.items():
        other = replace(question, ask=replace(question.ask, **lie))
        if other == question:
            continue
        # A new request for more is the steward's to refuse.
        for asked in (other, *([replace(other, request_id="r9")] if "epsilon" not in lie else [])):
            for told in (Step(), step):
                assert refused(site, sum_request(asked, told)), name
    assert refused(site, question.to_text())
    assert refused(site, sum_request(replace(question, site="South"), step))
    assert charged(world) == before
    assert all("epsilon 0," in spent for spent in before)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_that_a_coordinator_makes_up_draw_nothing_again(kind):
    """A site charges once, and a release is drawn once, whatever sums it is told."""
    world = sum_world.__wrapped__(os.getpid(), kind, False)
    site = world.sites["North"]
    question, step = read_request(next(text for name, text, reply in world.said if not reply))
    said = world.ask(step)
    if not drawn(site):
        # Numbers that are public come first, and cost nothing.
        assert all("epsilon 0," in spent for spent in charged(world))
        told = {said[0]["summed"]["name"]: total_of(read_numbers(one["summed"], "numbers") for one in said)}
        step = replace(step, totals=told)
        said = world.ask(step)
    first, count = said[0]["summed"]["name"], len(said[0]["summed"]["numbers"])
    assert drawn(site)[first] == 1
    for numbers in ((), (1,), (0,) * 19_999, (MODULUS - 1,) * count, (-MODULUS // 2,) * count, (1,) * count):
        for totals in ({first: numbers}, {first: numbers, "all is well": (1,)}, {"all is well": (1,)}):
            text = sum_request(question, replace(step, totals=step.totals | totals))
            assert Reply.from_text(site.answer(text)).refusal != FAILED, (len(numbers), totals.keys())
    assert {*drawn(site).values()} == {1}
    assert charged(world)[0].startswith("epsilon 8, delta ")


@pytest.mark.parametrize("kind", thinned(range(len(SUMS)), 2))
def test_a_ledger_restored_in_mid_sum_sends_no_part_and_no_key_outlives_the_sum(kind):
    """Two draws under the same masks would differ by their noise alone, for one charge."""
    world = sum_world.__wrapped__(os.getpid(), kind, False)
    site, drawings = world.sites["North"], 0
    question, step = read_request(next(text for name, text, reply in world.said if not reply))
    keys = site.file.answers / "summed"
    (key,) = keys.iterdir()
    private = key.read_text()
    while True:
        older, count = ledger_of(site), sum(drawn(site).values())
        said = world.ask(step)
        if "summed" not in said[0]:
            break
        newer = ledger_of(site)
        if sum(drawn(site).values()) > count:
            drawings += 1
            put_back(site, older)
            assert refused(site, sum_request(question, step)) == DAMAGED_LEDGER
            put_back(site, newer)
            assert world.ask(step) == said
        told = {said[0]["summed"]["name"]: total_of(read_numbers(one["summed"], "numbers") for one in said)}
        step = replace(step, totals=step.totals | told)
    assert drawings
    assert [*keys.iterdir()] == []
    # As if the site had stopped between keeping its answer and removing the key.
    key.write_text(private)
    assert world.ask(step) == said
    assert [*keys.iterdir()] == []


def ledger_of(site):
    """Return the files of a site's ledger with its checkpoint."""
    return {path: path.read_bytes() for path in site.file.folder.glob("ledger.db*")}


def put_back(site, files):
    for path in site.file.folder.glob("ledger.db*"):
        path.unlink()
    for path, content in files.items():
        path.write_bytes(content)
        path.chmod(0o600)


def drawn(site):
    with cv.open_ledger(site.file.ledger) as ledger:
        return Counter(entry.facts["name"] for entry in ledger.entries() if entry.kind == "release")


# What a site may send in place of its part; what is no part is passed over, and what is one adds up to nothing.
PARTS = {
    "noise": lambda said: {"numbers": ["7" * 32] * len(said["numbers"])},
    "nothing": lambda said: {"numbers": []},
    "one number more": lambda said: {"numbers": [*said["numbers"], "1"]},
    "below zero": lambda said: {"numbers": ["-1"] * len(said["numbers"])},
    "no number": lambda said: {"numbers": ["all is well"] * len(said["numbers"])},
    "a text": lambda said: {"numbers": "7"},
    "too many": lambda said: {"numbers": ["1"] * 30_000},
    "a small bound": lambda said: {"bound": "2"},
    "a large bound": lambda said: {"bound": "f" * 32},
    "no bound": lambda said: {"bound": "0"},
    "another name": lambda said: {"name": "all_is_well"},
    "an escape": lambda said: {"name": "\x1b[2Jall is well"},
    "another context": lambda said: {"context": "0" * 64},
    "a key": lambda said: {"key": "0" * 64},
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_part_that_a_site_makes_up_opens_a_sum_or_stops_the_coordinator(kind):
    world = sum_world(os.getpid(), kind, True)
    for at in (1, len(world.steps) - 2):
        replies = world.replies(at)
        for name, lie in PARTS.items():
            facts = json.loads(replies["West"])
            facts["result"]["summed"] |= lie(facts["result"]["summed"])
            told, found = heard(world, at, replies | {"West": json.dumps(facts)})
            assert found is None, name
            assert "added up" not in "".join(told), name
            assert "all is well" not in "".join(told)
        early = json.loads(replies["West"]) | {
            "result": json.loads(world.replies(-1 % len(world.steps))["West"])["result"]
        }
        assert heard(world, at, replies | {"West": json.dumps(early)})[1] is None
        assert heard(world, at, replies | {"West": replies["South"]})[1] is None
    # Those who tell the truth are not delayed by anything but silence.
    assert "added up" in "".join(heard(world, 1, world.replies(1))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_no_offer_that_a_site_makes_up_is_on_the_list(kind):
    world = sum_world(os.getpid(), kind, True)
    replies = world.replies(0)
    other = json.loads(replies["South"])["result"]["summed"]
    for lie in (
        {"rows": 10**9},
        {"rows": 0},
        {"rows": True},
        {"key": "0" * 63},
        {"key": public_key(new_key())},
        {"signature": ""},
        {"signature": "00" * 40},
        other,
    ):
        facts = json.loads(replies["West"])
        facts["result"]["summed"] |= lie
        told, found = heard(world, 0, replies | {"West": json.dumps(facts)})
        assert found is None
        assert not any("added up" in line for line in told)
        assert any("2 sites take part" in line for line in told), lie


@pytest.mark.parametrize("kind", KINDS)
def test_one_liar_about_the_answer_is_outvoted(kind):
    world = sum_world(os.getpid(), kind, True)
    last = len(world.steps) - 1
    replies = world.replies(last)
    honest = heard(world, last, replies)[1].stored()
    for lie in ({"result": {}}, {"result": None, "refusal": "CV-F004"}, {"head": None}, {"site": "North"}):
        text = json.dumps(json.loads(replies["West"]) | lie)
        assert heard(world, last, replies | {"West": text})[1].stored()["details"] == honest["details"]
