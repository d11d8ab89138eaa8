"""Columns from DuckDB relations, in one query so that every column has the same row order."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data.cells import (
    ABOVE,
    BELOW,
    BLANKS,
    EXACT_DOUBLES,
    FALSE,
    LONGEST_SCIENTIFIC,
    MISSING,
    NUMERAL,
    SCIENTIFIC,
    SPELLED,
    TRUE,
    TRUTHS,
    Coded,
    Column,
    Numbers,
    duplicated_columns,
    from_array,
    no_such_column,
)
from counterveil.errors import refusal

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


_INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
}  # fmt: skip
_WIDE_INTEGERS = {"HUGEINT", "UHUGEINT", "BIGNUM", "VARINT"}
_FLOATS = {"FLOAT", "DOUBLE"}
# A column without a single value has the type "NULL"; as text it is all gaps.
_TEXTS = {"VARCHAR", "NULL", '"NULL"'}

_MOST_DIGITS = 300
# The SQL of the blanks that may surround what identifies a person.
BLANK_CHARACTERS = " || ".join(f"chr({ord(blank)})" for blank in BLANKS)


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
    raise refusal("CV-D013", name=name, kind=sql_type)


def usable(kind: Kind, name: str) -> Kind:
    """Return the kind of a column that has a role in a study, or raise CV-D013 for dates and times."""
    if kind is Kind.MOMENT:
        raise refusal("CV-D013", name=name, kind="a date or a time")
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
    raise refusal("CV-D013", name=name, kind=str(dtype))


def _bounded(dtype: Any) -> bool:
    """Return whether the digits of a decimal type are few enough for each of its numbers to fit a double."""
    precision = getattr(dtype, "precision", None)
    return precision is not None and precision <= _MOST_DIGITS


# A relation, and the SQL identifier and SQL type of each name in it.
Located: TypeAlias = "tuple[DuckDBPyRelation, dict[str, tuple[str, str]]]"

_HELD, _GAP, _TEXT = 0, 1, 2


def read(
    relation: DuckDBPyRelation, names: tuple[str, ...], numeric: frozenset[str], order: str | None = None
) -> dict[str, Column]:
    """Return the named columns of a relation; dates and times in the column `order` become texts."""
    import duckdb

    wanted = locate(relation, names)
    try:
        return fetch(relation, wanted, numeric, order)
    except duckdb.Error:
        raise refusal("CV-D016", kind="a DuckDB relation") from None


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
    relation: DuckDBPyRelation,
    wanted: dict[str, tuple[str, str]],
    numeric: frozenset[str],
    order: str | None = None,
) -> dict[str, Column]:
    """Return the columns given as name -> (SQL identifier, SQL type)."""
    wanted = _without_moments(wanted, order)
    arrays = relation.project(_projection(wanted, numeric)).fetchnumpy()
    return {name: _column(arrays, place, name) for place, name in enumerate(wanted)}


def _without_moments(wanted: dict[str, tuple[str, str]], order: str | None) -> dict[str, tuple[str, str]]:
    if order is None or duckdb_kind(wanted[order][1], order) is not Kind.MOMENT:
        return wanted
    return wanted | {order: (_moment_as_text(*wanted[order], order), "VARCHAR")}


def _moment_as_text(identifier: str, sql_type: str, name: str) -> str:
    """Return the SQL of a text that stands in the order of the moments, or raise CV-D013 for times of a zone.

    ISO texts do where all are written in one zone. Moments of a zone are written in UTC: in that of the connection an
    hour comes twice when summer time ends.
    """
    text = f"CAST({identifier} AS VARCHAR)"
    if "ZONE" not in sql_type and "TZ" not in sql_type:
        return text
    if not sql_type.startswith("TIMESTAMP"):
        raise refusal("CV-D013", name=name, kind=sql_type)
    there = "make_timestamp_ns(epoch_ns({}))" if "NS" in sql_type else "make_timestamp(epoch_us({}))"
    # What is infinite has no such number.
    return f"coalesce(CAST({there.format(identifier)} AS VARCHAR), {text})"


def fetch_parts(
    relation: DuckDBPyRelation,
    wanted: dict[str, tuple[str, str]],
    numeric: frozenset[str],
    rows: int,
    person: tuple[str, str | None] | None = None,
) -> Iterator[dict[str, Column]]:
    """Yield the same columns in parts of about `rows` rows, in order; a part is read when it is asked for.

    `person` names the columns that identify people, whose order rows then come in, and that order the rows of each.
    """
    import duckdb
    import pyarrow as pa

    if person is not None:
        relation = relation.order(", ".join(_order_of_people(*wanted[person[0]], person[0])))
        wanted = _without_moments(wanted, person[1])
    try:
        for batch in relation.project(_projection(wanted, numeric)).to_arrow_reader(rows):
            arrays = {name: from_arrow(batch.column(name)) for name in batch.schema.names}
            yield {name: _column(arrays, place, name) for place, name in enumerate(wanted)}
    except pa.ArrowException as error:
        # The engine's errors come through the reader as errors of its library; they may quote rows.
        kind = duckdb.OutOfMemoryException if _no_room(str(error)) else duckdb.Error
        raise kind("not all rows could be read") from None


def _no_room(said: str) -> bool:
    """Return whether an error says that memory or disk did not suffice: the engine says the name of its class."""
    import duckdb

    name = duckdb.OutOfMemoryException.__name__.removesuffix("Exception").casefold()
    return name in said.replace(" ", "").casefold() or os.strerror(errno.ENOSPC) in said


def _order_of_people(identifier: str, sql_type: str, name: str) -> tuple[str, ...]:
    def trimmed(column: str) -> str:
        return f"trim(CAST({column} AS VARCHAR), {BLANK_CHARACTERS})"

    # Bytes: a connection may compare texts by other rules than their characters.
    kind = usable(duckdb_kind(sql_type, name), name)
    return order_of_people(identifier, kind, trimmed, _is, "encode({})".format, "DOUBLE")


def order_of_people(
    column: str,
    kind: Kind,
    trimmed: Callable[[str], str],
    matches: Callable[[str, str], str],
    as_bytes: Callable[[str], str],
    double: str,
) -> tuple[str, ...]:
    """Return the SQL of what people are told apart and sorted by, as `people.places` sorts them.

    An engine's own SQL trims a text, says whether it matches a pattern, and compares it by its characters; `double` is
    its name of doubles. Of cells that name nobody nothing matters.
    """
    whole = {
        Kind.BOOLEAN: f"CAST({column} AS INTEGER)",
        Kind.INTEGER: column,
        Kind.FLOAT: f"CASE WHEN abs({column}) < {EXACT_DOUBLES} THEN CAST({column} AS BIGINT) END",
    }
    if kind in whole:
        number = f"({whole[kind]})"
        return f"{number} < 0", f"CASE WHEN {number} < 0 THEN -1 - {number} ELSE {number} END"
    text = trimmed(column)
    digits = f"trim(BOTH '+-' FROM {text})"
    before = f"coalesce(nullif(trim(LEADING '0' FROM split_part({digits}, '.', 1)), ''), '0')"
    behind = f"trim(TRAILING '0' FROM split_part({digits}, '.', 2))"
    size = f"({before} || CASE WHEN {behind} = '' THEN '' ELSE '.' || {behind} END)"
    sign = f"CASE WHEN left({text}, 1) = '-' AND {size} <> '0' THEN '-' ELSE '' END"
    number = f"CAST({text} AS {double})"
    whole_number = f"abs({number}) < {EXACT_DOUBLES} AND floor({number}) = {number}"
    digits_of = trimmed(f"CAST({number} AS BIGINT)")
    scientific = f"{matches(text, SCIENTIFIC)} AND length({text}) <= {LONGEST_SCIENTIFIC}"
    words = " ".join(
        f"WHEN {matches(text, word)} THEN '{place}'" for word, place in zip(TRUTHS, ("1", "0"), strict=True)
    )
    who = (
        f"CASE WHEN {matches(text, SPELLED)} THEN {sign} || {size} "
        f"WHEN {scientific} THEN CASE WHEN {whole_number} THEN {digits_of} ELSE {text} END {words} ELSE {text} END"
    )
    return f"left({who}, 1) = '-'", f"length({who})", as_bytes(who)


def _projection(wanted: dict[str, tuple[str, str]], numeric: frozenset[str]) -> str:
    parts: list[str] = []
    for place, (name, (identifier, kind)) in enumerate(wanted.items()):
        parts += _expressions(identifier, kind, name, place, name in numeric)
    return ", ".join(parts)


def from_arrow(array: Any) -> Any:
    """Return an Arrow array as the engine's own arrays are: masked numbers, or the codes of its texts."""
    import pyarrow as pa

    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        coded = array.dictionary_encode()
        codes, gaps = _filled(coded.indices)
        return Coded(np.where(gaps, -1, codes).astype(np.int64), tuple(coded.dictionary.to_pylist()))
    if not array.null_count:
        return _without_gaps(array)
    return np.ma.MaskedArray(*_filled(array))


def _filled(array: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of an Arrow array, zero where they are null, and where that is."""
    gaps = _without_gaps(array.is_null())
    # The same numbers without their marks: `fill_null` takes a scalar, and to make one imports pandas.
    bare = type(array).from_buffers(array.type, len(array), [None, *array.buffers()[1:]], offset=array.offset)
    return np.where(gaps, np.zeros((), (values := _without_gaps(bare)).dtype), values), gaps


def _without_gaps(array: Any) -> NDArray[Any]:
    """Return the numpy array of an Arrow array without nulls; numbers are not copied."""
    import pyarrow as pa

    if pa.types.is_boolean(array.type):
        return _without_gaps(array.cast(pa.uint8())).astype(np.bool_)
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        # Not with `to_numpy`, which imports pandas where it is installed.
        return np.from_dlpack(array)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def quoted(identifier: str) -> str:
    """Return an SQL identifier that stands for exactly this name."""
    return '"' + identifier.replace('"', '""') + '"'


def number_from_text(text: str) -> str:
    """Return the SQL of `cell_rules.double_of` for a text: a double or an infinity, never a NaN; NULL for no number."""
    # The engine's own cast takes underscores, two signs and NaNs as well. Words are looked for only where there is no
    # numeral: most cells are numerals.
    words = " ".join(
        f"WHEN {_is(text, pattern)} THEN CAST('{value}' AS DOUBLE)"
        for pattern, value in ((TRUE, "1"), (FALSE, "0"), (ABOVE, "Infinity"), (BELOW, "-Infinity"))
    )
    return f"CASE WHEN {_is(text, NUMERAL)} THEN TRY_CAST({text} AS DOUBLE) {words} END"


def is_blank(text: str) -> str:
    """Return the SQL of `cell_rules.says_nothing`, with NULL among the texts that say nothing."""
    return _is(f"coalesce({text}, '')", MISSING)


def _is(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, '{pattern}')"


def _expressions(identifier: str, sql_type: str, name: str, place: int, numeric: bool) -> list[str]:
    value, state = f"v{place}", f"s{place}"
    kind = usable(duckdb_kind(sql_type, name), name)
    if kind not in (Kind.EXACT, Kind.TEXT):
        return [f"{identifier} AS {value}"]
    # Through decimal text: the double nearest to the written number, as for every other source.
    text = f"CAST({identifier} AS VARCHAR)"
    if not numeric:
        return [f"{text} AS {f'd{place}' if kind is Kind.EXACT else value}"]
    number = number_from_text(text)
    return [
        f"coalesce({number}, 0) AS {value}",
        f"CASE WHEN ({number}) IS NOT NULL THEN {_HELD} "
        f"WHEN {is_blank(text)} THEN {_GAP} ELSE {_TEXT} END AS {state}",
    ]


def _column(arrays: dict[str, Any], place: int, name: str) -> Column:
    if f"d{place}" in arrays:
        return as_decimals(plain_column(arrays[f"d{place}"], name))
    if f"s{place}" not in arrays:
        return plain_column(arrays[f"v{place}"], name)
    values, _ = _split(arrays[f"v{place}"])
    state, _ = _split(arrays[f"s{place}"])
    doubles = values.astype(np.float64)
    return Numbers(doubles, state == _GAP, state == _TEXT)


def plain_column(array: Any, name: str) -> Column:
    """Return the column held by an array as the engine gives it, masked where it is NULL."""
    if isinstance(array, Coded):
        return array
    values, gaps = _split(array)
    return from_array(values, name, gaps)


def as_decimals(column: Column) -> Column:
    """Return the exact numbers that a column of decimal texts is written as; NaN is missing."""
    if not isinstance(column, Coded):
        return column
    # Numbers again, so that a label is compared with the number and not with its spelling.
    cells = tuple(Decimal(str(cell)) for cell in column.cells)
    gaps = np.array([cell.is_nan() for cell in cells], dtype=np.bool_)
    return Coded(np.where(column.take(gaps, for_missing=True), -1, column.codes), cells)


def _split(array: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if isinstance(array, np.ma.MaskedArray):
        return np.asarray(array.data), np.ma.getmaskarray(array)
    return np.asarray(array), np.zeros(len(array), dtype=np.bool_)
