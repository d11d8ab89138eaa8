"""What every answer about private pairs says of itself: releases, proofs, assumptions, what it does not cover."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict, TypeVar

from counterveil.data import Study
from counterveil.data.features import require_covariates
from counterveil.estimators.outcome_place import PLACE_WORDS
from counterveil.estimators.pairs.budget import Choice
from counterveil.estimators.pairs.features import INTERACTIONS, NONLINEAR
from counterveil.privacy.caveats import Caveat, Fact, LinearScores, OutcomesAtEnds
from counterveil.results.question import Question, design_says
from counterveil.session import Kind, Plan

Asked = TypeVar("Asked", bound=Question)

PAGES = (
    "rows/histogram.proof.md",
    "rows/pairs/pair_moments.proof.md",
    "rows/pairs/pair_scores.proof.md",
)
_WORDS = PLACE_WORDS | {
    "models": "sums of features with treatment and with outcomes of both arms",
    "score": "sums of scores and of their squares",
    "effects": "sums of functions of covariates with scores, and of squared scores",
}
_NOISES = {Kind.CELLS: "Laplace", Kind.NORMAL: "Gaussian", Kind.VECTOR: "l2-ball"}


class Proved(TypedDict):
    """The proof pages of a plan's bounds, and its mechanisms of noise."""

    pages: tuple[str, ...]
    mechanisms: tuple[str, ...]


def with_covariates(study: Study, question: Asked) -> Asked:
    """Return the question with its noise; raises CV-S051 where there is nothing to adjust for."""
    if study.randomised is not True:
        require_covariates(study, question.method)
    return replace(question, mechanism="laplace")


def proved(choice: Choice) -> Proved:
    """Return where the guarantee of a plan is proved: bounds of what it releases, and its noise."""
    pure = choice.plan.kind("models") is Kind.VECTOR
    laplace = ("laplace",) if Kind.CELLS in dict(choice.plan.kinds).values() else ()
    return {
        # Two releases are models and score alone: no place is searched.
        "pages": PAGES if len(choice.plan.parts) > 2 else PAGES[1:],
        "mechanisms": ("ball" if pure else "gaussian", *laplace),
    }


def provenance(
    study: Study,
    choice: Choice,
    details: dict[str, float | str],
    ends: OutcomesAtEnds | None = None,
) -> dict[str, Any]:
    """Return what every answer of this level says of itself; `ends` is how many outcomes crowd at those of ranges."""
    squares, products = (bool((choice.features.order == order).any()) for order in (NONLINEAR, INTERACTIONS))
    return {
        "method": "doubly robust score with public covariates",
        "releases": _releases(choice.plan),
        "not_covered": tuple(
            ends if ends is not None and caveat is Caveat.CLAMPING else caveat
            for caveat in _not_covered(study)
        ),
        "details": {"rows": len(choice.features.z), "features": len(choice.features.order) - 1} | details,
        "assumptions": design_says(study) if study.unconfounded else LinearScores(False, squares, products),
    }


def _releases(plan: Plan) -> tuple[tuple[str, str], ...]:
    return tuple(
        (_WORDS[name.split()[0]], f"{share:.3g} of the budget; {_NOISES[plan.kind(name)]} noise")
        for name, share in plan.parts.items()
    )


def _not_covered(study: Study) -> tuple[Fact, ...]:
    if study.unconfounded:
        return Caveat.CLAMPING, Caveat.CLIPPED_SCORES
    models = Caveat.UNDECLARED_COVARIATES, Caveat.OTHER_THAN_FEATURES
    return (*models, Caveat.CLAMPING, Caveat.CLIPPED_SCORES, Caveat.COVERAGE_MEASURED)
