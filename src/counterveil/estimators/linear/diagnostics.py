"""Tables about public weights: balance, overlap of scores, effective sizes, what explains treatment.

- balance: of every covariate the difference of the arms' means in standard deviations and the ratio of their
  variances, with equal weights ("before") and with the weights of the estimate ("after");
- overlap: counts of rows of both arms in 20 equal bins of the propensity score;
- effective size: (sum of |c_i|)^2 / sum of c_i^2 within an arm, in rows that count equally;
- treatment_r2: the partial R^2 of each covariate for treatment beyond the others, with which a supposed
  omitted confounder is compared.

In: covariates, treatments, scores and coefficients c, which are public where outcomes alone are private. Out:
JSON-ready tables. No outcome is read and nothing is released with noise; privacy does not depend on these
tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Categories
from counterveil.data.features import Features, column_names
from counterveil.estimators.linear.spline_score import covariate_rows
from counterveil.numerics.arrays import Floats
from counterveil.numerics.balance import Balance, balances, column_balances, effective_size, overlap_counts
from counterveil.numerics.propensity import partial_shares
from counterveil.rows.public import PublicRows

# Bins of the histogram of scores.
_BINS = 20


def treatment_shares(rows: PublicRows) -> dict[str, Any]:
    """Return how much of the treatment each covariate explains beyond the others; nothing for a trial.

    Omitted confounders are compared with these.
    """
    domains = rows.study.covariates
    if rows.study.randomised is True or not domains:
        return {}
    labels = [len(domain.labels) if isinstance(domain, Categories) else 0 for domain in domains.values()]
    shares = partial_shares([rows.covariates[name] for name in domains], labels, rows.treated)
    if shares is None:
        return {}
    listed = [
        {"covariate": name, "partial_r2": float(share)} for name, share in zip(domains, shares, strict=True)
    ]
    return {"treatment_r2": listed}


def design_diagnostics(
    features: Features, treated: NDArray[np.bool_], score: Floats, coefficients: Floats
) -> dict[str, Any]:
    """Return JSON-ready tables: balance before and after, overlap of scores, effective sizes of the arms.

    `coefficients` are those of a linear estimate; within each arm their sizes are the weights "after". A
    difference or ratio that does not exist (a column constant in one arm) is None.
    """
    weights = np.abs(coefficients)
    return _tables(
        features.names,
        balances(features.values, treated, weights),
        treated=treated,
        score=score,
        weights=weights,
    )


def covariate_diagnostics(rows: PublicRows, score: Floats, coefficients: Floats) -> dict[str, Any]:
    """Return the same of the covariates of rows as they are."""
    domains = rows.study.covariates
    weights = np.abs(coefficients)
    labels = [len(domain.labels) if isinstance(domain, Categories) else 0 for domain in domains.values()]
    both_balances = column_balances(covariate_rows(rows), labels, rows.treated, weights)
    return _tables(
        column_names(rows.study), both_balances, treated=rows.treated, score=score, weights=weights
    )


def _tables(
    names: Sequence[str],
    both_balances: tuple[Balance, Balance],
    treated: NDArray[np.bool_],
    score: Floats,
    weights: Floats,
) -> dict[str, Any]:
    return {
        "balance": _balance(names, *both_balances),
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
    sizes = effective_size(treated, weights)
    rows = int(np.count_nonzero(treated))
    return [
        {"arm": "treated", "rows": rows, "effective": sizes[0]},
        {"arm": "control", "rows": len(treated) - rows, "effective": sizes[1]},
    ]


def _finite(values: Floats) -> list[float | None]:
    numbers: list[float | None] = values.tolist()
    for index in np.flatnonzero(~np.isfinite(values)):
        numbers[index] = None
    return numbers
