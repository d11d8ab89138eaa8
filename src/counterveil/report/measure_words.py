"""Words for measures of two means: what ratios, odds ratios, lifts and numbers needed to treat are called.

Each function takes values (a measure, an estimand, released means) and returns what a reader sees of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

from counterveil.inference.arm_means import Means
from counterveil.inference.quotient import DIFFERENCE, LIFT, NEEDED, ODDS, RATIO, Quotient
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import Fact
from counterveil.report.caveats import people_words
from counterveil.report.text import probability, rounded

# What a measure is called in a table.
MEASURE_NAMES = {RATIO: "ratio", ODDS: "OR", LIFT: "lift", NEEDED: "NNT"}
_SENTENCES = {
    DIFFERENCE: "difference of mean outcomes {whose}, treated less control",
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
_NOUNS = {RATIO: "ratio of means", ODDS: "odds ratio", LIFT: "lift", NEEDED: "number needed to treat"}
_ARMS = ("treated", "control")


def measure_noun(measure: str, outcome_range: Ends | None) -> str:
    """Return what a measure is called in a sentence; means of outcomes from 0 to 1 are risks."""
    return "risk ratio" if measure == RATIO and outcome_range == (0.0, 1.0) else _NOUNS[measure]


def measure_sentence(
    measure: str, estimand: Estimand, *, where: str = "study", population: Fact | None = None
) -> str:
    """Return what was estimated: a measure of whose mean outcomes.

    `where` is "study" or "sites"; `population` says who was kept, None for everybody.
    """
    whose = _WHOSE[estimand].format(where=where)
    whose += "" if population is None else f", among {people_words(population)}"
    return _SENTENCES[measure].format(whose=whose)


def means_words(means: Means) -> str:
    """Return the released means; one that noise put outside the range of outcomes is not printed."""
    low, high = means.range
    texts = []
    for arm, value, weights in zip(_ARMS, means.values, ((1.0, 0.0), (0.0, 1.0)), strict=True):
        text = rounded(value, hypot(*means.parts(*weights)))
        if not low <= value <= high:
            text = f"below {low:g} (noise)" if value < low else f"above {high:g} (noise)"
        texts.append(f"{arm} {text}")
    return f"{', '.join(texts)} (released)"


def averaging_words(sites: Sequence[str], *, limited: bool) -> str:
    """Return how the means of sites make those of all; `limited` where no site's weight exceeds a limit.

    Sites count by all of their people, whatever the estimand.
    """
    if len(sites) == 1:
        return f"the means are those of {sites[0]} alone"
    return (
        f"each arm's mean is averaged over sites by size{', up to a limit on each weight' if limited else ''}"
    )


def difference_words(estimate: float, error: float, ends: Ends, p: float) -> str:
    """Return a difference with its interval and p-value, rounded by its standard error as in a table."""
    interval = ", ".join(rounded(end, error) for end in ends)
    return f"{rounded(estimate, error)} [{interval}], p {probability(p)}"


def replaced_means_words(measure: str, rows: Sequence[tuple[str | None, Means]]) -> list[str]:
    """Return for which of the named means the estimate is made with the noise's standard deviation instead."""
    if measure not in (RATIO, LIFT, ODDS):
        return []
    texts = []
    for name, means in rows:
        sds = Quotient(means, ODDS if measure == ODDS else RATIO).replaced
        for arm, sd in zip(_ARMS, sds, strict=True):
            if sd is not None:
                whose = f"the {arm} mean" if name is None else f"{name}: the {arm} mean"
                texts.append(f"{whose} {_too_near(measure, sd)}. Use the interval.")
    return texts


def _too_near(measure: str, sd: float) -> str:
    if measure == ODDS:
        return (
            f"is within one SD of its noise ({rounded(sd, sd)}) of 0 or 1; the odds ratio is computed with a mean one "
            "SD away from it"
        )
    return f"is smaller than the SD of its noise ({rounded(sd, sd)}); the ratio is computed with that SD"
