"""Plans of measures, several outcomes, periods, ratios, regressions and looks: of whom, and with what truth."""

import json
from dataclasses import fields
from math import inf

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.privacy import Estimand
from counterveil.questions.plan import Plan
from counterveil.questions.plan.people import assumed_of, people_of_question

TRIAL = cv.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial())
METRICS = cv.Study(
    "t",
    outcome=cv.Outcomes({"death": (0, 1), "days": (0, 90)}, baseline={"days": "d0"}),
    assignment=cv.Trial(),
)
CLICKS = cv.Study("t", cv.Ratio("clicks", (0, 100), "sessions", (1, 50)), assignment=cv.Trial())
PERIODS = cv.Study("t", outcome=cv.Change("y2", (0, 10), before=["y0", "y1"]), assignment=cv.Trial())
OFFERED = cv.Study(
    "t", cv.Outcome("y", (0, 10)), {"x": cv.Range(0, 1), "d": cv.Binary()}, assignment=cv.Trial()
)
ASSUMED = {each.name for each in fields(cv.Assumptions)}
OPTIONS = {"by", "policy", "formula", "received", "spending", "grid", "importance"}


def people(study, rows=4000, by_period=False, received=None, seed=0, **given):
    base = study
    if received is not None:
        kept = {name: kind for name, kind in study.covariates.items() if name != received}
        base = study._changed(covariates=kept)
    assumed = assumed_of(base, cv.Assumptions(**given), received)
    return people_of_question(study, assumed, by_period, received, rows, np.random.default_rng(seed))


def plan(study, **given):
    assumed = cv.Assumptions(**{name: given.pop(name) for name in ASSUMED & set(given)})
    options = {name: given.pop(name) for name in OPTIONS & set(given)}
    asked = {"rows": 1000, "protects": "outcome", "epsilon": 1, "draws": 2} | given
    return cv.plan(study, assumed=assumed, options=options, **asked)


def test_several_outcomes_are_as_assumed():
    means, effects = {"death": 0.2, "days": 30}, {"death": -0.1, "days": 5}
    found = people(METRICS, mean=means, effect=effects, sd={"days": 10}, outcome_correlation=0.6)
    frame, treated = found.frame, found.frame["t"] == 1
    assert frame["death"][~treated].mean() == pytest.approx(0.2, abs=0.03)
    assert set(np.unique(frame["death"])) == {0.0, 1.0}
    assert frame["days"][~treated].mean() == pytest.approx(30, abs=1)
    assert frame["days"][treated].mean() == pytest.approx(35, abs=1)
    # What was before is alike in both arms and goes together with what comes after.
    assert frame["d0"][treated].mean() == pytest.approx(30, abs=1)
    assert np.corrcoef(frame["d0"][~treated], frame["days"][~treated])[0, 1] == pytest.approx(0.6, abs=0.05)
    assert found.effect(Estimand.ATE, "days") == pytest.approx(5, abs=0.1)
    assert found.means(Estimand.ATE) == pytest.approx((0.1, 0.2), abs=0.02)


@pytest.mark.parametrize("correlation", [0.5, 0.2])
def test_any_two_numbers_of_a_person_go_together_as_assumed(correlation):
    columns = {"covariates": {"x": cv.Range(0, 1)}, "baseline": {"b": "b0"}}
    three = study_of("t", outcomes=dict.fromkeys("abc", (0, 10)), **columns, randomised=True)
    frame = people(three, 20_000, explained=0.2, outcome_correlation=correlation, sd=1).frame
    found = np.corrcoef([frame[name] for name in ("a", "b", "c", "b0")])
    assert [found[0, 1], found[0, 2], found[1, 2], found[1, 3]] == pytest.approx([correlation] * 4, abs=0.03)
    clicks = CLICKS._changed(covariates={"x": cv.Range(0, 1)})
    frame = people(clicks, 20_000, explained=0.2, outcome_correlation=correlation, mean=50, sd=5).frame
    assert np.corrcoef(frame["clicks"], frame["sessions"])[0, 1] == pytest.approx(correlation, abs=0.03)


def test_denominators_periods_and_receipts_are_as_assumed():
    clicks = people(CLICKS, mean=10, sd=3, effect=2, denominator=(20, 5), outcome_correlation=0.8)
    below = clicks.frame["sessions"]
    assert (below.mean(), below.std()) == pytest.approx((20, 5), rel=0.05)
    control = clicks.frame["t"] == 0
    assert np.corrcoef(clicks.frame["clicks"][control], below[control])[0, 1] == pytest.approx(0.8, abs=0.05)
    assert clicks.effect(Estimand.ATE) == pytest.approx(0.1, rel=0.02)
    seen = people(PERIODS, by_period=True, sd=1.5, effect=1, mean=0.5)
    treated = seen.frame["t"] == 1
    changes = [seen.frame[f"y{place}"] - seen.frame["y1"] for place in (0, 2)]
    assert [each[~treated].std() for each in changes] == pytest.approx([1.5, 1.5], rel=0.06)
    assert changes[0][treated].mean() == pytest.approx(0, abs=0.15)
    assert changes[1][treated].mean() - changes[1][~treated].mean() == pytest.approx(1, abs=0.15)
    offered = people(OFFERED, received="d", compliance_rate=0.6, mean=5, effect=1)
    taken = [offered.frame["d"][offered.frame["t"] == arm].mean() for arm in (1, 0)]
    assert taken[0] - taken[1] == pytest.approx(0.6, abs=0.05)
    assert taken[1] == pytest.approx(0.2, abs=0.03)
    assert offered.effect(Estimand.ATE) == pytest.approx(1, abs=0.05)


def test_a_ratio_is_planned_on_its_own_scale():
    found = plan(TRIAL, measure="ratio", mean=0.2, effect=0.1, epsilon=[1, 4])
    asked = {"protects": "outcome", "epsilon": 4, "measure": "ratio", "noise": cv.SeededNoise(1)}
    answer = cv.ate(people(TRIAL, 1000, mean=0.2, effect=0.1).frame, TRIAL, **asked)
    low, high = answer.interval()
    assert found.answers[1].half_width == pytest.approx((high - low) / 2, rel=0.3)
    assert found.answers[1].covered >= 1
    assert found.answers[0].unbounded == 0
    assert found.to_dict()["answers"][0]["detectable"] is None
    assert "(ratio)" in str(found)
    # Which ratio is detectable depends on the mean of the controls: the column would be empty.
    assert "detectable" not in found.full().lower()
    assert "without privacy the half-width would be" in str(found)
    assert found.without_privacy <= found.answers[0].half_width
    rare = plan(TRIAL, rows=60, measure="ratio", mean=0.02, epsilon=0.1)
    assert rare.answers[0].half_width == inf
    assert rare.answers[0].unbounded == 2
    assert "No end:      intervals of 2 studies without an end; epsilon 0.1: 2" in str(rare)
    assert rare.tidy()[0]["unbounded"] == 1
    # The truth is a ratio, and not the difference that was assumed.
    assert "covers the true ratio\n" in rare.full()
    assert "excludes a ratio of 1" in rare.full()
    assert Plan.from_dict(json.loads(json.dumps(rare.to_dict(), allow_nan=False))) == rare


def test_each_outcome_has_its_own_width_and_the_first_is_in_the_table():
    found = plan(METRICS, question="outcomes", mean={"death": 0.2, "days": 30}, importance={"days": 2})
    one = found.answers[0]
    assert set(one.each) == {"death", "days"}
    assert one.half_width == one.each["death"]
    assert 20 * one.each["death"] < one.each["days"]
    assert "Each" in str(found)
    assert "on death and 1 more outcome\n" in str(found)
    assert Plan.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_periods_ratios_and_regressions_are_planned():
    by_period = plan(PERIODS, question="event_study", effect=2.0, sd=2.0, draws=1)
    assert by_period.answers[0].covered > 0
    per = plan(CLICKS, mean=10, sd=5, denominator=(10, 4), draws=1)
    assert per.answers[0].half_width > per.without_privacy
    given = {"protects": "record", "delta": "1e-6", "rows": 3000, "epsilon": 4, "draws": 1}
    moments = plan(OFFERED, question="moments", formula="y ~ t*x", **given)
    assert moments.answers[0].covered is None  # an interaction: the coefficient of t is not the effect
    complied = plan(OFFERED, question="compliance", received="d", compliance_rate=0.5, effect=1.0, **given)
    assert complied.answers[0].half_width < 2
    for found in (by_period, per, moments, complied):
        assert max(map(len, str(found).splitlines())) < 80
        assert found.write_up()


def test_looks_share_the_budget_and_the_error():
    found = plan(TRIAL, question="interim", rows=[300, 600, 1200], epsilon=3, effect=0.1)
    halves = [one.half_width for one in found.answers]
    levels = [one.level for one in found.answers]
    assert halves[0] > halves[1] > halves[2]
    assert levels[0] > levels[1] > levels[2] > 0.95
    assert found.rows == 1200
    assert [row["level"] for row in found.tidy()] == levels
    for said in (str(found), found.write_up()):
        assert all(f"{100 * level:.4g}%" in said for level in levels)
    assert "95%" not in found.full() + found.write_up()
    # A last look costs what it would alone with a third of the budget and its own level.
    alone = plan(TRIAL, rows=1200, epsilon=1, level=levels[2], effect=0.1)
    assert halves[2] == pytest.approx(alone.answers[0].half_width, rel=0.05)
    even = plan(TRIAL, question="interim", rows=[300, 600, 1200], epsilon=3, spending="pocock")
    assert even.answers[0].half_width < halves[0]


def test_the_least_number_of_people_of_looks_is_that_of_the_last():
    found = plan(TRIAL, question="interim", rows=[300, 600], epsilon=4, half_width=0.12, draws=1)
    ((_, rows),) = found.min_rows
    again = plan(TRIAL, question="interim", rows=[rows // 2, rows], epsilon=4, draws=1)
    assert again.answers[1].half_width <= 0.13


@pytest.mark.parametrize(
    ("study", "wrong", "code"),
    [
        (TRIAL, {"question": "outcomes"}, "CV-S142"),
        (TRIAL, {"question": "interim", "rows": [600, 300]}, "CV-P730"),
        (TRIAL, {"measure": "hazard"}, "CV-P685"),
        (TRIAL, {"outcome_correlation": 0.5}, "CV-P700"),
        (TRIAL, {"denominator": (1, 2)}, "CV-P700"),
        (TRIAL, {"compliance_rate": 0.5}, "CV-P700"),
        (TRIAL, {"mean": {"z": 0.2}}, "CV-P700"),
        (TRIAL, {"question": "survival"}, "CV-S091"),
        (METRICS, {"question": "outcomes", "sample": {}}, "CV-P700"),
        (METRICS, {"question": "outcomes", "outcome_correlation": 2}, "CV-P700"),
        (CLICKS, {"denominator": (100, 2)}, "CV-P700"),
        (OFFERED, {"question": "compliance", "protects": "record", "received": "x"}, "CV-P700"),
    ],
)
def test_what_cannot_be_planned_is_refused(study, wrong, code):
    with pytest.raises(cv.CounterveilError, match=code):
        plan(study, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"formula": "y ~ t"},
        {"by": ["x"]},
        *({name: np.array(["x", "y"])} for name in ("by", "policy", "importance", "received")),
        *({"question": "policy_value", name: np.array(["x", "y"])} for name in ("measure", "estimand")),
        {"policy": cv.Policy.where(x=(0.5, 1))},
        {"spending": "pocock"},
        {"importance": {"y": 2}},
        {"question": "groups"},
        {"question": "groups", "by": ["x"], "measure": "ratio"},
        {"question": "groups", "by": ["x"], "estimand": "ATT"},
        {"question": "cate", "mechanism": "gaussian"},
        {"question": "moments"},
        {"question": "moments", "formula": "y ~ t", "method": "trial"},
        {"question": "compliance", "received": "d", "settings": cv.settings.Trial()},
        {"question": "moments", "formula": "y ~ x + [d ~ t]"},
    ],
)
def test_options_of_other_questions_are_refused(wrong):
    with pytest.raises(cv.CounterveilError, match="CV-P701"):
        plan(OFFERED, protects="record", **wrong)


def test_a_plan_of_a_test_finds_the_people_for_its_power():
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), assignment=cv.Trial())
    options = {"protects": "outcome", "epsilon": 4, "assumed": cv.Assumptions(mean=0.5), "draws": 3}
    shown = cv.Decision("noninferiority", margin=0.1)
    found = cv.plan(study, rows=400, decision=shown, power=0.8, **options)
    # Without noise: (1.96 + 0.84)^2 times 4 times 0.25 over the squared margin.
    assert found.min_rows[0][1] == pytest.approx(785, rel=0.1)
    assert type(found).from_dict(found.to_dict()) == found
    assert "noninferiority with the margin 0.1" in found.full()
    with pytest.raises(CounterveilError, match="CV-P700"):
        cv.plan(study, rows=400, decision=cv.Decision("superiority"), power=0.8, **options)
    with pytest.raises(CounterveilError, match="CV-P701"):
        cv.plan(study, rows=400, power=0.8, **options)
    for call in (lambda: cv.Decision("better"), lambda: plan(TRIAL, decision=cv.Decision("equivalence"))):
        with pytest.raises(CounterveilError, match="CV-P796"):
            call()
    with pytest.raises(CounterveilError, match="CV-P700"):
        plan(TRIAL, decision="superiority")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("explained", 1.1),
        ("share", -0.1),
        ("confounding", 6),
        ("censoring_rate", 2),
        ("outcome_correlation", float("nan")),
        ("compliance_rate", "all"),
    ],
)
def test_assumptions_out_of_range_are_refused_by_themselves(name, value):
    with pytest.raises(CounterveilError, match=rf"CV-P700(.|\n)*{name}"):
        cv.Assumptions(**{name: value})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lost", "censoring_rate"),
        ("together", "outcome_correlation"),
        ("complying", "compliance_rate"),
        ("tell", "progress="),
        ("mean", "cv.Assumptions(mean"),
        ("margin", "cv.Decision("),
        ("by", "options="),
    ],
)
def test_what_is_called_otherwise_names_what_to_write(old, new):
    with pytest.raises(CounterveilError, match="CV-P028") as error:
        cv.plan(TRIAL, rows=100, epsilon=1, protects="outcome", **{old: 0.5})
    assert new in error.value.fix


def test_options_that_no_question_takes_are_refused():
    for options in ({"groups": "x"}, {"measure": "ratio"}):
        with pytest.raises(CounterveilError, match="CV-P701"):
            cv.plan(TRIAL, rows=100, epsilon=1, protects="outcome", options=options)
    with pytest.raises(CounterveilError, match="CV-P700"):
        cv.plan(TRIAL, rows=100, epsilon=1, protects="outcome", options=["by"])
