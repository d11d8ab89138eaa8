"""Every setting of every method refuses what its range leaves out."""

from dataclasses import fields
from math import inf, nan

import pytest

import counterveil as cv
from counterveil.errors import ParameterError
from counterveil.settings.methods import range_of

ODD = (
    -1,
    -0.1,
    0,
    0.5,
    1,
    1.5,
    2,
    2.5,
    5,
    7.0,
    10**400,
    inf,
    nan,
    True,
    None,
    "much",
    b"1",
    (),
    (0,),
    {"a": -1},
    object(),
)
CASES = [
    (getattr(cv.settings, name), each)
    for name in cv.settings.__all__
    for each in fields(getattr(cv.settings, name))
    if range_of(each)
]


@pytest.mark.parametrize(("settings", "field"), CASES, ids=lambda one: getattr(one, "name", None))
def test_a_value_outside_its_range_is_refused(settings, field):
    allowed = field.metadata["allowed"]
    outside = [value for value in ODD if not allowed.fits(value)]
    assert outside
    for value in outside:
        with pytest.raises(ParameterError, match=f"setting {field.name} ") as refused:
            settings(**{field.name: value})
        assert refused.value.code == "CV-P025"


# A value next to each range that other computations rely on, and values that do not go together.
WRONG = {
    "Arms": [{"neighbours": 0}, {"bias": -1}],
    "Auto": [{"kappa": 0}, {"kappa": 1.5}],
    "Cate": [{"basis": "wavelet"}, {"degree": 0}, {"knots": 0}, {"products": 1}],
    "DifferenceInMeans": [{"variance_share": 1}, {"variance_share": -0.1}],
    "DoublyRobust": [{"degree": 3}, {"kappa": 0}, {"kappa": 1.5}],
    "Folds": [{"folds": 2}, {"folds": 2.5}, {"bound": 0}, {"learner": "forest"}, {"learner": 3}, {"learner": None}],
    "Groups": [{"clip": 0}],
    "Matching": [{"neighbours": 0}, {"limit": 0}, {"limit": "many"}, {"c": nan}, {"variance_by": "pair"}],
    "Stratified": [{"limit": 1}, {"cuts": {"x": 1}}],
    "Trial": [{"adjustment": "moments"}, {"centre": "median"}, {"centre": "arms"}],
    "WeightLimits": [{"max_weight": 0}, {"max_weight": 1.5}, {"own": {"a": -1}}, {"min_variance": {"a": nan}}],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_values_next_to_a_range_or_that_do_not_go_together_are_refused(name):
    for wrong in WRONG[name]:
        with pytest.raises(ParameterError, match="CV-P025"):
            getattr(cv.settings, name)(**wrong)
