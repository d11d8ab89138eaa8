"""Answers as JSON: read back by the declared types of their fields, or refused without a word of what was written."""

import json

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import ParameterError
from counterveil.results import Result


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    data = {"t": rng.permutation(200) % 2, "y": rng.random(200)}
    return cv.ate(data, cv.Study("t", "y", (0, 1), randomised=True), protects="outcome", epsilon=1)


def test_what_is_written_is_read_back_with_what_is_shown_and_without(found):
    for facts in (found.stored(), found.to_dict()):
        assert Result.from_dict(json.loads(json.dumps(facts, allow_nan=False))) == found


@pytest.mark.parametrize(
    ("change", "got"),
    [
        ({"version": 2}, "another version"),
        ({"kind": "ArmsResult"}, "another kind of answer"),
        ({"surprise": "SECRET"}, "an unknown field"),
        ({"estimate": "SECRET"}, "estimate of another type"),
        ({"estimate": True}, "estimate of another type"),
        ({"limits": [0.0]}, "limits of another type"),
        ({"estimand": "SECRET"}, "ValueError"),
        ({"uncertainty": {"is": "SECRET"}}, "uncertainty of another type"),
        ({"uncertainty": {"is": "Uncertainty", "noise": None}}, "missing"),
        ({"not_covered": ["SECRET"]}, "a fact that no answer has"),
    ],
)
def test_other_facts_are_refused(found, change, got):
    with pytest.raises(ParameterError, match="CV-P661") as error:
        Result.from_dict(found.stored() | change)
    assert got in error.value.got
    assert "SECRET" not in str(error.value)


def test_numbers_that_are_not_finite_are_texts_and_no_variance(found):
    facts = found.stored()
    assert Result.from_dict(facts | {"estimate": "inf"}).estimate == float("inf")
    for name in ("variance", "variance_cap"):
        with pytest.raises(ParameterError, match="CV-P661"):
            Result.from_dict(facts | {"uncertainty": facts["uncertainty"] | {name: "nan"}})
