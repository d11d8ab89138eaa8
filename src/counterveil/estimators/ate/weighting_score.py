"""The propensity score that weights for balance treat as a feature: robust to far values, and bent.

Where only outcomes are private all of this is public and free, whatever it reads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from counterveil.data import Range, Table
from counterveil.estimators.ate.covariates import Features, covariate_features
from counterveil.estimators.ate.matching_design import Scored, scored
from counterveil.estimators.ate.weighting_settings import MATCHING, WeightingSettings
from counterveil.kernels.propensity import fit_propensity
from counterveil.kernels.thin_products import Gram
from counterveil.kernels.weight_factor import solve_positive

Floats = NDArray[np.float64]

# Standard deviations beyond which a number counts no further: a few far rows must not decide its slope.
_REACH = 3.0
# How strongly changes of slope are held to zero: as if they were drawn with a standard deviation of a tenth.
_HOLD = 100.0
# The gradient's tolerance: a step follows that changes more.
_TOLERANCE = 1e-5
# Scores nearer to 0 or 1 than this count as that near.
_LEAST = 1e-6
# Numbers read at once, and up to which they are kept for the second reading (8 MB).
_BLOCK, _SMALL = 1 << 17, 1 << 20


def weighting_design(table: Table, settings: WeightingSettings) -> Scored:
    """Return features, arms and the scores that weights are made from: close to matching, those of matching."""
    if settings.goal == MATCHING:
        return scored(table, settings.penalty)
    features = covariate_features(table)
    penalty = 1 / table.rows if settings.penalty is None else settings.penalty
    return Scored(features, table.treated, bent_score(features, table.treated, penalty))


def bent_score(features: Features, treated: NDArray[np.bool_], penalty: float) -> Floats:
    """Return (n,) probabilities of treatment, of which the logit is bent at the mean of every number.

    First comes a logistic regression on the covariates, numbers being cut at three standard deviations; then
    one step of Newton's for the change of each number's slope above its mean, held to zero.
    """
    numbers = np.array([isinstance(domain, Range) for domain in features.domains])
    values = _cut(features.values, numbers)
    straight = np.clip(fit_propensity(values, treated, penalty, _TOLERANCE).scores, _LEAST, 1 - _LEAST)
    spread = np.sqrt(np.einsum("ij,ij->j", values, values) / len(values))
    bending = np.flatnonzero(numbers & (spread > 0.0))
    system, slope = Gram(len(bending) + 1), np.zeros(len(bending) + 1)
    parts = list(_parts_above(values, bending, spread)) if values.size <= _SMALL else None
    for rows, above in parts or _parts_above(values, bending, spread):
        chance = straight[rows]
        slope += (treated[rows] - chance) @ above
        system.add(above * np.sqrt(chance * (1 - chance))[:, None])
    held = system.whole()
    held[np.diag_indices(len(bending))] += _HOLD
    step = solve_positive(held, slope[:, None])[:, 0]
    bent = np.asarray(logit(straight))
    for rows, above in parts or _parts_above(values, bending, spread):
        bent[rows] += above @ step
    return np.asarray(expit(bent))


def _cut(values: Floats, numbers: NDArray[np.bool_]) -> Floats:
    """Return the (n, p) values, numbers cut, at mean zero and with a largest deviation of one; constants are zero."""
    spread = np.sqrt(np.einsum("ij,ij->j", values, values) / len(values))
    reach = np.where(numbers, _REACH * spread, np.inf)
    cut = np.minimum(values, reach)
    np.maximum(cut, -reach, out=cut)
    cut -= cut.mean(axis=0)
    largest = np.maximum(cut.max(axis=0), -cut.min(axis=0))
    cut *= np.where(largest > 0.0, 1.0 / np.where(largest > 0.0, largest, 1.0), 0.0)
    return cut


def _parts_above(values: Floats, bending: NDArray[np.intp], spread: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of rows with the part of some columns above their mean, standardised, and a last column of ones."""
    step = max(_BLOCK // (len(bending) + 1), 1)
    for start in range(0, len(values), step):
        rows = slice(start, start + step)
        above = np.ones((len(values[rows]), len(bending) + 1))
        np.maximum(np.take(values[rows], bending, axis=1), 0.0, out=above[:, :-1])
        above[:, :-1] *= 1.0 / spread[bending]
        yield rows, above
