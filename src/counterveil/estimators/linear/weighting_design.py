"""Features and weights for balance, made of covariates and treatments alone, and the imbalance they leave.

    weights c = argmin of squared bias + sampling variance + noise variance (`kernels/balancing.py`),
    imbalance^2 = sum over features j of (u_1j^2 + u_0j^2 - 2 rho_j u_1j u_0j),

u_aj being the weighted mean of feature j in arm a less its mean over those whose effect is asked for, and
rho_j the supposed correlation of the arms' slopes. Features of covariates and of the propensity score get
shares of a total variance of one (`kernels/weight_features.py`), so that imbalance is the root mean square
bias if the mean outcome is linear in them in a random direction and varies by one standard deviation. Where
the study declares scores e, weights are those near the inverse of them (1 / e and 1 / (1 - e), scaled to a
total of one in each arm) that balance the features better.

In: covariates and treatments, which are public where outcomes alone are private: all of this costs no
privacy, whatever it reads. Out: `Weighted`. Noise is scaled to the largest weight that comes out (proof:
`rows/linear/linear_estimate.proof.md`); the constants steer the choice, and privacy does not depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Binary, Range
from counterveil.estimators.linear.kernels.balancing import (
    ArmPair,
    Target,
    WeightSettings,
    arm_rows,
    balance_weights,
    precision,
)
from counterveil.estimators.linear.kernels.treatment_terms import TreatmentTerms
from counterveil.estimators.linear.kernels.weight_features import ColumnKind, FeatureShares, parted_features
from counterveil.estimators.linear.spline_score import ScoredRows, covariate_rows
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.rows.public import PublicRows
from counterveil.settings import Weighting
from counterveil.settings.methods import ALIKE, ALLOWED_ALIKE, BLOCKS, DIRECTION

_TARGETS: Mapping[Estimand, Target] = {Estimand.ATE: "ATE", Estimand.ATT: "ATT", Estimand.ATC: "ATC"}
# The equations of the weights hold to this, in standard deviations of a feature: weights then agree to 1e-8 of the
# largest, however sums are rounded.
TOLERANCE = 1e-10
# How many cosines of the score are balanced, and from how many rows on their share grows and how far: what is left
# unbalanced is bias, which more rows do not make smaller. Set by `python -m experiments.outcome_level.growing_bends`.
_FEWEST_AND_MOST_COSINES = (4, 40)
_FEW_ROWS = 1000
_MOST_GROWTH = 8.0
# Scores nearer to 0 or 1 than this count as that near.
_LEAST_CHANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Weighted:
    """Features (n, p) of total variance one, the weights (n,) of an effect, and how far they are from balance.

    `imbalance`: root mean square bias of the estimate when the mean outcome is linear in the features in a
    random direction and varies by one standard deviation over the rows. `gaps` (p,): squared bias when it has
    slope one on one of the features. `arms` holds the treated and the control rows with the sums over them.
    `distance` is how far weights are from the inverse of known scores, in parts of the length of these.
    """

    features: NDArray[np.floating]
    arms: ArmPair
    weights: Floats
    imbalance: float
    gaps: Floats
    distance: float = 1.0

    @classmethod
    def of(
        cls,
        features: NDArray[np.floating],
        arms: ArmPair,
        weights: Floats,
        totals: Floats,
        estimand: Estimand,
        arm_correlation: Floats | None = None,
    ) -> Weighted:
        """Return weights whose sizes give the arms these feature totals (2, p), and the imbalance that they leave.

        `arm_correlation` (p,) are assumed correlations of the two arms' slopes; None takes the worse of none
        and one.
        """
        independent, identical = squared_gaps(arms, totals, estimand)
        gaps = np.maximum(independent, identical)
        if arm_correlation is not None:
            squared_imbalance = float((independent + arm_correlation * (identical - independent)).sum())
        else:
            squared_imbalance = max(float(independent.sum()), float(identical.sum()))
        return cls(
            features=features, arms=arms, weights=weights, imbalance=sqrt(squared_imbalance), gaps=gaps
        )


def features_of(
    people: PublicRows, design: ScoredRows, settings: Weighting, rows: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.floating], int, Floats | None]:
    """Return the centred features (n, p) that are balanced, and how many of the first are made of covariates alone.

    They are scaled to a total variance of one. Where rows are given, features are those of them; last come
    the means of everybody's.
    """
    shares = _shares(design, settings, people.study.randomised is True)
    return shared_features(
        people, design.score, shares=shares, followed=design.followed, leaves=design.leaves, rows=rows
    )


def _shares(design: ScoredRows, settings: Weighting, randomised: bool) -> FeatureShares:
    """Return the shares of the features that are balanced.

    Cosines of the score and leaves have less where arms hardly overlap: there they cannot be balanced, and
    trying takes weights that are large and outcomes' other features out of balance. Cosines have more with
    many rows, where a weight can be large without much noise; not in a trial, whose score follows chance
    alone.
    """
    shares = {name: BLOCKS[name] if name in settings.balanced else 0.0 for name in BLOCKS}
    rows = len(design.treated)
    scarce = _scarcity(design) ** 2 if shares["score_basis"] or shares["tree_leaves"] else 1.0
    growth = 1.0 if randomised else min(rows / _FEW_ROWS, _MOST_GROWTH)
    return FeatureShares(
        shares["covariates"],
        shares["squares"],
        shares["score"],
        shares["strata"],
        products=shares["products"],
        terms=shares["selected_terms"],
        direction=DIRECTION if shares["selected_terms"] else 0.0,
        cosines=shares["score_basis"] / scarce * max(growth / scarce, 1.0),
        cosines_count=int(np.clip(round(rows ** (1 / 3)), *_FEWEST_AND_MOST_COSINES)),
        leaves=shares["tree_leaves"] / scarce,
    )


def _scarcity(design: ScoredRows) -> float:
    """Return by how much inverse probabilities would raise the variance of a difference in means; 1 in a trial."""
    score = np.clip(design.score, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
    treated, control = design.arms
    inverse = float(np.mean(1.0 / score + 1.0 / (1.0 - score)))
    return max(inverse / (len(score) / treated + len(score) / control), 1.0)


def shared_features(
    people: PublicRows,
    score: Floats,
    shares: FeatureShares,
    followed: TreatmentTerms | None = None,
    leaves: NDArray[np.bool_] | None = None,
    rows: NDArray[np.intp] | None = None,
) -> tuple[NDArray[np.floating], int, Floats | None]:
    """Return centred features (n, p) with these shares of a total variance of one, and how many are of covariates."""
    domains = people.study.covariates.values()
    kinds: list[ColumnKind] = [
        "number" if isinstance(domain, Range) else "binary" if isinstance(domain, Binary) else "label"
        for domain in domains
    ]
    covariates = covariate_rows(people)
    return parted_features(
        covariates, kinds, score, shares, total=1.0, followed=followed, leaves=leaves, rows=rows
    )


def weighted(
    people: PublicRows,
    design: ScoredRows,
    settings: Weighting,
    estimand: Estimand,
    noise_variance: float,
) -> Weighted:
    """Return the weights of least supposed error; `noise_variance` is that of the noise at sensitivity one.

    Where the study declares a score, weights are those near its inverse that balance the features better.
    """
    inverse = None if people.score is None else inverse_weights(people.score, design.treated, estimand)
    features, covariate_features, _ = features_of(people, design, settings)
    target = _TARGETS[estimand]
    arm_correlation = _slope_correlations(settings, features.shape[1], covariate_features)
    assumed = WeightSettings(
        *settings.assumed_sds(people.study.outcome_range), TOLERANCE, arm_correlation=arm_correlation
    )
    arms = arm_rows(features, design.treated, precision(assumed, len(design.treated)))
    weights = balance_weights(
        features,
        design.treated,
        noise_variance=noise_variance,
        target=target,
        reference=inverse,
        settings=assumed,
        rows=arms,
    )
    # The interval supposes less than the weights do: effects may vary more.
    result = Weighted.of(
        features,
        arms,
        weights=weights.values,
        totals=weights.totals,
        estimand=estimand,
        arm_correlation=ALLOWED_ALIKE * arm_correlation,
    )
    if inverse is None:
        return result
    distance = float(np.linalg.norm(weights.values - inverse) / np.linalg.norm(inverse))
    return replace(result, distance=min(distance, 1.0))


def inverse_weights(score: Floats, treated: NDArray[np.bool_], estimand: Estimand) -> Floats:
    """Return the weights (n,) of either arm by the inverse of known scores, with totals +1 and -1."""
    tilt = {Estimand.ATE: np.ones(len(score)), Estimand.ATT: score, Estimand.ATC: 1 - score}[estimand]
    signed = np.where(treated, tilt / score, -tilt / (1 - score))
    return np.asarray(signed / np.where(treated, signed[treated].sum(), -signed[~treated].sum()))


def _slope_correlations(settings: Weighting, width: int, covariate_features: int) -> Floats:
    """Return the correlations (p,) supposed of the two arms' slopes on the features.

    `covariate_features` of the first features are made of covariates alone.
    """
    on_covariates, on_treatment = (
        ALIKE if settings.arm_correlation is None else (settings.arm_correlation, settings.arm_correlation)
    )
    return np.repeat(
        [float(on_covariates), float(on_treatment)], [covariate_features, width - covariate_features]
    )


def squared_gaps(arms: ArmPair, totals: Floats, estimand: Estimand) -> tuple[Floats, Floats]:
    """Return each feature's squared gap between an arm's totals (2, p) and the mean of those whose effect is asked for.

    The slopes of the two arms' mean outcomes may have nothing to do with each other, or be the same: (p,)
    squared biases for both.
    """
    whose = {Estimand.ATE: arms, Estimand.ATT: arms[:1], Estimand.ATC: arms[1:]}[estimand]
    gaps = totals - sum(arm.totals for arm in whose) / sum(arm.size for arm in whose)
    return gaps[0] ** 2 + gaps[1] ** 2, (gaps[0] - gaps[1]) ** 2
