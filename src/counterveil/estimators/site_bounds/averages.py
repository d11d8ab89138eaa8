"""What a site may say of averages of private outcomes with public weights, and of differences of two.

In come a `SiteQuestion` (public numbers: rows, declared range, budget) and the figures that a site sent, out
come the bounds that an honest answer keeps; both are in units of the outcome, variances in squared units.
With weights w_i of the n people of an arm, which are not negative and add up to one, w the largest of them
and B the width of the outcome's range,

    1/n <= w <= 1,                        since the mean weight is 1/n,
    sensitivity of the average = B w,     since one outcome moves it by no more,
    1/n <= sum w_i^2 <= w,                by Cauchy and Schwarz, and since w_i^2 <= w w_i,
    largest variance = B^2 / 4 sum w_i^2, since numbers in a range B vary by B^2 / 4 at most,

so that sensitivity and variance bound each other. Plain means have weights that the sizes of the arms give,
and so exact figures. The noise has to pay for the sensitivity, and the estimate must lie in the range, as far
as its error reaches once in 10^9 studies.

A coordinator checks answers of sites with these bounds, before a site's figures are pooled: privacy does not
depend on them. The sensitivities are those of `rows/linear/arm_mean.proof.md` (means of arms) and
`rows/linear/difference_in_means.proof.md` (plain differences), in `rows/linear/sensitivity.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from counterveil.bounded_reading import Fields
from counterveil.estimators.site_bounds.noise import (
    NEVER,
    SLACK,
    BudgetParts,
    PlainNoise,
    effect_in_reach,
    no_further_error,
    no_more_than_asked,
    reach_of,
    variance_in_reach,
    variance_released_or_largest,
    within_reach,
)
from counterveil.estimators.site_bounds.site_question import ReleasedDifference, ReleasedMean, SiteQuestion
from counterveil.inference.arm_means import rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy import Unit
from counterveil.results.effect import noise_from_dict
from counterveil.results.site_bounds import FEWEST_IN_ARM, MOST_ROWS, NEAR, Bound, Equal, Near, Sum, Within
from counterveil.rows.linear.sensitivity import ArmMean, MeanContrast

# Weights of an arm add up to one, so some outcome has a weight of 2/n or more where only outcomes are private. Where
# records are, estimates may be released in parts: half the width over n is below what any of them adds.
_LEAST_STEPS = {Unit.OUTCOME: Fraction(2), Unit.RECORD: Fraction(1, 2)}


def least_noise(question: SiteQuestion) -> float:
    """Return the variance of the least noise that an effect of so many rows can have at the budget asked for."""
    step = _LEAST_STEPS[question.unit] * question.residual_widths[0] / question.rows
    facts = {"mechanism": "staircase", "sensitivity": str(step), "epsilon": str(question.budget.epsilon)}
    pure = float(noise_from_dict(facts).variance)
    mu = question.mu
    # At a large delta normal noise is the smaller one.
    return pure if mu is None else min(pure, float(step / mu) ** 2 / SLACK**2)


def plain_difference(question: SiteQuestion, released: ReleasedDifference) -> Iterator[Bound]:
    """Yield the bounds of a difference in means: arms give the sensitivities, and these noise and largest variance."""
    counts = Fields("details", released.details)
    treated, control = (counts.whole(arm, FEWEST_IN_ARM, MOST_ROWS) for arm in ("treated", "control"))
    error = released.error
    rare = rare_events(question.range, (treated, control))
    yield from no_more_than_asked(question, error)
    yield Sum("people by arm", (treated, control), question.rows)
    yield Equal("whether the variance has noise of its own", released.independent_variance, True)
    yield from variance_released_or_largest(error)
    yield Equal("variance of other errors", error.extra_at(NEVER), 0)
    yield Equal("bias", error.bias, 0)
    yield from _plain_mean(MeanContrast(question.width, treated, control), error, rare)
    yield effect_in_reach(question, released)
    yield variance_in_reach(error)


def weighted_difference(question: SiteQuestion, released: ReleasedDifference) -> Iterator[Bound]:
    """Yield the bounds of a difference of two averages: some weight is 2/n or more, and none is above one."""
    narrow, wide = question.residual_widths
    error = released.error
    yield from no_more_than_asked(question, error)
    step = PlainNoise.of(error.noise).sensitivity
    yield Within("sensitivity", step * question.rows * Fraction(1 + NEAR), low=2 * narrow)
    largest = float(step / narrow)
    # Effective sizes are no less than one over the largest weight.
    rare = rare_events(question.range, (1 / largest, 1 / largest))
    yield from _weighted_mean(question, width=wide, error=error, rare=rare)
    # Squares of an arm's weights add up to one over its size at least.
    yield Within("largest variance", error.variance_cap * question.rows, low=float(narrow) ** 2 * (1 - NEAR))
    yield effect_in_reach(question, released)
    yield variance_in_reach(error)


def arm_means(question: SiteQuestion, means: Sequence[ReleasedMean], *, rare: bool) -> Iterator[Bound]:
    """Yield the bounds of means that are released in parallel: one outcome is in one arm, which has the whole budget.

    `rare` says that few events add to the variance, of arms of these sizes.
    """
    plain = question.method == "difference_in_means"
    width = float(question.width)
    steps: list[Fraction] = []
    for mean in means:
        error = mean.error
        step = PlainNoise.of(error.noise).sensitivity
        # An effective size is one over the sum of squared weights, which is at most the largest of them.
        effective_size = question.width / step
        size = mean.size if plain else float(effective_size)
        of_rare_events = rare_events(question.range, (size,)) if rare else 0.0
        yield from _weighted_mean(question, width=question.width, error=error, rare=of_rare_events)
        yield within_reach(
            "mean of an arm", mean.value, question.ends, reach_of(error, width=width, extra=0.0)
        )
        yield variance_in_reach(error)
        yield Within("size of an arm", mean.size, low=float(effective_size) * (1 - NEAR))
        # Squares of weights that add up to one add up to one over their number at least.
        yield Within("largest variance", 4 * error.variance_cap * mean.size, low=width**2 * (1 - NEAR))
        if plain:
            yield from _plain_mean(ArmMean(question.width, int(mean.size)), error, of_rare_events)
        steps.append(step)
    # A mean of outcomes whose weights add up to one moves by the range over their number at least.
    people = sum((question.width / step for step in steps), Fraction(0))
    yield Within("people by arm that noises are for", people, high=question.rows * Fraction(1 + NEAR))
    sizes = tuple(mean.size for mean in means)
    if plain:
        yield Sum("people by arm", sizes, question.rows)
    else:
        yield Within("people by arm", sum(sizes), high=question.rows * (1 + NEAR))


def _plain_mean(wanted: MeanContrast | ArmMean, error: Uncertainty, rare: float) -> Iterator[Bound]:
    """Yield the figures of a plain mean of one arm, or of a difference of two."""
    yield Equal("sensitivity", PlainNoise.of(error.noise).sensitivity, wanted.estimate)
    yield Near("largest variance", error.variance_cap, float(wanted.variance_cap) + rare, part=1e-12)
    if error.variance_noise is not None:
        yield Equal(
            "sensitivity of the variance", PlainNoise.of(error.variance_noise).sensitivity, wanted.variance
        )


def _weighted_mean(
    question: SiteQuestion, *, width: Fraction, error: Uncertainty, rare: float
) -> Iterator[Bound]:
    """Yield the bounds of an average of numbers in a range of this width, to whose largest variance `rare` was added.

    The factor of the variance allows for bias.
    """
    yield from no_further_error(error)
    yield from variance_released_or_largest(error)
    noises = [error.noise] if error.variance_noise is None else [error.noise, error.variance_noise]
    yield from BudgetParts.of(question, noises).bounds(question)
    step = PlainNoise.of(error.noise).sensitivity
    yield Within("sensitivity", step, high=width * Fraction(1 + NEAR))
    most = (1 + question.bias**2) * float(width * step) + rare
    yield Within("largest variance", error.variance_cap, high=most * (1 + NEAR))
