"""A column as it was read: numbers, or codes that point into a list of distinct cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data.cell_rules import READABLE, is_nothing
from counterveil.data.wrong_data import unreadable_type

Mask: TypeAlias = NDArray[np.bool_]

_MISSING = -1


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numeric cells: bool, integer or float values; `missing` marks those that hold nothing."""

    values: NDArray[Any]
    missing: Mask
    # Marks text that is no number, where the source parsed the text for us.
    text: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    def keep(self, rows: Mask) -> Numbers:
        """Return the same column with the marked rows only."""
        text = None if self.text is None else self.text[rows]
        return Numbers(self.values[rows], self.missing[rows], text)


@dataclass(frozen=True, slots=True)
class Coded:
    """Cells of any kind: `cells[code]` is what a row holds, a negative code means it holds nothing."""

    codes: NDArray[np.int64]
    cells: tuple[object, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def keep(self, rows: Mask) -> Coded:
        """Return the same column with the marked rows only."""
        return Coded(self.codes[rows], self.cells)

    def take(self, per_cell: NDArray[Any], for_missing: Any) -> NDArray[Any]:
        """Return for each row the entry of `per_cell` that belongs to its cell."""
        # The last entry serves the code -1.
        return np.append(per_cell, np.asarray([for_missing], dtype=per_cell.dtype))[self.codes]


Column: TypeAlias = Numbers | Coded


class _Codes(dict[object, int]):
    """Codes handed out in order of first sight; each distinct cell costs one Python call."""

    def __missing__(self, cell: object) -> int:
        self[cell] = code = len(self)
        return code


def from_array(values: NDArray[Any], name: str, missing: Mask | None = None) -> Column:
    """Return the column held by a numpy array of any readable kind; NaN is missing."""
    if values.dtype.kind == "f":
        # Wider floats are narrowed here so that every source compares the same doubles; what is too large for one
        # lies beyond every bound.
        with np.errstate(all="ignore"):
            doubles = values.astype(np.float64, copy=False)
        unknown = np.isnan(doubles)
        return Numbers(doubles, unknown if missing is None else missing | unknown)
    gaps = np.zeros(len(values), dtype=np.bool_) if missing is None else missing
    if values.dtype.kind in "biu":
        return Numbers(values, gaps)
    if values.dtype.kind in "OUST":
        return from_cells(values.tolist(), name, gaps)
    raise unreadable_type(name, str(values.dtype))


def from_cells(cells: list[Any], name: str, missing: Mask | None = None) -> Coded:
    """Return the column held by Python objects, of which those that hold nothing are missing."""
    held: list[Any] = cells
    if missing is not None and missing.any():
        held = [None if gap else cell for cell, gap in zip(cells, missing.tolist(), strict=True)]
    kinds = _kinds(held)
    if not all(issubclass(kind, READABLE) and not issubclass(kind, Decimal) for kind in kinds):
        # NA and NaT have types of their own, and a signalling NaN cannot be hashed.
        held = [None if is_nothing(cell) else cell for cell in held]
        kinds = _kinds(held)
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        if not issubclass(kind, READABLE):
            raise unreadable_type(name, kind.__name__)
    try:
        return _coded(held, len(kinds) > 1)
    except TypeError:
        raise unreadable_type(name, "cells that cannot be compared") from None


def _coded(held: list[Any], mixed: bool) -> Coded:
    """Return cells by their codes; equal cells of several types stay apart, since each is read by its own."""
    index = _Codes({None: _MISSING})
    keys: Iterable[Any] = held
    if mixed:
        keys = (None if cell is None else (type(cell), cell) for cell in held)
    # None holds a place in the index, so the first real cell gets code 1.
    codes = np.fromiter(map(index.__getitem__, keys), dtype=np.int64, count=len(held))
    codes -= 1
    np.maximum(codes, _MISSING, out=codes)
    found: tuple[Any, ...] = tuple(index)[1:]
    if mixed:
        found = tuple(cell for _, cell in found)
    gaps = np.array([is_nothing(cell) for cell in found], dtype=np.bool_)
    if gaps.any():
        codes[(codes >= 0) & gaps[codes]] = _MISSING
    return Coded(codes, found)


def _kinds(cells: Iterable[Any]) -> set[type]:
    """Return the types of all cells that hold something."""
    try:
        # Texts alone can be joined, which takes a third of the time of looking at every type.
        "".join(cells)
    except TypeError:
        return set(map(type, cells)) - {type(None)}
    return {str}
