"""Whether a site's answer fits the question: everything that follows from the question is recomputed."""

from __future__ import annotations

from dataclasses import replace

from counterveil.bounded_reading import UnreadableError
from counterveil.errors import CounterveilError
from counterveil.federation import site_words
from counterveil.federation.judging_differences import check_difference
from counterveil.federation.judging_means import check_means
from counterveil.federation.messages import Head, Reply, Request
from counterveil.federation.noise_checks import hold
from counterveil.federation.public_limits import (
    MOST_ROWS,
    NO_HEAD,
    NO_RESULT,
    NOT_AN_ANSWER,
    OTHER_LIMITS,
    OTHER_NOISE,
    OTHER_PRIVACY,
    OTHER_QUESTION,
    OTHER_WORDS,
    OUT_OF_REACH,
    TOO_MANY_ROWS,
    WENT_BACK,
    Declared,
    SetAsideError,
    budget_of,
)
from counterveil.privacy import Proof
from counterveil.questions.pooled.reading import FAR_OUTSIDE, read_result, rows_of
from counterveil.results.effect import Linear
from counterveil.results.measure_words import DIFFERENCE
from counterveil.results.measures import OF_MEANS, MeasureResult, difference_result
from counterveil.results.result import Result


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
    hold(site_words.fits(ask, request.declaration, result), OTHER_WORDS)


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
