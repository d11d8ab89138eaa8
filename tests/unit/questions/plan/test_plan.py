"""A plan says what the question would answer, without data and without a price."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app
from counterveil.questions.plan import Assumptions, simulate
from counterveil.questions.plan.simulated_study import half_width

TRIAL = cv.Study(
    treatment="t", outcome="y", outcome_range=(0, 1), covariates={"x": cv.Range(0, 1)}, randomised=True
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
    assert plan.answers[0].half_width == pytest.approx(np.mean(halves))
    assert plan.answers[1].half_width < plan.answers[0].half_width
    assert plan.answers[1].noise < plan.answers[0].noise


def test_an_effect_that_is_detectable_is_found_four_times_in_five():
    wide = cv.plan(TRIAL, rows=300, protects="outcome", epsilon=1, method="difference_in_means", draws=5)
    effect = wide.answers[0].detectable(0.95)
    found = cv.plan(
        TRIAL,
        rows=300,
        protects="outcome",
        epsilon=1,
        method="difference_in_means",
        effect=effect,
        draws=150,
        seed=1,
    ).answers[0]
    assert 0.7 < found.found / 150 < 0.9
    assert found.covered >= 135
    assert found.error == pytest.approx(found.half_width / 1.96, rel=0.2)


def test_without_privacy_least_squares_covers():
    covered = 0
    for draw in range(200):
        assumed = Assumptions.of(TRIAL, effect=0.1, explained=0.5)
        people = simulate(TRIAL, 200, assumed, np.random.default_rng(draw))
        design = np.column_stack([np.ones(200), people.treated, people.columns])
        estimate = np.linalg.lstsq(design, people.outcome, rcond=None)[0][1]
        covered += abs(estimate - 0.1) < half_width(people, 0.95)
    assert 180 <= covered <= 198


def test_what_would_be_refused_is_shown_beside_what_is_answered():
    observed = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), covariates={"x": cv.Range(0, 1)})
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


def test_the_same_seed_gives_the_same_plan_and_progress_is_told():
    told = []
    arguments = {"rows": 100, "protects": "outcome", "epsilon": 1, "draws": 3}
    first = cv.plan(TRIAL, **arguments, tell=lambda *at: told.append(at))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert first == cv.plan(TRIAL, **arguments)
    assert first != cv.plan(TRIAL, **arguments, seed=1)


def test_the_command_line_says_the_same(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TRIAL.to_toml())
    words = ["plan", "--study", str(path), "--rows", "200", "--protects", "record", "--epsilon", "1"]
    words += ["--epsilon", "1/2", "--effect", "0.1", "--draws", "2"]
    facts = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    plan = cv.plan(TRIAL, rows=200, protects="record", epsilon=[1, "1/2"], effect=0.1, draws=2)
    assert facts == plan.to_dict()
    text = CliRunner().invoke(app, words).output
    assert text == str(plan) + "\n"
    assert max(map(len, text.splitlines())) < 80
    assert "nothing was spent" in " ".join(text.split())
