"""The kinds of columns that a role can use, by the names that DuckDB and Ibis give them."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from counterveil.data.wrong_data import unreadable_type

_INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
}  # fmt: skip
_WIDE_INTEGERS = {"HUGEINT", "UHUGEINT", "BIGNUM", "VARINT"}
_FLOATS = {"FLOAT", "DOUBLE"}
# A column without a single value has the type "NULL"; as text it is all gaps.
_TEXTS = {"VARCHAR", "NULL", '"NULL"'}

_MOST_DIGITS = 300


class Kind(Enum):
    """What a column holds; EXACT numbers are decimals and wide integers, UNBOUNDED ones may exceed a double."""

    BOOLEAN = auto()
    INTEGER = auto()
    FLOAT = auto()
    EXACT = auto()
    UNBOUNDED = auto()
    TEXT = auto()
    # Dates and times put rows in order; they have no other role.
    MOMENT = auto()


def duckdb_kind(sql_type: str, name: str) -> Kind:
    """Return the kind of a DuckDB type, or raise CV-D013."""
    if sql_type == "BOOLEAN":
        return Kind.BOOLEAN
    if sql_type in _INTEGERS:
        return Kind.INTEGER
    if sql_type in _FLOATS:
        return Kind.FLOAT
    if sql_type.startswith("DECIMAL") or sql_type in _WIDE_INTEGERS:
        return Kind.EXACT
    if sql_type in _TEXTS or sql_type.startswith("ENUM"):
        return Kind.TEXT
    if sql_type == "DATE" or sql_type.startswith("TIME"):
        return Kind.MOMENT
    raise unreadable_type(name, sql_type)


def usable(kind: Kind, name: str) -> Kind:
    """Return the kind of a column that has a role in a study, or raise CV-D013 for dates and times."""
    if kind is Kind.MOMENT:
        raise unreadable_type(name, "a date or a time")
    return kind


def ibis_kind(dtype: Any, name: str) -> Kind:
    """Return the kind of an Ibis type, or raise CV-D013."""
    tests = (
        (dtype.is_boolean, Kind.BOOLEAN),
        (dtype.is_integer, Kind.INTEGER),
        (dtype.is_floating, Kind.FLOAT),
        (dtype.is_decimal, Kind.EXACT if _bounded(dtype) else Kind.UNBOUNDED),
        (dtype.is_string, Kind.TEXT),
        (dtype.is_temporal, Kind.MOMENT),
    )
    for matches, kind in tests:
        if matches():
            return kind
    raise unreadable_type(name, str(dtype))


def _bounded(dtype: Any) -> bool:
    """Return whether the digits of a decimal type are few enough for each of its numbers to fit a double."""
    precision = getattr(dtype, "precision", None)
    return precision is not None and precision <= _MOST_DIGITS
