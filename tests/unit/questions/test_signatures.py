"""Questions and their settings: typed arguments, and what tells learners and settings apart."""

import inspect
import json
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import get_args, get_type_hints

import numpy as np
import pytest
from numpydoc.docscrape import FunctionDoc
from sklearn.linear_model import LogisticRegression, Ridge
from tools.reference.cli_page import described as described_command

import counterveil as cv
from counterveil.cli import effects
from counterveil.cli.requests import METHODS
from counterveil.errors import ClaimError, ParameterError
from counterveil.inference.site_weights import POOLING_METHODS
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


def test_plain_settings_stay_readable_and_are_json():
    facts = settings_described(cv.settings.Folds(learner="ols", folds=5, bound=Fraction(1, 3)), "id")
    assert facts == {"learner": "ols", "folds": 5, "bound": "1/3"}
    assert described((1, np.float64(0.5), float("inf"), {"a": None})) == [1, 0.5, "inf", {"a": None}]
    assert settings_described(None, "id") is None
    json.dumps(settings_described(cv.settings.Stratified(cuts={"age": 4}), "id"), allow_nan=False)


def test_an_object_of_one_s_own_is_described_by_its_name():
    learner = cv.settings.ModelPair(Ridge(), LogisticRegression())
    facts = settings_described(cv.settings.Folds(learner=learner, folds=5, name="ridge 1"), "id")
    assert facts == {"learner": {"name": "ridge 1"}, "folds": 5, "bound": None}
    unnamed = settings_described(cv.settings.Folds(learner=learner), None)
    assert unnamed["learner"] == {"is": "counterveil.settings.methods.ModelPair"}
    with pytest.raises(ClaimError, match="CV-C010"):
        settings_described(cv.settings.Folds(learner=learner), "id")


@pytest.mark.parametrize(
    "wrong",
    [{"name": ""}, {"name": "a\n"}, {"name": "a" * 101}, {"name": 3}, {"name": "ols"}, {"learner": "ols"}],
)
def test_a_name_is_a_short_text_of_a_learner_of_one_s_own(wrong):
    with pytest.raises(ParameterError, match="CV-P025"):
        cv.settings.Folds(**{"learner": np.mean, "name": "mean"} | wrong)
