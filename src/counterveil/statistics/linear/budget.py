"""How a budget is split over an effect, its variance and the place of outcomes, decided from public numbers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import inf, sqrt
from typing import Protocol

from counterveil.privacy import Budget
from counterveil.results.question import Question
from counterveil.session import Kind, Plan
from counterveil.statistics.outcome_place import PLACES

# Shares of the budget that may go to the variance; 0 means that the worst case is used instead.
_SHARES = [Fraction(k, 40) for k in range(0, 17)]
_PARTS = [float(share) for share in _SHARES]
# A public guess of an outcome's standard deviation, as a part of its range; it only steers choices.
TYPICAL_SD = Fraction(1, 6)
# The two releases of an effect and its variance.
NAMES = ("effect", "variance")


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
    cap, least = float(sensitivity.variance_cap), float(typical)
    parts = (float(sensitivity.estimate) ** 2, float(sensitivity.variance))
    return _least_share(cap, least, *parts, question.budget, question.mechanism, slack)


@lru_cache(maxsize=1024)
def _least_share(
    cap: float,
    least: float,
    per_noise: float,
    per_variance_noise: float,
    budget: Budget,
    mechanism: str,
    slack: float,
) -> Fraction:
    """Return that share, from the numbers that it depends on."""

    def expected(place: int) -> float:
        own, other = _unit_variances(budget, mechanism, place)
        return per_noise * own + least + per_variance_noise * sqrt(other)

    last = len(_SHARES) - 1
    # What the sum would be if noise fell as one over what is paid for it, as it nearly does: where to look first.
    whole = _unit_variances(budget, mechanism, 0)[0]
    alike = [
        per_noise * whole / (1 - part) ** 2 + per_variance_noise * sqrt(whole) / part for part in _PARTS[1:]
    ]
    # The sum is convex in the share, so that its minimum is where it first does not fall.
    guess = alike.index(min(alike)) + 1
    best = _first(lambda place: expected(place) <= expected(place + 1), 1, last, guess)
    without = per_noise * whole + cap
    enough = slack * min(expected(best), without)
    # A share whose variance would be taken at its cap costs more than none, so the cap matters at none only.
    if without <= enough:
        return _SHARES[0]
    allowed = enough + alike[best - 1] - expected(best)
    guess = sum(value > allowed for value in alike[: best - 1]) + 1
    return _SHARES[_first(lambda place: expected(place) <= enough, 1, best, guess)]


def _first(holds: Callable[[int], bool], low: int, high: int, guess: int) -> int:
    """Return the first place from `low` on where a condition holds that then stays true, `high` at the latest."""
    place = min(max(guess, low), high)
    if place < high and not holds(place):
        while place < high and not holds(place):
            place += 1
        return place
    while place > low and holds(place - 1):
        place -= 1
    return place


@lru_cache(maxsize=4096)
def _unit_variances(budget: Budget, mechanism: str, place: int) -> tuple[float, float]:
    """Return the variances of the two releases' noise at sensitivity one, for one of the shares."""
    plan = _two_releases(budget, mechanism, _SHARES[place])
    own = plan.noise("effect", Fraction(1)).variance
    return own, plan.noise("variance", Fraction(1)).variance if place else inf


def effect_plan(question: Question, share: Fraction, place: Fraction = Fraction(0)) -> Plan:
    """Return the plan: the effect, and its variance for `share` of what the `place` of outcomes leaves."""
    return _two_releases(question.budget, question.mechanism, share, place)


@lru_cache(maxsize=1024)
def _two_releases(budget: Budget, mechanism: str, share: Fraction, place: Fraction = Fraction(0)) -> Plan:
    shares = {name: place * part for name, part in PLACES.items()}
    shares |= dict(zip(NAMES, ((1 - place) * (1 - share), (1 - place) * share), strict=True))
    kind = Kind.VECTOR if mechanism == "gaussian" else Kind.CELLS
    return Plan.split(budget, shares, mechanism, dict.fromkeys(PLACES, kind) if place else None)
