"""Coverage and standard errors of regressions from released moments, beside other estimators.

`python -m experiments.regressions` prints five tables with 200 draws a row: about an hour of CPU (`shapes`, private
outcomes that are rare and skewed: 3 minutes). `robust`, `clusters` and `dose` are made where `--only` names them, in
25, 4 and 5 minutes; `--out` the folder writes robust.csv, clusters.csv and dose.csv. `tuning` has the designs that
settings were chosen on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.regressions import clusters, dose, robust, shapes
from experiments.regressions.designs import FIRST_SEED, REPORTED, TUNING, WEAK, Design, ancova, least_squares
from experiments.regressions.rivals import Found, difference_in_means, noisy_gram, ordinary
from experiments.runner import Row, Table, run

BUDGETS = (
    (5000, "1", "1e-6", "record"),
    (50_000, "1", "1e-6", "record"),
    (50_000, "1", "0", "record"),
)
OUTCOMES = ((5000, "1", "1e-6", "outcome"),)


def coverage(design: Design, rows: int, epsilon: str, delta: str, protects: str, *, seeds: range) -> Row:
    """Return coverage over all coefficients and the least of them, and standard errors beside non-private ones."""
    found = [_one(design, rows, epsilon, delta, seed, protects) for seed in seeds]
    hits, errors, ratios, shares = (np.array(part) for part in zip(*found, strict=True))
    size = np.sqrt(np.mean(errors**2, axis=0))
    covered = [hits.mean(), hits.mean(axis=0).min()]
    lengths = [np.nanmedian(shares), size.mean(), np.median(ratios)]
    return [design.name, rows, f"{protects}; {epsilon}, {delta}", *covered, *lengths]


def _one(
    design: Design, rows: int, epsilon: str, delta: str, seed: int, protects: str = "record"
) -> tuple[list[float], ...]:
    """Return by coefficient: whether it is covered, its error in standard errors, private over non-private, noise."""
    data = design.draw(rows, np.random.default_rng(seed))
    fit = design.release(data, seed, epsilon, delta, protects).regress(design.formula)
    plain = ordinary(design, data)
    hits, errors, ratios, shares = [], [], [], []
    for name, truth in design.truth.items():
        one = fit.coefficient(name)
        low, high = one.interval()
        hits.append(float(low <= truth <= high))
        errors.append((one.estimate - truth) / one.std_error.total)
        ratios.append(one.std_error.total / plain[name][1])
        shares.append((one.std_error.noise / one.std_error.total) ** 2)
    return hits, errors, ratios, shares


def weak(design: Design, rows: int, *, seeds: range) -> Row:
    """Return coverage of Anderson-Rubin and of Wald intervals with weak instruments, and how many are unbounded."""
    kept, open_, wald, strength = [], [], [], []
    for seed in seeds:
        data = design.draw(rows, np.random.default_rng(seed))
        fit = design.release(data, seed, "1", "1e-6").regress(design.formula)
        one, truth = fit.coefficient("d"), design.truth["d"]
        regions = fit.anderson_rubin or ()
        kept.append(any(low <= truth <= high for low, high in regions))
        open_.append(any(np.isinf(end) for ends in regions for end in ends))
        wald.append(abs(one.estimate - truth) <= 1.96 * one.std_error.total)
        strength.append(fit.first_stage)
    return [design.name, rows, np.median(strength), np.mean(kept), np.mean(open_), np.mean(wald)]


Estimator = Callable[[Design, Any, int], Found]
ESTIMATORS: dict[str, Estimator] = {
    "OLS, not private": lambda design, data, _: ordinary(design, data),
    "released moments": lambda design, data, seed: _moments(design, data, seed, "1", "1e-6"),
    "plain noisy Gram": lambda design, data, seed: noisy_gram(design, data, seed, "1", "1e-6"),
    "private difference in means": lambda design, data, seed: difference_in_means(
        design, data, seed, "1", "1e-6"
    ),
    "zero": lambda design, *_: dict.fromkeys(design.truth, (0.0, 0.0)),
}


def errors(design: Design, rows: int, *, seeds: range) -> list[Row]:
    """Return errors of the treatment's coefficient and of the others, for this and other estimators."""
    found: dict[str, list[Found]] = {name: [] for name in ESTIMATORS}
    for seed in seeds:
        data = design.draw(rows, np.random.default_rng(seed))
        for name, estimator in ESTIMATORS.items():
            found[name].append(estimator(design, data, seed))
    slopes = [name for name in design.truth if name not in ("t", "Intercept")]
    usual = _rmse(found["OLS, not private"], design.truth, slopes)
    table: list[Row] = []
    for name, each in found.items():
        own = _rmse(each, design.truth, ["t"])
        error = np.median([one["t"][1] for one in each])
        hits = np.mean([abs(one["t"][0] - design.truth["t"]) <= 1.96 * one["t"][1] for one in each])
        others = _rmse(each, design.truth, slopes) / usual if slopes[0] in each[0] else ""
        table.append([design.name, name, own, error, hits, others])
    return table


def _moments(design: Design, data: Any, seed: int, epsilon: str, delta: str) -> Found:
    fit = design.release(data, seed, epsilon, delta).regress(design.formula)
    return {one.name: (one.estimate, one.std_error.total) for one in fit.coefficients}


def _rmse(each: list[Found], truth: dict[str, float], names: list[str]) -> float:
    if names[0] not in each[0]:
        return float("nan")
    return float(np.sqrt(np.mean([(one[name][0] - truth[name]) ** 2 for one in each for name in names])))


def table(designs: Iterable[Design], budgets: Iterable[Row], first_seed: int, *, apart: bool) -> Table:
    """Return a table of coverage."""
    return Table(
        columns=(
            "design | n :, | protects; epsilon, delta | coverage :.3f | least :.3f | "
            "noise, part :.2f | error / SE :.2f | SE / non-private :.2f"
        ),
        cells=[(design, *budget) for design, budget in product(designs, budgets)],
        row=coverage,
        first_seed=first_seed,
        apart=apart,
    )


TABLES = {
    "coverage": table(REPORTED, BUDGETS, FIRST_SEED, apart=False),
    "outcomes": table(REPORTED, OUTCOMES, FIRST_SEED, apart=False),
    "weak": Table(
        columns=(
            "design | n :, | first-stage F, median :.1f | Anderson-Rubin :.3f | unbounded :.2f | Wald :.3f"
        ),
        cells=list(product(WEAK, (5000, 50_000))),
        row=weak,
        first_seed=FIRST_SEED,
    ),
    "errors": Table(
        columns=(
            "design | estimator | RMSE of t :.4f | its SE :.4f | coverage of t :.2f | "
            "RMSE of slopes / non-private :.2f"
        ),
        cells=[(design, 50_000) for design in (least_squares(0.5, 0.5), ancova(0.0))],
        row=errors,
        first_seed=FIRST_SEED,
    ),
    "shapes": shapes.TABLE,
    "tuning": table(TUNING, BUDGETS, 0, apart=True),
    "robust": robust.TABLE,
    "clusters": clusters.TABLE,
    "dose": dose.TABLE,
}

if __name__ == "__main__":
    run(__doc__, TABLES, folder=Path(__file__).parent)
