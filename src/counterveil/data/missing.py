"""Rules for missing values; without a rule, a missing value is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from counterveil.data.labels import Label, number_of, plain_number
from counterveil.privacy import Number


@dataclass(frozen=True, slots=True)
class Fill:
    """Put a public constant where the column is missing; row by row, so nothing new becomes public."""

    value: Number | Label

    def __post_init__(self) -> None:
        # One form per meaning, so that equal studies are written alike.
        number = None if isinstance(self.value, str) else number_of(self.value)
        if number is not None:
            object.__setattr__(self, "value", plain_number(number))


@dataclass(frozen=True, slots=True)
class Drop:
    """Leave out the rows in which the column is missing, and declare in public which rows those are."""


MissingRule: TypeAlias = Fill | Drop
