"""What a cell means, and the refusals of data that do not fit: they name the column, never a row or a value.

Refusals are raised while a table is being attached, before anything can be spent, and are meant for the data holder.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import CounterveilError, refusal

_LISTED = 12
# What a cell may hold, but not a whole number from 1,000 on, by which years and concepts are named.
_CELL_NUMBER = re.compile(
    r"[+-]?\d{1,3}|[+-]\d+|[+-]?\d*[.,]\d+|[+-]?\d+[.,]\d*|[+-]?\d+(\.\d*)?[eE][+-]?\d+"
)


def nearest(name: object, known: Iterable[object], owner: str) -> str:
    """Return advice on which known name was probably meant."""
    names = [str(candidate) for candidate in known]
    probably = meant(name, names)
    if probably is not None:
        return f"did you mean {probably!r}?"
    listed = ", ".join(repr(candidate) for candidate in names[:_LISTED])
    more = ", ..." if len(names) > _LISTED else ""
    return f"{owner} has: {listed}{more}" if names else f"{owner} has no columns"


def meant(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant, None where none is close."""
    folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def no_such_column(name: str, known: Iterable[object]) -> CounterveilError:
    """Return CV-D001."""
    return refusal("CV-D001b", name=name, fix=nearest(name, known, "the data"))


def row_in_place_of_names(names: Iterable[object]) -> CounterveilError | None:
    """Return CV-D314 where columns are named by numbers such as cells hold, as in a file without a header line."""
    every = [str(name).strip() for name in names]
    cells = sum(_CELL_NUMBER.fullmatch(name) is not None for name in every)
    return refusal("CV-D314", count=cells, columns=len(every)) if cells else None


def strange_treatment(name: str, treated: object, control: object) -> CounterveilError:
    """Return CV-D005."""
    other = "exactly one other label" if control is None else repr(control)
    return refusal("CV-D005", name=name, treated=treated, other=other)


def undeclared_arm(name: str, arms: Iterable[object]) -> CounterveilError:
    """Return CV-D017."""
    return refusal("CV-D017", name=name, arms=", ".join(repr(label) for label in arms))


def not_binary(name: str, labels: Iterable[object]) -> CounterveilError:
    """Return CV-D007."""
    return refusal("CV-D007", name=name, labels=" and ".join(repr(label) for label in labels))


def not_events(name: str, kinds: int) -> CounterveilError:
    """Return CV-D090."""
    return refusal("CV-D090", name=name, values=" or ".join(str(kind + 1) for kind in range(kinds)))


def duplicated_columns(names: Iterable[object]) -> CounterveilError:
    """Return CV-D010."""
    return refusal("CV-D010", got=", ".join(sorted({repr(name) for name in names})))


def unreadable_file(name: str, form: str) -> CounterveilError:
    """Return CV-D015."""
    return refusal("CV-D015", form=form, got=repr(name))


def uneven_arrays(names: Iterable[str]) -> CounterveilError:
    """Return CV-D014."""
    return refusal("CV-D014", names=", ".join(repr(name) for name in names))


def too_many_groups(most: int, rows: int, strata: int) -> CounterveilError:
    """Return CV-D055, from the number of rows and of declared strata alone."""
    return refusal("CV-D055", most=most, fewer=most // 2, rows=rows, strata=strata)


# A column as it was read: numbers, or codes that point into a list of distinct cells.
#
# What a cell says: a number, nothing, or something that is refused; one definition for every source.
#
# | cell | where a number is needed (outcome, `Range`) | where a label is needed (treatment, `Binary`, `Categories`) |
# |---|---|---|
# | None, null, a masked entry, pandas' NA and NaT, a NaN of any type and width | missing | missing |
# | a truth value | 1 or 0 | the number 1 or 0 |
# | int, float of any width, Decimal, Fraction | the nearest double, clamped | the nearest double |
# | the same: infinite, or beyond the largest double | beyond every bound, so clamped | no label: refused |
# | text: blank, or what readers take for a gap (`MISSING`) | missing | missing |
# | text: a numeral | the nearest double, clamped | the nearest double |
# | text: true, false in any case | 1 or 0 | the number 1 or 0 |
# | text: t, f, yes, no in any case | refused | the number 1 or 0 |
# | text: 0x and 0b numerals below 2^53 | refused | that number |
# | text: inf, infinity in any case, perhaps signed | beyond every bound, so clamped | no label: refused |
# | any other text | refused | the declared text, else refused |
# | bytes, complex numbers, dates, times, anything else | refused by type | refused by type |
#
# A cell means the same whatever the other cells of its column are. Readers and containers turn a column of numerals
# into numbers, one of truth words into truth values, and each of these into texts where one cell is something else:
# what any of them takes for a number is that number, as a text too.
#
# Blanks are the ASCII ones: tab, line feed, vertical tab, form feed, carriage return, space. They may surround
# numerals and words. A numeral is `[+-]digits[.digits][e[+-]digits]` or `[+-].digits[e[+-]digits]` in ASCII digits;
# underscores, thousands separators, digits of other scripts and `nan(...)` are other text.
#
# The patterns are written in what Python's `re` and DuckDB's RE2 read alike, letters of both cases spelled out: the
# two do not fold the same letters beyond ASCII. PostgreSQL and Spark read no numbers out of text at all (CV-D052).


BLANKS = "\t\n\v\f\r "
# Types of cells that hold something; a subclass counts as its base.
READABLE = (str, bool, int, float, Decimal, Fraction, np.bool_, np.integer, np.floating)


def _any_case(*words: str) -> str:
    spelled = (
        "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else f"[{letter}]" for letter in word)
        for word in words
    )
    return f"(?:{'|'.join(spelled)})"


def _alone(pattern: str) -> str:
    """Return the pattern of a text that holds this and blanks."""
    return rf"[\x09-\x0d ]*{pattern}[\x09-\x0d ]*"


# A number without an exponent that may be spelled in a shorter way.
SPELLED = r"[+][0-9]+|[+-]?(?:0[0-9]*|[0-9]+[.][0-9]*|[.][0-9]+)"
# One with an exponent that every engine reads, where it is no longer than this: spreadsheets write long ids so.
SCIENTIFIC = r"[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)[eE][+-]?[0-9]{1,2}"
LONGEST_SCIENTIFIC = 40
TRUTHS = (_any_case("true"), _any_case("false"))
NUMERAL = _alone(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
TRUE, FALSE = map(_alone, TRUTHS)
ABOVE = _alone(r"\+?" + _any_case("inf", "infinity"))
BELOW = _alone("-" + _any_case("inf", "infinity"))
MISSING = _alone(
    rf"(?:{_any_case('na', 'null', 'n/a', '#na', '#n/a', '#n/a n/a')}|[+-]?{_any_case('nan', '1.#ind', '1.#qnan')})?"
)

_NUMERAL = re.compile(NUMERAL)
_WORDS = (
    (re.compile(TRUE), 1.0),
    (re.compile(FALSE), 0.0),
    (re.compile(ABOVE), np.inf),
    (re.compile(BELOW), -np.inf),
)
_MISSING = re.compile(MISSING)
# What some readers take for truth values and for whole numbers: DuckDB, pyarrow, R.
_TRUTHS = (
    (re.compile(_alone(_any_case("t", "yes"))), 1.0),
    (re.compile(_alone(_any_case("f", "no"))), 0.0),
)
_PREFIXED = re.compile(_alone("0(?:[xX][0-9a-fA-F]{1,14}|[bB][01]{1,53})"))
# From here on a double stands for several whole numbers: a gap anywhere in a column may turn others into it.
EXACT_DOUBLES = 2**53


def is_nothing(cell: object) -> bool:
    """Return whether a cell that is not text holds nothing: None, NA, NaT or a NaN."""
    if cell is None:
        return True
    if isinstance(cell, Decimal):
        # Also the signalling one, which cannot be compared, hashed or made a float.
        return cell.is_nan()
    if isinstance(cell, float | np.floating):
        return bool(cell != cell)
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    kind = type(cell)
    return kind.__name__ in ("NAType", "NaTType") and kind.__module__.partition(".")[0] == "pandas"


def says_nothing(text: str) -> bool:
    """Return whether a text stands for a missing value where no such label is declared."""
    return _MISSING.fullmatch(text) is not None


def truth_of(text: str) -> int | None:
    """Return 1 or 0 for a text that says true or false, None for others."""
    return next((int(value) for word, value in _WORDS[:2] if word.fullmatch(text)), None)


def double_of(cell: object) -> float | None:
    """Return the double nearest to a cell, an infinity for what lies beyond every bound, None for no number.

    Never a NaN, whatever the cell is.
    """
    if isinstance(cell, str):
        if _NUMERAL.fullmatch(cell):
            return float(cell)
        return next((value for word, value in _WORDS if word.fullmatch(cell)), None)
    if not isinstance(cell, READABLE) or is_nothing(cell):
        return None
    try:
        return float(cell)
    except OverflowError:
        return np.inf if cell > 0 else -np.inf  # type: ignore[operator]
    except Exception:  # of a type derived from these, whatever it does instead
        return None


def meaning_of(cell: object) -> float | str | None:
    """Return what a cell means where a label is needed: a number, else its text; None where it is neither."""
    if not isinstance(cell, str):
        double = double_of(cell)
        return None if double is None else double + 0.0
    double = double_of(cell)
    if double is None:
        double = next((value for word, value in _TRUTHS if word.fullmatch(cell)), None)
    if double is None and _PREFIXED.fullmatch(cell):
        whole = int(cell.strip(BLANKS), 0)
        double = float(whole) if whole < EXACT_DOUBLES else None
    # Adding zero makes one zero of the two.
    return cell if double is None else double + 0.0


Mask: TypeAlias = NDArray[np.bool_]

_NO_CELL = -1


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numeric cells: bool, integer or float values; `missing` marks those that hold nothing."""

    values: NDArray[Any]
    missing: Mask
    # Marks text that is no number, where the source parsed the text for us.
    text: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    def keep(self, rows: Mask | NDArray[np.intp]) -> Numbers:
        """Return the same column with the marked or listed rows only."""
        text = None if self.text is None else self.text[rows]
        return Numbers(self.values[rows], self.missing[rows], text)


@dataclass(frozen=True, slots=True)
class Coded:
    """Cells of any kind: `cells[code]` is what a row holds, a negative code means it holds nothing."""

    codes: NDArray[np.int64]
    cells: tuple[object, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def keep(self, rows: Mask | NDArray[np.intp]) -> Coded:
        """Return the same column with the marked or listed rows only."""
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
        doubles = values if values.dtype == np.float64 else _narrowed(values)
        unknown = np.isnan(doubles)
        return Numbers(doubles, unknown if missing is None else missing | unknown)
    gaps = np.zeros(len(values), dtype=np.bool_) if missing is None else missing
    if values.dtype.kind in "biu":
        return Numbers(values, gaps)
    if values.dtype.kind in "OUST":
        return from_cells(values.tolist(), name, gaps)
    raise refusal("CV-D013", name=name, kind=str(values.dtype))


def _narrowed(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return floats as doubles, so that every source compares the same ones; too large ones lie beyond every bound."""
    with np.errstate(all="ignore"):
        return values.astype(np.float64)


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
            raise refusal("CV-D013", name=name, kind=kind.__name__)
    try:
        return _coded(held, len(kinds) > 1)
    except Exception:  # also of a type derived from these
        raise refusal("CV-D013", name=name, kind="cells of types that cannot be compared") from None


def _coded(held: list[Any], mixed: bool) -> Coded:
    """Return cells by their codes; equal cells of several types stay apart, since each is read by its own."""
    index = _Codes({None: _NO_CELL})
    keys: Iterable[Any] = held
    if mixed:
        keys = (None if cell is None else (type(cell), cell) for cell in held)
    # None holds a place in the index, so the first real cell gets code 1.
    codes = np.fromiter(map(index.__getitem__, keys), dtype=np.int64, count=len(held))
    codes -= 1
    np.maximum(codes, _NO_CELL, out=codes)
    found: tuple[Any, ...] = tuple(index)[1:]
    if mixed:
        found = tuple(cell for _, cell in found)
    gaps = np.array([is_nothing(cell) for cell in found], dtype=np.bool_)
    if gaps.any():
        codes[(codes >= 0) & gaps[codes]] = _NO_CELL
    return Coded(codes, found)


def _kinds(cells: Iterable[Any]) -> set[type]:
    """Return the types of all cells that hold something."""
    try:
        # Texts alone can be joined, which takes a third of the time of looking at every type.
        "".join(cells)
    except TypeError:
        return set(map(type, cells)) - {type(None)}
    return {str}
