"""A plan of a question: studies are made up from declarations and assumptions, and asked at every epsilon and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from counterveil.data import Study, check_study
from counterveil.data.time_to_event import refuse_censored
from counterveil.privacy import Budget, Estimand, Number, Unit
from counterveil.questions import interim
from counterveil.questions.plan.asked import Ask, asked, check_options
from counterveil.questions.plan.assumptions import (
    Assumptions,
    Summaries,
    assumed_of,
    check_numbers,
    lost_share,
    out_of_range,
)
from counterveil.questions.plan.person_numbers import at_the_horizon, people_of_question
from counterveil.questions.plan.plan import Plan
from counterveil.questions.plan.public_sample import PublicSample
from counterveil.questions.plan.simulated_study import People
from counterveil.questions.plan.simulated_study import half_width as least_squares
from counterveil.questions.plan.trials import SEARCH_DRAWS, Draw, Search, Tell, Trial, run
from counterveil.results.effect import check_level
from counterveil.results.measure_words import DIFFERENCE
from counterveil.results.question import refuse_clusters, usual_estimand
from counterveil.session import SeededNoise

ByOutcome = float | Mapping[str, float] | None
# An epsilon that leaves hardly any noise, for questions that least squares does not answer.
_HARDLY_ANY = 100


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
    measure: str = DIFFERENCE,
    importance: Mapping[str, Number] | None = None,
    formula: str | None = None,
    received: str | None = None,
    spending: str = "obrien_fleming",
    mean: ByOutcome = None,
    sd: ByOutcome = None,
    effect: float | Mapping[str, float] = 0.0,
    explained: float | None = None,
    confounding: float | None = None,
    share: float | None = None,
    binary: bool | Mapping[str, bool] | None = None,
    correlation: float | Sequence[Sequence[float]] | None = None,
    covariates: Summaries | None = None,
    lost: float | None = None,
    together: float | None = None,
    denominator: Sequence[float] | None = None,
    complying: float | None = None,
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
        question: "ate", "arms", "outcomes", "groups" (with `by`), "event_study", "cate", "policy_value" (with
            `policy`), "survival" (`mean` and `effect` are those of being free of the event at the horizon), "moments"
            (with `formula`: the coefficient of the treatment), "compliance" (with `received`: the effect on compliers)
            or "interim" (`rows` are those of planned looks, epsilon that of all looks together).
        by: groups, as for `counterveil.groups`.
        policy: as for `counterveil.policy_value`.
        measure: as for `counterveil.ate`; half-widths are then those of the ratio.
        importance: as for `counterveil.outcomes`.
        formula: a regression, "y ~ treat + age", whose moments are released.
        received: the covariate that says who received the treatment.
        spending: as for `counterveil.interim.planned`.
        mean: assumed mean outcome without treatment; None takes the middle of the range.
        sd: assumed standard deviation of outcomes; None takes a sixth of the range.
        effect: assumed effect, in units of the outcome; of a numerator where there is per=. Of several outcomes, mean,
            sd, effect and binary are given by name: {"death": 0.2, "days": 30}.
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
        together: assumed correlation, within an arm, of any two outcomes of a person, of an outcome with the same
            number before (earlier=), or of a numerator with its denominator; None takes 0.5. It is not below
            `explained`; of binary outcomes it is that of the normal numbers behind them.
        denominator: assumed mean and standard deviation of denominators (per=); None takes those of a bell.
        complying: assumed share of people who receive what they are assigned; None takes 0.7.
        sample: a public sample with the columns of the study, which takes the place of all assumptions above.
        half_width: a wanted half-width; the least epsilon and the least number of people for it are searched.
        draws: number of simulated studies.
        seed: seed of the simulation.
        tell: called with the number of simulated studies done and to do.
    """
    return _plan(**locals())


# The arguments of `plan` that say how the question is asked, and those that describe the people.
_ASKED = (
    *("method", "estimand", "level", "mechanism", "settings", "by", "policy", "protects"),
    *("measure", "importance", "formula", "received", "spending"),
)
_ASSUMED = (
    *("mean", "sd", "effect", "explained", "confounding", "share", "binary", "correlation", "covariates"),
)
_FURTHER = ("together", "denominator", "complying", "received")


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
    check_study(study)
    refuse_censored(study.event, question)
    refuse_clusters(study, "plan", more["method"], Unit.parse(more["protects"]))
    sizes = list(rows) if isinstance(rows, Sequence) else [rows]
    check_numbers(sizes, draws, seed, half_width)
    chosen, study = study, study.changed(where=None)  # people are planned for that belong to it
    _refuse_unplanned(study, question, sample, {name: more[name] for name in _ASKED})
    more["estimand"] = usual_estimand(study, more["estimand"]).value
    target, unit = Estimand(more["estimand"]), Unit.parse(more["protects"])
    ask, searched = asked(question, study, {name: more[name] for name in _ASKED}, target, sizes)
    assumed, draw = _people(study, chosen, sample, question, more)
    budgets = _budgets(more["epsilon"], more["delta"], max(sizes))
    first = sizes[-1] if question == "interim" else sizes[0]
    by_least_squares = question in _BY_LEAST_SQUARES and more["measure"] == DIFFERENCE and study.per is None
    noiseless = Budget(_HARDLY_ANY, more["delta"])
    plain = partial(_least_squares, level) if by_least_squares else partial(_plain, searched, noiseless)
    levels = _levels(study, question, sizes, budgets[0], more)
    cells = [Trial(budget, size, levels.get(size)) for size in sizes for budget in budgets]
    free = run(cells, ask, draw, draws, seed, tell, plain, first)
    search = Search(searched, draw, seed, min(draws, SEARCH_DRAWS), budgets, half_width)
    return Plan(
        question=question,
        treatment=study.treatment,
        outcome=study.outcome_name,
        estimand=target,
        protects=unit,
        rows=first,
        draws=draws,
        level=level,
        assumed=assumed,
        without_privacy=free,
        answers=tuple(cell.answer() for cell in cells),
        wanted=half_width,
        least_epsilon=search.epsilon(first),
        least_rows=search.rows(first),
        measure=more["measure"],
        by_least_squares=by_least_squares,
        skewed=any(one.skewed for cell in cells for one in cell.answers[:1]),
    )


# Questions whose half-width is shown beside that of least squares; the others beside their own with hardly any noise.
_BY_LEAST_SQUARES = ("ate", "arms", "groups", "cate", "policy_value", "survival")


def _least_squares(level: float, people: People, _noise: SeededNoise) -> float:
    return least_squares(people, level)


def _plain(ask: Ask, budget: Budget, people: People, noise: SeededNoise) -> float:
    """Return the half-width that the question would have with a budget that leaves hardly any noise."""
    trial = Trial(budget, len(people.outcome))
    trial.run(ask, people, noise)
    return trial.half


def _people(
    study: Study, declared: Study, sample: Any, question: str, more: Mapping[str, Any]
) -> tuple[Assumptions, Draw]:
    """Return what is assumed of people, and what makes them up."""
    if sample is not None:
        known = PublicSample.of(sample, declared)
        found = Assumptions.of(study)
        found = replace(found, effect=known.effect, share=known.share, binary=known.binary)
        return replace(found, sample=known.rows), known.people
    others = {name: kind for name, kind in study.covariates.items() if name != more["received"]}
    assumed = assumed_of(
        at_the_horizon(study.changed(covariates=others)),
        {name: more[name] for name in _ASSUMED},
        **{name: more[name] for name in _FURTHER},
    )
    assumed = replace(assumed, lost=lost_share(study, more["lost"]))
    return assumed, partial(people_of_question, study, assumed, question == "event_study", more["received"])


def _levels(
    study: Study, question: str, sizes: list[int], budget: Budget, more: Mapping[str, Any]
) -> dict[int, float]:
    """Return the level of the interval at each look, empty for other questions."""
    if question != "interim":
        return {}
    spent: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta}
    terms = {"level": more["level"], "spending": more["spending"]}
    looks = interim.planned(study.outcome, sizes, **spent, **terms).planned
    return {size: float(1 - look.alpha) for size, look in zip(sizes, looks, strict=True)}


def _refuse_unplanned(study: Study, question: str, sample: Any, options: Mapping[str, Any]) -> None:
    """Raise CV-P700 for what no people are made up of, and CV-P701 for options of other questions."""
    check_options(question, options)
    if sample is None:
        return
    single = study.event is None and study.several is None and study.per is None
    if not single or question in ("event_study", "compliance"):
        raise out_of_range(
            "sample", "no sample: people with several numbers are planned from assumptions", sample
        )


def _budgets(epsilon: Number | Sequence[Number], delta: Number, most_rows: int) -> list[Budget]:
    several = epsilon if isinstance(epsilon, Sequence) and not isinstance(epsilon, str) else [epsilon]
    budgets = [Budget(one, delta) for one in several]
    budgets[0].check_rows(most_rows)
    return budgets
