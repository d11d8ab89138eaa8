"""What every method in a comparison offers: its claim, and an estimate with time and memory beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Records:
    """Records as the papers hold them: numeric covariates, a 0/1 treatment, outcomes and what is public about them.

    `values` has, for each covariate, the values that it can take where these are few and public, else None; with more
    than two they are labels. Left out, every covariate is a measurement. `randomised` says whether the treatment was
    assigned by lot.
    """

    x: NDArray[np.float64]
    treated: NDArray[np.bool_]
    y: NDArray[np.float64]
    covariate_ranges: tuple[tuple[float, float], ...]
    outcome_range: tuple[float, float]
    values: tuple[tuple[float, ...] | None, ...] | None = None
    randomised: bool = False

    @property
    def rows(self) -> int:
        """How many people there are."""
        return len(self.y)

    @property
    def width(self) -> float:
        """How far outcomes can be apart."""
        return self.outcome_range[1] - self.outcome_range[0]

    @property
    def outcomes(self) -> NDArray[np.float64]:
        """Outcomes clamped to their public range."""
        return np.clip(self.y, *self.outcome_range)

    def values_of(self, column: int) -> tuple[float, ...] | None:
        """Return the public values of a covariate, None for a measurement."""
        return None if self.values is None else self.values[column]


@dataclass(frozen=True)
class Budget:
    """What one estimate may spend."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Answer:
    """A point estimate of the average effect, with the method's own interval where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


Estimate = Callable[[Records, Budget, int], Answer]


@dataclass(frozen=True)
class Rival:
    """A method by its name in tables, the unit it protects, and whether its claim holds.

    `claim` is "holds" for a guarantee that is true in finite samples, "refuted" where the gallery or a counterexample
    breaks it (`why` names it), "unproved" where nobody showed either, "none" for methods without privacy. `estimate`
    takes records, a budget and a seed. `delta` is "none" for methods with noise of pure epsilon, "needed" for those
    that cannot do without a delta, "either" for those that take what they get. `gallery` names the entry of the
    gallery of refuted claims that breaks the claim, `ours` tells our own methods, and `apart` those that run in the
    environment of `counterveil_lab.reproduce.rivals.environment`. A method that is not `seeded` draws from the system.
    """

    name: str
    protects: Literal["outcome", "record", "nothing"]
    claim: Literal["holds", "refuted", "unproved", "none"]
    why: str
    estimate: Estimate
    delta: Literal["none", "needed", "either"] = "either"
    gallery: str | None = None
    ours: bool = False
    apart: bool = False
    seeded: bool = True
