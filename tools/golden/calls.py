"""Every call by its name. Names are kept for good: a call that has to be made otherwise keeps its name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from tools.golden.asking import (
    FRONT_DOOR,
    SOURCES,
    Call,
    Given,
    answer,
    answer_asked,
    planned,
    pooled,
    settings,
    with_gaps,
    with_truths,
    with_words,
)
from tools.golden.numbers import POINTS
from tools.golden.settings_calls import settings_calls
from tools.golden.ways import SHARED, TRIAL, TRIALS, Slope, ways

import counterveil as cv

# Rows, epsilon and delta at which every way to ask is asked.
BUDGETS = (("200", "1", "0"), ("200", "8", "1e-6"), ("2000", "8", "1e-6"), ("2000", "20", "0"))
THREE_ARMS = {"arms": (0, 1, 2), "reference": 0, "randomised": True}
OUTCOME, RECORD = {"protects": "outcome"}, {"protects": "record"}
RULE = cv.Policy.where(b=[1])


def calls() -> list[Call]:
    """Return every call; their names differ."""
    found = [*_every_way(), *settings_calls(), *_sources(), *_data(), *_front_doors(), *_arguments()]
    found += [*_queries(), *_pooled(), *_planned()]
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise AssertionError(
            f"two calls have one name: {sorted(n for n in set(names) if names.count(n) > 1)}"
        )
    return found


def _call(name: str, question: str, declared: dict[str, Any], given: Given, **arguments: Any) -> Call:
    return Call(name, question, partial(answer, question, declared, given, **arguments))


def _every_way() -> Iterator[Call]:
    for said, asked in ways().items():
        name = said.replace("t_learner", "arms").replace("r_learner", "interacted")
        for rows, epsilon, delta in BUDGETS:
            given = Given(int(rows), epsilon, delta)
            yield Call(f"way: {name}, {given}", asked.question, partial(answer_asked, asked, given))


def _questions() -> dict[str, tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return what is asked of every kind of source."""
    return {
        "difference in means": ("ate", TRIAL, OUTCOME | {"method": "difference_in_means"}),
        "matching": ("ate", {}, OUTCOME | {"method": "matching"}),
        "weighting": ("ate", {}, OUTCOME | {"method": "weighting"}),
        "contrast": ("ate", TRIAL, RECORD | TRIALS["contrast"]),
        "strata": ("ate", {}, RECORD | {"method": "stratified"}),
        "doubly robust": ("ate", {}, RECORD | {"method": "doubly_robust"}),
        "folds": ("ate", {}, RECORD | {"method": "sample_and_aggregate"}),
        "automatic": ("ate", {}, RECORD | {"method": "auto"}),
        "arms": ("arms", THREE_ARMS, OUTCOME | {"method": "difference_in_means"}),
        "groups": ("groups", SHARED, RECORD | {"by": ["b", "c"]}),
        "policy": ("policy_value", SHARED, RECORD | {"policy": RULE}),
        "curve": ("targeting_curve", SHARED, RECORD | {"model": Slope(), "bins": 4}),
        "effects as a function": ("cate", SHARED, {"method": "arms"}),
        "effects at queries": ("cate", SHARED, {"method": "arms", "queries": POINTS}),
    }


def _sources() -> Iterator[Call]:
    for source in SOURCES:
        for given in (Given(2000, "8", "1e-6", source), Given(200, "20", "0", source)):
            for name, (question, declared, arguments) in _questions().items():
                yield _call(f"source {source}: {name}, {given}", question, declared, given, **arguments)


def _data() -> Iterator[Call]:
    kinds: dict[str, tuple[dict[str, Any], Any]] = {
        "gaps filled": ({"missing": {"a": cv.Fill("0.5")}}, with_gaps),
        "gaps dropped": ({"missing": {"a": cv.Drop()}}, with_gaps),
        "gaps without a rule": ({}, with_gaps),
        "arms as words": ({"treated": "new", "control": "old"}, with_words),
        "undeclared words": ({}, with_words),
        "truths": ({"outcome_range": (0, 1)}, with_truths),
    }
    for source in ("numpy", "pandas", "csv", "duckdb"):
        for kind, (declared, change) in kinds.items():
            given = Given(200, "8", "0", source, change)
            for name, arguments in (("weighting", OUTCOME), ("strata", RECORD | {"method": "stratified"})):
                yield _call(f"data {kind}, {source}: {name}", "ate", declared, given, **arguments)


def _front_doors() -> Iterator[Call]:
    for epsilon, delta in (("1", "0"), ("8", "1e-6")):
        given = Given(2000, epsilon, delta, "pandas", door=FRONT_DOOR)
        for name, (question, declared, arguments) in _questions().items():
            yield _call(f"front door: {name}, epsilon {epsilon}", question, declared, given, **arguments)


def _arguments() -> Iterator[Call]:
    """Yield calls with another noise distribution, level, grouping, price or rule."""
    pure, gaussian = Given(2000, "8"), Given(2000, "8", "1e-6")
    for mechanism, given in (("staircase", pure), ("laplace", pure), ("gaussian", gaussian)):
        for name in ("difference in means", "weighting", "contrast", "doubly robust", "folds", "arms"):
            question, declared, arguments = _questions()[name]
            yield _call(
                f"law {mechanism}: {name}", question, declared, given, mechanism=mechanism, **arguments
            )
        grouped = OUTCOME | {"by": "c", "mechanism": mechanism}
        yield _call(f"law {mechanism}: groups", "groups", TRIAL, given, **grouped)
    for name, (question, declared, arguments) in _questions().items():
        yield _call(f"level 0.8: {name}", question, declared, gaussian, level=0.8, **arguments)
    rules = {
        "a below a half": cv.Policy.where(a=(0, 0.5)),
        "two conditions": cv.Policy.where(a=(0.2, 0.9), c=["p", "r"]),
        "by a model": cv.Policy.from_model(Slope(), threshold=0.4),
    }
    for name, rule in rules.items():
        for cost in (None, "0.25"):
            said = f"policy {name}, cost {cost}"
            yield _call(said, "policy_value", SHARED, gaussian, policy=rule, cost=cost, **RECORD)
    cuts = {"a": ("0.25", "0.5"), "b": None}
    for protects in ("outcome", "record"):
        yield _call(
            f"groups by cut points, {protects}", "groups", SHARED, gaussian, by=cuts, protects=protects
        )
    ranking = RECORD | {"model": Slope(), "thresholds": (0.2, 0.6), "cost": "0.5"}
    yield _call("curve at thresholds", "targeting_curve", SHARED, gaussian, **ranking)


def _queries() -> Iterator[Call]:
    for method in ("auto", "arms", "interacted"):
        for name, declared in (("unknown share", {}), ("known share", SHARED)):
            given = Given(2000, "20", "1e-6")
            said = f"effects at queries: {method}, {name}"
            yield _call(said, "cate", declared, given, method=method, queries=POINTS)


@cache
def _sites(kind: str) -> dict[str, Any]:
    """Return the answers of three sites of different sizes."""
    arguments = {
        "means": OUTCOME | {"method": "difference_in_means"},
        "records": RECORD | TRIALS["contrast"],
    }
    sizes = {"north": 200, "south": 500, "west": 2000}
    return {name: answer("ate", TRIAL, Given(rows, "1"), **arguments[kind]) for name, rows in sizes.items()}


def _pool(kind: str, **arguments: Any) -> Any:
    return pooled(_sites(kind), **arguments)


def _pooled() -> Iterator[Call]:
    limits = {
        "no limits": None,
        "limit 0.4": cv.settings.WeightLimits(0.4),
        "own limit": cv.settings.WeightLimits(0.5, own={"west": 0.6}, min_variance={"north": 0.5}),
    }
    for kind in ("means", "records"):
        for method in ("mvagg", "ivw", "all", "largest", "random_effects"):
            for name, limit in limits.items():
                said = f"pooled {kind}: {method}, {name}"
                yield Call(said, "pool", partial(_pool, kind, method=method, weight_limits=limit))
        yield Call(f"pooled {kind}: level 0.8", "pool", partial(_pool, kind, level=0.8))


def _planned() -> Iterator[Call]:
    few: dict[str, Any] = {"rows": 200, "epsilon": ["1", "8"], "draws": 3}
    observed = {"explained": 0.3, "confounding": 0.5, "effect": 0.5}
    asked: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "trial, outcomes": (TRIAL, few | OUTCOME),
        "trial, records": (SHARED, few | RECORD | TRIALS["contrast"] | {"seed": 3}),
        "trial, Gaussian noise": (TRIAL, few | RECORD | {"delta": "1e-6", "effect": 1.0, "mean": 0.5}),
        "yes or no": (TRIAL, few | OUTCOME | {"binary": True, "method": "difference_in_means"}),
        "observed, weighting": ({}, few | OUTCOME | observed | {"method": "weighting"}),
        "observed, strata": ({}, few | RECORD | observed | {"method": "stratified", "share": 0.3}),
        "observed, matching": (
            {},
            few | OUTCOME | observed | {"method": "matching", "settings": settings("Matching", neighbours=2)},
        ),
        "observed, effect on the treated": (
            {},
            few | OUTCOME | observed | {"estimand": "ATT", "level": 0.9, "sd": 0.7},
        ),
    }
    asked |= _planned_questions(few)
    for name, (declared, arguments) in asked.items():
        yield Call(f"plan: {name}", "plan", partial(planned, declared, **arguments))


def _planned_questions(few: dict[str, Any]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return plans of measures, several outcomes, periods, ratios, regressions and looks."""
    risk = TRIAL | {"outcome_range": (0, 1)}
    metrics = {
        "outcomes": {"y": (0, 5), "a": (0, 1)},
        "covariates": {},
        "randomised": True,
        "baseline": {"y": "b"},
    }
    moments: dict[str, Any] = few | RECORD | {"delta": "1e-6", "rows": 2000}
    return {
        "ratio, outcomes": (risk, few | OUTCOME | {"measure": "ratio", "mean": 0.2, "effect": 0.1}),
        "odds ratio, records": (risk, few | RECORD | {"measure": "odds_ratio", "mean": 0.2}),
        "several outcomes": (metrics, few | OUTCOME | {"question": "outcomes", "mean": {"a": 0.2}}),
        "looks": (risk, few | OUTCOME | {"question": "interim", "rows": [100, 200], "spending": "pocock"}),
        "moments": (TRIAL, moments | {"question": "moments", "formula": "y ~ t + a"}),
        "compliers": (TRIAL, moments | {"question": "compliance", "received": "b", "effect": 0.5}),
    }
