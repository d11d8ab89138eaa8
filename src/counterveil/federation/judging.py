"""Whether a site's answer fits the question: everything that follows from the question is recomputed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isclose, sqrt

from counterveil.bounded_reading import Fields, UnreadableError
from counterveil.errors import CounterveilError
from counterveil.federation import site_facts
from counterveil.federation.judging_differences import check_difference
from counterveil.federation.messages import Ask, Head, Reply, Request
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
    NO_HEAD,
    NO_RESULT,
    NOT_AN_ANSWER,
    OTHER_FACTS,
    OTHER_LIMITS,
    OTHER_NOISE,
    OTHER_PRIVACY,
    OTHER_QUESTION,
    OUT_OF_REACH,
    TOO_MANY_ROWS,
    WENT_BACK,
    Declared,
    SetAsideError,
    budget_of,
    farthest,
)
from counterveil.inference import Uncertainty, half_width
from counterveil.inference.measures import ApartMeans, JointMeans
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Proof, Unit
from counterveil.questions.pooled.reading import FAR_OUTSIDE, read_result, rows_of
from counterveil.results.effect import Linear
from counterveil.results.measure_words import DIFFERENCE
from counterveil.results.measures import OF_MEANS, MeasureResult, difference_result
from counterveil.results.result import Result
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


def judged(request: Request, reply: Reply, most_rows: int | None, known: Head | None) -> Result:
    """Return the result of a reply, or raise the reason for setting the site aside.

    `most_rows` is what the study file says of the site, `known` the last end of its ledger that was seen.
    """
    if not reply.answers(request) or reply.result is None:
        raise SetAsideError(NOT_AN_ANSWER)
    try:
        result = read_result(reply.result, "a site", measures=request.ask.measure != DIFFERENCE)
    except CounterveilError as error:
        raise SetAsideError(OUT_OF_REACH if error.got == FAR_OUTSIDE else NO_RESULT) from None
    declared = Declared.of(request.declaration)
    _check_question(request, declared, result)
    _check_rows(result, most_rows)
    try:
        checked = _checked(request, declared, result)
    except (UnreadableError, KeyError, ArithmeticError, ValueError):
        # Numbers so large or so small that nothing can be computed from them are nobody's.
        raise SetAsideError(OTHER_NOISE) from None
    _check_head(reply.head, known)
    return checked


def _check_question(request: Request, declared: Declared, result: Result) -> None:
    """Compare what an answer repeats of its question; nothing in it is trusted."""
    ask, budget, guarantee = request.ask, budget_of(request.ask), result.guarantee
    measure = result.measure if isinstance(result, MeasureResult) else DIFFERENCE
    said = (result.treatment, result.outcome, result.estimand.value, measure)
    asked = (declared.treatment, declared.outcome, ask.estimand, ask.measure)
    hold(said == asked and result.level == ask.level, OTHER_QUESTION)
    kept = guarantee.unit.value == ask.protects and guarantee.proof is Proof.FINITE_SAMPLE
    paid = (guarantee.epsilon, guarantee.delta) == (budget.epsilon, budget.delta) and result.spent == budget
    hold(kept and paid, OTHER_PRIVACY)
    hold(site_facts.fits(ask, request.declaration, result), OTHER_FACTS)


def _checked(request: Request, declared: Declared, result: Result) -> Result:
    """Return a result whose released numbers fit: the means of both arms, or a difference.

    The limits of a number needed to treat are put back where its interval is not for the effect.
    """
    if not isinstance(result, MeasureResult):
        hold(result.limits == declared.limits, OTHER_LIMITS)
        check_difference(request.ask, declared, result)
        return result
    hold((result.means is not None) == (request.ask.measure in OF_MEANS), NO_RESULT)
    if result.means is not None:
        check_means(request.ask, declared, result)
        return result
    plain = difference_result(result)
    hold(plain.limits == (declared.limits if plain.interval_of is None else None), OTHER_LIMITS)
    check_difference(request.ask, declared, plain)
    assert isinstance(result.difference.known, Linear)
    known = replace(result.difference.known, limits=declared.limits)
    return replace(result, difference=replace(result.difference, known=known))


def _check_rows(result: Result, most_rows: int | None) -> None:
    rows = rows_of(result)
    hold(rows is not None and rows <= (MOST_ROWS if most_rows is None else most_rows), TOO_MANY_ROWS)


def _check_head(head: Head | None, known: Head | None) -> None:
    """Check that a ledger did not get shorter, or other, since an earlier answer."""
    if head is None:
        raise SetAsideError(NO_HEAD)
    if known is not None and (head.seq < known.seq or (head.seq == known.seq and head.hash != known.hash)):
        raise SetAsideError(WENT_BACK)
