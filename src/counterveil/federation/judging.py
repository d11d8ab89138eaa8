"""Whether a site's answer fits the question: everything that follows from the question is recomputed.

Nothing is read off a reply that follows from public numbers. What an answer repeats of its question is compared with
it; every other figure has to keep the bounds that its kind of answer and its method declare
(`counterveil.results.site_bounds`, `counterveil.estimators.site_bounds`). An answer that breaks one is set aside with
a reason of a fixed list, and never pooled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

from counterveil.bounded_reading import UnreadableError
from counterveil.data import Range, Study
from counterveil.data.study_documents import column_of
from counterveil.errors import CounterveilError, refusal
from counterveil.estimators.group_names import group_names
from counterveil.estimators.pairs.limits import LEAST_PROPENSITY
from counterveil.estimators.site_bounds import methods
from counterveil.estimators.site_bounds.site_question import ReleasedDifference, SiteQuestion
from counterveil.estimators.site_bounds.statements import statements
from counterveil.estimators.site_bounds.tables import CELL_PARTS
from counterveil.federation.messages import MOST_SITES, SUMMED, Ask, Head, Reply, SiteRequest
from counterveil.inference.quotient import DIFFERENCE
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Budget, Estimand, Proof, Unit
from counterveil.questions.groups import layout_of
from counterveil.questions.pooling.reading import FAR_OUTSIDE, read_answer, read_result, rows_of
from counterveil.results.effect import Linear
from counterveil.results.measures import OF_MEANS
from counterveil.results.result import MeasureResult, Result, difference_result
from counterveil.results.site_bounds import MOST_ROWS, Bound, Breach, Equal, PublicShape, Within, first_broken

_WHAT = "the declaration"

NOT_AN_ANSWER = "it is not an answer to this request"
NO_RESULT = "it is not a result with a single effect, or a number is out of range"
OTHER_QUESTION = "it has a different treatment, outcome, estimand, measure or confidence level"
OTHER_PRIVACY = "its guarantee or its cost is not the one requested"
OTHER_FACTS = "it says something of itself that the requested method does not say"
OTHER_LIMITS = "its bounds are not those of the declared outcome"
OUT_OF_REACH = "its estimate lies beyond what the declared outcome and its noise allow"
OTHER_NOISE = "its noise distribution or its variance does not follow from the question"
TOO_MANY_ROWS = "it claims more rows than the site is known to have, or none"
NO_HEAD = "it does not say where the site's ledger ends"
WENT_BACK = "the site's ledger was rolled back: it ends before an entry that an earlier answer named"
COPY = "it is a copy of another site's answer"
# Why an answer is set aside that breaks a bound.
_REASONS = {
    Breach.KIND: NO_RESULT,
    Breach.QUESTION: OTHER_QUESTION,
    Breach.PRIVACY: OTHER_PRIVACY,
    Breach.STATEMENT: OTHER_FACTS,
    Breach.LIMITS: OTHER_LIMITS,
    Breach.REACH: OUT_OF_REACH,
    Breach.NOISE: OTHER_NOISE,
    Breach.ROWS: TOO_MANY_ROWS,
}


class SetAsideError(Exception):
    """Carries the reason for which an answer is not pooled; the text is ours."""


def hold(bounds: Iterable[Bound]) -> None:
    """Raise the reason for setting a site aside whose figures break a bound."""
    broken = first_broken(bounds)
    if broken is not None:
        raise SetAsideError(_REASONS[broken.breach])


def site_question(ask: Ask) -> SiteQuestion:
    """Return what a question says of every outcome, whatever is declared of it."""
    budget = Budget(ask.epsilon, ask.delta)
    # Where there is a delta, pure noise may be the smaller one.
    chosen = (SUMMED if ask.summed else ("staircase", "gaussian"))[: 1 if budget.pure else 2]
    return SiteQuestion(
        unit=Unit(ask.protects),
        method=ask.method,
        estimand=Estimand(ask.estimand),
        budget=budget,
        mechanisms=chosen if ask.mechanism is None or ask.summed else (ask.mechanism,),
        settings=ask.settings,
        most_sites=MOST_SITES if ask.summed else 1,
    )


@dataclass(frozen=True, slots=True)
class DeclaredOutcome:
    """The public facts of one outcome that an answer must repeat, and the range it must lie in.

    `least_propensity` is how near to 0 or 1 a propensity may be: as models are cut, or as the design says.
    """

    treatment: str
    outcome: str
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    least_propensity: float = LEAST_PROPENSITY

    @classmethod
    def of(cls, declaration: Mapping[str, Any]) -> DeclaredOutcome:
        """Return them from a declaration of one outcome, or raise CV-P600."""
        (declared,) = declared_outcomes(judgeable(declaration, "ate"))
        return declared

    @property
    def limits(self) -> Ends:
        """What an effect can be at all: plus or minus the width of the range."""
        width = float(self.high - self.low)
        return -width, width

    def asked(self, ask: Ask, rows: int) -> SiteQuestion:
        """Return the public numbers that bound the answer of a site with so many rows."""
        return replace(
            site_question(ask),
            rows=rows,
            low=self.low,
            high=self.high,
            least_propensity=self.least_propensity,
        )

    def least_noise(self, ask: Ask, rows: int) -> float:
        """Return the variance of the least noise that an effect of so many rows can have at the budget asked for."""
        return methods.least_noise(self.asked(ask, rows))


def declared_outcomes(study: Study) -> tuple[DeclaredOutcome, ...]:
    """Return what every outcome of a study allows its effects to be; of times to events these are probabilities."""
    if study.event is not None:
        return (DeclaredOutcome(study.treatment, study.outcome_name),)
    ranges = {study.outcome: study.outcome_range} if study.several is None else dict(study.several.ranges)
    least = _least_propensity(study)
    return tuple(DeclaredOutcome(study.treatment, name, *ends, least) for name, ends in ranges.items())


def _least_propensity(study: Study) -> float:
    ends = [] if study.treated_share is None else [study.treated_share]
    domain = None if study.score is None else study.covariates[study.score]
    ends += [domain.lo, domain.hi] if isinstance(domain, Range) else []
    return float(min([Fraction(LEAST_PROPENSITY), *(min(end, 1 - end) for end in ends)]))


def judgeable(declaration: Mapping[str, Any], question: str) -> Study:
    """Return the declared study, or raise CV-P600 where answers to a question cannot be judged or pooled."""
    try:
        study = Study.from_dict(dict(declaration))
    except (CounterveilError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        raise refusal(
            "CV-P600", what=_WHAT, expected="one that describes a study", got="something else"
        ) from None
    several = study.several
    refused = {
        "a change": study.before is not None,
        "a ratio": study.denominator is not None,
        # Their degrees of freedom would be lost.
        "clusters": study.cluster is not None,
        "outcomes with earlier values": several is not None and bool(several.baseline),
        "outcomes of several arms": several is not None and study.arms is not None,
        "several outcomes, or times": question == "ate" and (several or study.event) is not None,
    }
    for what, declared in refused.items():
        if declared:
            expected = f"one without what question = {question!r} does not pool"
            raise refusal("CV-P600", what=_WHAT, expected=expected, got=what)
    return study


def options_of(ask: Ask) -> dict[str, Any]:
    """Return the arguments of a question's own, with tuples for lists; no cut points are an empty list in TOML."""
    return {name: _option(value) for name, value in ask.options.items()}


def _option(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: None if one == [] else _option(one) for name, one in value.items()}
    return tuple(value) if isinstance(value, list) else value


def judged(request: SiteRequest, reply: Reply, max_rows: int | None, known: Head | None) -> Any:
    """Return the result of a reply, or raise the reason for setting the site aside.

    `max_rows` is what the study file says of the site, `known` the last end of its ledger that was seen.
    """
    if not reply.answers(request) or reply.result is None:
        raise SetAsideError(NOT_AN_ANSWER)
    ask = request.ask
    of_one = ask.question == "ate"
    try:
        if of_one:
            answer = read_result(reply.result, "a site", measures=ask.measure != DIFFERENCE)
        else:
            answer = read_answer(reply.result, "a site")
    except CounterveilError as error:
        raise SetAsideError(OUT_OF_REACH if error.got == FAR_OUTSIDE else NO_RESULT) from None
    try:
        hold(_repeated(request, answer))
        rows = rows_of(answer) or 0
        hold([Within("rows", rows, 1, max_rows or MOST_ROWS, Breach.ROWS)])
        if of_one:
            answer = _judged_effect(request, answer, rows)
        else:
            _judge_table(request, answer, rows)
    except (UnreadableError, KeyError, ArithmeticError, ValueError):
        # Numbers so large or so small that nothing can be computed from them are nobody's.
        raise SetAsideError(OTHER_NOISE) from None
    _check_head(reply.head, known)
    return answer


def _repeated(request: SiteRequest, answer: Any) -> Iterable[Bound]:
    """Yield that an answer repeats what was asked, and says of itself what its method says; nothing is trusted."""
    ask = request.ask
    guarantee = answer.guarantee
    asked = site_question(ask)
    if ask.question == "ate":
        declared = DeclaredOutcome.of(request.declaration)
        measure = answer.measure if isinstance(answer, MeasureResult) else DIFFERENCE
        yield Equal("treatment", answer.treatment, declared.treatment, breach=Breach.QUESTION)
        yield Equal("outcome", answer.outcome, declared.outcome, breach=Breach.QUESTION)
        yield Equal("estimand", answer.estimand.value, ask.estimand, breach=Breach.QUESTION)
        yield Equal("measure", measure, ask.measure, breach=Breach.QUESTION)
    else:
        # The outcome is compared where the declaration is read.
        treatment = str(column_of(request.declaration.get("treatment")))
        yield Equal("treatment", answer.treatment, treatment, breach=Breach.QUESTION)
    yield Equal("level", answer.level, ask.level, breach=Breach.QUESTION)
    yield Equal("unit of protection", guarantee.unit.value, ask.protects, breach=Breach.PRIVACY)
    yield Equal("proof", guarantee.proof, Proof.FINITE_SAMPLE, breach=Breach.PRIVACY)
    budget = asked.budget
    promised = (guarantee.epsilon, guarantee.delta)
    yield Equal("epsilon and delta", promised, (budget.epsilon, budget.delta), breach=Breach.PRIVACY)
    yield Equal("cost", answer.spent, budget, breach=Breach.PRIVACY)
    yield from statements(asked, request.declaration, answer, columns=ask.question == "moments")


def _judged_effect(request: SiteRequest, result: Result, rows: int) -> Result:
    """Return a result whose released numbers fit: the means of both arms, or a difference.

    The limits of a number needed to treat are put back where its interval is not for the effect.
    """
    declared = DeclaredOutcome.of(request.declaration)
    asked = declared.asked(request.ask, rows)
    if not isinstance(result, MeasureResult):
        hold([Equal("limits", result.limits, declared.limits, breach=Breach.LIMITS)])
        hold(methods.difference(asked, released_difference(result)))
        return result
    of_means = request.ask.measure in OF_MEANS
    hold([Equal("whether means are released", result.means is not None, of_means, breach=Breach.KIND)])
    if result.means is not None:
        hold(methods.means(asked, result.means, result.details))
        return result
    plain = difference_result(result)
    limits = declared.limits if plain.interval_target is None else None
    hold([Equal("limits", plain.limits, limits, breach=Breach.LIMITS)])
    hold(methods.difference(asked, released_difference(plain)))
    return replace(result, numbers=replace(cast("Linear", result.numbers), limits=declared.limits))


def released_difference(result: Result) -> ReleasedDifference:
    """Return the figures of a difference that are judged."""
    return ReleasedDifference(
        estimate=result.estimate,
        error=result.uncertainty,
        details=result.details,
        level=result.level,
        conditional=result.condition is not None,
        independent_variance=result.independent_variance,
    )


def _judge_table(request: SiteRequest, answer: Any, rows: int) -> None:
    """Raise the reason for setting a site aside whose answer of several figures does not follow from the question."""
    ask = request.ask
    table = methods.ANSWERS[ask.question]
    hold([Equal("kind of answer", type(answer), table.kind, breach=Breach.KIND)])
    study = Study.from_dict(request.declaration)
    # Moments are of single columns; other answers are about all outcomes.
    outcome = study.outcome if ask.question == "moments" else study.outcome_name
    hold([Equal("outcome", answer.outcome, outcome, breach=Breach.QUESTION)])
    outcomes = {one.outcome: one.asked(ask, rows) for one in declared_outcomes(study)}
    asked = methods.AnswerQuestion(study=study, outcomes=outcomes, options=options_of(ask))
    hold(answer._site_bounds(_shape(ask, asked)))
    hold(table.bounds(asked, answer))


def _shape(ask: Ask, asked: methods.AnswerQuestion) -> PublicShape:
    """Return what the declaration and the question say of the answer before there is one."""
    study = asked.study
    whole = asked.first_outcome
    common: dict[str, Any] = {"rows": whole.rows, "measure": ask.measure, "estimand": ask.estimand}
    if ask.question == "arms":
        return PublicShape(**common, names=study.treatment_labels, ranges=(whole.ends,))
    if ask.question == "groups":
        layout = layout_of(study, asked.options.get("by", ()))
        public = whole.unit is not Unit.RECORD
        names = group_names(layout)
        return PublicShape(
            **common, names=names, ranges=(whole.limits,), by=layout.names, sizes_public=public
        )
    if ask.question == "outcomes":
        ranges = tuple(one.limits for one in asked.outcomes.values())
        return PublicShape(**common, names=tuple(asked.outcomes), ranges=ranges)
    if ask.question == "survival":
        event = study.event
        assert event is not None
        grids = {parts: event.cut(parts).edges for parts in CELL_PARTS}
        convention = ask.settings.get("censoring", "middle")
        return PublicShape(**common, grids=grids, causes=event.causes, convention=convention)
    columns = methods.columns_of(study, asked.options)
    formulas = tuple(asked.options.get("robust", ()))
    return PublicShape(**common, names=columns.names, columns=columns.groups, formulas=formulas)


def _check_head(head: Head | None, known: Head | None) -> None:
    """Check that a ledger did not get shorter, or other, since an earlier answer."""
    if head is None:
        raise SetAsideError(NO_HEAD)
    if known is not None and (head.seq < known.seq or (head.seq == known.seq and head.hash != known.hash)):
        raise SetAsideError(WENT_BACK)
