"""Settings of a method from text (command line) or JSON values (messages between sites), checked by their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from counterveil.bounded_reading import UnreadableError, parse_literal
from counterveil.errors import CounterveilError, refusal

MAX_ENTRIES = 1000  # of a list or a table


class _MismatchError(Exception):
    """A value does not have the declared type."""


def from_text(settings_class: Any, method: str, words: list[str]) -> Any:
    """Return settings from words such as "neighbours=5"; None if there are none. Raises CV-P020."""
    if not words:
        return None
    if settings_class is None:
        raise _invalid(f"no settings for method={method!r}", words[0])
    types = {field.name: str(field.type) for field in fields(settings_class)}
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise _invalid(f"NAME=VALUE with one of {list(types)}", word)
        values[name] = setting_value(text, is_tuple=types.get(name, "").startswith("tuple"))
    return settings_class(**values)


def setting_value(text: str, is_tuple: bool = False) -> Any:
    """Return what a text stands for: a literal; else comma-separated names if `is_tuple`; else the text itself."""
    try:
        return parse_literal(text)
    except UnreadableError:
        return tuple(part.strip() for part in text.split(",")) if is_tuple else text


def from_values(settings_class: Any, method: str, values: Mapping[str, Any]) -> Any:
    """Return settings from JSON values by name; None if there are none. Raises CV-P020.

    Lists stand for tuples. Learners that are objects cannot be named.
    """
    if not values:
        return None
    if settings_class is None:
        raise _invalid(f"no settings for method={method!r}", "another name")
    hints = get_type_hints(settings_class)
    types = {field.name: hints[field.name] for field in fields(settings_class)}
    if values.keys() - types.keys():
        raise _invalid(f"one of {list(types)}", "another name")
    return settings_class(**{name: _converted(name, value, types[name]) for name, value in values.items()})


def _converted(name: str, value: Any, declared: Any) -> Any:
    try:
        return _convert(value, declared)
    except _MismatchError:
        expected = f"{name}: a value of the type that the method declares"
        raise _invalid(expected, f"a {type(value).__name__}") from None


def _convert(value: Any, declared: Any) -> Any:
    """Return `value` as the declared type; the first alternative of a union that fits is taken."""
    alternatives = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    for alternative in alternatives:
        try:
            return _convert_one(value, alternative)
        except _MismatchError:
            continue
    raise _MismatchError


def _convert_one(value: Any, declared: Any) -> Any:
    """Return `value` as one type that is no union, or raise _MismatchError."""
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is tuple and isinstance(value, list | tuple) and len(value) <= MAX_ENTRIES:
        types = [arguments[0]] * len(value) if arguments[1:] == (Ellipsis,) else list(arguments)
        if len(types) != len(value):
            raise _MismatchError
        return tuple(_convert(entry, kind) for entry, kind in zip(value, types, strict=True))
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, Mapping):
        if len(value) > MAX_ENTRIES:
            raise _MismatchError
        key_type, value_type = arguments
        return {_convert_one(key, key_type): _convert_one(entry, value_type) for key, entry in value.items()}
    if declared in (None, NoneType):
        fits = value is None
    elif declared is bool or isinstance(value, bool):
        fits = declared is bool and isinstance(value, bool)
    elif declared is float:
        fits = isinstance(value, int | float) and isfinite(value)
    elif declared is int:
        fits = isinstance(value, int)
    else:
        # Objects cannot travel: where a type allows anything, a name is meant.
        fits = declared in (str, Any) and isinstance(value, str)
    if not fits:
        raise _MismatchError
    return value


def _invalid(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P020", expected=expected, got=got)
