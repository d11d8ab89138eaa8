r"""What a cell says: a number, nothing, or something that is refused; one definition for every source.

| cell | where a number is needed (outcome, `Range`) | where a label is needed (treatment, `Binary`, `Categories`) |
|---|---|---|
| None, null, a masked entry, pandas' NA and NaT, a NaN of any type and width | missing | missing |
| a truth value | 1 or 0 | the number 1 or 0 |
| int, float of any width, Decimal, Fraction: finite | the nearest double, clamped | that number, exactly |
| the same: infinite, or beyond the largest double | beyond every bound, so clamped | no label: refused |
| text: blank, or NA, NaN, +NaN, -NaN, NULL in any case | missing | missing, unless declared as a label |
| text: a numeral | the nearest double, clamped | the declared text, else the number it is written as |
| text: true, false in any case | 1 or 0 | the declared text, else the number 1 or 0 |
| text: inf, infinity in any case, perhaps signed | beyond every bound, so clamped | the declared text, else refused |
| any other text | refused | the declared text, else refused |
| bytes, complex numbers, dates, times, anything else | refused by type | refused by type |

Blanks are the ASCII ones: tab, line feed, vertical tab, form feed, carriage return, space. They may surround numerals
and words. A numeral is `[+-]digits[.digits][e[+-]digits]` or `[+-].digits[e[+-]digits]` in ASCII digits; underscores,
thousands separators, hexadecimal forms, digits of other scripts and `nan(...)` are other text.

The patterns are written in what Python's `re` and DuckDB's RE2 read alike, letters of both cases spelled out: the two
do not fold the same letters beyond ASCII. Databases other than DuckDB read no numbers out of text at all (CV-D052).
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

BLANKS = "\t\n\v\f\r "
# Types of cells that hold something; a subclass counts as its base.
READABLE = (str, bool, int, float, Decimal, Fraction, np.bool_, np.integer, np.floating)


def _any_case(*words: str) -> str:
    spelled = ("".join(f"[{letter}{letter.upper()}]" for letter in word) for word in words)
    return f"(?:{'|'.join(spelled)})"


def _alone(pattern: str) -> str:
    """Return the pattern of a text that holds this and blanks."""
    return rf"[\x09-\x0d ]*{pattern}[\x09-\x0d ]*"


NUMERAL = _alone(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
TRUE = _alone(_any_case("true"))
FALSE = _alone(_any_case("false"))
ABOVE = _alone(r"\+?" + _any_case("inf", "infinity"))
BELOW = _alone("-" + _any_case("inf", "infinity"))
MISSING = _alone(rf"(?:{_any_case('na', 'null')}|[+-]?{_any_case('nan')})?")

_NUMERAL = re.compile(NUMERAL)
_WORDS = (
    (re.compile(TRUE), 1.0),
    (re.compile(FALSE), 0.0),
    (re.compile(ABOVE), np.inf),
    (re.compile(BELOW), -np.inf),
)
_MISSING = re.compile(MISSING)


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
