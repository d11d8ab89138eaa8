"""A gate that notes what passes it, draws a third of the noise, or returns what another run released."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.mechanisms import (
    Ball,
    BitSource,
    Box,
    Gaussian,
    KnownSensitivityMechanism,
    Laplace,
    Noise,
    RandomizedResponse,
    StableHistogram,
)
from counterveil.session.session import Gate, Kind, Label, Plan, Released, ReleasedVector, Responses, Values

Law = KnownSensitivityMechanism | Noise | Ball | Box | RandomizedResponse | StableHistogram
T = TypeVar("T")
# What every noise of a weakened copy is divided by.
WEAKER = 3


@dataclass(frozen=True, slots=True)
class Passed:
    """One release as its gate saw it: what was private, the distribution that was drawn from, and what came out.

    `public` is what must not depend on private rows beside earlier releases: the sensitivity, or the grid's scale.
    """

    name: str
    kind: Kind
    exact: Any
    law: Law | None
    public: tuple[object, ...]
    released: Any


class WatchedGate(Gate):
    """A gate that notes every release in `passed`.

    `weaker` divides the noise. With `forced` nothing is drawn: a release of a name that is in it returns what it says.
    """

    def __init__(
        self, plan: Plan, source: BitSource, *, weaker: int = 1, forced: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(plan, source)
        self.passed: list[Passed] = []
        self._weaker = weaker
        self._forced = forced

    def release(self, name: str, value: Fraction, sensitivity: Fraction) -> Released:
        """Return the number that passes, with the noise that the plan states."""
        stated = self._plan.noise(name, sensitivity)
        law = self._plan.noise(name, sensitivity / self._weaker)

        def drawn() -> Fraction:
            return super(WatchedGate, self).release(name, value, sensitivity / self._weaker).value

        return Released(self._note(name, Kind.NUMBER, (value,), law, (sensitivity,), drawn), stated)

    def release_smooth(
        self, name: str, value: Fraction, bound: Fraction, smoothness: Fraction, least: Fraction
    ) -> Fraction:
        """Return the number that passes with noise that follows a private bound."""
        part = bound / self._weaker
        law = self._plan.smooth_noise(name, smoothness).distribution(part) if part > 0 else None

        def drawn() -> Fraction:
            return super(WatchedGate, self).release_smooth(name, value, part, smoothness, least)

        return self._note(name, Kind.SMOOTH, (value,), law, (smoothness, least), drawn)

    def release_vector(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return the vector that passes."""
        values = values() if callable(values) else values
        kind = self._plan.kind(name)
        amount = self._plan.amount(name, kind)
        normal = self._plan.mechanism == "gaussian" or kind is Kind.NORMAL

        def law(size: Fraction) -> Gaussian | Ball:
            return Gaussian(size, amount) if normal else Ball(size, amount, len(values))

        def drawn() -> tuple[Fraction, ...]:
            return super(WatchedGate, self).release_vector(name, values, sensitivity / self._weaker).values

        own = law(sensitivity / self._weaker)
        found = self._note(name, kind, tuple(values), own, (sensitivity, len(values)), drawn)
        return ReleasedVector(found, law(sensitivity).variance)

    def release_several(
        self,
        name: str,
        values: Sequence[Fraction],
        sensitivities: Sequence[Fraction],
        weights: Sequence[Fraction],
    ) -> list[Released]:
        """Return the numbers that pass together; box noise is noted in units of their bounds, other noise apart."""
        stated = self._plan.several_noise(name, sensitivities, weights)
        parts = [bound / self._weaker for bound in sensitivities]

        def drawn() -> tuple[Fraction, ...]:
            found = super(WatchedGate, self).release_several(name, values, parts, weights)
            return tuple(one.value for one in found)

        if isinstance(stated[0], Box):
            law = Box(Fraction(1, self._weaker), stated[0].epsilon, len(values))
            scaled = _divided(values, sensitivities)
            noted = self._note(
                name,
                Kind.SEVERAL,
                scaled,
                law,
                tuple(sensitivities),
                lambda: _divided(drawn(), sensitivities),
            )
            noisy = [value * bound for value, bound in zip(noted, sensitivities, strict=True)]
            return [Released(value, noise) for value, noise in zip(noisy, stated, strict=True)]
        names = [f"{name} {place}" for place in range(len(values))]
        if self._forced is None or names[0] not in self._forced:
            apart = drawn()
        else:
            self._pay(name, Kind.SEVERAL)
            apart = tuple(self._forced[one] for one in names)
        laws = self._plan.several_noise(name, parts, weights)
        for one, value, law_, bound, noisy_ in zip(names, values, laws, sensitivities, apart, strict=True):
            self.passed.append(Passed(one, Kind.NUMBER, (value,), law_, (bound,), noisy_))
        return [Released(value, noise) for value, noise in zip(apart, stated, strict=True)]

    def release_cells(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return the cells that pass."""
        values = values() if callable(values) else values
        amount = self._plan.amount(name, Kind.CELLS)
        law = Laplace(sensitivity / self._weaker, amount)

        def drawn() -> tuple[Fraction, ...]:
            return super(WatchedGate, self).release_cells(name, values, sensitivity / self._weaker).values

        found = self._note(name, Kind.CELLS, tuple(values), law, (sensitivity, len(values)), drawn)
        return ReleasedVector(found, Laplace(sensitivity, amount).variance)

    def release_rows(
        self, name: str, steps: NDArray[np.int64], low: int, high: int, step: Fraction
    ) -> NDArray[np.float64]:
        """Return the rows that pass."""
        inside = np.clip(steps, low, high)
        width = max((high - low) // self._weaker, 1)
        law = Laplace(width * step, self._plan.amount(name, Kind.ROWS))

        def drawn() -> NDArray[np.float64]:
            # The noise is made for a part of the width; the rows keep theirs.
            nothing = np.zeros(len(steps), np.int64)
            noise = super(WatchedGate, self).release_rows(name, nothing, 0, width, step)
            found: NDArray[np.float64] = inside + noise
            return found

        exact = tuple((inside * float(step)).tolist())
        return self._note(name, Kind.ROWS, exact, law, (low, high, step), drawn)

    def release_labels(self, name: str, counts: Mapping[Label, int]) -> dict[Label, int]:
        """Return the labels that pass; they are no numbers, so that only samples are looked at."""
        delta = self._plan.label_delta
        law = StableHistogram(self._plan.amount(name, Kind.LABELS) * self._weaker, delta)

        def drawn() -> dict[Label, int]:
            self._pay(name, Kind.LABELS)
            return law.release(counts, self._source)

        return self._note(name, Kind.LABELS, dict(counts), law, (), drawn)

    def respond(self, name: str, flags: NDArray[np.bool_]) -> Responses:
        """Return the truth values that pass; a weakened copy lies a third as often."""
        stated = RandomizedResponse(self._plan.amount(name, Kind.RESPONSE), 2)
        law = stated if self._weaker == 1 else fewer_lies(stated, self._weaker)

        def drawn() -> NDArray[np.bool_]:
            self._pay(name, Kind.RESPONSE)
            return law.release_many(flags.astype(np.int64), self._source).astype(np.bool_)

        exact = tuple(flags.tolist())
        return Responses(self._note(name, Kind.RESPONSE, exact, law, (len(flags),), drawn), stated.truth)

    def _note(
        self,
        name: str,
        kind: Kind,
        exact: Any,
        law: Law | None,
        public: tuple[object, ...],
        drawn: Callable[[], T],
    ) -> T:
        """Return what is released, and note it; a forced release is paid for too, so that none passes twice."""
        if self._forced is None or name not in self._forced:
            found = drawn()
        else:
            self._pay(name, kind)
            found = self._forced[name]
        value = found[0] if kind is Kind.NUMBER and isinstance(found, tuple) else found
        self.passed.append(Passed(name, kind, exact, law, public, value))
        return value


class WeakGate(WatchedGate):
    """A gate that draws a third of the noise it should: what an audit must catch."""

    def __init__(self, plan: Plan, source: BitSource) -> None:
        super().__init__(plan, source, weaker=WEAKER)


def _divided(values: Sequence[Fraction], bounds: Sequence[Fraction]) -> tuple[Fraction, ...]:
    return tuple(value / bound for value, bound in zip(values, bounds, strict=True))


def fewer_lies(mechanism: RandomizedResponse, parts: int) -> RandomizedResponse:
    """Return randomized response that lies so many times more rarely."""
    others = mechanism.categories - 1
    lies = (1 - mechanism.truth) / parts
    return RandomizedResponse(log((1 - lies) * others / lies), mechanism.categories)


def moved(passed: Passed, other: Passed) -> Passed:
    """Return a release moved by the difference of its private numbers: what an uncharged copy of it would show."""
    if passed.kind in (Kind.RESPONSE, Kind.LABELS):
        return replace(passed, released=_as(passed.kind, other.exact))
    gaps = [theirs - own for own, theirs in zip(passed.exact, other.exact, strict=True)]
    if passed.kind is Kind.ROWS:
        step = float(passed.public[2])  # type: ignore[arg-type]
        return replace(passed, released=passed.released + np.array(gaps) / step)
    if isinstance(passed.released, Fraction):
        return replace(passed, released=passed.released + gaps[0])
    return replace(passed, released=tuple(x + gap for x, gap in zip(passed.released, gaps, strict=True)))


def _as(kind: Kind, exact: Any) -> Any:
    return np.array(exact, np.bool_) if kind is Kind.RESPONSE else exact
