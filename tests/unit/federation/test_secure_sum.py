"""Sites whose parts are added up under masks: the answer of all rows, and what happens when a site misbehaves."""

import csv
import json

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.federation.coordinator import Clock, pooled, states
from counterveil.federation.masking import (
    KeySeal,
    Member,
    Step,
    masked,
    new_key,
    public_key,
    read_request,
    sum_request,
    total_of,
)
from counterveil.federation.messages import OTHER_SUM, UNSUITABLE, Reply
from counterveil.federation.sum_round import run_sum

NAMES = ("North", "South", "West")
QUESTION = {"method": "trial", "protects": "record", "epsilon": "1", "settings": {"adjustment": "none"}}


class Hours:
    """A clock that moves when somebody sleeps; one second short of the sites' own."""

    def __init__(self):
        self.at = 999.0

    def sleep(self, seconds):
        self.at += seconds


@pytest.fixture
def sites(tmp_path, trial, new_site):
    """Three sites that hold the trial's rows between them and know each other's keys."""
    columns, found = [column.tolist() for column in trial.frame.values()], {}
    for name, rows in zip(NAMES, np.array_split(np.arange(len(columns[0])), 3), strict=True):
        path = tmp_path / f"{name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(trial.frame)
            writer.writerows([[column[row] for column in columns] for row in rows])
        found[name] = new_site(name, data=path, estimators=["trial"], protects=["record"])
    for site in found.values():
        (site.file.folder / "peers").mkdir()
        for name in NAMES:
            key = (found[name].file.keys / "node.pub").read_bytes()
            (site.file.folder / "peers" / f"{name}.pub").write_bytes(key)
    return found


@pytest.fixture
def study(new_study, sites):
    made = new_study(*NAMES, aggregation="secure", quorum=2, question=QUESTION)
    for name, site in sites.items():
        (made.path / "sites" / f"{name}.pub").write_bytes((site.file.keys / "node.pub").read_bytes())
    return made


@pytest.fixture
def run(study, sites, pigeons):
    """Runs the study; functions given by name answer in place of a site. Returns what was sent to each site."""

    def go(**instead):
        time = Hours()
        engine = pigeons({name: site.answer for name, site in sites.items()} | instead)
        run_sum(study, engine, lambda _: None, Clock(lambda: time.at, time.sleep))
        return engine.sent

    return go


def said(text):
    return (json.loads(text)["result"] or {}).get("summed", {})


def changed(text, **facts):
    reply = json.loads(text)
    reply["result"]["summed"] |= facts
    return json.dumps(reply)


def test_the_sum_is_one_answer_about_all_rows_that_every_site_paid_once(run, study, sites, budget_spent):
    def west(text):
        reply = json.loads(sites["West"].answer(text))
        if "estimate" in (reply["result"] or {}):
            reply["result"]["estimate"] += 0.01
        return json.dumps(reply)

    sent = run(West=west)
    result = pooled(study)
    assert result.details["rows"] == 400
    assert result.uncertainty.noise.to_dict()["sites"] == "3"
    assert "federation/masking.proof.md" in result.guarantee.pages
    assert abs(result.estimate - 0.2) < 1
    assert {budget_spent(site).spent.epsilon for site in sites.values()} == {1}
    # Who lies about the answer is outvoted by those who computed it.
    found = {each.site: each.result.estimate for each in states(study)}
    assert result.estimate == found["North"] == found["South"] != found["West"]
    # A finished site sends its answer to whatever step of the sum comes again.
    assert "estimate" in json.loads(sites["North"].answer(sent["North"][1]))["result"]


def test_no_ledger_shows_a_site_s_own_numbers(run, sites):
    run()
    for site in sites.values():
        with cv.open_ledger(site.file.ledger) as ledger:
            stored = [entry.facts["values"] for entry in ledger.entries() if entry.kind == "release"]
        assert stored
        # One text for all numbers of a release, as long for every site, which reads as no number.
        assert {len(texts) for texts in stored} == {1}
        assert not any("/" in text for texts in stored for text in texts)
    seal = KeySeal(new_key())
    closed = [seal.close("a", numbers) for numbers in (["1/2", "0/1"], ["-ffffff/400000", "3/4"])]
    assert len({len(text) for text in closed}) == 1
    assert seal.open("a", closed[1]) == ["-ffffff/400000", "3/4"]
    for name, other in (("b", seal), ("a", KeySeal(new_key()))):
        with pytest.raises(CounterveilError, match="CV-F500"):
            other.open(name, closed[0])


def test_masks_cancel_among_those_who_agree_and_nowhere_else():
    private = {name: new_key() for name in NAMES}
    members = [Member(name, "r", public_key(key), 1) for name, key in private.items()]
    numbers = {"North": [5, -7], "South": [0, 2**90], "West": [-1, 3]}
    parts = [masked(numbers[name], private[name], name, members, b"one") for name in NAMES]
    assert total_of(parts) == (4, 2**90 - 4)
    assert all(min(part) > 2**90 for part in parts)
    other = masked(numbers["West"], private["West"], "West", members, b"another")
    assert max(map(abs, total_of([*parts[:2], other]))) > 2**100


@pytest.mark.slow
def test_a_site_that_is_away_at_the_start_is_left_out_and_named(run, study):
    run(West=lambda _: "silence")
    result = pooled(study)
    assert result.details["rows"] == 267
    assert result.not_covered[0].sites == ("West",)


@pytest.mark.slow
def test_a_site_that_drops_out_later_costs_time_and_nothing_else(run, study, sites, budget_spent):
    def until_the_second_sum(text):
        return "silence" if json.loads(text)["step"]["totals"] else sites["West"].answer(text)

    run(West=until_the_second_sum)
    with pytest.raises(CounterveilError, match="CV-F501"):
        pooled(study)
    run()
    assert pooled(study).details["rows"] == 400
    assert {budget_spent(site).spent.epsilon for site in sites.values()} == {1}


SLOW = [pytest.param(lie, marks=pytest.mark.slow) for lie in ("old", "bound", "copy")]


@pytest.mark.parametrize("lie", ["garbage", *SLOW])
def test_a_part_that_is_none_opens_nothing(run, study, sites, lie, budget_spent):
    kept = {}

    def north(text):
        kept["North"] = sites["North"].answer(text)
        return kept["North"]

    def west(text):
        answer = sites["West"].answer(text)
        if "numbers" not in said(answer):
            return answer
        first = kept.setdefault("first", answer)
        numbers = said(answer)["numbers"]
        return {
            "garbage": changed(answer, numbers=["7" * 32] * len(numbers)),
            "old": first if first != answer else answer,
            "bound": changed(answer, bound="1"),
            "copy": changed(answer, numbers=said(kept["North"])["numbers"]),
        }[lie]

    run(North=north, West=west)
    with pytest.raises(CounterveilError, match="CV-F501"):
        pooled(study)
    assert all(budget_spent(site).spent.epsilon == 1 for site in sites.values())


def test_a_site_masks_for_one_list_of_sites_whose_keys_it_knows(run, study, sites):
    sent = run(
        West=lambda text: "silence" if json.loads(text)["step"]["members"] else sites["West"].answer(text)
    )
    question, first = read_request(sent["North"][1])

    def refused(**other):
        step = Step(**{"members": first.members, "colluding": 1, "totals": {}} | other)
        return Reply.from_text(sites["North"].answer(sum_request(question, step))).refusal

    north, south, west = first.members
    assert refused() is None
    # Asked for again, a masked part is the same to the last digit.
    assert sites["North"].answer(sent["North"][1]) == sites["North"].answer(sent["North"][1])
    assert refused(members=(north, south)) == OTHER_SUM
    assert refused(colluding=2) == OTHER_SUM
    mine = Member("West", west.request_id, public_key(new_key()), west.rows, west.signature)
    assert refused(members=(north, south, mine)) == OTHER_SUM
    assert Reply.from_text(sites["North"].answer(question.to_text())).refusal == UNSUITABLE


def test_what_does_not_add_up_is_not_asked(new_study):
    for question, more in (
        ({"method": "doubly_robust"}, {}),
        ({"delta": "1e-6"}, {}),
        ({}, {"colluding": 2}),
        ({}, {"colluding": 0}),
        ({}, {"aggregation": "sealed"}),
    ):
        with pytest.raises(CounterveilError, match="CV-P600"):
            new_study("North", "South", **{"aggregation": "secure", "question": QUESTION | question} | more)
