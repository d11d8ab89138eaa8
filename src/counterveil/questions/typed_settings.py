"""Settings of a method from words or plain values, as a command line and messages between sites carry them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from counterveil.bounded_reading import UnreadableError, parse_literal
from counterveil.errors import CounterveilError, refusal
from counterveil.questions.ate import METHODS


def settings_from_text(method: str, words: list[str]) -> Any:
    """Return the method's settings from words such as "neighbours=5", None where there are none."""
    wanted = METHODS[method].settings if method in METHODS else None
    if not words:
        return None
    kinds = {each.name: str(each.type) for each in fields(wanted)} if wanted is not None else {}
    values: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or wanted is None:
            listed = f"NAME=VALUE with one of {list(kinds)}"
            raise refusal(
                "CV-P020", expected=listed if kinds else f"no settings for method={method!r}", got=word
            )
        values[name] = _value(text, kinds.get(name, "").startswith("tuple"))
    return wanted(**values) if wanted is not None else None


def _value(text: str, several: bool) -> Any:
    """Return what a text means: a literal, names separated by commas where `several` are meant, or itself."""
    try:
        return parse_literal(text)
    except UnreadableError:
        return tuple(part.strip() for part in text.split(",")) if several else text


# Settings of a method from typed values, as messages carry them: no text is parsed.


_MOST = 1000  # entries of a list or a table


def settings_from_values(method: str, values: Mapping[str, Any], wanted: Any = ...) -> Any:
    """Return the method's settings from values by name, None where there are none, or raise CV-P020.

    `wanted` is the class of settings that the method takes, that of `ate` if it is omitted.

    Names must be those of the settings, and values of the types that they declare; lists stand for tuples. Learners
    that are objects cannot be named.
    """
    if not values:
        return None
    if wanted is ...:
        wanted = METHODS[method].settings if method in METHODS else None
    kinds = get_type_hints(wanted) if wanted is not None else {}
    names = [] if wanted is None else [each.name for each in fields(wanted)]
    known = {name: kinds[name] for name in names}
    if wanted is None or any(name not in known for name in values):
        raise _wrong(
            f"one of {list(known)}" if known else f"no settings for method={method!r}", "another name"
        )
    return wanted(**{name: _typed(name, value, known[name]) for name, value in values.items()})


def _typed(name: str, value: Any, kind: Any) -> Any:
    """Return the value as the type that is declared for it."""
    for option in _options(kind):
        found = _as(value, option)
        if found is not _NOTHING:
            return found
    raise _wrong(f"{name}: a value of the type that the method declares", f"a {type(value).__name__}")


_NOTHING = object()


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _as(value: Any, kind: Any) -> Any:
    """Return the value as one type without alternatives, or `_NOTHING`."""
    origin = get_origin(kind)
    if origin is tuple and isinstance(value, list | tuple) and len(value) <= _MOST:
        return _tuple(value, get_args(kind))
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return _table(value, get_args(kind))
    if kind in (None, NoneType):
        return None if value is None else _NOTHING
    if kind is bool or isinstance(value, bool):
        return value if kind is bool and isinstance(value, bool) else _NOTHING
    if kind is float and isinstance(value, int | float) and isfinite(value):
        return float(value) if isinstance(value, float) else value
    # Objects cannot travel, so where anything is allowed a name is meant.
    if (kind in (str, Any) and isinstance(value, str)) or (kind is int and isinstance(value, int)):
        return value
    return _NOTHING


def _tuple(values: Any, kinds: tuple[Any, ...]) -> Any:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(values)
    if len(kinds) != len(values):
        return _NOTHING
    found = []
    for value, kind in zip(values, kinds, strict=True):
        each = next(
            (got for option in _options(kind) if (got := _as(value, option)) is not _NOTHING), _NOTHING
        )
        if each is _NOTHING:
            return _NOTHING
        found.append(each)
    return tuple(found)


def _table(values: Mapping[Any, Any], kinds: tuple[Any, ...]) -> Any:
    pairs = [(_as(name, kinds[0]), _as(value, kinds[1])) for name, value in values.items()]
    wrong = len(pairs) > _MOST or any(_NOTHING in pair for pair in pairs)
    return _NOTHING if wrong else dict(pairs)


def _wrong(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P020", expected=expected, got=got)
