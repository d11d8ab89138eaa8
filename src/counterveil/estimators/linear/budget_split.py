"""How the privacy budget is split between an effect and its variance: for a short expected interval.

With share s of the budget for the variance, the squared length of an interval is taken to be in proportion to

    noise(1 - s) + typical variance + sd of the variance's noise(s),

in squared units of the outcome. noise(1 - s) is the variance of the noise of the effect, released with the
rest of the budget; the last term stands for how much a released variance is raised so that its noise does not
make it too small. The typical variance is that of an effect sum_i c_i y_i of outcomes whose standard
deviation is 1/6 of their range (`TYPICAL_SD`). Without a released variance (s = 0) the largest possible one,
`variance_cap`, stands in for the last two, and the whole budget goes to the effect. Shares are compared on a
grid of fortieths, up to 16/40.

In: bounds on how far one outcome moves both numbers, and the budget; all of them are public. Out: the share s
and the plan, which names both releases and the part of the budget that each pays. Every split of a plan adds
up to the budget, so that the guarantee holds for all of them: s, `TYPICAL_SD` and `SLACK` steer lengths of
intervals alone.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import inf, sqrt
from typing import TypeAlias

from counterveil.estimators.outcome_place import PLACES
from counterveil.privacy import Budget
from counterveil.results.question import Question
from counterveil.rows.linear.sensitivity import ArmMean, LinearEstimate, MeanContrast, SitesContrast
from counterveil.rows.linear.weighted_outcomes import NAMES
from counterveil.session import Kind, Plan

# Shares of the budget that may go to the variance; 0 means that the worst case is used instead.
_SHARES = [Fraction(k, 40) for k in range(0, 17)]
_PARTS = [float(share) for share in _SHARES]
# A public guess of an outcome's standard deviation, as a part of its range; it only steers choices.
TYPICAL_SD = Fraction(1, 6)
# How much longer (squared) than the shortest an interval may be expected to be, for the estimate's sake.
SLACK = 1.01
# What one outcome can move: the estimate and its variance; and the largest possible variance.
Sensitivities: TypeAlias = LinearEstimate | MeanContrast | SitesContrast
Bounds: TypeAlias = ArmMean | Sensitivities


def variance_share(
    bounds: Sensitivities, question: Question, typical: Fraction, slack: float = 1.0
) -> Fraction:
    """Return the least share of the budget for the variance that makes the expected interval short.

    Reads public numbers only. Short means a small sum of the typical sampling variance, the inflation
    that its noise will call for (about one standard deviation of it) and the variance of the estimate's
    own noise. Around its minimum the sum is flat: with a `slack` above 1 the least share is taken whose sum
    is within that factor of the smallest, which leaves the estimate more of the budget.
    """
    return least_share(
        cap=float(bounds.variance_cap),
        typical=float(typical),
        per_noise=float(bounds.estimate) ** 2,
        per_variance_noise=float(bounds.variance),
        budget=question.budget,
        mechanism=question.mechanism,
        slack=slack,
    )


def chosen_share(bounds: LinearEstimate, question: Question, expected_part: float = 1.0) -> Fraction:
    """Return the share of the budget for the variance: an interval that is short, or nearly so.

    `expected_part` of the outcomes' variance is expected to be left in the one released.
    """
    typical = Fraction(expected_part) * TYPICAL_SD**2 * bounds.width**2 * bounds.squares * bounds.factor
    return variance_share(bounds, question, typical, SLACK)


@lru_cache(maxsize=1024)
def least_share(
    *,
    cap: float,
    typical: float,
    per_noise: float,
    per_variance_noise: float,
    budget: Budget,
    mechanism: str,
    slack: float,
) -> Fraction:
    """Return that share, from the numbers that it depends on.

    Parameters
    ----------
    cap : float
        Largest variance, which stands in where none is released.
    typical : float
        Expected sampling variance.
    per_noise, per_variance_noise : float
        Squared sensitivity of the effect, and sensitivity of its variance.
    budget, mechanism
        What is spent, and on which noise.
    slack : float
        By how much a sum may exceed the smallest.
    """

    def expected(index: int) -> float:
        estimate_variance, noise_variance = _unit_variances(budget, mechanism, index)
        return per_noise * estimate_variance + typical + per_variance_noise * sqrt(noise_variance)

    last = len(_SHARES) - 1
    # What the sum would be if noise fell as one over what is paid for it, as it nearly does: where to look first.
    unit_noise = _unit_variances(budget, mechanism, 0)[0]
    approximate = [
        per_noise * unit_noise / (1 - share) ** 2 + per_variance_noise * sqrt(unit_noise) / share
        for share in _PARTS[1:]
    ]
    # The sum is convex in the share, so that its minimum is where it first does not fall.
    guess = approximate.index(min(approximate)) + 1
    best = _first(lambda index: expected(index) <= expected(index + 1), 1, last, guess)
    without = per_noise * unit_noise + cap
    enough = slack * min(expected(best), without)
    # A share whose variance would be taken at its cap costs more than none, so the cap matters at none only.
    if without <= enough:
        return _SHARES[0]
    allowed = enough + approximate[best - 1] - expected(best)
    guess = sum(value > allowed for value in approximate[: best - 1]) + 1
    return _SHARES[_first(lambda index: expected(index) <= enough, 1, best, guess)]


def _first(holds: Callable[[int], bool], low: int, high: int, guess: int) -> int:
    """Return the first place from `low` on where a condition holds that then stays true, `high` at the latest."""
    index = min(max(guess, low), high)
    if index < high and not holds(index):
        while index < high and not holds(index):
            index += 1
        return index
    while index > low and holds(index - 1):
        index -= 1
    return index


@lru_cache(maxsize=4096)
def _unit_variances(budget: Budget, mechanism: str, index: int) -> tuple[float, float]:
    """Return the variances of the two releases' noise at sensitivity one, for one of the shares."""
    plan = _two_releases(budget, mechanism, _SHARES[index])
    estimate_noise = plan.noise("effect", Fraction(1)).variance
    return estimate_noise, plan.noise("variance", Fraction(1)).variance if index else inf


def effect_plan(question: Question, share: Fraction, search_share: Fraction = Fraction(0)) -> Plan:
    """Return the plan: the effect, and its variance for `share` of what the search for outcomes leaves."""
    return _two_releases(question.budget, question.mechanism, share, search_share)


@lru_cache(maxsize=1024)
def _two_releases(
    budget: Budget, mechanism: str, share: Fraction, search_share: Fraction = Fraction(0)
) -> Plan:
    shares = {name: search_share * place_share for name, place_share in PLACES.items()}
    shares |= dict(zip(NAMES, ((1 - search_share) * (1 - share), (1 - search_share) * share), strict=True))
    kind = Kind.VECTOR if mechanism == "gaussian" else Kind.CELLS
    return Plan.split(budget, shares, mechanism, dict.fromkeys(PLACES, kind) if search_share else None)
