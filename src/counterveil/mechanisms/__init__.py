"""Noise mechanisms, each with its proof page beside it."""

from counterveil.mechanisms.ball import Ball
from counterveil.mechanisms.box import Box
from counterveil.mechanisms.gaussian import Gaussian
from counterveil.mechanisms.laplace import Laplace, LaplacePair
from counterveil.mechanisms.lomax import Lomax
from counterveil.mechanisms.noise import (
    BitSource,
    Grid,
    Noise,
    ScaledNoise,
    SeededNoise,
    SystemNoise,
    fixed_ambient_generators,
)
from counterveil.mechanisms.registry import KnownSensitivityMechanism, Mechanism, mechanism_from_dict
from counterveil.mechanisms.response import RandomizedResponse
from counterveil.mechanisms.stable_histogram import StableHistogram
from counterveil.mechanisms.staircase import Staircase
from counterveil.mechanisms.summed_laplace import SummedLaplace
from counterveil.mechanisms.summed_normal import SummedBall, SummedGaussian

__all__ = [
    "Ball",
    "BitSource",
    "Box",
    "Gaussian",
    "Grid",
    "KnownSensitivityMechanism",
    "Laplace",
    "LaplacePair",
    "Lomax",
    "Mechanism",
    "Noise",
    "RandomizedResponse",
    "ScaledNoise",
    "SeededNoise",
    "StableHistogram",
    "Staircase",
    "SummedBall",
    "SummedGaussian",
    "SummedLaplace",
    "SystemNoise",
    "fixed_ambient_generators",
    "mechanism_from_dict",
]
