"""E15: what one site of three may send, and what becomes of the study; mutated documents meet a code."""

import json
import logging
from math import inf

import pytest
from tests.attack.federation.conftest import QUESTIONS
from tests.thinned import examples, thinned
from tools.fuzzing.messages import run

from counterveil.errors import CounterveilError
from counterveil.federation.coordinator import pooled, states
from counterveil.federation.judging import SetAsideError, judged
from counterveil.federation.messages import Reply


def state_of(world, name):
    return {each.site: each.state for each in states(world.study)}[name]


def names_in(effect):
    return [site.name for site in effect.sites]


@pytest.mark.parametrize("estimate", thinned([5, -5, 1.9, 1e300], 1.9, 1e300))
def test_an_effect_that_no_outcome_allows_is_not_pooled(world, forged, estimate):
    said = world.run(West=forged(estimate=estimate))
    effect = pooled(world.study)
    assert names_in(effect) == ["North", "South"]
    assert "set aside" in state_of(world, "West")
    assert any("West: set aside" in line for line in said)
    assert abs(estimate) > 1e100 or "beyond what the declared outcome" in state_of(world, "West")
    assert effect.not_covered[0].sites == ("West",)
    assert -1 <= effect.estimate <= 1


# Fields of the answer that would give a site more weight than it has.
FLATTERY = {
    "variance": {
        "uncertainty__variance": 1e-12,
        "uncertainty__variance_cap": 1e-12,
        "uncertainty__variance_noise": None,
    },
    "sensitivity": {
        "uncertainty__noise": {"mechanism": "staircase", "sensitivity": "1/1000000000", "epsilon": "1"}
    },
    "epsilon": {"uncertainty__noise": {"mechanism": "staircase", "sensitivity": "1/200", "epsilon": "1000"}},
    "no noise": {"uncertainty__noise": None, "uncertainty__variance": 1e-12},
    "rows": {"details__rows": 10**9, "details__treated": 5 * 10**8, "details__control": 5 * 10**8},
}
# Fields that say that it answered another question.
OTHERS = {
    "treatment": "another",
    "outcome": "another",
    "estimand": "ATT",
    "level": 0.5,
    "limits": [-100, 100],
    "guarantee__epsilon": "50",
    "guarantee__proof": "asymptotic",
    "spent": {"epsilon": "1/2", "delta": "0"},
    "estimate": "0.1",
    "details": [],
}


@pytest.mark.parametrize("field", thinned(FLATTERY, "variance", "rows"))
def test_a_forged_uncertainty_does_not_take_the_average_over(world, forged, field):
    world.run(West=forged(**FLATTERY[field]))
    weights = {site.name: site.weight for site in pooled(world.study).sites}
    assert weights.get("West", 0) <= 0.5 + 1e-9


def test_a_claim_of_no_variance_within_the_rules_takes_no_more_than_a_share(world, forged):
    world.run(West=forged(uncertainty__variance=0.0))
    for method in ("ivw", "mvagg", "all", "random_effects"):
        weights = {site.name: site.weight for site in pooled(world.study, method).sites}
        # Three sites of one size: no weight follows what a site says of its own variance.
        assert weights["West"] == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize("field", thinned(OTHERS, "treatment", "limits", "guarantee__epsilon", "details"))
def test_an_answer_to_something_else_sets_that_site_aside_and_not_the_study(world, forged, field):
    world.run(West=forged(**{field: OTHERS[field]}))
    assert names_in(pooled(world.study)) == ["North", "South"]
    assert state_of(world, "West").startswith("set aside, CV-F041")


def test_a_copied_reply_sets_the_copy_aside(world):
    taken = {}

    def remember(facts):
        taken.update(facts["result"])
        return json.dumps(facts)

    world.run(North=remember, West=lambda facts: json.dumps(facts | {"result": dict(taken)}))
    assert names_in(pooled(world.study)) == ["North", "South"]
    assert "copy" in state_of(world, "West")


def test_a_reply_of_an_earlier_round_is_no_answer_to_a_later_one(world):
    earlier = {}

    def remember(facts):
        earlier.update(facts)
        return json.dumps(facts)

    world.run(West=remember)
    world.study.renew("West")
    said = world.run(
        West=lambda facts: json.dumps(
            facts | {"result": facts["result"]} | {"request_id": earlier["request_id"]}
        )
    )
    assert "West: sent a message that is not an answer to this request" in said
    assert names_in(pooled(world.study)) == ["North", "South"]


@pytest.mark.parametrize(
    "number", thinned(["1e999999999", "9" * 5000 + "/7", "1/0", "nan"], "1e999999999", "nan")
)
def test_a_number_that_would_take_for_ever_does_not(world, forged, number):
    noise = {"mechanism": "staircase", "sensitivity": number, "epsilon": "1"}
    world.run(West=forged(uncertainty__noise=noise, guarantee__epsilon=number))
    assert names_in(pooled(world.study)) == ["North", "South"]


def test_deep_and_endless_documents_are_no_answers(world, forged):
    for hostile in ("[" * 200_000, '{"a":' * 5000, "9" * 20_000_000, json.dumps({"estimate": inf}), "\ud800"):
        world.run(West=lambda _, hostile=hostile: hostile)
        assert names_in(pooled(world.study)) == ["North", "South"]


def test_escapes_do_not_reach_the_screen(world, forged, capsys):
    clear = "\x1b[2J\x1b[31mall is well"
    said = world.run(West=forged(method=clear, details__law=clear, not_covered=[clear], condition=clear))
    effect = pooled(world.study)
    shown = (
        "".join(said)
        + str(effect)
        + json.dumps(effect.to_dict())
        + "".join(each.state for each in states(world.study))
    )
    assert "\x1b" not in shown
    assert "all is well" not in shown


def test_too_few_valid_answers_lose_nothing_that_was_paid_for(world, forged):
    world.run(West=forged(estimate=5), South=forged(treatment="other"))
    with pytest.raises(CounterveilError, match="CV-F020") as caught:
        pooled(world.study)
    assert "West (set aside" in caught.value.got
    assert "South (set aside" in caught.value.got
    kept = sorted(path.stem for path in (world.path / "study" / "replies").glob("*.json"))
    assert kept == ["North", "South", "West"]


def test_a_broken_file_of_a_reply_sets_that_site_aside(world):
    world.run()
    (world.path / "study" / "replies" / "West.json").write_text('{"request_id": "x", "result"')
    assert names_in(pooled(world.study)) == ["North", "South"]
    assert "damaged" in state_of(world, "West")


# What a site may say of an answer of several effects, by the field that it says it in.
ROWS = {
    "arms": "means__1__known",
    "weighted arms": "means__1__known",
    "groups": "groups__0__known",
    "groups of pairs": "groups__0__known",
    "outcomes": "released__0__numbers",
    "outcomes of records": "released__0__numbers",
}
OF_ROWS = {
    "variance": {
        "uncertainty__variance": 1e-12,
        "uncertainty__variance_cap": 1e-12,
        "uncertainty__variance_noise": None,
    },
    "negative variance": {"uncertainty__variance": -1e6},
    "sensitivity": {"uncertainty__noise__sensitivity": "1/1000000000"},
    "epsilon": {"uncertainty__noise__epsilon": "1000"},
    "no noise": {"uncertainty__noise": None},
    "other noise": {"uncertainty__noise": {"mechanism": "gaussian", "sensitivity": "1/100000000", "mu": "1"}},
    "for ever": {"uncertainty__noise__sensitivity": "1e999999999"},
    "bias": {"uncertainty__bias": 1e3},
    "far": {"estimate": 7.0},
    "farther": {"estimate": 1e300},
    "limits": {"limits": [-100, 100]},
    "not a number": {"estimate": "0.1"},
}
OF_KINDS = {
    "arms": [{"means__1__name": "d"}, {"means__1__size": 10**6}, {"means__0__size_sd": 1.0}],
    "groups": [
        {"groups__0__name": "sex=2"},
        {"by": ["y"]},
        {"left_out": ["all is well"]},
        {"groups__1__size": 1e9},
    ],
    "groups of records": [
        {"groups__0__known__one__size_sd": 1e-6},
        {"groups__0__known__other__total_sd": 1e-9},
        {"groups__0__known__one__limit": 100.0},
        {"groups__0__known__one__size": 1e9},
        {"groups__0__known__one__offset": 50.0},
        {"groups__0__known__one__total": "inf"},
        {"groups__0__known__one__least": 0.0},
    ],
    "outcomes": [
        {"released__0__outcome": "z"},
        {"measure": "nnt"},
        {"released__0__numbers__uncertainty__noise__dimension": "1"},
        {"released__1__arm": "b"},
    ],
    "survival": [
        {"tables__noise_sd": 1e-6},
        {"tables__numbers__0__0": 1e6},
        {"tables__totals": [1e6, 1e6]},
        {"tables__edges": [0.0, 1.0, 2.0, 3.0, 24.0]},
        {"tables__cut": 2},
        {"tables__heavy": False},
        {"tables__inflation": 1e-3},
        {"tables__design": [1e-3, 1e-3]},
        {"tables__causes": ["all is well"]},
        {"merged_strata": {"sex": [["all is well"]]}},
        {"tables__numbers": []},
    ],
    "survival of records": [{"tables__shares": [0.5, 0.5]}, {"tables__form": "sums"}],
    "moments": [
        {"noise_sd": [[1e-9] * 4] * 4},
        {"columns__0": "all is well"},
        {"basis__1__1": 1e9},
        {"basis": [[1, 0, 0, 0]] * 4},
        {"matrix__0__0": 50.0},
        {"matrix": [[1e9] * 4] * 4},
        {"matrix__0__1": "nan"},
        {"groups": [["sex", ["y"]]]},
    ],
    "moments of outcomes": [{"noise_sd": [[0.0] * 4] * 4}, {"noise_sd__0__0": -1.0}],
}
OF_ALL = [
    {"treatment": "another"},
    {"outcome": "another"},
    {"level": 0.5},
    {"guarantee__epsilon": "50"},
    {"guarantee__proof": "asymptotic"},
    {"spent": {"epsilon": "1/2", "delta": "0"}},
    {"details": []},
    {"kind": "Result"},
    {"version": 99},
    {"not_covered": ["all is well"]},
]


def lies_of(question):
    row = ROWS.get(question)
    own = (
        [{f"{row}__{name}": value for name, value in lie.items()} for lie in OF_ROWS.values()] if row else []
    )
    return [*own, *OF_KINDS.get(question, []), *OF_ALL]


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_lie_in_an_answer_of_several_effects_is_pooled(paper, forged, question):
    told = paper(question)
    request, missed = told.study.request("West"), []
    for lie in lies_of(question):
        try:
            reply = Reply.from_text(forged(**lie)(json.loads(told.texts["West"])))
            judged(request, reply, None, None)
        except (SetAsideError, CounterveilError):
            continue
        missed.append(lie)
    assert missed == []
    assert told.run() == dict.fromkeys(("North", "South", "West"), "answered")


@pytest.mark.parametrize("question", thinned(QUESTIONS, "arms", "groups", "outcomes", "survival", "moments"))
def test_a_hostile_table_costs_its_own_place_alone(paper, forged, question):
    told = paper(question)
    state = told.run(West=forged(**lies_of(question)[0]))["West"]
    assert state.startswith("set aside, CV-F041")
    found = pooled(told.study)
    assert [one.name for one in found.answers] == ["North", "South"]
    assert found.not_covered[0].sites == ("West",)
    copied = json.loads(told.texts["North"])["result"]
    assert "copy" in told.run(West=lambda facts: json.dumps(facts | {"result": copied}))["West"]


def test_more_rows_than_there_are_take_no_more_than_half_of_the_moments(paper, forged):
    told = paper("moments")
    assert told.run(West=forged(rows=10**9))["West"] == "answered"
    found = pooled(told.study)
    assert max(one.weight for one in found.answers) <= 0.5 + 1e-9
    assert found.rows <= 4 * 800


@pytest.mark.parametrize("seed", thinned([1, 2, 3], 1))
def test_every_mutated_document_meets_an_answer_or_a_code(seed):
    assert run(examples(40, 100), seed) == []


def test_a_run_leaves_the_loggers_of_the_process_as_they_were():
    run(1, 0)
    assert logging.getLogger("counterveil").level == logging.NOTSET
