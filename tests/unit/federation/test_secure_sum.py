"""Sites whose parts are added up under masks: the answer of all rows, and what happens when a site misbehaves."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from tools.loose_study import study_of

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
from counterveil.federation.messages import OTHER_SUM, SUMMED, UNSUITABLE, Reply
from counterveil.federation.setup import make_study
from counterveil.federation.study_files import StudyFolder
from counterveil.federation.sum_round import run_sum
from counterveil.questions.pooling.documents import computed_facts
from counterveil.questions.pooling.reading import rows_of
from counterveil.settings import Trial

NAMES = ("North", "South", "West")
QUESTION = {"method": "trial", "protects": "record", "epsilon": "1", "settings": {"adjustment": "none"}}
RECORD = {"protects": "record", "epsilon": "1"}
DECLARED = {"covariates": {"sex": cv.Binary()}, "treated": 1, "control": 0, "randomised": True}
TIMES = study_of("arm", "score", event="sex", horizon=1, grid=4, **DECLARED | {"covariates": {}})
SCORES = study_of("arm", "score", (0, 1), **DECLARED)
# What adds up beside a trial.
KINDS = {
    "survival": (TIMES, RECORD | {"question": "survival", "method": "kaplan_meier"}),
    "groups": (SCORES, RECORD | {"question": "groups", "method": "arms", "options": {"by": "sex"}}),
    "moments": (
        SCORES,
        RECORD
        | {"question": "moments", "method": "moments", "epsilon": "40"}
        | {"options": {"robust": ["score ~ arm"]}},
    ),
}
DELTA = {"delta": "1e-6"}
KINDS |= {f"{name}, delta": (study, question | DELTA) for name, (study, question) in KINDS.items()}
KINDS["trial, delta"] = SCORES, QUESTION | DELTA
OUTCOME = {"protects": "outcome", "epsilon": "1"}
KINDS["difference, outcome"] = SCORES, OUTCOME | {"method": "difference_in_means"}
KINDS["survival, outcome"] = TIMES, OUTCOME | {"question": "survival", "method": "kaplan_meier"}


class Hours:
    """A clock that moves when somebody sleeps; one second short of the sites' own."""

    def __init__(self):
        self.at = 999.0

    def sleep(self, seconds):
        self.at += seconds


@pytest.fixture
def asked(request, trial):
    """The declaration, the question and the columns: of a trial, or of one of `KINDS`."""
    if not hasattr(request, "param"):
        return trial.study, QUESTION, {name: column.tolist() for name, column in trial.frame.items()}
    rng = np.random.default_rng(8)
    columns = {
        "arm": rng.integers(0, 2, 400),
        "score": rng.random(400).round(3),
        "sex": rng.integers(0, 2, 400),
    }
    return *KINDS[request.param], {name: column.tolist() for name, column in columns.items()}


@pytest.fixture
def sites(tmp_path, asked, new_site):
    """Three sites that hold the rows between them and know each other's keys."""
    declared, question, frame = asked
    columns, found = [*frame.values()], {}
    policy = {"estimators": [question["method"]], "questions": [question.get("question", "ate")]}
    policy |= {"protects": [question["protects"]], "study_epsilon": question["epsilon"]}
    delta = question.get("delta", "0")
    policy |= {"max_delta": delta}
    for name, rows in zip(NAMES, np.array_split(np.arange(len(columns[0])), 3), strict=True):
        path = tmp_path / f"{name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(frame)
            writer.writerows([[column[row] for column in columns] for row in rows])
        found[name] = new_site(name, int(question["epsilon"]), path, declared, delta=delta, **policy)
    for site in found.values():
        (site.file.folder / "peers").mkdir()
        for name in NAMES:
            key = (found[name].file.keys / "node.pub").read_bytes()
            (site.file.folder / "peers" / f"{name}.pub").write_bytes(key)
    return found


@pytest.fixture
def study(tmp_path, asked, sites):
    document = {"id": "s1", "address": "127.0.0.1:9092", "deadline": 100, "retry": 10, "quorum": 2}
    document |= {"aggregation": "secure", "question": asked[1], "sites": {name: {} for name in NAMES}}
    make_study(tmp_path / "study", document, asked[0], {})
    made = StudyFolder(tmp_path / "study")
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


@pytest.mark.slow
@pytest.mark.parametrize("asked", KINDS, indirect=True)
def test_tables_and_moments_add_up_with_a_site_that_drops_out_and_one_that_repeats(
    run, study, sites, asked, budget_spent
):
    """The answer is about all rows, with one noise; who comes back sends what it sent, and pays once."""
    away = [2]

    def south(text):
        away[0] -= bool(json.loads(text)["step"]["totals"])
        return "silence" if away[0] == 0 else sites["South"].answer(text)

    def west(text):
        # Every part is computed twice, as if the first had been lost.
        first = sites["West"].answer(text)
        assert sites["West"].answer(text) == first
        return first

    def north(text):
        # A lie about what sums are computed with, in an answer that has all sums right.
        reply = json.loads(sites["North"].answer(text))
        answer = reply["result"] or {}
        if "tables" in answer:
            answer["tables"]["noise_sd"] *= 1.5
        if "basis" in answer:
            answer["basis"][1][1] *= 1.5
        return json.dumps(reply)

    run(North=north, South=south, West=west)
    result = pooled(study)
    honest = next(each.result for each in states(study) if each.site == "South")
    assert computed_facts(result.to_dict()) == computed_facts(honest.to_dict())
    assert rows_of(result) == 400
    assert result.details["mechanism"] in SUMMED
    assert "session/summing.proof.md" in result.guarantee.pages
    assert "one noise for 3 sites" in result.guarantee.remarks[0]
    epsilon = int(asked[1]["epsilon"])
    assert {budget_spent(site).spent.epsilon for site in sites.values()} == {epsilon}
    frame = asked[2]
    kind = asked[1].get("question", "ate")
    given = {"by": "sex", "method": "arms"} if kind == "groups" else {}
    if kind == "ate":
        given |= {"method": asked[1]["method"]} | (
            {"settings": Trial("none")} if "settings" in asked[1] else {}
        )
    given |= {"protects": asked[1]["protects"], "epsilon": epsilon, "delta": asked[1].get("delta", 0)}
    alone = getattr(cv, kind)(frame, asked[0], **given)
    if kind == "moments":
        assert result.regress("score ~ arm", cov_type="HC1").coefficient("arm").std_error.total > 0
        result, alone = (one.regress("score ~ arm + sex") for one in (result, alone))
    for own, other in zip(result.tidy(), alone.tidy(), strict=True):
        assert abs(own["estimate"] - other["estimate"]) <= 6 * (own["se_noise"] + other["se_noise"])


@pytest.mark.slow
@pytest.mark.parametrize("asked", KINDS, indirect=True)
@pytest.mark.parametrize("lie", ["garbage", "bound", "copy"])
def test_a_liar_about_tables_and_moments_opens_nothing(run, study, sites, asked, lie):
    test_a_part_that_is_none_opens_nothing(run, study, sites, lie, None)


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
    if budget_spent is not None:
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
    # A coordinator that asks for what is no sum is refused by the site, whatever its own file says.
    for settings in ({}, {"adjustment": "covariates"}):
        other = replace(question, request_id="r9", ask=replace(question.ask, settings=settings))
        assert Reply.from_text(sites["North"].answer(sum_request(other, Step()))).refusal == UNSUITABLE


def test_what_does_not_add_up_is_not_asked(new_study):
    hc1 = {"question": "moments", "method": "moments", "options": {"robust": ["y ~ treated"]}}
    with pytest.raises(CounterveilError, match="CV-P600"):
        new_study("North", "South", question=RECORD | hc1)
    for question, more in (
        ({"method": "doubly_robust"}, {}),
        ({"protects": "treatment and outcome", "method": "auto", "settings": {}}, {}),
        ({"protects": "outcome", "method": "weighting", "settings": {}}, {}),
        ({}, {"colluding": 2}),
        ({}, {"colluding": 0}),
        ({}, {"aggregation": "sealed"}),
    ):
        with pytest.raises(CounterveilError, match="CV-P600"):
            new_study("North", "South", **{"aggregation": "secure", "question": QUESTION | question} | more)
