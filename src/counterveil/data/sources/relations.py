"""Columns from DuckDB relations, in one query so that every column has the same row order."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.cells import Coded, Column, Numbers, from_array, from_cells
from counterveil.data.labels import MISSING_TEXT
from counterveil.data.wrong_data import duplicated_columns, failed_source, no_such_column, unreadable_type

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

_INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
}  # fmt: skip
_WIDE_INTEGERS = {"HUGEINT", "UHUGEINT", "BIGNUM", "VARINT"}
_FLOATS = {"FLOAT", "DOUBLE"}
# A column without a single value has the type "NULL"; as text it is all gaps.
_TEXTS = {"VARCHAR", "NULL", '"NULL"'}

_HELD, _GAP, _TEXT = 0, 1, 2


def read(relation: DuckDBPyRelation, names: tuple[str, ...], numeric: frozenset[str]) -> dict[str, Column]:
    """Return the named columns of a relation."""
    import duckdb

    wanted = locate(relation, names)
    try:
        return fetch(relation, wanted, numeric)
    except duckdb.Error:
        raise failed_source("a DuckDB relation") from None


def locate(relation: DuckDBPyRelation, names: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return the SQL identifier and the SQL type of each name, or raise CV-D001 or CV-D010."""
    known = list(relation.columns)
    for name in names:
        if name not in known:
            raise no_such_column(name, known)
    folded = Counter(name.casefold() for name in known)
    twice = [name for name in names if folded[name.casefold()] > 1]
    if twice:
        raise duplicated_columns(twice)
    types = dict(zip(known, map(str, relation.types), strict=True))
    return {name: (quoted(name), types[name]) for name in names}


def fetch(
    relation: DuckDBPyRelation, wanted: dict[str, tuple[str, str]], numeric: frozenset[str]
) -> dict[str, Column]:
    """Return the columns given as name -> (SQL identifier, SQL type)."""
    parts: list[str] = []
    for place, (name, (identifier, kind)) in enumerate(wanted.items()):
        parts += _expressions(identifier, kind, name, place, name in numeric)
    arrays = relation.project(", ".join(parts)).fetchnumpy()
    return {name: _column(arrays, place, name) for place, name in enumerate(wanted)}


def quoted(identifier: str) -> str:
    """Return an SQL identifier that stands for exactly this name."""
    return '"' + identifier.replace('"', '""') + '"'


def _expressions(identifier: str, kind: str, name: str, place: int, numeric: bool) -> list[str]:
    value, state = f"v{place}", f"s{place}"
    if kind == "BOOLEAN" or kind in _INTEGERS or kind in _FLOATS:
        return [f"{identifier} AS {value}"]
    text = f"CAST({identifier} AS VARCHAR)"
    # Through decimal text: the double nearest to the written number, as for every other source.
    is_exact = kind.startswith("DECIMAL") or kind in _WIDE_INTEGERS
    if not is_exact and kind not in _TEXTS and not kind.startswith("ENUM"):
        raise unreadable_type(name, kind)
    if not numeric:
        return [f"{text} AS {f'd{place}' if is_exact else value}"]
    blank = ", ".join(f"'{word}'" for word in sorted(MISSING_TEXT))
    number = (
        f"CASE lower(trim({text})) WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE TRY_CAST({text} AS DOUBLE) END"
    )
    return [
        f"coalesce({number}, 0) AS {value}",
        f"CASE WHEN {text} IS NULL OR trim({text}) IN ({blank}) THEN {_GAP} "
        f"WHEN ({number}) IS NULL THEN {_TEXT} ELSE {_HELD} END AS {state}",
    ]


def _column(arrays: dict[str, Any], place: int, name: str) -> Column:
    if f"d{place}" in arrays:
        texts, gaps = _split(arrays[f"d{place}"])
        coded = from_cells(texts.tolist(), name, gaps)
        # Numbers again, so that a label is compared with the number and not with its spelling.
        return Coded(coded.codes, tuple(Decimal(str(cell)) for cell in coded.cells))
    values, gaps = _split(arrays[f"v{place}"])
    if f"s{place}" not in arrays:
        return from_array(values, name, gaps)
    state, _ = _split(arrays[f"s{place}"])
    doubles = values.astype(np.float64)
    return Numbers(doubles, (state == _GAP) | np.isnan(doubles), state == _TEXT)


def _split(array: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if isinstance(array, np.ma.MaskedArray):
        return np.asarray(array.data), np.ma.getmaskarray(array)
    return np.asarray(array), np.zeros(len(array), dtype=np.bool_)
