"""Errors of outcome-level functions on tuning seeds, a row a value.

Seeds are below 100: the tables of this experiment use others. Every number that is a choice is moved by itself, the
others staying as they are in the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import counterveil as cv
from counterveil.estimators.linear import series, series_basis, series_features, series_posterior
from experiments.cate.instances import instance
from experiments.runner import Row, Table

CELLS = (("dataset 1", 3000, 20), ("dataset 1", 30_000, 3), ("dataset 2", 3000, 6), ("skewed 1", 3000, 6))
FIRST = 10
# Module, name, and the values that are tried beside the library's own.
TRIED: tuple[tuple[Any, str, tuple[Any, ...]], ...] = (
    (series_features, "_MOST_LEVERAGE", (100.0, 4.0, 2.0, 0.7)),
    (series_basis, "FALL", (3.0,)),
    (series_posterior, "_SCALES", ((0.002, 0.03, 0.3), (0.01, 0.1, 1.0))),
    (series_posterior, "_HIDDEN", (0.05, 0.5)),
    (series, "_SAFE", (1.0, 3.0)),
    (series, "SEARCH_STEPS", (4, 6)),
    (series, "_CLIPPED", ((1.2, 1.2), (2.4, 0.6))),
    (series, "_FEW_COVARIATES", ((4, 7, 2, 10), (4, 7, 2, 30))),
    (series, "_MANY_COVARIATES", ((4, 7, 2, 20), (4, 7, 2, 30), (4, 7, 2, 55))),
)


def error(design: str, rows: int, studies: int) -> float:
    """Return the mean error over studies at epsilon 1, delta 1e-6."""
    found = []
    for seed in range(FIRST, FIRST + studies):
        study = instance(design, rows, seed)
        model = cv.cate(
            study.table,
            study.study,
            protects="outcome",
            method="series",
            epsilon=1,
            delta="1e-6",
            noise=cv.SeededNoise(seed),
        )
        assert isinstance(model, cv.results.CateModel)
        found.append(study.error(model.answers(study.queries).effect()))
    return float(np.mean(found))


def row(name: str, value: Any, module: Any, *, seeds: range) -> Row:
    """Return the errors with one number moved to a value, which is put back."""
    if module is None:
        return [name, value, *(error(*cell) for cell in CELLS)]
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        return [name, value, *(error(*cell) for cell in CELLS)]
    finally:
        setattr(module, name, before)


TABLE = Table(
    columns=("number", "value", *(f"{design}, n = {rows:,} :.3g" for design, rows, _ in CELLS)),
    cells=[
        ("as they are", "", None),
        *((name, value, module) for module, name, values in TRIED for value in values),
    ],
    row=row,
    apart=True,
)
