"""The three protocols that the auditor uses.

Anything with a `sample` method can be audited from outside (black box); with a `log_density` as
well, from inside (white box). A data set is whatever the mechanism takes: the auditor never looks in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from counterveil.audit.report import Finding
from counterveil.errors import ParameterError, Refusal
from counterveil.privacy import Budget

FloatArray: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[Any, Any]

# Every audit is repeated on a copy with this share of the noise, which it must catch.
WEAKENED_FACTOR = 1 / 3


@runtime_checkable
class Mechanism(Protocol):
    """Something that releases a number or a vector from a data set."""

    def sample(self, dataset: Any, count: int, rng: np.random.Generator, /) -> FloatArray:
        """Return `count` independent releases: shape (count,) for numbers, (count, d) for vectors."""
        ...


@runtime_checkable
class WhiteBox(Mechanism, Protocol):
    """A mechanism whose distribution is known in closed form."""

    def log_density(self, dataset: Any, outputs: FloatArray, /) -> FloatArray:
        """Return the log density (or log probability, for a discrete distribution) at each output, shape (m,)."""
        ...


class Neighbours(Protocol):
    """Pairs of neighbouring data sets; a list of tuples will do."""

    def __iter__(self) -> Iterator[Pair]:
        """Yield the pairs, the same ones each time."""
        ...


class Tester(Protocol):
    """One way of attacking a claim."""

    @property
    def name(self) -> str:
        """The name shown in reports."""
        ...

    def examine(
        self, mechanism: Mechanism, pair: Pair, claim: Budget, *, error: float, rng: np.random.Generator
    ) -> Finding:
        """Return what one attack on one pair found; it may be wrong with probability `error` at most."""
        ...


# The auditor's refusals, and the checks that several testers share.


def needs_density(mechanism: Mechanism) -> ParameterError:
    """Return the refusal for a white-box test of a mechanism that does not know its distribution."""
    return ParameterError(
        "CV-A002",
        "this test needs the distribution of the mechanism",
        expected="a mechanism with a method log_density(dataset, outputs)",
        got=f"{type(mechanism).__name__} without log_density",
        fix="add log_density, or audit with ThresholdTester(), which needs samples only",
    )


def out_of_range(name: str, value: object, expected: str, fix: str) -> ParameterError:
    """Return the refusal of an invalid audit setting."""
    return ParameterError(
        "CV-A001",
        f"{name} is out of range",
        expected=expected,
        got=f"{name}={value!r}",
        fix=fix,
    )


nothing_to_audit = Refusal(
    "CV-A004",
    "there is nothing to audit",
    expected="at least one pair of neighbours and one tester",
    got="{got}",
    fix="pass pairs of neighbouring data sets and testers, e.g. [ThresholdTester()]",
)


def draw(
    mechanism: Mechanism, pair: Pair, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return `count` releases from each data set of the pair, as matrices of shape (count, d)."""
    first, second = (_draw_one(mechanism, dataset, count, rng) for dataset in pair)
    if first.shape != second.shape:
        raise _malformed(f"shapes {first.shape} and {second.shape} on two neighbours")
    return first, second


def _draw_one(mechanism: Mechanism, dataset: object, count: int, rng: np.random.Generator) -> FloatArray:
    outputs = np.asarray(mechanism.sample(dataset, count, rng), dtype=np.float64)
    if outputs.ndim not in (1, 2) or outputs.shape[0] != count:
        raise _malformed(f"shape {outputs.shape} for count={count}")
    if not np.isfinite(outputs).all():
        raise _malformed("an output that is infinite or not a number")
    return outputs.reshape(count, -1)


_malformed = Refusal(
    "CV-A003",
    "the mechanism's outputs cannot be audited",
    expected="finite outputs of shape (count,) or (count, d), the same on both neighbours",
    got="{got}",
    fix="let sample(dataset, count, rng) return one finite number or vector per release",
)
