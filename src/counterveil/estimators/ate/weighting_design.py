"""What covariates and treatments alone decide about weighting: features, weights, remaining imbalance.

Where only outcomes are private all of this is public and free, whatever it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Binary, Range, Table
from counterveil.estimators.ate.matching_design import Scored, match
from counterveil.estimators.ate.weighting_settings import BLOCKS, MATCHING, WeightingSettings
from counterveil.kernels.balancing_weights import Target, WeightSettings, balance_weights
from counterveil.kernels.thin_products import sums
from counterveil.kernels.weight_features import ColumnKind, FeatureShares, weight_features
from counterveil.privacy import Estimand

Floats = NDArray[np.float64]

_TARGETS: Mapping[Estimand, Target] = {Estimand.ATE: "ATE", Estimand.ATT: "ATT", Estimand.ATC: "ATC"}


@dataclass(frozen=True, slots=True)
class Weighted:
    """Features (n, p) of total variance one, the weights (n,) of an effect, and how far they are from balance.

    `imbalance`: root mean square bias of the estimate when the mean outcome is linear in the features in a
    random direction and varies by one standard deviation over the rows.
    """

    features: NDArray[np.floating]
    weights: Floats
    imbalance: float
    gap: float


def features_of(table: Table, score: Floats, settings: WeightingSettings) -> NDArray[np.floating]:
    """Return the centred features (n, p) that are balanced, scaled to a total variance of one."""
    domains = table.study.covariates.values()
    kinds: list[ColumnKind] = [
        "number" if isinstance(domain, Range) else "binary" if isinstance(domain, Binary) else "label"
        for domain in domains
    ]
    shares = {name: BLOCKS[name] if name in settings.features else 0.0 for name in BLOCKS}
    features = weight_features(
        # Columns are contiguous, which is how they are read.
        np.array([table.covariates[name] for name in table.study.covariates]).T,
        kinds,
        score,
        FeatureShares(shares["covariates"], shares["squares"], shares["score"], shares["strata"]),
    )
    total = float(np.einsum("ij,ij->", features, features, dtype=np.float64)) / len(features)
    features *= 1.0 / sqrt(total) if total > 0 else 1.0
    return features


def weighted(
    table: Table, design: Scored, settings: WeightingSettings, estimand: Estimand, noise_variance: float
) -> Weighted:
    """Return the weights of least supposed error; `noise_variance` is that of the noise at sensitivity one."""
    features = features_of(table, design.score, settings)
    target = _TARGETS[estimand]
    reference = None
    if settings.goal == MATCHING:
        reference = match(design, settings.neighbours, (None, None), target).matching.coefficients
    found = balance_weights(
        features,
        design.treated,
        noise_variance=noise_variance,
        target=target,
        reference=reference,
        settings=WeightSettings(settings.signal, settings.residual),
    )
    left = remaining_imbalance(features, design.treated, found.values, estimand)
    return Weighted(features, found.values, left, found.gap)


def remaining_imbalance(
    features: NDArray[np.floating], treated: NDArray[np.bool_], weights: Floats, estimand: Estimand
) -> float:
    """Return the imbalance of weights towards those whose effect is asked for; features have mean zero.

    The slopes of the two arms' mean outcomes may be the same or have nothing to do with each other; the
    larger of the two biases is returned.
    """
    whose = (
        np.ones(len(treated), np.bool_) if estimand is Estimand.ATE else treated == (estimand is Estimand.ATT)
    )
    target = whose / np.count_nonzero(whose)
    gaps = []
    for arm, sign in ((treated, 1.0), (~treated, -1.0)):
        difference = np.where(arm, sign * weights, 0.0) - target
        gaps.append(sums(features, difference))
    together = gaps[0] - gaps[1]
    apart = float(gaps[0] @ gaps[0]) + float(gaps[1] @ gaps[1])
    return sqrt(max(apart, float(together @ together)))
