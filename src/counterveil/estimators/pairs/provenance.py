"""What answers about private pairs say of themselves: releases, proofs, assumptions, what is not covered.

In: the study and the plan, which names the releases and the part of the budget that each pays. Out: facts of
an answer. Its proof pages are `rows/histogram.proof.md` for the place of outcomes, where one is searched,
`rows/pairs/pair_moments.proof.md` for the vector of models, and `rows/pairs/pair_scores.proof.md` for the
scores. Nothing here reads rows or released numbers, but how many outcomes crowd at the ends of their range.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict, TypeVar

from counterveil.data import Study
from counterveil.data.features import require_covariates
from counterveil.estimators.outcome_place import PLACE_QUANTITIES
from counterveil.estimators.pairs.budget import Choice
from counterveil.estimators.pairs.features import INTERACTIONS, NONLINEAR
from counterveil.privacy.caveats import Caveat, Fact, LinearScores, OutcomesAtEnds
from counterveil.privacy.provenance import BudgetPart, Estimator, Noise, Quantity, ReleaseRow
from counterveil.results.question import Question, design_says
from counterveil.session import Kind, Plan

Asked = TypeVar("Asked", bound=Question)

PAGES = (
    "rows/histogram.proof.md",
    "rows/pairs/pair_moments.proof.md",
    "rows/pairs/pair_scores.proof.md",
)
_QUANTITIES = PLACE_QUANTITIES | {
    "models": Quantity.PAIR_MOMENTS,
    "score": Quantity.PAIR_SCORES,
    "effects": Quantity.FUNCTIONS_OF_SCORES,
}
_NOISES = {Kind.CELLS: Noise.LAPLACE, Kind.NORMAL: Noise.GAUSSIAN, Kind.VECTOR: Noise.BALL}


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
        "method": Estimator.DOUBLY_ROBUST_ON_PUBLIC,
        "releases": _releases(choice.plan),
        "not_covered": tuple(
            ends if ends is not None and caveat is Caveat.CLAMPING else caveat
            for caveat in _not_covered(study)
        ),
        "details": {"rows": len(choice.features.z), "features": len(choice.features.order) - 1} | details,
        "assumptions": design_says(study) if study.unconfounded else LinearScores(False, squares, products),
    }


def _releases(plan: Plan) -> tuple[ReleaseRow, ...]:
    return tuple(
        (_QUANTITIES[name.split()[0]], BudgetPart(share, _NOISES[plan.kind(name)]))
        for name, share in plan.parts.items()
    )


def _not_covered(study: Study) -> tuple[Fact, ...]:
    if study.unconfounded:
        return Caveat.CLAMPING, Caveat.CLIPPED_SCORES
    models = Caveat.UNDECLARED_COVARIATES, Caveat.OTHER_THAN_FEATURES
    return (*models, Caveat.CLAMPING, Caveat.CLIPPED_SCORES, Caveat.COVERAGE_MEASURED)
