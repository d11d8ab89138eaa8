"""How the cells of a stratified contrast are weighted: post-processing of released numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError, shown
from counterveil.estimators.ate.declared_bound import checked_kappa
from counterveil.estimators.setting_checks import whole
from counterveil.sensitivity import StratifiedContrast

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

_MOST_STRATA = 20
# What stratifying is supposed to change, as a part of the range: more noise than this is not worth it.
_GAP = 0.03
# How far cell means are supposed to lie from their arm's mean, as a part of the range.
_CELL_SPREAD = 0.1
# An arm's count in a stratum is taken as at least this part of what its share of everyone gives, and at
# most as that divided by this part.
LEAST_PART = 0.4
# A stratum is taken to hold at least this part of everyone.
_LEAST_STRATUM = 0.02
# A true count exceeds its released one by less than this many standard deviations of the noise.
_COUNT_MARGIN = 4.0
_BLENDS = [k / 10 for k in range(11)]
_MOVES = [k / 4 for k in range(5)]


@dataclass(frozen=True, slots=True)
class ScoreStrataSettings:
    """Settings of `method="score_strata"`.

    Attributes:
        strata: how many strata the score is cut into.
        kappa: a bound on the confounding that the strata leave, yours to declare: |comparison within strata -
            effect| is at most kappa sd(outcome) / (0.75 sd(treatment)). The interval is widened by it and covers
            the effect only if it holds; without one the interval is not for the effect.
    """

    strata: int = 3
    kappa: float | None = None

    def __post_init__(self) -> None:
        checked_kappa(self.kappa)
        if not whole(self.strata, 2, _MOST_STRATA):
            raise ParameterError(
                "CV-P243",
                "the number of strata is out of range",
                expected=f"a whole number, 2 <= strata <= {_MOST_STRATA}",
                got=f"strata={shown(self.strata)}",
                fix="leave it out, or pass a small whole number such as 3",
            )


@dataclass(frozen=True, slots=True)
class Cells:
    """Released facts: rows, share treated, counts (2, K) with the treated first, means of both arms, width."""

    rows: int
    share: float
    share_variance: float
    counts: Floats
    count_variance: float
    means: tuple[Fraction, Fraction]
    width: Fraction


@dataclass(frozen=True, slots=True)
class Weighting:
    """The chosen contrast; `blend` is 1 for full stratification and 0 for the plain contrast.

    `inflation` times the second moment bounds the variance that errors of counts and share add;
    `variance_cap` bounds the sampling variance of the sum, the strata being given.
    """

    contrast: StratifiedContrast
    blend: float
    share: float
    inflation: float
    variance_cap: float


def choose_weighting(cells: Cells, unit_variance: float, estimand: str) -> Weighting:
    """Return the weights and centres with the least expected error; `unit_variance`: noise of sensitivity 1."""
    full, floors = _stratified(cells, estimand)
    arm_sizes = cells.rows * np.array([[cells.share], [1 - cells.share]])
    plain = np.ones_like(full) / arm_sizes
    width, means = float(cells.width), [float(mean) for mean in cells.means]
    middle = width / 2

    def moved(part: float) -> list[float]:
        return [mean + part * (middle - mean) for mean in means]

    def expected(choice: tuple[float, float]) -> float:
        blend, part = choice
        weights, centres = _blended(full, plain, blend), moved(part)
        off = np.array([[(c - m) ** 2] for c, m in zip(centres, means, strict=True)])
        counts = (
            blend**2 * cells.count_variance * float((full**2 * (off + (_CELL_SPREAD * width) ** 2)).sum())
        )
        share = (
            (1 - blend) ** 2
            * cells.share_variance
            * float((off[:, 0] * (cells.rows / arm_sizes[:, 0]) ** 2).sum())
        )
        noise = unit_variance * _reach(width, weights, centres) ** 2
        return noise + counts + share + ((1 - blend) * _GAP * width) ** 2

    blend, part = min(product(_BLENDS, _MOVES), key=expected)
    inflation = blend**2 * cells.count_variance / float(floors.min())
    inflation += (1 - blend) ** 2 * cells.share_variance * cells.rows / min(cells.share, 1 - cells.share)
    weights = _blended(full, plain, blend)
    contrast = _contrast(cells.width, weights, moved(part))
    # An outcome's variance is at most a quarter of the squared width; counts are known up to their noise.
    most = np.clip(cells.counts + _COUNT_MARGIN * cells.count_variance**0.5, 0.0, cells.rows)
    cap = width**2 / 4 * float((weights**2 * most).sum())
    return Weighting(contrast, blend, cells.share, inflation, cap)


def _stratified(cells: Cells, estimand: str) -> tuple[Floats, Floats]:
    """Return the weights (2, K) of full stratification and the counts that they divide by."""
    sizes = np.maximum(cells.counts.sum(axis=0), _LEAST_STRATUM * cells.rows)
    # The number of rows is public, so that the strata can be made to hold all of them and no more.
    sizes *= cells.rows / sizes.sum()
    usual = sizes * np.array([[cells.share], [1 - cells.share]])
    counts = np.clip(cells.counts, LEAST_PART * usual, usual / LEAST_PART)
    target = {"ATE": sizes, "ATT": counts[0], "ATC": counts[1]}[estimand]
    return target / target.sum() / counts, counts


def _blended(full: Floats, plain: Floats, blend: float) -> Floats:
    return blend * full + (1 - blend) * plain


def _reach(width: float, weights: Floats, centres: list[float]) -> float:
    """Return the sensitivity of the contrast in floats: enough for a choice."""
    (a, b), (first, second) = weights.max(axis=1), centres
    low, high = min(-a * first, -b * (width - second)), max(a * (width - first), b * second)
    return float(high - low)


def _contrast(width: Fraction, weights: Floats, centres: list[float]) -> StratifiedContrast:
    treated, control = (tuple(Fraction(float(w)) for w in row) for row in weights)
    inside = [min(max(Fraction(centre), Fraction(0)), width) for centre in centres]
    return StratifiedContrast(width, treated, control, *inside)
