"""Bends of a released index: what lines of both arms and weights leave along it is measured and taken out.

Where treatment and outcome bend with the same index, lines leave residuals that depend on it, and weights that are
lines leave it out of balance; the effect is off by the product. Both are released as functions of the index that are
linear between knots, and added to lines and weights. What is left of both enters the interval.

Lineage: prognostic scores (Hansen 2008); augmented balancing weights (Chernozhukov, Newey and Singh 2022).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.numerics.posterior import averaged_posterior
from counterveil.session import Gate
from counterveil.statistics.moments.arm_models import ArmMoments, Fit
from counterveil.statistics.moments.arm_plan import KNOTS
from counterveil.statistics.moments.arm_releases import Scale
from counterveil.statistics.moments.arm_sensitivity import PRODUCT, BendMoments
from counterveil.statistics.moments.arm_weights import Weighted
from counterveil.statistics.moments.kernels.arm_scores import ArmLines, ArmScore, BendSums, Index, bend_sums
from counterveil.statistics.moments.kernels.scores import TERM_BITS
from counterveil.statistics.moments.records import Records, TableRecords
from counterveil.statistics.moments.sensitivity import DIAGONAL

# Numbers of this module that are choices, and not derived, were set on the tuning designs of
# `experiments/record_effect/NOTES.md`.
# Knots lie evenly within so many standard deviations of the index.
_KNOTS = np.linspace(-2.2, 2.2, KNOTS)
# Weights are clipped at this many of their standard deviations, and at least here.
_WEIGHT_REACH, _LEAST_REACH = 3.0, 0.2
# How far bends at two knots go together, and the variance of a level and a slope beside that of bends.
_TOGETHER, _LINE = 1.0, 0.05
# Prior standard deviations: of what residuals leave, in standard deviations of them, and of log odds of treatment;
# what both arms share, and an arm's own.
_COMMON, _OWN = (1e-3, 0.2, 0.5, 1.0), (1e-3, 0.2)
# What the variance of what is left is multiplied by.
_INFLATION = 1.5
# The least part of the bias found that may be left along the index, and the largest.
_LEFT = (0.2, 2.0)
# The same is multiplied by this where squares are features and products are not: they take a part of a bend along an
# index, and leave the rest where the index does not show it.
_SQUARES_ALONE = 1.5
# The least part of the index that is taken to be known, and the largest mean square of a bend that noise hides: a part
# of the residual variance, and of log odds of treatment.
_LEAST_KNOWN, _MOST_HIDDEN = 0.05, 0.5
# `room` of the second interval. With 1.25 and 1.5 bent indices of seed 77,000 were covered in .80 and .86 of the draws
# in the worst cell, with 2 in .92 (`python -m experiments.record_effect.second`).
_UNDETECTED = 2.0


@dataclass(frozen=True, slots=True)
class Bends:
    """Released means over all rows, in each arm: of h h' (2, k, k), h g and h rho (2, k), h being hats.

    g is an arm's weight times its share less one, rho a residual. `sd`, `weight_sd` (2,) and `residual_sd` are the
    noise of one entry.
    """

    hats: Floats
    weights: Floats
    residuals: Floats
    sd: float
    weight_sd: Floats
    residual_sd: float


def bent(
    gate: Gate,
    records: Records,
    scale: Scale,
    moments: ArmMoments,
    fit: Fit,
    found: Weighted,
    clip: float,
    room: float,
) -> tuple[Scale, Weighted]:
    """Return rows with hats, and the score with bends added to lines and weights.

    `room` says how far curves of bends that noise hides are supposed to be the same: 1 for one curve.
    """
    scale = replace(scale, index=_index(moments, fit, len(records.features.columns)))
    slopes = found.score.weights[:, 1:] * moments.shares[:, None]
    spread = np.sqrt(np.einsum("ai,aij,aj->a", slopes, moments.covariances, slopes))
    reaches = np.maximum(_WEIGHT_REACH * spread, _LEAST_REACH)
    seen = release_bends(gate, records, scale, found.score, reaches, moments.shares, clip)
    # What is nowhere beyond an end of the range bends no more than its mean lies away from that.
    sizes = np.minimum(
        sqrt(fit.residual), scale.to_end(fit.levels) + np.sqrt(np.minimum(fit.level_noise, fit.noise))
    )
    found = _added(seen, moments, fit, found, records.count, room, sizes)
    pairs = records.features.pairs
    if pairs and all(i == j for i, j in pairs):
        more = (_SQUARES_ALONE - 1) * found.bends
        found = replace(found, bias=found.bias + more, bends=found.bends + more)
    return scale, found


def _index(moments: ArmMoments, fit: Fit, linear: int) -> Index:
    """Return the part of both arms' lines in the covariates themselves, centred, in standard deviations."""
    slopes = moments.shares @ fit.slopes.values
    slopes[linear:] = 0.0
    whole = np.einsum("a,aij->ij", moments.shares, moments.covariances)
    off = moments.means[1] - moments.means[0]
    whole += float(moments.shares.prod()) * np.outer(off, off)
    slopes = slopes / max(sqrt(float(slopes @ whole @ slopes)), 1e-9)
    return Index(float(moments.overall @ slopes), slopes, _KNOTS)


def bent_sums(
    records: TableRecords, scale: Scale, score: ArmScore, reaches: Floats, shares: Floats, clip: float
) -> Sums:
    """Return the sums of `bend_sums`: of h h', h g and h rho, of the untreated, then of the treated."""
    assert scale.index is not None
    sums = bend_sums(scale.rows(records), len(scale.index.knots), score, reaches, shares, clip)
    return tuple(
        np.array(part, dtype=object) for own in sums for part in (own.hats, own.weights, own.residuals)
    )


def release_bends(
    gate: Gate,
    records: Records,
    scale: Scale,
    score: ArmScore,
    reaches: Floats,
    shares: Floats,
    clip: float,
) -> Bends:
    """Return moments of the index's hats with weights and residuals of both arms."""
    assert scale.index is not None
    size = len(scale.index.knots)

    def values() -> list[Fraction]:
        found = records.run(bent_sums, scale, score, reaches, shares, clip)
        sums = [BendSums(*(part.tolist() for part in found[first : first + 3])) for first in (0, 3)]
        unit = Fraction(1, records.count * 4**TERM_BITS)
        return [unit * value for own in sums for value in _entries(own, size)]

    released = gate.release_vector("bends", values, BendMoments(records.count).means)
    means, sd = released.floats().reshape(2, 4 * size - 1), sqrt(released.variance)
    hats, places, weight = np.zeros((2, size, size)), np.arange(size), float(PRODUCT)
    hats[:, places, places] = means[:, :size] / float(DIAGONAL)
    hats[:, places[1:], places[:-1]] = hats[:, places[:-1], places[1:]] = means[:, size : 2 * size - 1]
    return Bends(
        hats,
        means[:, 2 * size - 1 : 3 * size - 1] * reaches[:, None] / weight,
        means[:, 3 * size - 1 :] * clip / weight,
        sd,
        sd * reaches / weight,
        sd * clip / weight,
    )


def _entries(own: BendSums, size: int) -> list[Fraction]:
    """Return the weighted entries of one arm; hats that are not neighbours have no product."""
    return (
        [DIAGONAL * own.hats[k][k] for k in range(size)]
        + [Fraction(own.hats[k][k + 1]) for k in range(size - 1)]
        + [PRODUCT * value for value in (*own.weights, *own.residuals)]
    )


def _added(
    seen: Bends, moments: ArmMoments, fit: Fit, found: Weighted, rows: int, room: float, sizes: Floats
) -> Weighted:
    """Return the score with bends added to lines and weights, and what is left of both.

    `sizes` (2,) is how far outcomes of both arms bend at most.
    """
    score, p, size = found.score, moments.shares, seen.hats.shape[1]
    # Second moments of hats within each arm, in blocks; entries that noise made negative are zero.
    own = np.zeros((2 * size, 2 * size))
    for arm in (0, 1):
        part = slice(arm * size, (arm + 1) * size)
        own[part, part] = np.maximum(seen.hats[arm], 0.0) / p[arm]
    sums = seen.hats.sum(axis=2)
    target = np.array(score.people) @ sums
    curves, doubt = _residual_bends(seen, own, p, fit, rows, sizes)
    turns, turn_doubt = _weight_bends(seen, own, p, score, target - (sums + seen.weights) / p[:, None])
    signed = own * np.repeat((-1.0, 1.0), size)
    moved = float(turns @ signed @ curves)
    left = float(np.trace(signed.T @ turn_doubt @ signed @ doubt))
    lines, added = curves.reshape(2, size), turns.reshape(2, size) / p[:, None]
    changed = ArmScore(
        ArmLines(np.column_stack([score.lines.values, lines])),
        np.column_stack([score.weights, added]),
        score.people,
        score.effect + float(target @ (lines[1] - lines[0])),
    )
    known = _reliability(moments, fit)
    seen_part = known**2 * _kept(curves, doubt, own) * _kept(turns, turn_doubt, own)
    missed = float(np.clip(_LEFT[0] + 1 / max(seen_part, 1e-9) - 1, *_LEFT))
    bends = missed * max(abs(moved) - sqrt(left), 0.0)
    unseen = _unseen((curves, doubt, own), known, sizes**2)
    off_balance = _unseen((turns, turn_doubt, own), known, _weight_sizes(score, p) ** 2)
    # A product of two errors is at most that of their lengths, arm by arm.
    largest = float(np.sqrt(unseen * off_balance).sum())
    hidden = room * largest
    doubts = _by_arm(np.diag(own @ doubt)) * _by_arm(np.diag(own @ turn_doubt))
    return replace(
        found,
        score=changed,
        product=found.product + _INFLATION * left + hidden**2,
        bias=found.bias + bends,
        bends=bends,
        hidden=hidden,
        undetected=max(room, _UNDETECTED) * largest,
        known=known,
        doubt=float(np.sqrt(np.maximum(doubts, 0.0) / fit.residual).sum()),
    )


def _unseen(curve: tuple[Floats, Floats, Floats], known: float, largest: Floats) -> Floats:
    """Return the expected mean square of what is not seen of a curve, in each arm, (2,).

    Of a curve along an index that is known to the part `known`, that part is seen; its posterior doubts the rest. More
    than half of `largest` is not supposed.
    """
    value, doubt, own = curve
    doubts, sizes = _by_arm(np.diag(own @ doubt)), _by_arm(value * (own @ value))
    found = doubts + (1 / max(known, _LEAST_KNOWN) - 1) * (sizes + doubts)
    return np.asarray(np.clip(found, 0.0, _MOST_HIDDEN * largest))


def _by_arm(values: Floats) -> Floats:
    """Return the sums over the knots of both arms, (2,)."""
    return np.asarray(values.reshape(2, -1).sum(axis=1))


def _kept(curve: Floats, doubt: Floats, own: Floats) -> float:
    """Return the part of a curve's expected mean square that its posterior mean has."""
    size, error = float(curve @ own @ curve), float(np.trace(own @ doubt))
    return size / max(size + error, 1e-12)


def _reliability(moments: ArmMoments, fit: Fit) -> float:
    """Return the expected squared correlation of the index with the line that it stands for."""
    whole = np.einsum("a,aij->ij", moments.shares, moments.covariances)
    slopes = moments.shares @ fit.slopes.values
    size = float(slopes @ whole @ slopes)
    error = float(np.einsum("a,aij,ij->", moments.shares, fit.slopes.covariances, whole))
    return size / max(size + error, 1e-12)


def _residual_bends(
    seen: Bends, own: Floats, p: Floats, fit: Fit, rows: int, sizes: Floats
) -> tuple[Floats, Floats]:
    """Return what residuals are at the knots of both arms, (2 k,), and their covariance."""
    size = seen.hats.shape[1]
    shares = np.repeat(p, size)
    noise = (seen.residual_sd / shares) ** 2 + fit.residual * np.diag(own) / (shares * rows)
    return averaged_posterior(own, (seen.residuals / p[:, None]).ravel(), noise, _priors(sizes))


def _priors(sizes: Floats) -> list[Floats]:
    """Return prior covariances of values at the knots of both arms, for bends of these sizes and signs in each."""
    shared, apart, alike = np.outer(sizes, sizes), np.diag(sizes**2), _alike()
    return [
        np.asarray(np.kron(common**2 * shared + own**2 * apart, alike)) for common in _COMMON for own in _OWN
    ]


def _weight_bends(seen: Bends, own: Floats, p: Floats, score: ArmScore, off: Floats) -> tuple[Floats, Floats]:
    """Return what weights times an arm's share lack at the knots of both arms, (2 k,), and their covariance.

    A propensity that bends by d of itself on the log odds takes d times the share of the untreated off weights of the
    treated, and adds d times the share of the treated to those of the untreated.
    """
    size, people = seen.hats.shape[1], np.array(score.people)
    noise = np.empty(2)
    for arm in (0, 1):
        parts = people - (np.arange(2) == arm) / p[arm]
        noise[arm] = 4 * seen.sd**2 * float(parts @ parts) + (seen.weight_sd[arm] / p[arm]) ** 2
    sizes = _weight_sizes(score, p)
    lacking = np.where((sizes != 0)[:, None], off, 0.0).ravel()
    return averaged_posterior(own, lacking, np.repeat(noise, size), _priors(sizes))


def _weight_sizes(score: ArmScore, p: Floats) -> Floats:
    """Return how far weights of both arms move with the log odds of treatment, (2,)."""
    # Who is weighted by a constant is who is asked about.
    used = np.array([bool(line[1:].any()) for line in score.weights])
    return np.array([p[1], -p[0]]) if used.all() else used.astype(np.float64)


def _alike() -> Floats:
    """Return how values at two knots go together where slopes change at each inner knot.

    Lines and balance take out the level and the slope, for an index that is about normal: little of them is left.
    """
    weights = np.exp(-0.5 * _KNOTS**2)
    weights /= weights.sum()
    lines = np.column_stack([np.ones_like(_KNOTS), _KNOTS])
    bends = np.maximum(_KNOTS[:, None] - _KNOTS[1:-1], 0.0)
    bends -= lines @ np.linalg.solve((lines.T * weights) @ lines, (lines.T * weights) @ bends)
    found = bends @ (np.eye(len(bends.T)) + _TOGETHER) @ bends.T
    found = found / float(weights @ np.diag(found)) + _LINE * lines @ lines.T
    return np.asarray(found + 1e-6 * np.eye(len(found)))
