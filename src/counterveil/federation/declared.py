"""What a declaration and a question allow an answer to be: computed by the coordinator, never read off a reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from counterveil.errors import CounterveilError, ParameterError
from counterveil.estimators.laws import law_from_dict
from counterveil.federation.messages import Ask
from counterveil.federation.toml_files import wrong_setting
from counterveil.kernels.gaussian_profile import mu_of
from counterveil.privacy import Budget, Unit, exact

_WHAT = "the declaration"
# Weights of an arm add up to one, so some outcome has a weight of 2/n or more where only outcomes are private. Where
# records are, estimates may be released in parts: half the width over n is below what any of them adds.
_LEAST_STEPS = {Unit.OUTCOME: Fraction(2), Unit.RECORD: Fraction(1, 2)}


@dataclass(frozen=True, slots=True)
class Declared:
    """The public facts that an answer must repeat, and the range it must lie in."""

    treatment: str
    outcome: str
    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, declaration: Mapping[str, Any]) -> Declared:
        """Return them from a declaration, or raise CV-P600."""
        names = [declaration.get(name) for name in ("treatment", "outcome")]
        ends = declaration.get("outcome_range")
        try:
            low, high = (exact(end, "outcome_range") for end in ends)  # type: ignore[union-attr]
        except (TypeError, ValueError, ParameterError):
            raise wrong_setting(_WHAT, "outcome_range = [lowest, highest]", "something else") from None
        if not all(isinstance(name, str) for name in names) or not low < high:
            raise wrong_setting(_WHAT, "treatment, outcome, and a range from low to high", "something else")
        return cls(str(names[0]), str(names[1]), low, high)

    @property
    def width(self) -> Fraction:
        """Width of the outcome's range: no effect is larger."""
        return self.high - self.low

    @property
    def limits(self) -> tuple[float, float]:
        """What an effect can be at all."""
        return -float(self.width), float(self.width)

    def least_noise(self, ask: Ask, rows: int) -> float:
        """Return the variance of the least noise that an effect of so many rows can have at the budget asked for."""
        width = _residual_width(ask, self.width)
        sensitivity = _LEAST_STEPS[Unit(ask.protects)] * width / rows
        facts = {
            "mechanism": "staircase",
            "sensitivity": str(sensitivity),
            "epsilon": str(budget_of(ask).epsilon),
        }
        return float(law_from_dict(facts).variance)


def budget_of(ask: Ask) -> Budget:
    """Return the budget that a question asks for."""
    return Budget(ask.epsilon, ask.delta)


def most_mu(ask: Ask) -> Fraction | None:
    """Return the largest mu of Gaussian noise at the budget asked for, None where delta is zero."""
    budget = budget_of(ask)
    return None if budget.pure else mu_of(budget.epsilon, budget.delta)


def _residual_width(ask: Ask, width: Fraction) -> Fraction:
    """Return the width of what is averaged: that of the residuals where a prediction is subtracted."""
    bounds = ask.settings.get("residual_range")
    if isinstance(bounds, list | tuple) and len(bounds) == 2:
        try:
            low, high = (exact(bound, "residual_range") for bound in bounds)
        except CounterveilError:
            return width
        if low < high:
            return min(width, high - low)
    return width
