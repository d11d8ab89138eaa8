"""What the auditor asks of the things it examines: three small protocols, nothing else.

Anything with a `sample` method can be audited from outside (black box); with a `log_density` as
well, from inside (white box). A data set is whatever the mechanism takes: the auditor never looks in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from counterveil.audit.finding import Finding
from counterveil.privacy import Budget

FloatArray: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[Any, Any]

# Every audit is repeated on a copy with this share of the noise, which it has to catch.
WEAKENED_FACTOR = 1 / 3


@runtime_checkable
class Mechanism(Protocol):
    """Something that releases a number or a vector from a data set."""

    def sample(self, dataset: Any, count: int, rng: np.random.Generator, /) -> FloatArray:
        """Return `count` independent releases: shape (count,) for numbers, (count, d) for vectors."""
        ...


@runtime_checkable
class WhiteBox(Mechanism, Protocol):
    """A mechanism whose law is known in closed form."""

    def log_density(self, dataset: Any, outputs: FloatArray, /) -> FloatArray:
        """Return the log density (or log probability, for a discrete law) at each output, shape (m,)."""
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
