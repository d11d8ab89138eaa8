"""The methods that the paper compares, its own and ours beside them, and the tables of the comparison by method."""

from __future__ import annotations

import numpy as np
import pandas as pd

from counterveil.published.matching import PaperNumbers
from counterveil.settings import Matching
from counterveil_lab.reproduce.papers.private_matching.draws import (
    OURS,
    Floats,
    label_draws,
    our_draws,
    sample_draws,
)
from counterveil_lab.reproduce.papers.private_matching.studies import (
    COMPETITORS,
    STUDIES,
    rival_draws,
    study_named,
)
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.environment import unavailable

LABEL, SAMPLE, ZERO, PLAIN = "PrivATE (label)", "PrivATE (sample)", "zero", "without privacy"
COMPARED = (LABEL, SAMPLE, *COMPETITORS, *OURS, ZERO, PLAIN)
DRAWS, QUICK_DRAWS = 10, 4
# Synthesis takes seconds to minutes: few draws, and AIM on the smallest study at one budget alone.
SYNTHESES, AIM_STUDY, AIM_EPSILON = 3, "LaLonde", 1.0


def repetitions(method: str, data: str, epsilon: float, quick: bool) -> int:
    """Return how often a method is drawn for one point of Figure 2; none where it takes too long."""
    if method in (ZERO, PLAIN):
        return 1
    if method == "AIM":
        affordable = data == AIM_STUDY and epsilon == AIM_EPSILON and not quick
        return int(affordable and unavailable(RIVALS[method]) is None)
    if method == "PrivSyn":
        return 1 if quick else SYNTHESES
    return QUICK_DRAWS if quick else DRAWS


def estimates(method: str, data: str, epsilon: float, neighbours: int, draws: int, seed: int) -> Floats:
    """Return draws of a method, in units of the outcome's range."""
    study = study_named(data)
    if method == LABEL:
        return label_draws(study, epsilon, Matching(neighbours=neighbours), draws, seed)[0]
    if method == SAMPLE:
        return sample_draws(study, epsilon, PaperNumbers(neighbours=neighbours), draws, seed)[0]
    if method == ZERO:
        return np.zeros(draws)
    if method == PLAIN:
        return np.full(draws, study.matched_with(neighbours))
    if method in COMPETITORS:
        return rival_draws(method, data, epsilon, draws, seed)
    return our_draws(method, study, epsilon, neighbours, draws, seed)


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
