"""Settings of methods from typed values: names and types are those of the method's settings."""

import pytest

import counterveil as cv
from counterveil.errors import ParameterError
from counterveil.questions.ate import settings_from_values


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


def test_a_name_with_a_value_of_any_depth_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ParameterError, match="CV-P020"):
        cv.settings.Matching(nothing=deep)
