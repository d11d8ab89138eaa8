"""Rows and columns of data frames of pooled answers: one row a site, one for all, and how far sites differ.

In: pooled answers, made of released numbers. Out: columns by name, with estimates, standard errors and ends
of intervals in the unit of the estimate. Names are those of R's `broom` for metafor, so that figures made for
meta-analyses read them. Nothing is estimated here, and nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from counterveil.inference.heterogeneity import Heterogeneity
from counterveil.numerics.arrays import Ends


def columns_of_sites(weights: Sequence[tuple[str, float]], shared: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what names the rows of sites and that of all of them in a data frame."""
    rows = [{"site": name, "type": "study", "weight": weight} | shared for name, weight in weights]
    return [*rows, {"site": "pooled", "type": "summary", "weight": 1.0} | shared]


def differing_columns(differ: Heterogeneity, prediction: Ends | None) -> dict[str, Any]:
    """Return how far sites differ as columns of a data frame, under the names of R's `broom` for metafor."""
    low, high = (None, None) if prediction is None else prediction
    return {
        "cochran_qe": differ.q,
        "df_cochran_qe": differ.df,
        "p_value_cochran_qe": differ.p_value,
        "i_squared": differ.i_squared,
        "tau_squared": differ.tau_squared,
        "heterogeneity_scale": differ.scale,
        "prediction_low": low,
        "prediction_high": high,
    }


def with_differing(
    rows: list[dict[str, Any]], differ: Heterogeneity, prediction: Ends | None
) -> list[dict[str, Any]]:
    """Return rows of a data frame with how far sites differ in the last, that of all sites."""
    last = differing_columns(differ, prediction)
    return [*(row | dict.fromkeys(last) for row in rows[:-1]), rows[-1] | last]
