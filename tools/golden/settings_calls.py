"""Calls with every class of settings at other values than the usual ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from sklearn.linear_model import LinearRegression, LogisticRegression
from tools.golden.asking import Call, Given, answer, published, settings
from tools.golden.numbers import POINTS
from tools.golden.ways import PLAIN, QUICK, SHARED, Slope

import counterveil as cv

OUTCOME, RECORD = {"protects": "outcome"}, {"protects": "record"}
THREE_ARMS = {"arms": (0, 1, 2), "reference": 0, "randomised": True}
USUAL = (Given(200, "8"), Given(2000, "20", "1e-6"))
SMALL = (Given(200, "8", "1e-6"),)
Values = dict[str, dict[str, Any]]
# The covariates of the simulated people as features: a, b, and c as two flags.
LEARNERS = cv.settings.ModelPair(LinearRegression(), LogisticRegression())


def mean_difference(_: Any, t: Any, y: Any) -> float:
    """Return the difference of two means: a learner of one's own."""
    return float(y[t == 1].mean() - y[t == 0].mean())


def settings_calls() -> Iterator[Call]:
    """Yield the calls of every class of settings."""
    yield from _outcome_level()
    yield from _record_level()
    yield from _folds()
    yield from _questions()
    yield from _functions()
    yield from _published()


def _calls(
    name: str,
    values: Values,
    question: str,
    declared: dict[str, Any],
    givens: tuple[Given, ...] = USUAL,
    **arguments: Any,
) -> Iterator[Call]:
    """Yield a call for each of the values of a class of settings and each budget."""
    for said, fields in values.items():
        chosen = settings(name, **fields)
        for given in givens:
            ask = partial(answer, question, declared, given, settings=chosen, **arguments)
            kind = " ".join(arguments[key] for key in ("method", "protects") if key in arguments)
            yield Call(f"settings {name} of {question}, {kind}: {said}, {given}", question, ask)


_MATCHING: Values = {
    "one neighbour": {"neighbours": 1},
    "three neighbours, published limit": {"neighbours": 3, "limit": "adaptive"},
    "limit 2": {"limit": 2},
    "no limit": {"limit": None},
    "coefficient": {"limit": "adaptive", "c": 0.2},
    "variance by row": {"variance_by": "row"},
}
_MEANS: Values = {
    "a tenth for the variance": {"variance_share": "0.1"},
    "nothing for the variance": {"variance_share": 0},
}
_WEIGHTING: Values = {
    "covariates alone": {"features": ("covariates",)},
    "strata": {"features": ("covariates", "strata")},
    "signal and residual": {"signal": 0.05, "residual": 0.3},
    "arms that are not alike": {"arm_correlation": 0},
    "variance by row": {"variance_by": "row"},
    "a tenth for the variance": {"variance_share": "0.1"},
    "nothing for the variance": {"variance_share": 0},
    "prediction": {"prediction": "a", "residual_range": (-4, 5)},
}
_ARMS: Values = {
    "two neighbours": {"neighbours": 2},
    "no allowance for bias": {"bias": 0},
}


def _outcome_level() -> Iterator[Call]:
    yield from _calls("Matching", _MATCHING, "ate", {}, method="matching", **OUTCOME)
    yield from _calls("Weighting", _WEIGHTING, "ate", {}, method="weighting", **OUTCOME)
    yield from _calls("DifferenceInMeans", _MEANS, "ate", {}, method="difference_in_means", **OUTCOME)
    for method in ("weighting", "matching"):
        yield from _calls("Arms", _ARMS, "arms", THREE_ARMS, method=method, **OUTCOME)
    strata: Values = {
        "two covariates": {"strata": ("b", "c")},
        "limit 3": {"limit": 3},
    }
    yield from _calls("Stratified", strata, "ate", {}, method="stratified", **OUTCOME)
    matched: Values = {"two neighbours": {"neighbours": 2}}
    weighted: Values = {"variance by row": {"variance_by": "row"}}
    yield from _calls("Matching", matched, "groups", {}, method="matching", by="b", **OUTCOME)
    yield from _calls("Weighting", weighted, "groups", {}, method="weighting", by="b", **OUTCOME)


_RECORD: dict[str, tuple[str, Values]] = {
    "DoublyRobust": (
        "doubly_robust",
        {
            "degree 2": {"degree": 2},
            "linear": {"degree": 1},
            "unadjusted": {"kappa": 0.2},
        },
    ),
    "Stratified": (
        "stratified",
        {
            "two covariates": {"strata": ("b", "c")},
            "limit 3": {"limit": 3},
        },
    ),
    "Auto": ("auto", {"bound 0.1": {"kappa": 0.1}, "bound 0.5": {"kappa": 0.5}}),
}


def _record_level() -> Iterator[Call]:
    for name, (method, values) in _RECORD.items():
        yield from _calls(name, values, "ate", {}, method=method, **RECORD)
    bought: Values = {"cut points": {"cuts": {"a": 4}}, "more cut points": {"cuts": {"a": 8}, "limit": 6}}
    yield from _calls("Stratified", bought, "ate", PLAIN, method="stratified", **RECORD)
    poor = (Given(200, "1"),)
    bounds: Values = {"bound 0.1": {"kappa": 0.1}, "bound 0.5": {"kappa": 0.5}}
    yield from _calls("Auto", bounds, "ate", {}, poor, method="auto", **RECORD)
    unadjusted: Values = {"unadjusted": {"kappa": 0.2}}
    yield from _calls("DoublyRobust", unadjusted, "ate", {}, poor, method="doubly_robust", **RECORD)


def _folds() -> Iterator[Call]:
    folds: Values = {
        "doubly robust": {"learner": "aipw", "folds": 10},
        "eight folds": {"folds": 8},
        "bound": {"bound": 3},
        "two learners": {"learner": LEARNERS, "folds": 6},
        "own function": {"learner": mean_difference, "bound": "2.5"},
    }
    yield from _calls("Fold", folds, "ate", {}, method="sample_and_aggregate", **RECORD)


def _questions() -> Iterator[Call]:
    values: Values = {
        "clip": {"clip": 3.0},
        "wide clip": {"clip": 6.0},
    }
    asked: dict[str, dict[str, Any]] = {
        "groups": {"by": ["b"]},
        "policy_value": {"policy": cv.Policy.where(b=[1])},
        "targeting_curve": {"model": Slope(), "bins": 3},
    }
    for question, arguments in asked.items():
        yield from _calls("Groups", values, question, {}, method="adjusted", **RECORD, **arguments)
        method = "arms" if question == "groups" else "scores"
        yield from _calls("Groups", values, question, SHARED, SMALL, method=method, **RECORD, **arguments)


def _functions() -> Iterator[Call]:
    shapes: Values = {
        "degree 2": {"degree": 2},
        "cosines": {"basis": "cosine", "degree": 2, "products": False},
        "splines": {"basis": "spline", "knots": 2},
        "products": {"products": True},
    }
    for method in ("arms", "interacted"):
        yield from _calls("Cate", shapes, "cate", {}, method=method)
        yield from _calls("Cate", shapes, "cate", SHARED, SMALL, method=method)


def _published() -> Iterator[Call]:
    forms: dict[str, tuple[str, dict[str, str], Values]] = {
        "Matching": ("matching", OUTCOME, {key: _MATCHING[key] for key in ("one neighbour", "coefficient")}),
    }
    for name, (method, level, values) in forms.items():
        said = {f"published form, {key}": fields for key, fields in values.items()}
        yield from _calls(name, said, "ate", {}, method=method, **published(**level))
    yield from _published_functions()


def _published_functions() -> Iterator[Call]:
    stages: Values = {
        "both robust": {"learner": "DR"},
    }
    kernel: Values = stages | {
        "bandwidth": {"bandwidth": 0.5, "penalty_meaning": "alpha"},
        "one after another": {"algorithm": "iterative"},
        "as printed": {"algorithm": "iterative_printed"},
    }
    influence: Values = stages | {
        "straight line": {"effect": "linear"},
        "short search": {"effect": "linear", "starts": 3, "points": 500},
    }
    for name, method, values in (("Kernel", "kernel", kernel), ("Influence", "influence", influence)):
        said = {key: QUICK | fields for key, fields in values.items()}
        yield from _calls(name, said, "cate", {}, SMALL, method=method, queries=POINTS, **published())
        networks: Values = {"networks": {}}
        yield from _calls(name, networks, "cate", {}, SMALL, method=method, queries=POINTS, **published())
