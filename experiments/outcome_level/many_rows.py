"""What is left unbalanced with many rows: `python -m experiments.outcome_level.many_rows`.

Weights that could be had in passes, beside those of `weighting`, on designs with known mean outcomes: logistic
propensities on covariates and on their squares and products, normalised by arm; weights that balance the latter
exactly (entropy balancing, Hainmueller 2012); and least squares on them, as `cv.moments` has it. All are functions of
public columns, so that bias and standard error of the ATE follow from them without drawing outcomes. Prints the bias
in standard errors of each, and the coverage that an interval of 1.96 standard errors has with it; that of `weighting`
allows for bias of half a standard error and is a little longer.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from scipy.special import ndtr

from counterveil.estimators.linear.weighting import weighted_effect
from counterveil.numerics.propensity import fit_propensity
from counterveil.privacy import Unit
from counterveil.rows.public import PublicRows
from experiments.causal.designs import Design, bent, correlated
from experiments.outcome_level.redrawn import attached, question_of
from experiments.outcome_level.surfaces import bent_kind
from experiments.runner import Row, Table, run

ROWS = (10_000, 100_000, 1_000_000)
ERRORS = {"bent index": 0.7, "wave": 0.5, "correlated": 0.3}
DESIGNS: dict[str, Callable[[int], Design]] = {
    "bent index": lambda n: bent(n, 7),
    "wave": lambda n: bent_kind("wave", n, 12),
    "correlated": lambda n: correlated(n, True),
}
# Rows up to which `weighting` is asked, which holds all of them, and up to which twenty covariates have products.
_MOST_IN_MEMORY = 100_000


def features(design: Design, degree: int) -> np.ndarray:
    """Return standardised covariates and, for degree 2, their squares and products."""
    x = np.column_stack([np.asarray(design.columns[name], float) for name in design.study.covariates])
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    if degree == 1:
        return x
    pairs = [x[:, i] * x[:, j] for i in range(x.shape[1]) for j in range(i, x.shape[1])]
    both = np.column_stack([x, *pairs])
    return np.asarray((both - both.mean(axis=0)) / both.std(axis=0))


def normalised(weights: np.ndarray, treated: np.ndarray) -> np.ndarray:
    """Return coefficients that sum to one over the treated and to minus one over the others."""
    first, second = weights[treated].sum(), weights[~treated].sum()
    return np.where(treated, weights / first, -weights / second)


def logistic(design: Design, degree: int) -> np.ndarray:
    """Return the coefficients of inverse propensities."""
    scores = fit_propensity(features(design, degree) / 4, design.treated, 1 / len(design.treated)).scores
    return normalised(np.where(design.treated, 1 / scores, 1 / (1 - scores)), design.treated)


def balanced(design: Design) -> np.ndarray:
    """Return coefficients of each arm that balance its features to those of everyone; Newton steps on the dual."""
    x, weights = features(design, 2), np.ones(len(design.treated))
    for arm in (design.treated, ~design.treated):
        own, multipliers = x[arm], np.zeros(x.shape[1])
        for _ in range(30):
            w = np.exp(own @ multipliers)
            w /= w.sum()
            gap = w @ own
            spread = (own * w[:, None]).T @ own - np.outer(gap, gap)
            step = np.linalg.solve(spread + 1e-9 * np.eye(len(gap)), gap)
            multipliers -= step * min(1.0, 1 / max(float(np.abs(own @ step).max()), 1e-12))
        weights[arm] = np.exp(own @ multipliers)
    return normalised(weights, design.treated)


def regressed(design: Design) -> np.ndarray:
    """Return the coefficients of least squares on treatment, lines, squares and products."""
    x = np.column_stack([np.ones(len(design.treated)), features(design, 2)])
    t = design.treated.astype(float)
    left = t - x @ np.linalg.solve(x.T @ x + 1e-9 * np.eye(x.shape[1]), x.T @ t)
    return np.asarray(left / (left @ t))


def in_memory(design: Design) -> np.ndarray:
    """Return the coefficients of `weighting`, in the order of the rows."""
    effect = weighted_effect(
        PublicRows(attached(design, 0), Unit.OUTCOME), question_of(1.0, "weighting", "ATE")
    )
    found = np.empty(len(design.treated))
    found[np.argsort(~design.treated, kind="stable") if effect.rows else slice(None)] = effect.coefficients
    return found


WEIGHTS: dict[str, Callable[[Design], np.ndarray]] = {
    "logistic, lines": lambda design: logistic(design, 1),
    "logistic, squares and products": lambda design: logistic(design, 2),
    "balanced squares and products": balanced,
    "least squares on these": regressed,
    "weighting": in_memory,
}


def bias_in_errors(design: Design, coefficients: np.ndarray, sd: float) -> float:
    """Return the bias of the ATE in standard errors of the weighted sum."""
    means = np.where(design.treated, design.means[1], design.means[0])
    error = sd * sqrt(float(coefficients @ coefficients))
    return (float(coefficients @ means) - design.truth("ATE")) / error


def row(name: str, rows: int, *, seeds: range) -> Row:
    """Return bias in standard errors and coverage of every kind of weights; nothing is drawn."""
    design, cells = DESIGNS[name](rows), []
    for kind, weights in WEIGHTS.items():
        if kind == "weighting" and rows > _MOST_IN_MEMORY:
            cells.append("")
            continue
        bias = bias_in_errors(design, weights(design), ERRORS[name])
        cells.append(f"{bias:+.2f} ({ndtr(1.96 - bias) - ndtr(-1.96 - bias):.2f})")
    return [name, rows, *cells]


TABLES = {
    "weights": Table(
        columns=("design", "rows :,", *WEIGHTS),
        cells=[
            (name, rows)
            for name in DESIGNS
            for rows in ROWS
            if name != "correlated" or rows <= _MOST_IN_MEMORY
        ],
        row=row,
    )
}

if __name__ == "__main__":
    run(__doc__, TABLES)
