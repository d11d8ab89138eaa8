"""Columns from a dictionary of arrays or lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.cells import Column, from_array, from_cells
from counterveil.data.wrong_data import no_such_column, uneven_arrays


def read(source: Mapping[Any, Any], names: tuple[str, ...], order: str | None = None) -> dict[str, Column]:
    """Return the named columns; masked entries, None and NaN are missing.

    Dates and times in the column `order` become texts in the same order.
    """
    check(source, names)
    columns = {
        name: _column(_as_texts(source[name]) if name == order else source[name], name) for name in names
    }
    if len({len(column) for column in columns.values()}) > 1:
        raise uneven_arrays(names)
    return columns


def check(source: Mapping[Any, Any], names: tuple[str, ...]) -> None:
    """Raise where a dictionary lacks one of the columns."""
    for name in names:
        if name not in source:
            raise no_such_column(name, source)


def _as_texts(values: Any) -> Any:
    """Return moments as ISO texts, and everything else as it is."""
    array = np.asarray(values)
    if array.dtype.kind != "M":
        return values
    texts = np.datetime_as_string(array).astype(object)
    texts[np.isnat(array)] = None
    return texts


def _column(values: Any, name: str) -> Column:
    if isinstance(values, list | tuple):
        # Not through numpy, which would turn a list of numbers and texts into texts.
        return from_cells(list(values), name)
    gaps: NDArray[np.bool_] | None = None
    if isinstance(values, np.ma.MaskedArray):
        gaps = np.ma.getmaskarray(values)
        values = values.data
    try:
        array = np.asarray(values)
    except Exception:
        # Whatever the object stumbled on, its message may quote rows.
        raise uneven_arrays([name]) from None
    if array.ndim != 1:
        raise uneven_arrays([name])
    return from_array(array, name, gaps)
