"""A plan says what the question would answer, without data and without a price."""

import json

import numpy as np
import pytest
from tests.command_line import as_json, said

import counterveil as cv
from counterveil.privacy import Budget, Unit
from counterveil.questions.plan import Assumptions, Plan, simulate
from counterveil.questions.plan.plan import Answer, Trial

TRIAL = cv.Study(
    treatment="t",
    outcome=cv.Outcome("y", (0, 1)),
    covariates={"x": cv.Range(0, 1)},
    assignment=cv.Trial(),
)


def test_intervals_are_those_of_the_question_itself():
    plan = cv.plan(TRIAL, rows=400, protects="record", epsilon=[1, 4], effect=0.1, draws=4, seed=3)
    assumed = Assumptions.of(TRIAL, effect=0.1)
    halves = []
    for draw in range(4):
        generator = np.random.default_rng([3, draw])
        people = simulate(TRIAL, 400, assumed, generator)
        noise = cv.SeededNoise(int(generator.integers(2**62)))
        low, high = cv.ate(people.frame, TRIAL, protects="record", epsilon=1, noise=noise).interval()
        halves.append((high - low) / 2)
    assert plan.answers[0].half_width == pytest.approx(np.median(halves))
    assert plan.answers[1].half_width < plan.answers[0].half_width
    assert plan.answers[1].noise < plan.answers[0].noise


def test_an_effect_that_is_detectable_is_found_four_times_in_five():
    asked = {"rows": 300, "protects": "outcome", "epsilon": 1, "method": "difference_in_means"}
    effect = cv.plan(TRIAL, draws=5, **asked).answers[0].detectable(0.95)
    found = cv.plan(TRIAL, effect=effect, draws=80, seed=1, **asked).answers[0]
    assert 0.7 < found.found / 80 < 0.9
    assert found.covered >= 70
    assert found.error == pytest.approx(found.half_width / 1.96, rel=0.2)


def test_what_would_be_refused_is_shown_beside_what_is_answered():
    observed = cv.Study(treatment="t", outcome=cv.Outcome("y", (0, 1)), covariates={"x": cv.Range(0, 1)})
    plan = cv.plan(observed, rows=1000, protects="record", epsilon=[0.01, 4], draws=2)
    refused, answered = plan.answers
    assert refused.refusal.startswith("CV-P")
    assert refused.half_width is None
    assert refused.detectable(0.95) is None
    assert answered.refusal is None
    assert plan.smallest(10.0) is answered
    assert plan.smallest(1e-6) is None
    assert "Refused:     at epsilon 0.01: CV-P" in str(plan)


def test_where_all_is_refused_the_error_is_raised():
    with pytest.raises(cv.CounterveilError, match="CV-P016"):
        cv.plan(TRIAL, rows=100, protects="record", epsilon=[1, 2], method="magic")


@pytest.mark.parametrize("wrong", [{"rows": 9}, {"rows": 10.5}, {"draws": 0}, {"seed": -1}, {"draws": True}])
def test_numbers_that_are_no_counts_are_refused(wrong):
    with pytest.raises(cv.CounterveilError, match="CV-P700"):
        cv.plan(TRIAL, **{"rows": 100, "protects": "record", "epsilon": 1} | wrong)


def test_the_command_line_says_the_same(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TRIAL.to_toml())
    words = ["plan", "--study", path, "--rows", "200", "--protects", "record", "--epsilon", "1"]
    words += ["--epsilon", "1/2", "--effect", "0.1", "--draws", "2"]
    plan = cv.plan(TRIAL, rows=200, protects="record", epsilon=[1, "1/2"], effect=0.1, draws=2)
    assert as_json(*words) == plan.to_dict()
    text = said(*words)
    assert text == str(plan) + "\n"
    assert max(map(len, text.splitlines())) < 80
    assert "nothing was spent" in " ".join(text.split())


OBSERVED = cv.Study("t", cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 1), "z": cv.Range(0, 1)})


def test_all_methods_and_levels_are_compared_the_shortest_first():
    plan = cv.plan(OBSERVED, rows=1000, epsilon=2, method="all", draws=2)
    assert plan.protects is None
    levels = [one.protects.value for one in plan.answers]
    assert list(dict.fromkeys(levels)) == ["outcome", "treatment and outcome", "record"]
    for level in dict.fromkeys(levels):
        own = [one for one in plan.answers if one.protects.value == level]
        lengths = [one.half_width for one in own if one.half_width is not None]
        assert lengths == sorted(lengths)
        assert [one.half_width is None for one in own] == sorted(one.half_width is None for one in own)
        (auto,) = [one for one in own if one.chosen]
        asked = cv.plan(OBSERVED, rows=1000, protects=level, epsilon=2, draws=1).answers[0]
        assert auto.method == asked.method
    refused = {one.method: one.refusal for one in plan.answers if one.refusal}
    assert refused["stratified"].startswith("CV-S071")
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_few_studies_are_asked_where_lengths_are_alike():
    plan = cv.plan(OBSERVED, rows=1000, epsilon=4, method="all", protects="outcome", draws=20)
    assert {one.studies for one in plan.answers if one.half_width is not None} == {2}
    assert len(plan.public) == 1


@pytest.mark.parametrize(
    ("halves", "known"),
    [([1.0, 1.04], True), ([1.0, 1.2], False), ([1.0, 1.2] * 4, True), ([1.0, 2.0] * 4, False)],
)
def test_more_studies_are_asked_where_lengths_differ(halves, known):
    answers = [Answer([half], None, None, 0.0, [(0.0, 1.0)], "trial", None, {}) for half in halves]
    trial = Trial(lambda *_: answers[0], Budget(1), 100, Unit.RECORD, method="trial", answers=answers)
    assert trial.done == known


def test_a_trial_is_compared_by_one_name_for_each_form():
    plan = cv.plan(TRIAL, rows=400, epsilon=2, method="all", protects="treatment and outcome", draws=2)
    assert [(one.method, one.chosen) for one in plan.answers] == [("trial", True)]
    assert plan.tidy()[0]["assumptions"] == "Nothing but that treatment was randomised."


def test_what_is_no_comparison_is_refused():
    wanted, none = {"method": "all", "half_width": 0.1}, {"protects": "outcome", "epsilon": []}
    for code, more in (("CV-P701", wanted), ("CV-P001", {}), ("CV-P003", none)):
        with pytest.raises(cv.CounterveilError, match=code):
            cv.plan(OBSERVED, **({"rows": 1000, "epsilon": 2} | more))


# How much longer than the shortest what `auto` takes may be: lengths are expected within about a quarter.
LONGER = 1.3


@pytest.mark.parametrize(
    ("covariates", "rows", "epsilon", "delta"),
    [(2, 1000, 4, 0), (8, 1000, 4, 0), (3, 1000, 1, "1e-6"), (8, 4000, 4, 0)],
)
def test_what_auto_takes_is_about_the_shortest_that_adjusts(covariates, rows, epsilon, delta):
    columns = {f"x{place}": cv.Range(-3, 3) for place in range(covariates)}
    study = cv.Study("t", cv.Outcome("y", (0, 10)), columns)
    words = {"epsilon": epsilon, "delta": delta, "protects": "record", "draws": 4}
    plan = cv.plan(study, rows=rows, method="all", **words)
    adjusted = [one for one in plan.answers if one.half_width is not None and one.method != "trial"]
    (auto,) = [one for one in adjusted if one.chosen]
    assert auto.half_width <= LONGER * adjusted[0].half_width


ALL = cv.Study("t", cv.Outcome("y", (0, 10)), {"x": cv.Range(0, 1), "site": cv.Categories(["a", "b"])})
RECORD = {"rows": 3000, "protects": "record", "epsilon": 4, "delta": "1e-6", "draws": 2}


def test_every_question_is_planned_by_asking_it():
    asked = {
        "groups": ({"by": ["site"]}, lambda frame, **more: cv.groups(frame, ALL, by=["site"], **more)),
        "cate": ({}, lambda frame, **more: cv.cate(frame, ALL, **more)),
        "policy_value": (
            {"policy": cv.Policy.where(x=(0.5, 1))},
            lambda frame, **more: cv.policy_value(frame, ALL, policy=cv.Policy.where(x=(0.5, 1)), **more),
        ),
    }
    for question, (words, ask) in asked.items():
        plan = cv.plan(ALL, question=question, **RECORD | {"draws": 1}, **words)
        generator = np.random.default_rng([0, 0])
        people = simulate(ALL, 3000, Assumptions.of(ALL), generator)
        noise = cv.SeededNoise(int(generator.integers(2**62)))
        answer = ask(people.frame, protects="record", epsilon=4, delta="1e-6", noise=noise)
        effects = answer.table[:1] if question == "policy_value" else answer.table
        halves = [(high - low) / 2 for low, high in (effect.interval() for effect in effects)]
        assert plan.answers[0].half_width == pytest.approx(np.mean(halves), rel=1e-6)
        assert plan.answers[0].covered is None
        assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
        assert max(map(len, str(plan).splitlines())) < 80


def test_several_arms_are_planned_with_their_coverage():
    several = cv.Study(
        cv.Treatment("t", arms=("a", "b", "c"), reference="a"),
        cv.Outcome("y", (0, 10)),
        {"x": cv.Range(0, 1)},
    )
    asked = {"question": "arms", "method": "weighting", "protects": "outcome", "epsilon": 2}
    plan = cv.plan(several, rows=600, effect=1, draws=3, **asked)
    assert plan.answers[0].covered >= 2
    assert plan.answers[0].error < plan.answers[0].half_width
    assert "several arms" in str(plan)


def test_a_plan_of_several_arms_is_about_all_of_them():
    arms = ("a", "b", "c", "d")
    study = cv.Study(
        cv.Treatment("t", arms=arms, reference="a"), cv.Outcome("y", (0, 10)), assignment=cv.Trial()
    )
    asked = {"protects": "outcome", "epsilon": 100}
    plan = cv.plan(study, question="arms", rows=4000, sd=2, draws=3, **asked)
    # Arms of 1,000 with a standard deviation of 2 each: without privacy and with hardly any noise.
    half = 1.96 * 2 * (1 / 1000 + 1 / 1000) ** 0.5
    assert plan.without_privacy == pytest.approx(half, rel=0.02)
    rng = np.random.default_rng(0)
    people = {"t": np.array(arms)[np.arange(4000) % 4], "y": rng.normal(5, 2, 4000).clip(0, 10)}
    found = cv.arms(people, study, noise=cv.SeededNoise(1), **asked).interval().values()
    actual = np.mean([(high - low) / 2 for low, high in found])
    assert plan.answers[0].half_width == pytest.approx(actual, rel=0.05)
    assert "25% in each of 4 arms" in " ".join(str(plan).split())
    uneven = cv.plan(study, question="arms", rows=4000, sd=2, draws=3, share=0.6, **asked)
    assert "40% in the reference arm and 20% in each of the 3 other arms" in " ".join(str(uneven).split())
    assert uneven.without_privacy == pytest.approx(1.96 * 2 * (1 / 1600 + 1 / 800) ** 0.5, rel=0.02)


@pytest.mark.parametrize(
    ("question", "code"), [("pool", "CV-P700"), ("groups", "CV-P701"), ("policy_value", "CV-P701")]
)
def test_questions_that_cannot_be_planned_are_refused(question, code):
    with pytest.raises(cv.CounterveilError, match=code):
        cv.plan(ALL, **RECORD, question=question)


def test_the_least_epsilon_and_number_of_people_give_the_wanted_width():
    wanted = 0.05
    asked = {"protects": "outcome", "epsilon": ["1/4", 1], "half_width": wanted}
    plan = cv.plan(TRIAL, rows=[500, 2000], draws=2, binary=False, **asked)
    assert len(plan.answers) == 4
    assert [one.rows for one in plan.answers] == [500, 500, 2000, 2000]
    assert plan.answers[3].half_width < plan.answers[1].half_width
    assert "people" in str(plan)
    said = dict(plan.min_rows)
    assert said[1.0] < said[0.25]

    def half(rows, epsilon):
        # Lengths of single studies vary by a tenth, since their variances are noisy.
        found = cv.plan(TRIAL, rows=rows, protects="outcome", epsilon=epsilon, draws=6, binary=False)
        return found.answers[0].half_width

    for epsilon, rows in plan.min_rows:
        assert half(rows, epsilon) <= 1.1 * wanted
        assert half(rows // 2, epsilon) > wanted
    assert half(500, plan.min_epsilon) <= 1.1 * wanted
    assert half(500, plan.min_epsilon / 2) > wanted
    assert f"epsilon {plan.min_epsilon:g} with 500 people" in " ".join(str(plan).split())
    none = cv.plan(TRIAL, rows=100, protects="outcome", epsilon=1, half_width=1e-6, draws=1)
    assert none.min_epsilon is None
    assert none.min_rows == ((1.0, None),)


def test_a_public_sample_stands_for_the_assumptions():
    rng = np.random.default_rng(0)
    n = 400
    x, site = rng.beta(2, 8, n), rng.choice(["a", "b"], n, p=(0.8, 0.2))
    t = rng.random(n) < 1 / (1 + np.exp(-6 * (x - 0.2)))
    y = np.clip(2 + 3 * x + 0.7 * t + 0.5 * rng.standard_normal(n), 0, 10)
    sample = {"x": x, "site": site, "t": t.astype(int), "y": y}
    plan = cv.plan(ALL, rows=2000, protects="outcome", epsilon=2, sample=sample, draws=5)
    plain = cv.plan(ALL, rows=2000, protects="outcome", epsilon=2, draws=5)
    # Outcomes have a standard deviation of about .5 there, beside 1.7 that the range suggests.
    assert plan.answers[0].half_width < 0.6 * plain.answers[0].half_width
    assert plan.assumed.effect == pytest.approx(0.7, abs=0.15)
    assert plan.assumed.sample == 400
    assert "public sample" in str(plan)
    assert plan.answers[0].covered >= 3
