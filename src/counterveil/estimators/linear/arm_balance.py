"""Tables about weighted arms, each against everybody: balance, effective sizes, and small propensity scores.

For weights w of an arm's rows that add up to one, a feature x and everybody's standard deviation s of it,

    difference = sum_i w_i (x_i - mean of everybody) / s,    variance ratio = sum_i w_i (x_i - m_w)^2 / s^2,

m_w being the weighted mean, each before (equal weights) and after; the effective size is 1 / sum_i w_i^2, in
rows. In: features, scores, arms and weights, which are public where outcomes alone are private. Out:
JSON-ready tables. No outcome is read and nothing is released with noise, so that privacy does not depend on
these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.features import Features
from counterveil.numerics.arrays import Floats
from counterveil.rows.linear.weighted_sum import LinearForm

# Scores below this make an arm's mean rest on few people.
_RARE = 0.05
# The rows of an arm and their public weights.
WeightedRows = tuple[NDArray[np.intp], LinearForm]


def arm_balance(
    features: Features, scores: Floats, arms: Sequence[WeightedRows], labels: tuple[object, ...]
) -> dict[str, Any]:
    """Return the free tables about weighted arms: balance, effective sizes and overlap."""
    return {
        "balance": _balance(features, arms, labels),
        "effective_size": [
            {"arm": str(label), "rows": len(rows), "effective": float(1 / form.squares)}
            for label, (rows, form) in zip(labels, arms, strict=True)
        ],
        "overlap": [
            {
                "arm": str(label),
                "smallest_score": float(scores[:, code].min()),
                f"share_below_{_RARE}": float((scores[:, code] < _RARE).mean()),
            }
            for code, label in enumerate(labels)
        ],
    }


def _balance(
    features: Features, statistics: Sequence[WeightedRows], labels: tuple[object, ...]
) -> list[dict[str, Any]]:
    """Return, before and after, each arm's mean of every covariate minus everybody's, in standard deviations
    of everybody, and the ratio of the arm's variance to everybody's.
    """
    variances = (features.values**2).mean(axis=0)  # the columns have mean zero
    scale = np.where(variances > 0, variances, 1.0)
    table = []
    for label, (rows, form) in zip(labels, statistics, strict=True):
        features_of_arm = features.values[rows]
        weights = np.ldexp(form.units.astype(np.float64), -form.bits)
        shown = {}
        for when, w in (
            ("before", np.full(len(features_of_arm), 1 / len(features_of_arm))),
            ("after", weights),
        ):
            mean = w @ features_of_arm
            shown[f"difference_{when}"] = mean / np.sqrt(scale)
            shown[f"variance_ratio_{when}"] = w @ (features_of_arm - mean) ** 2 / scale
        table += [
            {"covariate": f"{name} ({label})", **{key: float(values[j]) for key, values in shown.items()}}
            for j, name in enumerate(features.names)
        ]
    return table
