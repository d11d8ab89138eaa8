"""Random Fourier features with public frequencies: cosine and sine pairs, so that every row has length one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Axis
from counterveil.numerics.public_choices import public_normals


@dataclass(frozen=True, slots=True)
class FourierFeatures:
    """sqrt(1/pairs) (cos(w_k.t), sin(w_k.t)): on average over the frequencies a Gaussian kernel of this bandwidth.

    `axes` map covariates to coordinates: numbers to [0, 1], labels to their contrasts. Frequencies are
    those of `public_numbers` with this seed, normal with standard deviation 1/bandwidth.
    """

    axes: tuple[Axis, ...]
    pairs: int
    bandwidth: float
    seed: int = 0

    @property
    def size(self) -> int:
        """Number of features."""
        return 2 * self.pairs

    def features(self, columns: Mapping[str, Floats], part: slice | None = None) -> Floats:
        """Return the (n, size) features; every row has length one but for rounding, and never more."""
        rows = slice(None) if part is None else part
        points = np.column_stack([_coordinates(axis, columns[axis.source][rows]) for axis in self.axes])
        angles = points @ (public_normals(points.shape[1], self.pairs, self.seed) / self.bandwidth)
        scale = sqrt(1.0 / self.pairs) * (1.0 - 2.0**-40)
        return np.concatenate((np.cos(angles), np.sin(angles)), axis=1) * scale

    def to_dict(self) -> dict[str, Any]:
        """Return the features as JSON-ready facts."""
        axes = [
            {"source": a.source, "family": a.family, "size": a.size, "low": a.low, "width": a.width}
            for a in self.axes
        ]
        return {
            "kind": "fourier",
            "axes": axes,
            "pairs": self.pairs,
            "bandwidth": self.bandwidth,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> FourierFeatures:
        """Return the features written by `to_dict`."""
        axes = tuple(Axis(**axis) for axis in facts["axes"])
        return cls(axes, facts["pairs"], facts["bandwidth"], facts["seed"])


def _coordinates(axis: Axis, column: Floats) -> Floats:
    if axis.family == "labels":
        return axis.values(column)
    return np.clip((column - axis.low) / axis.width, 0.0, 1.0)[:, None]
