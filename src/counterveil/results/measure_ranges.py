"""Which outcomes a measure has a meaning for, checked before any data or budget is touched."""

from __future__ import annotations

from counterveil.data import Study
from counterveil.errors import StudyError
from counterveil.inference.measures import ODDS
from counterveil.results.measures import DIFFERENCE, NEEDED


def refuse_range(study: Study, measure: str) -> None:
    """Raise CV-P686 where the range of outcomes allows numbers that the measure has no meaning for."""
    if measure == DIFFERENCE:
        return
    low, high = study.outcome_range
    unit = measure in (ODDS, NEEDED)
    # What is divided by has an interval of its own.
    if study.per is None and ((unit and low == 0 and high == 1) or (not unit and low >= 0)):
        return
    raise StudyError(
        "CV-P686",
        f"measure={measure!r} has no meaning for this outcome",
        expected="outcome_range=(0, 1), so that means are risks"
        if unit
        else "an outcome that is never negative, outcome_range=(0, ...), and no per=",
        got=f"outcome_range=({float(low):g}, {float(high):g})"
        + ("" if study.per is None else f", per={study.per.column!r}")
        + ("" if study.before is None else ", the range of a change"),
        fix="ask for the difference; or declare an outcome of that range",
    )
