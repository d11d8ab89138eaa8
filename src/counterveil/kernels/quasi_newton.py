"""A quick approach to the minimum of a convex objective: few Hessians, many gradients.

A Hessian of p columns costs about p/8 gradients. The first one, far from the minimum, is taken over a third of the
rows. Between two Hessians H the inverse is corrected by what the
gradients taken since then say of the curvature along the steps (limited-memory BFGS, started from H^-1), and
convergence is faster than linear. A step that goes too far, where the objective already rises by more than half
of how it fell at the start, is cut to where a straight slope would be zero, more than once if need be.
Where a few steps have not brought the gradient far enough down, the point has moved out of reach of H and
a new Hessian is taken. Most of the way is gone in single precision, where all of this costs half.

Nothing is promised here: `newton.minimise` looks at the objective and at the gradient where this ends, and goes on
from there by steps that are proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

Floats = NDArray[np.float64]

# Gradients taken at most, in single precision and in double.
_MOST = 40
# Gradients, for the root of a column, down to which single precision is used.
_ROUGH = 3e-8
# After this many steps with one Hessian the gradient should have shrunk to this part, or be this near its goal.
_LOOK, _SHRUNK, _NEAR = 4, 1e-4, 10.0
# A slope at the end of a step is steep beyond this part of the one at its start.
_STEEP = 0.5


class Smooth(Protocol):
    """An objective with a gradient (p,) and a Hessian (p, p) that is positive definite."""

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient."""
        ...

    def hessian(self, weights: Floats) -> Floats:
        """Return the Hessian."""
        ...

    def rough(self) -> Smooth:
        """Return the objective in single precision, or itself where that would not show the curvature."""
        ...

    def sample(self) -> Smooth:
        """Return the objective of a third of the rows, or itself where these are few for the columns."""
        ...


@dataclass(frozen=True, slots=True)
class Approach:
    """Where it ended: weights (p,), the gradient there, and the steps taken."""

    weights: Floats
    gradient: Floats
    steps: int


@dataclass(frozen=True, slots=True)
class _Inverse:
    """An approximate inverse Hessian: one that was exact, and the steps and changes of gradient seen since."""

    solve: Callable[[Floats], Floats]
    pairs: list[tuple[Floats, Floats, float]] = field(default_factory=list)

    @classmethod
    def of(cls, hessian: Floats) -> _Inverse:
        factor, fault = dpotrf(hessian, lower=1, clean=0)
        if fault:
            raise np.linalg.LinAlgError("not positive")
        return cls(lambda vector: np.asarray(dpotrs(factor, vector, lower=1)[0]))

    def times(self, gradient: Floats) -> Floats:
        """Return the product with a gradient, newest pair first on the way in and last on the way out."""
        rest, parts = gradient.copy(), []
        for step, change, scale in reversed(self.pairs):
            parts.append(part := scale * float(step @ rest))
            rest -= part * change
        answer = self.solve(rest)
        for step, change, scale in self.pairs:
            answer += (parts.pop() - scale * float(change @ answer)) * step
        return answer

    def learn(self, step: Floats, change: Floats) -> bool:
        """Take note of a step and the change of the gradient along it; return whether they show curvature."""
        product = float(step @ change)
        if product > 0.0:
            self.pairs.append((step, change, 1.0 / product))
        return product > 0.0


def approach(objective: Smooth, start: Floats, enough: float) -> Approach:
    """Return a point where the norm of the gradient is at most `enough`, or where the approach was given up."""
    near, inverse = Approach(start, start, 0), None
    if (rough := objective.rough()) is not objective:
        # Where rounding hides the curvature, double precision begins at the start.
        with suppress(np.linalg.LinAlgError):
            near, inverse = _walk(rough, start, None, max(enough, _ROUGH * math.sqrt(len(start))))
    found, _ = _walk(objective, near.weights, inverse, enough)
    return replace(found, steps=near.steps + found.steps)


def _walk(
    objective: Smooth, weights: Floats, inverse: _Inverse | None, enough: float
) -> tuple[Approach, _Inverse]:
    """Return where the steps end, and what they say of the curvature there; `inverse` is what is known before."""
    gradient = objective.gradient(weights)
    if inverse is None:
        inverse = _Inverse.of(objective.sample().hessian(weights))
    first, seen, steps, taken = _norm(gradient), len(inverse.pairs), 0, 1
    while (norm := _norm(gradient)) > enough and taken < _MOST:
        if len(inverse.pairs) == seen + _LOOK and norm > max(_SHRUNK * first, _NEAR * enough):
            inverse, first, seen = _Inverse.of(objective.hessian(weights)), norm, 0
        direction = inverse.times(gradient)
        falls, length = float(gradient @ direction), 1.0
        new = objective.gradient(weights - direction)
        taken += 1
        while (rises := -float(new @ direction)) > _STEEP * falls and taken < _MOST:
            length *= falls / (falls + rises)
            new = objective.gradient(weights - length * direction)
            taken += 1
        if not inverse.learn(-length * direction, new - gradient):
            break
        weights, gradient, steps = weights - length * direction, new, steps + 1
    return Approach(weights, gradient, steps), inverse


def _norm(vector: Floats) -> float:
    return math.sqrt(float(vector @ vector))
