"""Words of answers with several effects: titles, sentences that say what was estimated, and notes below the table.

One function for each text. They take the values that an answer holds; no answer holds a text of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from counterveil.privacy import Estimand, Protected
from counterveil.privacy.caveats import Fact
from counterveil.report.caveats import people_words
from counterveil.report.text import probability

Note = tuple[str, str]

# What a gain is, in place of an estimand.
GAIN = "gain per person"
GROUPS_SENTENCE = "average effect of the treatment on everyone in a group"
REFERENCE_PERIOD = "reference, 0 by definition"
ONE_EFFECT = (
    "ONE EFFECT FOR ALL: rows and budget do not show that effects differ between people; the interval is "
    "for the average effect, and there is none for people; counterveil.groups gives effects of groups"
)
CLUSTERS_REMARK = "each cluster is one row and counts once: effects are averages over clusters, not people"
_CLUSTERS = "the clusters of the study, each counting once"
_ONE_EFFECT_SENTENCE = "one effect for everybody"
_POINTS = "all covariates at the middle of their range or their first label, with one of them varied"


def effect_title(treatment: str, outcome: str) -> str:
    """Return the title of an answer about one outcome."""
    return f"Effect of {treatment} on {outcome}"


def outcomes_title(treatment: str, outcomes: int) -> str:
    """Return the title of an answer about several outcomes."""
    return f"Effect of {treatment} on {outcomes} outcomes"


def periods_title(treatment: str, outcome: str) -> str:
    """Return the title of an event study."""
    return f"Effect of {treatment} on {outcome} by period"


def estimand_sentence(estimand: Estimand, whose: Protected, population: Fact | None) -> str | None:
    """Return what was estimated, None where the estimand's own sentence says it.

    Rows that are whole clusters count once each; `population` says who was kept, None for everybody.
    """
    if whose is not Protected.CLUSTER and population is None:
        return None
    everyone = _CLUSTERS if whose is Protected.CLUSTER else None
    if population is None:
        return estimand.sentence_of(everyone)
    kept = people_words(population)
    if estimand is Estimand.ATE and everyone is None:
        return estimand.sentence_of(kept)
    return f"{estimand.sentence_of(everyone)}, among {kept}"


def outcomes_sentence(sentence: str, primary: str) -> str:
    """Return what was estimated of several outcomes, and which of them is the primary one."""
    return f"{sentence}; primary outcome: {primary}"


def periods_sentence(estimand: Estimand, reference: object) -> str:
    """Return what an event study estimated."""
    return f"{estimand.sentence}, relative to {reference}"


def pre_trends_note(p: float | None, periods_before: int) -> Note:
    """Return the note about trends before treatment; without a p-value there is one period before it."""
    if p is None:
        return "Pre-trends", "none: there is one period before treatment"
    return (
        "Pre-trends",
        f"p {probability(p)} for no difference in all {periods_before} periods before treatment but the "
        "reference (Bonferroni); a large p does not show that trends are parallel afterwards",
    )


def groups_notes(by: Sequence[str], left_out: Sequence[str], *, sizes_public: bool) -> list[Note]:
    """Return by what people were grouped, and which groups were too small."""
    sizes = "public" if sizes_public else "released, with noise"
    notes = [("Groups", f"by {', '.join(by)}; numbers of people are {sizes}")]
    if left_out:
        notes.append(("Left out", f"{'; '.join(left_out)}: too few people"))
    return notes


def rule_sentence(cost: float) -> str:
    """Return what the value of a rule is."""
    return f"value of a rule per person, after a cost of {cost:g} for everyone treated"


def rule_note(policy: str, share: float, *, share_released: bool) -> Note:
    """Return the rule and whom it treats."""
    return "Policy", f"{policy}; it treats {share:.1%} of people{' (released)' if share_released else ''}"


def ranking_sentence(cost: float) -> str:
    """Return what a targeting curve shows."""
    return f"gain per person of treating the highest ranked, after a cost of {cost:g} each"


def ratio_sentence(outcome: str) -> str:
    """Return what was estimated of a ratio outcome."""
    return f"{outcome}, treated minus control"


def function_sentence(weights: int | None) -> str:
    """Return what was estimated: an effect for each person by a number of weights, or one for all (None)."""
    if weights is None:
        return _ONE_EFFECT_SENTENCE
    return f"effect as a function of the covariates, {weights} weights"


def function_notes(*, heterogeneous: bool) -> list[Note]:
    """Return at which points a function is shown, and how it is used."""
    if not heterogeneous:
        return [("Use", "counterveil.ate asks for this effect by itself")]
    use = "evaluate with .effect(X), .interval(X), .band(X), as often as you like"
    return [("Points", _POINTS), ("Use", use)]
