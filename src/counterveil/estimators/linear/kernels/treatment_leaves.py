"""Groups of rows in which treatment is off its score: leaves of small trees grown on treatment.

Weights that balance the groups remove the bias of outcomes that jump where a covariate passes a value, and by
more or less as another one does: such outcomes are in no line, square or single product. Where treatment t
follows the same jumps, trees find the groups of rows between them in what a score p leaves of treatment.
Trees are boosted by second-order steps (Friedman 2001): with G the sum of t - p and H the sum of p (1 - p)
over a leaf,

    gain of a split = G^2 / (H + 1) of both sides less that of the whole,    step of a leaf = 0.3 G / (H + 1),

every split being the one of largest gain, and nothing drawn at random. A leaf is kept where G^2 / (H + 1)
under the scores that came in is at least `_LEAST_OFF`^2, that is 2 standard errors off.

In: public covariates (d, n), treatment (n,), scores (n,). Out: an indicator (m, n) of the rows of each leaf,
which becomes a feature that weights balance. Nothing here reads an outcome, and where outcomes alone are
private it costs no privacy. The constants steer which groups are balanced; privacy does not depend on them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from counterveil.estimators.linear.kernels.treatment_terms import FeatureRows
from counterveil.numerics.arrays import Floats

Inside = NDArray[np.bool_]
Pairs = NDArray[np.intp]

# How many trees at most, how deep, and how much of its fit each takes off: chosen by hand on the studies of
# `python -m experiments.outcome_level.leaves --tuning`, which have 4,802 rows.
_TREES = 10
_DEPTH = 3
_RATE = 0.3
# Rows for each tree: of few rows many leaves follow chance, and what is left of their imbalance lengthens intervals.
_ROWS_EACH_TREE = 400
# Where columns are cut: at so many evenly placed ranks.
_CUTS = 15
# The part of the rows that a step has on either side at least, and the rows that a leaf has.
_LEAST_PART = 0.01
_LEAST_ROWS = 40
# What is added to the curvature of a leaf, so that a small one moves little.
_LEAF_RIDGE = 1.0
# Rows that splits are found among.
_READ = 10_000
# Standard errors by which treatment in a leaf must be off its scores. Of 0, 1 and 2 (all, three quarters, half of the
# leaves), tried by hand, 2 erred least on settings 6 and 9 of ACIC 2016; `python -m experiments.causal.expected --acic
# FOLDER` prints what is taken.
_LEAST_OFF = 2.0
# Scores nearer to 0 or 1 than this count as that near.
_LEAST = 1e-3


def treatment_leaves(
    features: FeatureRows, treated: NDArray[np.bool_], scores: NDArray[np.floating]
) -> Inside:
    """Return the leaves (m, n), true for the rows inside, of trees that treatment (n,) follows beyond its scores (n,).

    `features` (d, n) are to be cut. Leaves in which treatment is as its scores say are left out.
    """
    rows = features.shape[1]
    some = slice(None, None, max(1, rows // _READ))
    cuts = [_cuts(feature) for feature in features[:, some]]
    codes = np.array(
        [np.searchsorted(cut, feature) for cut, feature in zip(cuts, features[:, some], strict=True)],
        np.uint8,
    )
    if not any(map(len, cuts)):
        return np.empty((0, rows), np.bool_)
    bins = max(map(len, cuts)) + 1
    # Two columns at a time, the last with itself: sums by both codes give those by either.
    pairs = codes[::2].astype(np.intp) * bins + codes[[*range(1, len(codes), 2), -1][: -(-len(codes) // 2)]]
    chances = np.clip(scores.astype(np.float64), _LEAST, 1.0 - _LEAST)
    beyond = treated - chances
    variance = chances * (1.0 - chances)
    margin = logit(chances[some])
    distinct = dict[bytes, Inside]()
    for _ in range(min(max(rows // _ROWS_EACH_TREE, 1), _TREES)):
        fitted = expit(margin)
        leaf_of, leaves = _grown(
            features,
            cuts,
            pairs=pairs,
            some=some,
            residual=treated[some] - fitted,
            curvature=fitted * (1.0 - fitted),
        )
        sums = [
            np.bincount(leaf_of[some], part, leaves)
            for part in (treated[some] - fitted, fitted * (1.0 - fitted))
        ]
        margin += (_RATE * sums[0] / (sums[1] + _LEAF_RIDGE))[leaf_of[some]]
        off = np.bincount(leaf_of, beyond, leaves) ** 2 / (
            np.bincount(leaf_of, variance, leaves) + _LEAF_RIDGE
        )
        inside = [leaf_of == leaf for leaf in np.flatnonzero(off >= _LEAST_OFF**2)]
        distinct |= {leaf.tobytes(): leaf for leaf in inside}
    return np.array(list(distinct.values()), np.bool_).reshape(-1, rows)


def _grown(
    features: FeatureRows,
    cuts: list[FeatureRows],
    pairs: Pairs,
    some: slice,
    residual: Floats,
    curvature: Floats,
) -> tuple[NDArray[np.uint8], int]:
    """Return the leaf of one tree that every row is in, and how many there are; some rows find the splits."""
    leaf_of = np.zeros(features.shape[1], np.uint8)
    leaves = 1
    bins = max(map(len, cuts)) + 1
    for _ in range(_DEPTH):
        for leaf, split in enumerate(
            _splits(pairs, bins, leaf_of=leaf_of[some], residual=residual, curvature=curvature, leaves=leaves)
        ):
            if split is not None:
                column, cut = split
                leaf_of[(leaf_of == leaf) & (features[column] > cuts[column][cut])] = leaves
                leaves += 1
    return leaf_of, leaves


def _cuts(feature: FeatureRows) -> FeatureRows:
    """Return the values at which a column (n,) is cut, in order: rows above are on the far side."""
    rows = len(feature)
    ordered = np.sort(feature)
    ranks = np.arange(1, _CUTS + 1) * rows // (_CUTS + 1)
    # The value at a rank may be that of many rows: the cut is below them, or above.
    tried = np.unique(np.concatenate([ordered[ranks], ordered[np.searchsorted(ordered, ordered[ranks]) - 1]]))
    shares = 1.0 - np.searchsorted(ordered, tried, side="right") / rows
    distinct = list[int]()
    last_share = 1.0
    for rank, share in enumerate(shares):
        if _LEAST_PART <= share <= 1.0 - _LEAST_PART and last_share - share > _LEAST_PART / 2:
            distinct.append(rank)
            last_share = share
    return tried[distinct]


def _splits(
    pairs: Pairs, bins: int, leaf_of: NDArray[np.uint8], residual: Floats, curvature: Floats, leaves: int
) -> list[tuple[int, int] | None]:
    """Return for each leaf the column and the cut of largest gain, None where no cut gains."""
    by_pair = np.empty((leaves, len(pairs), 2, bins, 3))
    first = leaf_of.astype(np.intp) * bins**2
    for of_pair, pair in zip(by_pair.swapaxes(0, 1), pairs, strict=True):
        cell = first + pair
        cell_sums = [np.bincount(cell, part, leaves * bins**2) for part in (residual, curvature, None)]
        both = np.stack(cell_sums, axis=1).reshape(leaves, bins, bins, 3)
        of_pair[:, 0] = both.sum(axis=2)
        of_pair[:, 1] = both.sum(axis=1)
    sums = by_pair.reshape(leaves, -1, bins, 3)
    totals = sums[:, :1].sum(axis=2)[:, :, None]
    far = sums[:, :, ::-1].cumsum(axis=2)[:, :, -2::-1]
    near = totals - far
    gain = _fit(far) + _fit(near) - _fit(totals)
    gain[np.minimum(far[..., 2], near[..., 2]) < _LEAST_ROWS] = 0.0
    best = gain.reshape(leaves, -1).argmax(axis=1)
    most = gain.reshape(leaves, -1).max(axis=1)
    return [
        divmod(int(cell), bins - 1) if gained > 0.0 else None for cell, gained in zip(best, most, strict=True)
    ]


def _fit(sums: Floats) -> Floats:
    """Return how much better a leaf of these sums fits with a step of its own, but for a factor."""
    return np.asarray(sums[..., 0] ** 2 / (np.maximum(sums[..., 1], 0.0) + _LEAF_RIDGE))
