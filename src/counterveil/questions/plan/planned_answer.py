"""The answers to one question at one epsilon and size, over all simulated studies of a plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from math import inf, isfinite
from typing import Any

from scipy.special import ndtri

from counterveil.privacy import Budget

# The usual aim of those who plan trials.
POWER = 0.8


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """The answers to one question, over all simulated studies.

    Attributes:
        budget: what the question would spend.
        rows: number of people.
        method: the estimator, after "auto" has chosen.
        half_width: mean half length of the intervals, over studies and effects.
        noise: share of the squared standard error that is privacy noise.
        error: root of the mean squared distance between estimate and true effect; None where that is not known.
        covered: studies whose interval covers the true effect; of several effects, parts of studies.
        found: studies whose interval excludes zero effect (of a ratio, 1), counted in the same way.
        unbounded: studies whose interval has no end, counted in the same way; half-widths of ratios and regressions are
            medians over studies, infinite where most have none.
        each: half-widths of all effects by name where they are in units of their own; `half_width` and the other
            figures are then those of the first.
        level: of the interval, where it is not that of the plan (looks).
        caution: what a result would say first, None where nothing needs saying.
        refusal: code and problem, where the question would be refused; all figures are then None.
    """

    budget: Budget
    rows: int
    method: str | None = None
    half_width: float | None = None
    noise: float | None = None
    error: float | None = None
    covered: float | None = None
    found: float | None = None
    unbounded: float = 0.0
    each: dict[str, float] = field(default_factory=dict)
    level: float | None = None
    caution: str | None = None
    refusal: str | None = None

    def detectable(self, level: float, power: float = POWER) -> float | None:
        """Return the smallest effect that the interval would tell from none with this power; None if not known."""
        if self.half_width is None or not isfinite(self.half_width):
            return None
        return self.half_width * float(1 + ndtri(power) / ndtri((1 + (self.level or level)) / 2))

    def to_dict(self, level: float) -> dict[str, Any]:
        """Return the figures as JSON-ready facts."""
        facts = asdict(self) | {"budget": self.budget.to_dict(), "half_width": finite(self.half_width)}
        facts["each"] = {name: finite(half) for name, half in self.each.items()}
        budget = {"epsilon": float(self.budget.epsilon), "delta": float(self.budget.delta)}
        return budget | facts | {"detectable": self.detectable(level)}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> PlannedAnswer:
        """Return the answers written by `to_dict`."""
        own = {each.name: facts[each.name] for each in fields(cls) if each.name != "budget"}
        if own["half_width"] is None and own["refusal"] is None:
            own["half_width"] = inf
        own["each"] = {name: inf if half is None else half for name, half in own["each"].items()}
        return cls(Budget.from_dict(facts["budget"]), **own)


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold, None where there is none."""
    # JSON knows no infinity.
    return None if value is None or not isfinite(value) else value
