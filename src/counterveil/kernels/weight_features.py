"""The features that balancing weights balance: covariates, their squares, and the propensity score.

The features are a guess, made before any outcome is seen, of how the mean outcome varies: each block
(linear, squares, products, score, strata) receives a share of its supposed variance, spread evenly over the
block's columns. The linear part of the score deserves a share of its own, for it is the direction
in which the arms differ most and an unbalanced outcome is biased.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError

ColumnKind = Literal["number", "binary", "label"]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Rows and columns read at once: they stay in a core's cache. (Not a power of two of rows, with which columns
# would crowd into one corner of it.)
_BLOCK, _TOGETHER = 8000, 32
# Standard deviations beyond which a square, or a score on its logit scale, grows no further: one
# extreme row must not own a feature.
_SQUARE_CLIP = 3.0
_SCORE_CLIP = 1e-3
# A column whose spread is below this share of its size is constant up to rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True, slots=True)
class FeatureShares:
    """How the supposed variance of the mean outcome is divided among the blocks, up to a common factor.

    `linear`: all covariates. `squares`: squares of the numbers. `score`: the logit of the propensity
    score. `strata`: indicators of `strata_count` equal-sized groups of the score. `products`: products of two
    of the `products_of` numbers or two-label covariates that go with the score most.
    """

    linear: float = 0.7
    squares: float = 0.3
    score: float = 0.1
    strata: float = 0.0
    strata_count: int = 10
    products: float = 0.0
    products_of: int = 5

    def __post_init__(self) -> None:
        counts = ("strata_count", "products_of")
        shares = [getattr(self, f.name) for f in fields(self) if f.name not in counts]
        fine = all(math.isfinite(s) and s >= 0.0 for s in shares) and sum(shares) > 0.0
        if not fine or min(self.strata_count, self.products_of) < 2:
            raise ParameterError(
                "CV-P265",
                "The shares of the feature blocks are out of range.",
                expected="finite shares of 0 or more, one of them above 0, and at least 2 strata and covariates",
                got=f"{self}",
                fix="use the default shares, or raise one of them above 0",
            )


def weight_features(
    covariates: NDArray[np.floating],
    kinds: Sequence[ColumnKind],
    scores: NDArray[np.float64],
    shares: FeatureShares | None = None,
    dtype: type[np.floating] = np.float32,
    total: float | None = None,
) -> NDArray[np.floating]:
    """Return the centred (n, p) feature matrix; its columns' variances are the shares divided evenly.

    With a `total` they are multiplied by what makes them add up to it.

    `covariates` is (n, d); a column of kind "label" holds whole-number codes from 0 and becomes one
    indicator a code, which together count as one column; they follow the other covariates. `scores` (n,)
    are propensity scores in (0, 1). Constant columns are left out. Values are read in blocks, so memory
    beyond the result is small.
    """
    shares = shares or FeatureShares()
    _check(covariates, kinds, scores)
    logit = _logit(scores)
    parts = [
        *_covariate_parts(covariates.T, kinds, shares),
        *_product_parts(covariates.T, kinds, logit, shares),
        *_score_parts(logit, shares),
    ]
    ends = np.cumsum([0, *(len(part.factor) for part in parts)])
    features = np.empty((len(covariates), int(ends[-1])), dtype=dtype, order="C")
    held = sum(part.variance for part in parts)
    scale = 1.0 if total is None or held == 0.0 else math.sqrt(total / held)
    for span in _spans(len(covariates)):
        for part, first, end in zip(parts, ends, ends[1:], strict=False):
            # One column after the other is contiguous here, and turned into rows at once.
            features[span, first:end] = part.scaled(span, scale).T
    return features


class _Columns(Protocol):
    """Columns before they are centred and scaled."""

    def values(self, span: slice) -> Floats:
        """Return a copy of the values of a span of rows, (columns, rows)."""
        ...

    def only(self, kept: Flags) -> _Columns:
        """Return some of the columns."""
        ...


@dataclass(frozen=True, slots=True)
class _Plain:
    """The rows `which` of a matrix, as they are."""

    raw: NDArray[np.floating]
    which: NDArray[np.intp]

    def values(self, span: slice) -> Floats:
        return self.raw[self.which, span].astype(np.float64, copy=False)

    def only(self, kept: Flags) -> _Plain:
        return _Plain(self.raw, self.which[kept])


@dataclass(frozen=True, slots=True)
class _Squares:
    """Columns standardised by (columns,) means and deviations, clipped and squared."""

    plain: _Plain
    mean: Floats
    deviation: Floats

    def standard(self, span: slice) -> Floats:
        """Return the columns of a span standardised and clipped."""
        part = self.plain.values(span)
        part -= self.mean[:, None]
        part *= (1.0 / self.deviation)[:, None]
        return np.clip(part, -_SQUARE_CLIP, _SQUARE_CLIP, out=part)

    def values(self, span: slice) -> Floats:
        part = self.standard(span)
        part *= part
        return part

    def only(self, kept: Flags) -> _Squares:
        return _Squares(self.plain.only(kept), self.mean[kept], self.deviation[kept])


@dataclass(frozen=True, slots=True)
class _Products:
    """Products of two columns each, standardised and clipped: column first[k] times column second[k]."""

    factors: _Squares
    first: NDArray[np.intp]
    second: NDArray[np.intp]

    def values(self, span: slice) -> Floats:
        part = self.factors.standard(span)
        return np.asarray(part[self.first] * part[self.second])

    def only(self, kept: Flags) -> _Products:
        return _Products(self.factors, self.first[kept], self.second[kept])


@dataclass(frozen=True, slots=True)
class _Levels:
    """One indicator a level of a column of codes (rows,)."""

    codes: NDArray[np.floating]
    levels: Floats

    def values(self, span: slice) -> Floats:
        return np.asarray(self.codes[span] == self.levels[:, None], np.float64)

    def only(self, kept: Flags) -> _Levels:
        return _Levels(self.codes, self.levels[kept])


@dataclass(frozen=True, slots=True)
class _Part:
    """Columns, what is taken off each and what each is multiplied by, (columns,) both, and their variances' sum."""

    columns: _Columns
    mean: Floats
    factor: Floats
    variance: float

    @classmethod
    def of(cls, columns: _Columns, moments: tuple[Floats, Floats], share: float | Floats) -> _Part:
        """Return the columns that vary, of these means and variances, scaled to variances of these shares."""
        mean, variance = moments
        kept = (variance > 0.0) & (share > 0.0)
        found = np.broadcast_to(share, kept.shape)[kept]
        left = columns if kept.all() else columns.only(kept)
        return cls(left, mean[kept], np.sqrt(found / variance[kept]), float(found.sum()))

    def scaled(self, span: slice, scale: float) -> Floats:
        """Return `scale` times the scaled values of a span."""
        values = self.columns.values(span)
        values -= self.mean[:, None]
        values *= (scale * self.factor)[:, None]
        return values


def _covariate_parts(
    raw: NDArray[np.floating], kinds: Sequence[ColumnKind], shares: FeatureShares
) -> Iterator[_Part]:
    """Yield the columns of the linear block, labels last, and those of the squares; `raw` is (d, n)."""
    rows, each = raw.shape[1], shares.linear / max(len(kinds), 1)
    which = np.array([j for j, kind in enumerate(kinds) if kind != "label"], np.intp)
    squares = []
    for first in range(0, len(which), _TOGETHER):
        plain = _Plain(raw, which[first : first + _TOGETHER])
        mean, variance = _moments(plain, rows)
        yield _Part.of(plain, (mean, variance), each)
        numbers = (variance > 0.0) & np.array([kinds[j] == "number" for j in plain.which], np.bool_)
        squares.append(_Squares(plain.only(numbers), mean[numbers], np.sqrt(variance[numbers])))
    yield from (_indicators(raw[j], each) for j, kind in enumerate(kinds) if kind == "label")
    count = sum(len(group.mean) for group in squares)
    yield from (_Part.of(group, _moments(group, rows), shares.squares / count) for group in squares if count)


def _product_parts(
    raw: NDArray[np.floating], kinds: Sequence[ColumnKind], logit: Floats, shares: FeatureShares
) -> Iterator[_Part]:
    """Yield the products of the covariates that go with the score most."""
    plain = _Plain(raw, np.array([j for j, kind in enumerate(kinds) if kind != "label"], np.intp))
    if shares.products == 0.0 or len(plain.which) < 2:
        return
    rows, centred = len(logit), logit - logit.mean()
    mean, variance = _moments(plain, rows)
    varies = variance > 0.0
    columns = _Squares(plain.only(varies), mean[varies], np.sqrt(variance[varies]))
    near = sum(np.abs(columns.standard(span) @ centred[span]) for span in _spans(rows))
    chosen = np.zeros(len(columns.mean), np.bool_)
    chosen[np.argsort(-np.asarray(near), kind="stable")[: shares.products_of]] = True
    pairs = np.triu_indices(int(chosen.sum()), 1)
    if len(pairs[0]):
        products = _Products(columns.only(chosen), *pairs)
        yield _Part.of(products, _moments(products, rows), shares.products / len(pairs[0]))


def _score_parts(logit: Floats, shares: FeatureShares) -> Iterator[_Part]:
    """Yield the columns made from the propensity score."""
    score = _Plain(logit[None], np.zeros(1, np.intp))
    yield _Part.of(score, _moments(score, len(logit)), shares.score)
    if shares.strata > 0.0:
        inner = np.quantile(logit, np.linspace(0.0, 1.0, shares.strata_count + 1)[1:-1])
        yield _indicators(np.searchsorted(inner, logit).astype(np.float64), shares.strata)


def _indicators(codes: NDArray[np.floating], share: float) -> _Part:
    """Return one indicator a level, scaled by one factor so that their variances add up to the share."""
    mean = np.bincount(codes.astype(np.intp)) / len(codes)
    variance = mean * (1.0 - mean)
    total = float(variance.sum())
    columns = _Levels(codes, np.arange(float(len(mean))))
    return _Part.of(columns, (mean, variance), variance * (share / total if total > 0.0 else 0.0))


def _moments(columns: _Columns, rows: int) -> tuple[Floats, Floats]:
    """Return mean and variance of each column, each span's deviations joined to those before it."""
    mean: Floats | float = 0.0
    deviations: Floats | float = 0.0
    for span in _spans(rows):
        values = columns.values(span)
        own = values.mean(axis=1)
        values -= own[:, None]
        step, share = own - mean, (span.stop - span.start) / span.stop
        deviations = deviations + np.einsum("ij,ij->i", values, values) + step**2 * (span.start * share)
        mean = mean + step * share
    variance, found = np.asarray(deviations) / rows, np.asarray(mean)
    return found, np.where(variance > (_CONSTANT * found) ** 2, variance, 0.0)


def _logit(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    clipped = np.clip(scores, _SCORE_CLIP, 1.0 - _SCORE_CLIP)
    return np.asarray(np.log(clipped / (1.0 - clipped)))


def _spans(n: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))


def _check(
    covariates: NDArray[np.floating], kinds: Sequence[ColumnKind], scores: NDArray[np.float64]
) -> None:
    shape = covariates.shape
    if len(shape) != 2 or scores.shape != shape[:1] or len(kinds) != shape[1] or shape[0] == 0:
        raise ParameterError(
            "CV-P262",
            "Covariates, kinds and scores do not belong together.",
            expected="covariates of shape (n, d), d kinds and n scores, n above 0",
            got=f"covariates {shape}, {len(kinds)} kinds, scores {scores.shape}",
            fix="pass one kind for every covariate and one score for every row",
        )
    strange = sorted(set(kinds) - {"number", "binary", "label"})
    if strange:
        raise ParameterError(
            "CV-P266",
            "A covariate is of an unknown kind.",
            expected='"number", "binary" or "label"',
            got=", ".join(map(repr, strange)),
            fix="name the kind of every column",
        )
