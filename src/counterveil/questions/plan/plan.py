"""What a plan found: how long intervals would be, at every epsilon and size that was tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import ceil, exp, inf, isfinite, log, log10, sqrt
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import ndtri

from counterveil.data import Study, check_study
from counterveil.data.follow_up import refuse_censored
from counterveil.errors import BudgetError, CounterveilError, ParameterError, StudyError, refusal, shown
from counterveil.estimators.moments.regression_columns import columns_of
from counterveil.inference.estimates import OwnScale
from counterveil.inference.quotient import DIFFERENCE, LIFT, NEEDED, ODDS, RATIO
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget, Estimand, Number, Unit
from counterveil.privacy.caveats import Fact
from counterveil.questions.asking import Arguments, ask_once, refuses_unknown
from counterveil.questions.ate import AUTO, METHODS, ate
from counterveil.questions.choices import (
    AteMethod,
    EstimandName,
    Mechanism,
    PlannedQuestion,
    Protects,
)
from counterveil.questions.interim import planned
from counterveil.questions.moments import moments
from counterveil.questions.plan.assumptions import Assumptions, Decision, out_of_range
from counterveil.questions.plan.people import (
    FEWEST_ROWS,
    SEEDS,
    AssumedPeople,
    People,
    PublicSample,
    assumed_of,
    at_the_horizon,
    censoring_rate,
    check_numbers,
    people_of_question,
    plain_half_width,
)
from counterveil.questions.session import QUESTIONS
from counterveil.report import Cells, Picture, Section, View, plan_plot
from counterveil.report.caveats import assumed_words
from counterveil.report.text import percent, rounded
from counterveil.results.arms import EventStudyResult, OutcomesResult
from counterveil.results.decisions import Decided, margin_bounds
from counterveil.results.effect import Effect, Linear, check_level, read, write
from counterveil.results.groups import PolicyValue
from counterveil.results.measures import Measure, check_measure
from counterveil.results.question import default_estimand, refuse_clusters, refuse_shape
from counterveil.results.regression import Coefficient, parse_formula
from counterveil.results.released import ReleasedAnswer
from counterveil.results.shown import Shown
from counterveil.results.survival import QuantilesResult, SurvivalResult
from counterveil.session import SeededNoise

# What is asked; a question takes the options that are fields of its arguments, and those of a plan's own.
_ASK: dict[str, type[Arguments[Any]]] = {
    **{name: kind for name, kind in QUESTIONS.items() if name not in ("targeting_curve", "overlap")},
    "compliance": QUESTIONS["moments"],
    "interim": QUESTIONS["ate"],
}
_MORE = {"moments": "formula", "compliance": "received", "interim": "spending"}
# What a question cannot be asked without.
_NEEDED = ("by", "policy", "formula", "received")
# Options that only some questions take, with what they are where nothing is said; others are None.
_SAID = {"method": "auto", "measure": DIFFERENCE, "spending": "obrien_fleming", "grid": "found"}
# What `options` may name: what one question alone takes.
_QUESTION_OPTIONS = (*_NEEDED, "spending", "grid", "importance")
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
    warning: str | None
    each: Mapping[str, float]  # half-widths by name, of effects in units of their own
    assumptions: Fact | None = None
    not_covered: tuple[Fact, ...] = ()


Ask = Callable[[People, Budget, SeededNoise], Answer]


@dataclass(frozen=True, slots=True)
class PlannedDecision:
    """A test against a margin that fits the measure."""

    kind: str
    margin: tuple[float, ...]  # none, one or two
    higher_is_better: bool = True

    @classmethod
    def of(cls, decision: Decision, null: float) -> PlannedDecision:
        """Return the test, or raise CV-P796; `null` is no effect."""
        margin_bounds(decision.kind, decision.margin, decision.higher_is_better, null)
        margin = decision.margin
        margins = () if margin is None else margin if isinstance(margin, list | tuple) else (margin,)
        return cls(decision.kind, tuple(map(float, margins)), bool(decision.higher_is_better))

    @property
    def _margin(self) -> float | tuple[float, ...] | None:
        return self.margin if len(self.margin) == 2 else next(iter(self.margin), None)

    def met(self, effect: Decided) -> bool:
        """Return whether an effect is shown to be beyond the margin."""
        test = effect.test(self.kind, margin=self._margin, higher_is_better=self.higher_is_better)
        return test.met

    def half_width(self, effect: float, power: float, level: float) -> float:
        """Return the half-width with which a difference of this size is shown with a power; refused where it is not."""
        low, high = margin_bounds(self.kind, self._margin, self.higher_is_better, 0.0)
        distance = min(effect - low, high - effect)
        if not distance > 0:
            raise out_of_range("margin", "an assumed effect that the test can show", self.margin)
        # Of two bounds each is missed in half of the cases.
        wanted = power if inf in (-low, high) else (1 + power) / 2
        half = distance / float(1 + ndtri(wanted) / ndtri((1 + level) / 2))
        return float(f"{half:.4g}")


@dataclass(frozen=True, slots=True)
class Looks:
    """A question at planned looks: people as many as at one of them, or as at the last where they are others."""

    study: Study
    sizes: Sequence[int]
    words: Mapping[str, Any]
    estimand: Estimand
    last: bool = False
    decision: PlannedDecision | None = None

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
        return _measured(answer, [people.effect(self.estimand)], self.decision)


def check_options(question: object, given: Mapping[str, Any]) -> None:
    """Raise CV-P700 for a question that is none, and CV-P701 for options that it does not take or lacks."""
    if not isinstance(question, str) or question not in _ASK:
        raise out_of_range("question", f"one of {', '.join(map(repr, _ASK))}", question)
    taken = _taken(question)
    for name in _OWN:
        value, usual = given[name], _SAID.get(name)
        # Arrays and frames are compared with nothing.
        unsaid = value is None if usual is None else isinstance(value, str) and value == usual
        if name not in taken and not unsaid:
            takers = [repr(each) for each in _ASK if name in _taken(each)]
            fitting = f"{_said_as(name)} with question={' or '.join(takers)}"
            fix = "leave it out, or plan that question"
            raise _unfit(name, fitting, f"{name}={shown(value)} with question={question!r}", fix)
        if name in taken and name in _NEEDED and value is None:
            raise _unfit(
                name, f"{_said_as(name)} with question={question!r}", "None", f"say {_said_as(name)}"
            )


def _said_as(name: str) -> str:
    """Return how an option is written in a call of `plan`."""
    return f"options={{{shown(name)}: ...}}" if name in _QUESTION_OPTIONS else f"{name}="


def _taken(question: str) -> set[str]:
    """Return the options that a question takes."""
    found = {each.name for each in fields(_ASK[question])} | {_MORE.get(question, "protects")}
    # Looks are at differences.
    return found - {"measure"} if question == "interim" else found


def _unfit(name: str, expected: str, got: str, fix: str) -> CounterveilError:
    return refusal("CV-P701", name=name, expected=expected, got=got, fix=fix)


def asked(
    question: str, study: Study, given: Mapping[str, Any], estimand: Estimand, sizes: Sequence[int]
) -> tuple[Ask, Ask]:
    """Return what asks a question of simulated people, of planned and of searched sizes."""
    kind, taken = _ASK[question], _taken(question)
    words = {name: value for name, value in given.items() if name in taken}
    decision = given["decision"]
    if question == "interim":
        looks = Looks(study, sizes, words, estimand, decision=decision)
        return looks, replace(looks, last=True)
    if question in ("moments", "compliance"):
        ask = _regression(study, words, decision)
        return ask, ask

    def plain(people: People, budget: Budget, noise: SeededNoise) -> Answer:
        arguments = kind(epsilon=budget.epsilon, delta=budget.delta, noise=noise, **words)
        answer = ask_once(arguments, people.frame, study)
        truths = _truths(answer, question, people, estimand, given["measure"])
        return _measured(answer, truths, decision)

    return plain, plain


def _truths(
    answer: ReleasedAnswer, question: str, people: People, estimand: Estimand, measure: str
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


def _measured(
    answer: ReleasedAnswer, truths: list[float] | None, decision: PlannedDecision | None = None
) -> Answer:
    """Return the figures of an answer; what the outcome's range cuts off an interval is not taken off its length."""
    units = isinstance(answer, OutcomesResult | SurvivalResult)
    named = units or isinstance(answer, QuantilesResult)
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
        found=float(np.mean([decision.met(effect) for effect in effects]))
        if decision
        else float(np.mean([not low <= null <= high for (low, high), null in zip(ends, nulls, strict=True)])),
        parts=[(effect.std_error.noise, effect.std_error.total) for effect in effects],
        method=answer.method if chosen is None else str(chosen).partition(":")[0],
        warning=answer.warning,
        each={str(one.name): _half(one) for one in answer.table} if named else {},
        assumptions=answer.assumptions,
        not_covered=answer.not_covered,
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


def _regression(study: Study, words: Mapping[str, Any], decision: PlannedDecision | None = None) -> Ask:
    """Return what asks for moments and regresses from them."""
    formula: Any = words.get("formula")
    received: Any = words.get("received")
    terms = {name: words[name] for name in ("protects", "level", "mechanism")}
    terms["outcomes"], terms["terms"] = ([received], []) if formula is None else _columns(study, formula)

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
            truth = None if not found or terms["terms"] or fit.response != study.outcome else truth
            found = found or [one for one in fit.coefficients if one.name != "Intercept"]
        said = "compliance" if received is not None else "moments"
        answer = _of_coefficients(found, truth, said)
        if decision is None:
            return answer
        return replace(answer, found=float(np.mean([decision.met(one) for one in found])))

    return ask


def _columns(study: Study, formula: str) -> tuple[list[str], list[str]]:
    """Return columns that a formula explains beside the outcome, and its interactions; raises CV-P701 or CV-P783."""
    columns = columns_of(study, (), ())
    names = (*columns.names, *(f"log({name})" for name in columns.names))
    pairs = [f"{one}:{other}" for one in names for other in names]
    found = parse_formula(formula, (*names, *pairs), dict(columns.groups))
    if found.endogenous:
        raise _unfit("formula", "no instruments in it", shown(formula), "plan question='compliance' instead")
    own = (*found.regressors, *found.absorbed, found.response)
    explained = [name for name in (found.response,) if name in study.covariates]
    return explained, [name for name in own if ":" in name or name.startswith("log(")]


def _of_coefficients(found: Sequence[Coefficient], truth: float | None, method: str) -> Answer:
    ends = [one.interval() for one in found]
    return Answer(
        halves=[(high - low) / 2 for low, high in ends],
        errors=None if truth is None else [one.estimate - truth for one in found],
        covered=None if truth is None else float(np.mean([low <= truth <= high for low, high in ends])),
        found=float(np.mean([not low <= 0 <= high for low, high in ends])),
        parts=[(one.std_error.noise, one.std_error.total) for one in found],
        method=method,
        warning=None,
        each={},
    )


# The usual aim of those who plan trials.
POWER = 0.8


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """The answers to one question at one budget and size, over all simulated studies.

    Attributes
    ----------
    budget : Budget
        What the question would spend.
    rows : int
        Number of people.
    protects : Unit
        What would be private.
    studies : int
        How many simulated studies were asked.
    method : str or None
        The estimator, after "auto" has chosen.
    half_width : float or None
        Half length of the intervals: the mean over effects and the median over studies. None where refused.
    noise : float or None
        Share of the squared standard error that is privacy noise.
    error : float or None
        Root mean squared error; None where true effects are not known.
    covered : float or None
        Number of studies whose interval covers the true effect; of several effects, parts of studies.
    found : float or None
        Number of studies whose interval excludes no effect, or in which the decision is met.
    unbounded : float
        Number of studies whose interval has no end.
    each : dict of str to float
        Half-widths by name where effects are in units of their own; the other figures are then those of the
        first.
    level : float or None
        Confidence level of the interval, where it is not that of the plan (looks).
    warning : str or None
        What a result would say first.
    refusal : str or None
        Code and problem, where the question would be refused; all figures are then None.
    chosen : bool
        Whether "auto" takes this method, in a plan of all of them.
    assumptions : Fact or None
        What a result would say it assumes.
    not_covered : tuple of Fact
        What the interval of a result would not cover.
    """

    _SHOWN: ClassVar[tuple[str, ...]] = ("epsilon", "delta", "detectable")

    budget: Budget
    rows: int
    protects: Unit
    studies: int = 0
    method: str | None = None
    half_width: float | None = None
    noise: float | None = None
    error: float | None = None
    covered: float | None = None
    found: float | None = None
    unbounded: float = 0.0
    each: dict[str, float] = field(default_factory=dict)
    level: float | None = None
    warning: str | None = None
    refusal: str | None = None
    chosen: bool = False
    assumptions: Fact | None = None
    not_covered: tuple[Fact, ...] = ()

    def detectable(self, level: float, power: float = POWER) -> float | None:
        """Return the smallest effect that an interval would tell from none.

        Parameters
        ----------
        level : float
            Confidence level of the interval, where the answer has none of its own.
        power : float, default 0.8
            In how many studies it is to be told, in (0, 1).

        Returns
        -------
        float or None
            The effect, in units of the outcome; None where the half-width is not known.
        """
        if self.half_width is None or not isfinite(self.half_width):
            return None
        return self.half_width * float(1 + ndtri(power) / ndtri((1 + (self.level or level)) / 2))


Progress = Callable[[int, int], None]
Draw = Callable[[int, np.random.Generator], People]
# Where the least epsilon and the least number of people are looked for, with how many studies and how closely.
_LEAST_EPSILON, _MOST_EPSILON, _MOST_SEARCHED = 0.01, 50.0, 200_000
SEARCH_DRAWS, _CLOSE = 5, 0.04
# What all methods are called. Each is asked until quartiles of half-widths, over the root of the number of studies, are
# apart by this part of the median; those of few are too near each other, as if there were fewer studies by so many.
ALL, _APART, _TOO_NEAR = "all", 0.1, 1.65
Refused = ParameterError | BudgetError | StudyError


@dataclass(slots=True)
class Trial:
    """One question at one budget and size, and what was answered so far.

    In a plan of all methods, `method` is the one that is asked, `auto` the trial that chooses at the same level: what
    that takes is not asked twice.
    """

    ask: Ask
    budget: Budget
    rows: int
    protects: Unit
    level: float | None = None  # of its own intervals, where they have one
    method: str | None = None
    auto: Trial | None = None
    answers: list[Answer] = field(default_factory=list)
    refusal: Refused | None = None

    def run(self, people: People, noise: SeededNoise) -> None:
        """Ask about one simulated study; a refusal depends on parameters alone, so the next would get it too."""
        if self.done:
            return
        try:
            self.answers.append(self.ask(people, self.budget, noise))
        except (ParameterError, BudgetError, StudyError) as error:
            self.refusal = error

    @property
    def done(self) -> bool:
        """Whether another study would tell nothing: it is refused, `auto` asks it, or its length is known well."""
        if self.refusal is not None or self.repeats_auto:
            return True
        if self.method is None or (count := len(self.answers)) < 2:
            return False
        low, middle, high = np.quantile([one.halves[0] for one in self.answers], (0.25, 0.5, 0.75))
        return bool((high - low) * sqrt(count) <= _APART * (count - _TOO_NEAR) * middle)

    @property
    def repeats_auto(self) -> bool:
        """Whether this is the method that `auto` takes."""
        return self.auto is not None and any(one.method == self.method for one in self.auto.answers)

    @property
    def half(self) -> float:
        """Median half length over studies, of the mean over effects; infinite where the question is refused."""
        if self.refusal is not None:
            return inf
        # Lengths have long tails, or no end.
        return float(np.median([np.mean(one.halves) for one in self.answers]))

    def answer(self) -> PlannedAnswer:
        """Return the figures over all studies."""
        if self.refusal is not None:
            problem = f"{self.refusal.code}: {self.refusal.problem}"
            return PlannedAnswer(
                self.budget, self.rows, self.protects, method=self.method, level=self.level, refusal=problem
            )
        known = [one for one in self.answers if one.errors is not None and one.covered is not None]
        errors = np.array([one.errors for one in known], dtype=np.float64)
        chosen, first = self.method == AUTO, self.answers[0]
        return PlannedAnswer(
            self.budget,
            self.rows,
            self.protects,
            len(self.answers),
            level=self.level,
            method=first.method if chosen or self.method is None else self.method,
            half_width=self.half,
            noise=_noise(np.array([part for one in self.answers for part in one.parts])),
            error=sqrt(float(np.mean(errors**2))) if known and np.isfinite(errors).all() else None,
            covered=sum(float(one.covered or 0.0) for one in known) if known else None,
            found=sum(one.found for one in self.answers),
            unbounded=sum(float(np.mean(np.isinf(one.halves))) for one in self.answers),
            each=self._each(),
            warning=first.warning,
            chosen=chosen,
            assumptions=first.assumptions,
            not_covered=first.not_covered,
        )

    def _each(self) -> dict[str, float]:
        """Return half-widths of effects in units of their own, as `half` is over studies."""
        first = self.answers[0]
        return {name: float(np.median([one.each[name] for one in self.answers])) for name in first.each}


def _noise(parts: Floats) -> float:
    """Return the share of the squared standard error that is noise, over errors that are finite."""
    finite = np.isfinite(parts).all(axis=-1)
    noise, total = parts[finite][:, 0], parts[finite][:, 1]
    return float(np.sum(noise**2) / np.sum(total**2)) if np.any(total > 0) else 1.0


def run(
    cells: list[Trial],
    draw: Draw,
    draws: int,
    seed: int,
    progress: Progress | None,
    plain: Callable[[People, SeededNoise], float],
    rows: int,
) -> float:
    """Ask every cell about every simulated study; return the mean of `plain` over those of `rows` people."""
    found: list[float] = []
    sizes = list(dict.fromkeys(cell.rows for cell in cells))
    for number in range(draws):
        for size in sizes:
            generator = np.random.default_rng([seed, number, *([size] if size != sizes[0] else [])])
            people = draw(size, generator)
            for cell in cells:
                if cell.rows == size:
                    cell.run(people, SeededNoise(int(generator.integers(SEEDS))))
            if size == rows:
                found.append(plain(people, SeededNoise(number)))
        refused = [cell.refusal for cell in cells if cell.refusal is not None]
        if len(refused) == len(cells):
            raise refused[0]
        if progress is not None:
            progress(number + 1, draws)
        if all(cell.done for cell in cells):
            break
    return float(np.mean(found) if all(map(isfinite, found)) else np.median(found))


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched, and with how many simulated studies."""

    ask: Ask
    draw: Draw
    seed: int
    draws: int
    budgets: list[Budget]
    wanted: float | None

    def epsilon(self, rows: int) -> float | None:
        """Return the least epsilon at this size, None where none up to a large one is enough, or nothing is wanted."""
        if self.wanted is None:
            return None
        delta = self.budgets[0].delta

        def half(size: float) -> float:
            return self._half(rows, Budget(_rounded(exp(size)), delta))

        found = self._least(half, log(_LEAST_EPSILON), log(_MOST_EPSILON))
        return None if found is None else _rounded(exp(found))

    def rows(self, start: int) -> tuple[tuple[float, int | None], ...]:
        """Return for every epsilon the least number of people, None where no searched number is enough."""
        if self.wanted is None:
            return ()
        delta = self.budgets[0].delta
        # Of more people than that the delta is refused.
        most = min(max(_MOST_SEARCHED, start), ceil(1 / delta) - 1 if delta else inf)
        return tuple((float(budget.epsilon), self._rows(budget, most)) for budget in self.budgets)

    def _rows(self, budget: Budget, most: float) -> int | None:
        def half(size: float) -> float:
            return self._half(round(exp(size)), budget)

        # From few people on upwards: large studies are simulated only where they are needed.
        low = high = log(2 * FEWEST_ROWS)
        while half(high) > (self.wanted or 0.0):
            if high >= log(most):
                return None
            low, high = high, min(high + log(4), log(most))
        found = self._least(half, low, high)
        return None if found is None else ceil(exp(found))

    def _least(self, half: Callable[[float], float], low: float, high: float) -> float | None:
        """Return the least size that is enough, to a few percent; None where the largest is not."""
        wanted = self.wanted or 0.0
        if half(high) > wanted:
            return None
        if half(low) <= wanted:
            return low
        while high - low > _CLOSE:
            middle = (low + high) / 2
            low, high = (low, middle) if half(middle) <= wanted else (middle, high)
        return high

    def _half(self, rows: int, budget: Budget) -> float:
        trial = Trial(self.ask, budget, rows, Unit.RECORD)
        for number, generator in self._generators():
            if trial.refusal is None:
                trial.run(self.draw(rows, generator), SeededNoise(self.seed + number))
        return trial.half

    def _generators(self) -> Iterator[tuple[int, np.random.Generator]]:
        for number in range(self.draws):
            yield number, np.random.default_rng([self.seed, number])


def _rounded(value: float) -> float:
    """Return a number with two digits, rounded up."""
    step = 10.0 ** (int(np.floor(log10(value))) - 1)
    return round(ceil(value / step - 1e-9) * step, 10)


_TOLD = 6  # epsilons in a paragraph
_METHOD = 22  # letters of a method in the table
# Values of no effect that are not zero.
_NO_EFFECT = {RATIO: 1.0, ODDS: 1.0, NEEDED: inf}
_NULLS = {RATIO: "a ratio of 1", ODDS: "an odds ratio of 1"}


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Shown):
    """How long intervals would be, on simulated data; no row was read and nothing was spent.

    Attributes
    ----------
    question : str
        What would be asked.
    treatment, outcome : str
        Columns of the treatment and of the outcome.
    estimand : Estimand
        Whose average effect.
    protects : Unit or None
        What would be private; None where levels are compared.
    rows : int
        Number of people: the first that was tried, or that of the last look.
    draws : int
        Number of simulated studies.
    level : float
        Confidence level of the intervals.
    assumed : AssumedPeople
        What people were made from, with all defaults filled in.
    without_privacy : float
        Half-width that so many people would give without privacy: by least squares, or (where
        `by_least_squares` is False) by the question itself with hardly any noise.
    answers : tuple of PlannedAnswer
        One answer for every size and epsilon, and of a plan of all methods for every method.
    wanted : float or None
        The half-width that was searched.
    min_epsilon : float or None
        The least epsilon for it with `rows` people; None where none that was tried is enough.
    min_rows : tuple of (float, int or None)
        The least number of people for each epsilon.
    measure : str
        Scale of the effect.
    decision : PlannedDecision or None
        The test whose power is shown.
    by_least_squares : bool
        What `without_privacy` is the half-width of.
    public : dict of str to tuple of str
        In a plan of all methods, what every level leaves public.
    """

    _PLOT: ClassVar[str] = "plan"
    question: str
    treatment: str
    outcome: str
    estimand: Estimand
    protects: Unit | None
    rows: int
    draws: int
    level: float
    assumed: AssumedPeople
    without_privacy: float
    answers: tuple[PlannedAnswer, ...]
    wanted: float | None = None
    min_epsilon: float | None = None
    min_rows: tuple[tuple[float, int | None], ...] = ()
    measure: str = DIFFERENCE
    decision: PlannedDecision | None = None
    by_least_squares: bool = True
    public: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def smallest(self, half_width: float) -> PlannedAnswer | None:
        """Return the answer of least epsilon whose interval is short enough.

        Parameters
        ----------
        half_width : float
            The longest half-width, on the scale of the effect.

        Returns
        -------
        PlannedAnswer or None
            The answer; None where no interval is so short.
        """
        enough = [one for one in self.answers if one.half_width is not None and one.half_width <= half_width]
        return min(enough, key=lambda one: one.budget.epsilon, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `from_dict` reads them back.

        Returns
        -------
        dict
            The attributes by name; ``answers`` has a dictionary for each size and epsilon, with its budget and
            the smallest effect that the interval tells from none.
        """
        found = write(self)
        rows = zip(found["answers"], self.answers, strict=True)
        return found | {"answers": [facts | self._facts(one) for facts, one in rows]}

    def _facts(self, one: PlannedAnswer) -> dict[str, Any]:
        budget = {"epsilon": float(one.budget.epsilon), "delta": float(one.budget.delta)}
        return budget | {"detectable": self._detectable(one)}

    @property
    def points(self) -> list[dict[str, Any]]:
        """The figures that are drawn: epsilon, line, half-width and share of noise, where an interval has ends."""
        return [
            {
                "epsilon": float(one.budget.epsilon),
                "line": f"{one.rows:,} people" + f", {one.protects.value}: {one.method}" * bool(self.public),
                "half_width": one.half_width,
                "noise": one.noise,
            }
            for one in self.answers
            if one.half_width is not None and isfinite(one.half_width)
        ]

    def _detectable(self, one: PlannedAnswer) -> float | None:
        # An interval of a ratio is not as long on either side, nor everywhere alike.
        return one.detectable(self.level) if self.measure == DIFFERENCE else None

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Plan:
        """Return the plan that `to_dict` wrote.

        Parameters
        ----------
        facts : dict
            What `to_dict` returned, also after a round trip through JSON.

        Returns
        -------
        Plan
            The plan.

        Raises
        ------
        CounterveilError
            Facts of another kind or version (CV-P661).
        """
        return read(cls, facts)

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each size and epsilon: what intervals would be over all simulated studies."""
        return [
            {
                "term": self.treatment,
                "estimand": self.estimand.value,
                "level": self._level(one),
                "rows": one.rows,
                "epsilon": float(one.budget.epsilon),
                "delta": float(one.budget.delta),
                "protects": one.protects.value,
                "method": one.method,
                "chosen_by_auto": one.chosen,
                "half_width": one.half_width,
                "detectable": self._detectable(one),
                "noise_share": one.noise,
                "rmse": one.error,
                "studies": one.studies,
                "coverage": None if one.covered is None else one.covered / one.studies,
                "power": None if one.found is None else one.found / one.studies,
                "unbounded": None if one.half_width is None else one.unbounded / one.studies,
                "assumptions": None
                if one.half_width is None
                else assumed_words(one.assumptions, one.not_covered),
                "refusal": one.refusal,
            }
            for one in self.answers
        ]

    def view(self, full: bool = False) -> View:
        """Return what is shown: the table and what was assumed; in full, what the columns mean as well."""
        lead = f"{self._studies()}; no private data were read, nothing was spent"
        items = [
            ("Assumed", self.assumed.words()),
            ("No privacy", self._plain()),
            *self._each(),
            *self._unbounded(),
            *self._least(),
        ]
        if self.public:
            items += [*((key, text) for text, key in self._assumptions().items()), *self._public(full)]
        else:
            said = {one.refusal: one for one in self.answers if one.refusal}
            items += [
                ("Refused", f"at epsilon {float(one.budget.epsilon):g}: {text}") for text, one in said.items()
            ]
            items += [
                ("Warning", text) for text in sorted({one.warning for one in self.answers if one.warning})
            ]
        items += self._legend() if full else [("In full", "plan.full(); it explains the columns")]
        note = f"Assumed: {self.assumed.words()}."
        return View([], self._title(), lead, [self._cells()], items, note=note)

    def _studies(self) -> str:
        private = "" if self.protects is None else f", with a private {self.protects.value}"
        most = "up to " if self.public else ""
        people = " or ".join(f"{rows:,}" for rows in dict.fromkeys(one.rows for one in self.answers))
        return f"{most}{self.draws} simulated studies of {people} people{private}"

    def _assumptions(self) -> dict[str, str]:
        """Return what intervals assume in words, each with the letter that stands for it in the table."""
        answered = [one for one in self.answers if one.half_width is not None]
        said = dict.fromkeys(assumed_words(one.assumptions, one.not_covered) for one in answered)
        return {text: f"Assumes {chr(ord('a') + place)}" for place, text in enumerate(said)}

    def _public(self, full: bool) -> list[tuple[str, str]]:
        """Return what every level leaves public beyond the last of them; in full, that too."""
        last = list(self.public.values())[-1]
        said = [
            f"with private {level}: {'; '.join(one for one in known if one not in last) or last[0]}"
            for level, known in self.public.items()
        ]
        said += [f"at every level: {'; '.join(last)}"] * full
        return [("Public", ". ".join(one[0].upper() + one[1:] for one in said))]

    def write_up(self) -> str:
        """Return a paragraph for a protocol: what was assumed and which intervals are to be expected.

        Returns
        -------
        str
            One paragraph in plain text.
        """
        shown = [
            f"{self._where(one)}{f', {one.protects.value}, {one.method}' if self.public else ''}: "
            + (f"refused ({one.refusal})" if one.half_width is None else f"half-width {self._row(one)[2]}")
            for one in self.answers[:_TOLD]
        ]
        return (
            f"{self._title()}: {self._studies()}. Assumed: {self.assumed.words()}. Half-width {self._of_interval()}, "
            f"the median: {'; '.join(shown)}. {self._plain()[:1].upper()}{self._plain()[1:]}. No private "
            "data were read and nothing was spent."
        )

    def document(self) -> View:
        """Return what files show: everything, with the half-widths as a picture."""
        drawn = Picture(plan_plot(self.points, self.without_privacy, self.beside))
        return replace(self.view(full=True), sections=[Section("", [drawn])])

    @property
    def beside(self) -> str:
        """What `without_privacy` is the half-width of, and of how many people."""
        what = "least squares without privacy" if self.by_least_squares else "the question without privacy"
        return f"{what}, {self.rows:,} people"

    def __repr__(self) -> str:
        rows = map(self._row, self.answers[:2])
        found = [f"epsilon {row[0]}: {row[1]}" + f" +- {row[2]}" * (row[2] != "-") for row in rows]
        left = [f"{len(self.answers) - 2} more"] * (len(self.answers) > 2)
        return f"<{type(self).__name__}: {'; '.join([self._title(), *found, *left])}>"

    def _title(self) -> str:
        what = {
            "ate": f"the {self.estimand.value}",
            "arms": "the effects of several arms",
            "groups": "effects by group",
        }
        what |= {"cate": "the effect as a function", "policy_value": "the value of a policy"}
        what |= {
            "survival": "the survival effect",
            "outcomes": "the effects",
            "event_study": "effects by period",
        }
        what |= {"moments": "the coefficient", "compliance": "the complier effect"}
        what |= {"quantiles": "differences of quantiles"}
        what |= {"interim": f"looks at the {self.estimand.value}"}
        measured = "" if self.measure == DIFFERENCE else f" ({self.measure.replace('_', ' ')})"
        return f"Plan for {what[self.question]}{measured} of {self.treatment} on {self.outcome}"

    def _least(self) -> list[tuple[str, str]]:
        """Return what is needed for the wanted half-width, in words."""
        if self.wanted is None:
            return []
        enough = "no epsilon is enough" if self.min_epsilon is None else f"epsilon {self.min_epsilon:g}"
        sizes = "; ".join(
            f"epsilon {epsilon:g}: {'more than were tried' if rows is None else f'{rows:,} people'}"
            for epsilon, rows in self.min_rows
        )
        return [
            ("Needed", f"for a half-width of {self.wanted:g}: {enough} with {self.rows:,} people; {sizes}")
        ]

    def _each(self) -> list[tuple[str, str]]:
        """Return the half-widths of effects in units of their own, in words."""
        halves = {
            self._where(one): ", ".join(f"{name} {_said(half)}" for name, half in one.each.items())
            for one in self.answers
            if one.each
        }
        return [("Each", "; ".join(f"{where}: {said}" for where, said in halves.items()))] if halves else []

    def _unbounded(self) -> list[tuple[str, str]]:
        """Return how often intervals have no end, in words."""
        found = [f"{self._where(one)}: {one.unbounded:.3g}" for one in self.answers if one.unbounded]
        return (
            [("No end", f"intervals of {self.draws} studies without an end; {'; '.join(found)}")]
            if found
            else []
        )

    def _where(self, one: PlannedAnswer) -> str:
        """Return epsilon, and what else tells an answer from the others: number of people and level."""
        several = len({each.rows for each in self.answers}) > 1
        sized = f", {one.rows:,} people" if several else ""
        levelled = "" if one.level is None else f", {percent(one.level, '.4g')} interval"
        return f"epsilon {float(one.budget.epsilon):.3g}{sized}{levelled}"

    def _level(self, one: PlannedAnswer) -> float:
        return self.level if one.level is None else one.level

    def _of_interval(self) -> str:
        return (
            f"of the {percent(self.level)} interval"
            if not self._looks
            else "of the interval at each look's level"
        )

    @property
    def _looks(self) -> bool:
        """Whether intervals have levels of their own."""
        return any(one.level is not None for one in self.answers)

    def _plain(self) -> str:
        if self.without_privacy == inf:
            return "without privacy most intervals would have no end"
        half = rounded(self.without_privacy, self.without_privacy)
        if not self.by_least_squares:
            return f"without privacy the half-width would be {half}"
        everyone = " with everyone followed to the horizon" if self.question == "survival" else ""
        effect = "an arm's effect" if self.question == "arms" else "the average effect"
        return f"least squares for {effect}{everyone} would have a half-width of {half}"

    def _cells(self) -> Cells:
        # Which ratio would be detected depends on the mean of the controls: power is that of the effect assumed.
        if self.public:
            return self._compared()
        detectable = ["detectable"] * (self.measure == DIFFERENCE)
        headings = ["epsilon", "method", "half-width", *detectable, "noise", "coverage", "power"]
        rows = [self._row(one) for one in self.answers]
        if self._looks:
            labels = [f"{one.rows:,} at {percent(self._level(one), '.4g')}" for one in self.answers]
        elif len({one.rows for one in self.answers}) > 1:
            labels = [f"{one.rows:,}" for one in self.answers]
        else:
            return Cells(headings, rows)
        headings = ["people at level" if self._looks else "people", *headings]
        return Cells(headings, [[label, *row] for label, row in zip(labels, rows, strict=True)])

    def _compared(self) -> Cells:
        """Return the table of methods, of which `auto` takes those with a star."""
        several, letters = len({self._where(one) for one in self.answers}) > 1, self._assumptions()
        rows = []
        for one in self.answers:
            name = [self._where(one)] * several + [one.protects.value, f"{one.method}{' *' * one.chosen}"]
            if one.half_width is None:
                rows.append([*name, "-", "-", str(one.refusal).partition(":")[0]])
            else:
                assumed = letters[assumed_words(one.assumptions, one.not_covered)][-1:]
                rows.append([*name, _said(one.half_width), percent(one.noise or 0.0, ".0f"), assumed])
        return Cells(
            [*["at"] * several, "protects", "method", "half-width", "noise share", "assumptions"], rows
        )

    def _row(self, one: PlannedAnswer) -> list[str]:
        epsilon = f"{float(one.budget.epsilon):.3g}"
        if one.half_width is None or one.noise is None:
            return [epsilon, "refused", *["-"] * (5 if self.measure == DIFFERENCE else 4)]
        half, detectable = one.half_width, self._detectable(one)
        return [
            epsilon,
            _short(str(one.method)),
            _said(half),
            *(["-" if detectable is None else rounded(detectable, half)] * (self.measure == DIFFERENCE)),
            percent(one.noise, ".0f"),
            "-" if one.covered is None else f"{one.covered:.3g}/{one.studies}",
            f"{one.found:.3g}/{one.studies}",
        ]

    def _legend(self) -> list[tuple[str, str]]:
        detected = f"the smallest effect that is detected in {percent(POWER)} of studies"
        covered = f"studies whose interval covers the true {self._truth()}"
        noise = ("Noise", "share of the squared standard error due to privacy noise")
        half = ("Half-width", f"{self._of_interval()}, the median over the studies")
        if self.public:
            return [half, noise, ("*", "what method='auto' takes")]
        return [
            half,
            *([("Detectable", detected)] if self.measure == DIFFERENCE else []),
            noise,
            *([("Coverage", covered)] if any(one.covered is not None for one in self.answers) else []),
            ("Power", self._shown_by()),
        ]

    def _shown_by(self) -> str:
        if self.decision is None:
            return f"studies whose interval excludes {_NULLS.get(self.measure, 'zero effect')}"
        margin = " to ".join(f"{one:g}" for one in self.decision.margin)
        margin = f" with the margin {margin}" if margin else ""
        return f"studies that show {self.decision.kind}{margin}"

    def _truth(self) -> str:
        """Return what intervals should cover; a number where all effects of all studies have that mean."""
        if self.measure != DIFFERENCE:
            return self.measure.replace("_", " ") if self.measure != NEEDED else "number needed to treat"
        if self.question == "event_study" or self.assumed.denominator is not None:
            return "effect"
        return f"effect, on average {self.assumed.effect:.4g}"


def _said(half: float) -> str:
    return rounded(half, half) if isfinite(half) else "no end"


def _short(method: str) -> str:
    return method if len(method) <= _METHOD else method[: _METHOD - 1] + "…"


# An epsilon that leaves hardly any noise, for questions that least squares does not answer.
_HARDLY_ANY = 100
# Arguments of `plan` that questions take themselves.
_SHARED = ("method", "measure", "mechanism", "settings", "estimand", "level", "protects")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArguments:
    """The arguments of `plan` beside the study."""

    name: ClassVar[str] = "plan"
    rows: int | Sequence[int]
    epsilon: Number | Sequence[Number]
    protects: Protects | None = None
    delta: Number = 0
    question: PlannedQuestion = "ate"
    method: AteMethod = "auto"
    estimand: EstimandName | None = None
    measure: Measure = "difference"
    level: float = 0.95
    mechanism: Mechanism | None = None
    settings: Any = None
    options: Mapping[str, Any] | None = None
    assumed: Assumptions | None = None
    decision: Decision | None = None
    power: float | None = None
    half_width: float | None = None
    draws: int = 20
    seed: int = 0
    progress: Progress | None = None

    def planned(self, study: Study) -> Plan:
        """Return the plan for a study."""
        options = self._options()
        check_options(self.question, options)
        check_measure(self.measure)
        if not isinstance(self.assumed, Assumptions | None):
            raise out_of_range("assumed", "cv.Assumptions(...)", self.assumed)
        if self.decision is not None:
            if not isinstance(self.decision, Decision):
                raise out_of_range("decision", "cv.Decision(...)", self.decision)
            options["decision"] = PlannedDecision.of(self.decision, _NO_EFFECT.get(self.measure, 0.0))
        effect = self._assumed.effect
        return self._plan(study, options, _wanted(options, effect, self.power, self.half_width))

    def _options(self) -> dict[str, Any]:
        """Return what the question takes by name, with what only one question takes; raises CV-P701."""
        given = {} if self.options is None else self.options
        if not isinstance(given, Mapping):
            raise out_of_range("options", f"a mapping of {', '.join(map(repr, _QUESTION_OPTIONS))}", given)
        for name in given:
            if not isinstance(name, str) or name not in _QUESTION_OPTIONS:
                raise _unfit(
                    "options",
                    f"options= with {', '.join(map(repr, _QUESTION_OPTIONS))}",
                    f"options={{{shown(name)}: ...}}",
                    "leave it out",
                )
        own = {name: given.get(name, _SAID.get(name)) for name in _QUESTION_OPTIONS}
        return own | {name: getattr(self, name) for name in _SHARED} | {"decision": None}

    @property
    def _assumed(self) -> Assumptions:
        return Assumptions() if self.assumed is None else self.assumed

    def _plan(self, study: Study, options: dict[str, Any], half_width: float | None) -> Plan:
        """Return the plan of the question with its `options`, where a half-width may be wanted."""
        question, delta, draws, seed = self.question, self.delta, self.draws, self.seed
        level, measure = options["level"], options["measure"]
        compared = question == "ate" and isinstance(self.method, str) and self.method == ALL
        units = _units(study, question, options, compared, half_width)
        sizes = list(self.rows) if isinstance(self.rows, Sequence) else [self.rows]
        check_numbers(sizes, draws, seed, half_width)
        chosen, study = study, study._changed(where=None)  # people are planned for that belong to it
        sample = self._assumed.sample
        _refuse_unplanned(study, question, sample)
        target = default_estimand(study, options["estimand"])
        own = options | {"estimand": target.value}
        own |= {"method": AUTO, "protects": units[0].value} if compared else {}
        ask, searched = asked(question, study, own, target, sizes)
        known = None if sample is None else _sampled(study, chosen, sample)
        assumed, draw = known or _assumed(study, question, self._assumed, options["received"])
        budgets = _budgets(self.epsilon, delta, max(sizes))
        first = sizes[-1] if question == "interim" else sizes[0]
        plainly = measure == DIFFERENCE and study.denominator is None
        by_least_squares = question in _BY_LEAST_SQUARES and plainly
        hardly_any = partial(_plain, searched, Budget(_HARDLY_ANY, delta))
        plain = partial(_least_squares, study, level) if by_least_squares else hardly_any
        levels = (
            _levels(study, sizes, budgets[0], level, options["spending"]) if question == "interim" else {}
        )
        cells = [Trial(ask, budget, size, units[0], levels.get(size)) for size in sizes for budget in budgets]
        if compared:
            ways = [(unit, cell) for cell in cells for unit in units]
            cells = [trial for way in ways for trial in _every_method(study, own, target, *way)]
        free = run(cells, draw, draws, seed, self.progress, plain, first)
        search = Search(searched, draw, seed, min(draws, SEARCH_DRAWS), budgets, half_width)
        return Plan(
            question=question,
            treatment=study.treatment,
            outcome=study.outcome_name,
            estimand=target,
            protects=units[0] if len(units) == 1 else None,
            rows=first,
            draws=draws,
            level=level,
            assumed=assumed,
            without_privacy=free,
            answers=_by_length(cells) if compared else tuple(cell.answer() for cell in cells),
            wanted=half_width,
            min_epsilon=search.epsilon(first),
            min_rows=search.rows(first),
            measure=measure,
            decision=options["decision"],
            by_least_squares=by_least_squares,
            public={one.value: study.public_facts(one) for one in units} if compared else {},
        )


@refuses_unknown
def plan(
    study: object,
    *,
    rows: int | Sequence[int],
    epsilon: Number | Sequence[Number],
    protects: Protects | None = None,
    delta: Number = 0,
    question: PlannedQuestion = "ate",
    method: AteMethod = "auto",
    estimand: EstimandName | None = None,
    measure: Measure = "difference",
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    settings: Any = None,
    options: Mapping[str, Any] | None = None,
    assumed: Assumptions | None = None,
    decision: Decision | None = None,
    power: float | None = None,
    half_width: float | None = None,
    draws: int = 20,
    seed: int = 0,
    progress: Progress | None = None,
) -> Plan:
    """Plan a study: the length of its confidence intervals at each epsilon and size.

    Studies are simulated from the declarations and from assumptions, or like a public sample, and the
    question is asked of each. No private data are read and nothing is spent.

    Parameters
    ----------
    study : Study
        Roles, public ranges and categories of the columns; no data are needed.
    rows : int or sequence of int
        Number of people in the planned study, at least 10; one or several to try. With
        ``question="interim"`` those at each analysis.
    epsilon : number, str, or a sequence of them
        Privacy loss to spend, read exactly; one or several to try. With ``question="interim"`` that of
        all analyses together.
    protects : {"outcome", "treatment and outcome", "record"}, optional
        What would be private. "outcome": outcomes alone; covariates and treatments are public.
        "treatment and outcome": treatments and outcomes; covariates are public. "record": everything
        about a person. Needed but for ``method="all"``, which compares all of them without it.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise.
    question : str, default "ate"
        What would be asked: "ate", "arms", "outcomes", "groups", "event_study", "cate", "policy_value",
        "survival", "quantiles" (quartiles), "moments" (the coefficient of the treatment in a
        regression), "compliance" (the effect on compliers) or "interim" (the effect at planned looks).
    method : str, default "auto"
        Estimator, one of the question's own; "auto" chooses from public numbers. "all" compares every
        method that could answer "ate", with as many simulated studies as it takes to know their
        half-widths.
    estimand : {"ATE", "ATT", "ATC", "ATO"}, optional
        Whose average effect: everyone's, that of the treated, of the untreated, or of the
        overlap-weighted population. By default "ATE"; "ATT" where a study compares changes and is not
        randomised.
    measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}, default "difference"
        Scale of the effect, from the mean outcomes m1 with treatment and m0 without: m1 - m0, m1 / m0,
        m1 / m0 - 1, the ratio of the odds m / (1 - m), or 1 / (m1 - m0). Half-widths are on that scale.
    level : float, default 0.95
        Confidence level of the intervals, between 0 and 1; the privacy noise is included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
    settings : settings of the method, optional
        As ``cv.settings.Matching(neighbours=5)``; with ``method="all"`` those of "auto".
    options : mapping, optional
        What one question alone takes: "by" (groups: covariates, or a mapping to cut points), "policy"
        (a `cv.Policy`, for policy_value), "formula" (``"y ~ treat + age"``, for moments), "received"
        (the covariate that says who received the treatment, for compliance), "spending"
        ("obrien_fleming", "pocock" or "always_valid", for interim), "grid" (of quantiles) and
        "importance" (of outcomes).
    assumed : Assumptions, optional
        What is assumed of people, or a public sample: ``cv.Assumptions(mean=0.2, effect=-0.05)``. By
        default everything is taken from the declarations, with no effect.
    decision : Decision, optional
        A test against a margin, ``cv.Decision("noninferiority", margin=0.05)``, whose power is shown.
        By default whether the interval excludes no effect.
    power : float, optional
        Power wanted of `decision` for the assumed effect, in (0, 1): the least epsilon and the least
        number of people for it are searched.
    half_width : float, optional
        Half-width wanted, above 0: the least epsilon and the least number of people for it are
        searched.
    draws : int, default 20
        Number of simulated studies, with ``method="all"`` at most.
    seed : int, default 0
        Seed of the simulation, a whole number of 0 or more.
    progress : callable, optional
        Called with the number of simulated studies that are done and to be done.

    Returns
    -------
    Plan
        For every epsilon and number of people: half-width (the median over studies), smallest
        detectable effect, share of noise, coverage and power; and what was searched.

    Raises
    ------
    CounterveilError
        Arguments (CV-P), study (CV-S) or budget (CV-B). Where the question would be refused at some
        epsilons alone, the plan says so beside the others.

    See Also
    --------
    Assumptions : What is assumed of people.
    Decision : A test against a margin.

    Notes
    -----
    The detectable effect is h (1 + z_0.8 / z_{(1 + level) / 2}), with h the half-width and z the normal
    quantile: an interval excludes zero in 80% of studies with that effect.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=200, effect=0.3)
    >>> plan = cv.plan(data.study, rows=200, protects="outcome", epsilon=[1, 4], draws=2)
    >>> plan.answers[1].half_width < plan.answers[0].half_width
    True
    """
    arguments = PlanArguments(
        rows=rows,
        epsilon=epsilon,
        protects=protects,
        delta=delta,
        question=question,
        method=method,
        estimand=estimand,
        measure=measure,
        level=level,
        mechanism=mechanism,
        settings=settings,
        options=options,
        assumed=assumed,
        decision=decision,
        power=power,
        half_width=half_width,
        draws=draws,
        seed=seed,
        progress=progress,
    )
    check_study(study)
    return arguments.planned(cast("Study", study))


def _wanted(
    options: Mapping[str, Any], effect: object, power: float | None, half_width: float | None
) -> float | None:
    """Return the half-width that is searched: as given, or that of a test with a power."""
    decision, level = options["decision"], check_level(options["level"])
    if power is None:
        return half_width
    plain = options["measure"] == DIFFERENCE and isinstance(effect, int | float) and half_width is None
    if decision is None or not plain or not 0 < power < 1:
        raise _unfit(
            "power", "power= between 0 and 1 with test= of one difference", shown(power), "say test="
        )
    found: float = decision.half_width(float(effect), power, level)  # type: ignore[arg-type]
    return found


def _units(
    study: Study, question: str, options: Mapping[str, Any], compared: bool, half_width: float | None
) -> tuple[Unit, ...]:
    """Return what is to be protected, which is everything in turn where levels are compared; checks the question."""
    check_level(options["level"])
    check_study(study)
    refuse_censored(study.event, question)
    if compared and half_width is not None:
        raise _unfit("half_width", "half_width= with one method", f"method={ALL!r}", "name a method")
    if compared and options["protects"] is None:
        return tuple(Unit)
    unit = Unit.parse(options["protects"])
    if not compared:
        refuse_shape(study, unit, question)
        refuse_clusters(study, "plan", options["method"], unit)
    return (unit,)


def _every_method(
    study: Study, options: Mapping[str, Any], target: Estimand, unit: Unit, cell: Trial
) -> list[Trial]:
    """Return the trials of `auto` and of every method that has a form for what is protected."""

    def ask(method: str) -> Ask:
        own = {"protects": unit.value, "method": method}
        # Settings are those of `auto`.
        settings = options["settings"] if method == AUTO else None
        return asked("ate", study, {**options, **own, "settings": settings}, target, [cell.rows])[0]

    auto = replace(cell, ask=ask(AUTO), protects=unit, method=AUTO, answers=[])
    # Two names of one form, of which that for trials stands first.
    named = reversed(METHODS.items()) if study.randomised is True else METHODS.items()
    others = {
        method.forms[unit]: name for name, method in named if name != AUTO and unit in method.forms
    }.values()
    return [auto, *(replace(auto, ask=ask(name), method=name, auto=auto, answers=[]) for name in others)]


def _by_length(cells: list[Trial]) -> tuple[PlannedAnswer, ...]:
    """Return the answers of methods, the shortest intervals of a level first; a refusal of `auto` is its method's."""
    answers = [cell.answer() for cell in cells if not cell.repeats_auto]
    kept = [one for one in answers if one.method != AUTO]
    places = {unit: place for place, unit in enumerate(Unit)}
    kept.sort(key=lambda one: (one.rows, one.budget.epsilon, places[one.protects], one.half_width or inf))
    return tuple(kept)


# Questions whose half-width is shown beside that of least squares; the others beside their own with hardly any noise.
_BY_LEAST_SQUARES = ("ate", "arms", "groups", "cate", "policy_value", "survival")


def _least_squares(study: Study, level: float, people: People, _noise: SeededNoise) -> float:
    return plain_half_width(study, people, level)


def _plain(ask: Ask, budget: Budget, people: People, noise: SeededNoise) -> float:
    """Return the half-width that the question would have with a budget that leaves hardly any noise."""
    trial = Trial(ask, budget, len(people.outcome), Unit.RECORD)
    trial.run(people, noise)
    return trial.half


def _assumed(
    study: Study, question: str, given: Assumptions, received: str | None
) -> tuple[AssumedPeople, Draw]:
    """Return what is assumed of people, and what draws them."""
    others = {name: kind for name, kind in study.covariates.items() if name != received}
    own = at_the_horizon(study._changed(covariates=others))
    people = replace(
        assumed_of(own, given, received), censoring_rate=censoring_rate(study, given.censoring_rate)
    )
    return people, partial(people_of_question, study, people, question == "event_study", received)


def _sampled(study: Study, declared: Study, sample: Any) -> tuple[AssumedPeople, Draw]:
    """Return what a public sample says of people, and what draws from it."""
    known = PublicSample.of(sample, declared)
    found = AssumedPeople.of(study)
    found = replace(found, effect=known.effect, share=known.share, binary=known.binary)
    return replace(found, sample=known.rows), known.people


def _levels(study: Study, sizes: list[int], budget: Budget, level: float, spending: str) -> dict[int, float]:
    """Return the level of the interval at each look."""
    epsilon, delta = budget.epsilon, budget.delta
    looks = planned(study.outcome, sizes, epsilon=epsilon, delta=delta, level=level, spending=spending)
    return {size: float(1 - look.alpha) for size, look in zip(sizes, looks.planned, strict=True)}


def _refuse_unplanned(study: Study, question: str, sample: Any) -> None:
    """Raise CV-P700 for what no people are made up of."""
    if sample is None:
        return
    single = study.event is None and study.several is None and study.denominator is None
    if not single or question in ("event_study", "compliance"):
        raise out_of_range(
            "sample", "no sample: people with several numbers are planned from assumptions", sample
        )


def _budgets(epsilon: Number | Sequence[Number], delta: Number, max_rows: int) -> list[Budget]:
    several = epsilon if isinstance(epsilon, Sequence) and not isinstance(epsilon, str) else [epsilon]
    budgets = [Budget(one, delta) for one in several or [""]]
    budgets[0].check_rows(max_rows)
    return budgets
