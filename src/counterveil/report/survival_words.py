"""Words for survival curves and distributions: names of effects, and the notes below a table of effects.

A number arrives as a `Figure` (estimate, standard error, interval); `figure_words` writes it after the name of an arm.
Arms are shown treated first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterveil.report.text import probability, quantile_name, rounded, time_span, with_interval

Facts = dict[str, Any]
Note = tuple[str, str]

HAZARD_RATIO = "hazard ratio"
QUANTILES_SENTENCE = (
    "treated minus control, for everyone in the study: values below which a share of outcomes lies"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as it is printed: an estimate, the standard error that it is rounded by, and its interval as facts."""

    estimate: float
    error: float
    interval: Facts


@dataclass(frozen=True, slots=True)
class CauseFigures:
    """Probabilities of one cause by the horizon: of each arm by its name, and their difference."""

    cause: str
    by_arm: Mapping[str, Figure]
    difference: Figure


def hazard_ratio_name(cause: str | None = None) -> str:
    """Return the name of a hazard ratio, or of that of one cause."""
    return HAZARD_RATIO if cause is None else f"{HAZARD_RATIO} of {cause}"


def survival_difference_name(time: float) -> str:
    """Return the name of the difference of both curves at a time."""
    return f"difference in survival at {time:g}"


def incidence_difference_name(cause: str, time: float) -> str:
    """Return the name of the difference of both probabilities of a cause by a time."""
    return f"difference in {cause} at {time:g}"


def restricted_mean_name(arm: str) -> str:
    """Return the name of an arm's mean time free of the event."""
    return f"restricted mean, {arm}"


def mean_time_difference_name(horizon: float) -> str:
    """Return the name of the difference of both mean times up to the horizon."""
    return f"difference in mean time to {horizon:g}"


def survival_sentence(horizon: float) -> str:
    """Return what was estimated."""
    return (
        f"treated minus control, for everyone in the study: survival at {horizon:g}, and mean time free of the event "
        "up to it"
    )


def distribution_title(treatment: str, outcome: str) -> str:
    """Return the title of an answer about quantiles."""
    return f"Effect of {treatment} on the distribution of {outcome}"


def figure_words(figure: Figure, arm: str = "") -> str:
    """Return a number with its interval, after the name of its arm."""
    middle = rounded(figure.estimate, figure.error)
    return f"{arm} {with_interval(middle, figure.interval, figure.error)}".strip()


def _by_arm(figures: Mapping[str, Figure]) -> str:
    return "; ".join(figure_words(figure, arm) for arm, figure in figures.items())


def survival_notes(
    *,
    horizon: float,
    hazard_ratio: Figure,
    hazard_ratio_p: float,
    proportionality_p: float,
    medians: Mapping[str, Figure],
    causes: Sequence[CauseFigures],
    survival: Mapping[str, Figure],
    restricted_means: Mapping[str, Figure],
    restricted_mean_ratio: Figure,
    log_rank_statistic: float,
    log_rank_p: float,
    merged_strata: Mapping[str, Sequence[Sequence[str]]],
    lost_after: Mapping[str, float],
) -> list[Note]:
    """Return the notes of a survival answer; `lost_after` has the last known times of arms lost in the noise."""
    ratio = with_interval(f"{restricted_mean_ratio.estimate:.3g}", restricted_mean_ratio.interval, None)
    median_texts = (
        f"{arm} {time_span(figure.estimate, figure.interval, figure.error)}"
        for arm, figure in medians.items()
    )
    notes = [
        (
            "Hazard ratio",
            f"{figure_words(hazard_ratio)}, p {probability(hazard_ratio_p)}; "
            f"test of proportional hazards: p {probability(proportionality_p)}",
        ),
        ("Median", "; ".join(median_texts)),
        *(
            (
                f"{each.cause} by {horizon:g}",
                f"{_by_arm(each.by_arm)}; difference {figure_words(each.difference)}",
            )
            for each in causes
        ),
        (f"Survival at {horizon:g}", _by_arm(survival)),
        ("Restricted mean", f"{_by_arm(restricted_means)}; ratio {ratio}"),
        ("Log-rank test", f"z {log_rank_statistic:.2f}, p {probability(log_rank_p)}, noise included"),
    ]
    for name, groups in merged_strata.items():
        notes.append((f"Merged strata of {name}", "; ".join(" + ".join(group) for group in groups)))
    if lost_after:
        lost = "; ".join(f"{arm} after {time:g}" for arm, time in lost_after.items())
        notes.append(("Lost in noise", f"{lost}: too few people at risk beside the noise"))
    return notes


def quantile_note(prob: float, by_arm: Mapping[str, Figure]) -> Note:
    """Return the note of one quantile: that of each arm."""
    return quantile_name(prob).capitalize(), _by_arm(by_arm)


def bound_words(bound: float, *, heavy: bool) -> str:
    """Return by how much released counts change at most: in sum for Laplace noise, in length for normal noise."""
    return f"{'sum of changes' if heavy else 'length of the change'} {bound:.4g}"


def censoring_words(convention: str) -> str:
    """Return where in a cell of time people are censored; `convention` is "middle" or "end"."""
    return f"the {convention} of a cell"
