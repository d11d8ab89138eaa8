"""A question is asked of a curator with the arguments of its function, and every argument is typed and described."""

import inspect
import re
from typing import get_type_hints

import pytest

import counterveil as cv

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
# What a function takes to open a session, which a curator already is.
OPENING = {"data", "study", "ledger", "dataset", "noise"}


def parameters(function):
    """Return name, kind and default of every parameter."""
    found = inspect.signature(function).parameters.values()
    return {(each.name, each.kind, each.default) for each in found if each.name != "self"}


@pytest.mark.parametrize("name", QUESTIONS)
def test_function_and_method_take_the_same_arguments(name):
    function, method = getattr(cv, name), getattr(cv.Curator, name)
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
