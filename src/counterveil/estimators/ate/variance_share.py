"""How much of a budget to spend on the variance, decided from public numbers."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Protocol

from counterveil.curator import Plan
from counterveil.estimators.question import Question

# Shares of the budget that may go to the variance; 0 means that the worst case is used instead.
_SHARES = [Fraction(k, 40) for k in range(0, 17)]
# A public guess of an outcome's standard deviation, as a part of its range; it only steers choices.
TYPICAL_SD = Fraction(1, 6)


class Sensitivities(Protocol):
    """What one outcome can move: the estimate and its variance, and the largest possible variance."""

    @property
    def estimate(self) -> Fraction:
        """Sensitivity of the estimate."""
        ...

    @property
    def variance(self) -> Fraction:
        """Sensitivity of the variance."""
        ...

    @property
    def variance_cap(self) -> Fraction:
        """Largest possible variance."""
        ...


def variance_share(
    sensitivity: Sensitivities, question: Question, typical: Fraction, slack: float = 1.0
) -> Fraction:
    """Return the least share of the budget for the variance that makes the expected interval short.

    Reads public numbers only. Short means a small sum of the typical sampling variance, the inflation
    that its noise will call for (about one standard deviation of it) and the variance of the estimate's
    own noise. Around its minimum the sum is flat: with a `slack` above 1 the least share is taken whose sum
    is within that factor of the smallest, which leaves the estimate more of the budget.
    """
    cap = float(sensitivity.variance_cap)

    def expected(share: Fraction) -> float:
        plan = effect_plan(question, share)
        noise = plan.noise("effect", sensitivity.estimate).variance
        if share == 0:
            return noise + cap
        spread = sqrt(plan.noise("variance", sensitivity.variance).variance)
        return noise + min(float(typical) + spread, cap)

    lengths = [expected(share) for share in _SHARES]
    enough = slack * min(lengths)
    return next(share for share, length in zip(_SHARES, lengths, strict=True) if length <= enough)


def effect_plan(question: Question, share: Fraction) -> Plan:
    """Return the plan of two releases: the effect, and its variance for `share` of the budget."""
    return Plan.split(question.budget, {"effect": 1 - share, "variance": share}, question.law)
