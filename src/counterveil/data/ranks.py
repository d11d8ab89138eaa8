"""What orders cells: people by what identifies them, the rows of a person by their order, labels by what they say.

Which of two cells comes first depends on these two alone, so that it is the same in every part of the data.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data import encoding
from counterveil.data.cells import BLANKS, Column, Mask, Numbers, double_of
from counterveil.data.labels import number_of
from counterveil.data.wrong_data import no_person

Places: TypeAlias = NDArray[np.intp]


def places(column: Column, name: str) -> tuple[Places, int]:
    """Return each row's person or cluster, numbered by what identifies them, and how many there are.

    Rows that name none raise CV-D019.
    """
    if np.count_nonzero(encoding.gaps(column, None)):
        raise no_person(name)
    if isinstance(column, Numbers):
        known, place = np.unique(column.values, return_inverse=True)
        return place.astype(np.intp), len(known)
    # By what is written: the number 7 and the text "7" are one person.
    texts = [identity(cell) for cell in column.cells]
    # Shorter texts first, so that whole numbers stand in the same order as text and as numbers.
    ranks = {text: rank for rank, text in enumerate(sorted(set(texts), key=lambda text: (len(text), text)))}
    of_cell = np.array([ranks[text] for text in texts], dtype=np.intp)
    present, place = np.unique(of_cell[column.codes], return_inverse=True)
    return place.astype(np.intp), len(present)


def identity(cell: object) -> str:
    """Return what is written in a cell that names a person: numbers without exponents, as engines write decimals."""
    return format(cell, "f") if isinstance(cell, Decimal) else str(cell).strip(BLANKS)


def first_of_each(column: Column, name: str) -> Mask:
    """Return which rows are the first of their person, as they come in the data."""
    place, _ = places(column, name)
    first = np.zeros(len(place), dtype=np.bool_)
    first[np.unique(place, return_index=True)[1]] = True
    return first


def ranks(column: Column, exact: bool = True) -> NDArray[np.float64]:
    """Return numbers that order rows: those with numbers by their value, then those with texts, such as dates.

    Which of two rows comes first depends on these two alone: what others hold must not turn numbers into texts.
    Infinity, which may be a moment, comes after both, and rows without a value come last. Without `exact`, numbers
    whose nearest double is the same are not told apart.
    """
    if isinstance(column, Numbers):
        values = column.values
        if exact and values.dtype.kind in "iu":
            # As whole numbers: beyond 2^53 several of them have the same nearest double.
            values = np.unique(values, return_inverse=True)[1]
        return np.where(column.missing, np.inf, values.astype(np.float64))
    doubles = [double_of(cell) for cell in column.cells]
    sharing = Counter(doubles)
    keys = [
        _key(cell, double, exact and sharing[double] > 1)
        for cell, double in zip(column.cells, doubles, strict=True)
    ]
    place_of = {key: place for place, key in enumerate(sorted(set(keys)))}
    per_cell = np.array([place_of[key] for key in keys], dtype=np.float64)
    return np.where(encoding.gaps(column, None), np.inf, column.take(per_cell, for_missing=0.0))


def _key(cell: object, double: float | None, exact: bool) -> tuple[int, float, Fraction, str]:
    if double is None:
        return 1, 0.0, Fraction(0), str(cell)
    number = number_of(cell) if exact else None
    return 2 if double == np.inf else 0, double, number or Fraction(0), ""
