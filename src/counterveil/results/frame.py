"""Rows as a data frame of whichever library is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from counterveil.errors import MissingExtraError

# In this order; pyarrow makes a table of a list of rows by another name.
_MAKERS = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))


def frame(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a frame of pandas, polars or pyarrow, the first of them that is installed."""
    for library, kind in _MAKERS:
        try:
            maker = getattr(import_module(library), kind)
        except ImportError:
            continue
        return maker.from_pylist(rows) if library == "pyarrow" else maker(rows)
    raise MissingExtraError(
        "CV-E070",
        "a frame of effects needs pandas, polars or pyarrow, and none is installed",
        expected="one of the extras pandas, polars, pyarrow",
        got="none of the three modules",
        fix='pip install "counterveil[pandas]"; tidy() gives the same rows without any library',
    )
