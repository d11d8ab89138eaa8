"""The growth benchmark covers every method and question, its kept file has them all, and it notices what got worse."""

import inspect
from dataclasses import replace

import pytest
from benchmarks.growth.kept import Kept, Ratios, findings, missed
from benchmarks.growth.questions import ASKED

import counterveil as cv
from counterveil.estimators import registry

COVERED = {asked.covered for asked in ASKED.values()}


def questions():
    """The questions that a session answers: what spends takes an epsilon. A release costs what its function does."""
    members = inspect.getmembers(cv.Session, inspect.isfunction)
    return {
        name
        for name, member in members
        if name != "release" and "epsilon" in inspect.signature(member).parameters
    }


def forms():
    """Every form of every question, from the library's registry; `auto` is one of the others."""
    for question, method, unit, _ in registry.forms():
        yield question, method, unit.value


def published():
    """The published forms, which are questions of their own."""
    return {f"published.{name}" for name in cv.published.__all__ if not name.endswith("Settings")}


def test_every_form_of_every_question_is_measured():
    assert set(forms()) - COVERED == set()
    assert {question for question, *_ in forms()} == questions()
    assert {question for question, *_ in COVERED} == questions() | published()


def test_the_kept_file_has_a_row_for_each_entry_and_no_other():
    kept = Kept.read()
    assert list(kept.ratios) == list(ASKED)
    assert kept.missed == missed(kept.ratios, kept.shown)
    assert kept.rows == (10**5, 10**6)


@pytest.mark.parametrize("name", ASKED)
def test_the_arguments_are_those_of_the_question(name):
    asked = ASKED[name]
    words = dict(asked.arguments) | dict.fromkeys(asked.made)
    inspect.signature(asked.function).bind(None, None, **words)


KEPT = Ratios(columns=100.0, peer=0.5, memory=2.0, growth=10.0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"columns": 124.0, "peer": 0.62}, []),
        ({"columns": 126.0, "peer": 0.63}, ["CPU worse"]),
        ({"columns": 126.0}, []),  # the pass over the columns was disturbed, the peer was not
        ({"columns": 126.0, "peer": None}, ["CPU worse"]),
        ({"memory": 2.6}, ["memory worse"]),
        ({"memory": 3.1}, ["memory above 3 times the data", "memory worse"]),
        ({"growth": 12.4}, ["growth above 12"]),
        ({"growth": 12.6}, ["growth above 12", "growth worse"]),
        ({"columns": 410.0, "peer": 2.05}, ["above 2 times the peer", "CPU worse"]),
    ],
)
def test_what_got_worse_is_named(changed, said):
    assert findings(replace(KEPT, **changed), KEPT) == said


def test_an_aim_that_was_missed_before_is_no_finding():
    slow = replace(KEPT, columns=500.0, peer=2.5, growth=14.0)
    assert findings(slow, slow) == []
    assert findings(replace(slow, columns=700.0, peer=3.5), slow) == ["CPU worse"]
