"""Questions and their settings: typed arguments, and what tells learners and settings apart."""

import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import MISSING, fields
from fractions import Fraction
from functools import partial
from typing import get_args, get_type_hints

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterveil as cv
from counterveil.cli import effects
from counterveil.cli.program import described as described_command
from counterveil.errors import ClaimError, ParameterError
from counterveil.inference.pooling import POOLING_METHODS
from counterveil.privacy import Estimand, Unit
from counterveil.questions import arms, choices, groups, outcomes, quantiles, session, survival
from counterveil.questions.ate import method_names, settings_from_values
from counterveil.questions.cate import cate_methods
from counterveil.results.measures import MEASURES, Measure
from counterveil.results.question import described, settings_described
from counterveil.session import MECHANISMS

QUESTIONS = [
    "ate",
    "arms",
    "cate",
    "event_study",
    "groups",
    "moments",
    "overlap",
    "policy_value",
    "quantiles",
    "survival",
    "targeting_curve",
]
# What a function takes to open a session, which a session already is.
OPENING = {"data", "study", "ledger", "dataset", "noise"}


def parameters(function):
    """Return name, kind and default of every parameter."""
    found = inspect.signature(function).parameters.values()
    return {(each.name, each.kind, each.default) for each in found if each.name != "self"}


@pytest.mark.parametrize("name", QUESTIONS)
def test_function_and_method_take_the_same_arguments(name):
    function, method = getattr(cv, name), getattr(cv.Session, name)
    assert {each for each in parameters(function) if each[0] not in OPENING} == parameters(method)
    hints, own = get_type_hints(function), get_type_hints(method)
    assert {key: hints[key] for key in own} == own
    assert hints.keys() - own.keys() == OPENING


@pytest.mark.parametrize("kind", session.QUESTIONS.values(), ids=session.QUESTIONS)
def test_no_question_picks_what_is_protected_or_spends_a_delta_unasked(kind):
    said = {each.name: each.default for each in fields(kind)}
    assert (said["protects"], said["delta"]) == (MISSING, 0)
    with pytest.raises(ParameterError, match=r"CV-P028(.|\n)*protects="):
        getattr(cv, kind.name)({}, None, epsilon=1)


@pytest.mark.parametrize(
    "command",
    [effects.estimate, effects.arms, effects.cate, effects.overlap, effects.policy_value, effects.moments],
)
def test_commands_have_the_defaults_of_questions(command):
    said = {each.name: (each.required, each.default) for each in described_command(command)}
    assert (said["--protects"], said["--delta"]) == ((True, None), (False, "0"))


@pytest.mark.parametrize("name", [*QUESTIONS, "pool", "plan"])
def test_every_argument_is_real_typed_and_described(name):
    function = getattr(cv, name)
    listed = parameters(function)
    assert all(kind is not inspect.Parameter.VAR_KEYWORD for _, kind, _ in listed)
    assert {each[0] for each in listed} | {"return"} == get_type_hints(function).keys()
    heads = re.findall(
        r"^        ([a-z_, ]+): ", inspect.getdoc(function).replace("\n    ", "\n        "), re.M
    )
    said = {one.strip() for head in heads for one in head.split(",")}
    assert {each[0] for each in listed} <= said


def test_methods_that_editors_complete_are_those_there_are():
    tables = {
        choices.AteMethod: method_names(),
        choices.ArmsMethod: ("auto", *(name for known in arms.METHODS.values() for name in known)),
        choices.CateMethod: cate_methods(),
        choices.GroupsMethod: ("auto", *(name for known in groups.METHODS.values() for name in known)),
        choices.OutcomesMethod: ("auto", *(name for known in outcomes.METHODS.values() for name in known)),
        choices.SurvivalMethod: ("auto", *(name for known in survival.METHODS.values() for name in known)),
        choices.Protects: tuple(Unit),
        choices.EstimandName: tuple(Estimand),
        choices.QuantilesMethod: ("auto", *(name for known in quantiles.METHODS.values() for name in known)),
        choices.PoolMethod: POOLING_METHODS,
        Measure: MEASURES,
        choices.Mechanism: MECHANISMS,
    }
    for literal, known in tables.items():
        assert set(get_args(get_args(literal)[0])) == {str(name) for name in known}


@pytest.mark.parametrize(
    ("method", "values", "wanted"),
    [
        ("matching", {"neighbours": 3, "limit": "best"}, cv.settings.Matching(neighbours=3, limit="best")),
        ("matching", {"limit": None, "c": 1}, cv.settings.Matching(limit=None, c=1)),
        ("stratified", {"strata": ["a"], "limit": "9/2"}, cv.settings.Stratified(("a",), limit="9/2")),
        ("stratified", {"cuts": {"age": 3}}, cv.settings.Stratified(cuts={"age": 3})),
        ("weighting", {"features": ["score"]}, cv.settings.Weighting(features=("score",))),
        ("sample_and_aggregate", {"learner": "aipw"}, cv.settings.Folds(learner="aipw")),
        ("difference_in_means", {}, None),
    ],
)
def test_values_become_the_settings_of_the_method(method, values, wanted):
    assert settings_from_values(method, values) == wanted


@pytest.mark.parametrize(
    ("method", "values"),
    [
        ("matching", {"order='id'#": "x"}),
        ("matching", {"neighbours=3, limit": "best"}),
        ("matching", {"neighbours": "3"}),
        ("matching", {"neighbours": True}),
        ("matching", {"neighbours": 3.0}),
        ("matching", {"__class__": "x"}),
        ("weighting", {"features": "score"}),
        ("weighting", {"features": ["score"] * 2000}),
        ("weighting", {"signal": float("inf")}),
        ("weighting", {"residual_range": [0, 1, 2]}),
        ("sample_and_aggregate", {"learner": {"module": "os"}}),
        ("difference_in_means", {"neighbours": 3}),
        ("no_such_method", {"neighbours": 3}),
    ],
)
def test_other_names_and_types_are_refused(method, values):
    with pytest.raises(ParameterError, match="CV-P020"):
        settings_from_values(method, values)


def test_a_limit_that_binds_nobody_is_refused():
    with pytest.raises(ParameterError, match="CV-P025"):
        cv.settings.Stratified(limit="1e310")


def test_a_name_with_a_value_of_any_depth_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ParameterError, match="CV-P020"):
        cv.settings.Matching(nothing=deep)


X, Y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
PROGRAM = """
import json
from counterveil.results.question import described
class Learner:
    def __init__(self, kept): self.kept = kept
    def __call__(self, x, t, y): return float("a" in {"a", "b", "c"})
print(json.dumps([described(Learner({"x", "y", "z"}), "id"), described(lambda x: x + 1, "id")]))
"""


def add(number, other=1):
    return number + other


def pipeline(alpha):
    return make_pipeline(StandardScaler(), Ridge(alpha=alpha))


def fitted(seed):
    return RandomForestRegressor(n_estimators=2, random_state=seed).fit(X, Y)


@pytest.mark.parametrize(
    ("make", "first", "second"),
    [
        (lambda alpha: Ridge(alpha=alpha), 1.0, 2.0),
        (pipeline, 1.0, 2.0),
        (fitted, 1, 2),
        (lambda kept: partial(add, other=kept), 1, 2),
        (lambda kept: partial(kept), add, pipeline),
        (lambda kept: np.array(kept, dtype=object), [1, "a"], [1, "b"]),
        (lambda kept: np.array(kept), [1, 2], [2, 1]),
        (lambda kept: kept, np.mean, np.median),
        (lambda kept: kept, np.add, np.subtract),
        (lambda kept: {1: kept}, "a", "b"),
        (lambda kept: cv.settings.ModelPair(Ridge(), LogisticRegression(C=kept)), 1.0, 2.0),
    ],
)
def test_like_is_like_and_unlike_is_not(make, first, second):
    assert described(make(first), "id") == described(make(first), "id")
    assert described(make(first), "id") != described(make(second), "id")


def test_plain_settings_stay_readable_and_are_json():
    facts = settings_described(cv.settings.Folds(learner="ols", folds=5, bound=Fraction(1, 3)), "id")
    assert facts == {"learner": "ols", "folds": 5, "bound": "1/3"}
    assert described((1, np.float64(0.5), float("inf"), {"a": None})) == [1, 0.5, "inf", {"a": None}]
    assert settings_described(None, "id") is None
    json.dumps(settings_described(cv.settings.Stratified(cuts={"age": 4}), "id"), allow_nan=False)


def test_a_name_is_the_same_in_every_process(capsys):
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = os.environ | {"PYTHONHASHSEED": seed}
    there = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True
    )
    exec(PROGRAM, {"__name__": "__main__"})
    assert there.stdout == capsys.readouterr().out != ""


def test_what_cannot_be_taken_apart_is_named_only_without_a_request_id():
    held = {"generator": (number for number in range(3))}["generator"]
    assert described(held)["sha256"] == "not identified"
    with pytest.raises(ClaimError, match="CV-C010"):
        described(held, "id")
    deep = []
    for _ in range(200):
        deep = {0: deep}
    with pytest.raises(ClaimError, match="CV-C010"):
        described(deep, "id")
