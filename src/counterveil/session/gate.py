"""The gate: the only code that draws noise and releases a statistic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
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
# Numbers, or the pass over rows that makes them, which is not run where they were released before.
Values = Sequence[Fraction] | Callable[[], Sequence[Fraction]]
# Stores what is drawn under a name for public bounds before it is used, or returns what was stored: `Ledger.release`.
Keep = Callable[[str, list[str], Callable[[], list[str]]], list[str]]


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


# Proof: resuming.proof.md
class Gate:
    """Lets each release of a reserved plan through once; made by `Session.run` after the budget is reserved.

    With `keep` what was stored under a name is released again, and what is drawn is stored first.
    """

    def __init__(self, plan: Plan, source: BitSource, keep: Keep | None = None) -> None:
        self._plan = plan
        self._source = source
        self._keep = keep
        self._passed: set[str] = set()

    @property
    def forgetful(self) -> bool:
        """Whether something passed that is not stored: the next gate of this request would draw it anew."""
        return self._keep is None and bool(self._passed)

    def noise(self, name: str, sensitivity: Fraction) -> KnownSensitivityMechanism:
        """Return the noise of the number `name` for a statistic of this sensitivity; draws nothing."""
        return self._plan.noise(name, sensitivity)

    def release(self, name: str, value: Fraction, sensitivity: Fraction) -> Released:
        """Return `value` plus the noise that the plan pays for under `name`; a second time is refused."""
        amount = self._pay(name, Kind.NUMBER)
        mechanism = self.noise(name, sensitivity)
        return Released(self._on_each(name, [value], mechanism, sensitivity, amount)[0], mechanism)

    def release_smooth(
        self, name: str, value: Fraction, bound: Fraction, smoothness: Fraction, least: Fraction
    ) -> Fraction:
        """Return `value` plus noise whose scale follows `bound`, a smooth bound of its local sensitivity.

        The bound stays private, so nothing but the value is returned. `least` is a public scale below which
        the noise is not expected to fall; the grid is fine beside it.
        """
        amount = self._pay(name, Kind.SMOOTH)
        mechanism, grid = self._plan.smooth_noise(name, smoothness), grid_for(least, amount)
        return self._drawn(
            name,
            (least,),
            [value],
            lambda exact: [mechanism.release(exact[0], bound, grid, self._source)],
        )[0]

    def release_vector(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return `values` plus noise; `sensitivity` bounds the Euclidean length of their change.

        The noise is Gaussian where the plan's mechanism is or they were planned so, else from the l2 ball.
        """
        normal_vector = self._plan.kind(name) is Kind.NORMAL
        amount = self._pay(name, Kind.NORMAL if normal_vector else Kind.VECTOR)
        if self._plan.mechanism == "gaussian" or normal_vector:
            normal = Gaussian(sensitivity, amount)
            return ReleasedVector(self._on_each(name, values, normal, sensitivity, amount), normal.variance)

        def add(exact: Sequence[Fraction]) -> Sequence[Fraction]:
            ball = Ball(sensitivity, amount, len(exact))
            return ball.release(exact, grid_for(sensitivity, amount), self._source)

        noisy = self._drawn(name, (sensitivity,), values, add)
        return ReleasedVector(noisy, Ball(sensitivity, amount, len(noisy)).variance)

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

        def add(exact: Sequence[Fraction]) -> list[Fraction]:
            if isinstance(noises[0], Box):
                unit = Box(1, amount, len(exact))
                scaled = [value / bound for value, bound in zip(exact, sensitivities, strict=True)]
                drawn = unit.release(scaled, grid_for(Fraction(1), amount), self._source)
                return [value * bound for value, bound in zip(drawn, sensitivities, strict=True)]
            return [
                noise.release_all([value], grid_for(noise.sensitivity, amount), self._source)[0]
                for value, noise in zip(exact, noises, strict=True)
                if not isinstance(noise, Box)
            ]

        noisy = self._drawn(name, sensitivities, values, add)
        return [Released(value, noise) for value, noise in zip(noisy, noises, strict=True)]

    def release_cells(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return `values` plus Laplace noise on each; `sensitivity` bounds the sum of their changes."""
        amount = self._pay(name, Kind.CELLS)
        mechanism = Laplace(sensitivity, amount)
        return ReleasedVector(self._on_each(name, values, mechanism, sensitivity, amount), mechanism.variance)

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

    def _on_each(
        self,
        name: str,
        values: Values,
        mechanism: KnownSensitivityMechanism,
        bound: Fraction,
        amount: Fraction,
    ) -> tuple[Fraction, ...]:
        """Return the numbers with noise of one mechanism on each; the grid follows a public bound."""
        grid = grid_for(bound, amount)
        return self._drawn(
            name, (bound,), values, lambda exact: mechanism.release_all(exact, grid, self._source)
        )

    def _drawn(
        self,
        name: str,
        bounds: Sequence[Fraction],
        values: Values,
        add: Callable[[Sequence[Fraction]], Sequence[Fraction]],
    ) -> tuple[Fraction, ...]:
        """Return the numbers stored under a name; if there are none, the values with noise that `add` adds, stored."""

        def draw() -> list[str]:
            return [_text(noisy) for noisy in add(values() if callable(values) else values)]

        stored = draw() if self._keep is None else self._keep(name, [_text(bound) for bound in bounds], draw)
        return tuple(map(_number, stored))

    def _pay(self, name: str, kind: Kind) -> Fraction:
        """Return what the plan reserved for this release; each name passes once."""
        amount = self._plan.amount(name, kind)
        if name in self._passed:
            raise refusal("CV-X003", got=repr(name))
        self._passed.add(name)
        return amount


def _text(value: Fraction) -> str:
    """Return an exact number; digits to the base 16 are written and read at any length."""
    return f"{value.numerator:x}/{value.denominator:x}"


def _number(text: str) -> Fraction:
    above, below = text.split("/")
    return Fraction(int(above, 16), int(below, 16))


@lru_cache(maxsize=256)
def grid_for(sensitivity: Fraction, amount: Fraction) -> Grid:
    """Return a grid that is fine beside the noise of a release of this sensitivity that pays this amount."""
    return Grid.for_scale(sensitivity / max(amount, Fraction(1)))
