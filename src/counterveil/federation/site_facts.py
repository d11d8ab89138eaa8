"""The facts with which an answer may begin: each method has its own, and a site can say no others.

Every rendering of a pooled result repeats them before any number.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from counterveil.federation.messages import Ask
from counterveil.privacy import Unit
from counterveil.privacy.caveats import (
    OPENING,
    ClippedOutliers,
    Fact,
    FoldModels,
    KnownScore,
    LearnerBias,
    LinearIn,
    LinearScores,
    NotAdjusted,
    NotExpressed,
    OtherFunctions,
    ParallelTrends,
    SitesLeftOut,
    SitesWithoutAnswer,
    Target,
)
from counterveil.settings.methods import BLOCKS

# Nothing, or one of a few facts.
_Facts = tuple[Fact | None, ...]
_SILENT: _Facts = (None,)
_LEARNERS = ("ols", "aipw")  # the others are functions, which no message carries
_MODELS: _Facts = (*(LinearScores(*said) for said in product((False, True), repeat=3)),)


def fits(ask: Ask, declaration: Mapping[str, Any], result: Any) -> bool:
    """Return whether a result begins with facts that the method can say of the declared study; no question trims."""
    allowed = _allowed(ask, declaration)
    opening = all(
        getattr(result, name, None) in allowed.get(name, _SILENT)
        or _weighted(ask, declaration, name, getattr(result, name, None))
        for name in OPENING
    )
    return opening and all(_public(one, ask) for one in result.not_covered)


def _weighted(ask: Ask, declaration: Mapping[str, Any], name: str, fact: Fact | None) -> bool:
    """Return whether a fact says what weights that are made of public columns assume."""
    of_weights = Unit(ask.protects).treatment_public and ask.method in ("auto", "weighting")
    if not of_weights or name != "assumptions":
        return False
    score = declaration.get("score")
    return isinstance(fact, LinearIn) if score is None else fact == KnownScore(score)


def _public(fact: Fact, ask: Ask) -> bool:
    """Return whether a caveat is one of a single table, with no text that a site could have chosen."""
    if isinstance(fact, ClippedOutliers):
        # Of columns, whose names are compared with the declaration.
        return ask.question == "moments"
    if isinstance(fact, LearnerBias):
        return fact.learner in _LEARNERS
    if isinstance(fact, OtherFunctions):
        return {*fact.balanced} <= {*BLOCKS}
    return not isinstance(fact, ParallelTrends | SitesLeftOut | SitesWithoutAnswer | NotExpressed)


def _allowed(ask: Ask, declaration: Mapping[str, Any]) -> dict[str, _Facts]:
    if Unit(ask.protects).treatment_public:
        return {}
    if Unit(ask.protects).covariates_public:
        return {"assumptions": _of_pairs(declaration)}
    known = _of_records(ask, declaration)
    if ask.method != "auto":
        return known.get(ask.method, {})
    found: dict[str, _Facts] = {}
    for facts in known.values():
        found = {name: (*_SILENT, *found.get(name, ()), *facts.get(name, ())) for name in {*found, *facts}}
    return found


def _of_pairs(declaration: Mapping[str, Any]) -> _Facts:
    """Return what an effect of private pairs may assume: a design, or one of its models."""
    if declaration.get("score") is not None:
        return (KnownScore(declaration["score"]),)
    return _SILENT if declaration.get("randomised") is True else _MODELS


def _of_records(ask: Ask, declaration: Mapping[str, Any]) -> dict[str, dict[str, _Facts]]:
    """Return what methods for private records say by name: what intervals are for, depend on and assume."""
    is_trial = declaration.get("randomised") is True
    kappa = ask.settings.get("kappa")
    bounded = isinstance(kappa, int | float) and not isinstance(kappa, bool)
    bound = float(kappa or 0.0) if bounded else 0.0
    return {
        "trial": {"interval_target": _SILENT if is_trial else (Target.CONFOUNDED_DIFFERENCE,)},
        "doubly_robust": {
            "condition": (None, NotAdjusted(bound)) if bounded else _SILENT,
            "assumptions": _SILENT if is_trial else (None, *_MODELS),
        },
        "sample_and_aggregate": {"assumptions": _SILENT if is_trial else (None, *FoldModels)},
    }
