"""What the curator may ask of a mechanism."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterveil.mechanisms.grid import Grid
from counterveil.mechanisms.noise import Reals
from counterveil.mechanisms.source import BitSource
from counterveil.privacy import Event


class KnownSensitivityMechanism(Protocol):
    """Additive noise for one number whose sensitivity is public: Laplace, Staircase, Gaussian."""

    @property
    def name(self) -> str:
        """The name under which the mechanism is written down."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """The bound on how far one person can move the number."""
        ...

    @property
    def event(self) -> Event:
        """What one release costs."""
        ...

    @property
    def scale(self) -> Fraction:
        """The exact factor of the unit law; public, so grids may be derived from it."""
        ...

    @property
    def variance(self) -> float:
        """The variance of the noise."""
        ...

    def log_density(self, x: ArrayLike) -> Reals:
        """Return the log density of the noise at x."""
        ...

    def cdf(self, x: ArrayLike) -> Reals:
        """Return P(noise <= x)."""
        ...

    def quantile(self, p: ArrayLike) -> Reals:
        """Return the x with P(noise <= x) = p."""
        ...

    def kinks(self, low: float, high: float, most: int) -> Reals | None:
        """Return the points of [low, high] where the density is not smooth, sorted; None where they exceed `most`."""
        ...

    def release(self, value: Fraction, grid: Grid, source: BitSource) -> Fraction:
        """Return the grid point nearest to value + noise."""
        ...

    def draw(self, count: int, grid: Grid, source: BitSource) -> NDArray[np.int64] | NDArray[np.object_]:
        """Return noise in grid steps, to add to values that are whole numbers of steps."""
        ...

    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text."""
        ...
