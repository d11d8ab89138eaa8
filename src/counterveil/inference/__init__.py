"""Variances, quantiles and intervals; knows nothing of privacy."""

from counterveil.inference.convolution import NoiseDistribution, half_width, tail
from counterveil.inference.inflation import inflation
from counterveil.inference.noise_sums import NoiseSum, WeightedSum
from counterveil.inference.pooling import (
    POOLING_METHODS,
    PooledUncertainty,
    best_subset,
    held_weights,
    other_variance,
    pooling_weights,
    released_variance,
    steadied_variances,
    unsure_variances,
)
from counterveil.inference.random_effects import ErrorBetweenSites, Heterogeneity, heterogeneity
from counterveil.inference.uncertainty import Uncertainty, adjusted_p, level_of_each
from counterveil.inference.unsure_scale import UnsureScale, tail_point, variance_allowance

__all__ = [
    "POOLING_METHODS",
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
    "released_variance",
    "steadied_variances",
    "tail",
    "tail_point",
    "unsure_variances",
    "variance_allowance",
]
