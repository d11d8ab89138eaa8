"""What measures of two means are called, and what is said of their estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot

from counterveil.inference.measures import ODDS, RATIO, Means, Quotient
from counterveil.inference.pooling import PooledMeans
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Estimand
from counterveil.report.numbers import probability, rounded
from counterveil.results.effect import Effect

DIFFERENCE, LIFT, NEEDED = "difference", "lift", "nnt"
# What a measure is called in a table.
NAMES = {RATIO: "ratio", ODDS: "OR", LIFT: "lift", NEEDED: "NNT"}
WORDS = {
    RATIO: "ratio of mean outcomes {whose}, treated over control; 1 is no effect",
    ODDS: "odds ratio of mean outcomes {whose}, treated over control; 1 is no effect",
    LIFT: "lift: the ratio of mean outcomes {whose}, treated over control, less 1; 0 is no effect",
    NEEDED: "number needed to treat: 1 over the difference of mean outcomes {whose}; negative for one outcome fewer",
}
_WHOSE = {
    Estimand.ATE: "of everyone in the {where}",
    Estimand.ATT: "of those who received the treatment",
    Estimand.ATC: "of those who did not receive the treatment",
    Estimand.ATO: "of people weighted by overlap",
}
_CALLED = {RATIO: "ratio of means", ODDS: "odds ratio", LIFT: "lift", NEEDED: "number needed to treat"}


def whose_words(estimand: Estimand, where: str = "study") -> str:
    """Return whose outcomes are averaged."""
    return _WHOSE[estimand].format(where=where)


def called(measure: str, outcome_range: Ends | None) -> str:
    """Return what a measure is called in a sentence; means of outcomes from 0 to 1 are risks."""
    return "risk ratio" if measure == RATIO and outcome_range == (0.0, 1.0) else _CALLED[measure]


def means_in_words(means: Means) -> str:
    """Return the released means; one that noise put outside the range of outcomes is not printed."""
    said = []
    for arm, value, which in zip(("treated", "control"), means.values, ((1.0, 0.0), (0.0, 1.0)), strict=True):
        low, high = means.range
        text = rounded(value, hypot(*means.parts(*which)))
        if not low <= value <= high:
            text = f"below {low:g} (noise)" if value < low else f"above {high:g} (noise)"
        said.append(f"{arm} {text}")
    return f"{', '.join(said)} (released)"


def averaged_in_words(means: PooledMeans, details: Mapping[str, object]) -> str:
    """Return how the means of sites make those of all; sites count by all of their people, whatever the estimand."""
    if len(means.weighed) == 1:
        return f"the means are those of {means.weighed[0][0]} alone"
    limited = ", up to a limit on each weight" if "site_weight_limit" in details else ""
    return f"each arm's mean is averaged over sites by size{limited}"


def difference_in_words(effect: Effect) -> str:
    """Return a difference with its interval and p-value, rounded as in a table."""
    error = effect.std_error.total
    ends = ", ".join(rounded(end, error) for end in effect.interval())
    return f"{rounded(effect.estimate, error)} [{ends}], p {probability(effect.p_value)}"


def replaced_in_words(measure: str, rows: Sequence[tuple[str | None, Means]]) -> list[str]:
    """Return for which of the named means the estimate is made with the noise's standard deviation instead."""
    if measure not in (RATIO, LIFT, ODDS):
        return []
    said = []
    for name, means in rows:
        sds = Quotient(means, ODDS if measure == ODDS else RATIO).replaced
        for arm, sd in zip(("treated", "control"), sds, strict=True):
            if sd is not None:
                whose = f"the {arm} mean" if name is None else f"{name}: the {arm} mean"
                said.append(f"{whose} {_too_near(measure, sd)}. Use the interval.")
    return said


def _too_near(measure: str, sd: float) -> str:
    if measure == ODDS:
        return (
            f"is within one SD of its noise ({rounded(sd, sd)}) of 0 or 1; the odds ratio is computed with a mean one "
            "SD away from it"
        )
    return f"is smaller than the SD of its noise ({rounded(sd, sd)}); the ratio is computed with that SD"
