"""What covariates and treatments alone decide about weighting: scores, features, weights, trimming.

Where only outcomes are private all of this is public and free, whatever it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from counterveil.data import Binary, Categories, Range, Table
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.numerics import columns as column_products
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Kind
from counterveil.numerics.propensity import approach, warm_start
from counterveil.numerics.standard_columns import ComputedRows, clip_rows, write_levels
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import KeptPeople
from counterveil.settings import Weighting
from counterveil.settings.methods import ALIKE, ALLOWED_ALIKE, BLOCKS, DIRECTION
from counterveil.statistics.linear.kernels.arm_rows import solve_positive
from counterveil.statistics.linear.kernels.balancing import (
    ArmPair,
    Target,
    WeightSettings,
    arm_rows,
    balance_weights,
    precision,
)
from counterveil.statistics.linear.kernels.treatment_leaves import treatment_leaves
from counterveil.statistics.linear.kernels.treatment_terms import TreatmentTerms, treatment_terms
from counterveil.statistics.linear.kernels.weight_features import ColumnKind, FeatureShares, parted_features
from counterveil.statistics.linear.matching_design import scored

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
        independent, identical = squared_gaps(arms, totals, estimand)
        gaps = np.maximum(independent, identical)
        if arm_correlation is not None:
            squared_imbalance = float((independent + arm_correlation * (identical - independent)).sum())
        else:
            squared_imbalance = max(float(independent.sum()), float(identical.sum()))
        return cls(features, arms, weights, sqrt(squared_imbalance), gaps)


def covariate_rows(table: Table) -> ComputedRows:
    """Return a row (n,) of values or codes for each covariate, read where it is."""
    names = list(table.study.covariates)
    return ComputedRows(len(names), lambda place: table.covariates[names[place]])


def features_of(
    table: Table, design: ScoredRows, settings: Weighting, rows: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.floating], int, Floats | None]:
    """Return the centred features (n, p) that are balanced, and how many of the first are made of covariates alone.

    They are scaled to a total variance of one. Where rows are given, features are those of them; last come the means
    of everybody's.
    """
    shares = _shares(design, settings, table.study.randomised is True)
    return shared_features(table, design.score, shares, design.followed, design.leaves, rows)


def _shares(design: ScoredRows, settings: Weighting, randomised: bool) -> FeatureShares:
    """Return the shares of the features that are balanced.

    Cosines of the score and leaves have less where arms hardly overlap: there they cannot be balanced, and trying
    takes weights that are large and outcomes' other features out of balance. Cosines have more with many rows, where
    a weight can be large without much noise; not in a trial, whose score follows chance alone.
    """
    shares = {name: BLOCKS[name] if name in settings.balanced else 0.0 for name in BLOCKS}
    rows, scarce = (
        len(design.treated),
        _scarcity(design) ** 2 if shares["score_basis"] or shares["tree_leaves"] else 1.0,
    )
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
    table: Table,
    score: Floats,
    shares: FeatureShares,
    followed: TreatmentTerms | None = None,
    leaves: NDArray[np.bool_] | None = None,
    rows: NDArray[np.intp] | None = None,
) -> tuple[NDArray[np.floating], int, Floats | None]:
    """Return centred features (n, p) with these shares of a total variance of one, and how many are of covariates."""
    domains = table.study.covariates.values()
    kinds: list[ColumnKind] = [
        "number" if isinstance(domain, Range) else "binary" if isinstance(domain, Binary) else "label"
        for domain in domains
    ]
    covariates = covariate_rows(table)
    return parted_features(
        covariates, kinds, score, shares, total=1.0, followed=followed, leaves=leaves, rows=rows
    )


def weighted(
    table: Table,
    design: ScoredRows,
    settings: Weighting,
    estimand: Estimand,
    noise_variance: float,
) -> Weighted:
    """Return the weights of least supposed error; `noise_variance` is that of the noise at sensitivity one.

    Where the study declares a score, weights are those near its inverse that balance the features better.
    """
    inverse = None if table.score is None else inverse_weights(table.score, design.treated, estimand)
    features, covariate_features, _ = features_of(table, design, settings)
    target = _TARGETS[estimand]
    arm_correlation = _slope_correlations(settings, features.shape[1], covariate_features)
    assumed = WeightSettings(
        *settings.assumed_sds(table.study.outcome_range), TOLERANCE, arm_correlation=arm_correlation
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
    made = Weighted.of(
        features, arms, weights.values, weights.totals, estimand, ALLOWED_ALIKE * arm_correlation
    )
    if inverse is None:
        return made
    distance = float(np.linalg.norm(weights.values - inverse) / np.linalg.norm(inverse))
    return replace(made, distance=min(distance, 1.0))


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


# The propensity score that weights for balance treat as a feature: a logistic regression on linear splines.
#
# Where only outcomes are private all of this is public and free, whatever it reads.


FeatureRows = NDArray[np.float32]


class ColumnLogistic:
    """The objective for columns (d, n) and the arms (n,), with values in [-1, 1]; gradients are found in `kind`."""

    def __init__(
        self, columns: FeatureRows, treated: NDArray[np.bool_], penalty: float, kind: Kind = np.float64
    ) -> None:
        self.columns, self.treated, self.penalty, self.kind = columns, treated, penalty, kind
        # The weights of the last gradient, and the probabilities there.
        self.last: tuple[Floats, NDArray[np.floating]] | None = None

    def chances(self, weights: Floats) -> NDArray[np.floating]:
        """Return the (n,) probabilities of treatment."""
        if self.last is None or not np.array_equal(self.last[0], weights):
            self.gradient(weights)
        assert self.last is not None  # the gradient leaves it
        return self.last[1]

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient (d+1,)."""
        rows, total = len(self.treated), np.zeros(len(weights))
        rounded: NDArray[np.floating] = weights.astype(self.kind)
        chance: NDArray[np.floating] = np.empty(rows, self.kind)
        for part, block in column_products.blocks(self.columns, 0, rows, self.kind):
            expit(rounded[:-1] @ block + rounded[-1], out=chance[part])
            residual = chance[part] - self.treated[part]
            total[:-1] += block @ residual
            total[-1] += residual.sum()
        self.last = (weights, chance)
        return total / rows + self.penalty * weights

    def hessian(self, weights: Floats) -> Floats:
        """Return the Hessian (d+1, d+1)."""
        chance, width = self.chances(weights), len(self.columns)
        curvature = chance * (1.0 - chance)
        hessian = np.empty((width + 1, width + 1))
        if weights[:-1].any():
            hessian[:-1, :-1] = weighted_products(self.columns, curvature, np.float32)
        else:
            products = column_products.products(self.columns, 0, len(chance), np.float32)
            hessian[:-1, :-1] = float(curvature[0]) * products
        hessian[-1, :-1] = hessian[:-1, -1] = column_products.totals(self.columns, 0, len(chance), curvature)
        hessian[-1, -1] = curvature.sum()
        hessian /= len(chance)
        hessian[np.diag_indices(width + 1)] += self.penalty
        return hessian

    def rough(self) -> ColumnLogistic:
        """Return the objective itself: `chances` goes most of the way in single precision."""
        return self

    def sample(self) -> ColumnLogistic:
        """Return the objective itself: a third of the rows costs as much in further steps."""
        return self

    def thinned(self, stride: int) -> ColumnLogistic:
        """Return the objective of every stride-th row."""
        columns, treated = np.ascontiguousarray(self.columns[:, ::stride]), self.treated[::stride].copy()
        return ColumnLogistic(columns, treated, self.penalty, self.kind)


def _single_precision_weights(objective: ColumnLogistic) -> Floats:
    """Return the weights as far as single precision shows them."""
    # Without slopes the best constant is about the logit of the share treated.
    rows, treated = len(objective.treated), np.count_nonzero(objective.treated)
    constant_only = np.append(np.zeros(len(objective.columns)), logit((treated + 0.5) / (rows + 1)))
    start = warm_start(
        rows, lambda stride: _single_precision_weights(objective.thinned(stride)), constant_only
    )
    return approach(objective, start, _ROUGH).weights


def weighted_products(columns: FeatureRows, weights: NDArray[np.floating], kind: Kind = np.float64) -> Floats:
    """Return the sum over rows of their weight (n,) times their products with themselves, (d, d)."""
    total, roots = np.zeros((len(columns), len(columns))), np.sqrt(weights).astype(kind, copy=False)
    for rows, block in column_products.blocks(columns, 0, len(weights), columns.dtype):
        scaled = block * roots[rows]
        total += scaled @ scaled.T
    return total


Singles = NDArray[np.float32]

# Standard deviations beyond which a number counts no further: a few far rows must not decide its slope.
_CUT_SDS = 3.0
# How strongly changes of slope are shrunk towards zero: as if they were drawn with a standard deviation of a tenth.
_KNOT_PENALTY = 100.0
# The gradient's tolerance: weights then agree to 1e-8 of the largest, however sums are rounded. And how far single
# precision goes.
_TOLERANCE, _ROUGH = 1e-12, 5e-5
# Scores nearer to 0 or 1 than this count as that near.
_LEAST = 1e-6


def spline_score(table: Table, terms: bool = False, leaves: bool = False) -> ScoredRows:
    """Return (n,) probabilities of treatment, whose logit is a linear spline with a knot at the mean of every number.

    First comes a logistic regression on the covariates, numbers being cut at three standard deviations; then
    one step of Newton's for the change of each number's slope above its mean, shrunk towards zero. With `terms` come
    those that treatment follows beyond the regression, with `leaves` the groups of rows that it follows beyond
    the score.
    """
    cut, knotted, deviations = _clipped_covariates(table)
    penalty = 1 / table.rows
    objective = ColumnLogistic(cut, table.treated, penalty)
    start = _single_precision_weights(ColumnLogistic(cut, table.treated, penalty, np.float32))
    linear_score = np.clip(
        objective.chances(approach(objective, start, _TOLERANCE).weights).astype(np.float64, copy=False),
        _LEAST,
        1 - _LEAST,
    )
    knots = np.empty((len(knotted) + 1, table.rows), np.float32)
    for out, column, deviation in zip(knots, knotted, deviations, strict=False):
        np.multiply(np.maximum(cut[column], 0.0), 1.0 / deviation, out=out, casting="same_kind")
    knots[-1] = 1.0
    slope = column_products.totals(knots, 0, table.rows, table.treated - linear_score)
    curvature = weighted_products(knots, linear_score * (1.0 - linear_score))
    curvature[np.diag_indices(len(knotted))] += _KNOT_PENALTY
    step = solve_positive(curvature, slope[:, None])[:, 0]
    score = np.asarray(expit(logit(linear_score) + column_products.scores(knots, 0, table.rows, step)))
    followed = treatment_terms(cut, knotted, table.treated, linear_score) if terms else None
    groups = treatment_leaves(cut, table.treated, score) if leaves else None
    return ScoredRows(table.treated, score, followed, groups)


def _clipped_covariates(table: Table) -> tuple[Singles, NDArray[np.intp], Floats]:
    """Return the covariates with numbers clipped, a row each, centred and with a largest deviation of one.

    Labels have one row each, constants are zero. Also which rows are numbers that vary, and their deviations.
    """
    domains, raw = list(table.study.covariates.values()), covariate_rows(table)
    unlabelled = np.array(
        [j for j, domain in enumerate(domains) if not isinstance(domain, Categories)], np.intp
    )
    cuts = np.array([_CUT_SDS if isinstance(domains[j], Range) else np.inf for j in unlabelled])
    labels = [(j, len(d.labels)) for j, d in enumerate(domains) if isinstance(d, Categories)]
    cut = np.empty((len(unlabelled) + sum(count for _, count in labels), table.rows), np.float32)
    deviations = clip_rows(raw, unlabelled, cuts, cut)
    next_row = len(unlabelled)
    for j, count in labels:
        codes = raw[j]
        share = np.bincount(codes.astype(np.intp), minlength=count) / table.rows
        largest = np.where((share > 0.0) & (share < 1.0), np.maximum(share, 1.0 - share), np.inf)
        out = cut[next_row : next_row + count]
        write_levels(codes, np.arange(count), -share / largest, (1.0 - share) / largest, out)
        next_row += count
    knotted = np.flatnonzero(np.isfinite(cuts) & (deviations > 0.0))
    return cut, knotted, deviations[knotted]


def arm_terms(table: Table, inside: NDArray[np.bool_], scores: NDArray[np.floating]) -> TreatmentTerms:
    """Return the terms of the covariates (d, n) that being in an arm (n,) follows beyond its fitted scores (n,)."""
    cut, knotted, _ = _clipped_covariates(table)
    return treatment_terms(cut, knotted, inside, np.clip(scores, _LEAST, 1 - _LEAST))


# The rows whose propensity score leaves overlap, where covariates and treatment are public.
#
# Rows are chosen by public columns alone, so that data sets which differ in one outcome keep the same rows.


# Proof: trimmed_rows.proof.md
PAGE = "statistics/linear/trimmed_rows.proof.md"
OPTIMAL = "optimal"
# Rows that an arm keeps at the least.
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The rows with scores in [limit, 1 - limit], out of so many `rows`."""

    table: Table
    limit: float
    rows: int

    @property
    def population(self) -> KeptPeople | None:
        """Whose effect it is, None where it is everybody's."""
        kept = self.table.rows
        return None if kept == self.rows else KeptPeople(kept, self.rows, self.limit)


def trimmed(table: Table, trim: float | str) -> Trimmed:
    """Return the rows that leave overlap, by a limit or by that of least variance; too small arms raise CV-S065."""
    require_covariates(table.study, "trimming")
    score = scored(table).score
    limit = crump_limit(score) if trim == OPTIMAL else float(trim)
    kept = np.flatnonzero((score >= limit) & (score <= 1 - limit))
    treated = int(table.treated[kept].sum())
    if min(treated, len(kept) - treated) < _FEWEST:
        raise refusal("CV-S065", limit=limit, upper=1 - limit, treated=treated, kept=len(kept) - treated)
    return Trimmed(table.take(kept) if len(kept) < table.rows else table, limit, table.rows)


def crump_limit(score: Floats) -> float:
    """Return a in [0, 1/2) such that the effect on those with scores in [a, 1 - a] has the least variance.

    Crump, Hotz, Imbens and Mitnik (2009), for outcomes of one variance: with g = 1 / (e (1 - e)), those are kept
    whose g is at most twice the mean g of those kept; 0 where that is everybody.
    """
    clipped = np.clip(score, 1e-9, 1 - 1e-9)
    g = np.sort(1 / (clipped * (1 - clipped)))
    twice = 2 * np.cumsum(g) / np.arange(1, len(g) + 1)
    kept = int(np.flatnonzero(g <= twice)[-1])
    if kept == len(g) - 1:
        return 0.0
    return 0.5 - sqrt(max(0.25 - 1 / float(twice[kept]), 0.0))
