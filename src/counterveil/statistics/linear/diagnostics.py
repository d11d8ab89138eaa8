"""Free tables about covariates and treatments, for questions that protect outcomes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Categories, Table
from counterveil.data.features import Features, column_names
from counterveil.numerics.arrays import Floats
from counterveil.numerics.balance import Balance, balances, effective_size, overlap_counts
from counterveil.numerics.columns import column_balances

_BINS = 20


def design_diagnostics(
    features: Features, treated: NDArray[np.bool_], score: Floats, coefficients: Floats
) -> dict[str, Any]:
    """Return JSON-ready tables: balance before and after, overlap of scores, effective sizes of the arms.

    `coefficients` are those of a linear estimate; within each arm their sizes are the weights "after". A
    difference or ratio that does not exist (a column constant in one arm) is None.
    """
    weights = np.abs(coefficients)
    return _tables(features.names, balances(features.values, treated, weights), treated, score, weights)


def covariate_diagnostics(table: Table, raw: Floats, score: Floats, coefficients: Floats) -> dict[str, Any]:
    """Return the same of a table's covariates as they are, `raw` (d, n) holding a line for each."""
    domains, weights = table.study.covariates, np.abs(coefficients)
    labels = [len(domain.labels) if isinstance(domain, Categories) else 0 for domain in domains.values()]
    found = column_balances(raw, labels, table.treated, weights)
    return _tables(column_names(table.study), found, table.treated, score, weights)


def _tables(
    names: Sequence[str],
    found: tuple[Balance, Balance],
    treated: NDArray[np.bool_],
    score: Floats,
    weights: Floats,
) -> dict[str, Any]:
    return {
        "balance": _balance(names, *found),
        "overlap": _overlap(treated, score),
        "effective_size": _sizes(treated, weights),
    }


def _balance(names: Sequence[str], before: Balance, after: Balance) -> list[dict[str, Any]]:
    keys = (
        "covariate",
        "difference_before",
        "difference_after",
        "variance_ratio_before",
        "variance_ratio_after",
    )
    columns = (before.difference, after.difference, before.variance_ratio, after.variance_ratio)
    return [dict(zip(keys, row, strict=True)) for row in zip(names, *map(_finite, columns), strict=True)]


def _overlap(treated: NDArray[np.bool_], score: Floats) -> dict[str, list[float]]:
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    in_treated, in_control = overlap_counts(treated, score, edges)
    return {
        "edges": [round(float(edge), 4) for edge in edges],
        "treated": [int(count) for count in in_treated],
        "control": [int(count) for count in in_control],
    }


def _sizes(treated: NDArray[np.bool_], weights: Floats) -> list[dict[str, Any]]:
    sizes, rows = effective_size(treated, weights), int(np.count_nonzero(treated))
    return [
        {"arm": "treated", "rows": rows, "effective": sizes[0]},
        {"arm": "control", "rows": len(treated) - rows, "effective": sizes[1]},
    ]


def _finite(values: Floats) -> list[float | None]:
    found: list[float | None] = values.tolist()
    for place in np.flatnonzero(~np.isfinite(values)):
        found[place] = None
    return found
