"""Conditions on rows, read and applied without evaluating code.

A condition is made of comparisons joined by `and`, `or` and `not`:

    age >= 18 and site in ['A', 'B']
    18 <= age < 65 and not (arm == 'open label')
    `visit date` is not missing

Each row is judged by itself. As in SQL, a comparison with a missing value is unknown, and rows for which the whole
condition is unknown are left out. Proof of what that does to a guarantee: `where.proof.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from counterveil.data import domains as encoding
from counterveil.data.cells import Column, Mask
from counterveil.data.domains import Label, checked_label, first_confusable, index_of, number_of
from counterveil.errors import CounterveilError, excerpt, refusal, shown
from counterveil.numerics.arrays import Floats

# Proof: where.proof.md


# Longer and deeper conditions are mistakes or attacks; no subset that people describe comes near.
_LONGEST, _DEEPEST, _MOST_TOKENS = 4_000, 32, 1_000
_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<number>[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?(?![\w.]))"
    r"|(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
    r"|(?P<quoted>`(?:[^`]|``)+`)"
    r"|(?P<word>[^\W\d]\w*(?:\.\w+)*)"
    r"|(?P<sign><=|>=|==|!=|<|>|[()\[\],])"
    r")",
)
_ORDERS = ("<", "<=", ">", ">=")
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_WORDS = frozenset({"and", "or", "not", "in", "is", "missing", "true", "false"})
_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


@dataclass(frozen=True, slots=True)
class Compared:
    """A column compared with one number: <, <=, > or >=."""

    column: str
    sign: str
    number: int | float

    def text(self) -> str:
        """Return the comparison as it is written."""
        return f"{_name(self.column)} {self.sign} {self.number!r}"


@dataclass(frozen=True, slots=True)
class Among:
    """Whether a column holds one of several labels, which are compared as those of covariates are."""

    column: str
    labels: tuple[Label, ...]

    def text(self) -> str:
        """Return the comparison as it is written."""
        if len(self.labels) == 1:
            return f"{_name(self.column)} == {_literal(self.labels[0])}"
        return f"{_name(self.column)} in [{', '.join(map(_literal, self.labels))}]"


@dataclass(frozen=True, slots=True)
class Missing:
    """Whether a column holds no value; never unknown."""

    column: str

    def text(self) -> str:
        """Return the test as it is written."""
        return f"{_name(self.column)} is missing"


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition; unknown where that is."""

    part: Condition

    def text(self) -> str:
        """Return the negation as it is written."""
        if isinstance(self.part, Missing):
            return f"{_name(self.part.column)} is not missing"
        return f"not ({self.part.text()})"


@dataclass(frozen=True, slots=True)
class Joined:
    """Several conditions, of which all ("and") or one ("or") must hold."""

    word: str
    parts: tuple[Condition, ...]

    def text(self) -> str:
        """Return the parts with brackets around those that are joined themselves."""
        said = (f"({part.text()})" if isinstance(part, Joined) else part.text() for part in self.parts)
        return f" {self.word} ".join(said)


Condition: TypeAlias = Compared | Among | Missing | Not | Joined


def _name(column: str) -> str:
    if _PLAIN_NAME.fullmatch(column) and column.lower() not in _WORDS:
        return column
    return "`" + column.replace("`", "``") + "`"


def _literal(label: Label) -> str:
    # As in SQL, a quotation mark within a text is written twice.
    return "'" + label.replace("'", "''") + "'" if isinstance(label, str) else json.dumps(label)


def read_condition(text: object) -> Condition:
    """Return the condition in a text, or raise CV-S121."""
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise _no_condition(f"a text of 1 to {_LONGEST} characters", shown(text))
    return _Reader(text).condition()


class _Reader:
    """The tokens of a condition and the place that was reached; read by recursive descent to a bounded depth."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._place = 0

    def condition(self) -> Condition:
        """Return the whole condition, or raise CV-S121."""
        found = self._joined("or", 0)
        if self._place < len(self._tokens):
            raise _no_condition("`and` or `or` between conditions", self._here())
        return found

    def _joined(self, word: str, depth: int) -> Condition:
        parts: list[Condition] = []
        while True:
            part = self._joined("and", depth) if word == "or" else self._negated(depth)
            # Brackets that change nothing are not kept, so that equal conditions have equal texts.
            parts += part.parts if isinstance(part, Joined) and part.word == word else [part]
            if not self._took("word", word):
                break
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _negated(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise _no_condition(f"at most {_DEEPEST} levels of brackets and `not`", "more")
        if self._took("word", "not"):
            part = self._negated(depth + 1)
            return part.part if isinstance(part, Not) else Not(part)
        if self._took("sign", "("):
            found = self._joined("or", depth + 1)
            self._need("sign", ")")
            return found
        return self._comparison()

    def _comparison(self) -> Condition:
        number = self._number()
        if number is None:
            return self._about(self._column())
        # 18 <= age < 65: two comparisons of one column.
        first = _FLIPPED[self._sign()]
        column = self._column()
        parts = [_compare(column, first, number)]
        if self._peek("sign") in _ORDERS:
            parts.append(_compare(column, self._sign(), self._value()))
        return parts[0] if len(parts) == 1 else Joined("and", tuple(parts))

    def _about(self, column: str) -> Condition:
        if self._took("word", "is"):
            negated = self._took("word", "not")
            self._need("word", "missing")
            return Not(Missing(column)) if negated else Missing(column)
        if self._took("word", "not"):
            self._need("word", "in")
            return Not(self._among(column))
        if self._took("word", "in"):
            return self._among(column)
        return _compare(column, self._sign(), self._value())

    def _among(self, column: str) -> Among:
        end = ")" if self._took("sign", "(") else "]"
        if end == "]":
            self._need("sign", "[")
        labels = [self._value()]
        while self._took("sign", ","):
            labels.append(self._value())
        self._need("sign", end)
        return _one_of(column, tuple(labels))

    def _column(self) -> str:
        quoted = self._take("quoted")
        if quoted is not None:
            return quoted[1:-1].replace("``", "`")
        word = self._peek("word")
        if word is None or word.lower() in _WORDS:
            raise _no_condition("the name of a column", self._here())
        self._place += 1
        return word

    def _sign(self) -> str:
        sign = self._take("sign")
        if sign in _FLIPPED:
            return sign
        self._place -= sign is not None
        raise _no_condition("one of ==, !=, <, <=, >, >=, in, not in, is missing", self._here())

    def _value(self) -> Label:
        number = self._number()
        if number is not None:
            return number
        text = self._take("text")
        if text is not None:
            return text[1:-1].replace(text[0] * 2, text[0])
        word = self._peek("word")
        if word is not None and word.lower() in ("true", "false"):
            self._place += 1
            return int(word.lower() == "true")
        raise _no_condition("a number, a text in quotes, true or false", self._here())

    def _number(self) -> int | float | None:
        text = self._take("number")
        if text is None:
            return None
        exact = number_of(text)
        if exact is None:
            raise _no_condition("a number", shown(text))
        if exact.denominator == 1 and abs(exact.numerator) < 2**63:
            return exact.numerator
        value = float(exact) if abs(exact) < 10**300 else None
        if value is None:
            raise _no_condition("numbers between -1e300 and 1e300", "a larger one")
        return value

    def _peek(self, kind: str) -> str | None:
        if self._place < len(self._tokens) and self._tokens[self._place][0] == kind:
            return self._tokens[self._place][1]
        return None

    def _take(self, kind: str) -> str | None:
        found = self._peek(kind)
        self._place += found is not None
        return found

    def _took(self, kind: str, text: str) -> bool:
        found = self._peek(kind)
        same = found is not None and found.lower() == text
        self._place += same
        return same

    def _need(self, kind: str, text: str) -> None:
        if not self._took(kind, text):
            raise _no_condition(f"`{text}`", self._here())

    def _here(self) -> str:
        if self._place >= len(self._tokens):
            return "the end of the condition"
        return f"{shown(self._tokens[self._place][1])} (word {self._place + 1})"


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise _no_condition("names, numbers, texts in quotes and signs", excerpt(text, place))
        found.append((match.lastgroup, match.group(match.lastgroup)))
        if len(found) > _MOST_TOKENS:
            raise _no_condition(f"at most {_MOST_TOKENS} words and signs", "more")
        place = match.end()
    return found


def _compare(column: str, sign: str, value: Label) -> Condition:
    if sign in _ORDERS:
        if isinstance(value, str):
            raise _no_condition(
                f"a number after {sign}: texts have no order here", f"a text beside {column!r}"
            )
        return Compared(column, sign, value)
    among = _one_of(column, (value,))
    return among if sign == "==" else Not(among)


def _one_of(column: str, labels: tuple[Label, ...]) -> Among:
    listed = tuple(dict.fromkeys(checked_label(label, "where") for label in labels))
    pair = first_confusable(listed)
    if pair is not None:
        raise _no_condition("labels that differ as text and as numbers", f"{pair[0]!r} and {pair[1]!r}")
    return Among(column, listed)


@dataclass(frozen=True, slots=True)
class Where:
    """A condition that was read: its text in one form, and the columns it looks at."""

    text: str
    condition: Condition = field(compare=False)

    @classmethod
    def of(cls, text: object) -> Where:
        """Return the condition in a text, or raise CV-S121."""
        if isinstance(text, Where):
            return text
        found = read_condition(text)
        return cls(found.text(), found)

    @classmethod
    def declared(
        cls, where: object, others: object, treatment: str, labels: tuple[Label, ...]
    ) -> Where | None:
        """Return the condition of a study, that of its declared arms included; raises CV-S121 and CV-S122."""
        found = None if where is None else cls.of(where)
        if others is None:
            return found
        if others != "drop" or len(labels) < 2:
            raise refusal("CV-S122", others=others, labels=len(labels))
        arms = Among(treatment, labels)
        only = cls(arms.text(), arms)
        return only if found is None else found.both(only)

    def both(self, other: Where | None) -> Where:
        """Return the condition that holds where this one and the other do."""
        if other is None or other == self:
            return self
        parts: list[Condition] = []
        for each in (self.condition, other.condition):
            parts += each.parts if isinstance(each, Joined) and each.word == "and" else [each]
        joined = Joined("and", tuple(dict.fromkeys(parts)))
        return Where(joined.text(), joined)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it looks at, in the order in which they appear."""
        return tuple(dict.fromkeys(_columns(self.condition)))

    def holds(self, columns: Mapping[str, Column]) -> Mask:
        """Return for which rows the condition is true; texts where numbers are compared raise CV-D002."""
        return _judge(self.condition, columns)[0]


def only_subset(columns: dict[str, Column], where: Where | None) -> dict[str, Column]:
    """Return the columns without the rows for which the condition does not hold."""
    if where is None:
        return columns
    kept = where.holds(columns)
    return {name: column.keep(kept) for name, column in columns.items()}


def _judge(condition: Condition, columns: Mapping[str, Column]) -> tuple[Mask, Mask]:
    """Return for every row whether a condition is true and whether it is false; unknown where it is neither."""
    if isinstance(condition, Not):
        true, false = _judge(condition.part, columns)
        return false, true
    if isinstance(condition, Joined):
        judged = [_judge(part, columns) for part in condition.parts]
        trues, falses = [each[0] for each in judged], [each[1] for each in judged]
        if condition.word == "and":
            return np.logical_and.reduce(trues), np.logical_or.reduce(falses)
        return np.logical_or.reduce(trues), np.logical_and.reduce(falses)
    column = columns[condition.column]
    is_missing = encoding.gaps(column)
    if isinstance(condition, Missing):
        return is_missing, ~is_missing
    if isinstance(condition, Among):
        held = encoding.codes(column, is_missing, index_of(condition.labels), None) >= 0
    else:
        assert isinstance(condition, Compared)
        held = _compared(encoding.numbers(column, is_missing, 0.0, condition.column), condition)
    return held & ~is_missing, ~held & ~is_missing


def _compared(values: Floats, condition: Compared) -> Mask:
    # The number is read as a double, as the cells are: 0.1 in a file is the 0.1 of the condition.
    number = float(condition.number)
    if condition.sign in ("<", "<="):
        return np.asarray(values < number if condition.sign == "<" else values <= number)
    return np.asarray(values > number if condition.sign == ">" else values >= number)


def _columns(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Not):
        yield from _columns(condition.part)
    elif isinstance(condition, Joined):
        for part in condition.parts:
            yield from _columns(part)
    else:
        yield condition.column


def _no_condition(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S121", expected=expected, got=got)
