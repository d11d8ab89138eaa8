"""Planned beside actual half-widths of measures, several outcomes, periods, ratios, survival, regressions and looks.

People are those of other experiments, or drawn here, with shapes that plans do not have: skewed counts, Weibull times,
person effects. A planner knows public summaries: means, standard deviations, shares, correlations, dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any

import numpy as np

import counterveil as cv
from experiments.measures.outcomes import trial as many_metrics
from experiments.measures.ratios import trial as risks
from experiments.regressions.designs import Design, ancova, compliers
from experiments.survival.designs import Trial

# Seeds that no other table of plans uses.
FIRST = 70_000
Halves = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A study, how its people are drawn, how it is asked, and what a planner says of it."""

    name: str
    study: cv.Study
    rows: int | list[int]
    draw: Callable[[int], Any]
    ask: Callable[..., Halves]
    planned: dict[str, Any]
    budgets: tuple[tuple[str, dict[str, Any]], ...]


OUTCOME = (("outcome", {"epsilon": 0.5}), ("outcome", {"epsilon": 4}))
RECORD = (("record", {"epsilon": 1}), ("record", {"epsilon": 4}))
GAUSSIAN = (("record", {"epsilon": 1, "delta": "1e-6"}), ("record", {"epsilon": 4, "delta": "1e-6"}))


def _length(ends: tuple[float, float]) -> float:
    return (ends[1] - ends[0]) / 2


def measures() -> Iterator[Case]:
    """Yield risk ratios and odds ratios of trials."""
    study = cv.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial())
    for measure, risk, share in (("ratio", 0.1, 0.2), ("odds_ratio", 0.5, 0.5), ("ratio", 0.02, 0.5)):

        def ask(data: Any, measure: str = measure, **given: Any) -> Halves:
            return {"": _length(cv.ate(data, study, measure=measure, **given).interval())}

        yield Case(
            f"{measure}, risk {risk}",
            study,
            5000,
            lambda seed, risk=risk, share=share: risks(seed, 5000, risk, share),
            ask,
            {"measure": measure, "mean": risk, "effect": 0.3 * risk, "share": share},
            OUTCOME + RECORD,
        )


def outcomes() -> Iterator[Case]:
    """Yield five metrics, every second one 0 or 1."""
    names = [f"y{place}" for place in range(5)]
    study = cv.Study("t", outcome=cv.Outcomes(dict.fromkeys(names, (0, 1))), assignment=cv.Trial())

    def ask(data: Any, **given: Any) -> Halves:
        found = cv.outcomes(data, study, **given)
        return {f", {one.name}": _length(one.interval()) for one in found.table[:2]}

    numbers = names[::2]
    planned = {
        "question": "outcomes",
        "mean": {name: 0.4 if name in numbers else 0.2 for name in names},
        "sd": {name: 0.25 / sqrt(12) for name in numbers},
        "effect": dict.fromkeys(names, 0.05),
        "binary": {name: name not in numbers for name in names},
        "together": 0.8,
    }
    yield Case(
        "five outcomes", study, 4000, lambda seed: many_metrics(seed, 5, 0.8), ask, planned, OUTCOME + RECORD
    )


def survival() -> Iterator[Case]:
    """Yield Weibull times with exponential dropout."""
    for rows, censored in ((500, 0.3), (2000, 0.6)):
        design = Trial(rows, censored)

        def ask(data: Any, design: Trial = design, **given: Any) -> Halves:
            found = cv.survival(data, design.study(), **given)
            mean = found.restricted_mean_difference
            return {
                ", at the horizon": _length(found.difference().interval()),
                ", means": _length(mean.interval()),
            }

        planned = {"question": "survival", "mean": design.left, "effect": design.gap}
        planned["lost"] = 1 - exp(-design.lost_rate())
        yield Case(
            f"survival, {censored:.0%} censored",
            design.study(),
            rows,
            design.draw,
            ask,
            planned,
            OUTCOME + RECORD,
        )


def regressions() -> Iterator[Case]:
    """Yield an analysis of covariance and a trial whose people do not all comply."""
    plain, some = ancova(0.0), compliers(0.5)

    def adjusted(data: Any, **given: Any) -> Halves:
        fit = cv.moments(data, plain.study, **given).regress(plain.formula)
        return {"": _length(fit.coefficient("t").interval())}

    # Before: mean 20, standard deviation 10; sites explain 0.64; errors 25: 65 of 90 explained.
    planned = {"question": "moments", "formula": plain.formula, "mean": 21.8, "sd": 9.5, "effect": 3.0}
    planned |= {"explained": 0.72, "share": 1 / 3, "covariates": {"before": (20, 10)}, "correlation": 0.0}
    sites = {"site": {"n": 0.5, "s": 0.3, "w": 0.2}}
    planned["covariates"] |= sites
    yield Case("ANCOVA", plain.study, 10_000, _rows_of(plain), adjusted, planned, GAUSSIAN)

    def complied(data: Any, **given: Any) -> Halves:
        found = cv.moments(data, some.study, outcomes=["d"], **given)
        return {"": _length(found.compliance("d", controls=["x0", "x1", "x2"]).complier_effect.interval())}

    # Outcomes without receipt: variances 0.34 of covariates, 0.19 of what is hidden, 0.49 of errors.
    known = {
        "question": "compliance",
        "received": "d",
        "complying": 0.5,
        "mean": 1.0,
        "sd": 1.01,
        "effect": 0.5,
    }
    known |= {"explained": 0.33, "correlation": 0.0, "covariates": {f"x{k}": (0, 1) for k in range(3)}}
    yield Case("compliers", some.study, 10_000, _rows_of(some), complied, known, GAUSSIAN)


def _rows_of(design: Design) -> Callable[[int], Any]:
    return lambda seed: design.draw(10_000, np.random.default_rng(seed))


def looks() -> Iterator[Case]:
    """Yield three looks at binary outcomes, each by itself."""
    study, rows = cv.Study("arm", cv.Outcome("y", (0, 1)), assignment=cv.Trial()), [400, 800, 2000]

    def draw(seed: int) -> Any:
        arm = np.arange(rows[-1]) % 2
        chance = np.random.default_rng(seed).random(rows[-1])
        return {"arm": arm, "y": (chance < 0.3 + 0.1 * arm).astype(float)}

    def ask(data: Any, epsilon: float, noise: Any, **given: Any) -> Halves:
        found = {}
        plan = cv.interim.planned("y", rows, epsilon=epsilon)
        with cv.open_ledger(":memory:", create=True) as book:
            book.register(
                "trial",
                cv.Budget(epsilon),
                access_policy=cv.drafting.AccessPolicy(public=["arm"], looks=plan),
            )
            for number, size in enumerate(rows, 1):
                part = {name: values[:size] for name, values in data.items()}
                seen = cv.interim.look(part, study, number=number, ledger=book, noise=noise, **given)
                found[f", look {number}"] = _length(seen.interval())
        return found

    planned = {"question": "interim", "mean": 0.3, "effect": 0.1}
    yield Case("looks", study, rows, draw, ask, planned, OUTCOME + RECORD)


def ratios() -> Iterator[Case]:
    """Yield clicks per session: skewed sessions, clicks by session."""
    study = cv.Study(
        "t",
        outcome=cv.Ratio("clicks", (0, 60), "sessions", (1, 40)),
        assignment=cv.Trial(),
    )

    def draw(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        arm = np.arange(4000) % 2
        sessions = np.clip(1 + rng.negative_binomial(2, 0.2, 4000), 1, 40)
        clicks = np.clip(rng.poisson(sessions * (0.8 + 0.05 * arm) * rng.gamma(4, 0.25, 4000)), 0, 60)
        return {"t": arm, "sessions": sessions, "clicks": clicks}

    def ask(data: Any, **given: Any) -> Halves:
        return {"": _length(cv.ate(data, study, **given).interval())}

    # Sessions: mean 9, variance 40; clicks: mean 7.2, variance 0.64 * 40 + 7.2 + 0.64 * 121 / 4.
    planned = {"mean": 7.2, "sd": 7.2, "effect": 0.45, "denominator": (9, 6.3), "together": 0.7}
    yield Case("clicks per session", study, 4000, draw, ask, planned, OUTCOME + RECORD)


def periods() -> Iterator[Case]:
    """Yield four periods of people with levels of their own."""
    study = cv.Study("t", outcome=cv.Change("y3", (0, 20), before=["y0", "y1", "y2"]), assignment=cv.Trial())

    def draw(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        arm, own = np.arange(3000) % 2, rng.gamma(9, 1.0, 3000)
        found = {f"y{place}": np.clip(own + rng.normal(0, 1.5, 3000), 0, 20) for place in range(4)}
        return {"t": arm} | found | {"y3": np.clip(found["y3"] + 0.5 * arm, 0, 20)}

    def ask(data: Any, **given: Any) -> Halves:
        found = cv.event_study(data, study, **given).table
        return {"": float(np.mean([_length(one.interval()) for one in found]))}

    planned = {"question": "event_study", "mean": 0.0, "sd": 1.5 * sqrt(2), "effect": 0.5}
    yield Case("event study", study, 3000, draw, ask, planned, OUTCOME + RECORD)


KINDS = (measures, outcomes, survival, regressions, looks, ratios, periods)


def compared(draws: int, only: list[str] | None) -> Iterator[tuple[str, str, str, float, float]]:
    """Yield case, what is protected, epsilon, and the actual and the planned half-width of each cell."""
    for case in (case for kind in KINDS for case in kind()):
        if only and not any(word.lower() in case.name.lower() for word in only):
            continue
        for protects, budget in case.budgets:
            asked = {"protects": protects, **budget}
            seeds = range(FIRST, FIRST + draws)
            found = [case.ask(case.draw(seed), noise=cv.SeededNoise(seed), **asked) for seed in seeds]
            plan = cv.plan(case.study, rows=case.rows, draws=draws, seed=1, **asked, **case.planned)
            # Where lengths have long tails, plans have their median.
            middle = np.median if plan.skewed else np.mean
            actual = {name: float(middle([one[name] for one in found])) for name in found[0]}
            first = plan.answers[0]
            halves = (
                [one.half_width for one in plan.answers]
                if len(plan.answers) > 1
                else list(first.each.values())
            )
            for (name, width), half in zip(actual.items(), halves or [first.half_width], strict=False):
                assert half is not None
                yield f"{case.name}{name}", protects, f"{budget['epsilon']:g}", width, half
