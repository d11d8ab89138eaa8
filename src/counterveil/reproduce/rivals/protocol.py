"""What every method in a comparison offers: its claim, and an estimate with time and memory beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Records:
    """Records as the papers hold them: numeric covariates, a 0/1 treatment, outcomes and what is public about them."""

    x: NDArray[np.float64]
    treated: NDArray[np.bool_]
    y: NDArray[np.float64]
    covariate_ranges: tuple[tuple[float, float], ...]
    outcome_range: tuple[float, float]


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


@dataclass(frozen=True)
class Rival:
    """A method by its name in tables, the unit it protects, and whether its claim holds.

    `claim` is "holds" for a guarantee that is true in finite samples, "refuted" where the gallery or a counterexample
    breaks it (`why` names it), "none" for methods without privacy. `estimate` takes records, a budget and a seed.
    """

    name: str
    protects: Literal["outcome", "record", "nothing"]
    claim: Literal["holds", "refuted", "unproved", "none"]
    why: str
    estimate: Callable[[Records, Budget, int], Answer]
