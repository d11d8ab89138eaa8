"""E15: what one site of three may send, and what becomes of the study: the other two are pooled, and it says so."""

import json
from math import inf

import pytest
from tests.thinned import thinned

from counterveil.errors import CounterveilError
from counterveil.federation.coordinator import pooled, states


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
