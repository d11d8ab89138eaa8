"""A tester that needs one run: many canaries, each in one of two forms by a coin, and a guess for each of them.

Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run". If every canary's form is protected
by (epsilon, delta), the number of right guesses among r is not larger, but for delta, than that of r coins with
probability e^epsilon / (1 + e^epsilon).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from counterveil.audit.report import FloatArray, LowerBound, Mechanism, Pair, Quantity, out_of_range
from counterveil.errors import refusal
from counterveil.privacy import Budget

_HALVINGS = 50
_MOST_EPSILON = 64.0


@runtime_checkable
class Canaried(Protocol):
    """A release with many canaries in its data, of which each has one of two forms."""

    def scores(self, forms: NDArray[np.bool_], rng: np.random.Generator, /) -> FloatArray:
        """Return one score a canary from one run: large where its second form looks likelier."""
        ...


@dataclass(frozen=True, slots=True)
class OneRunTester:
    """A lower bound on epsilon from one run with `canaries` canaries.

    Guesses are made for all of them and, apart, for the `sure` part with the largest scores; the two share the error.
    """

    canaries: int = 1000
    sure: float = 0.25
    name: str = "one run"

    def __post_init__(self) -> None:
        if self.canaries < 2 or not 0 < self.sure <= 1:
            raise out_of_range(
                "canaries, sure",
                (self.canaries, self.sure),
                "two canaries or more, and a part of them above 0 and at most 1",
                "use about 1000 canaries and 0.25",
            )

    def examine(
        self,
        mechanism: Mechanism,
        pair: Pair,  # noqa: ARG002 - the canaries' forms are the neighbours
        claim: Budget,
        *,
        error: float,
        rng: np.random.Generator,
    ) -> LowerBound:
        """Return the best lower bound on epsilon at the claimed delta, right with probability 1 - `error`."""
        if not isinstance(mechanism, Canaried):
            raise refusal("CV-A002", got=type(mechanism).__name__)
        forms = rng.random(self.canaries) < 0.5
        scores = np.asarray(mechanism.scores(forms, rng), dtype=np.float64)
        order = np.argsort(-np.abs(scores), kind="stable")
        best = (-1.0, 0, 0)
        for guesses in (self.canaries, max(int(self.sure * self.canaries), 1)):
            chosen = order[:guesses]
            right = int(np.count_nonzero((scores[chosen] > 0) == forms[chosen]))
            found = one_run_epsilon(right, guesses, self.canaries, float(claim.delta), error / 2)
            best = max(best, (found, right, guesses))
        return LowerBound(
            tester=self.name,
            quantity=Quantity.EPSILON,
            found=best[0],
            claimed=float(claim.epsilon),
            confidence=1 - error,
            witness=f"{best[1]} of {best[2]} guesses right, with {self.canaries} canaries in one run",
        )


def one_run_epsilon(right: int, guesses: int, canaries: int, delta: float, error: float) -> float:
    """Return the largest epsilon at which so many right guesses are rarer than `error`."""
    if _chance(right, guesses, canaries, 0.0, delta) > error:
        return 0.0
    low, high = 0.0, _MOST_EPSILON
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _chance(right, guesses, canaries, middle, delta) <= error else (low, middle)
        )
    return low


def _chance(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the most that the probability of so many right guesses can be: Theorem 5.2 of the paper."""
    truth = 1 / (1 + np.exp(-epsilon))

    def at_least(count: FloatArray) -> FloatArray:
        return np.where(count <= 0, 1.0, bdtrc(np.maximum(count - 1, 0), guesses, truth))

    (pure,) = at_least(np.array([float(right)]))
    if delta == 0:
        return float(pure)
    fewer = np.arange(1.0, canaries + 1)
    return float(pure + 2 * canaries * delta * ((at_least(right - fewer) - pure) / fewer).max())
