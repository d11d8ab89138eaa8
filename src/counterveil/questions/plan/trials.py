"""One question on many simulated studies: its answers at several epsilons and sizes, and the least that is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from math import ceil, exp, inf, isfinite, log, log10, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from counterveil.errors import BudgetError, ParameterError, StudyError
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget
from counterveil.questions.plan.asked import Answer, Ask
from counterveil.questions.plan.assumptions import FEWEST_ROWS, SEEDS
from counterveil.questions.plan.simulated_study import People
from counterveil.session import SeededNoise

# The usual aim of those who plan trials.
POWER = 0.8


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """The answers to one question, over all simulated studies.

    Attributes:
        budget: what the question would spend.
        rows: number of people.
        method: the estimator, after "auto" has chosen.
        half_width: mean half length of the intervals, over studies and effects.
        noise: share of the squared standard error that is privacy noise.
        error: root of the mean squared distance between estimate and true effect; None where that is not known.
        covered: studies whose interval covers the true effect; of several effects, parts of studies.
        found: studies whose interval excludes zero effect (of a ratio, 1), counted in the same way.
        unbounded: studies whose interval has no end, counted in the same way; half-widths of ratios and regressions are
            medians over studies, infinite where most have none.
        each: half-widths of all effects by name where they are in units of their own; `half_width` and the other
            figures are then those of the first.
        level: of the interval, where it is not that of the plan (looks).
        caution: what a result would say first, None where nothing needs saying.
        refusal: code and problem, where the question would be refused; all figures are then None.
    """

    budget: Budget
    rows: int
    method: str | None = None
    half_width: float | None = None
    noise: float | None = None
    error: float | None = None
    covered: float | None = None
    found: float | None = None
    unbounded: float = 0.0
    each: dict[str, float] = field(default_factory=dict)
    level: float | None = None
    caution: str | None = None
    refusal: str | None = None

    def detectable(self, level: float, power: float = POWER) -> float | None:
        """Return the smallest effect that the interval would tell from none with this power; None if not known."""
        if self.half_width is None or not isfinite(self.half_width):
            return None
        return self.half_width * float(1 + ndtri(power) / ndtri((1 + (self.level or level)) / 2))

    def to_dict(self, level: float) -> dict[str, Any]:
        """Return the figures as JSON-ready facts."""
        facts = asdict(self) | {"budget": self.budget.to_dict(), "half_width": finite(self.half_width)}
        facts["each"] = {name: finite(half) for name, half in self.each.items()}
        budget = {"epsilon": float(self.budget.epsilon), "delta": float(self.budget.delta)}
        return budget | facts | {"detectable": self.detectable(level)}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> PlannedAnswer:
        """Return the answers written by `to_dict`."""
        own = {each.name: facts[each.name] for each in fields(cls) if each.name != "budget"}
        if own["half_width"] is None and own["refusal"] is None:
            own["half_width"] = inf
        own["each"] = {name: inf if half is None else half for name, half in own["each"].items()}
        return cls(Budget.from_dict(facts["budget"]), **own)


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold, None where there is none."""
    # JSON knows no infinity.
    return None if value is None or not isfinite(value) else value


Tell = Callable[[int, int], None]
Draw = Callable[[int, np.random.Generator], People]
# Where the least epsilon and the least number of people are looked for, with how many studies and how closely.
_LEAST_EPSILON, _MOST_EPSILON, _MOST_SEARCHED = 0.01, 50.0, 200_000
SEARCH_DRAWS, _CLOSE = 5, 0.04
Refused = ParameterError | BudgetError | StudyError


@dataclass(slots=True)
class Trial:
    """One budget and size, and what was answered for them so far."""

    budget: Budget
    rows: int
    level: float | None = None  # of its own intervals, where they have one
    answers: list[Answer] = field(default_factory=list)
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
        """Mean half length over studies and effects, infinite where the question is refused.

        Where lengths have long tails or no end, the median over studies.
        """
        if self.refusal is not None:
            return inf
        halves = np.array([one.halves for one in self.answers])
        return float(np.mean(np.median(halves, axis=0) if self.answers[0].skewed else halves))

    def answer(self) -> PlannedAnswer:
        """Return the figures over all studies."""
        if self.refusal is not None:
            problem = f"{self.refusal.code}: {self.refusal.problem}"
            return PlannedAnswer(self.budget, self.rows, level=self.level, refusal=problem)
        known = [one for one in self.answers if one.errors is not None and one.covered is not None]
        errors = np.array([one.errors for one in known], dtype=np.float64)
        return PlannedAnswer(
            self.budget,
            self.rows,
            level=self.level,
            method=self.answers[0].method,
            half_width=self.half,
            noise=_noise(np.array([one.parts for one in self.answers], dtype=np.float64)),
            error=sqrt(float(np.mean(errors**2))) if known and np.isfinite(errors).all() else None,
            covered=sum(float(one.covered or 0.0) for one in known) if known else None,
            found=sum(one.found for one in self.answers),
            unbounded=sum(float(np.mean(np.isinf(one.halves))) for one in self.answers),
            each=self._each(),
            caution=self.answers[0].caution,
        )

    def _each(self) -> dict[str, float]:
        """Return half-widths of effects in units of their own, as `half` is over studies."""
        middle = np.median if self.answers[0].skewed else np.mean
        return {
            name: float(middle([one.each[name] for one in self.answers])) for name in self.answers[0].each
        }


def _noise(parts: Floats) -> float:
    """Return the share of the squared standard error that is noise, over errors that are finite."""
    finite = np.isfinite(parts).all(axis=-1)
    noise, total = parts[finite][:, 0], parts[finite][:, 1]
    return float(np.sum(noise**2) / np.sum(total**2)) if np.any(total > 0) else 1.0


def run(
    cells: list[Trial],
    ask: Ask,
    draw: Draw,
    draws: int,
    seed: int,
    tell: Tell | None,
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
                    cell.run(ask, people, SeededNoise(int(generator.integers(SEEDS))))
            if size == rows:
                found.append(plain(people, SeededNoise(number)))
        refused = [cell.refusal for cell in cells if cell.refusal is not None]
        if len(refused) == len(cells):
            raise refused[0]
        if tell is not None:
            tell(number + 1, draws)
    return float(np.mean(found) if all(map(isfinite, found)) else np.median(found))


# The least epsilon, and the least number of people, for a wanted half-width: bisection, with the same draws throughout.


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
        trial = Trial(budget, rows)
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
