"""Variances, quantiles and intervals; knows nothing of privacy."""

from counterveil.inference.convolution import NoiseLaw, half_width, tail
from counterveil.inference.inflation import inflation
from counterveil.inference.uncertainty import Uncertainty

__all__ = ["NoiseLaw", "Uncertainty", "half_width", "inflation", "tail"]
