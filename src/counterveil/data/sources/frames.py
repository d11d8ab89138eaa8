"""Columns from pandas, polars and pyarrow frames, through narwhals."""

from __future__ import annotations

from collections import Counter
from typing import Any

import narwhals as nw
import numpy as np

from counterveil.data.cells import Column, from_array, from_cells
from counterveil.data.wrong_data import (
    duplicated_columns,
    failed_source,
    no_such_column,
    unreadable_type,
    unsupported_source,
)

# Numpy has no such integers; they are read as Python's.
_WIDE = (nw.Int128, nw.UInt128)


def read(source: object, names: tuple[str, ...]) -> dict[str, Column]:
    """Return the named columns; the index is ignored and the frame is not changed."""
    frame = _open(source)
    known = frame.collect_schema().names()
    for name in names:
        if name not in known:
            raise no_such_column(name, known)
    chosen = frame.select(*names)
    eager = _collect(chosen) if isinstance(chosen, nw.LazyFrame) else chosen
    return {name: _column(eager[name], name) for name in names}


def _collect(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    try:
        return frame.collect()
    except Exception:
        # Whatever the plan stumbled on, its message may quote the rows.
        raise failed_source("a lazy frame") from None


def _open(source: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    # A lazy frame cannot hold one name twice, and asking it for its names would run its plan.
    if not hasattr(source, "collect"):
        headers = getattr(source, "column_names", getattr(source, "columns", []))
        twice = [name for name, count in Counter(headers).items() if count > 1]
        if twice:
            raise duplicated_columns(twice)
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any]
    try:
        frame = nw.from_native(source)
    except TypeError:
        raise unsupported_source(type(source).__name__) from None
    if isinstance(frame, nw.LazyFrame) and frame.implementation is not nw.Implementation.POLARS:
        raise unsupported_source(f"a lazy {frame.implementation.value} frame")
    return frame


def _column(series: nw.Series[Any], name: str) -> Column:
    gaps = np.array(series.is_null().to_numpy(), dtype=np.bool_)
    kind = series.dtype
    if kind == nw.Boolean or (kind.is_integer() and kind not in _WIDE) or kind.is_float():
        zero = False if kind == nw.Boolean else 0
        filled = series.fill_null(zero) if gaps.any() else series
        values = np.asarray(filled.to_numpy())
        if values.dtype.kind in "biuf":
            return from_array(values, name, gaps)
    elif kind.is_temporal() or kind.is_nested() or kind == nw.Binary:
        raise unreadable_type(name, str(kind))
    return from_cells(series.to_list(), name, gaps)
