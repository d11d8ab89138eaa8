"""A data set with its study, where it comes from, and the true effect where it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
