"""What answers adjusted by moments by arm share: features and budget, refusals and stated facts.

In come public numbers (study, rows, budget), out come the features and the split of the budget that the
shortest interval is expected from, the refusals where none is affordable, and the facts that every such
answer states: its releases with their parts of the budget, caveats and assumptions. No row and no released
number is read.

What is released is private by the pages in `PAGES`: `rows/moments/arm_grams.proof.md` and
`rows/moments/arm_statistics.proof.md` (second moments and products by arm),
`rows/moments/orthogonal_score.proof.md` (residuals and scores) and `rows/histogram.proof.md` (counts).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from counterveil.data import Study
from counterveil.data.features import feature_map, feature_sets
from counterveil.errors import CounterveilError, refusal
from counterveil.estimators.moments.adjustment_budget import MAX_GRAM_ENTRIES, Design, fewest_rows
from counterveil.estimators.moments.arm_chain import ArmDesign, Spending, arms_affordable, shortest
from counterveil.numerics.products import FeatureMap
from counterveil.privacy.caveats import Caveat, LinearScores, OutcomesAtEnds
from counterveil.privacy.provenance import BudgetPart, Estimator, Noise, Quantity, ReleaseRow
from counterveil.results.question import Question
from counterveil.rows.moments.arm_grams import arms_of
from counterveil.rows.public import PublicData
from counterveil.settings import DoublyRobust

PAGES = (
    "rows/moments/arm_grams.proof.md",
    "rows/moments/arm_statistics.proof.md",
    "rows/moments/orthogonal_score.proof.md",
    "rows/histogram.proof.md",
)
# What is released, by the names of the chain.
_RELEASES = {
    "centre": Quantity.CENTRES_OF_NUMBERS,
    "features": Quantity.CENTRES_OF_FEATURES,
    "place 1": Quantity.OUTCOME_HISTOGRAM,
    "place 2": Quantity.FULL_CELL_HISTOGRAM,
    "norms": Quantity.ROW_LENGTHS,
    "gram": Quantity.ARM_GRAMS,
    "residual 1": Quantity.ARM_RESIDUAL_MOMENTS,
    "residual 2": Quantity.ARM_RESIDUAL_MOMENTS,
    "sizes": Quantity.SCORE_SIZES,
    "score": Quantity.DOUBLY_ROBUST_SCORE,
}
_RELEASES_OF_MEANS = {"sizes": Quantity.WEIGHTED_RESIDUAL_SIZES, "score": Quantity.WEIGHTED_RESIDUALS}


def adjustment(public: PublicData, question: Question, settings: DoublyRobust) -> Spending:
    """Return the features and the public numbers of the shortest interval that is expected.

    Pure noise is compared too where the mechanism was left to the library: it keeps the guarantee for every
    delta.
    """
    study = public.study
    feature_maps = (
        feature_sets(study) if settings.degree == "auto" else (feature_map(study, int(settings.degree)),)
    )
    mechanisms = dict.fromkeys((question.mechanism, *(["staircase"] if question.open_noise else [])))
    return shortest(feature_maps, public.rows, question.budget, tuple(mechanisms), arms=arms_of(study))


def chain_of(study: Study, design: Design, *, means: bool = False) -> ArmDesign:
    """Return the public numbers of a chain: of the effect, or of the means of all arms."""
    # Outcomes from 0 to 1 are events, which may be so rare that noise hides them.
    low, high = study.outcome_range
    return ArmDesign(design, searched=low != 0 or high != 1, means=means)


def mechanisms_of(design: Design) -> tuple[str, ...]:
    """Return the mechanisms of a chain's noise."""
    return ("ball", "laplace") if design.pure else ("gaussian",)


def adjusted_facts(
    study: Study,
    features: FeatureMap,
    chain: ArmDesign,
    *,
    inverse: bool = True,
    ends: OutcomesAtEnds | None = None,
) -> dict[str, Any]:
    """Return what every adjusted answer says of itself.

    Parameters
    ----------
    study : Study
        Roles, ranges and labels of columns.
    features : FeatureMap
        What was adjusted for.
    chain : ArmDesign
        What was released.
    inverse : bool
        Whether weights are inverse propensities; those of overlap are propensities.
    ends : OutcomesAtEnds, optional
        How many outcomes crowd at the ends of their range, where that was looked at.
    """
    return {
        "method": Estimator.DOUBLY_ROBUST_BY_ARM,
        "releases": _releases(chain),
        "not_covered": (
            Caveat.UNDECLARED_COVARIATES,
            Caveat.NONLINEARITY,
            ends or Caveat.CLAMPING,
            Caveat.CLIPPED_SCORES,
            Caveat.COVERAGE_MEASURED,
        ),
        # Weights of a trial are right whatever the covariates.
        "assumptions": None if study.randomised is True else _linear_scores(features, inverse=inverse),
    }


def _linear_scores(features: FeatureMap, *, inverse: bool) -> LinearScores:
    """Return that a score or the outcome regression is linear in these features."""
    squares = any(i == j for i, j in features.pairs)
    products = any(i != j for i, j in features.pairs)
    return LinearScores(inverse, squares, products)


def _releases(chain: ArmDesign) -> tuple[ReleaseRow, ...]:
    noise = Noise.BALL if chain.pure else Noise.GAUSSIAN
    noise_of_counts = Noise.LAPLACE if chain.pure else noise
    quantities = _RELEASES | (_RELEASES_OF_MEANS if chain.means else {})
    return tuple(
        (quantities[name], BudgetPart(float(share), noise_of_counts if name in chain.histograms else noise))
        for name, share in chain.shares.items()
    )


def unaffordable(
    design: Design, rule: Callable[[Design], bool] = arms_affordable, *, means: bool = False
) -> CounterveilError:
    """Return what public numbers that do not afford adjustment are refused with: CV-P404 or CV-P405."""
    if not design.fits:
        return refusal("CV-P405", most_entries=MAX_GRAM_ENTRIES, features=design.features)
    return refusal(
        "CV-P404b" if means else "CV-P404",
        design=fewest_rows(design, rule),
        features=design.features,
        budget=design.budget,
        rows=design.rows,
    )
