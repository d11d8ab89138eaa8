"""Brute force: no exchange of a record moves moments by arm, residual products or sizes further than claimed."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.unit.estimators.moments.small_records import largest_change
from tests.unit.rows.attached import noting

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.moments.learner_clips import EDGES, find_sizes
from counterveil.numerics.bases import Axis, make_basis
from counterveil.rows.moments.arm_statistics import (
    DIAGONAL,
    SQUARE,
    STATISTIC_BITS,
    ArmStatistics,
    ResidualGradient,
    ResidualSizes,
    arm_statistics,
    statistic_sums,
)
from counterveil.rows.moments.unit_rows import ArmForm, InteractedForm, LinearPropensity, shortened

COVARIATES = {"x": cv.Range(-1, 1), "c": cv.Categories(["u", "v", "w"])}
STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-1, 1)), COVARIATES)
BASIS = make_basis((Axis("x", "legendre", 2, -1.0, 2.0), Axis("c", "labels", 3)), 3, True)
CATE_REST = [(0.1, "u", 0, 0.0), (0.2, "v", 1, 0.5), (-0.3, "w", 0, 0.1), (0.4, "u", 1, -0.2)]
CATE_GRID = list(product((-1.0, 0.2, 1.0), ("u", "w"), (0, 1), (-1.0, 0.0, 1.0)))


def cate_table(first):
    """Return the rows (x, c, t, y) of one changing record and the fixed ones."""
    x, c, t, y = zip(first, *CATE_REST, strict=True)
    return Table.attach({"x": list(x), "c": list(c), "t": list(t), "y": list(y)}, STUDY)


def arm_form(length=0.5):
    """Return the form of rows by arm."""
    return ArmForm(BASIS, length)


def interacted_form(clip=np.inf, length=0.7):
    """Return the form of interacted rows at released weights of no importance."""
    weights = np.linspace(-0.5, 0.7, BASIS.size)
    start = np.linspace(0.2, -0.3, 2 * BASIS.size)
    propensity = LinearPropensity(np.linspace(0.6, -1.0, BASIS.size), 0.1)
    return InteractedForm(BASIS, length, propensity, weights, start, clip)


def changes(declaration):
    """Return the largest change of what is released over all exchanges of a record, and the claim."""
    values = []
    for record in CATE_GRID:
        gate = noting(cate_table(record))
        declaration.release(gate, "m")
        values.append(gate.values["m"])
    return largest_change(values), float(gate.sensitivity["m"])


@pytest.mark.parametrize("length", [0.2, 0.5, 1.0])
def test_no_exchange_moves_moments_by_arm_further_than_claimed(length):
    found, claim = changes(ArmStatistics(arm_form(length)))
    assert 0.4 * claim < found <= claim


@pytest.mark.parametrize("clip", [np.inf, 0.3])
def test_nor_those_of_interacted_rows(clip):
    found, claim = changes(ArmStatistics(interacted_form(clip)))
    assert 0.5 * claim < found <= claim


def test_vectors_on_a_grid_reach_the_bound_and_never_exceed_it():
    angles = np.arange(0, 2 * np.pi, np.pi / 8)
    vectors = [r * np.array([np.cos(a), np.sin(a)]) for a in angles for r in (0.5, 1.0)]
    records = [(u, arm, v) for u in vectors for arm in (0, 1) for v in (-1.0, -0.5, 0.0, 0.3, 1.0)]
    found = []
    for u, arm, v in records:
        block = (u[None], np.array([arm]), np.array([v]))
        (grams, crossed, square), unit = statistic_sums([block], 2), 4.0**-STATISTIC_BITS
        parts = []
        for gram, products in zip(grams, crossed, strict=True):
            parts += [gram[0][0] * float(DIAGONAL), gram[1][1] * float(DIAGONAL), gram[0][1], *products]
        found.append([part * unit for part in [*parts, square[0] * float(SQUARE)]])
    largest, claim = largest_change(found), float(arm_statistics(1))
    assert 0.9999 * claim < largest <= claim


@pytest.mark.parametrize("clip", [0.05, 0.6])
@pytest.mark.parametrize("form", [arm_form(), interacted_form()], ids=["arms", "interacted"])
def test_no_exchange_moves_a_gradient_step_further_than_claimed(clip, form):
    weights = np.linspace(-0.2, 0.3, form.arms * form.size).reshape(form.arms, form.size)
    found, claim = changes(ResidualGradient(form, weights, clip))
    assert 0.6 * claim < found <= claim
    # In the outcome's units the sum of u times the clipped residual moves by twice the clip.
    assert claim * clip * (1 + len(CATE_REST)) == pytest.approx(2 * clip, rel=1e-8)


def test_no_exchange_moves_the_counts_of_sizes_further_than_claimed():
    found, claim = changes(ResidualSizes(arm_form(), np.zeros((2, BASIS.size)), EDGES))
    assert found == pytest.approx(claim, rel=1e-12)


def test_what_is_released_is_what_was_summed():
    table = cate_table((0.3, "v", 1, 0.7))
    form = arm_form()
    gate = noting(table)
    found = ArmStatistics(form).release(gate, "m")
    u, arm, v = next(form.blocks(table))
    for place in (0, 1):
        own = arm == place
        assert found.grams[place] == pytest.approx(u[own].T @ u[own] / 5, abs=1e-5)
        assert found.products[place] == pytest.approx(u[own].T @ v[own] / 5, abs=1e-5)
    assert found.square == pytest.approx(float(v @ v) / 5, abs=1e-5)
    weights = np.linspace(-0.2, 0.3, 2 * BASIS.size).reshape(2, BASIS.size)
    step = ResidualGradient(form, weights, 0.5).release(gate, "g")
    residual = np.clip(v - (u * weights[arm]).sum(axis=1), -0.5, 0.5)
    expected = np.concatenate([u[arm == place].T @ residual[arm == place] / 5 for place in (0, 1)])
    assert step.products == pytest.approx(expected, abs=1e-5)
    assert step.square == pytest.approx(float(residual @ residual) / 5, abs=1e-5)


def test_size_is_the_smallest_edge_above_nearly_all_residuals():
    gate = noting(cate_table((0.3, "v", 1, 0.9)))
    found = find_sizes(gate, "s", arm_form(1.0), np.zeros((2, BASIS.size)), rows=5, level=0.0)
    assert found.most == EDGES[np.searchsorted(EDGES, 0.9)]
    # A clip at 0.1 loses what lies beyond it: sizes of 0.5, 0.1, 0.2 and 0.9, of five rows.
    assert found.lost(0.1) == pytest.approx(0.7 * (0.4 + 0.1 + 0.8) / 5, rel=0.1)
    assert found.lost(1.0) < 1e-6
    noisy = replace(found, sd=0.01)
    assert noisy.lost(1.0) == 0  # no outcome lies further from the mean than the end of its range
    assert noisy.clip(0.2, 1e-6) > 0.9
    assert noisy.clip(0.2, 100.0) == 0.2


def test_rows_are_shortened_with_their_outcomes():
    u, factor = shortened(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    assert u == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4]]))
    assert factor == pytest.approx([0.2, 1.0])
