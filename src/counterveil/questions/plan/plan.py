"""One question on many simulated studies, at several epsilons, with seeded noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from counterveil.data import Study
from counterveil.errors import BudgetError, ParameterError, StudyError
from counterveil.privacy import Budget, Estimand, Number, Unit
from counterveil.questions import Result, ate
from counterveil.questions.plan.simulated_study import Assumptions, People, half_width, out_of_range, simulate
from counterveil.report import Cells, View, latex, page
from counterveil.report.view import percent, rounded
from counterveil.results.shown import Shown
from counterveil.results.stored import reads_facts
from counterveil.session import SeededNoise
from counterveil.settings.ranges import is_whole

# What a plan found: how long intervals would be, at every epsilon that was tried.


# The usual aim of those who plan trials.
_POWER = 0.8
_TOLD = 6  # epsilons in a paragraph


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """The answers to one question, over all simulated studies.

    Attributes:
        budget: what the question would spend.
        method: the estimator, after "auto" has chosen.
        half_width: mean half length of the interval.
        noise: share of the squared standard error that is privacy noise.
        error: root of the mean squared distance between estimate and true effect.
        covered: studies whose interval covers the true effect.
        found: studies whose interval excludes 0.
        caution: what a result would say first, None where nothing needs saying.
        refusal: code and problem, where the question would be refused; all figures are then None.
    """

    budget: Budget
    method: str | None = None
    half_width: float | None = None
    noise: float | None = None
    error: float | None = None
    covered: int | None = None
    found: int | None = None
    caution: str | None = None
    refusal: str | None = None

    def detectable(self, level: float, power: float = _POWER) -> float | None:
        """Return the smallest effect that the interval would tell from none with this power."""
        if self.half_width is None:
            return None
        return self.half_width * float(1 + ndtri(power) / ndtri((1 + level) / 2))

    def to_dict(self, level: float) -> dict[str, Any]:
        """Return the figures as JSON-ready facts."""
        facts = asdict(self) | {"budget": self.budget.to_dict()}
        budget = {"epsilon": float(self.budget.epsilon), "delta": float(self.budget.delta)}
        return budget | facts | {"detectable": self.detectable(level)}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> PlannedAnswer:
        """Return the answers written by `to_dict`."""
        own = {each.name: facts[each.name] for each in fields(cls) if each.name != "budget"}
        return cls(Budget.from_dict(facts["budget"]), **own)


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Shown):
    """Answers on simulated data; no row was read and nothing was spent.

    `without_privacy` is the mean half length of the least-squares interval of the same people.
    """

    treatment: str
    outcome: str
    estimand: Estimand
    protects: Unit
    rows: int
    draws: int
    level: float
    assumed: Assumptions
    without_privacy: float
    answers: tuple[PlannedAnswer, ...]

    def smallest(self, half_width: float) -> PlannedAnswer | None:
        """Return the answer of least epsilon whose interval is at most so long on either side; None where none is."""
        enough = [one for one in self.answers if one.half_width is not None and one.half_width <= half_width]
        return min(enough, key=lambda one: one.budget.epsilon, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts."""
        return {
            "treatment": self.treatment,
            "outcome": self.outcome,
            "estimand": self.estimand.value,
            "protects": self.protects.value,
            "rows": self.rows,
            "draws": self.draws,
            "level": self.level,
            "assumed": asdict(self.assumed),
            "without_privacy": self.without_privacy,
            "answers": [one.to_dict(self.level) for one in self.answers],
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> Plan:
        """Return the plan written by `to_dict`."""
        own = {
            name: facts[name]
            for name in ("treatment", "outcome", "rows", "draws", "level", "without_privacy")
        }
        return cls(
            estimand=Estimand(facts["estimand"]),
            protects=Unit(facts["protects"]),
            assumed=Assumptions(**facts["assumed"]),
            answers=tuple(PlannedAnswer.from_dict(one) for one in facts["answers"]),
            **own,
        )

    def tidy(self) -> list[dict[str, Any]]:
        """Return one dictionary an epsilon: what its intervals would be over all simulated studies."""
        named = {
            "term": self.treatment,
            "estimand": self.estimand.value,
            "rows": self.rows,
            "level": self.level,
        }
        return [
            named
            | {
                "epsilon": float(one.budget.epsilon),
                "delta": float(one.budget.delta),
                "method": one.method,
                "half_width": one.half_width,
                "detectable": one.detectable(self.level),
                "noise_share": one.noise,
                "rmse": one.error,
                "coverage": None if one.covered is None else one.covered / self.draws,
                "power": None if one.found is None else one.found / self.draws,
                "refusal": one.refusal,
            }
            for one in self.answers
        ]

    def view(self, full: bool = False) -> View:
        """Return what is shown: the table and what was assumed; in full, what the columns mean as well."""
        lead = (
            f"{self.draws} simulated studies of {self.rows:,} people, with a private {self.protects.value}; no data "
            "were read, nothing was spent"
        )
        items = [("Assumed", self.assumed.words()), ("No privacy", self._plain())]
        said = {one.refusal: one for one in self.answers if one.refusal}
        items += [
            ("Refused", f"at epsilon {float(one.budget.epsilon):g}: {text}") for text, one in said.items()
        ]
        items += [("Caution", text) for text in sorted({one.caution for one in self.answers if one.caution})]
        items += self._legend() if full else [("More", "plan.full() explains the columns")]
        return View([], self._title(), lead, [self._cells()], items)

    def write_up(self) -> str:
        """Return a paragraph for a protocol: what was assumed and which intervals are to be expected."""
        shown = [
            f"epsilon {float(one.budget.epsilon):.3g}: "
            + (f"refused ({one.refusal})" if one.half_width is None else f"half-width {self._row(one)[2]}")
            for one in self.answers[:_TOLD]
        ]
        return (
            f"{self._title()}: {self.draws} simulated studies of {self.rows:,} people, with a private "
            f"{self.protects.value}. Assumed: {self.assumed.words()}. Mean half-width of the {percent(self.level)} "
            f"interval: {'; '.join(shown)}. {self._plain()[:1].upper()}{self._plain()[1:]}. No data were read and "
            "nothing was spent."
        )

    def to_latex(self) -> str:
        """Return the table for a protocol; it needs only the booktabs package."""
        return latex(self._cells(), f"Assumed: {self.assumed.words()}.")

    def to_html(self, path: str | Path) -> Path:
        """Write the plan as a self-contained page; return its path."""
        target = Path(path)
        target.write_text(page(self.view(full=True)), encoding="utf-8")
        return target

    def __repr__(self) -> str:
        rows = map(self._row, self.answers[:2])
        found = [f"epsilon {row[0]}: {row[1]}" + f" +- {row[2]}" * (row[2] != "-") for row in rows]
        left = [f"{len(self.answers) - 2} more"] * (len(self.answers) > 2)
        return f"<{type(self).__name__}: {'; '.join([self._title(), *found, *left])}>"

    def _title(self) -> str:
        return f"Plan for the {self.estimand.value} of {self.treatment} on {self.outcome}"

    def _plain(self) -> str:
        return (
            f"least squares would have a half-width of {rounded(self.without_privacy, self.without_privacy)}"
        )

    def _cells(self) -> Cells:
        headings = ["epsilon", "method", "half-width", "detectable", "noise share", "coverage", "power"]
        return Cells(headings, [self._row(one) for one in self.answers])

    def _row(self, one: PlannedAnswer) -> list[str]:
        epsilon = f"{float(one.budget.epsilon):.3g}"
        if one.half_width is None or one.noise is None:
            return [epsilon, "refused", *["-"] * 5]
        return [
            epsilon,
            str(one.method),
            rounded(one.half_width, one.half_width),
            rounded(one.detectable(self.level) or 0.0, one.half_width),
            f"{100 * one.noise:.0f} %",
            f"{one.covered}/{self.draws}",
            f"{one.found}/{self.draws}",
        ]

    def _legend(self) -> list[tuple[str, str]]:
        return [
            ("Half-width", f"of the {percent(self.level)} interval, on average over the studies"),
            ("Detectable", f"the smallest effect that is detected in {percent(_POWER)} of studies"),
            ("Noise share", "share of the squared standard error due to privacy noise"),
            ("Coverage", f"studies whose interval covers the true effect ({self.assumed.effect:.4g})"),
            ("Power", "studies whose interval excludes 0"),
        ]


Tell = Callable[[int, int], None]
# Simulated people are held in memory; nobody waits for more draws than this.
_FEWEST_ROWS, _MOST_ROWS, _MOST_DRAWS = 10, 10**8, 10**6
_SEEDS = 2**62


def plan(
    study: Study,
    *,
    rows: int,
    protects: str,
    epsilon: Number | Sequence[Number],
    delta: Number = 0,
    method: str = "auto",
    estimand: str = "ATE",
    level: float = 0.95,
    mechanism: str | None = None,
    settings: Any = None,
    mean: float | None = None,
    sd: float | None = None,
    effect: float = 0.0,
    explained: float = 0.0,
    confounding: float = 0.0,
    share: float | None = None,
    binary: bool = False,
    draws: int = 20,
    seed: int = 0,
    tell: Tell | None = None,
) -> Plan:
    """Return how long the intervals of a study would be, from its declarations and from assumptions alone.

    Args:
        study: the declaration; no data are needed.
        rows: number of people in the planned study.
        epsilon: one or several to try.
        protects, delta, method, estimand, level, mechanism, settings: as for `counterveil.ate`.
        mean: assumed mean outcome without treatment; None takes the middle of the range.
        sd: assumed standard deviation of outcomes; None takes a sixth of the range.
        effect: assumed effect, in units of the outcome.
        explained: assumed share of the outcome variance explained by the covariates, 0 to 1.
        confounding: assumed standard deviation of the log-odds of treatment due to the covariates.
        share: assumed share treated; None takes the declared one, or one half.
        binary: whether the outcome is binary: one end of the range or the other.
        draws: number of simulated studies.
        seed: seed of the simulation.
        tell: called with the number of simulated studies done and to do.
    """
    assumed = Assumptions.of(study, mean, sd, effect, explained, confounding, share, binary)
    target, unit = Estimand.parse(estimand), Unit.parse(protects)
    _check_numbers(rows, draws, seed)
    options: dict[str, Any] = {"protects": protects, "method": method, "estimand": estimand}
    options |= {"level": level, "mechanism": mechanism, "settings": settings}
    trials = [_Trial(budget, options) for budget in _budgets(epsilon, delta)]
    plain = []
    for draw in range(draws):
        generator = np.random.default_rng([seed, draw])
        people = simulate(study, rows, assumed, generator)
        _ask_all(trials, study, people, generator, target)
        plain.append(half_width(people, level))
        if tell is not None:
            tell(draw + 1, draws)
    return Plan(
        treatment=study.treatment,
        outcome=study.outcome,
        estimand=target,
        protects=unit,
        rows=rows,
        draws=draws,
        level=level,
        assumed=assumed,
        without_privacy=float(np.mean(plain)),
        answers=tuple(trial.answer() for trial in trials),
    )


def _ask_all(
    trials: list[_Trial], study: Study, people: People, generator: np.random.Generator, estimand: Estimand
) -> None:
    """Ask about the same people with every budget, each with noise of its own; raises where all are refused."""
    for trial in trials:
        trial.run(study, people, SeededNoise(int(generator.integers(_SEEDS))), estimand)
    refused = [trial.refusal for trial in trials if trial.refusal is not None]
    if len(refused) == len(trials):
        raise refused[0]


@dataclass(slots=True)
class _Trial:
    """One budget, and what was answered for it so far."""

    budget: Budget
    options: dict[str, Any]
    results: list[Result] = field(default_factory=list)
    truths: list[float] = field(default_factory=list)
    refusal: ParameterError | BudgetError | StudyError | None = None

    def run(self, study: Study, people: People, noise: SeededNoise, estimand: Estimand) -> None:
        """Ask about one simulated study; a refusal depends on parameters alone, so the next would get it too."""
        if self.refusal is not None:
            return
        try:
            found = ate(
                people.frame,
                study,
                epsilon=self.budget.epsilon,
                delta=self.budget.delta,
                noise=noise,
                **self.options,
            )
        except (ParameterError, BudgetError, StudyError) as error:
            self.refusal = error
            return
        self.results.append(found)
        self.truths.append(people.effect(estimand))

    def answer(self) -> PlannedAnswer:
        """Return the figures over all studies."""
        if self.refusal is not None:
            return PlannedAnswer(self.budget, refusal=f"{self.refusal.code}: {self.refusal.problem}")
        ends = np.array([found.interval() for found in self.results])
        # What the range cuts off says nothing about how large an effect has to be.
        uncut = np.array([found.uncut_interval() for found in self.results])
        truths = np.array(self.truths)
        errors = np.array([found.estimate for found in self.results]) - truths
        parts = np.array([(found.std_error.noise, found.std_error.total) for found in self.results])
        return PlannedAnswer(
            self.budget,
            method=_method(self.results[0]),
            half_width=float(np.mean(uncut[:, 1] - uncut[:, 0])) / 2,
            noise=float(np.sum(parts[:, 0] ** 2) / np.sum(parts[:, 1] ** 2)),
            error=sqrt(float(np.mean(errors**2))),
            covered=int(np.sum((ends[:, 0] <= truths) & (truths <= ends[:, 1]))),
            found=int(np.sum((ends[:, 0] > 0) | (ends[:, 1] < 0))),
            caution=self.results[0].caution,
        )


def _method(found: Result) -> str:
    """Return the name of the estimator, after "auto" has chosen."""
    chosen = found.details.get("chosen_by_auto")
    return found.method if chosen is None else str(chosen).partition(":")[0]


def _budgets(epsilon: Number | Sequence[Number], delta: Number) -> list[Budget]:
    several = epsilon if isinstance(epsilon, Sequence) and not isinstance(epsilon, str) else [epsilon]
    return [Budget(one, delta) for one in several]


def _check_numbers(rows: object, draws: object, seed: object) -> None:
    _check_whole("rows", rows, _FEWEST_ROWS, _MOST_ROWS)
    _check_whole("draws", draws, 1, _MOST_DRAWS)
    _check_whole("seed", seed, 0, _SEEDS)


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if not is_whole(value, least, most):
        raise out_of_range(name, f"a whole number from {least} to {most}", value)
