"""Public strata of a question where outcomes alone are private: weights, and what an answer says of them.

    H = sum h,    effective size of arm a = 1 / sum ((h / H)^2 / m_a),

with h for how many people a stratum speaks (in people; `numerics/strata.py` has the formula for each
estimand) and m_a its rows in arm a. In: public covariates, treatments and settings. Out: counts by stratum
and arm, weights, H, and the part of the privacy budget that the variance gets (steering alone: privacy does
not depend on it). Nothing here reads an outcome or draws noise, so that nothing needs a proof; the bound of
what is released with these weights is in `rows/strata/strata_outcome.proof.md`.

Lineage: subclassification on covariates (Cochran 1968) [1]_ as exact matching.

References
----------
.. [1] Cochran, W. G. (1968). The effectiveness of adjustment by subclassification in removing bias in
   observational studies. Biometrics 24, 295-313.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from counterveil.errors import refusal
from counterveil.estimators.strata.cut_points import cut_details, stratified_data
from counterveil.numerics.arrays import Floats
from counterveil.numerics.strata import StratumSizes, stratum_weights, unmatched_rows, weight_sum
from counterveil.privacy import Budget, Estimand
from counterveil.results.question import Question
from counterveil.rows.public import PublicData
from counterveil.rows.strata.counted import StratifiedRows, stratified_rows
from counterveil.rows.strata.outcome_sensitivity import StrataOutcome
from counterveil.session import Plan
from counterveil.settings import Stratified


@dataclass(frozen=True, slots=True)
class PublicStrata:
    """The strata of a question and their public weights.

    Attributes
    ----------
    counted : StratifiedRows
        The rows by stratum.
    sizes : StratumSizes
        Counts by stratum and arm.
    weights : ndarray of float
        h, for how many people each stratum speaks; 0 where an arm is missing.
    total : Fraction
        H, the sum of h.
    limit : Fraction
        How often an outcome counts at most.
    cuts : dict
        Cut points that were found, as details of a result.
    """

    counted: StratifiedRows
    sizes: StratumSizes
    weights: Floats
    total: Fraction
    limit: Fraction
    cuts: dict[str, Any]

    @property
    def effective_sizes(self) -> tuple[float, float]:
        """How many people of equal weight each arm is worth, 1 / sum (h / H)^2 / m, the treated first."""
        used = self.weights > 0
        shares = self.weights[used] / float(self.total)
        treated, control = (
            1 / float((shares**2 / counts[used]).sum()) for counts in (self.sizes.treated, self.sizes.control)
        )
        return treated, control

    def details(self, estimand: Estimand, bounds: StrataOutcome) -> dict[str, float | str]:
        """Return public numbers of strata for a result."""
        both = (self.sizes.treated > 0) & (self.sizes.control > 0)
        return {
            "rows": self.sizes.rows,
            "strata": self.sizes.public,
            "matched_strata": int(np.count_nonzero(both)),
            "unmatched": unmatched_rows(self.sizes, estimand.value),
            "max_weight": float(bounds.weight),
        } | self.cuts


def public_strata(public: PublicData, question: Question) -> PublicStrata:
    """Return the strata of a question, or CV-S081 where none has rows of both arms."""
    settings = question.settings or Stratified()
    data = stratified_data(public, settings)
    cuts = data.public_cuts()
    layout = data.layout(cuts)
    counted = data.counted if layout == data.counted.layout else stratified_rows(public, layout)
    sizes = counted.sizes
    estimand = question.estimand.value
    limit = settings.exact_limit
    total = weight_sum(sizes, estimand, limit)
    if total == 0:
        raise refusal("CV-S081")
    weights = stratum_weights(sizes, estimand, limit)
    return PublicStrata(
        counted=counted, sizes=sizes, weights=weights, total=total, limit=limit, cuts=cut_details(cuts)
    )


@lru_cache(maxsize=64)
def variance_part(budget: Budget, mechanism: str) -> Fraction:
    """Return the part of the budget for the variance that adds least to a short interval."""

    def expected(share: Fraction) -> float:
        plan = Plan.split(budget, {"effect": 1 - share, "variance": share}, mechanism)
        # The variance's noise widens the interval about as its own standard deviation does.
        return plan.noise("effect", Fraction(1)).variance + sqrt(plan.noise("variance", Fraction(1)).variance)

    return min((Fraction(k, 20) for k in range(1, 9)), key=expected)
