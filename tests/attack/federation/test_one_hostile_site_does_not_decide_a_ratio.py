"""What one site of three may say of its arms' means, their noise and its size, and what becomes of a pooled ratio."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest

from counterveil.federation.coordinator import pooled, states
from counterveil.federation.judging import SetAsideError, judged
from counterveil.federation.messages import Reply, SiteRequest

FORMS = {
    "apart": {"measure": "ratio"},
    "weighted": {"measure": "odds_ratio", "method": "weighting"},
    "joint": {"measure": "lift", "method": "trial", "protects": "record"},
    "needed": {"measure": "nnt"},
}
# Noise that a mean of 200 outcomes does not have at epsilon 1.
QUIET = {"mechanism": "staircase", "sensitivity": "1/1000000000", "epsilon": "1/2"}
DEAR = {"mechanism": "staircase", "sensitivity": "1/200", "epsilon": "1000"}
WHOLE = {"mechanism": "staircase", "sensitivity": "1/200", "epsilon": "1"}
OTHER = {"mechanism": "gaussian", "sensitivity": "1/200", "mu": "1"}
PAIR = {"mechanism": "laplace_pair", "sensitivity": "1/200", "epsilon": "1", "narrow": "1/300"}
BALL = {"ball_variance": 1.0, "ball_dimensions": 2}
ANY = [
    {"measure": "difference"},
    {"measure": "hazard"},
    {"estimand": "ATC"},
    {"treatment": "another"},
    {"level": 0.5},
    {"guarantee__epsilon": "50"},
    {"spent": {"epsilon": "1/2", "delta": "0"}},
    {"details__rows": 10**13},
    {"details": {}},
    {"surprise": 1},
    {"numbers": None},
    *({name: "BUY SHARES"} for name in ("population", "interval_target", "condition", "assumptions")),
]
ARM = "numbers__known__0__"
LIES = {
    "apart": [
        *({"numbers__values__0": value} for value in (5, -5, 1.9, 1e300, "0.1")),
        *({f"{ARM}noise": noise} for noise in (None, QUIET, DEAR, WHOLE, OTHER, PAIR)),
        *({f"{ARM}{name}": 1e-9} for name in ("extra", "bias", "variance_cap")),
        {f"{ARM}{name}": value for name, value in BALL.items()},
        {f"{ARM}variance": -1.0},
        {f"{ARM}variance": 1.0},
        {f"{ARM}variance": 1e-12, f"{ARM}variance_noise": None},
        {f"{ARM}variance_noise": QUIET},
        {"numbers__range": [0, 2]},
        {"numbers__range": [-1, 1]},
        {"numbers__values": [0.5]},
        {"numbers__known": []},
        *({"numbers__sizes": value} for value in ([200], [1e9, 1e9], [0, 200], [1.0, 1.0])),
        {"details__treated": 100},
        {"details__treated": 100, "details__control": 300},
        {"details__rows": 10**9},
    ],
    "weighted": [
        *({f"{ARM}noise": noise} for noise in (None, QUIET, DEAR, OTHER)),
        *({f"{ARM}{name}": 1e-9} for name in ("extra", "bias")),
        {"numbers__values__1": 40, f"{ARM}variance_cap": 1e9},
        {f"{ARM}variance": 1e90, f"{ARM}variance_cap": 1e90},
        *({"numbers__sizes": sizes} for sizes in ([1e6, 1e6], [0.5, 200], [1e-160, 200])),
        {"details__rows": 10},
    ],
    "joint": [
        *({"numbers__mean": value} for value in (-0.01, 1.01, 1e300)),
        *({"numbers__mean_noise": noise} for noise in (None, QUIET, DEAR)),
        *({"numbers__known__noise": noise} for noise in (None, QUIET, DEAR, OTHER)),
        *({"numbers__share": value} for value in (0.001, 0.0, 1.0, 0.02, 0.9)),
        *({"numbers__share_sd": value} for value in (0.0, 1e-6, 1.0, -1.0)),
        *({"numbers__known__extra": value} for value in (0.0, 1e-12, 1.0)),
        *({"numbers__known__variance_cap": value} for value in (1e-9, 1.0)),
        {"numbers__known__variance": -1.0},
        {"numbers__known__bias": 0.1},
        {"numbers__known__variance_noise": None},
        {"numbers__difference": 5.0},
        {"numbers__rows": 10**6},
        {"numbers__rows": 10**6, "details__rows": 10**6},
    ],
    "needed": [
        *({"numbers__estimate": value} for value in (5, -5, "0.1", 1e300)),
        *({"numbers__uncertainty__noise": noise} for noise in (None, QUIET, DEAR)),
        *({"numbers__limits": value} for value in (None, [-100, 100])),
        {"interval_target": "divided_contrast", "numbers__limits": None},
        {
            "numbers__uncertainty__variance": 0.0,
            "numbers__uncertainty__variance_cap": 0.0,
            "numbers__uncertainty__variance_noise": None,
        },
        {"numbers__uncertainty__bias": 0.5},
        {"details__treated": 100},
    ],
}


@pytest.fixture
def lying(measured, forged):
    """Makes a study in which all sites say what North said, each with lies of its own."""

    def make(lies, **question):
        world = measured(**question)
        true = json.loads(world.sites["North"].answer(world.request("North")))
        for place, name in enumerate(world.sites):
            own = deepcopy(true)
            if "numbers" in own["result"] and "values" in own["result"]["numbers"]:
                own["result"]["numbers"]["values"][0] += place / 1000
            facts = json.loads(forged(**lies.get(name, {}))(own))
            reply = Reply.from_text(json.dumps(facts))
            request = world.study.request(name)
            world.study.keep(name, Reply.to(request, result=reply.result, head=reply.head))
        return world.study

    return make


@pytest.mark.parametrize("form", LIES)
def test_what_does_not_follow_from_the_question_is_set_aside(measured, forged, form):
    world = measured(**FORMS[form])
    request = SiteRequest.from_text(world.request("West"))
    true = json.loads(world.sites["West"].answer(request.to_text()))
    honest = Reply.from_text(json.dumps(true))
    judged(request, honest, None, None)
    believed = []
    for lie in [*LIES[form], *(ANY if form in ("apart", "joint") else ANY[-4:])]:
        facts = json.loads(forged(**lie)(deepcopy(true)))
        try:
            judged(request, replace(honest, result=facts["result"]), None, None)
            believed.append(lie)
        except SetAsideError:
            continue
    assert believed == []


def test_the_others_are_pooled_and_the_result_says_who_is_missing(measured, forged):
    world = measured(**FORMS["apart"])
    said = world.run(West=forged(numbers__values__0=7))
    assert any("West: set aside, CV-F041: its estimate lies beyond" in line for line in said)
    found = pooled(world.study)
    assert found.not_covered[0].sites == ("West",)
    assert "weight_West" not in found.details


def test_lies_within_the_rules_have_a_weight_that_is_limited(lying):
    half = 5 * 10**8
    # As many rows as it likes, noise that fits them, no sampling error, and the largest mean there is.
    noise = {"mechanism": "staircase", "sensitivity": f"1/{half}", "epsilon": "1/2"}
    known = {"noise": noise, "variance": 0.0, "extra": 0.0, "bias": 0.0}
    known |= {"is": "Uncertainty", "ball_variance": 0.0, "ball_dimensions": 0}
    known |= {"variance_cap": 1 / (4 * (half - 1)), "variance_noise": noise | {"sensitivity": f"1/{half**2}"}}
    lie = {"details__rows": 2 * half, "details__treated": half, "details__control": half}
    lie |= {
        "numbers__known": [known, known],
        "numbers__values": [1.0, 0.5],
        "numbers__sizes": [half, half],
    }
    # South says that its means have no sampling error.
    quiet = {f"numbers__known__{arm}__variance": 0.0 for arm in (0, 1)}
    study = lying({"West": lie, "South": quiet}, measure="ratio")
    results = {each.site: each.result for each in states(study)}
    honest = results["North"].means.values[0]
    for method in ("mvagg", "all"):
        found = pooled(study, method)
        weights = [found.details[f"weight_{name}"] for name in results]
        assert weights == pytest.approx([0.25, 0.25, 0.5])
        assert abs(found.means.values[0] - honest) <= 0.5 * abs(1 - honest) + 0.001


def test_words_of_one_site_do_not_stop_the_others(lying):
    study = lying({"West": {"population": {"name": "KeptByTrim", "trim": "x"}}}, measure="ratio")
    assert (
        "of itself that the requested method does not say"
        in {one.site: one.state for one in states(study)}["West"]
    )
    assert "weight_West" not in pooled(study).details


def test_a_copy_is_set_aside_and_two_ratios_of_zero_are_no_copies(lying):
    below = {"numbers__values__0": -0.001, "numbers__known__0__variance": 0.0}
    study = lying(
        {"North": below, "South": below | {"numbers__values__1": 0.4}, "West": below}, measure="ratio"
    )
    told = {each.site: each.state for each in states(study)}
    assert told["South"] == "answered"
    assert "copy" in told["West"]


def test_a_copy_under_the_name_of_another_method_is_one(lying):
    study = lying(
        {"West": {"numbers__values__0": 0.5, "method": "mine"}, "South": {"numbers__values__0": 0.5}},
        measure="ratio",
    )
    assert sum("copy" in each.state for each in states(study)) == 1


def test_a_hostile_request_for_a_measure_meets_a_code(measured):
    world = measured(measure="ratio")
    for number, (measure, code) in enumerate(
        [
            ("hazard", "CV-F001"),
            (["ratio"], "CV-F001"),
            (None, "CV-F001"),
            ("nnt", "CV-F002"),
            ("lift", "CV-F002"),
        ]
    ):
        text = world.sites["North"].answer(world.request("North", f"r{number}", measure=measure))
        assert json.loads(text)["refusal"] == code
