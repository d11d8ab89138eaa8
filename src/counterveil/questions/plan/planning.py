"""One question on many simulated studies, at several epsilons and sizes, with seeded noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, exp, inf, log, log10, sqrt
from typing import Any

import numpy as np

from counterveil.data import Study
from counterveil.data.time_to_event import refuse_censored
from counterveil.errors import BudgetError, ParameterError, StudyError
from counterveil.privacy import Budget, Estimand, Number, Unit
from counterveil.questions import arms, ate, cate, groups, policy_value, survival
from counterveil.questions.plan.assumptions import (
    FEWEST_ROWS,
    SEEDS,
    Assumptions,
    Summaries,
    check_numbers,
    out_of_range,
)
from counterveil.questions.plan.plan import Plan, PlannedAnswer
from counterveil.questions.plan.public_sample import PublicSample
from counterveil.questions.plan.simulated_study import People
from counterveil.questions.plan.simulated_study import half_width as least_squares
from counterveil.questions.plan.times import at_the_horizon, lost_share, simulated
from counterveil.results.effect import Effect, Linear, check_level
from counterveil.results.question import refuse_clusters, usual_estimand
from counterveil.results.result import Released
from counterveil.session import SeededNoise

Tell = Callable[[int, int], None]
Draw = Callable[[int, np.random.Generator], People]
# What is asked, and which of the options each question takes.
_ASK: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "ate": (ate, ("method", "estimand", "level", "mechanism", "settings")),
    "arms": (arms, ("method", "level", "mechanism", "settings")),
    "groups": (groups, ("method", "level", "mechanism", "settings", "by")),
    "cate": (cate, ("method", "level", "settings")),
    "policy_value": (policy_value, ("method", "level", "settings", "policy")),
    "survival": (survival, ("method", "level", "mechanism", "settings")),
}
# Where the least epsilon and the least number of people are looked for, with how many studies and how closely.
_LEAST_EPSILON, _MOST_EPSILON, _MOST_SEARCHED = 0.01, 50.0, 200_000
_SEARCH_DRAWS, _CLOSE = 5, 0.04


def plan(
    study: Study,
    *,
    rows: int | Sequence[int],
    protects: str,
    epsilon: Number | Sequence[Number],
    delta: Number = 0,
    question: str = "ate",
    by: Any = None,
    policy: Any = None,
    method: str = "auto",
    estimand: str | None = None,
    level: float = 0.95,
    mechanism: str | None = None,
    settings: Any = None,
    mean: float | None = None,
    sd: float | None = None,
    effect: float = 0.0,
    explained: float | None = None,
    confounding: float | None = None,
    share: float | None = None,
    binary: bool | None = None,
    correlation: float | Sequence[Sequence[float]] | None = None,
    covariates: Summaries | None = None,
    lost: float | None = None,
    sample: Any = None,
    half_width: float | None = None,
    draws: int = 20,
    seed: int = 0,
    tell: Tell | None = None,
) -> Plan:
    """Return how long the intervals of a study would be, from its declarations and from assumptions alone.

    Args:
        study: the declaration; no data are needed.
        rows: number of people in the planned study; one or several to try.
        epsilon: one or several to try.
        protects, delta, method, estimand, level, mechanism, settings: as for `counterveil.ate`.
        question: "ate", "arms", "groups" (with `by`), "cate", "policy_value" (with `policy`) or "survival": then `mean`
            and `effect` are those of being free of the event at the horizon.
        by: groups, as for `counterveil.groups`.
        policy: as for `counterveil.policy_value`.
        mean: assumed mean outcome without treatment; None takes the middle of the range.
        sd: assumed standard deviation of outcomes; None takes a sixth of the range.
        effect: assumed effect, in units of the outcome.
        explained: assumed share of the outcome variance explained by the covariates; None takes 0.2.
        confounding: assumed standard deviation of the log-odds of treatment due to the covariates; None takes 0.5
            unless the study is randomised.
        share: assumed share treated; None takes the declared one, or one half.
        binary: whether the outcome is one end of its range or the other; None supposes so where it is from 0 to 1.
        correlation: assumed correlation of covariates that stand beside each other, falling with their distance, or a
            matrix of public correlations; None takes 0.3.
        covariates: public summaries: {"age": (mean, sd), "sex": {"f": 0.6, "m": 0.4}}; numbers without one fill
            their range as a bell, labels are equally frequent.
        lost: assumed share of people lost from sight before the horizon, for "survival"; None takes 0.2.
        sample: a public sample with the columns of the study, which takes the place of all assumptions above.
        half_width: a wanted half-width; the least epsilon and the least number of people for it are searched.
        draws: number of simulated studies.
        seed: seed of the simulation.
        tell: called with the number of simulated studies done and to do.
    """
    return _plan(**locals())


# The arguments of `plan` that say how the question is asked, and those that describe the people.
_ASKED = ("method", "estimand", "level", "mechanism", "settings", "by", "policy", "protects")
_ASSUMED = (
    "mean",
    "sd",
    "effect",
    "explained",
    "confounding",
    "share",
    "binary",
    "correlation",
    "covariates",
)


def _plan(
    study: Study,
    rows: int | Sequence[int],
    sample: Any,
    half_width: float | None,
    tell: Tell | None,
    **more: Any,
) -> Plan:
    """Return the plan; `more` are the other arguments of `plan`."""
    draws, seed, level, question = (more[name] for name in ("draws", "seed", "level", "question"))
    check_level(level)
    refuse_censored(study, question)
    refuse_clusters(study, "plan", more["method"], Unit.parse(more["protects"]))
    sizes = list(rows) if isinstance(rows, Sequence) else [rows]
    check_numbers(sizes, draws, seed, half_width)
    chosen, study = study, study.changed(where=None)  # people are planned for that belong to it
    _refuse_unplanned(study, sample)
    more["estimand"] = usual_estimand(study, more["estimand"]).value
    assumed = Assumptions.of(at_the_horizon(study), **{name: more[name] for name in _ASSUMED})
    assumed = replace(assumed, lost=lost_share(study, more["lost"]))
    draw: Draw = partial(simulated, study, assumed)
    if sample is not None:
        known = PublicSample.of(sample, chosen)
        assumed = replace(
            assumed, sample=known.rows, effect=known.effect, share=known.share, binary=known.binary
        )
        draw = known.people
    target, unit = Estimand(more["estimand"]), Unit.parse(more["protects"])
    ask = _asked(question, study, {name: more[name] for name in _ASKED}, target)
    budgets = _budgets(more["epsilon"], more["delta"])
    cells = [_Trial(budget, size) for size in sizes for budget in budgets]
    plain = _run(cells, ask, draw, draws, seed, level, tell)
    search = _Search(ask, draw, seed, min(draws, _SEARCH_DRAWS), budgets, half_width)
    return Plan(
        question=question,
        treatment=study.treatment,
        outcome=study.outcome_name,
        estimand=target,
        protects=unit,
        rows=sizes[0],
        draws=draws,
        level=level,
        assumed=assumed,
        without_privacy=plain,
        answers=tuple(cell.answer() for cell in cells),
        wanted=half_width,
        least_epsilon=search.epsilon(sizes[0]),
        least_rows=search.rows(sizes[0]),
    )


def _refuse_unplanned(study: Study, sample: Any) -> None:
    """Raise CV-P700 for what no people are made up of."""
    if study.per is not None:
        raise out_of_range("study", "a study without per=", f"per={study.per.column!r}")
    if study.event is not None and sample is not None:
        raise out_of_range("sample", "no sample: times to an event are planned from assumptions", sample)


Ask = Callable[[People, Budget, SeededNoise], "_Answer"]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one simulated study answered: half-widths, errors and intervals of all its effects."""

    halves: list[float]
    errors: list[float] | None  # None where the true effects are not known exactly
    covered: float | None
    found: float
    parts: list[tuple[float, float]]  # noise and total standard error
    method: str
    caution: str | None


def _asked(question: str, study: Study, given: Mapping[str, Any], estimand: Estimand) -> Ask:
    """Return what asks a question of simulated people; raises CV-P700 for a question that cannot be planned."""
    if not isinstance(question, str) or question not in _ASK:
        raise out_of_range("question", f"one of {', '.join(map(repr, _ASK))}", question)
    function, taken = _ASK[question]
    words = {name: value for name, value in given.items() if name in (*taken, "protects")}
    for name in ("by", "policy"):
        if name in taken and words[name] is None:
            raise out_of_range(name, f"{name}= with question={question!r}", None)

    def ask(people: People, budget: Budget, noise: SeededNoise) -> _Answer:
        spent = {"epsilon": budget.epsilon, "delta": budget.delta}
        answer = function(people.frame, study, noise=noise, **spent, **words)
        truth = people.effect(estimand) if question in ("ate", "arms", "survival") else None
        return _measured(answer, truth)

    return ask


def _measured(answer: Released, truth: float | None) -> _Answer:
    """Return the figures of an answer; what the outcome's range cuts off an interval is not taken off its length."""
    first = answer.__class__.__name__ in ("PolicyValue", "SurvivalResult")
    effects = answer.table[:1] if first else answer.table
    ends = [effect.interval() for effect in effects]
    covered = None if truth is None else float(np.mean([low <= truth <= high for low, high in ends]))
    chosen = answer.details.get("chosen_by_auto")
    return _Answer(
        halves=[_half(effect) for effect in effects],
        errors=None if truth is None else [effect.estimate - truth for effect in effects],
        covered=covered,
        found=float(np.mean([low > 0 or high < 0 for low, high in ends])),
        parts=[(effect.std_error.noise, effect.std_error.total) for effect in effects],
        method=answer.method if chosen is None else str(chosen).partition(":")[0],
        caution=answer.caution,
    )


def _half(effect: Effect) -> float:
    if isinstance(effect.known, Linear):
        return effect.known.uncertainty.half_width(effect.level)
    low, high = effect.interval()
    return (high - low) / 2


Refused = ParameterError | BudgetError | StudyError


@dataclass(slots=True)
class _Trial:
    """One budget and size, and what was answered for them so far."""

    budget: Budget
    rows: int
    answers: list[_Answer] = field(default_factory=list)
    refusal: Refused | None = None

    def run(self, ask: Ask, people: People, noise: SeededNoise) -> None:
        """Ask about one simulated study; a refusal depends on parameters alone, so the next would get it too."""
        if self.refusal is not None:
            return
        try:
            self.answers.append(ask(people, self.budget, noise))
        except (ParameterError, BudgetError, StudyError) as error:
            self.refusal = error

    @property
    def half(self) -> float:
        """Mean half length over studies and effects, infinite where the question is refused."""
        return inf if self.refusal is not None else float(np.mean([one.halves for one in self.answers]))

    def answer(self) -> PlannedAnswer:
        """Return the figures over all studies."""
        if self.refusal is not None:
            problem = f"{self.refusal.code}: {self.refusal.problem}"
            return PlannedAnswer(self.budget, self.rows, refusal=problem)
        known = [one for one in self.answers if one.errors is not None and one.covered is not None]
        parts = np.array([one.parts for one in self.answers])
        errors = np.array([one.errors for one in known], dtype=np.float64)
        return PlannedAnswer(
            self.budget,
            self.rows,
            method=self.answers[0].method,
            half_width=self.half,
            noise=float(np.sum(parts[..., 0] ** 2) / np.sum(parts[..., 1] ** 2)),
            error=sqrt(float(np.mean(errors**2))) if known else None,
            covered=sum(float(one.covered or 0.0) for one in known) if known else None,
            found=sum(one.found for one in self.answers),
            caution=self.answers[0].caution,
        )


def _run(
    cells: list[_Trial], ask: Ask, draw: Draw, draws: int, seed: int, level: float, tell: Tell | None
) -> float:
    """Ask every cell about every simulated study; return the half-width of least squares at the first size."""
    plain: list[float] = []
    sizes = list(dict.fromkeys(cell.rows for cell in cells))
    for number in range(draws):
        for size in sizes:
            generator = np.random.default_rng([seed, number, *([size] if size != sizes[0] else [])])
            people = draw(size, generator)
            for cell in cells:
                if cell.rows == size:
                    cell.run(ask, people, SeededNoise(int(generator.integers(SEEDS))))
            if size == sizes[0]:
                plain.append(least_squares(people, level))
        refused = [cell.refusal for cell in cells if cell.refusal is not None]
        if len(refused) == len(cells):
            raise refused[0]
        if tell is not None:
            tell(number + 1, draws)
    return float(np.mean(plain))


# The least epsilon, and the least number of people, for a wanted half-width: bisection, with the same draws throughout.


@dataclass(frozen=True, slots=True)
class _Search:
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
        most = max(_MOST_SEARCHED, start)
        return tuple((float(budget.epsilon), self._rows(budget, most)) for budget in self.budgets)

    def _rows(self, budget: Budget, most: int) -> int | None:
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
        trial = _Trial(budget, rows)
        for number, generator in self._generators():
            if trial.refusal is None:
                trial.run(self.ask, self.draw(rows, generator), SeededNoise(self.seed + number))
        return trial.half

    def _generators(self) -> Iterator[tuple[int, np.random.Generator]]:
        for number in range(self.draws):
            yield number, np.random.default_rng([self.seed, number])


def _rounded(value: float) -> float:
    """Return a number with two digits, rounded up."""
    step = 10.0 ** (int(np.floor(log10(value))) - 1)
    return round(ceil(value / step - 1e-9) * step, 10)


def _budgets(epsilon: Number | Sequence[Number], delta: Number) -> list[Budget]:
    several = epsilon if isinstance(epsilon, Sequence) and not isinstance(epsilon, str) else [epsilon]
    return [Budget(one, delta) for one in several]
