"""How the variance of a matched effect is estimated: around lines in the covariates, or by pairs of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.estimators.ate.matching_design import Scored
from counterveil.estimators.ate.matching_settings import AUTO, BY_ARM, MatchingSettings
from counterveil.estimators.ate.weighting_design import Weighted, shared_features
from counterveil.estimators.ate.weighting_spread import chosen_spread
from counterveil.estimators.question import Question
from counterveil.kernels.balancing_weights import arm_rows
from counterveil.kernels.residual_variance import ResidualVariance
from counterveil.kernels.thin_products import sums
from counterveil.kernels.weight_features import FeatureShares
from counterveil.privacy import Estimand

# What a mean outcome is supposed to follow when room is made for the bias that matches leave. Squares are not
# among it: what outcomes owe to them stays in the variance whole.
_SHARES = FeatureShares(0.7, 0.0, 0.05)
# Into how many parts each arm is cut by the size of coefficients, for outcomes may spread more where they are large.
_PARTS = 4
# Sums of products of covariates take this many multiplications at most; beyond it they take longer than matching.
_MOST_WORK = 1 << 23


def arm_spread(
    table: Table,
    design: Scored,
    settings: MatchingSettings,
    coefficients: NDArray[np.float64],
    question: Question,
) -> ResidualVariance | None:
    """Return the variance from spreads of outcomes in parts of each arm, or None where it comes from pairs of rows.

    Reads public columns only.
    """
    rows, columns = design.features.values.shape
    small = rows * columns**2 <= _MOST_WORK
    if not (settings.spread == BY_ARM or (settings.spread == AUTO and small)):
        return None
    found = left_by_matches(table, design, coefficients, question.estimand)
    return chosen_spread(found, design.treated, question, _PARTS) if len(found.gaps) else None


def left_by_matches(
    table: Table, design: Scored, coefficients: NDArray[np.float64], estimand: Estimand
) -> Weighted:
    """Return the coefficients of a matched effect with the imbalance that they leave in covariates and score.

    Features are as many as vary over the rows, which may be none.
    """
    features = shared_features(table, design.score, _SHARES)
    by_arm = np.stack([np.maximum(coefficients, 0.0), np.maximum(-coefficients, 0.0)])
    arms = arm_rows(features, design.treated)
    return Weighted.of(features, arms, coefficients, sums(features, by_arm), estimand)
