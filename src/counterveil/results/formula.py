"""Formulas of regressions: "y ~ treat + age + treat:age", and with instruments "y ~ age + [dose ~ offer]".

As in statsmodels and linearmodels: a constant is included unless "0" or "- 1" is among the terms, a*b stands for a, b
and a:b, and what is in brackets is explained by instruments. Names with other signs in them are quoted with backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterveil.errors import CounterveilError, excerpt, refusal, shown

_TOKEN = re.compile(r"`([^`]+)`|([~+*:\[\]-])|([^\s~+*:\[\]`-][^\s~+*:\[\]`]*)")
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class Formula:
    """What is regressed on what, by names of columns; `endogenous` are explained by `instruments`."""

    response: str
    regressors: tuple[str, ...]
    constant: bool = True
    endogenous: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()


def parse_formula(text: str, columns: Sequence[str], groups: dict[str, tuple[str, ...]]) -> Formula:
    """Return the formula in names of columns, or raise CV-P783; a name in `groups` stands for its columns."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise _unreadable(text, "a text with one ~")
    left, tilde, right = _outside_brackets(text)
    if not tilde:
        raise _unreadable(text, "no ~")
    response = _columns(left, columns, groups, text)
    if len(response) != 1:
        raise _unreadable(text, f"{len(response)} columns on the left of ~")
    plain, inside = _without_brackets(right, text)
    if any(not part.strip() for part in right.split("+")):
        raise _unreadable(text, "a side, or an end, without a column")
    constant, terms = _constant(plain)
    regressors = _columns(terms, columns, groups, text) if terms.strip() else ()
    endogenous: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()
    if inside is not None:
        one, between, two = inside.partition("~")
        if not between:
            raise _unreadable(text, "no ~ between the brackets")
        endogenous, instruments = (_columns(part, columns, groups, text) for part in (one, two))
        if len(instruments) < len(endogenous):
            raise _unreadable(text, f"{len(instruments)} instruments for {len(endogenous)} columns")
    used = (*response, *regressors, *endogenous, *instruments)
    if len(set(used)) < len(used):
        raise _unreadable(text, "a column that is named twice")
    if not regressors and not endogenous and not constant:
        raise _unreadable(text, "nothing on the right of ~")
    return Formula(response[0], regressors, constant, endogenous, instruments)


def _outside_brackets(text: str) -> tuple[str, str, str]:
    before = text.partition("[")[0]
    place = before.find("~")
    return (text, "", "") if place < 0 else (text[:place], "~", text[place + 1 :])


def _without_brackets(right: str, text: str) -> tuple[str, str | None]:
    """Return the terms outside brackets, and what is inside them, None where there are none."""
    if "[" not in right:
        return right, None
    before, _, rest = right.partition("[")
    inside, closed, after = rest.partition("]")
    if not closed or "[" in after:
        raise _unreadable(text, "brackets that do not match")
    return " + ".join(part.strip(" +") for part in (before, after) if part.strip(" +")), inside


def _constant(terms: str) -> tuple[bool, str]:
    """Return whether there is a constant, and the terms without what says so."""
    found = re.sub(r"-\s*1\b", "+ 0", terms)
    parts = [part.strip() for part in found.split("+")]
    return "0" not in parts, " + ".join(part for part in parts if part not in ("0", "1", ""))


def _columns(
    part: str, columns: Sequence[str], groups: dict[str, tuple[str, ...]], text: str
) -> tuple[str, ...]:
    """Return the columns that terms with + between them stand for."""
    found: list[str] = []
    for term in _terms(part, text):
        found += [name for name in _expanded(term, columns, groups) if name not in found]
    return tuple(found)


def _terms(part: str, text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names of every term, and the sign between them: nothing, ":" or "*"."""
    names: list[str] = []
    sign, wanted, place = "", True, 0
    stripped = part.strip()
    while place < len(stripped):
        match = _TOKEN.match(stripped, place)
        if match is None:
            raise _unreadable(text, excerpt(stripped, place))
        quoted, operator, name = match.groups()
        if operator is None:
            if not wanted:
                raise _unreadable(text, f"{shown(name or quoted)} without + before it")
            names, wanted = [*names, quoted or name], False
        elif wanted or operator not in "+:*" or (operator != "+" and len(names) == 2):
            raise _unreadable(text, f"{operator!r} where a column should be")
        else:
            wanted = True
            if operator == "+":
                yield names, sign
                names, sign = [], ""
            else:
                sign = operator
        place = match.end()
        place += len(stripped[place:]) - len(stripped[place:].lstrip())
    if wanted:
        raise _unreadable(text, "a side, or an end, without a column")
    yield names, sign


def _expanded(
    term: tuple[list[str], str], columns: Sequence[str], groups: dict[str, tuple[str, ...]]
) -> Iterator[str]:
    """Yield the columns of a term: one name, a product, or both names and their product."""
    names, sign = term
    lists = []
    for name in names:
        own = groups.get(name, (name,))
        if own[0] not in columns:
            raise _unknown(name, columns)
        lists.append(own)
    if sign != ":":
        for own in lists:
            yield from own
    if sign:
        for first in lists[0]:
            for second in lists[1]:
                yield _product(first, second, columns)


def _product(first: str, second: str, columns: Sequence[str]) -> str:
    for name in (f"{first}:{second}", f"{second}:{first}"):
        if name in columns:
            return name
    raise refusal(
        "CV-P782",
        columns=", ".join(map(repr, (name for name in columns if ":" in name))) or "no interactions",
        got=repr(f"{first}:{second}"),
        first=first + ":" + second,
    )


def _unknown(name: str, columns: Sequence[str]) -> CounterveilError:
    return refusal("CV-P784", columns=", ".join(map(repr, columns)), name=name)


def _unreadable(text: object, got: str) -> CounterveilError:
    return refusal("CV-P783", text=text, got=got)
