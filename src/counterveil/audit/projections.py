"""From a vector to one score: directions are given, trained on the first half, or read off the densities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from counterveil.audit.protocols import FloatArray, Mechanism, Pair, WhiteBox
from counterveil.audit.refusals import needs_density

Score: TypeAlias = Callable[[FloatArray], FloatArray]

# Heavy-tailed noise has no usable mean, so the training half is clipped at these quantiles first.
_TRIM = 0.02
# Keeps the direction defined when a coordinate never moves.
_RIDGE = 1e-9


class Projection(Protocol):
    """A way of turning outputs of shape (m, d) into scores of shape (m,)."""

    def train(self, mechanism: Mechanism, pair: Pair, first: FloatArray, second: FloatArray, /) -> Score:
        """Return the scoring function; `first` and `second` are the training halves, shape (m, d)."""
        ...


@dataclass(frozen=True, slots=True)
class Given:
    """A scoring function that the caller supplies."""

    function: Score

    def train(self, mechanism: Mechanism, pair: Pair, first: FloatArray, second: FloatArray, /) -> Score:  # noqa: ARG002
        """Return the function as it was given."""
        return self.function


@dataclass(frozen=True, slots=True)
class LinearDiscriminant:
    """The direction that best separates the two training halves, robust to heavy tails."""

    def train(self, mechanism: Mechanism, pair: Pair, first: FloatArray, second: FloatArray, /) -> Score:  # noqa: ARG002
        """Return the scores along Fisher's direction, with the clipped sample means and covariances."""
        low, high = np.quantile(np.concatenate([first, second]), [_TRIM, 1 - _TRIM], axis=0)
        a, b = np.clip(first, low, high), np.clip(second, low, high)
        gap = a.mean(axis=0) - b.mean(axis=0)
        spread = np.atleast_2d(np.cov(a, rowvar=False)) + np.atleast_2d(np.cov(b, rowvar=False))
        ridge = _RIDGE * max(float(np.trace(spread)) / len(spread), np.finfo(float).tiny)
        direction = np.linalg.solve(spread + ridge * np.eye(len(spread)), gap)
        norm = float(np.linalg.norm(direction))
        unit = direction / norm if norm > 0 else np.eye(len(spread))[0]
        return lambda outputs: outputs @ unit


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """The log ratio of the two densities: by Neyman and Pearson no score is better; white box only."""

    def train(self, mechanism: Mechanism, pair: Pair, first: FloatArray, second: FloatArray, /) -> Score:  # noqa: ARG002
        """Return the log ratio, cut to [-1e6, 1e6] so that an infinite one stays a score."""
        if not isinstance(mechanism, WhiteBox):
            raise needs_density(mechanism)
        white: WhiteBox = mechanism
        scalar = first.shape[1] == 1

        def score(outputs: FloatArray) -> FloatArray:
            points = outputs[:, 0] if scalar else outputs
            with np.errstate(invalid="ignore"):
                ratio = white.log_density(pair[0], points) - white.log_density(pair[1], points)
            return np.clip(np.nan_to_num(ratio, nan=0.0, posinf=1e6, neginf=-1e6), -1e6, 1e6)

        return score
