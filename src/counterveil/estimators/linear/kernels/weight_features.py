"""The features that weights balance: covariates, squares, propensity score, what treatment follows.

The features are a guess, made before any outcome is seen, of how the mean outcome varies. With independent
slopes of one variance on all p features, a feature of variance v_j carries the share v_j / sum_k v_k of the
mean outcome's variance, so that weights balance it that much more closely. Each block b of k_b columns
(linear, squares, products, score, strata, terms, direction, cosines, leaves) has a share S_b
(`FeatureShares`), and

    v_j = S_b / k_b for the columns j of block b,

but for indicators of labels and strata, whose variances add up to that of a column, and for cosines, of which
the slow ones receive more. Every feature has mean zero; constant columns are left out.

The linear part of the score deserves a share of its own, for it is the direction in which the arms differ
most and an unbalanced outcome is biased (Rosenbaum and Rubin 1983). So do the terms that treatment follows
beyond a line (`treatment_terms`), their sum as it enters treatment, cosines of the score's rank, which an
outcome may follow that is nonlinear in the score, and groups of rows between jumps that treatment follows
(`treatment_leaves`).

In: public covariates and scores (probabilities). Out: features (n, p) without units. No outcome is read;
shares steer what is balanced, and privacy does not depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.estimators.linear.kernels.treatment_leaves import Inside
from counterveil.estimators.linear.kernels.treatment_terms import FeatureRows, TreatmentTerms
from counterveil.numerics.arm_rows import Rows
from counterveil.numerics.arrays import Floats
from counterveil.numerics.standard_columns import (
    ComputedRows,
    RowSource,
    StandardColumns,
    varying,
    write_levels,
)

ColumnKind = Literal["number", "binary", "label"]

# Scores nearer to 0 or 1 than this count as that near.
_SCORE_CLIP = 1e-3
# Rows that ranks of scores are read off, and rows whose cosines are made together.
_RANKED_ROWS = 4096
_TOGETHER = 2048


@dataclass(frozen=True, slots=True)
class FeatureShares:
    """How the supposed variance of the mean outcome is divided among the blocks, up to a common factor.

    `linear`: all covariates. `squares`: squares of the numbers. `score`: the logit of the propensity
    score. `strata`: indicators of `strata_count` equal-sized groups of the score. `products`: products of two
    of the `products_of` numbers or two-label covariates that go with the score most. `terms` and `direction`: what
    treatment follows beyond a line, each and as a sum. `cosines`: those of the score's rank, `cosines_count` of them.
    `leaves`: groups of rows between jumps that treatment follows.
    """

    linear: float = 0.7
    squares: float = 0.3
    score: float = 0.1
    strata: float = 0.0
    strata_count: int = 10
    products: float = 0.0
    products_of: int = 5
    terms: float = 0.0
    direction: float = 0.0
    cosines: float = 0.0
    cosines_count: int = 5
    leaves: float = 0.0

    def __post_init__(self) -> None:
        counts = ("strata_count", "products_of", "cosines_count")
        shares = [getattr(self, f.name) for f in fields(self) if f.name not in counts]
        fine = all(math.isfinite(s) and s >= 0.0 for s in shares) and sum(shares) > 0.0
        if not fine or min(self.strata_count, self.products_of, self.cosines_count) < 2:
            raise refusal("CV-P265", what=self)


def parted_features(
    covariates: NDArray[np.floating] | ComputedRows,
    kinds: Sequence[ColumnKind],
    scores: NDArray[np.float64],
    shares: FeatureShares | None = None,
    dtype: type[np.floating] = np.float32,
    total: float | None = None,
    followed: TreatmentTerms | None = None,
    leaves: Inside | None = None,
    rows: Rows | None = None,
) -> tuple[NDArray[np.floating], int, Floats | None]:
    """Return the centred (n, p) feature matrix; its columns' variances are the shares divided evenly.

    With it comes how many of the first columns are made of covariates alone: lines, squares and products. Where rows
    are given, the matrix has these alone, and the means (p,) of all, which rounding left, come last.

    With a `total` variances are multiplied by what makes them add up to it. `followed` are the terms that treatment
    follows and `leaves` (m, n) the groups of rows, where they have a share.

    `covariates` is (n, d); a column of kind "label" holds whole-number codes from 0 and becomes one
    indicator a code, which together count as one column; they follow the other covariates. `scores` (n,)
    are propensity scores in (0, 1). Constant columns are left out. The matrix is kept column by
    column; covariates are read fastest if they are kept like that, too, or come as lines.
    """
    shares = shares or FeatureShares()
    raw: RowSource = covariates
    if not isinstance(covariates, ComputedRows):
        _check(covariates, kinds, scores)
        raw = np.ascontiguousarray(covariates.T, np.float64)
    clipped = np.clip(scores, _SCORE_CLIP, 1.0 - _SCORE_CLIP)
    logit = np.asarray(np.log(clipped / (1.0 - clipped)))
    blocks = list(_covariate_blocks(raw, kinds, logit, shares))
    covariate_features = sum(len(block.variances) for block in blocks)
    blocks += [
        *_leaf_blocks(leaves, shares),
        *_term_blocks(followed, shares),
        *_score_blocks(logit, shares, followed),
    ]
    ends = np.cumsum([0, *(len(block.variances) for block in blocks)])
    features = np.empty((int(ends[-1]), len(scores) if rows is None else len(rows)), dtype)
    means = np.zeros(len(features))
    supposed_variance = sum(float(block.variances.sum()) for block in blocks)
    scale = 1.0 if total is None or supposed_variance == 0.0 else math.sqrt(total / supposed_variance)
    for first, end in pairwise(ends):
        # Dropped once it is written, with what it was made of.
        block = blocks.pop(0)
        values = features[first:end] if rows is None else np.empty((end - first, len(scores)), dtype)
        block.write(scale * np.sqrt(block.variances), values)
        if rows is not None:
            np.take(values, rows, axis=1, out=features[first:end], mode="clip")
            means[first:end] = values.mean(axis=1, dtype=np.float64)
    return features.T, covariate_features, None if rows is None else means


@dataclass(frozen=True, slots=True)
class _Block:
    """Features of one kind, by the variances (k,) that they are to have.

    `write` takes deviations (k,), and writes centred features that have them to lines (k, n).
    """

    variances: Floats
    write: Callable[[Floats, FeatureRows], object]


def _covariate_blocks(
    raw: RowSource, kinds: Sequence[ColumnKind], logit: Floats, shares: FeatureShares
) -> Iterator[_Block]:
    """Yield the linear block, labels last, then squares and products; `raw` is (d, n)."""
    share_each = shares.linear / max(len(kinds), 1)
    plain = StandardColumns.of(raw, np.array([j for j, kind in enumerate(kinds) if kind != "label"], np.intp))
    if shares.linear > 0.0:
        yield _plain(plain, share_each)
        yield from (_indicators(raw[j], share_each) for j, kind in enumerate(kinds) if kind == "label")
    score_products, mean, variance = plain.sums(logit - logit.mean())
    number = np.array([kinds[j] == "number" for j in plain.which], np.bool_)
    if shares.squares > 0.0 and number.any():
        squared = number & varying(mean, variance)
        yield _squares(
            plain.only(squared), mean[squared], variance[squared], shares.squares / int(number.sum())
        )
    chosen = np.argsort(-np.abs(score_products), kind="stable")[: shares.products_of]
    if shares.products > 0.0 and len(chosen) > 1:
        pairs = list(combinations(np.sort(chosen).tolist(), 2))
        products = StandardColumns.of(plain.products(pairs), np.arange(len(pairs)))
        yield _plain(products, shares.products / len(pairs))


def _term_blocks(followed: TreatmentTerms | None, shares: FeatureShares) -> Iterator[_Block]:
    """Yield the terms that treatment follows, which are standardised."""
    if followed is None or not len(followed.columns) or shares.terms == 0.0:
        return
    terms = followed.columns
    yield _Block(
        np.full(len(terms), shares.terms / len(terms)),
        lambda deviations, out: np.multiply(terms, deviations[:, None], out=out, casting="same_kind"),
    )


def _leaf_blocks(leaves: Inside | None, shares: FeatureShares) -> Iterator[_Block]:
    """Yield the groups of rows between jumps that treatment follows."""
    if leaves is None or not len(leaves) or shares.leaves == 0.0:
        return
    share = leaves.mean(axis=1)
    varies = (share > 0.0) & (share < 1.0)
    inside = leaves[varies]
    share = share[varies]

    def write(deviations: Floats, out: FeatureRows) -> None:
        high = deviations / np.sqrt(share * (1.0 - share))
        for feature, rows, mean, size in zip(out, inside, share, high, strict=True):
            feature[:] = np.where(rows, (1.0 - mean) * size, -mean * size)

    yield _Block(np.full(len(inside), shares.leaves / len(leaves)), write)


def _score_blocks(logit: Floats, shares: FeatureShares, followed: TreatmentTerms | None) -> Iterator[_Block]:
    """Yield the columns made from the propensity score and from the sum of the terms."""
    if shares.strata > 0.0:
        inner = np.quantile(logit, np.linspace(0.0, 1.0, shares.strata_count + 1)[1:-1])
        yield _indicators(np.searchsorted(inner, logit).astype(np.float64), shares.strata)
    if shares.score > 0.0:
        yield _plain(StandardColumns.of(logit[None], np.zeros(1, np.intp)), shares.score)
    if shares.direction > 0.0 and followed is not None and followed.direction is not None:
        direction = followed.direction.astype(np.float64)[None]
        yield _plain(StandardColumns.of(direction, np.zeros(1, np.intp)), shares.direction)
    if shares.cosines > 0.0:
        yield _cosines(logit, shares.cosines_count, shares.cosines)


def _cosines(logit: Floats, count: int, share: float) -> _Block:
    """Return cos(pi j r), j = 2, ..., count + 1, of the score's rank r in (0, 1), slow ones with more of the share.

    The first cosine is left out: it is nearly the score itself. All are made wherever they are read, a few rows at a
    time.
    """
    ranked = np.sort(logit[:: max(1, len(logit) // _RANKED_ROWS)])
    rows = len(logit)
    first = np.cos(np.pi * np.interp(logit, ranked, (np.arange(len(ranked)) + 0.5) / len(ranked)))
    mean = np.zeros(count)
    variance = np.zeros(count)
    for block in _parts(rows):
        mean += _waves(first[block], count).sum(axis=1) / rows
    for block in _parts(rows):
        beyond = _waves(first[block], count) - mean[:, None]
        variance += np.einsum("ij,ij->i", beyond, beyond) / rows
    kept = np.flatnonzero(varying(mean, variance))
    weights = np.asarray((kept + 2.0) ** -2, np.float64)

    def write(deviations: Floats, out: FeatureRows) -> None:
        factor = deviations / np.sqrt(variance[kept])
        for block in _parts(rows):
            waves = _waves(first[block], count)[kept]
            out[:, block] = (waves - mean[kept, None]) * factor[:, None]

    return _Block(share * weights / max(float(weights.sum()), np.finfo(float).tiny), write)


def _waves(first: Floats, count: int) -> Floats:
    """Return the cosines (count, n) from the first one (n,)."""
    waves = np.empty((count, len(first)))
    last = np.ones_like(first)
    now = first
    for wave in waves:
        wave[:] = 2.0 * first * now - last
        last = now
        now = wave
    return waves


def _parts(rows: int) -> Iterator[slice]:
    return (slice(start, start + _TOGETHER) for start in range(0, rows, _TOGETHER))


def _plain(columns: StandardColumns, share: float | Floats) -> _Block:
    """Return columns as they are, each with this share, or with its own."""
    return _Block(
        np.broadcast_to(np.asarray(share, np.float64), columns.which.shape).copy(),
        lambda deviations, out: columns.write(deviations / columns.deviation, out),
    )


def _squares(columns: StandardColumns, mean: Floats, variance: Floats, share: float) -> _Block:
    """Return the squares of columns, of these means and variances, each with this share."""
    return _Block(
        np.full(len(columns.which), share),
        lambda deviations, out: columns.write_squares(mean, deviations / np.sqrt(variance), out),
    )


def _indicators(codes: Floats, share: float) -> _Block:
    """Return one indicator a level, scaled by one factor so that their variances add up to the share."""
    mean = np.bincount(codes.astype(np.intp)) / len(codes)
    variance = mean * (1.0 - mean)
    levels = np.flatnonzero(variance > 0.0)
    mean = mean[levels]
    variance = variance[levels]

    def write(deviations: Floats, out: FeatureRows) -> None:
        factor = deviations / np.sqrt(variance)
        write_levels(codes, levels, low=-mean * factor, high=(1.0 - mean) * factor, out=out)

    return _Block(variance * (share / max(float(variance.sum()), np.finfo(float).tiny)), write)


def _check(
    covariates: NDArray[np.floating], kinds: Sequence[ColumnKind], scores: NDArray[np.float64]
) -> None:
    shape = covariates.shape
    if len(shape) != 2 or scores.shape != shape[:1] or len(kinds) != shape[1] or shape[0] == 0:
        raise refusal("CV-P262b", shape=shape, kinds=len(kinds), scores=scores.shape)
    strange = sorted(set(kinds) - {"number", "binary", "label"})
    if strange:
        raise refusal("CV-P266", got=", ".join(map(repr, strange)))
