"""The benchmark instances: covariates, treatment, outcome on [0, 1], the true effect where known.

Outcomes are divided by the range B, which is the observed factual range widened by 2 % at each end
(LaLonde: 60308 dollars). Covariates are scaled to [0, 1] by their smallest and largest values.
"""

from __future__ import annotations

import csv
import gzip
import math
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import expit

from counterveil.numerics.matching import matching_coefficients
from counterveil.numerics.propensity import fit_propensity

NEIGHBOURS = 5
# The constant of the adaptive limit on reuse, as printed with the method that is compared against.
LIMIT_CONSTANT = 0.01

TUNING = {
    "IHDP 1-5": [f"ihdp-{i}" for i in range(1, 6)],
    "Synth 0-9": [f"synth-{i}" for i in range(10)],
    "ACIC 2-3": ["acic-2", "acic-3"],
}
REPORTED = {
    "IHDP 6-25": [f"ihdp-{i}" for i in range(6, 26)],
    "Synth 10-49": [f"synth-{i}" for i in range(10, 50)],
    "ACIC 1": ["acic-1"],
    "ACIC 4-5": ["acic-4", "acic-5"],
    "LaLonde": ["lalonde-1"],
}


@dataclass(frozen=True)
class Instance:
    name: str
    covariates: np.ndarray
    kinds: tuple[str, ...]
    treated: np.ndarray
    outcome: np.ndarray
    effect: float
    scores: np.ndarray
    matching: np.ndarray
    largest_use: int

    @property
    def matched_effect(self) -> float:
        return float(self.matching @ self.outcome)

    def limited_matching(self, epsilon: float) -> tuple[np.ndarray, int, int]:
        """Return the coefficients under the adaptive limit, and the limits k of both arms."""
        treated, control = int(self.treated.sum()), int((~self.treated).sum())
        larger, smaller = max(treated, control), min(treated, control)
        most = self.largest_use / NEIGHBOURS
        k = max(round(math.sqrt(epsilon * LIMIT_CONSTANT * larger * most / 2)), 1)
        k = max(min(k, math.floor(most)), 1, math.ceil(larger / smaller))
        ratio = smaller / larger
        k_treated, k_control = (
            (k, max(1, round(k * ratio))) if treated <= control else (max(1, round(k * ratio)), k)
        )
        found = matching_coefficients(
            self.treated, self.scores, NEIGHBOURS, k_treated * NEIGHBOURS, k_control * NEIGHBOURS
        )
        return found.coefficients, k_treated, k_control


@cache
def load(name: str) -> Instance:
    family, number = name.split("-")
    return {"ihdp": _ihdp, "acic": _acic, "synth": _synth, "lalonde": _lalonde}[family](int(number))


def _finish(name, X, kinds, treated, outcome, effect, bounds=None) -> Instance:
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1.0)
    margin = 0.02 * (outcome.max() - outcome.min())
    floor, ceiling = bounds or (outcome.min() - margin, outcome.max() + margin)
    # Centred, so that the penalty on the intercept does not pull the whole model.
    scores = fit_propensity(X - X.mean(axis=0), treated, 1 / len(X)).scores
    matching = matching_coefficients(treated, scores, NEIGHBOURS)
    for j, kind in enumerate(kinds):
        if kind == "label":
            X[:, j] = np.round(X[:, j] * (high[j] - low[j]))
    scaled = (outcome - floor) / (ceiling - floor)
    return Instance(
        name, X, tuple(kinds), treated, scaled, effect / (ceiling - floor), scores,
        matching.coefficients, int(matching.uses.max()),
    )  # fmt: skip


def _rows(*parts: str) -> list[dict[str, str]]:
    path = Path(os.environ["COUNTERVEIL_DATA"], *parts)
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def _column(rows, name) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def _kinds(X) -> list[str]:
    return ["binary" if len(np.unique(column)) <= 2 else "number" for column in X.T]


def _ihdp(number: int) -> Instance:
    rows = _rows("ihdp", f"ihdp_npci_{number}.csv.gz")
    X = np.column_stack([_column(rows, f"x{j}") for j in range(1, 26)])
    effect = float((_column(rows, "mu1") - _column(rows, "mu0")).mean())
    treated = _column(rows, "treatment") == 1
    return _finish(f"ihdp-{number}", X, _kinds(X), treated, _column(rows, "y_factual"), effect)


def _acic(number: int) -> Instance:
    rows = _rows("acic2016", "x.csv.gz")
    columns, kinds = [], []
    for name in rows[0]:
        cells = [row[name] for row in rows]
        try:
            columns.append(np.array([float(cell) for cell in cells]))
            kinds.extend(_kinds(columns[-1][:, None]))
        except ValueError:
            codes = {label: code for code, label in enumerate(sorted(set(cells)))}
            columns.append(np.array([float(codes[cell]) for cell in cells]))
            kinds.append("label")
    responses = _rows("acic2016", f"zymu_{number}.csv.gz")
    treated = _column(responses, "z") == 1
    outcome = np.where(treated, _column(responses, "y1"), _column(responses, "y0"))
    effect = float((_column(responses, "mu1") - _column(responses, "mu0")).mean())
    return _finish(f"acic-{number}", np.column_stack(columns), kinds, treated, outcome, effect)


def _synth(seed: int, n: int = 1000, d: int = 20) -> Instance:
    """Linear outcome, logistic treatment; X is uniform on the unit cube."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    treatment_slope, outcome_slope = rng.uniform(-1.0, 1.0, d), rng.uniform(0.0, 0.4, d)
    treated = rng.uniform(size=n) < expit((2 * X - 1) @ treatment_slope)
    outcome = X @ outcome_slope + 0.5 * treated + rng.uniform(0.0, 0.1, n)
    return _finish(f"synth-{seed}", X, ["number"] * d, treated, outcome, 0.5)


def _lalonde(number: int) -> Instance:
    rows = _rows("lalonde", "nsw_dw.csv.gz")
    names = ("age", "education", "black", "hispanic", "married", "nodegree", "re74", "re75")
    X = np.column_stack([_column(rows, name) for name in names])
    treated = _column(rows, "treat") == 1
    return _finish(
        f"lalonde-{number}", X, _kinds(X), treated, _column(rows, "re78"), math.nan, (0.0, 60308.0)
    )
