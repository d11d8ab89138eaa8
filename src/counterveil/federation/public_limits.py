"""What a declaration and a question allow an answer to be: computed by the coordinator, never read off a reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from counterveil.errors import CounterveilError, ParameterError, refusal
from counterveil.federation.messages import Ask
from counterveil.inference import NoiseDistribution, half_width
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget, Unit, exact
from counterveil.results.effect import noise_from_dict

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
        made = [name for name in ("before", "per") if name in declaration]
        if made:
            raise refusal(
                "CV-P600", what=_WHAT, expected="an outcome that sites have as one column", got=made[0]
            )
        names = [declaration.get(name) for name in ("treatment", "outcome")]
        ends = declaration.get("outcome_range")
        try:
            low, high = (exact(end, "outcome_range") for end in ends)  # type: ignore[union-attr]
        except (TypeError, ValueError, ParameterError):
            raise refusal(
                "CV-P600", what=_WHAT, expected="outcome_range = [lowest, highest]", got="something else"
            ) from None
        if not all(isinstance(name, str) for name in names) or not low < high:
            raise refusal(
                "CV-P600",
                what=_WHAT,
                expected="treatment, outcome, and a range from low to high",
                got="something else",
            )
        if "cluster" in declaration:
            wanted = "a declaration without clusters: pooling would lose their degrees of freedom"
            raise refusal("CV-P600", what=_WHAT, expected=wanted, got="[cluster]")
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
        step = _LEAST_STEPS[Unit(ask.protects)] * self.residual_widths(ask)[0] / rows
        facts = {"mechanism": "staircase", "sensitivity": str(step), "epsilon": str(budget_of(ask).epsilon)}
        pure, mu = float(noise_from_dict(facts).variance), most_mu(ask)
        # At a large delta normal noise is the smaller one.
        return pure if mu is None else min(pure, float(step / mu) ** 2 / SLACK**2)

    def residual_widths(self, ask: Ask) -> tuple[Fraction, Fraction]:
        """Return the least and the largest width of what is averaged: residuals where a prediction is subtracted."""
        bounds = ask.settings.get("residual_range")
        if isinstance(bounds, list | tuple) and len(bounds) == 2:
            try:
                low, high = (exact(bound, "residual_range") for bound in bounds)
            except CounterveilError:
                return self.width, self.width
            if low < high:
                return min(self.width, high - low), max(self.width, high - low)
        return self.width, self.width


def budget_of(ask: Ask) -> Budget:
    """Return the budget that a question asks for."""
    return Budget(ask.epsilon, ask.delta)


def most_mu(ask: Ask) -> Fraction | None:
    """Return the largest mu of Gaussian noise at the budget asked for, None where delta is zero."""
    budget = budget_of(ask)
    return None if budget.pure else mu_of(budget.epsilon, budget.delta)


# An honest answer lies beyond its reach once in a thousand million studies.
NEVER = 1e-9
FEWEST_IN_ARM, MOST_ROWS = 2, 10**12
# Released sampling variances are rounded to a grid, and a mu is a fraction below the exact one.
SLACK = 1 + 1e-9

NOT_AN_ANSWER = "it is not an answer to this request"
NO_RESULT = "it is not a result with a single effect, or a number is out of range"
OTHER_QUESTION = "it has a different treatment, outcome, estimand, measure or confidence level"
OTHER_PRIVACY = "its guarantee or its cost is not the one requested"
OTHER_FACTS = "it says something of itself that the requested method does not say"
OTHER_LIMITS = "its bounds are not those of the declared outcome"
OUT_OF_REACH = "its estimate lies beyond what the declared outcome and its noise allow"
OTHER_NOISE = "its noise distribution or its variance does not follow from the question"
TOO_MANY_ROWS = "it claims more rows than the site is known to have, or none"
NO_HEAD = "it does not say where the site's ledger ends"
WENT_BACK = "the site's ledger was rolled back: it ends before an entry that an earlier answer named"
COPY = "it is a copy of another site's answer"


class SetAsideError(Exception):
    """Carries the reason for which an answer is not pooled; the text is ours."""


def farthest(noise: NoiseDistribution | None) -> float:
    """Return how far a noise goes, once in a thousand million studies apart."""
    return 0.0 if noise is None else half_width(0.0, noise, NEVER)
