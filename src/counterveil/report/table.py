"""The tables of a result as cells of text: one effect, or one for each of several arms and their means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterveil.report.numbers import percent, probability, rounded


@dataclass(frozen=True, slots=True)
class Cells:
    """Headings and rows of text, all of one length."""

    headings: list[str]
    rows: list[list[str]]


def effects_of(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the facts of every effect: those of several arms, or the result itself."""
    return list(facts.get("effects", [facts]))


def name_of(effect: dict[str, Any]) -> str:
    """Return what an effect is called in a table: its own name, its contrast, or the estimand."""
    if "name" in effect:
        return str(effect["name"])
    return f"{effect['arm']} - {effect['reference']}" if "arm" in effect else str(effect["estimand"])


def span(interval: dict[str, float], error: float) -> str:
    """Return an interval as text, with the digits that the error makes meaningful."""
    return f"[{rounded(interval['low'], error)}, {rounded(interval['high'], error)}]"


def effect_cells(facts: dict[str, Any]) -> Cells:
    """Return the table of effects; several effects have an interval for all of them together as well."""
    effects = effects_of(facts)
    several = "simultaneous_interval" in effects[0]
    level = percent(effects[0]["interval"]["level"])
    sized = "by" in facts
    headings = ["", *["people"] * sized, "estimate", "std. error", "sampling", "noise", f"{level} interval"]
    headings += [f"{level} for all"] * several
    headings += ["weight"] * ("weight" in effects[0])
    return Cells([*headings, "p"], [_effect(effect, several, sized) for effect in effects])


def _effect(effect: dict[str, Any], several: bool, sized: bool) -> list[str]:
    error = effect["std_error"]
    total = error["total"]
    return [
        name_of(effect),
        *([f"{max(round(effect['size']), 0):,}"] if sized else []),
        rounded(effect["estimate"], total),
        *(rounded(error[part], error[part]) for part in ("total", "sampling", "noise")),
        span(effect["interval"], total),
        *([span(effect["simultaneous_interval"], total)] if several else []),
        *([f"{effect['weight']:.3f}"] if "weight" in effect else []),
        probability(effect["p_value"]),
    ]


def mean_cells(facts: dict[str, Any]) -> Cells | None:
    """Return the table of the arms' means, None for a result that has none."""
    means = facts.get("means")
    if not means:
        return None
    headings = ["mean of arm", "rows", "estimate", "std. error", f"{percent(facts['level'])} interval"]
    rows = []
    for mean in means:
        total = mean["std_error"]["total"]
        shown = [rounded(mean["estimate"], total), rounded(total, total), span(mean["interval"], total)]
        rows.append([str(mean["arm"]), f"{mean['rows']:,}", *shown])
    return Cells(headings, rows)
