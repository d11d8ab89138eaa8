"""What a site may say of an effect of private pairs of treatment and outcome, in units of the outcome.

The effect is the mean over n rows of scores that are clipped to an interval of length C, in units of the
outcome; one pair moves it by

    s = C / n,    and the mean of the squared scores over n by between s^2 and `_MOST_SQUARES` s^2.

C is no shorter than the range of outcomes at the least weight of any row and no longer than at the largest,
which the least propensity gives. Epsilon of the noise is one of the few that the plan of such a release has,
and the noise is Laplace's. In come a `SiteQuestion` (public numbers) and a site's figures, out come the
bounds of every one: sensitivity, largest variance (squared units), bias and where the estimate can lie.

Why it is right: replacing a pair moves one score within an interval of length C, and the variance of numbers
in it is at most C^2 / 4. `_MOST_CLIP`, `_MOST_SQUARES` and `_MOST_FITTED` limit what a coordinator accepts of
a clip, of squares and of models that were fitted to the rows. Proof of the sensitivities:
`rows/pairs/pair_scores.proof.md`. The bounds read released figures, so that privacy does not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt

from counterveil.estimators.pairs.limits import MOST_LEFT, least_part, score_amounts
from counterveil.estimators.site_bounds.noise import (
    PlainNoise,
    effect_in_reach,
    farthest,
    no_more_than_asked,
    variance_in_reach,
)
from counterveil.estimators.site_bounds.site_question import ReleasedDifference, SiteQuestion
from counterveil.inference.arm_means import rare_events
from counterveil.results.site_bounds import NEAR, Bound, Equal, OneOf, Within

# The widest clip of scores of pairs, in widths of the outcome's range over the squared least propensity.
_MOST_CLIP = 4.0
# The largest sensitivity of the mean of squared scores, beside the squared sensitivity of their mean.
_MOST_SQUARES = 2 * sqrt(2.0)
# The largest variance of scores beside that square, over the rows: rows vary up to twice as much as around models that
# were fitted to them.
_MOST_FITTED = 2.0


def least_step(question: SiteQuestion) -> Fraction:
    """Return the least that a pair of treatment and outcome moves an effect of so many rows."""
    return least_part(question.estimand, question.searched) * question.width / question.rows


def least_noise(question: SiteQuestion) -> float:
    """Return the variance of the least noise that an effect of so many rows can have at the budget asked for."""
    amount = score_amounts(question.budget, question.searched)[0]
    return 2 * float(least_step(question) / amount) ** 2


def pair_difference(question: SiteQuestion, released: ReleasedDifference) -> Iterator[Bound]:
    """Yield the bounds of an effect that is a mean of clipped scores of pairs."""
    error = released.error
    rows = question.rows
    width = float(question.width)
    yield from no_more_than_asked(question, error)
    amounts = score_amounts(question.budget, question.searched)
    for noise in (error.noise, error.variance_noise):
        plain = PlainNoise.of(noise)
        yield Equal("mechanism of a noise", plain.mechanism, "laplace")
        yield OneOf("epsilon of a noise", plain.amount, amounts)
    step = float(PlainNoise.of(error.noise).sensitivity)
    squares = float(PlainNoise.of(error.variance_noise).sensitivity)
    most = _MOST_CLIP * width / question.least_propensity**2 / rows
    yield Within("sensitivity", step, float(least_step(question)) * (1 - NEAR), most * (1 + NEAR))
    least_squares = step**2 * (1 - NEAR)
    yield Within("sensitivity of squares", squares, least_squares, _MOST_SQUARES * step**2 * (1 + NEAR))
    # The most that few events add to a variance is that of arms of a person each.
    rare = rare_events(question.range, (1.0, 1.0))
    largest = _MOST_FITTED * step**2 * rows * (1 + NEAR) + rare
    yield Within("largest variance", error.variance_cap, step**2 / 4 * rows * (1 - NEAR), largest)
    yield Equal("variance of clipped scores", error.ball_variance, 0)
    yield Within("bias", error.bias, 0, MOST_LEFT * width)
    # Errors of models have no bound where the budget is small; the larger they are, the less the site weighs.
    yield Within("variance of other errors", error.extra, low=0)
    yield effect_in_reach(question, released)
    yield variance_in_reach(error, above=farthest(error.variance_noise))
