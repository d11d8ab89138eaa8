"""The page of what answers say of themselves: every value with its words, once."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, get_args, get_origin, get_type_hints

from counterveil.privacy.caveats import FIELDS, AtSites, Detail, Fact
from counterveil.report.caveats import fact_words

_TEXT = """# Values of a result

Written by `python -m tools.reference`. What an answer such as [`cv.results.Result`](api.md) says of itself. Numbers in
the words are examples. Of pooled results `AtSites` holds what each site says.
"""
_TITLES = {
    "not_covered": "What intervals do not cover",
    "interval_target": "What an interval is for, where not for the effect",
    "condition": "What an unadjusted interval depends on",
    "assumptions": "Which models must be right",
    "population": "Who was kept",
}


def caveats_page() -> str:
    """Return the page."""
    return "\n".join([_TEXT, *(line for role in FIELDS for line in _section(role))])


def _section(role: str) -> Iterator[str]:
    yield from (f"## `{role}`: {_TITLES[role].lower()}", "", "| value | words |", "|---|---|")
    for fact in examples(role):
        name = str(fact) if isinstance(fact, StrEnum) else type(fact).__name__
        yield f"| `{name}` | {fact_words(fact)} |"
    yield ""


def examples(role: str) -> list[Fact]:
    """Return every member of the field's enumerations, and one object of each of its dataclasses."""
    found: list[Fact] = []
    for kind in FIELDS[role]:
        if issubclass(kind, StrEnum):
            found += list(kind)
        elif kind is not AtSites:
            found.append(_example(kind))
    return found


def _example(kind: type[Detail]) -> Detail:
    return kind(**{name: _value(name, hint) for name, hint in get_type_hints(kind).items()})


# A share with its interval, where a tuple of numbers is not a list of any length.
_SHARES = {"lower": (0.002, -0.006, 0.01), "upper": (0.062, 0.054, 0.07)}


def _value(name: str, hint: Any) -> Any:
    if name in _SHARES:
        return _SHARES[name]
    if get_origin(hint) is tuple:
        return (_value(name, get_args(hint)[0]),)
    plain = {float: 0.1, int: 100, bool: True, str: name}
    known = next((each for each in (get_args(hint) or (hint,)) if each is not type(None)), hint)
    return plain[known] if known in plain else next(iter(known))
