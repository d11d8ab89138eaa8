"""Free tables about covariates and treatments, for questions that protect outcomes alone."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.ate.covariates import Features
from counterveil.kernels.balance import balances, effective_size, overlap_counts

Floats = NDArray[np.float64]

_BINS = 20


def design_diagnostics(
    features: Features, treated: NDArray[np.bool_], score: Floats, coefficients: Floats
) -> dict[str, Any]:
    """Return JSON-ready tables: balance before and after, overlap of scores, effective sizes of the arms.

    `coefficients` are those of a linear estimate; within each arm their sizes are the weights "after". A
    difference or ratio that does not exist (a column constant in one arm) is None.
    """
    weights = np.abs(coefficients)
    return {
        "balance": _balance(features, treated, weights),
        "overlap": _overlap(treated, score),
        "effective_size": _sizes(treated, weights),
    }


def _balance(features: Features, treated: NDArray[np.bool_], weights: Floats) -> list[dict[str, Any]]:
    before, after = balances(features.values, treated, weights)
    return [
        {
            "covariate": name,
            "difference_before": _finite(before.difference[place]),
            "difference_after": _finite(after.difference[place]),
            "variance_ratio_before": _finite(before.variance_ratio[place]),
            "variance_ratio_after": _finite(after.variance_ratio[place]),
        }
        for place, name in enumerate(features.names)
    ]


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


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
