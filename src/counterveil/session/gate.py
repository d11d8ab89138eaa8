"""The gate: the only code that draws noise and releases a statistic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import InternalError
from counterveil.mechanisms import (
    Ball,
    BitSource,
    Box,
    Gaussian,
    Grid,
    KnownSensitivityMechanism,
    Laplace,
    RandomizedResponse,
    StableHistogram,
)
from counterveil.session.plan import Kind, Plan

Label = TypeVar("Label")


@dataclass(frozen=True, slots=True)
class Released:
    """A released number: the noisy value and the public noise distribution."""

    value: Fraction
    noise: KnownSensitivityMechanism | Box

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True, slots=True)
class ReleasedVector:
    """Numbers released together; `variance` is that of the noise of each of them."""

    values: tuple[Fraction, ...]
    variance: float

    def floats(self) -> NDArray[np.float64]:
        """Return the values as an array."""
        return np.array([float(value) for value in self.values])


@dataclass(frozen=True, slots=True)
class Responses:
    """Randomized booleans, one per row; each is the true one with probability `truth`."""

    values: NDArray[np.bool_]
    truth: float


class Gate:
    """Lets each release of a reserved plan through once; made by `Session.run` after the budget is reserved."""

    def __init__(self, plan: Plan, source: BitSource) -> None:
        self._plan = plan
        self._source = source
        self._passed: set[str] = set()

    def release(self, name: str, value: Fraction, sensitivity: Fraction) -> Released:
        """Return `value` plus the noise that the plan pays for under `name`; a second time is refused."""
        amount = self._pay(name, Kind.NUMBER)
        mechanism = self._plan.noise(name, sensitivity)
        return Released(mechanism.release(value, grid_for(sensitivity, amount), self._source), mechanism)

    def release_smooth(
        self, name: str, value: Fraction, bound: Fraction, smoothness: Fraction, least: Fraction
    ) -> Fraction:
        """Return `value` plus noise whose scale follows `bound`, a smooth bound of its local sensitivity.

        The bound stays private, so nothing but the value is returned. `least` is a public scale below which
        the noise is not expected to fall; the grid is fine beside it.
        """
        amount = self._pay(name, Kind.SMOOTH)
        mechanism = self._plan.smooth_noise(name, smoothness)
        return mechanism.release(value, bound, grid_for(least, amount), self._source)

    def release_vector(self, name: str, values: Sequence[Fraction], sensitivity: Fraction) -> ReleasedVector:
        """Return `values` plus noise; `sensitivity` bounds the Euclidean length of their change.

        The noise is Gaussian where the plan's mechanism is or they were planned so, else from the l2 ball.
        """
        normal_vector = self._plan.kind(name) is Kind.NORMAL
        amount = self._pay(name, Kind.NORMAL if normal_vector else Kind.VECTOR)
        grid = grid_for(sensitivity, amount)
        if self._plan.mechanism == "gaussian" or normal_vector:
            normal = Gaussian(sensitivity, amount)
            values = tuple(normal.release(value, grid, self._source) for value in values)
            return ReleasedVector(values, normal.variance)
        mechanism = Ball(sensitivity, amount, len(values))
        return ReleasedVector(mechanism.release(values, grid, self._source), mechanism.variance)

    def release_several(
        self,
        name: str,
        values: Sequence[Fraction],
        sensitivities: Sequence[Fraction],
        weights: Sequence[Fraction],
    ) -> list[Released]:
        """Return `values` plus noise; every one of them may move by its own bound at once, see `Plan.several_noise`."""
        amount = self._pay(name, Kind.SEVERAL)
        noises = self._plan.several_noise(name, sensitivities, weights)
        first = noises[0]
        if isinstance(first, Box):
            unit = Box(1, amount, len(values))
            scaled = [value / bound for value, bound in zip(values, sensitivities, strict=True)]
            drawn = unit.release(scaled, grid_for(Fraction(1), amount), self._source)
            noisy = [value * bound for value, bound in zip(drawn, sensitivities, strict=True)]
            return [Released(value, noise) for value, noise in zip(noisy, noises, strict=True)]
        return [
            Released(noise.release(value, grid_for(noise.sensitivity, amount), self._source), noise)
            for value, noise in zip(values, noises, strict=True)
            if not isinstance(noise, Box)
        ]

    def release_cells(self, name: str, values: Sequence[Fraction], sensitivity: Fraction) -> ReleasedVector:
        """Return `values` plus Laplace noise on each; `sensitivity` bounds the sum of their changes."""
        amount = self._pay(name, Kind.CELLS)
        mechanism, grid = Laplace(sensitivity, amount), grid_for(sensitivity, amount)
        noisy = tuple(mechanism.release(value, grid, self._source) for value in values)
        return ReleasedVector(noisy, mechanism.variance)

    def release_rows(
        self, name: str, steps: NDArray[np.int64], low: int, high: int, step: Fraction
    ) -> NDArray[np.float64]:
        """Return every row's number plus Laplace noise of its own, in units of `step`.

        `steps[i]` must be computed from row i and public or released numbers alone; it is clamped to
        [low, high]. A replaced person moves one entry, by at most the width.
        """
        amount = self._pay(name, Kind.ROWS)
        noise = Laplace((high - low) * step, amount).draw(len(steps), Grid(step), self._source)
        noisy = np.clip(steps, low, high) + noise
        return noisy.astype(np.float64)

    def release_labels(self, name: str, counts: Mapping[Label, int]) -> dict[Label, int]:
        """Return labels that many rows have, with noisy counts, from those that occur; a row has one at most."""
        amount = self._pay(name, Kind.LABELS)
        return StableHistogram(amount, self._plan.label_delta).release(counts, self._source)

    def respond(self, name: str, flags: NDArray[np.bool_]) -> Responses:
        """Return every row's truth value through randomized response."""
        mechanism = RandomizedResponse(self._pay(name, Kind.RESPONSE), 2)
        answers = mechanism.release_many(flags.astype(np.int64), self._source)
        return Responses(answers.astype(np.bool_), mechanism.truth)

    def _pay(self, name: str, kind: Kind) -> Fraction:
        """Return what the plan reserved for this release; each name passes once."""
        amount = self._plan.amount(name, kind)
        if name in self._passed:
            raise InternalError(
                "CV-X003",
                "the same release was requested twice",
                expected="each planned release once",
                got=repr(name),
                fix="this is a bug in the estimator: please report it",
            )
        self._passed.add(name)
        return amount


@lru_cache(maxsize=256)
def grid_for(sensitivity: Fraction, amount: Fraction) -> Grid:
    """Return a grid that is fine beside the noise of a release of this sensitivity that pays this amount."""
    return Grid.for_scale(sensitivity / max(amount, Fraction(1)))
