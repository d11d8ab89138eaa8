"""What covariates and treatments alone decide about weighting: features, weights, remaining imbalance.

Where only outcomes are private all of this is public and free, whatever it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Binary, Range, Table
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.settings import Weighting
from counterveil.settings.methods import ALIKE, ALLOWED_ALIKE, BLOCKS, DIRECTION
from counterveil.statistics.linear.kernels.balancing import (
    ArmPair,
    Target,
    WeightSettings,
    arm_rows,
    balance_weights,
    precision,
)
from counterveil.statistics.linear.kernels.treatment_terms import TreatmentTerms
from counterveil.statistics.linear.kernels.weight_features import ColumnKind, FeatureShares, parted_features

_TARGETS: Mapping[Estimand, Target] = {Estimand.ATE: "ATE", Estimand.ATT: "ATT", Estimand.ATC: "ATC"}
# The equations of the weights hold to this, in standard deviations of a feature: weights then agree to 1e-8 of the
# largest, however sums are rounded.
TOLERANCE = 1e-10
# How many bends of the score are balanced, and from how many rows on their share grows and how far: what is left
# unbalanced is bias, which more rows do not make smaller. Set by `python -m experiments.outcome_level.growing_bends`.
_FEWEST_AND_MOST_BENDS = (4, 40)
_FEW_ROWS = 1000
_MOST_GROWTH = 8.0
# Scores nearer to 0 or 1 than this count as that near.
_LEAST_CHANCE = 1e-3


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """For every row its arm, its propensity score, and the terms and leaves that treatment follows, where balanced."""

    treated: NDArray[np.bool_]
    score: Floats
    followed: TreatmentTerms | None = None
    leaves: NDArray[np.bool_] | None = None

    @property
    def arms(self) -> tuple[int, int]:
        """Number of treated and of control rows."""
        treated = int(np.count_nonzero(self.treated))
        return treated, len(self.treated) - treated


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

        `arm_correlation` (p,) are assumed correlations of the two arms' slopes; None takes the worse of none and one.
        """
        apart, together = squared_gaps(arms, totals, estimand)
        gaps = np.maximum(apart, together)
        if arm_correlation is not None:
            left = float((apart + arm_correlation * (together - apart)).sum())
        else:
            left = max(float(apart.sum()), float(together.sum()))
        return cls(features, arms, weights, sqrt(left), gaps)


def covariate_lines(table: Table, order: NDArray[np.intp] | None = None) -> Floats:
    """Return a line (n,) of values or codes for each covariate, (d, n), rows in this order if one is given."""
    domains = table.study.covariates
    lines = np.empty((len(domains), table.rows))
    for line, name in zip(lines, domains, strict=True):
        line[...] = table.covariates[name] if order is None else np.take(table.covariates[name], order)
    lines.setflags(write=False)
    return lines


def features_of(
    table: Table, design: ScoredRows, settings: Weighting, lines: Floats | None = None
) -> tuple[NDArray[np.floating], int]:
    """Return the centred features (n, p) that are balanced, and how many of the first are made of covariates alone.

    They are scaled to a total variance of one.
    """
    shares = _shares(design, settings, table.study.randomised is True)
    return shared_features(table, design.score, shares, lines, design.followed, design.leaves)


def _shares(design: ScoredRows, settings: Weighting, randomised: bool) -> FeatureShares:
    """Return the shares of the features that are balanced.

    Bends of the score and leaves have less where arms hardly overlap: there they cannot be balanced, and trying
    takes weights that are large and outcomes' other features out of balance. Bends have more with many rows, where
    a weight can be large without much noise; not in a trial, whose score follows chance alone.
    """
    shares = {name: BLOCKS[name] if name in settings.balanced else 0.0 for name in BLOCKS}
    rows, scarce = len(design.treated), _scarcity(design) ** 2 if shares["bends"] or shares["leaves"] else 1.0
    grown = 1.0 if randomised else min(rows / _FEW_ROWS, _MOST_GROWTH)
    return FeatureShares(
        shares["covariates"],
        shares["squares"],
        shares["score"],
        shares["strata"],
        products=shares["products"],
        terms=shares["terms"],
        direction=DIRECTION if shares["terms"] else 0.0,
        bends=shares["bends"] / scarce * max(grown / scarce, 1.0),
        bends_count=int(np.clip(round(rows ** (1 / 3)), *_FEWEST_AND_MOST_BENDS)),
        leaves=shares["leaves"] / scarce,
    )


def _scarcity(design: ScoredRows) -> float:
    """Return by how much inverse probabilities would raise the variance of a difference in means; 1 in a trial."""
    score = np.clip(design.score, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
    treated, control = design.arms
    inverse = float(np.mean(1.0 / score + 1.0 / (1.0 - score)))
    return max(inverse / (len(score) / treated + len(score) / control), 1.0)


def shared_features(
    table: Table,
    score: Floats,
    shares: FeatureShares,
    lines: Floats | None = None,
    followed: TreatmentTerms | None = None,
    leaves: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.floating], int]:
    """Return centred features (n, p) with these shares of a total variance of one, and how many are of covariates."""
    domains = table.study.covariates.values()
    kinds: list[ColumnKind] = [
        "number" if isinstance(domain, Range) else "binary" if isinstance(domain, Binary) else "label"
        for domain in domains
    ]
    lines = covariate_lines(table) if lines is None else lines
    return parted_features(lines.T, kinds, score, shares, total=1.0, followed=followed, leaves=leaves)


def weighted(
    table: Table,
    design: ScoredRows,
    settings: Weighting,
    estimand: Estimand,
    noise_variance: float,
    lines: Floats | None = None,
) -> Weighted:
    """Return the weights of least supposed error; `noise_variance` is that of the noise at sensitivity one.

    Where the study declares a score, weights are those near its inverse that balance the features better.
    `lines` are the covariates of the table, where they are at hand.
    """
    inverse = None if table.score is None else inverse_weights(table.score, design.treated, estimand)
    features, own = features_of(table, design, settings, lines)
    target = _TARGETS[estimand]
    arm_correlation = _alike(settings, features.shape[1], own)
    supposed = WeightSettings(
        *settings.assumed_sds(table.study.outcome_range), TOLERANCE, arm_correlation=arm_correlation
    )
    arms = arm_rows(features, design.treated, precision(supposed, len(design.treated)))
    found = balance_weights(
        features,
        design.treated,
        noise_variance=noise_variance,
        target=target,
        reference=inverse,
        settings=supposed,
        rows=arms,
    )
    # The interval supposes less than the weights do: effects may vary more.
    made = Weighted.of(features, arms, found.values, found.totals, estimand, ALLOWED_ALIKE * arm_correlation)
    if inverse is None:
        return made
    away = float(np.linalg.norm(found.values - inverse) / np.linalg.norm(inverse))
    return replace(made, distance=min(away, 1.0))


def inverse_weights(score: Floats, treated: NDArray[np.bool_], estimand: Estimand) -> Floats:
    """Return the weights (n,) of either arm by the inverse of known scores, with totals +1 and -1."""
    tilt = {Estimand.ATE: np.ones(len(score)), Estimand.ATT: score, Estimand.ATC: 1 - score}[estimand]
    found = np.where(treated, tilt / score, -tilt / (1 - score))
    return np.asarray(found / np.where(treated, found[treated].sum(), -found[~treated].sum()))


def _alike(settings: Weighting, width: int, own: int) -> Floats:
    """Return the correlations (p,) supposed of the two arms' slopes on the features.

    `own` of the first features are made of covariates alone.
    """
    of_covariates, of_treatment = (
        ALIKE if settings.arm_correlation is None else (settings.arm_correlation, settings.arm_correlation)
    )
    return np.repeat([float(of_covariates), float(of_treatment)], [own, width - own])


def squared_gaps(arms: ArmPair, totals: Floats, estimand: Estimand) -> tuple[Floats, Floats]:
    """Return each feature's squared gap between an arm's totals (2, p) and the mean of those whose effect is asked for.

    The slopes of the two arms' mean outcomes may have nothing to do with each other, or be the same: (p,)
    squared biases for both.
    """
    whose = {Estimand.ATE: arms, Estimand.ATT: arms[:1], Estimand.ATC: arms[1:]}[estimand]
    gaps = totals - sum(arm.totals for arm in whose) / sum(arm.size for arm in whose)
    return gaps[0] ** 2 + gaps[1] ** 2, (gaps[0] - gaps[1]) ** 2
