"""Whether the means of both arms that a site released fit the question.

What follows from public numbers is recomputed: for `difference_in_means` and `trial` every sensitivity follows from
the rows and the declared range. For other methods no noise is less than a mean of so many outcomes needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isclose, sqrt
from typing import Any

from counterveil.bounded_reading import Fields
from counterveil.federation.messages import Ask
from counterveil.federation.public_limits import (
    FEWEST_IN_ARM,
    MOST_ROWS,
    NEVER,
    OTHER_LIMITS,
    OTHER_NOISE,
    OUT_OF_REACH,
    SLACK,
    Declared,
    SetAsideError,
    budget_of,
    farthest,
    most_mu,
)
from counterveil.inference import Uncertainty, half_width
from counterveil.inference.measures import ApartMeans, JointMeans
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Unit
from counterveil.questions.pooled.reading import rows_of
from counterveil.results.effect import noise_from_dict, noise_to_dict
from counterveil.results.measures import MeasureResult
from counterveil.statistics.linear.sensitivity import ArmMean
from counterveil.statistics.moments.sensitivity import CentredContrast, Totals

# The amount of privacy that the noise of each mechanism names.
_AMOUNTS = {"staircase": "epsilon", "laplace": "epsilon", "gaussian": "mu"}
# What is a fraction at a site and a float in its message agrees to this part.
_NEAR = 1e-6


def check_means(ask: Ask, declared: Declared, result: MeasureResult) -> None:
    """Raise the reason for setting a site aside whose arms' means do not follow from the question."""
    means, rows = result.means, rows_of(result)
    assert rows is not None
    if means is None or means.range != (float(declared.low), float(declared.high)):
        raise SetAsideError(OTHER_LIMITS)
    if isinstance(means, ApartMeans) and Unit(ask.protects) is Unit.OUTCOME:
        _check_apart(ask, declared, result, means, rows)
    elif isinstance(means, JointMeans) and Unit(ask.protects) is Unit.RECORD:
        _check_joint(ask, declared, means, rows)
    else:
        raise SetAsideError(OTHER_NOISE)


def _check_apart(ask: Ask, declared: Declared, result: MeasureResult, means: ApartMeans, rows: int) -> None:
    """Check means that are released in parallel: one outcome is in one arm, which has the whole budget."""
    for value, known in zip(means.values, means.known, strict=True):
        _check_budget(
            ask, [known.noise] if known.variance_noise is None else [known.noise, known.variance_noise]
        )
        _hold(known.extra == known.bias == known.ball_variance == 0)
        _hold(known.variance_noise is not None or known.variance == known.variance_cap)
        reach = half_width(sqrt(min(known.variance_cap, float(declared.width) ** 2)), None, NEVER)
        _check_place(value, means.range, reach + farthest(known.noise))
        check_variance(known)
    steps = [_sensitivity(known.noise) for known in means.known]
    # A mean of outcomes whose weights add up to one moves by the range over their number at least.
    _hold(sum(declared.width / step for step in steps) <= rows * Fraction(1 + _NEAR))
    _hold(sum(means.sizes) <= rows * (1 + _NEAR))
    if ask.method == "difference_in_means":
        counts = Fields("details", result.details)
        arms = [counts.whole(arm, FEWEST_IN_ARM, MOST_ROWS) for arm in ("treated", "control")]
        _hold(sum(arms) == rows and list(means.sizes) == arms)
        for size, known in zip(arms, means.known, strict=True):
            _check_plain(ArmMean(declared.width, size), known)


def _check_plain(wanted: ArmMean, known: Uncertainty) -> None:
    """Check the plain mean of one arm: its size gives the noise and the largest variance."""
    _hold(_sensitivity(known.noise) == wanted.estimate)
    _hold(isclose(known.variance_cap, float(wanted.variance_cap), rel_tol=1e-12))
    if known.variance_noise is not None:
        _hold(_sensitivity(known.variance_noise) == wanted.variance)


def _check_joint(ask: Ask, declared: Declared, means: JointMeans, rows: int) -> None:
    """Check means that are made of the mean of everyone and the contrast: one record moves all of what is released."""
    known, share = means.known, Fraction(means.share)
    left = _check_budget(ask, [means.mean_noise, known.noise, known.variance_noise])
    _hold(means.rows == rows and LEAST_SHARE * Fraction(1 - _NEAR) <= min(share, 1 - share))
    _hold(known.bias == known.ball_variance == 0)
    _hold(_sensitivity(means.mean_noise) == Totals(declared.width, rows).mean)
    _check_place(means.mean, means.range, _NEAR * float(declared.width))
    # Outcomes are centred between the mean of everyone and the middle of their range, where they move least.
    start = min(max(Fraction(means.mean) - declared.low, Fraction(0)), declared.width)
    middle = declared.width / 2
    contrasts = [CentredContrast(declared.width, rows, share, centre) for centre in (middle, start)]
    for found, bounds in (
        (_sensitivity(known.noise), [one.mean for one in contrasts]),
        (_sensitivity(known.variance_noise), [one.second_moment / rows for one in contrasts]),
        (known.variance_cap, [one.variance_cap / rows for one in contrasts]),
    ):
        _hold(float(min(bounds)) * (1 - _NEAR) <= float(found) <= float(max(bounds)) * (1 + _NEAR))
    # What the other releases leave of the budget paid for the share.
    paid = _noise_like(known.noise, Totals(declared.width, rows).share, left)
    _hold(isclose(means.share_sd, sqrt(paid.variance), rel_tol=_NEAR))
    off = float(abs(start - middle)) + abs((1 - 2 * means.share) * means.difference)
    _check_extra(means, off)
    sampling = sqrt(min(known.variance_cap, float(declared.width) ** 2) + known.extra)
    ends = -float(declared.width), float(declared.width)
    _check_place(means.difference, ends, half_width(sampling, None, NEVER) + farthest(known.noise))
    # Chance in who was treated is taken off the variance.
    chance = off**2 / (means.share * (1 - means.share)) / rows
    check_variance(known, squared_noise(means.difference, known, rows) + chance)


def _check_extra(means: JointMeans, off: float) -> None:
    """Check what an error in the share adds: the centre is at most `off` away from where it would add nothing."""
    assert means.mean_noise is not None
    scale = (means.share_sd / (means.share * (1 - means.share))) ** 2
    least = means.mean_noise.variance
    _hold(scale * least * (1 - _NEAR) <= means.known.extra <= scale * (off**2 + least) * (1 + _NEAR))


def _check_budget(ask: Ask, noises: Sequence[Any]) -> Fraction:
    """Return what noises leave of the budget asked for, in epsilon or mu squared; more than all of it is refused."""
    facts = [_facts(noise) for noise in noises]
    budget, mu = budget_of(ask), most_mu(ask)
    allowed = (
        [ask.mechanism] if ask.mechanism is not None else ["staircase"] + ["gaussian"] * (mu is not None)
    )
    names = {str(one["mechanism"]) for one in facts}
    _hold(len(names) == 1 and names <= set(allowed))
    amount = _AMOUNTS[names.pop()]
    parts = [Fields("mechanism", one).rational(amount, 0, 1e9) for one in facts]
    if amount == "mu":
        assert mu is not None
        left = mu**2 - sum(part**2 for part in parts)
        _hold(left >= -(mu**2) * Fraction(SLACK - 1))
    else:
        left = budget.epsilon - sum(parts)
        _hold(left >= 0)
    return max(left, Fraction(0))


def _noise_like(noise: Any, sensitivity: Fraction, amount: Fraction) -> Any:
    """Return noise of the same mechanism for another sensitivity and an amount of epsilon, or of mu squared."""
    name = str(_facts(noise)["mechanism"])
    _hold(amount > 0)
    paid = str(Fraction(sqrt(amount)) if _AMOUNTS[name] == "mu" else amount)
    return noise_from_dict({"mechanism": name, "sensitivity": str(sensitivity), _AMOUNTS[name]: paid})


def _facts(noise: Any) -> Mapping[str, Any]:
    """Return what is said of a noise, one whose scale follows from a sensitivity."""
    found = noise_to_dict(noise) or {}
    _hold(found.get("mechanism") in _AMOUNTS)
    return found


def _sensitivity(noise: Any) -> Fraction:
    return Fields("mechanism", _facts(noise)).rational("sensitivity", 0, 1e60)


def _check_place(value: float, ends: tuple[float, float], reach: float) -> None:
    """Check that a number is no farther from where it can be than its error goes."""
    if not ends[0] - reach <= value <= ends[1] + reach:
        raise SetAsideError(OUT_OF_REACH)


def squared_noise(estimate: float, known: Uncertainty, rows: int) -> float:
    """Return how far noise moves a variance that is a second moment less the square of a noisy estimate."""
    noise = farthest(known.noise)
    return (2 * abs(estimate) + noise) * noise / rows


def check_variance(known: Uncertainty, more: float = 0.0) -> None:
    """Check that a sampling variance lies where outcomes and its noise can put it."""
    beyond = farthest(known.variance_noise) + 1e-9 * known.variance_cap
    _hold(-beyond - more <= known.variance <= known.variance_cap + beyond + more)


def _hold(condition: bool) -> None:
    """Raise the reason for setting a site aside unless a condition on its noise holds."""
    if not condition:
        raise SetAsideError(OTHER_NOISE)
