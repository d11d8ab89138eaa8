"""Variances, quantiles and intervals; knows nothing of privacy."""

from counterveil.inference.clusters import ClusterUncertainty, t_factor
from counterveil.inference.convolution import (
    NoiseDistribution,
    UnsureScale,
    half_width,
    tail,
    tail_point,
    variance_allowance,
)
from counterveil.inference.measures import rare_events, with_rare_events
from counterveil.inference.noise_sums import NoiseSum, WeightedSum
from counterveil.inference.pooling import (
    POOLING_METHODS,
    ErrorBetweenSites,
    Heterogeneity,
    PooledUncertainty,
    best_subset,
    held_weights,
    heterogeneity,
    other_variance,
    pooling_weights,
    released_variance,
    steadied_variances,
    unsure_variances,
)
from counterveil.inference.uncertainty import Uncertainty, adjusted_p, inflation, level_of_each

__all__ = [
    "POOLING_METHODS",
    "ClusterUncertainty",
    "ErrorBetweenSites",
    "Heterogeneity",
    "NoiseDistribution",
    "NoiseSum",
    "PooledUncertainty",
    "Uncertainty",
    "UnsureScale",
    "WeightedSum",
    "adjusted_p",
    "best_subset",
    "half_width",
    "held_weights",
    "heterogeneity",
    "inflation",
    "level_of_each",
    "other_variance",
    "pooling_weights",
    "rare_events",
    "released_variance",
    "steadied_variances",
    "t_factor",
    "tail",
    "tail_point",
    "unsure_variances",
    "variance_allowance",
    "with_rare_events",
]
