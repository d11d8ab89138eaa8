"""Every exception of the package: a code, what was expected, what was given, and how to fix it.

The texts stand in `refusals.toml`, one table a code; `refusal` fills in the facts of a case.

Messages contain only parameters and column names. Once private rows are attached, no message
may depend on them; the checks that look at rows run while a table is being attached, before
anything can be spent, and are meant for the data holder.

A value passed by a caller may be of any size and contain anything: a column of private cells in place of a number,
terminal control characters, an address with a password. `shown` makes it short and harmless.
"""

from __future__ import annotations

import re
import tomllib
import traceback
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import pairwise
from numbers import Integral, Real
from pathlib import PurePath
from string import Formatter
from typing import Any

_LONGEST_VALUE = 120
_LONGEST_LINE = 2_000
# More items than this are a column of data as likely as a setting.
_MOST_ITEMS = 4
_DIGITS = 40
_EXCERPT = 20
# Where an address names a user, what stands between the colon and the last "@" before the next slash or space.
# Passwords with slashes too, unless what stands there is a port.
_PASSWORD = re.compile(
    r"(?P<user>[A-Za-z][A-Za-z0-9+.-]{0,20}://?[^\s/@:]{0,200}):(?:[^\s/]{1,500}|(?!\d{1,5}/)\S{1,500})@"
)
# The same where the address has lost its start, or never had a scheme.
_PASSWORD_BARE = re.compile(r"\b(?P<user>[\w.+-]{1,64}):[^\s/:@]{1,500}@(?=localhost\b|[\w-]{1,64}\.\w)")
# The end of a text that was cut short: it may be a password whose "@" was cut off.
_UNFINISHED = re.compile(r"/[^\s/]*\Z")
_PASSWORD_WORD = re.compile(
    r"(?P<key>\b(?:password|passwd|pwd|token|sslpassword)|[?&]\w{0,40}(?:password|token|key|secret|credentials))"
    r"(?P<sign>\s*=\s*)[^\s&'\"]+",
    re.I,
)


class CounterveilError(Exception):
    """Base of every error that the package raises.

    Catch it to handle all of them, or a subclass: `ParameterError` (codes CV-P and CV-A), `StudyError`
    (CV-S), `DataError` (CV-D), `BudgetError` (CV-B), `LedgerError` (CV-L), `ClaimError` (CV-C),
    `MissingExtraError` (CV-E), `FederationError` (CV-F), `ConsoleError` (CV-W) and `InternalError` (CV-X),
    all in `counterveil.errors`. Errors before a request is charged spend nothing.

    Parameters
    ----------
    code : str
        Code of the error.
    problem, expected, got, fix : str
        The four lines of the message.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-P025"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        1 to 9, or 70, by subclass: what the command line returns.

    Examples
    --------
    >>> import counterveil as cv
    >>> try:
    ...     cv.settings.Matching(neighbours=0)
    ... except cv.CounterveilError as error:
    ...     print(error.code, error.exit_code)
    CV-P025 2
    """

    exit_code = 1

    def __init__(self, code: str, problem: str, *, expected: str, got: str, fix: str) -> None:
        self.code = code
        # These lines contain values passed by callers: no control characters and no passwords may remain.
        self.problem = printable(problem)
        self.expected = printable(expected)
        self.got = printable(got)
        self.fix = printable(fix)
        super().__init__(self.text())

    def text(self) -> str:
        """Return the message that a person sees.

        Returns
        -------
        str
            Five lines: problem, expected, got, to fix, and the command that explains the code.
        """
        return (
            f"[{self.code}] {self.problem}\n"
            f"  expected: {self.expected}\n"
            f"  got:      {self.got}\n"
            f"  to fix:   {self.fix}\n"
            f"  more:     counterveil explain {self.code}"
        )

    def to_dict(self) -> dict[str, str]:
        """Return the facts for programs; ``--json`` prints them.

        Returns
        -------
        dict
            ``code``, ``problem``, ``expected``, ``got`` and ``fix``.
        """
        return {
            "code": self.code,
            "problem": self.problem,
            "expected": self.expected,
            "got": self.got,
            "fix": self.fix,
        }

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling, which worker processes rely on.
        return (_rebuild, (type(self), self.code, self.problem, self.expected, self.got, self.fix))


def _rebuild(
    kind: type[CounterveilError], code: str, problem: str, expected: str, got: str, fix: str
) -> CounterveilError:
    return kind(code, problem, expected=expected, got=got, fix=fix)


class ParameterError(CounterveilError):
    """An argument is out of range; depends on arguments only. Codes CV-P (questions) and CV-A (audits).

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-P025"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        2: what the command line returns.
    """

    exit_code = 2


class StudyError(CounterveilError):
    """The declaration of roles, bounds or categories is invalid. Codes CV-S.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-S002"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        3: what the command line returns.
    """

    exit_code = 3


class DataError(CounterveilError):
    """The data do not fit the study. Codes CV-D; raised only while rows are being attached, before anything
    is spent.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-D001"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        3: what the command line returns.
    """

    exit_code = 3


class BudgetError(CounterveilError):
    """A budget is invalid or less remains than a request costs; nothing was spent. Codes CV-B.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-B001"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        4: what the command line returns.
    """

    exit_code = 4


class LedgerError(CounterveilError):
    """The ledger is missing, damaged, or refuses the request. Codes CV-L.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-L004"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        5: what the command line returns.
    """

    exit_code = 5


class ClaimError(CounterveilError):
    """A form without a finite-sample guarantee, or an object that a request id cannot identify. Codes CV-C.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-C001"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        6: what the command line returns.
    """

    exit_code = 6


class MissingExtraError(CounterveilError):
    """An optional package is not installed. Codes CV-E.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-E010"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        7: what the command line returns.
    """

    exit_code = 7


class FederationError(CounterveilError):
    """A site could not be reached or refused; the message has a code and no private fact. Codes CV-F.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-F002"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        8: what the command line returns.
    """

    exit_code = 8


class ConsoleError(CounterveilError):
    """The console refuses a visitor, a form or a folder; depends on what was sent only. Codes CV-W.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-W001"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        9: what the command line returns.
    """

    exit_code = 9


class InternalError(CounterveilError):
    """An internal check failed: a bug in the package, never the user's mistake. Codes CV-X.

    Attributes
    ----------
    code : str
        Code of the error, such as "CV-X060"; ``counterveil explain CODE`` prints its page.
    problem : str
        What is wrong, in one line.
    expected : str
        What was expected.
    got : str
        What was given: names of columns and values of arguments, never values of rows.
    fix : str
        What to do about it.
    exit_code : int
        70: what the command line returns.
    """

    exit_code = 70


# The class of an error follows from the letter of its code.
KINDS: dict[str, type[CounterveilError]] = {
    "A": ParameterError,
    "B": BudgetError,
    "C": ClaimError,
    "D": DataError,
    "E": MissingExtraError,
    "F": FederationError,
    "L": LedgerError,
    "P": ParameterError,
    "S": StudyError,
    "W": ConsoleError,
    "X": InternalError,
}


_CODE = 7  # letters of a code, without the one that tells further texts of it apart
_FIELDS = ("problem", "expected", "got", "fix")


@cache
def refusals() -> dict[str, dict[str, str]]:
    """Return the table of refusals: a row for each code, and for each further text of a code one with a letter more."""
    return tomllib.loads((files("counterveil") / "refusals.toml").read_text(encoding="utf-8"))


def refusal(row: str, /, **facts: object) -> CounterveilError:
    """Return the error of a row of the table."""
    code = row[:_CODE]
    return KINDS[code[3]](code, **filled(row, **facts))


def filled(row: str, /, **facts: object) -> dict[str, str]:
    """Return the four texts of a row with these facts; those marked `!s` there are values that somebody passed."""
    return {name: _TEXT.vformat(refusals()[row][name], (), facts) for name in _FIELDS}


def explanation(code: str) -> str | None:
    """Return the page of a code in Markdown, None where there is no such code; facts of a case are in capitals."""
    rows = [row for key, row in sorted(refusals().items()) if key[:_CODE] == code]
    if not rows:
        return None
    parts = [f"# {code}: {outline(rows[0]['problem'])}"]
    for row in rows:
        said = {"Expected": outline(row.get("expected", "")), "To fix": outline(row["fix"])}
        parts += [f"{word}: {text.rstrip('.')}." for word, text in said.items() if text]
    parts += [rows[0]["why"]]
    parts += [f"```\n{rows[0]['example'].strip()}\n```"] if "example" in rows[0] else []
    return "\n\n".join(parts) + "\n"


def outline(text: str) -> str:
    """Return a text of the table with the names of its facts, in capitals, in place of their values.

    A fact that adjoins a word is a part of the sentence that some cases have, and is left out. A text that is one
    fact says nothing: it is empty.
    """
    pieces = list(_TEXT.parse(text))
    found = ""
    for (before, name, _, _), (after, *_) in pairwise([*pieces, ("", None, None, None)]):
        found += before
        apart = not found[-1:].isalnum() and not after[:1].isalnum()
        found += name.upper() if name and apart else ""
    return found if len(pieces) != 1 or pieces[0][0] else ""


def unforeseen(fault: BaseException) -> CounterveilError:
    """Return CV-X060 for an error that is not one of ours: its kind and place, never its text or its variables.

    The text of a stranger's error may quote a cell of the data, and so may the variables of a traceback.
    """
    place = "outside the package"
    for frame, line in traceback.walk_tb(fault.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] in ("counterveil", "counterveil_lab"):
            place = f"{name}, line {line}"
    return refusal("CV-X060", kind=type(fault).__name__, place=place)


def installing(extras: str) -> str:
    """Return how an optional part is installed; the package is on no registry, so from a checkout of it."""
    return f"in a checkout of Counterveil: pip install '.[{extras}]'"


def shown(value: object) -> str:
    """Return a value as shown in a message; anything but a number or a short text is described by its type."""
    return _shown(value, depth=2)


def printable(text: str, most: int = _LONGEST_LINE) -> str:
    """Return one line of a message: passwords masked, control characters escaped, truncated if too long."""
    line = "".join(map(_visible, _masked_start(text, 4 * most)))
    cut = len(line) > most or len(text) > 4 * most
    return f"{line[:most]}... ({len(text)} characters)" if cut else line


def excerpt(text: str, place: int) -> str:
    """Return a few characters of a text that could not be read, for a message; passwords are masked first."""
    return shown(masked(text)[place : place + _EXCERPT])


def masked(text: str) -> str:
    """Return a text with the passwords of addresses in it replaced by stars."""
    without = _PASSWORD_BARE.sub(r"\g<user>:***@", _PASSWORD.sub(r"\g<user>:***@", text))
    return _PASSWORD_WORD.sub(r"\g<key>\g<sign>***", without)


def _masked_start(text: str, most: int) -> str:
    """Return the masked start of a text; where it is cut, without what an address there began with."""
    start = text[:most]
    return masked(start if len(text) <= most else _UNFINISHED.sub("/", start))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return ascii(character)[1:-1]


def _shown(value: object, depth: int) -> str:
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, str | PurePath):
        text = str(value)
        rest = f"... ({len(text)} characters)" if len(text) > _LONGEST_VALUE else ""
        return repr(_masked_start(text, _LONGEST_LINE)[:_LONGEST_VALUE]) + rest
    if isinstance(value, Fraction | Decimal | Integral | Real):
        return _number(value)
    if isinstance(value, list | tuple | dict | set | frozenset):
        if depth == 0 or len(value) > _MOST_ITEMS:
            return f"a {type(value).__name__} of {len(value)}"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{_shown(k, 0)}: {_shown(v, depth - 1)}" for k, v in value.items()) + "}"
        inside = ", ".join(_shown(item, depth - 1) for item in value)
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    return f"a value of type {type(value).__name__}"


def _number(value: object) -> str:
    """Return a number as text; one of thousands of digits is not written out, and Python would refuse to."""
    if isinstance(value, Fraction):
        sizes = (value.numerator, value.denominator)
        return str(value) if all(_short(size) for size in sizes) else "a fraction of many digits"
    if isinstance(value, int) and not _short(value):
        return f"an integer of about {int(value.bit_length() * 0.30103) + 1} digits"
    try:
        text = repr(value)
    except Exception:  # whatever a number type of somebody else's does, a message is made
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST_VALUE else f"a number of {len(text)} characters"


def _short(value: int) -> bool:
    return value.bit_length() < _DIGITS * 3.32


class _Text(Formatter):
    """Texts of refusals, in which a value marked `!s` is shortened and made harmless."""

    def convert_field(self, value: object, conversion: Any) -> object:
        """Return a value as shown in a message."""
        return shown(value) if conversion == "s" else super().convert_field(value, conversion)


_TEXT = _Text()
