"""What a site may say of effects and means of private records: contrasts, scores, folds, strata and ratios.

In come a `SiteQuestion` (public numbers) and a site's figures in units of the outcome (variances in squared
units), out come bounds that honest figures keep. A contrast is the mean over n rows of

    psi = t (y - c) / q - (1 - t) (y - c) / (1 - q),

t being treatment (0 or 1), y the outcome, q the released share treated and c a released centre in the
declared range. n, q and the range of c bound its sensitivity s, which `CentredContrast` computes, and s
bounds the rest. The variance of the mean is at most s^2 n / 4, since psi lies in an interval of length s n.
The mean of psi^2 over n moves by between s^2 / 4 and s^2, since the end of that interval farther from zero
is at least half as far and at most as far as the interval is long. Scores of other methods are bounded by
models that the site released: where a method locates outcomes in their range, no rule on the range bounds
its noise from below, so that the bounds are on the variance that its own sensitivity allows, on bias and on
reach.

Proof of the sensitivities: `rows/moments/centred_contrast.proof.md`, and for cells of scores
`rows/moments/group_scores.proof.md`. The limits at the top of the module (`_ADJUSTED`, `_MOST_CAP`,
`_MOST_SCORE`, `FAR`) are what a coordinator accepts from an honest site: they are wide, and privacy does not
depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt

from counterveil.bounded_reading import Fields
from counterveil.estimators.site_bounds.averages import least_noise
from counterveil.estimators.site_bounds.noise import (
    LEAST_PART,
    SLACK,
    BudgetParts,
    PlainNoise,
    effect_in_reach,
    is_plain,
    no_more_than_asked,
    noise_like,
    reach_of,
    squared_noise,
    variance_in_reach,
    within_reach,
)
from counterveil.estimators.site_bounds.site_question import ReleasedDifference, SiteQuestion
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans, rare_events
from counterveil.inference.clusters import t_factor
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import WeightedSum
from counterveil.inference.noisy_ratio import NoisyRatio
from counterveil.inference.site_weights import other_variance
from counterveil.inference.variance_inflation import HEADROOM
from counterveil.numerics.public_choices import LEAST_SHARE, LEFT_OF_TREATMENT
from counterveil.results.site_bounds import NEAR, Above, Bound, Breach, Equal, Near, OneOf, Sum, Within
from counterveil.rows.moments.cell_sums import SCORE_TERMS
from counterveil.rows.moments.centred_contrast import CentredContrast, mean_of_everyone

# What outcomes less a prediction range over, beside the range of outcomes: the prediction is cut to half of the range
# on either side, and its fit takes away at most half of the effect; one that is all noise may seem to add to it.
_ADJUSTED = 0.5, 4.0
# The largest variance of an average of bounded scores is a quarter of this; strata count some rows more than once.
_MOST_CAP = 4
# No mean of scores has a sampling error of so many widths of the outcome's range.
_MOST_SCORE = 10.0
# An unadjusted contrast has the largest bias for a given bound on confounding where an arm is as small as allowed.
_PER_KAPPA = 1 / (LEFT_OF_TREATMENT * sqrt(LEAST_SHARE * (1 - LEAST_SHARE)))
# No noise is so many of its standard deviations, Laplace's once in a thousand million studies.
FAR = 16.0


def contrast(question: SiteQuestion, released: ReleasedDifference) -> Iterator[Bound]:
    """Yield the bounds of a trial's contrast."""
    error = released.error
    share = Fraction(Fields("details", released.details).number("share_treated", 0, 1))
    yield from _any_difference(question, released)
    yield Within("share treated", min(share, 1 - share), low=LEAST_SHARE * Fraction(1 - NEAR))
    yield from BudgetParts.of(question, [error.noise, error.variance_noise]).bounds(question)
    yield Equal("bias", error.bias, 0)
    yield Equal("variance of clipped scores", error.ball_variance, 0)
    yield from _contrast_noise(question, released, share)
    yield _share_error(question, released, share)
    yield effect_in_reach(question, released)
    yield variance_in_reach(
        error, above=_noise_of_square(question, released), below=_chance_of_treatment(question, released)
    )


def strata_difference(question: SiteQuestion, released: ReleasedDifference) -> Iterator[Bound]:
    """Yield the bounds of an average over strata: its noise is no less than that of one number at the whole budget."""
    yield from _any_difference(question, released)
    yield Within("variance of noise", other_variance(released.error), low=least_noise(question))
    yield from _reach_and_variance(question, released)


def score_difference(question: SiteQuestion, released: ReleasedDifference) -> Iterator[Bound]:
    """Yield the bounds of a mean of scores of records or of folds, or of the contrast to which it may fall back."""
    yield from _any_difference(question, released)
    yield from _reach_and_variance(question, released)


def joint_means(question: SiteQuestion, means: JointArmMeans) -> Iterator[Bound]:
    """Yield the bounds of means made of that of everyone and the contrast: one record moves all that is released."""
    error = means.known
    width = float(question.width)
    share = Fraction(means.share)
    budget = BudgetParts.of(question, [means.mean_noise, error.noise, error.variance_noise])
    # What the other releases leave of the budget paid for the share.
    yield from budget.bounds(question, spare=LEAST_PART)
    yield Equal("people", means.rows, question.rows)
    yield Within("share treated", min(share, 1 - share), low=LEAST_SHARE * Fraction(1 - NEAR))
    yield Equal("bias", error.bias, 0)
    yield Equal("variance of clipped scores", error.ball_variance, 0)
    of_everyone = PlainNoise.of(means.mean_noise).sensitivity
    yield Equal(
        "sensitivity of everyone's mean", of_everyone, mean_of_everyone(question.width, question.rows)
    )
    yield within_reach("mean of everyone", means.mean, means.range, NEAR * width)
    # Outcomes are centred between the mean of everyone and the middle of their range, where they move least.
    start = min(max(Fraction(means.mean) - question.low, Fraction(0)), question.width)
    middle = question.width / 2
    contrasts = [CentredContrast(question.width, question.rows, share, centre) for centre in (middle, start)]
    step = PlainNoise.of(error.noise).sensitivity
    yield _between("sensitivity", step, [around.mean for around in contrasts])
    squares = PlainNoise.of(error.variance_noise).sensitivity
    yield _between(
        "sensitivity of squares", squares, [around.second_moment / question.rows for around in contrasts]
    )
    caps = [around.variance_cap / question.rows for around in contrasts]
    yield _between("largest variance", error.variance_cap, caps)
    share_noise = noise_like(
        error.noise, sensitivity=Fraction(1, question.rows), paid=max(budget.remaining, Fraction(0))
    )
    yield Near("standard error of the share treated", means.share_sd, sqrt(share_noise.variance))
    off = float(abs(start - middle)) + abs((1 - 2 * means.share) * means.difference)
    yield _share_error_of_means(means, off)
    yield within_reach(
        "difference of means",
        means.difference,
        question.limits,
        reach_of(error, width=width, extra=error.extra),
    )
    less = _chance_taken_off(off, means.share, question.rows)
    yield variance_in_reach(error, above=squared_noise(means.difference, error, question.rows), below=less)


def scored_means(question: SiteQuestion, means: IndependentArmMeans) -> Iterator[Bound]:
    """Yield the bounds of means of scores, whose noise follows from released models: as differences of such."""
    smallest = min(means.sizes)
    yield Above("size of an arm", smallest, 0, breach=Breach.ROWS)
    yield Sum("people by arm", tuple(means.sizes), question.rows, part=NEAR, breach=Breach.ROWS)
    width = float(question.width)
    for value, error in zip(means.values, means.known, strict=True):
        yield from _cell_noise(question, error.noise)
        yield from _cell_noise(question, error.variance_noise)
        yield Equal("variance of clipped scores", error.ball_variance, 0)
        yield Within("bias", error.bias, 0, 2 * width)
        yield Within("variance of other errors", error.extra, low=0)
        # Scores are clipped to less than this, over the root of their number.
        yield Within("largest variance", error.variance_cap, high=(_MOST_SCORE * width) ** 2)
        yield variance_in_reach(error)
        margin = reach_of(error, width=width, extra=error.extra, bias=error.bias)
        yield within_reach("mean of an arm", value, means.range, margin)


def group_ratio(question: SiteQuestion, ratio: NoisyRatio, *, ratios: int) -> Iterator[Bound]:
    """Yield the bounds of a sum over a size, one of so many ratios of a group.

    Noises are no less than one record's part of a sum at the whole budget.
    """
    width = float(question.width)
    yield Near("limit of a ratio", ratio.limit, width / ratios, breach=Breach.LIMITS)
    least = sqrt(2) / float(question.budget.epsilon)
    mu = question.mu
    # The part of a count: no release has a smaller part of the budget, or of what a score may be.
    least = least if mu is None else min(least, 1 / float(mu))
    yield Within("noise of a size", ratio.size_sd, low=least * (1 - NEAR))
    yield Within("noise of a total", ratio.total_sd, low=least * width / 100)
    yield Equal("least size", ratio.least, 1)
    yield Within("variance of a row's part", ratio.row_variance, low=0)
    yield Within("variance of other errors", ratio.extra, low=0)
    yield Within("bias", ratio.bias, 0, 2 * width)
    margin = FAR * ratio.size_sd
    yield Within("size", ratio.size, -margin, question.rows + margin, breach=Breach.ROWS)
    yield Within("offset", abs(ratio.offset), high=width, breach=Breach.REACH)


def _chance_taken_off(off: float, share: float, rows: int) -> float:
    """Return the most that is taken off a contrast's variance for chance in who was treated.

    `off` is how far the centre of the outcomes can be from where an error in the share would do no harm.
    """
    return off**2 / (share * (1 - share)) / rows


def _any_difference(question: SiteQuestion, released: ReleasedDifference) -> Iterator[Bound]:
    """Yield the bounds of every difference of private records."""
    error = released.error
    yield from no_more_than_asked(question, error)
    yield Above("variance of noise", other_variance(error))
    yield _bias(question, released)
    if is_plain(error.noise):
        step = float(PlainNoise.of(error.noise).sensitivity)
        # The most that few events add to a variance is that of arms of a person each.
        rare = rare_events(question.range, (1.0, 1.0))
        yield Within("largest variance", error.variance_cap, high=_MOST_CAP * step**2 * question.rows + rare)


def _bias(question: SiteQuestion, released: ReleasedDifference) -> Within:
    """Return the bound of the bias in an interval: beyond the range where a bound on confounding is asked for."""
    error = released.error
    kappa = question.settings.get("kappa")
    most = 2 * float(question.width)
    if released.conditional and isinstance(kappa, int | float):
        squares = HEADROOM * error.variance_cap * question.rows + released.estimate**2
        most += float(kappa) * _PER_KAPPA * sqrt(squares)
    return Within("bias", error.bias, high=most)


def _contrast_noise(question: SiteQuestion, released: ReleasedDifference, share: Fraction) -> Iterator[Bound]:
    """Yield sensitivities and largest variance of a contrast: least where it is centred in the middle."""
    error = released.error
    width = question.width
    rows = question.rows
    step = float(PlainNoise.of(error.noise).sensitivity)
    # It moves least where it is centred in the middle, and most at either end.
    middle, *ends = (
        float(CentredContrast(width, rows, share, centre).mean) for centre in (width / 2, Fraction(0), width)
    )
    shorter, longer = _ADJUSTED if "adjusted" in released.details else (1.0, 1.0)
    yield Within("sensitivity", step, shorter * middle * (1 - NEAR), longer * max(ends) * (1 + NEAR))
    sizes = rows * float(share), rows * float(1 - share)
    rare = rare_events(question.range, sizes)
    yield Near("largest variance", error.variance_cap, step**2 * rows / 4 + rare)
    # The largest square is that of an end of the range of scores, of which one is at least half as long.
    squares = float(PlainNoise.of(error.variance_noise).sensitivity)
    yield Within("sensitivity of squares", squares, step**2 / 4 * (1 - NEAR), step**2 * (1 + NEAR))


def _share_error(question: SiteQuestion, released: ReleasedDifference, share: Fraction) -> Within:
    """Return the bound of what an error in the share adds: no more than its least budget makes."""
    error = released.error
    rows = question.rows
    mu = question.mu if PlainNoise.of(error.noise).normal else None
    least = LEAST_PART**2 * (question.budget.epsilon if mu is None else mu**2)
    spread = 1 / float(share * (1 - share))
    noise = noise_like(error.noise, sensitivity=Fraction(1, rows), paid=least).variance * spread**2
    width = _ADJUSTED[1] * float(question.width)
    off = width / 2 + abs(released.estimate)
    return Within(
        "variance of other errors", error.extra, high=noise * (off**2 + width**2 * noise) * (1 + NEAR)
    )


def _share_error_of_means(means: JointArmMeans, off: float) -> Within:
    """Return the bound of what an error in the share adds: the centre is at most `off` from where it adds nothing."""
    assert means.mean_noise is not None
    scale = (means.share_sd / (means.share * (1 - means.share))) ** 2
    least = means.mean_noise.variance
    most = scale * (off**2 + least) * (1 + NEAR)
    return Within("variance of other errors", means.known.extra, scale * least * (1 - NEAR), most)


def _reach_and_variance(question: SiteQuestion, released: ReleasedDifference) -> Iterator[Bound]:
    """Yield where an estimate and its variance can lie; that of a contrast, which says what share was treated."""
    falls_back = "share_treated" in released.details and is_plain(released.error.noise)
    less = _chance_of_treatment(question, released) if falls_back else 0.0
    yield effect_in_reach(question, released)
    yield variance_in_reach(released.error, above=_noise_of_square(question, released), below=less)


def _chance_of_treatment(question: SiteQuestion, released: ReleasedDifference) -> float:
    """Return the most that a contrast's variance is less for chance in who was treated."""
    details = Fields("details", released.details)
    share = details.number("share_treated", float(LEAST_SHARE) * (1 - NEAR), 1)
    share = min(share, 1 - float(LEAST_SHARE))
    # The centre is no farther than half of the range of scores, whose length the sensitivity gives.
    step = float(PlainNoise.of(released.error.noise).sensitivity)
    width = 2 * share * (1 - share) * step * question.rows
    off = width / 2 + abs((1 - 2 * share) * released.estimate)
    return _chance_taken_off(off, share, question.rows)


def _noise_of_square(question: SiteQuestion, released: ReleasedDifference) -> float:
    """Return how far noise moves the variance: a second moment about a centre that lies in the range."""
    about = abs(released.estimate) + 2 * float(question.width)
    return squared_noise(about, released.error, _scores(question, released))


def _scores(question: SiteQuestion, released: ReleasedDifference) -> float:
    """Return how many scores the variance is one of the mean of: those of folds, or of rows."""
    if question.method not in ("sample_and_aggregate", "auto") or "folds" not in released.details:
        return question.rows
    folds = Fields("details", released.details).whole("folds", 2, question.rows)
    # Raised so that normal quantiles are Student's.
    return (folds - 1) / t_factor(folds - 1, 1 - released.level) ** 2


def _between(figure: str, value: float | Fraction, ends: list[Fraction]) -> Within:
    """Return that a figure lies between two others, rounding apart."""
    return Within(figure, float(value), float(min(ends)) * (1 - NEAR), float(max(ends)) * (1 + NEAR))


def _cell_noise(question: SiteQuestion, noise: NoiseDistribution | None) -> Iterator[Bound]:
    """Yield that a noise is that of an arm's three sums of scores, which have no more than the budget."""
    yield OneOf("kind of a noise", type(noise), (WeightedSum,))
    assert isinstance(noise, WeightedSum)
    mu = question.mu
    for _, term in noise.terms:
        plain = PlainNoise.of(term)
        pure = plain.mechanism == "laplace"
        yield OneOf(
            "mechanism of a noise", plain.mechanism, ("laplace", *(() if mu is None else ("gaussian",)))
        )
        wanted = SCORE_TERMS.absolute if pure else SCORE_TERMS.euclidean
        yield Equal("sensitivity of scores", plain.sensitivity, wanted)
        most = question.budget.epsilon if pure else mu or Fraction(0)
        yield Within("part of the budget", plain.amount, high=most * Fraction(SLACK))
