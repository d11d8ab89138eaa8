"""Whether a site's answer fits the question: everything that follows from the question is recomputed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isclose, sqrt
from typing import Any

from counterveil.bounded_reading import Fields, UnreadableError
from counterveil.errors import CounterveilError, ParameterError
from counterveil.federation.files import wrong_setting
from counterveil.federation.messages import Ask, Head, Reply, Request
from counterveil.inference import NoiseDistribution, half_width, rare_events
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget, Proof, Unit, exact
from counterveil.questions.pooled.reading import FAR_OUTSIDE, read_result, rows_of
from counterveil.results.effect import noise_from_dict, uncertainty_to_dict
from counterveil.results.result import Result
from counterveil.statistics.linear.sensitivity import DifferenceInMeans

# What a declaration and a question allow an answer to be: computed by the coordinator, never read off a reply.


_WHAT = "the declaration"
# Weights of an arm add up to one, so some outcome has a weight of 2/n or more where only outcomes are private. Where
# records are, estimates may be released in parts: half the width over n is below what any of them adds.
_LEAST_STEPS = {Unit.OUTCOME: Fraction(2), Unit.RECORD: Fraction(1, 2)}


@dataclass(frozen=True, slots=True)
class Declared:
    """The public facts that an answer must repeat, and the range it must lie in."""

    treatment: str
    outcome: str
    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, declaration: Mapping[str, Any]) -> Declared:
        """Return them from a declaration, or raise CV-P600."""
        made = [name for name in ("before", "per") if name in declaration]
        if made:
            raise wrong_setting(_WHAT, "an outcome that sites have as one column", made[0])
        names = [declaration.get(name) for name in ("treatment", "outcome")]
        ends = declaration.get("outcome_range")
        try:
            low, high = (exact(end, "outcome_range") for end in ends)  # type: ignore[union-attr]
        except (TypeError, ValueError, ParameterError):
            raise wrong_setting(_WHAT, "outcome_range = [lowest, highest]", "something else") from None
        if not all(isinstance(name, str) for name in names) or not low < high:
            raise wrong_setting(_WHAT, "treatment, outcome, and a range from low to high", "something else")
        if "cluster" in declaration:
            wanted = "a declaration without clusters: pooling would lose their degrees of freedom"
            raise wrong_setting(_WHAT, wanted, "[cluster]")
        return cls(str(names[0]), str(names[1]), low, high)

    @property
    def width(self) -> Fraction:
        """Width of the outcome's range: no effect is larger."""
        return self.high - self.low

    @property
    def limits(self) -> tuple[float, float]:
        """What an effect can be at all."""
        return -float(self.width), float(self.width)

    def least_noise(self, ask: Ask, rows: int) -> float:
        """Return the variance of the least noise that an effect of so many rows can have at the budget asked for."""
        width = _residual_width(ask, self.width)
        sensitivity = _LEAST_STEPS[Unit(ask.protects)] * width / rows
        facts = {
            "mechanism": "staircase",
            "sensitivity": str(sensitivity),
            "epsilon": str(budget_of(ask).epsilon),
        }
        return float(noise_from_dict(facts).variance)


def budget_of(ask: Ask) -> Budget:
    """Return the budget that a question asks for."""
    return Budget(ask.epsilon, ask.delta)


def most_mu(ask: Ask) -> Fraction | None:
    """Return the largest mu of Gaussian noise at the budget asked for, None where delta is zero."""
    budget = budget_of(ask)
    return None if budget.pure else mu_of(budget.epsilon, budget.delta)


def _residual_width(ask: Ask, width: Fraction) -> Fraction:
    """Return the width of what is averaged: that of the residuals where a prediction is subtracted."""
    bounds = ask.settings.get("residual_range")
    if isinstance(bounds, list | tuple) and len(bounds) == 2:
        try:
            low, high = (exact(bound, "residual_range") for bound in bounds)
        except CounterveilError:
            return width
        if low < high:
            return min(width, high - low)
    return width


# An honest answer lies beyond its reach once in a thousand million studies.
_NEVER = 1e-9
_FEWEST_IN_ARM, _MOST_ROWS = 2, 10**12
# Released sampling variances are rounded to a grid, and a mu is a fraction below the exact one.
_SLACK = 1 + 1e-9

NOT_AN_ANSWER = "it is not an answer to this request"
NO_RESULT = "it is not a result with a single effect, or a number is out of range"
OTHER_QUESTION = "it has a different treatment, outcome, estimand or confidence level"
OTHER_PRIVACY = "its guarantee or its cost is not the one requested"
OTHER_LIMITS = "its bounds are not those of the declared outcome"
OUT_OF_REACH = "its estimate lies beyond what the declared outcome and its noise allow"
OTHER_NOISE = "its noise distribution or its variance does not follow from the question"
TOO_MANY_ROWS = "it claims more rows than the site is known to have, or none"
NO_HEAD = "it does not say where the site's ledger ends"
WENT_BACK = "the site's ledger was rolled back: it ends before an entry that an earlier answer named"
COPY = "it is a copy of another site's answer"


class SetAsideError(Exception):
    """Carries the reason for which an answer is not pooled; the text is ours."""


def judged(request: Request, reply: Reply, most_rows: int | None, known: Head | None) -> Result:
    """Return the result of a reply, or raise the reason for setting the site aside.

    `most_rows` is what the study file says of the site, `known` the last end of its ledger that was seen.
    """
    if not reply.answers(request) or reply.result is None:
        raise SetAsideError(NOT_AN_ANSWER)
    try:
        result = read_result(reply.result, "a site")
    except CounterveilError as error:
        raise SetAsideError(OUT_OF_REACH if error.got == FAR_OUTSIDE else NO_RESULT) from None
    declared = Declared.of(request.declaration)
    _check_question(request, declared, result)
    _check_rows(result, most_rows)
    try:
        _check_noise(request, declared, result)
    except (UnreadableError, KeyError):
        raise SetAsideError(OTHER_NOISE) from None
    _check_reach(declared, result)
    _check_head(reply.head, known)
    return result


def _check_question(request: Request, declared: Declared, result: Result) -> None:
    """Compare what an answer repeats of its question; nothing in it is trusted."""
    ask, budget, guarantee = request.ask, budget_of(request.ask), result.guarantee
    said = (result.treatment, result.outcome, result.estimand.value)
    if said != (declared.treatment, declared.outcome, ask.estimand) or result.level != ask.level:
        raise SetAsideError(OTHER_QUESTION)
    kept = guarantee.unit.value == ask.protects and guarantee.proof is Proof.FINITE_SAMPLE
    if (
        not kept
        or (guarantee.epsilon, guarantee.delta) != (budget.epsilon, budget.delta)
        or result.spent != budget
    ):
        raise SetAsideError(OTHER_PRIVACY)
    if result.limits != declared.limits:
        raise SetAsideError(OTHER_LIMITS)


def _check_rows(result: Result, most_rows: int | None) -> None:
    rows = rows_of(result)
    if rows is None or rows > (_MOST_ROWS if most_rows is None else most_rows):
        raise SetAsideError(TOO_MANY_ROWS)


def _check_noise(request: Request, declared: Declared, result: Result) -> None:
    """Check that the noise is not less than the budget asked for buys, and recompute it where that is possible."""
    ask, document = request.ask, uncertainty_to_dict(result.uncertainty)
    epsilon, mu = budget_of(ask).epsilon, most_mu(ask)
    for mechanism in (document["noise"], document["variance_noise"]):
        facts: Any = mechanism or {}
        if "epsilon" in facts and Fields("mechanism", facts).rational("epsilon", 0, 1e9) > epsilon:
            raise SetAsideError(OTHER_NOISE)
        if "mu" in facts and (mu is None or Fields("mechanism", facts).rational("mu", 0, 1e9) > mu * _SLACK):
            raise SetAsideError(OTHER_NOISE)
    if result.uncertainty.bias > 2 * float(declared.width):
        raise SetAsideError(OTHER_NOISE)
    if (ask.method, Unit(ask.protects)) == ("difference_in_means", Unit.OUTCOME):
        _check_difference(declared, result, document)


def _check_difference(declared: Declared, result: Result, document: dict[str, Any]) -> None:
    """Check a difference in means: arms give the sensitivities, and these the noise and the largest variance."""
    counts = Fields("details", result.details)
    treated, control = (counts.whole(arm, _FEWEST_IN_ARM, _MOST_ROWS) for arm in ("treated", "control"))
    wanted = DifferenceInMeans(declared.width, treated, control)
    noise, apart = Fields("mechanism", document["noise"] or {}), document["variance_noise"]
    rare = rare_events((declared.low, declared.high), (treated, control))
    sound = (
        treated + control == rows_of(result)
        and noise.rational("sensitivity", 0, 1e60) == wanted.estimate
        and isclose(result.uncertainty.variance_cap, float(wanted.variance_cap) + rare, rel_tol=1e-12)
        and result.uncertainty.extra_at(_NEVER) == result.uncertainty.bias == 0
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
    sampling = sqrt(min(known.variance_cap, width**2) + known.extra_at(_NEVER))
    reach = width + known.bias + half_width(sampling, None, _NEVER) + _farthest(known.noise)
    if not abs(result.estimate) <= reach:
        raise SetAsideError(OUT_OF_REACH)
    beyond = _farthest(known.variance_noise)
    slack = 1e-9 * known.variance_cap
    if not -beyond - slack <= known.variance <= known.variance_cap + beyond + slack:
        raise SetAsideError(OTHER_NOISE)


def _farthest(noise: NoiseDistribution | None) -> float:
    """Return how far a noise goes, once in a thousand million studies apart."""
    return 0.0 if noise is None else half_width(0.0, noise, _NEVER)


def _check_head(head: Head | None, known: Head | None) -> None:
    """Check that a ledger did not get shorter, or other, since an earlier answer."""
    if head is None:
        raise SetAsideError(NO_HEAD)
    if known is not None and (head.seq < known.seq or (head.seq == known.seq and head.hash != known.hash)):
        raise SetAsideError(WENT_BACK)
