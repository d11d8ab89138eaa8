"""What a public rule of treatment gains, and the curve of gains along a ranking, from effects of cells.

    gain = sum_k w_k E[D 1{cell k}],    D = effect of a person - cost of treatment,

per person of everybody, in units of the outcome, with w_k = 1 for cells that are treated. Three gains follow
(over nobody, over everybody, of everybody over nobody); areas under the curve of gains over shares of people
treated (Qini, AUTOC) are the same sum with other weights (Yadlowsky et al. 2025) [1]_.

In: effects of disjoint cells of people with their errors, sizes of the cells, the cost. Out: gains, shares
and areas with errors, noise included. All of it is post-processing of released effects: nothing is spent, and
privacy is that of the effects. Errors of cells are added as independent ones; where cells share fitted
models, the part of models is made larger by the number of cells, the most that dependence can do.

References
----------
.. [1] Yadlowsky, S., Fleming, S., Shah, N., Brunskill, E. and Wager, S. (2025). Evaluating treatment
   prioritization rules via rank-weighted average treatment effects. Journal of the American Statistical
   Association 120, 38-51.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from counterveil.estimators.moments.effect_sums import EffectSums
from counterveil.inference.noise_sums import weighted_sum
from counterveil.inference.noisy_ratio import NoisyRatio
from counterveil.inference.pooled_uncertainty import PooledUncertainty
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.results.answering import Facts
from counterveil.results.effect import Effect, Linear
from counterveil.results.groups import point

# The least share of people who are treated, where noise left none.
_LEAST_SHARE = 1e-9


@dataclass(frozen=True, slots=True)
class CellEffects:
    """Effects of cells of everybody whose sizes are public, less the cost of treatment.

    Attributes
    ----------
    effects : tuple of Effect
        Of the cells.
    cost : float
        Of treating one person, in units of the outcome.
    together : bool
        Whether cells share fitted models, so that their errors may go together.
    """

    effects: tuple[Effect, ...]
    cost: float
    together: bool

    @property
    def sizes(self) -> Floats:
        """Number of people in every cell."""
        return np.array([effect.size for effect in self.effects])

    @property
    def rows(self) -> int:
        """The number of everybody."""
        return int(self.sizes.sum())

    def sum(self, weights: Floats) -> Linear:
        """Return what is known about the sum over cells of weight times (effect - cost), per person of everybody."""
        shares = weights * self.sizes / self.rows
        used = np.flatnonzero(shares)
        cells = [cast("Linear", self.effects[cell].known) for cell in used]
        # Errors of models that go together in k cells are no more than independent ones of k times the variance.
        size = float(np.abs(shares).sum())
        model_factor = float(len(used)) if self.together else 1.0
        errors = tuple(
            _scaled(cast("Uncertainty", linear.uncertainty), size, model_factor) for linear in cells
        )
        value = float(shares[used] @ (np.array([linear.estimate for linear in cells]) - self.cost))
        ends = np.array([linear.limits for linear in cells], dtype=float) - self.cost
        limits = np.sort(shares[used, None] * ends, axis=1).sum(axis=0)
        pooled = PooledUncertainty(errors, tuple(map(float, np.abs(shares[used]) / size)))
        return Linear(value, pooled, (float(limits[0]), float(limits[1])))


def _scaled(error: Uncertainty, size: float, model_factor: float) -> Uncertainty:
    """Return the error of `size` times a number, that of models `model_factor` times as variable."""
    square = size**2
    return replace(
        error,
        noise=weighted_sum(np.array([size]), [error.noise]),
        variance=square * error.variance,
        variance_cap=square * error.variance_cap,
        variance_noise=weighted_sum(np.array([square]), [error.variance_noise]),
        extra=square * model_factor * error.extra,
        bias=size * error.bias,
        ball_variance=square * error.ball_variance,
    )


def gains_of_rule(sums: EffectSums | CellEffects, level: float, constant: bool | None = None) -> Facts:
    """Return the three gains of a rule and the share of people whom it treats; `constant` is its word for everyone."""
    treated = np.array([0.0, 1.0])
    others = np.array([1.0, 0.0])
    if constant is not None:
        treated = np.array([float(constant)])
        others = np.array([float(not constant)])
    wanted = {
        "policy - nobody": treated,
        "policy - everybody": -others,
        "everybody - nobody": treated + others,
    }
    gains = tuple(
        Effect(name=name, known=sums.sum(weights), level=level, several=len(wanted), size=sums.rows)
        for name, weights in wanted.items()
    )
    share = float(np.clip(sums.sizes[1] / sums.rows, 0.0, 1.0)) if constant is None else float(constant)
    return Facts(gains=gains, share=share)


def points_of_curve(sums: EffectSums | CellEffects, at: Floats, level: float) -> Facts:
    """Return the curve from the highest scores downwards; everything in it is post-processing."""
    cells = len(at) + 1
    shares = np.clip(np.cumsum(sums.sizes[::-1]) / sums.rows, _LEAST_SHARE, 1.0)
    shares[-1] = 1.0
    shares = np.maximum.accumulate(shares)
    thresholds = [None if cell == cells - 1 else float(at[cells - 2 - cell]) for cell in range(cells)]
    return Facts(
        gains=tuple(
            point(threshold, share, known=sums.sum(_top(cells, cell + 1)), level=level, points=cells)
            for cell, (threshold, share) in enumerate(zip(thresholds, shares.tolist(), strict=True))
        ),
        thresholds=tuple(thresholds),
        shares=tuple(shares.tolist()),
        qini=_qini(sums, shares),
        autoc=_autoc(sums, shares),
    )


def _top(cells: int, count: int) -> Floats:
    """Return flags of the `count` cells of highest scores."""
    flags = np.zeros(cells)
    flags[cells - count :] = 1.0
    return flags


def _qini(sums: EffectSums | CellEffects, shares: Floats) -> NoisyRatio | Linear:
    """Return the area between the curve and the straight line of treating the same share at random."""
    cells = len(shares)
    steps = np.diff(np.concatenate([[0.0], shares]))
    # Trapezia: the gain after a bin counts for half of its own step and half of the next.
    weights = np.zeros(cells)
    for cell in range(cells):
        after = steps[cell + 1] if cell + 1 < cells else 0.0
        weights += (steps[cell] + after) / 2 * _top(cells, cell + 1)
    return sums.sum(weights - 0.5)


def _autoc(sums: EffectSums | CellEffects, shares: Floats) -> NoisyRatio | Linear:
    """Return the mean over shares of (mean gain of those treated) minus (mean gain of everybody)."""
    cells = len(shares)
    steps = np.diff(np.concatenate([[0.0], shares]))
    weights = np.zeros(cells)
    for cell in range(cells):
        weights += steps[cell] / shares[cell] * _top(cells, cell + 1)
    return sums.sum(weights - 1.0)
