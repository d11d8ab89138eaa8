"""The features that balancing weights balance: covariates, their squares, and the propensity score.

The features are a guess, made before any outcome is seen, of how the mean outcome varies: each block
(linear, squares, score, strata) receives a share of its supposed variance, spread evenly over the
block's columns. The linear part of the score deserves a share of its own, for it is the direction
in which the arms differ most and an unbalanced outcome is biased.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError

ColumnKind = Literal["number", "binary", "label"]

_BLOCK = 8192
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
    score. `strata`: indicators of `strata_count` equal-sized groups of the score.
    """

    linear: float = 0.7
    squares: float = 0.3
    score: float = 0.1
    strata: float = 0.0
    strata_count: int = 10

    def __post_init__(self) -> None:
        shares = [getattr(self, f.name) for f in fields(self) if f.name != "strata_count"]
        fine = all(math.isfinite(s) and s >= 0.0 for s in shares) and sum(shares) > 0.0
        if not fine or self.strata_count < 2:
            raise ParameterError(
                "CV-P265",
                "The shares of the feature blocks are out of range.",
                expected="finite shares of 0 or more, one of them above 0, and at least 2 strata",
                got=f"{self}",
                fix="use the default shares, or raise one of them above 0",
            )


def weight_features(
    covariates: NDArray[np.floating],
    kinds: Sequence[ColumnKind],
    scores: NDArray[np.float64],
    shares: FeatureShares | None = None,
    dtype: type[np.floating] = np.float32,
) -> NDArray[np.floating]:
    """Return the centred (n, p) feature matrix; its columns' variances are the shares divided evenly.

    `covariates` is (n, d); a column of kind "label" holds whole-number codes from 0 and becomes one
    indicator a code, which together count as one column. `scores` (n,) are propensity scores in (0, 1).
    Constant columns are left out. Values are read in blocks, so memory beyond the result is small.
    """
    shares = shares or FeatureShares()
    _check(covariates, kinds, scores)
    groups = [
        *_blocks_of_shares(covariates, kinds, shares),
        *_score_groups(_logit(scores), shares),
    ]
    scaled = [column for group in groups for column in group.scaled()]
    features = np.empty((len(covariates), len(scaled)), dtype=dtype, order="C")
    for span in _spans(len(covariates)):
        # One column after the other is contiguous here, and turned into rows at once.
        columns = np.empty((len(scaled), len(range(len(covariates))[span])))
        for j, column in enumerate(scaled):
            np.subtract(column.source.values(span), column.mean, out=columns[j])
        columns *= np.array([column.factor for column in scaled])[:, None]
        features[span] = columns.T
    return features


@dataclass(frozen=True, slots=True)
class _Source:
    """One raw column, computed a span of rows at a time; its values are kept where one span holds all rows."""

    raw: NDArray[np.floating]
    level: int | None = None
    centre: float = 0.0
    scale: float = 0.0
    _held: list[NDArray[np.float64]] = field(default_factory=list, compare=False, repr=False)
    _moments: list[tuple[float, float]] = field(default_factory=list, compare=False, repr=False)

    def values(self, span: slice) -> NDArray[np.float64]:
        """Return the values of a span, to be read only."""
        if self._held:
            return self._held[0]
        part: NDArray[np.float64] = np.asarray(self.raw[span], np.float64)
        if self.level is not None:
            part = np.asarray(part == self.level, np.float64)
        elif self.scale > 0.0:
            part = (part - self.centre) / self.scale
            np.clip(part, -_SQUARE_CLIP, _SQUARE_CLIP, out=part)
            part *= part
        if len(self.raw) <= _BLOCK:
            self._held.append(part)
        return part

    def moments(self) -> tuple[float, float]:
        """Return mean and variance over all rows, each block's deviations joined to those before it."""
        if not self._moments:
            self._moments.append(self._counted())
        return self._moments[0]

    def _counted(self) -> tuple[float, float]:
        count, mean, deviations = 0, 0.0, 0.0
        for span in _spans(len(self.raw)):
            values = self.values(span)
            step = float(values.mean()) - mean
            share = len(values) / (count + len(values))
            away = values - (mean + step)
            deviations += float(away @ away) + step**2 * count * share
            mean += step * share
            count += len(values)
        variance = deviations / count
        return mean, variance if variance > (_CONSTANT * mean) ** 2 else 0.0


@dataclass(frozen=True, slots=True)
class _Scaled:
    source: _Source
    mean: float
    factor: float


@dataclass(frozen=True, slots=True)
class _Group:
    """Raw columns that share one variance."""

    sources: tuple[_Source, ...]
    variance: float

    def scaled(self) -> list[_Scaled]:
        """Return the columns that vary, scaled by one factor so that their variances add up to the group's."""
        moments = [(source, *source.moments()) for source in self.sources]
        total = sum(variance for _, _, variance in moments)
        if total == 0.0 or self.variance == 0.0:
            return []
        factor = math.sqrt(self.variance / total)
        return [_Scaled(source, mean, factor) for source, mean, variance in moments if variance > 0.0]


def _blocks_of_shares(
    covariates: NDArray[np.floating], kinds: Sequence[ColumnKind], shares: FeatureShares
) -> list[_Group]:
    """Return the groups of the linear block and of the squares."""
    linear, squares = [], []
    for j, kind in enumerate(kinds):
        raw = covariates[:, j]
        if kind == "label":
            levels = np.flatnonzero(np.bincount(raw.astype(np.intp)))
            linear.append(tuple(_Source(raw, level=int(level)) for level in levels))
            continue
        linear.append(((source := _Source(raw)),))
        if kind == "number":
            mean, variance = source.moments()
            if variance > 0.0:
                squares.append((_Source(raw, centre=mean, scale=math.sqrt(variance)),))
    return [
        *(_Group(sources, shares.linear / len(linear)) for sources in linear),
        *(_Group(sources, shares.squares / len(squares)) for sources in squares),
    ]


def _score_groups(logit: NDArray[np.float64], shares: FeatureShares) -> list[_Group]:
    """Return the groups made from the propensity score."""
    groups = [_Group((_Source(logit),), shares.score)]
    if shares.strata > 0.0:
        inner = np.quantile(logit, np.linspace(0.0, 1.0, shares.strata_count + 1)[1:-1])
        stratum = np.searchsorted(inner, logit).astype(np.float64)
        levels = tuple(_Source(stratum, level=k) for k in range(shares.strata_count))
        groups.append(_Group(levels, shares.strata))
    return groups


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
