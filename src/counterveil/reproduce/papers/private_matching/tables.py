"""The tables of the comparison by method: errors as arrays, and what counts as a difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from counterveil.reproduce.papers.private_matching.competitors import COMPETITORS
from counterveil.reproduce.papers.private_matching.methods import LABEL, SAMPLE
from counterveil.reproduce.papers.private_matching.studies import STUDIES

if TYPE_CHECKING:
    import pandas as pd

    Tables = Mapping[str, pd.DataFrame]

COMPARISON = "figure-2"
OWN = (LABEL, SAMPLE)
# The mean of ten absolute errors is known to a fifth or so: less than this is no difference.
CLEAR = 1.25
# An error of this and more says no more than the answer zero.
USELESS = 1.0


def wide(table: pd.DataFrame, column: str = "error") -> pd.DataFrame:
    """Return errors by study and budget, one column for each method; a method that was not run has gaps."""
    found = table.pivot_table(
        index=["neighbours", "data", "epsilon"], columns="method", values=column, sort=False
    )
    return found.reset_index()


def rivals_in(found: pd.DataFrame) -> list[str]:
    """Return the competitors that were run; not AIM, which has one synthesis at one point."""
    return [name for name in COMPETITORS if name in found.columns and name != "AIM"]


def at(found: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    """Return the lines of one budget, the nearest that was run."""
    nearest = min(set(found["epsilon"]), key=lambda value: abs(value - epsilon))
    return found[found["epsilon"] == nearest]


def listed(part: pd.DataFrame, method: str) -> str:
    """Return a method's errors by study in words."""
    by_study = dict(zip(part["data"], part[method], strict=True))
    return ", ".join(f"{name} {by_study[name]:.2g}" for name in STUDIES if name in by_study)


def falls(found: pd.DataFrame, method: str) -> list[bool]:
    """Return for every study whether the error at the largest budget is below that at the smallest."""
    kept = [
        own.dropna(subset=[method]).sort_values("epsilon") for _, own in found.groupby(["neighbours", "data"])
    ]
    return [bool(own[method].iloc[-1] < own[method].iloc[0]) for own in kept if len(own) > 1]


def geometric(values: pd.Series[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.log(values).mean()))
