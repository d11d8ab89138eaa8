"""How a question is asked of simulated people, and what is kept of its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from counterveil.data import Study
from counterveil.errors import CounterveilError, refusal, shown
from counterveil.inference.measures import ODDS, RATIO
from counterveil.privacy import Budget, Estimand
from counterveil.questions import arms, ate, cate, event_study, groups, moments, outcomes, policy_value
from counterveil.questions.interim import planned
from counterveil.questions.plan.assumptions import out_of_range
from counterveil.questions.plan.simulated_study import People
from counterveil.questions.survival import survival
from counterveil.results.effect import Effect, Linear
from counterveil.results.event_study import EventStudyResult
from counterveil.results.formula import parse_formula
from counterveil.results.groups import PolicyValue
from counterveil.results.measure_words import DIFFERENCE, LIFT
from counterveil.results.outcomes import OutcomesResult
from counterveil.results.own_scale import OwnScale
from counterveil.results.ratio import RatioResult
from counterveil.results.regression import Coefficient
from counterveil.results.result import Released
from counterveil.results.survival import SurvivalResult
from counterveil.session import SeededNoise
from counterveil.statistics.moments.regression_columns import Columns

# What is asked, and which of the options each question takes.
_USUAL = ("method", "level", "mechanism", "settings")
_ASK: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "ate": (ate, (*_USUAL, "estimand", "measure")),
    "arms": (arms, _USUAL),
    "outcomes": (outcomes, (*_USUAL, "estimand", "measure", "importance")),
    "groups": (groups, (*_USUAL, "by")),
    "event_study": (event_study, (*_USUAL, "estimand")),
    "cate": (cate, ("method", "level", "settings")),
    "policy_value": (policy_value, ("method", "level", "settings", "policy")),
    "survival": (survival, _USUAL),
    "moments": (moments, ("level", "mechanism", "formula")),
    "compliance": (moments, ("level", "mechanism", "received")),
    "interim": (ate, (*_USUAL, "estimand", "spending")),
}
# What a question cannot be asked without.
_NEEDED = ("by", "policy", "formula", "received")
# Options that only some questions take, with what they are where nothing is said; others are None.
_SAID = {"method": "auto", "measure": DIFFERENCE, "spending": "obrien_fleming"}
_OWN = (*_SAID, *_NEEDED, "mechanism", "settings", "importance", "estimand")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one simulated study answered: half-widths, errors and intervals of all its effects."""

    halves: list[float]
    errors: list[float] | None  # None where the true effects are not known exactly
    covered: float | None
    found: float
    parts: list[tuple[float, float]]  # noise and total standard error
    method: str
    caution: str | None
    each: Mapping[str, float]  # half-widths by name, of effects in units of their own
    skewed: bool = False  # whether lengths of intervals have long tails, or none at all


Ask = Callable[[People, Budget, SeededNoise], Answer]


@dataclass(frozen=True, slots=True)
class Looks:
    """A question at planned looks: people as many as at one of them, or as at the last where they are others."""

    study: Study
    sizes: Sequence[int]
    words: Mapping[str, Any]
    estimand: Estimand
    last: bool = False

    def __call__(self, people: People, budget: Budget, noise: SeededNoise) -> Answer:
        """Return the answer at the look of so many people."""
        rows = len(people.outcome)
        number = len(self.sizes) - 1 if self.last else list(self.sizes).index(rows)
        sizes = [max(round(size * rows / self.sizes[number]), 1) for size in self.sizes]
        own = dict(self.words)
        spent: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta}
        looks = planned(
            self.study.outcome, sizes, **spent, level=own.pop("level"), spending=own.pop("spending")
        )
        this = looks.planned[number]
        spent = {"epsilon": this.budget.epsilon, "delta": this.budget.delta}
        answer = ate(people.frame, self.study, noise=noise, **spent, **own, level=float(1 - this.alpha))
        return _measured(answer, [people.effect(self.estimand)])


def check_options(question: object, given: Mapping[str, Any]) -> None:
    """Raise CV-P700 for a question that is none, and CV-P701 for options that it does not take or lacks."""
    if not isinstance(question, str) or question not in _ASK:
        raise out_of_range("question", f"one of {', '.join(map(repr, _ASK))}", question)
    taken = _ASK[question][1]
    for name in _OWN:
        value, usual = given[name], _SAID.get(name)
        # Arrays and frames are compared with nothing.
        unsaid = value is None if usual is None else isinstance(value, str) and value == usual
        if name not in taken and not unsaid:
            takers = [repr(each) for each, (_, options) in _ASK.items() if name in options]
            fitting, fix = (
                f"{name}= with question={' or '.join(takers)}",
                "leave it out, or plan that question",
            )
            raise _unfit(name, fitting, f"{name}={shown(value)} with question={question!r}", fix)
        if name in taken and name in _NEEDED and value is None:
            raise _unfit(name, f"{name}= with question={question!r}", "None", f"say {name}=")


def _unfit(name: str, expected: str, got: str, fix: str) -> CounterveilError:
    return refusal("CV-P701", name=name, expected=expected, got=got, fix=fix)


def asked(
    question: str, study: Study, given: Mapping[str, Any], estimand: Estimand, sizes: Sequence[int]
) -> tuple[Ask, Ask]:
    """Return what asks a question of simulated people, of planned and of searched sizes."""
    function, taken = _ASK[question]
    words = {name: value for name, value in given.items() if name in (*taken, "protects")}
    if question == "interim":
        return Looks(study, sizes, words, estimand), Looks(study, sizes, words, estimand, last=True)
    if question in ("moments", "compliance"):
        ask = _regression(study, words)
        return ask, ask

    def plain(people: People, budget: Budget, noise: SeededNoise) -> Answer:
        spent = {"epsilon": budget.epsilon, "delta": budget.delta}
        answer = function(people.frame, study, noise=noise, **spent, **words)
        return _measured(answer, _truths(answer, question, people, estimand, given["measure"]))

    return plain, plain


def _truths(
    answer: Released, question: str, people: People, estimand: Estimand, measure: str
) -> list[float] | None:
    """Return what is true of each effect of a table, None where that is not known."""
    if isinstance(answer, OutcomesResult):
        return [_true(people, estimand, measure, one.outcome) for one in answer.released]
    if isinstance(answer, EventStudyResult):
        after = people.effect(estimand)
        return [0.0] * len(answer.before) + [after] * len(answer.after)
    if question not in ("ate", "arms", "survival"):
        return None
    return [_true(people, estimand, measure)] * len(answer.table)


def _true(people: People, estimand: Estimand, measure: str, outcome: str | None = None) -> float:
    """Return the measure of mean outcomes with treatment and without."""
    difference = people.effect(estimand, outcome)
    if measure == DIFFERENCE:
        return difference
    one, other = people.means(estimand, outcome)
    if measure in (RATIO, LIFT):
        return (one / other if other else inf) - (measure == LIFT)
    if measure == ODDS:
        return one * (1 - other) / (other * (1 - one)) if other * (1 - one) else inf
    return 1 / difference if difference else inf


def _measured(answer: Released, truths: list[float] | None) -> Answer:
    """Return the figures of an answer; what the outcome's range cuts off an interval is not taken off its length."""
    units = isinstance(answer, OutcomesResult | SurvivalResult)
    effects = answer.table[:1] if units or isinstance(answer, PolicyValue) else answer.table
    ends = [effect.interval() for effect in effects]
    nulls = [effect.known.null if isinstance(effect.known, OwnScale) else 0.0 for effect in effects]
    known = truths if truths is None else truths[: len(effects)]
    covered = None
    if known is not None:
        covered = float(np.mean([_covers(*pair) for pair in zip(effects, known, strict=True)]))
    chosen = answer.details.get("chosen_by_auto")
    return Answer(
        halves=[_half(effect) for effect in effects],
        errors=None
        if known is None
        else [effect.estimate - truth for effect, truth in zip(effects, known, strict=True)],
        covered=covered,
        found=float(
            np.mean([not low <= null <= high for (low, high), null in zip(ends, nulls, strict=True)])
        ),
        parts=[(effect.std_error.noise, effect.std_error.total) for effect in effects],
        method=answer.method if chosen is None else str(chosen).partition(":")[0],
        caution=answer.caution,
        each={str(one.name): _half(one) for one in answer.table} if units else {},
        skewed=isinstance(answer, RatioResult) or any(isinstance(one.known, OwnScale) for one in effects),
    )


def _covers(effect: Effect, truth: float) -> bool:
    (low, high), known = effect.interval(), effect.known
    gap = known.gap(effect.level) if isinstance(known, OwnScale) else None
    return low <= truth <= high and (gap is None or not gap[0] < truth < gap[1])


def _half(effect: Effect) -> float:
    if isinstance(effect.known, Linear):
        return effect.known.uncertainty.half_width(effect.level)
    low, high = effect.interval()
    return (high - low) / 2


# Regressions from released moments: the coefficient of the treatment, or the effect on those who comply.


def _regression(study: Study, words: Mapping[str, Any]) -> Ask:
    """Return what asks for moments and regresses from them."""
    formula: Any = words.get("formula")
    received: Any = words.get("received")
    terms = {name: words[name] for name in ("protects", "level", "mechanism")}
    terms["outcomes"], terms["interactions"] = (
        ([received], []) if formula is None else _columns(study, formula)
    )

    def ask(people: People, budget: Budget, noise: SeededNoise) -> Answer:
        spent: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta}
        released = moments(people.frame, study, noise=noise, **spent, **terms)
        truth: float | None = people.effect(Estimand.ATE)
        if received is not None:
            controls = [name for name in study.covariates if name != received]
            found = [released.compliance(received, controls=controls).complier_effect]
        else:
            fit = released.regress(formula)
            found = [one for one in fit.coefficients if one.name == study.treatment]
            # Coefficients of covariates are not known, nor is that of a treatment whose effect varies with them.
            truth = None if not found or terms["interactions"] or fit.response != study.outcome else truth
            found = found or [one for one in fit.coefficients if one.name != "Intercept"]
        return _of_coefficients(found, truth, "compliance" if received is not None else "moments")

    return ask


def _columns(study: Study, formula: str) -> tuple[list[str], list[str]]:
    """Return columns that a formula explains beside the outcome, and its interactions; raises CV-P701 or CV-P783."""
    columns = Columns.of(study, (), ())
    pairs = [f"{one}:{other}" for one in columns.names for other in columns.names]
    found = parse_formula(formula, (*columns.names, *pairs), dict(columns.groups))
    if found.endogenous:
        raise _unfit("formula", "no instruments in it", shown(formula), "plan question='compliance' instead")
    explained = [] if found.response == study.outcome else [found.response]
    return explained, [name for name in found.regressors if ":" in name]


def _of_coefficients(found: Sequence[Coefficient], truth: float | None, method: str) -> Answer:
    ends = [one.interval for one in found]
    return Answer(
        halves=[(high - low) / 2 for low, high in ends],
        errors=None if truth is None else [one.estimate - truth for one in found],
        covered=None if truth is None else float(np.mean([low <= truth <= high for low, high in ends])),
        found=float(np.mean([not low <= 0 <= high for low, high in ends])),
        parts=[(one.std_error.noise, one.std_error.total) for one in found],
        method=method,
        caution=None,
        each={},
        skewed=True,
    )
