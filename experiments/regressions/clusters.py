"""Coverage and size of regressions whose rows are whole clusters, each private, beside statsmodels."""

from __future__ import annotations

from typing import Any

import numpy as np

import counterveil as cv
from experiments.runner import Row, Table

FORMULA, SLOPE, EFFECT = "y ~ t + x", 0.5, 0.3
STUDY = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (0, 10)),
    {"x": cv.Range(-3, 3)},
    assignment=cv.Trial(),
    clusters=cv.Clusters("g", protected=True),
)
# Clusters, least and most people in each, part of clusters that are treated, protects.
DESIGNS = (
    (2000, (20, 20), 0.5, "outcome"),
    (5000, (5, 35), 0.5, "record"),
    (2000, (1, 40), 0.1, "record"),
)


def draw(design: tuple[Any, ...], effect: float, seed: int) -> dict[str, Any]:
    """Return people of clusters that are treated as a whole, and differ by a number of their own."""
    count, (least, most), share, _ = design
    rng = np.random.default_rng([seed, count, round(10 * effect)])
    place = np.repeat(np.arange(count), rng.integers(least, most + 1, count))
    t, own = (rng.random(count) < share).astype(int), rng.normal(0, 0.6, (2, count))
    x = np.clip(own[0][place] + rng.normal(0, 0.8, len(place)), -3, 3)
    y = 5 + effect * t[place] + SLOPE * x + own[1][place] + rng.normal(0, 1, len(place))
    return {"g": place, "t": t[place], "x": x, "y": np.clip(y, 0, 10)}


def one(design: tuple[Any, ...], seed: int) -> list[float]:
    """Return what is covered, whether tests reject what is true, and lengths beside means of clusters and people."""
    import pandas as pd
    from statsmodels.formula.api import ols

    fits = []
    for effect in (EFFECT, 0.0):
        data = draw(design, effect, seed)
        noise = cv.SeededNoise(2 * seed + (effect > 0))
        words = {"protects": design[3], "epsilon": 1, "delta": "1e-6", "robust": [FORMULA], "noise": noise}
        fits.append(cv.moments(data, STUDY, **words).regress(FORMULA, cov_type="HC1"))
        people = pd.DataFrame(data)
        means = ols(FORMULA, people.groupby("g").mean()).fit(cov_type="HC1")
        fits.append((means, ols(FORMULA, people).fit(cov_type="cluster", cov_kwds={"groups": people["g"]})))
    ours, (means, rows), null, (plain, clustered) = fits
    found = [
        float(low <= truth <= high)
        for name, truth in (("t", EFFECT), ("x", SLOPE))
        for low, high in [ours.interval()[name]]
    ]
    found += [float(own.wald_test("t = 0", **use).pvalue < 0.05) for own, use in ((null, {}), (plain, _USE))]
    found += [
        float(own.wald_test(_BOTH, **use).pvalue < 0.05) for own, use in ((null, {}), (clustered, _USE))
    ]
    return [*found, ours.bse["t"] / means.bse["t"], ours.bse["t"] / rows.bse["t"]]


_USE: dict[str, Any] = {"use_f": True, "scalar": True}
_BOTH = f"t = 0, x = {SLOPE}"


def row(design: tuple[Any, ...], *, seeds: range) -> Row:
    """Return the row of a design."""
    found = np.array([one(design, seed) for seed in seeds])
    shares, lengths = found[:, :-2].mean(axis=0).round(3), np.median(found[:, -2:], axis=0).round(2)
    count, (least, most), share, protects = design
    return [count, f"{least} to {most}", share, protects, len(seeds), *shares, *lengths]


TABLE = Table(
    columns=(
        "clusters | people in each | treated | protects | draws | t covered | x covered | "
        "size of t | size of t, statsmodels on means | Wald size | "
        "Wald size, statsmodels clustered | SE of t / HC1 of means | SE of t / clustered"
    ),
    cells=[(design,) for design in DESIGNS],
    row=row,
    apart=True,
)
