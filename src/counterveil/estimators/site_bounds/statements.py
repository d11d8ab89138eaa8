"""What an answer may say of itself: the facts with which it begins, and what its intervals do not cover.

In come a `SiteQuestion`, a declared study and a site's answer, all public or released; out come bounds which
say that the answer states what its method can state. Facts are values (`counterveil.privacy.caveats`), no
texts; there is nothing numeric here. Every rendering of a pooled result repeats the opening facts before any
number, so that a site must not say others than its method has: for each role, such as "assumptions", the
method and the declared study leave a few facts, one of which an honest answer names. Caveats are those of a
single table, with no text that a site could have chosen.

Why it is right: the method determines its own statements (for example, a randomised study assumes no model),
so that a statement is checked by comparing it with this finite set. It is a check of released words: privacy
does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from counterveil.data.study_documents import is_trial, propensity_of
from counterveil.estimators.site_bounds.site_question import SiteQuestion
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
from counterveil.results.site_bounds import Bound, Breach, Equal, OneOf
from counterveil.settings.methods import BLOCKS

# Nothing, or one of a few facts.
_Facts = tuple[Fact | None, ...]
_SILENT: _Facts = (None,)
_MODELS: _Facts = (*(LinearScores(*flags) for flags in product((False, True), repeat=3)),)
_LEARNERS = ("ols", "aipw")  # the others are functions, which no message carries
_OF_OTHERS = (ParallelTrends, SitesLeftOut, SitesWithoutAnswer, NotExpressed)


def statements(
    question: SiteQuestion, declaration: Mapping[str, Any], answer: Any, *, columns: bool
) -> Iterator[Bound]:
    """Yield that an answer says what its method can say of the declared study; no question trims.

    `columns` says that the answer is about columns, some of which may be clipped.
    """
    allowed = _opening(question, declaration)
    for role in OPENING:
        fact = getattr(answer, role, None)
        if not _assumes_weights(question, declaration, role, fact):
            yield OneOf(role, fact, allowed.get(role, _SILENT), breach=Breach.STATEMENT)
    for caveat in answer.not_covered:
        yield Equal("caveat", _is_public(caveat, columns), True, breach=Breach.STATEMENT)


def _assumes_weights(
    question: SiteQuestion, declaration: Mapping[str, Any], role: str, fact: Fact | None
) -> bool:
    """Return whether a fact says what weights that are made of public columns assume."""
    of_weights = question.unit.treatment_public and question.method in ("auto", "weighting")
    if not of_weights or role != "assumptions":
        return False
    score = propensity_of(declaration)
    return isinstance(fact, LinearIn) if score is None else fact == KnownScore(score)


def _is_public(fact: Fact, columns: bool) -> bool:
    """Return whether a caveat is one of a single table, with no text that a site could have chosen."""
    if isinstance(fact, ClippedOutliers):
        # The names of columns are compared with the declaration.
        return columns
    if isinstance(fact, LearnerBias):
        return fact.learner in _LEARNERS
    if isinstance(fact, OtherFunctions):
        return {*fact.balanced} <= {*BLOCKS}
    return not isinstance(fact, _OF_OTHERS)


def _opening(question: SiteQuestion, declaration: Mapping[str, Any]) -> dict[str, _Facts]:
    """Return the facts that an answer may begin with, by role; it says nothing in a role that is missing."""
    if question.unit.treatment_public:
        return {}
    if question.unit.covariates_public:
        return {"assumptions": _of_pairs(declaration)}
    by_method = _of_records(question, declaration)
    if question.method != "auto":
        return by_method.get(question.method, {})
    allowed: dict[str, _Facts] = {}
    for facts in by_method.values():
        roles = {*allowed, *facts}
        allowed = {role: (*_SILENT, *allowed.get(role, ()), *facts.get(role, ())) for role in roles}
    return allowed


def _of_pairs(declaration: Mapping[str, Any]) -> _Facts:
    """Return what an effect of private pairs may assume: a design, or one of its models."""
    score = propensity_of(declaration)
    if score is not None:
        return (KnownScore(score),)
    return _SILENT if is_trial(declaration) else _MODELS


def _of_records(question: SiteQuestion, declaration: Mapping[str, Any]) -> dict[str, dict[str, _Facts]]:
    """Return what methods for private records say by name: what intervals are for, depend on and assume."""
    trial = is_trial(declaration)
    kappa = question.settings.get("kappa")
    bounded = isinstance(kappa, int | float) and not isinstance(kappa, bool)
    bound = float(kappa or 0.0) if bounded else 0.0
    return {
        "trial": {"interval_target": _SILENT if trial else (Target.CONFOUNDED_DIFFERENCE,)},
        "doubly_robust": {
            "condition": (None, NotAdjusted(bound)) if bounded else _SILENT,
            "assumptions": _SILENT if trial else (None, *_MODELS),
        },
        "sample_and_aggregate": {"assumptions": _SILENT if trial else (None, *FoldModels)},
    }
