"""Questions and their settings: typed arguments, and what tells learners and settings apart."""

import inspect
import json
import os
import subprocess
import sys
from dataclasses import MISSING, fields
from fractions import Fraction
from functools import partial
from typing import get_args, get_type_hints

import numpy as np
import pytest
from numpydoc.docscrape import FunctionDoc
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterveil as cv
from counterveil.cli import effects
from counterveil.cli.program import described as described_command
from counterveil.cli.requests import METHODS
from counterveil.errors import ClaimError, ParameterError
from counterveil.inference.pooling import POOLING_METHODS
from counterveil.privacy import Estimand, Unit
from counterveil.questions import (
    arms,
    choices,
    event_study,
    groups,
    outcomes,
    quantiles,
    session,
    survival,
)
from counterveil.questions.ate import method_names, settings_from_values
from counterveil.questions.cate import cate_methods
from counterveil.results.measures import MEASURES, Measure
from counterveil.results.question import described, settings_described
from counterveil.session import MECHANISMS

QUESTIONS = list(session.QUESTIONS)
# What says what is asked about, and what opens a session, which an open one has been told.
LEADING = {"data", "study", "declared"}
OPENING = {"ledger", "dataset", "noise"}


def parameters(function):
    """Return the kind, default and type of every parameter by name."""
    hints = get_type_hints(function)
    found = {
        each.name: (each.kind, each.default, hints.get(each.name))
        for each in inspect.signature(function).parameters.values()
    }
    found.pop("self", None)
    return found


def declared(kind):
    """Return the same of the fields of a class of arguments, all of which are given by name."""
    hints = get_type_hints(kind)
    return {
        each.name: (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.empty if each.default is MISSING else each.default,
            hints[each.name],
        )
        for each in fields(kind)
    }


def without(found, names):
    return {name: one for name, one in found.items() if name not in names}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_its_method_and_the_class_of_its_arguments_agree(name):
    kind = session.QUESTIONS[name]
    asked = parameters(getattr(cv, name))
    assert without(asked, LEADING) == declared(kind)
    assert list(asked)[:3] == ["data", "study", "declared"]
    method = getattr(cv.Session, name)
    assert parameters(method) == without(declared(kind), OPENING)
    answer = get_type_hints(kind.checked)["return"].__args__[0]
    assert get_type_hints(getattr(cv, name))["return"] == get_type_hints(method)["return"] == answer


ORDER = ("protects", "epsilon", "delta", "method", "estimand", "measure", "level", "mechanism", "settings")


@pytest.mark.parametrize("name", QUESTIONS)
def test_arguments_come_in_the_same_order_with_the_same_defaults(name):
    asked = parameters(getattr(cv, name))
    assert [each for each in asked if each in ORDER] == [each for each in ORDER if each in asked]
    assert list(asked)[-4:] == ["ledger", "dataset", "request_id", "noise"]
    usual = {"delta": 0, "method": "auto", "level": 0.95, "mechanism": None, "settings": None}
    assert {key: asked[key][1] for key in usual if key in asked} == {
        key: one for key, one in usual.items() if key in asked
    }


def test_methods_of_sessions_are_written_from_the_functions():
    from tools import session_methods

    assert session_methods.page() == session_methods.PAGE.read_text(encoding="utf-8")
    assert set(session_methods.HOMES) == set(session.QUESTIONS)


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


@pytest.mark.parametrize("command", [name for name in METHODS if name != "look"])
def test_help_of_commands_lists_the_methods_of_the_question(command):
    question = {"estimate": "ate"}.get(command, command)
    hint = get_type_hints(getattr(cv, question))["method"]
    assert METHODS[command] == get_args(get_args(hint)[0])
    (method,) = [each for each in described_command(getattr(effects, command)) if each.name == "--method"]
    assert all(f'"{name}"' in method.help for name in METHODS[command])


@pytest.mark.parametrize("name", [*QUESTIONS, "pool", "plan"])
def test_every_argument_is_real_typed_and_described(name):
    for function in (getattr(cv, name), getattr(cv.Session, name, getattr(cv, name))):
        listed = parameters(function)
        assert all(kind is not inspect.Parameter.VAR_KEYWORD for kind, _, _ in listed.values())
        assert listed.keys() | {"return"} == get_type_hints(function).keys()
        documented = FunctionDoc(function)
        described_arguments = [
            name
            for each in documented["Parameters"]
            if each.type and each.desc
            for name in each.name.split(", ")
        ]
        assert described_arguments == list(listed)
        assert documented["Returns"]
        assert documented["Raises"]


def test_methods_that_editors_complete_are_those_there_are():
    tables = {
        choices.AteMethod: method_names(),
        choices.ArmsMethod: ("auto", *(name for known in arms.METHODS.values() for name in known)),
        choices.CateMethod: cate_methods(),
        choices.EventStudyMethod: (
            "auto",
            *(name for known in event_study.METHODS.values() for name in known),
        ),
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
