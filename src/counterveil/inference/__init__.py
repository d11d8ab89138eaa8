"""Variances, quantiles and intervals; knows nothing of privacy."""

from counterveil.inference.convolution import NoiseLaw, half_width, tail
from counterveil.inference.inflation import inflation
from counterveil.inference.simultaneous import adjusted_p, level_of_each
from counterveil.inference.sum_of_laws import SumOfLaws
from counterveil.inference.uncertainty import Uncertainty

__all__ = [
    "NoiseLaw",
    "SumOfLaws",
    "Uncertainty",
    "adjusted_p",
    "half_width",
    "inflation",
    "level_of_each",
    "tail",
]
