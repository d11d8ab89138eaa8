"""The score that weights for balance treat as a feature."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.statistics.linear.matching_design import scored
from counterveil.statistics.linear.weighting_design import spline_score


def attached(t, **columns):
    domains = {name: cv.Range(-1000, 1000) for name in columns}
    study = cv.Study("t", "y", (0, 1), domains, control=0)
    return Table.attach({"t": t.astype(int), "y": np.zeros(len(t)), **columns}, study)


def score_of(table):
    return spline_score(table).score


def test_a_logit_that_bends_is_followed_better_than_by_a_straight_one():
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, 5000))
    truth = 1 / (1 + np.exp(1 - 2 * np.maximum(x, 0) - z))
    table = attached(rng.random(5000) < truth, x=x, z=z)
    straight = scored(table).score
    assert np.abs(score_of(table) - truth).mean() < 0.85 * np.abs(straight - truth).mean()


def test_a_few_far_rows_do_not_decide_a_slope():
    rng = np.random.default_rng(3)
    x = rng.normal(size=2000)
    treated = rng.random(2000) < 1 / (1 + np.exp(-x))
    far = x.copy()
    far[:10] = 30.0
    treated[:10] = False
    robust, plain = score_of(attached(treated, x=far)), scored(attached(treated, x=far)).score
    truth = 1 / (1 + np.exp(-x))
    assert np.abs(robust - truth)[10:].mean() < 0.5 * np.abs(plain - truth)[10:].mean()


def test_constant_columns_and_labels_are_no_trouble():
    rng = np.random.default_rng(4)
    treated = np.arange(60) % 2 == 1
    study = cv.Study(
        "t", "y", (0, 1), {"x": cv.Range(0, 1), "c": cv.Range(0, 1), "g": cv.Categories(["a", "b", "d"])},
        control=0,
    )  # fmt: skip
    frame = {"t": treated.astype(int), "y": np.zeros(60), "x": rng.random(60), "c": np.full(60, 0.25)}
    table = Table.attach({**frame, "g": rng.choice(["a", "b", "d"], 60)}, study)
    score = score_of(table)
    assert ((score > 0) & (score < 1)).all()
    assert score.mean() == pytest.approx(0.5, abs=0.02)
