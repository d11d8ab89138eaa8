"""Whether a site's answer fits the question: everything that follows from the question is recomputed."""

from __future__ import annotations

from dataclasses import replace
from math import isclose, sqrt
from typing import Any

from counterveil.bounded_reading import Fields, UnreadableError
from counterveil.errors import CounterveilError
from counterveil.federation.judging_means import check_means, check_variance, squared_noise
from counterveil.federation.messages import Head, Reply, Request
from counterveil.federation.public_limits import (
    FEWEST_IN_ARM,
    MOST_ROWS,
    NEVER,
    NO_HEAD,
    NO_RESULT,
    NOT_AN_ANSWER,
    OTHER_LIMITS,
    OTHER_NOISE,
    OTHER_PRIVACY,
    OTHER_QUESTION,
    OUT_OF_REACH,
    SLACK,
    TOO_MANY_ROWS,
    WENT_BACK,
    Declared,
    SetAsideError,
    budget_of,
    farthest,
    most_mu,
)
from counterveil.inference import half_width, rare_events
from counterveil.privacy import Proof, Unit
from counterveil.questions.pooled.reading import FAR_OUTSIDE, read_result, rows_of
from counterveil.results.effect import uncertainty_to_dict
from counterveil.results.measure_words import DIFFERENCE, NEEDED
from counterveil.results.measures import OF_MEANS, MeasureResult, difference_result
from counterveil.results.result import Result
from counterveil.statistics.linear.sensitivity import DifferenceInMeans


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
        _check_numbers(request, declared, result)
    except (UnreadableError, KeyError):
        raise SetAsideError(OTHER_NOISE) from None
    _check_head(reply.head, known)
    return result


def _check_question(request: Request, declared: Declared, result: Result) -> None:
    """Compare what an answer repeats of its question; nothing in it is trusted."""
    ask, budget, guarantee = request.ask, budget_of(request.ask), result.guarantee
    measure = result.measure if isinstance(result, MeasureResult) else DIFFERENCE
    said = (result.treatment, result.outcome, result.estimand.value, measure)
    if said != (declared.treatment, declared.outcome, ask.estimand, ask.measure) or result.level != ask.level:
        raise SetAsideError(OTHER_QUESTION)
    kept = guarantee.unit.value == ask.protects and guarantee.proof is Proof.FINITE_SAMPLE
    if (
        not kept
        or (guarantee.epsilon, guarantee.delta) != (budget.epsilon, budget.delta)
        or result.spent != budget
    ):
        raise SetAsideError(OTHER_PRIVACY)


def _check_numbers(request: Request, declared: Declared, result: Result) -> None:
    """Check the released numbers: the means of both arms, or a difference, also that of a number needed to treat."""
    if isinstance(result, MeasureResult):
        if (result.means is not None) != (request.ask.measure in OF_MEANS):
            raise SetAsideError(NO_RESULT)
        if result.means is not None:
            return check_means(request.ask, declared, result)
        # Whether the variance has noise of its own is not said, and follows from the level.
        apart = Unit(request.ask.protects) is Unit.OUTCOME
        result = replace(difference_result(result), variance_apart=apart)
    # A number needed to treat whose interval is not for the effect has none.
    free = request.ask.measure == NEEDED and result.interval_of is not None
    if result.limits != declared.limits and not (free and result.limits is None):
        raise SetAsideError(OTHER_LIMITS)
    _check_noise(request, declared, result)
    return _check_reach(declared, result)


def _check_rows(result: Result, most_rows: int | None) -> None:
    rows = rows_of(result)
    if rows is None or rows > (MOST_ROWS if most_rows is None else most_rows):
        raise SetAsideError(TOO_MANY_ROWS)


def _check_noise(request: Request, declared: Declared, result: Result) -> None:
    """Check that the noise is not less than the budget asked for buys, and recompute it where that is possible."""
    ask, document = request.ask, uncertainty_to_dict(result.uncertainty)
    epsilon, mu = budget_of(ask).epsilon, most_mu(ask)
    for mechanism in (document["noise"], document["variance_noise"]):
        facts: Any = mechanism or {}
        if "epsilon" in facts and Fields("mechanism", facts).rational("epsilon", 0, 1e9) > epsilon:
            raise SetAsideError(OTHER_NOISE)
        if "mu" in facts and (mu is None or Fields("mechanism", facts).rational("mu", 0, 1e9) > mu * SLACK):
            raise SetAsideError(OTHER_NOISE)
    if result.uncertainty.bias > 2 * float(declared.width):
        raise SetAsideError(OTHER_NOISE)
    if (ask.method, Unit(ask.protects)) == ("difference_in_means", Unit.OUTCOME):
        _check_difference(declared, result, document)


def _check_difference(declared: Declared, result: Result, document: dict[str, Any]) -> None:
    """Check a difference in means: arms give the sensitivities, and these the noise and the largest variance."""
    counts = Fields("details", result.details)
    treated, control = (counts.whole(arm, FEWEST_IN_ARM, MOST_ROWS) for arm in ("treated", "control"))
    wanted = DifferenceInMeans(declared.width, treated, control)
    noise, apart = Fields("mechanism", document["noise"] or {}), document["variance_noise"]
    rare = rare_events((declared.low, declared.high), (treated, control))
    sound = (
        treated + control == rows_of(result)
        and noise.rational("sensitivity", 0, 1e60) == wanted.estimate
        and isclose(result.uncertainty.variance_cap, float(wanted.variance_cap) + rare, rel_tol=1e-12)
        and result.uncertainty.extra_at(NEVER) == result.uncertainty.bias == 0
        and result.variance_apart
    )
    if apart is None:
        sound = sound and result.uncertainty.variance == result.uncertainty.variance_cap
    else:
        sound = sound and Fields("mechanism", apart).rational("sensitivity", 0, 1e60) == wanted.variance
    if not sound:
        raise SetAsideError(OTHER_NOISE)


def _check_reach(declared: Declared, result: Result) -> None:
    """Check that estimate and variance lie where declared outcomes and their noise can put them."""
    known, width = result.uncertainty, float(declared.width)
    sampling = sqrt(min(known.variance_cap, width**2) + known.extra_at(NEVER))
    reach = width + known.bias + half_width(sampling, None, NEVER) + farthest(known.noise)
    if not abs(result.estimate) <= reach:
        raise SetAsideError(OUT_OF_REACH)
    more = 0.0 if result.variance_apart else squared_noise(result.estimate, known, rows_of(result) or 1)
    check_variance(known, more)


def _check_head(head: Head | None, known: Head | None) -> None:
    """Check that a ledger did not get shorter, or other, since an earlier answer."""
    if head is None:
        raise SetAsideError(NO_HEAD)
    if known is not None and (head.seq < known.seq or (head.seq == known.seq and head.hash != known.hash)):
        raise SetAsideError(WENT_BACK)
