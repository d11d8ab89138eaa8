"""Bounds on what a site may say: what each kind refuses, in which order they are read, and what answers declare."""

from dataclasses import replace
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

import counterveil as cv
from counterveil.results.site_bounds import (
    Above,
    Breach,
    Count,
    Equal,
    Near,
    OneOf,
    PublicShape,
    Sum,
    Within,
    first_broken,
)

HOLDING = [
    Within("a", 1.0, 1, 2),
    Within("a", Fraction(1, 3), high=Fraction(1, 3)),
    Within("a", inf, low=0),
    Above("a", 1e-300),
    Equal("a", ("x", 1), ("x", 1)),
    Near("a", 1 + 1e-7, 1.0),
    OneOf("a", "laplace", ("laplace", "gaussian")),
    Count("a", 2.0),
    Sum("a", (1, 2.0, 3), 6),
    Sum("a", (1 / 3, 1 / 3, 1 / 3 + 1e-9), 1, part=1e-6),
]
BROKEN = [
    Within("a", 0.999, 1, 2),
    Within("a", 2.001, 1, 2),
    Within("a", nan, low=0),
    Within("a", nan, high=0),
    Above("a", 0.0),
    Above("a", nan),
    Equal("a", None, 0),
    Near("a", 1 + 1e-5, 1.0),
    Near("a", nan, nan),
    OneOf("a", "laplace", ()),
    Count("a", None),
    Count("a", 1),
    Count("a", 2.5),
    Count("a", 10**13),
    Count("a", nan),
    Sum("a", (1, 2), 4),
    Sum("a", (1 / 3, 1 / 3), 1, part=1e-6),
    Sum("a", (nan,), 1, part=1e-6),
]


@pytest.mark.parametrize("bound", HOLDING, ids=repr)
def test_a_bound_that_a_figure_keeps_holds(bound):
    assert bound.holds


@pytest.mark.parametrize("bound", BROKEN, ids=repr)
def test_a_bound_that_a_figure_breaks_does_not_hold_and_neither_for_nan(bound):
    assert not bound.holds


def test_bounds_after_the_first_that_is_broken_are_not_computed():
    def bounds():
        yield Within("first", 1, high=2)
        yield Above("second", 0, breach=Breach.ROWS)
        raise AssertionError("computed from a figure that was refused")

    assert first_broken(bounds()) == Above("second", 0, breach=Breach.ROWS)
    assert first_broken(HOLDING) is None


STUDY = cv.Study("t", cv.Outcome("y", (0, 1)), {"sex": cv.Binary()}, assignment=cv.Trial())
ROWS = np.arange(400)
FRAME = {"t": ROWS % 2, "y": ROWS % 5 / 4, "sex": ROWS // 2 % 2}


@pytest.fixture(scope="module")
def by_group():
    return cv.groups(FRAME, STUDY, by="sex", protects="outcome", epsilon=1, noise=cv.SeededNoise(1))


SHAPE = PublicShape(rows=400, names=("sex=0", "sex=1"), ranges=((-1.0, 1.0),), by=("sex",))


def breach_of(answer, **shape):
    broken = first_broken(answer._site_bounds(replace(SHAPE, **shape)))
    return None if broken is None else broken.breach


def test_groups_declare_their_names_sizes_and_limits(by_group):
    assert breach_of(by_group) is None
    assert breach_of(by_group, by=("age",)) is Breach.QUESTION
    assert breach_of(by_group, names=("sex=1", "sex=0")) is Breach.QUESTION
    assert breach_of(by_group, names=("sex=0", "sex=1", "sex=2")) is Breach.QUESTION
    assert breach_of(by_group, rows=399) is Breach.ROWS
    assert breach_of(by_group, ranges=((-2.0, 2.0),)) is Breach.LIMITS
    noisy = replace(by_group, groups=tuple(replace(one, size_sd=1.0) for one in by_group.groups))
    assert breach_of(noisy) is Breach.NOISE


def test_groups_of_private_records_are_all_there(by_group):
    fewer = replace(by_group, groups=by_group.groups[:1], left_out=("sex=1",))
    assert breach_of(fewer) is None
    assert breach_of(fewer, sizes_public=False) is Breach.QUESTION


def test_figures_are_pooled_by_names_and_public_sizes(by_group):
    figures = by_group._site_figures()
    assert [(one.name, one.size) for one in figures] == [("sex=0", 200), ("sex=1", 200)]
    assert [one.numbers for one in figures] == [one.known for one in by_group.groups]
    noisy = replace(by_group, groups=tuple(replace(one, size_sd=1.0) for one in by_group.groups))
    assert [one.size for one in noisy._site_figures()] == [None, None]
