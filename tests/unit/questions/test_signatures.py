"""A question is asked of a session with the arguments of its function, and every argument is typed and described."""

import inspect
import re
from typing import get_args, get_type_hints

import pytest

import counterveil as cv
from counterveil.inference.pooling import POOLING_METHODS
from counterveil.privacy import Estimand, Unit
from counterveil.questions import arms, choices, groups, outcomes, quantiles, survival
from counterveil.questions.ate import method_names
from counterveil.questions.cate import cate_methods
from counterveil.results.measures import MEASURES, Measure
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
        choices.ArmsMethod: ("auto", *arms.METHODS),
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
