"""Parts of a study: subsets of rows, persons, changes and several outcomes, times to an event.

A condition on rows, read and applied without evaluating code, is made of comparisons joined by `and`, `or` and `not`:

    age >= 18 and site in ['A', 'B']
    18 <= age < 65 and not (arm == 'open label')
    `visit date` is not missing

Each row is judged by itself. As in SQL, a comparison with a missing value is unknown, and rows for which the whole
condition is unknown are left out. Proof of what that does to a guarantee: `where.proof.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data import domains as encoding
from counterveil.data.cells import Column, Mask
from counterveil.data.domains import (
    Bounds,
    Label,
    Range,
    checked_label,
    ends_of,
    first_confusable,
    index_of,
    interval,
    is_name,
    listed,
    number_of,
    plain_ends,
    plain_number,
)
from counterveil.errors import CounterveilError, ParameterError, excerpt, refusal, shown
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy import Unit, exact, show

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
    hole = encoding.gaps(column)
    if isinstance(condition, Missing):
        return hole, ~hole
    if isinstance(condition, Among):
        held = encoding.codes(column, hole, index_of(condition.labels), None) >= 0
    else:
        assert isinstance(condition, Compared)
        held = _compared(encoding.numbers(column, hole, 0.0, condition.column), condition)
    return held & ~hole, ~held & ~hole


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


# Whose a row is: repeated rows of a person, and clusters of people whose outcomes depend on each other.
#
# Where people have several rows, or whole clusters are protected, the unit of the guarantee is a person or a cluster
# with all its rows; `people.py` makes one row of them.


# Proof: person.proof.md


# Rules that need to know which row comes first.
_ORDERED = ("first", "last")


@dataclass(frozen=True, slots=True)
class Role:
    """The rules by which rows may become one value of a column, and the one that holds unless another is named.

    Without such a one the column does not vary within a person. People of a cluster differ: the mean of their numbers
    stands for it.
    """

    allowed: tuple[str, ...]
    usual: str | None = None

    def rule(self, order: str | None, whole_cluster: bool) -> str:
        """Return the rule of a column for which a study names none."""
        if whole_cluster and "mean" in self.allowed:
            return self.usual or "mean"
        return self.usual or ("constant" if order is None else "first")


_OUTCOME = ("mean", "sum", "max", "min", "any", "first", "last", "constant")
TREATMENT = Role(("constant", "first", "last", "ever"), "constant")
ONE_OF_ARMS = Role(TREATMENT.allowed[:-1], "constant")
OUTCOME, EARLIER = Role(_OUTCOME, "mean"), Role(_OUTCOME)
# A ratio is one of sums. Of a person's follow-up the end counts, and whether the event happened in it.
PART_OF_RATIO, FOLLOW_UP = Role(_OUTCOME, "sum"), Role(_OUTCOME, "max")
NUMBER, LABELS = (
    Role(("constant", "first", "last", "mean", "max", "min")),
    Role(("constant", "first", "last")),
)


@dataclass(frozen=True, slots=True)
class Person:
    """Which rows belong to one person, and by which rule each column of theirs becomes one value.

    Attributes:
        column: the column that identifies a person.
        rules: the rule of every column of the study, by its name.
        order: the column that puts a person's rows in order; None where no rule needs one.
        max_rows_per_person: only a person's first rows count, so many of them; None for all.
        whole_cluster: whether it is a cluster of people whose rows become one.
    """

    column: str
    rules: Mapping[str, str]
    order: str | None = None
    max_rows_per_person: int | None = None
    whole_cluster: bool = False

    @classmethod
    def declared(
        cls,
        column: object,
        rules: object,
        order: object,
        max_rows_per_person: object,
        roles: Mapping[str, Role],
        whole_cluster: bool = False,
    ) -> Person | None:
        """Return the declaration, or None where no column identifies a person; raises CV-S016 for one that is invalid.

        `roles` are those of a study's columns. With `whole_cluster` the column names clusters, whose rows become one.
        """
        if column is None:
            if (rules, order, max_rows_per_person) != (None, None, None):
                raise _no_person("person= beside per_person=, order= and max_rows_per_person=", "no person")
            return None
        for name in (column, order):
            if name is not None and (not is_name(name) or name in roles):
                raise _no_person("the name of a column without another role", shown(name))
        if column == order:
            raise _no_person("two different columns as person and order", shown(order))
        if max_rows_per_person is not None:
            if (
                not isinstance(max_rows_per_person, int)
                or isinstance(max_rows_per_person, bool)
                or max_rows_per_person < 1
            ):
                raise _no_person("max_rows_per_person=: a whole number from 1 on", shown(max_rows_per_person))
            if order is None:
                fix = "name the column that says which rows come first"
                raise refusal(
                    "CV-S016b", expected="an order beside max_rows_per_person=", got="no order", fix=fix
                )
        assert isinstance(column, str)
        assert order is None or isinstance(order, str)
        found = _rules(roles, rules, order, whole_cluster)
        return cls(column, found, order, max_rows_per_person, whole_cluster)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read besides those of the study."""
        return (self.column,) if self.order is None else (self.column, self.order)

    def to_dict(self, roles: Mapping[str, Role], time: str | None) -> dict[str, Any]:
        """Return the declaration as it stands in a study file; rules that hold by default are left out.

        `time` is the column of a study's periods, which orders rows by itself.
        """
        found: dict[str, Any] = {"column": self.column}
        if self.order is not None and time is None:
            found["order"] = self.order
        if self.max_rows_per_person is not None:
            found["max_rows_per_person"] = self.max_rows_per_person
        rules = {
            name: rule
            for name, rule in self.rules.items()
            if rule != roles[name].rule(self.order, self.whole_cluster)
        }
        return found | ({"rules": rules} if rules else {})

    def public_facts(self, unit: Unit) -> list[str]:
        """Return what is public of people, or clusters, whose rows become one."""
        several, one = ("clusters", "cluster") if self.whole_cluster else ("people", "person")
        by_rule: dict[str, list[str]] = {}
        for name, rule in self.rules.items():
            by_rule.setdefault(rule, []).append(repr(name))
        said = "; ".join(f"{rule} of {listed(names)}" for rule, names in by_rule.items())
        said += "" if self.order is None else f", in the order of {self.order!r}"
        said += (
            ""
            if self.max_rows_per_person is None
            else f", over the first {self.max_rows_per_person} rows of a {one}"
        )
        facts = [
            f"the number of {several}, by {self.column!r}, and the order of what identifies them",
            f"how the rows of a {one} become one: {said}",
        ]
        return [*facts, f"how many rows each {one} has, and their order"] if unit.covariates_public else facts


def _rules(
    roles: Mapping[str, Role], given: object, order: str | None, whole_cluster: bool
) -> dict[str, str]:
    if given is not None and not isinstance(given, Mapping):
        name = "per_cluster" if whole_cluster else "per_person"
        raise _no_person(f"{name}=: a rule for each column", shown(given))
    rules = {name: role.rule(order, whole_cluster) for name, role in roles.items()}
    for name, rule in (given or {}).items():
        allowed = roles[name].allowed if name in roles else ()
        if rule not in allowed:
            what = f"{name!r}: one of {', '.join(allowed)}" if allowed else "rules for columns of the study"
            raise _no_person(what, f"{shown(name)}: {shown(rule)}")
        if rule in _ORDERED and order is None:
            fix = "name the column that puts a person's rows in order: order=..."
            raise refusal(
                "CV-S016b",
                expected="an order beside 'first' and 'last'",
                got=f"{shown(name)}: {shown(rule)}",
                fix=fix,
            )
        rules[name] = rule
    return rules


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which rows belong to one cluster (a school, a clinic, a village), and what is protected.

    Attributes:
        column: the column that names the cluster of a row.
        whole: whether a cluster with all its rows is protected, and reduced to one row; else each row, or person, is.
        assigned: whether whole clusters were assigned to the arms, and which was assigned to which is public.
    """

    column: str
    whole: bool = False
    assigned: bool = False

    @classmethod
    def declared(
        cls,
        column: object,
        whole: object,
        assigned: object,
        rules: object,
        person: object,
        columns: tuple[str, ...],
    ) -> Cluster | None:
        """Return the declaration, or None where no column names clusters; raises CV-S025 for one that is invalid."""
        if column is None:
            if rules is not None or whole is not False or assigned is not False:
                beside = "cluster= beside protects_cluster=, assigned_by_cluster= and per_cluster="
                raise _no_cluster(beside, "no cluster")
            return None
        if not is_name(column) or column in (*columns, person):
            raise _no_cluster("the name of a column without another role", shown(column))
        for name, flag in (("protects_cluster", whole), ("assigned_by_cluster", assigned)):
            if not isinstance(flag, bool):
                raise _no_cluster(f"{name}=True or False", shown(flag))
        if whole and person is not None:
            alone = "protects_cluster=True without person=: all rows of a cluster become one"
            raise _no_cluster(alone, f"person={shown(person)}")
        if not whole and rules is not None:
            beside = "per_cluster= with protects_cluster=True, where the rows of a cluster become one"
            raise _no_cluster(beside, shown(rules))
        return cls(column, bool(whole), bool(assigned))

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file, without how rows of a whole cluster become one."""
        flags = {"protected": self.whole, "assigned": self.assigned}
        return {"column": self.column} | {name: True for name, flag in flags.items() if flag}

    def public_fact(self, unit: Unit) -> str:
        """Return what is public about clusters of protected people."""
        if unit.covariates_public:
            return f"which cluster everyone is in, by {self.column!r}"
        arms = ", and which arm each of them was assigned to" if self.assigned else ""
        return (
            f"the clusters that there are, by {self.column!r}{arms}: who is in which is protected, and the guarantee "
            "compares data sets with the same clusters"
        )


# Words that end the names of columns which identify people; names are public, and no row is looked at.
_IDENTIFIERS = re.compile(
    r"(?:^|[_.\- ])(?:id|uid|uuid|guid|mrn|ssn|nhs|pid|patient|person|subject|participant|customer|user|worker|student"
    r"|household|member|account|visitor)(?:[_.\- ]?(?:id|no|nr|num|number|key|code))?$"
    r"|(?:^|[_.\- ])(?:pt|pat|subj|study|case|rec|record|hosp|emp)id$",
    re.IGNORECASE,
)


def identifiers(names: Iterable[str]) -> list[str]:
    """Return the names of columns that look as if they identified people."""
    # In camel case words are told apart by their capitals: patientId.
    return [name for name in names if _IDENTIFIERS.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))]


# Outcomes that are made of several private numbers: the change since before, a sum over a sum, several outcomes.
#
# Where a study names what was measured before treatment, everyone's outcome is their own change, so that an effect on
# outcomes is a difference in differences (Heckman, Ichimura and Todd 1997; Abadie 2005). Where it names a
# denominator, the outcome is its numerator, and arms are compared by sums over sums. Everyone may have several
# outcomes, each with its own range. Proof: `outcomes.proof.md`.


MOST_OUTCOMES = 1000


@dataclass(frozen=True, slots=True)
class Before:
    """What outcomes are compared with: columns of the same row, or a person's rows in earlier periods.

    Attributes:
        columns: columns that were measured before treatment, in their order; none where rows lie in periods.
        time: the column that holds a row's period; None where a row holds both measurements.
        periods, after: periods before treatment and after it, in their order.
        outcome_range: of the outcome itself, as declared.
        range: of what was measured before.
        change: of the difference where a narrower one is declared, else None.
    """

    columns: tuple[str, ...]
    time: str | None
    periods: tuple[Label, ...]
    after: tuple[Label, ...]
    outcome_range: Bounds
    range: Bounds
    change: Bounds | None

    KEYS: ClassVar = ("before", "before_range", "change_range", "time", "after")

    @classmethod
    def declared(
        cls,
        before: object,
        before_range: object,
        change_range: object,
        time: object,
        after: object,
        person: object,
        own: Bounds,
    ) -> Before | None:
        """Return the declaration, None where nothing was measured before; raises CV-S018 for one that is invalid.

        `own` is the range of the outcome.
        """
        if before is None:
            given = zip(cls.KEYS, (None, before_range, change_range, time, after), strict=True)
            beside = [name for name, value in given if value is not None]
            if beside:
                raise _no_change(f"before= beside {', '.join(beside)}", "no before=")
            return None
        columns: tuple[str, ...] = ()
        periods: tuple[tuple[Label, ...], tuple[Label, ...]] = ((), ())
        if time is not None:
            periods = _periods(time, before, after, person)
        elif after is not None:
            raise _no_change("time= beside after=", "no time=")
        else:
            columns = _outcomes_columns(before)
        earlier = own
        if before_range is not None:
            earlier = _ends(before_range, "before_range", "what was measured before")
        found = cls(columns, None if time is None else str(time), *periods, own, earlier, None)
        if change_range is None:
            return found
        change = _ends(change_range, "change_range", "the change")
        if change[0] < found.bounds[0] or change[1] > found.bounds[1]:
            low, high = plain_ends(found.bounds)
            raise _no_change(f"change_range= inside [{low}, {high}]", shown(change_range))
        return replace(found, change=change)

    @property
    def bounds(self) -> Bounds:
        """The range of the change: as declared, else what both ranges leave possible."""
        (low, high), (least, most) = self.outcome_range, self.range
        return (low - most, high - least) if self.change is None else self.change

    @property
    def levels(self) -> Bounds:
        """The range of every measurement, before and after."""
        (low, high), (least, most) = self.outcome_range, self.range
        return min(low, least), max(high, most)

    def labels(self, outcome: str) -> tuple[Label, ...]:
        """Return what the measurements are called, in the order of time: periods, or columns."""
        return (*self.columns, outcome) if self.time is None else (*self.periods, *self.after)

    @property
    def earlier(self) -> int:
        """How many measurements were before treatment."""
        return len(self.columns) or len(self.periods)

    @property
    def subsets(self) -> tuple[str, ...]:
        """What periods choose, in words: people with rows in each of them."""
        if self.time is None:
            return ()
        return (f"{self.time} is each of {[*self.periods, *self.after]}",)

    def since(self) -> str:
        """Return what outcomes are compared with, in few words."""
        if self.time is None:
            return " and ".join(self.columns)
        first, last = self.periods[0], self.periods[-1]
        return f"{self.time} {first}" if len(self.periods) == 1 else f"{self.time} {first} to {last}"

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        if self.time is None:
            found: dict[str, Any] = {
                "before": self.columns[0] if len(self.columns) == 1 else list(self.columns)
            }
        else:
            found = {"time": self.time, "before": list(self.periods), "after": list(self.after)}
        if self.range != self.outcome_range:
            found["before_range"] = plain_ends(self.range)
        if self.change is not None:
            found["change_range"] = plain_ends(self.change)
        return found

    def public_fact(self, outcome: str, rule: str | None, reference: Label | None) -> str:
        """Return how changes are made of what was measured before and after, by the rule for a person's rows.

        Those of an event study are since the period that is its `reference`.
        """
        of = f"{'' if rule is None else f'{rule} '}{outcome!r}"
        if reference is not None:
            write = str if self.time is not None else repr
            others = listed([write(each) for each in self.labels(outcome) if write(each) != write(reference)])
            others = others if self.time is None else f"{of} at {self.time!r} {others}"
            clamped = "" if self.change is None else f", clamped to {interval(self.bounds)}"
            return f"that the outcomes analysed are {others}, each minus that of {write(reference)}{clamped}"
        if self.time is not None:
            since = f"{of} over {self.time!r} {listed([str(each) for each in self.periods])}"
            after = f"{of} over {listed([str(each) for each in self.after])}"
        else:
            mean = "the mean of " if len(self.columns) > 1 else ""
            since, after = f"{mean}{listed([repr(name) for name in self.columns])}", repr(outcome)
        return f"that the outcome analysed is {after} minus {since}, clamped to {interval(self.bounds)}"


@dataclass(frozen=True, slots=True)
class Denominator:
    """The denominator of a ratio: its column and its range."""

    column: str
    range: Bounds

    KEYS: ClassVar = ("denominator", "denominator_range")

    @classmethod
    def declared(
        cls, denominator: object, denominator_range: object, two_arms: bool, before: Before | None
    ) -> Denominator | None:
        """Return the declared denominator, or None where there is none; raises CV-S019 for one that is invalid."""
        if denominator is None and denominator_range is None:
            return None
        if not is_name(denominator):
            raise _no_ratio("denominator=: the column of the denominator", shown(denominator))
        known = "denominator_range=(lowest, highest), known without looking at the data"
        ends = ends_of(
            denominator_range,
            f"denominator {denominator!r}",
            lambda: _no_ratio(known, shown(denominator_range)),
        )
        if ends[0] < 0:
            raise _no_ratio(
                "a denominator that is never negative", f"denominator_range={shown(denominator_range)}"
            )
        if not two_arms or before is not None:
            raise _no_ratio("a ratio of two arms without before=", "several arms, or before=")
        return cls(denominator, ends)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        return {"denominator": self.column, "denominator_range": plain_ends(self.range)}


def _outcomes_columns(before: object) -> tuple[str, ...]:
    names = (before,) if isinstance(before, str) else before
    if not isinstance(names, tuple | list) or not names or not all(map(is_name, names)):
        raise _no_change("before=: a column, or several in the order of time", shown(before))
    return tuple(names)


def _periods(
    time: object, before: object, after: object, person: object
) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    if not is_name(time):
        raise _no_change("time=: the column that holds a row's period", shown(time))
    if person is None:
        raise _no_change("person= beside time=: whose rows are compared", "no person=")
    if after is None:
        raise _no_change("after=: the periods after treatment, as before= lists those before", "none")
    sides = tuple(
        tuple(
            checked_label(label, "period") for label in (side if isinstance(side, tuple | list) else [side])
        )
        for side in (before, after)
    )
    every = (*sides[0], *sides[1])
    if not sides[0] or not sides[1] or first_confusable(every) is not None:
        raise _no_change("different periods in before= and after=", f"{shown(before)}, {shown(after)}")
    return sides[0], sides[1]


def _ends(given: object, argument: str, what: str) -> Bounds:
    return ends_of(
        given,
        what,
        lambda: _no_change(f"{argument}=(lowest, highest)", shown(given)),
    )


@dataclass(frozen=True, slots=True)
class Several:
    """The outcomes of a study, the primary one first, and for some of them the column of the same number before."""

    ranges: tuple[tuple[str, Bounds], ...]
    baseline: tuple[tuple[str, str], ...] = ()

    KEYS: ClassVar = ("outcomes", "baseline")

    @classmethod
    def declared(
        cls, outcomes: object, baseline: object, several: object, alone: Mapping[str, object]
    ) -> Several | None:
        """Return the declared outcomes, None where the study has one; raises CV-S140 for what is invalid.

        `alone` is what a study of one outcome declares of it.
        """
        if isinstance(several, cls) and outcomes is None and alone["outcome"] == several.names[0]:
            # As `dataclasses.replace` hands it on, with the first outcome beside it.
            return several
        if outcomes is None:
            if baseline is not None:
                raise _no_outcomes("outcomes= beside baseline=", "no outcomes=")
            return None
        beside = [name for name, value in alone.items() if value is not None]
        if beside:
            expected = "outcomes= alone: it names and bounds all outcomes"
            raise _no_outcomes(expected, f"{beside[0]}= beside it")
        if not isinstance(outcomes, Mapping) or not 2 <= len(outcomes) <= MOST_OUTCOMES:
            expected = "outcomes=: two or more columns with their ranges, the primary first"
            raise _no_outcomes(expected, shown(outcomes))
        ranges = tuple((_named(name), _range_of(name, ends)) for name, ends in outcomes.items())
        return cls(ranges, _baseline(baseline, dict(ranges)))

    @property
    def names(self) -> tuple[str, ...]:
        """The outcomes, the primary one first."""
        return tuple(name for name, _ in self.ranges)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that outcomes are made of: the outcomes, then what was measured before."""
        return (*self.names, *(column for _, column in self.baseline))

    def bounds(self, column: str) -> Range:
        """Return the range of an outcome, or of what was measured of it before, which is the same."""
        of = dict(self.ranges)
        outcome = next((name for name, before in self.baseline if before == column), column)
        return Range(*of[outcome])

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        found: dict[str, Any] = {"outcomes": {name: plain_ends(ends) for name, ends in self.ranges}}
        return found | ({"baseline": dict(self.baseline)} if self.baseline else {})


def _named(name: object) -> str:
    if is_name(name):
        return name
    raise _no_outcomes("names of columns", shown(name))


def _range_of(name: object, ends: object) -> Bounds:
    known = f"(lowest, highest) of {shown(name)}, known without looking at the data"
    return ends_of(
        ends,
        f"outcome {name!r}",
        lambda: _no_outcomes(known, shown(ends)),
    )


def _baseline(baseline: object, ranges: Mapping[str, Bounds]) -> tuple[tuple[str, str], ...]:
    given = {} if baseline is None else baseline
    fix = 'for example baseline={"visits": "visits_last_month"}'
    if not isinstance(given, Mapping):
        raise refusal(
            "CV-S140b",
            expected="baseline=: for outcomes, the column of the same number before treatment",
            got=shown(given),
            fix=fix,
        )
    for outcome, column in given.items():
        if outcome not in ranges or not is_name(column):
            got = f"{shown(outcome)}: {shown(column)}"
            raise refusal(
                "CV-S140b",
                expected="baseline=: outcomes of the study, and a column for each",
                got=got,
                fix=fix,
            )
    # In the order of the outcomes, so that equal declarations are equal.
    return tuple((name, given[name]) for name in ranges if name in given)


def earlier_name(outcome: str) -> str:
    """Return the name of the column, made of a person's rows, of their outcome before treatment; no source has it."""
    return f"{outcome}\nbefore"


def level_name(outcome: str, place: int) -> str:
    """Return the same for the outcome in a period, by its place."""
    return f"{outcome}\n{place}"


# Outcomes that are times until an event, or until people were lost from sight: a public grid of time cells.
#
# The outcome is the time of follow-up, and another column says whether it ended with the event, or with which of
# several competing ones. Both are private. A row becomes one entry of a table of J cells: the event of a cause in a
# cell, censored in a cell, or followed to the horizon. Proof: `outcomes.proof.md`.


# Cells of a grid that is not declared, and the most there may be: noise grows with their number.
USUAL_CELLS, MOST_CELLS = 8, 200
# Equal parts of a cell by which rows are told apart; a release counts by these or by larger parts.
PARTS = 16
# Competing events that there may be.
MOST_CAUSES = 9


@dataclass(frozen=True, slots=True)
class TimeToEvent:
    """The column that says whether the event happened, and the ends of the time cells; the last is the horizon.

    With `causes`, the column holds 0, or the place of the cause among them: 1 for the first.
    """

    column: str
    grid: tuple[Fraction, ...]
    causes: tuple[str, ...] = ()

    KEYS: ClassVar = ("event", "horizon", "grid", "causes")

    @classmethod
    def declared(
        cls, event: object, horizon: object, grid: object, causes: object, others: Mapping[str, object]
    ) -> TimeToEvent | None:
        """Return the declaration, None where outcomes are no times to an event; raises CV-S090 for an invalid one.

        `others` are declarations that do not go with it.
        """
        if event is None:
            given = zip(cls.KEYS[1:], (horizon, grid, causes), strict=True)
            beside = [name for name, value in given if value is not None]
            if beside:
                raise _no_event(f"event= beside {' and '.join(beside)}", "no event=")
            return None
        if not is_name(event):
            expected = "event=: the column that is 1 where the event happened and 0 where not"
            raise _no_event(expected, shown(event))
        for name, value in others.items():
            if value is not None:
                raise _no_event(
                    f"a study of two arms with event= and without {name}", f"{name}={shown(value)}"
                )
        return cls(event, _grid(horizon, grid), _causes(causes))

    @property
    def horizon(self) -> Fraction:
        """The end of the last cell: what happens later is not looked at."""
        return self.grid[-1]

    @property
    def cells(self) -> int:
        """The number of time cells."""
        return len(self.grid)

    @property
    def entries(self) -> int:
        """The number of entries of a table: events by cause and cell, censorings by cell, followed to the horizon."""
        return (self.kinds + 1) * self.cells + 1

    @property
    def kinds(self) -> int:
        """The number of causes; 1 where there is one event."""
        return max(len(self.causes), 1)

    @property
    def edges(self) -> tuple[float, ...]:
        """Time 0 and the ends of all cells."""
        return (0.0, *map(float, self.grid))

    def cut(self, parts: int) -> TimeToEvent:
        """Return the declaration with every cell cut into so many equal parts."""
        return _cut(self, parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        found: dict[str, Any] = {"event": self.column}
        if self.grid == _even(self.horizon, self.cells):
            found |= {"horizon": plain_number(self.horizon), "grid": self.cells}
        else:
            found |= {"grid": [plain_number(end) for end in self.grid]}
        return found | ({"causes": list(self.causes)} if self.causes else {})

    def public_fact(self, outcome: str) -> str:
        """Return what is public of the times: the grid on which they are looked at."""
        ends = listed([show(end) for end in self.grid])
        return (
            f"the time cells of {outcome!r}, which end at {ends}: stated beforehand; of a row only its cell counts, "
            f"or which of up to {PARTS} equal parts of the cell it lies in, "
            f"whether {self.column!r} is {' or '.join(str(k + 1) for k in range(self.kinds))} there, "
            f"or that it was followed to {show(self.horizon)}"
        )


@lru_cache(maxsize=32)
def _cut(declared: TimeToEvent, parts: int) -> TimeToEvent:
    ends = (Fraction(0), *declared.grid)
    grid = (
        early + (late - early) * Fraction(part, parts)
        for early, late in pairwise(ends)
        for part in range(1, parts + 1)
    )
    return TimeToEvent(declared.column, tuple(grid), declared.causes)


@lru_cache(maxsize=32)
def joined_entries(cells: int, parts: int, kinds: int = 1) -> Integers:
    """Return for every entry of a table by `PARTS` of cells that of the table by so many parts, a divisor of them."""
    place = np.arange(cells * PARTS) * parts // PARTS
    series = [kind * cells * parts + place for kind in range(kinds + 1)]
    found = np.concatenate([*series, [(kinds + 1) * cells * parts]])
    found.setflags(write=False)
    return found


def shared_entries(fine: NDArray[Any], cells: int, parts: int, kinds: int, ends: bool) -> NDArray[Any]:
    """Return tables (B, M) by so many parts of cells, in units of 1 / (2 PARTS), of tables by `PARTS` of cells.

    Someone censored after a part u of a cell counts as u at its end and as 1 - u at its beginning, so that exposure in
    every cell is kept; the last end is the horizon. With `ends`, as one who is censored in that cell.
    """
    joined, later = joined_entries(cells, parts, kinds), np.zeros(fine.shape[1], dtype=np.int64)
    if not ends:
        each = PARTS // parts
        later[-1 - cells * PARTS : -1] = (2 * (np.arange(cells * PARTS) % each) + 1) * parts
    found = np.zeros((joined[-1] + 1, len(fine)), dtype=fine.dtype)
    np.add.at(found, joined, (fine * (2 * PARTS - later)).T)
    np.add.at(found, np.minimum(joined + 1, joined[-1]), (fine * later).T)
    return found.T


def _grid(horizon: object, grid: object) -> tuple[Fraction, ...]:
    end = None if horizon is None else _time(horizon, "horizon")
    if grid is None or (isinstance(grid, int) and not isinstance(grid, bool)):
        cells = USUAL_CELLS if grid is None else grid
        if end is None:
            raise _no_event("horizon= beside a number of cells", "no horizon=")
        if not 1 <= cells <= MOST_CELLS:
            raise _no_event(f"1 to {MOST_CELLS} cells", f"grid={shown(grid)}")
        return _even(end, cells)
    if not isinstance(grid, tuple | list) or not 1 <= len(grid) <= MOST_CELLS:
        raise _no_event(f"grid=: the ends of 1 to {MOST_CELLS} cells, or their number", f"grid={shown(grid)}")
    found = tuple(_time(one, "grid") for one in grid)
    if any(later <= earlier for earlier, later in pairwise(found)):
        raise _no_event("grid=: times that rise", f"grid={shown(grid)}")
    if end is not None and end != found[-1]:
        raise _no_event("the last time of grid= as the horizon, or no horizon=", f"horizon={shown(horizon)}")
    return found


def _causes(causes: object) -> tuple[str, ...]:
    if causes is None:
        return ()
    named = tuple(causes) if isinstance(causes, tuple | list) else ()
    if not (all(map(is_name, named)) and 2 <= len(named) == len(set(named)) <= MOST_CAUSES):
        expected = f"causes=: 2 to {MOST_CAUSES} different names, of 1, 2, ... in the column of events"
        raise _no_event(expected, f"causes={shown(causes)}")
    return named


def _even(horizon: Fraction, cells: int) -> tuple[Fraction, ...]:
    """Return the ends of so many cells of one length, whole numbers where the horizon is one and has so many."""
    ends = (horizon * Fraction(place, cells) for place in range(1, cells + 1))
    return tuple(map(Fraction, map(round, ends) if horizon.denominator == 1 and horizon >= cells else ends))


def _time(value: object, name: str) -> Fraction:
    try:
        found = exact(value, name)  # type: ignore[arg-type]
    except ParameterError:
        found = Fraction(0)
    if found <= 0:
        raise _no_event(f"{name}=: times above 0", shown(value))
    return found


# Proof: outcomes.proof.md
def entries(times: Floats, events: Floats, declared: TimeToEvent) -> Integers:
    """Return the entry of every row of a table of J cells and K causes.

    It is (k - 1) J plus its cell for an event of cause k, K J plus its cell where it was censored, else (K + 1) J.

    Cells hold their right end. Whoever was followed beyond the horizon, or to it without the event, has no cell.
    """
    cells, kinds = declared.cells, declared.kinds
    place = np.searchsorted(np.array(declared.edges[1:]), times, side="left")
    happened = events > 0
    last = (place >= cells) | (~happened & (times >= declared.edges[-1]))
    found = place + cells * np.where(happened, np.clip(events, 1, kinds) - 1, kinds)
    return np.where(last, (kinds + 1) * cells, found).astype(np.int64)


def wrong_events(events: Floats, kinds: int) -> bool:
    """Return whether a column of events holds anything but 0 and the numbers of its causes."""
    return not np.isin(events, np.arange(kinds + 1)).all()


def refuse_censored(event: TimeToEvent | None, question: str) -> None:
    """Raise CV-S091 where a question about outcomes is asked of times to an event, or the other way round."""
    if (event is not None) == (question == "survival"):
        return
    if event is None:
        raise refusal("CV-S091b")
    raise refusal("CV-S091", event=event.column)


def _no_ratio(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S019", expected=expected, got=got)


def _no_change(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S018", expected=expected, got=got)


def _no_person(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S016", expected=expected, got=got)


def _no_condition(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S121", expected=expected, got=got)


def _no_cluster(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S025", expected=expected, got=got)


def _no_event(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S090", expected=expected, got=got)


def _no_outcomes(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S140", expected=expected, got=got)
