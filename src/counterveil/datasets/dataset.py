"""A data set with its study, where it comes from, and the true effect where it is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Study


@dataclass(frozen=True, slots=True)
class Dataset:
    """Columns as arrays, the study that declares them, and what is known about them in public."""

    name: str
    # Left out of the text form: printing a data set shows no rows.
    frame: Mapping[str, NDArray[Any]] = field(repr=False, compare=False)
    study: Study
    source: str
    licence: str
    true_effect: float | None = None
    notes: str = ""
    # The expected effect in each row, and as a function of columns of covariates, where they are known.
    effects: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    effect_at: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]] | None = field(
        default=None, repr=False, compare=False
    )
