"""Whether the means of both arms that a site released fit the question.

What follows from public numbers is recomputed: for `difference_in_means` and `trial` every sensitivity follows from
the rows and the declared range. For other methods no noise is less than a mean of so many outcomes needs.
"""

from __future__ import annotations

from fractions import Fraction
from math import isclose, sqrt

from counterveil.bounded_reading import Fields
from counterveil.federation.messages import Ask
from counterveil.federation.noise_checks import (
    LEAST_PART,
    NEAR,
    chance_of_treatment,
    check_budget,
    check_place,
    check_variance,
    check_weighted,
    hold,
    noise_like,
    sensitivity_of,
    squared_noise,
)
from counterveil.federation.public_limits import (
    FEWEST_IN_ARM,
    MOST_ROWS,
    NEVER,
    OTHER_LIMITS,
    OTHER_NOISE,
    Declared,
    SetAsideError,
    farthest,
)
from counterveil.inference import Uncertainty, half_width
from counterveil.inference.measures import ApartMeans, JointMeans
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Unit
from counterveil.questions.pooled.reading import rows_of
from counterveil.results.measures import MeasureResult
from counterveil.statistics.linear.sensitivity import ArmMean
from counterveil.statistics.moments.sensitivity import CentredContrast, Totals


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
    steps: list[Fraction] = []
    for value, known in zip(means.values, means.known, strict=True):
        steps.append(check_weighted(ask, declared.width, known))
        reach = half_width(sqrt(min(known.variance_cap, float(declared.width) ** 2)), None, NEVER)
        check_place(value, means.range, reach + farthest(known.noise))
        check_variance(known)
    # A mean of outcomes whose weights add up to one moves by the range over their number at least.
    hold(sum(declared.width / step for step in steps) <= rows * Fraction(1 + NEAR))
    hold(sum(means.sizes) <= rows * (1 + NEAR))
    # An effective size is one over the sum of squared weights, which is at most the largest of them.
    for step, size in zip(steps, means.sizes, strict=True):
        hold(float(declared.width / step) * (1 - NEAR) <= size)
    if ask.method == "difference_in_means":
        counts = Fields("details", result.details)
        arms = [counts.whole(arm, FEWEST_IN_ARM, MOST_ROWS) for arm in ("treated", "control")]
        hold(sum(arms) == rows and list(means.sizes) == arms)
        for size, known in zip(arms, means.known, strict=True):
            _check_plain(ArmMean(declared.width, size), known)


def _check_plain(wanted: ArmMean, known: Uncertainty) -> None:
    """Check the plain mean of one arm: its size gives the noise and the largest variance."""
    hold(sensitivity_of(known.noise) == wanted.estimate)
    hold(isclose(known.variance_cap, float(wanted.variance_cap), rel_tol=1e-12))
    if known.variance_noise is not None:
        hold(sensitivity_of(known.variance_noise) == wanted.variance)


def _check_joint(ask: Ask, declared: Declared, means: JointMeans, rows: int) -> None:
    """Check means that are made of the mean of everyone and the contrast: one record moves all of what is released."""
    known, share = means.known, Fraction(means.share)
    left = check_budget(ask, [means.mean_noise, known.noise, known.variance_noise], LEAST_PART)
    hold(means.rows == rows and LEAST_SHARE * Fraction(1 - NEAR) <= min(share, 1 - share))
    hold(known.bias == known.ball_variance == 0)
    hold(sensitivity_of(means.mean_noise) == Totals(declared.width, rows).mean)
    check_place(means.mean, means.range, NEAR * float(declared.width))
    # Outcomes are centred between the mean of everyone and the middle of their range, where they move least.
    start = min(max(Fraction(means.mean) - declared.low, Fraction(0)), declared.width)
    middle = declared.width / 2
    contrasts = [CentredContrast(declared.width, rows, share, centre) for centre in (middle, start)]
    for found, bounds in (
        (sensitivity_of(known.noise), [one.mean for one in contrasts]),
        (sensitivity_of(known.variance_noise), [one.second_moment / rows for one in contrasts]),
        (known.variance_cap, [one.variance_cap / rows for one in contrasts]),
    ):
        hold(float(min(bounds)) * (1 - NEAR) <= float(found) <= float(max(bounds)) * (1 + NEAR))
    # What the other releases leave of the budget paid for the share.
    paid = noise_like(known.noise, Totals(declared.width, rows).share, left)
    hold(isclose(means.share_sd, sqrt(paid.variance), rel_tol=NEAR))
    off = float(abs(start - middle)) + abs((1 - 2 * means.share) * means.difference)
    _check_extra(means, off)
    sampling = sqrt(min(known.variance_cap, float(declared.width) ** 2) + known.extra)
    ends = -float(declared.width), float(declared.width)
    check_place(means.difference, ends, half_width(sampling, None, NEVER) + farthest(known.noise))
    less = chance_of_treatment(off, means.share, rows)
    check_variance(known, squared_noise(means.difference, known, rows), less)


def _check_extra(means: JointMeans, off: float) -> None:
    """Check what an error in the share adds: the centre is at most `off` away from where it would add nothing."""
    assert means.mean_noise is not None
    scale = (means.share_sd / (means.share * (1 - means.share))) ** 2
    least = means.mean_noise.variance
    hold(scale * least * (1 - NEAR) <= means.known.extra <= scale * (off**2 + least) * (1 + NEAR))
