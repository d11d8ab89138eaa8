"""`python -m experiments.third_level [--draws N] [--designs ...]`: runs what is not saved yet, prints the table.

With `--protects record` and `--methods`, the same table of private records.

Needs COUNTERVEIL_DATA. Each draw has new treatments, outcomes and noise on the same covariates.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import product
from math import nan
from pathlib import Path

import numpy as np
from scipy.special import expit

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import feature_sets
from counterveil.errors import CounterveilError
from counterveil.estimators.moments.arm_chain import shortest
from counterveil.estimators.pairs.budget import chosen
from counterveil.privacy import Budget, Unit
from counterveil.rows.public import PublicRows
from experiments.runner import save, saved
from experiments.third_level.designs import DESIGNS, Design

LEVEL = "treatment and outcome"
BUDGETS = (("0.5", "1e-6"), ("1", "1e-6"), ("2", "1e-6"), ("4", "1e-6"), ("1", "0"))
FIRST_NOISE = 300_000
NORMAL = 1.959963984540054


@dataclass(frozen=True)
class Row:
    """One answer: errors and half-lengths of it, of AIPW on the same features, of a private difference in means."""

    protects: str
    design: str
    method: str
    estimand: str
    epsilon: str
    delta: str
    draw: int
    error: float
    half: float
    aipw_error: float
    aipw_half: float
    means_error: float
    means_half: float
    truth: float
    features: int
    refusal: str


def aipw(z: np.ndarray, treated: np.ndarray, y: np.ndarray, estimand: str) -> tuple[float, float]:
    """Return AIPW without privacy on the same features, and its standard error."""
    t, b = treated.astype(float), np.zeros(z.shape[1])
    for _ in range(40):
        e = expit(np.clip(z @ b, -8, 8))
        step = np.linalg.solve((z * (e * (1 - e))[:, None]).T @ z + np.eye(len(b)), z.T @ (t - e) - b)
        farthest = float(np.abs(z @ step).max())
        b = b + step * min(1.0, 2 / farthest)
        if farthest < 1e-6:
            break
    e = np.clip(expit(z @ b), 0.02, 0.98)
    m1, m0 = (
        z @ np.linalg.solve(z[arm].T @ z[arm] + 0.1 * np.eye(len(b)), z[arm].T @ y[arm])
        for arm in (treated, ~treated)
    )
    n, freedom = len(y), len(y) / (len(y) - 2 * len(b))
    if estimand == "ATE":
        u = m1 - m0 + t / e * (y - m1) - (1 - t) / (1 - e) * (y - m0)
        own = u - (m1 - m0) - (u - (m1 - m0)).mean()
        return float(u.mean()), float(np.sqrt(freedom * (own**2).sum()) / n)
    if estimand == "ATO":
        m, size = e * m1 + (1 - e) * m0, float(((t - e) ** 2).sum())
        found = float((t - e) @ (y - m)) / size
        return found, float(np.sqrt(freedom * ((t - e) ** 2 * (y - m - found * (t - e)) ** 2).sum()) / size)
    if estimand == "ATC":
        found, error = aipw(z, ~treated, y, "ATT")
        return -found, error
    u = t * (y - m0) - (1 - t) * e / (1 - e) * (y - m0)
    found = float(u.sum() / t.sum())
    return found, float(np.sqrt(freedom * ((u - t * found) ** 2).sum()) / t.sum())


_AIPW: dict[tuple[object, ...], tuple[float, float]] = {}
_FEATURES: dict[tuple[str, ...], np.ndarray] = {}


def features_of(design: Design, protects: str, epsilon: str, delta: str) -> np.ndarray:
    """Return the features that the budget chooses, white; they depend on covariates alone."""
    key = (design.name, protects, epsilon, delta)
    if key not in _FEATURES:
        table, budget = Table.attach(design.drawn(0), design.study), Budget(epsilon, delta)
        if protects == LEVEL:
            _FEATURES[key] = chosen(PublicRows(table, Unit.TREATMENT_AND_OUTCOME), budget).features.z
        else:
            noise = ("gaussian", "staircase") if budget.delta else ("staircase",)
            found = shortest(feature_sets(design.study), table.rows, budget, noise).features
            x = found.block(table.covariates, slice(0, table.rows))
            white = np.linalg.qr(np.column_stack([np.ones(len(x)), x - x.mean(axis=0)]))[0]
            _FEATURES[key] = white * np.sqrt(len(x))
    return _FEATURES[key]


def answer(design: Design, key: tuple[str, str, str, str, str], draw: int) -> Row:
    """Return one answer with what it is compared with."""
    protects, method, estimand, epsilon, delta = key
    columns, study, truth = design.drawn(draw), design.study, design.truth(estimand)
    head = (protects, design.name, method, estimand, epsilon, delta, draw)
    table = Table.attach(columns, study)
    words = {
        "protects": protects,
        "epsilon": epsilon,
        "delta": delta,
        "noise": cv.SeededNoise(FIRST_NOISE + draw),
    }
    try:
        features = features_of(design, protects, epsilon, delta)
        found = cv.ate(table, study, estimand=estimand, method=method, **words)
    except CounterveilError as error:
        return Row(*head, *[nan] * 6, truth, 0, error.code)
    y = np.asarray(columns[study.outcome], float)
    place = (design.name, features.shape[1], estimand, draw)
    if place not in _AIPW:
        _AIPW[place] = aipw(features, table.treated, y, estimand)
    plain, se = _AIPW[place]
    trial = study._changed(covariates={}, randomised=True)
    own = {name: columns[name] for name in (study.treatment, study.outcome)}
    means = cv.ate(own, trial, **words)
    return Row(
        *head,
        found.estimate - truth,
        found.uncertainty.half_width(0.95),
        plain - truth,
        NORMAL * se,
        means.estimate - truth,
        means.uncertainty.half_width(0.95),
        truth,
        int(found.details.get("features", features.shape[1] - 1)),
        "",
    )


def table_of(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of a table: coverage, width over AIPW, and root mean squared errors over that of AIPW."""
    heads = (
        "private",
        "design",
        "method",
        "estimand",
        "epsilon, delta",
        "draws",
        "refused",
        "covers",
        "width",
        "AIPW covers",
    )
    heads += ("RMSE over AIPW: ours, means, zero", "features")
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for key in dict.fromkeys(astuple(row)[:6] for row in rows):
        own = [row for row in rows if astuple(row)[:6] == key]
        told = [row for row in own if not row.refusal]
        head = f"| {' | '.join(key[:4])} | {key[4]}, {key[5]} | {len(own)} | {len(own) - len(told)} |"
        if not told:
            yield f"{head} | | | | |"
            continue
        covers = np.mean([abs(row.error) <= row.half for row in told])
        plain = np.mean([abs(row.aipw_error) <= row.aipw_half for row in told])
        width = np.median([row.half for row in told]) / np.median([row.aipw_half for row in told])
        root = {
            name: np.sqrt(np.mean([getattr(row, name) ** 2 for row in told]))
            for name in ("error", "aipw_error", "means_error", "truth")
        }
        errors = ", ".join(
            f"{root[name] / root['aipw_error']:.2f}" for name in ("error", "means_error", "truth")
        )
        yield f"{head} {covers:.3f} | {width:.2f} | {plain:.3f} | {errors} | {told[0].features} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.third_level")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS))
    parser.add_argument("--protects", default=LEVEL)
    parser.add_argument("--methods", nargs="*", default=["auto"])
    parser.add_argument("--estimands", nargs="*", default=["ATE"])
    parser.add_argument("--budgets", nargs="*", default=[f"{epsilon},{delta}" for epsilon, delta in BUDGETS])
    parser.add_argument("--saved", type=Path, default=Path("third_level.csv"))
    given = parser.parse_args()
    done = {astuple(row)[:7] for row in saved(given.saved, Row)}
    for name in given.designs:
        design = DESIGNS[name]()
        for method, estimand, budget in product(given.methods, given.estimands, given.budgets):
            epsilon, delta = budget.split(",")
            for draw in range(given.draws):
                if (given.protects, design.name, method, estimand, epsilon, delta, draw) not in done:
                    row = answer(design, (given.protects, method, estimand, epsilon, delta), draw)
                    save(given.saved, row)
    print("\n".join(table_of(saved(given.saved, Row))))


if __name__ == "__main__":
    main()
