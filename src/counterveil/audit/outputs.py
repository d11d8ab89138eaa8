"""Where a white-box tester looks: the whole line, the points of a discrete law, or a cloud of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from counterveil.audit.protocols import FloatArray, Mechanism, Pair
from counterveil.audit.refusals import draw, out_of_range

_PILOT = 513  # draws that say where the outputs lie


@dataclass(frozen=True, slots=True)
class Line:
    """The real line, for a continuous law of numbers.

    The first grid is fine near `centres` and grows geometrically out to `reach` scales on both sides, so
    that tails count; testers refine it. Left out, centres and scales come from a pilot sample.
    """

    centres: tuple[float, ...] | None = None
    scale: float | None = None
    reach: float = 1e9
    points: int = 200

    def __post_init__(self) -> None:
        if (self.centres is None) != (self.scale is None):
            raise out_of_range(
                "Line",
                (self.centres, self.scale),
                "both centres and scale, or neither",
                "pass the other one too",
            )
        if self.scale is not None and not self.scale > 0:
            raise out_of_range("scale", self.scale, "a positive number", "pass the scale of the noise")

    def grid(self, mechanism: Mechanism, pair: Pair, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """Return the sorted first grid, and the largest number that enters x - centre near the centres."""
        steps = np.sinh(np.linspace(0.0, float(np.arcsinh(self.reach)), self.points))
        shape = np.concatenate([-steps[:0:-1], steps])
        places = self._places(mechanism, pair, rng)
        edges = np.unique(np.concatenate([centre + scale * shape for centre, scale in places]))
        return edges, max(abs(centre) + scale for centre, scale in places)

    def _places(
        self, mechanism: Mechanism, pair: Pair, rng: np.random.Generator
    ) -> list[tuple[float, float]]:
        if self.centres is not None and self.scale is not None:
            return [(centre, self.scale) for centre in self.centres]
        quartiles = [np.quantile(sample, [0.25, 0.5, 0.75]) for sample in draw(mechanism, pair, _PILOT, rng)]
        # A release without noise has no scale of its own; the gap between the two centres then serves.
        fallback = abs(float(quartiles[0][1] - quartiles[1][1])) or 1.0
        return [(float(q[1]), float(q[2] - q[0]) or fallback) for q in quartiles]


@dataclass(frozen=True, slots=True)
class Points:
    """The values of a discrete law; mass on values left out is counted as uncertainty."""

    values: FloatArray

    @classmethod
    def integers(cls, low: int, high: int) -> Points:
        """Return the integers from `low` to `high`, both included."""
        return cls(np.arange(low, high + 1, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class Cloud:
    """Vectors drawn from both data sets and improved by a local search; for pure claims in any dimension."""

    draws: int = 4096
    kept: int = 64
    rounds: int = 60


Outputs: TypeAlias = Line | Points | Cloud
