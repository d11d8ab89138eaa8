"""Coverage and size of regressions with HC1 errors, terms of formulas and absorbed groups."""

from __future__ import annotations

from typing import Any

import numpy as np

import counterveil as cv
from experiments.runner import Row, Table

FORMULA = "y ~ t + log(x) + I(z**2) + z | C(site)"
TRUTH = {"t": 0.0, "log(x)": 2.0, "z:z": 0.3, "z": 0.1}
STUDY = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (-20, 40)),
    {"x": cv.Range(1, 9), "z": cv.Range(-3, 3), "site": cv.Categories(["a", "b", "c"])},
    assignment=cv.Trial(),
)
DESIGNS = (
    ("equal variances", 5000),
    ("variance follows x and z", 5000),
    ("variance follows x and z", 20_000),
    ("5% treated, skewed", 3000),
)


def draw(design: str, rows: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return rows of a design without an effect of t."""
    x, z = rng.uniform(1, 9, rows), np.clip(rng.normal(0, 1, rows), -3, 3)
    site, t = rng.choice(list("abc"), rows), (rng.random(rows) < 0.5).astype(int)
    errors = 2 * rng.normal(0, 1, rows)
    if design == "variance follows x and z":
        errors *= np.sqrt(0.2 + 0.6 * z**2 + 0.04 * x)
    elif design != "equal variances":
        t = (rng.random(rows) < 0.05).astype(int)
        errors = (1 + 2 * t) * (rng.exponential(1, rows) - 1)
    y = 5 + 2 * np.log(x) + 0.3 * z**2 + 0.1 * z + (site == "b") + errors
    return {"x": x, "z": z, "site": site, "t": t, "y": y}


def least_squares(data: dict[str, Any], kind: str) -> Any:
    """Return the same regression of statsmodels without privacy."""
    from statsmodels.formula.api import ols

    return ols("y ~ t + np.log(x) + I(z**2) + z + C(site)", data).fit(cov_type=kind)


def joint(fit: Any, plain: Any) -> list[float]:
    """Return whether Wald tests of all true values, and of no z at all, reject: ours and those of statsmodels."""
    ours = [fit.wald_test(", ".join(f"{name} = {value}" for name, value in TRUTH.items()))]
    ours.append(fit.wald_test("I(z**2) = 0, z = 0"))
    rows = np.eye(3 + len(TRUTH))[3:]
    theirs = [plain.wald_test((rows, list(TRUTH.values())), use_f=True, scalar=True)]
    theirs.append(plain.wald_test(rows[2:], use_f=True, scalar=True))
    tests = [one.pvalue for one in ours] + [float(one.pvalue) for one in theirs]
    return [float(p < 0.05) for p in tests]


def cell(design: str, rows: int, protects: str, *, seeds: range) -> list[Row]:
    """Return a row of coverage, size and length for HC1 and for classical errors."""
    kept: dict[str, list[list[float]]] = {"HC1": [], "nonrobust": []}
    for seed in seeds:
        data = draw(design, rows, np.random.default_rng(seed))
        moments = cv.moments(
            data,
            STUDY,
            protects=protects,
            epsilon=1,
            delta="1e-6",
            terms=["log(x)", "I(z**2)"],
            robust=[FORMULA],
            noise=cv.SeededNoise(seed),
        )
        errors = least_squares(data, "HC1").bse.to_numpy()[3:]
        for kind, each in kept.items():
            fit = moments.regress(FORMULA, cov_type=kind)
            ends = fit.interval()
            hits = [float(ends[name][0] <= truth <= ends[name][1]) for name, truth in TRUTH.items()]
            halves = np.array([(high - low) / 2 for low, high in ends.values()])
            tests = joint(fit, least_squares(data, kind))
            each.append([*hits, *tests, float(np.median(halves / (1.96 * errors)))])
    found: list[Row] = []
    for kind, each in kept.items():
        mean = np.mean(each, axis=0)
        row = [design, rows, protects, kind, len(seeds), *np.round(mean[:-1], 3), round(1 - mean[0], 3)]
        found.append([*row, round(float(np.median(np.array(each)[:, -1])), 2)])
    return found


TABLE = Table(
    columns=(
        *("design", "n", "protects", "errors", "draws", *(f"coverage {name}" for name in TRUTH)),
        *(f"{what}, {whose}" for whose in ("ours", "statsmodels") for what in ("Wald size", "Wald power")),
        *("size of t", "length / non-private HC1"),
    ),
    cells=[(*design, protects) for design in DESIGNS for protects in ("record", "outcome")],
    row=cell,
    first_seed=0,
    apart=True,
)
