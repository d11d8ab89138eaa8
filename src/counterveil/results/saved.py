"""Released effects as files: written as JSON with no data in it, and read back or refused."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from counterveil.bounded_reading import read_json
from counterveil.errors import CounterveilError, ParameterError, shown

Read = TypeVar("Read")
# What reading a file of another kind, or half of one, can end with.
_FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


def save(facts: dict[str, Any], path: str | Path) -> Path:
    """Write facts as JSON; return the path."""
    target = Path(path)
    target.write_text(json.dumps(facts) + "\n", encoding="utf-8")
    return target


def load(
    path: str | Path, read: Callable[[dict[str, Any]], Read], refusal: Callable[[str], ParameterError]
) -> Read:
    """Return what `read` makes of the facts in a file, or raise the refusal of what was found there."""
    try:
        return read(read_json(path))
    except CounterveilError as error:
        raise refusal(f"{shown(path)}: {error.code}, {error.got}") from None
    except _FAULTS as fault:
        raise refusal(f"{shown(path)}: {type(fault).__name__}") from None


def no_effects(got: str, writer: str) -> ParameterError:
    """Return CV-P552, for a file that `writer` did not write."""
    return ParameterError(
        "CV-P552",
        "this is not a file of released effects",
        expected=f"a file that {writer} wrote",
        got=got,
        fix="check the path; what was lost is resent by its ledger under its request id",
    )


# Results from facts that somebody else may have written: of the declared types, or refused.


Made = TypeVar("Made")
# What making a result of facts of another kind can end with.
_FAULTS_back = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


def reads_facts(read: Callable[[Any, dict[str, Any]], Made]) -> Callable[[Any, dict[str, Any]], Made]:
    """Return the reader of a class with CV-P661 for facts that do not make one of its objects."""

    @wraps(read)
    def reader(cls: type[Made], facts: dict[str, Any]) -> Made:
        try:
            made = read(cls, facts)
        except CounterveilError:
            raise
        except _FAULTS_back as fault:
            raise _refusal(cls, type(fault).__name__) from None
        wrong = wrong_field(made)
        if wrong is not None:
            raise _refusal(cls, f"{wrong} of another type")
        return made

    return reader


def wrong_field(made: object) -> str | None:
    """Return the first field of a dataclass, or of one inside it, whose value is not of the declared type."""
    kind: Any = type(made)
    hints = _hints(kind)
    for name, hint in hints.items():
        value = getattr(made, name)
        if not _fits(value, hint):
            return name
        for part in value if isinstance(value, tuple) else (value,):
            inner = wrong_field(part) if is_dataclass(part) and not isinstance(part, type) else None
            if inner is not None:
                return f"{name}.{inner}"
    return None


@lru_cache(maxsize=256)
def _hints(kind: type) -> dict[str, Any]:
    if not is_dataclass(kind):
        return {}
    try:
        known = get_type_hints(kind)
    except NameError:
        # Types that are imported for the type checker alone are not there to be compared with.
        return {}
    return {field.name: known[field.name] for field in fields(kind)}


def _fits(value: object, hint: Any) -> bool:
    """Return whether a value is of a declared type; what is no plain type is taken to fit."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, each) for each in inside)
    if hint is float:
        # A whole number beyond the largest double is none.
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000
        return isinstance(value, float) or whole
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (str, bool) or hint is type(None):
        return isinstance(value, hint)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(inside) == 2 and inside[1] is Ellipsis:
            return all(_fits(item, inside[0]) for item in value)
        return len(value) == len(inside) and all(map(_fits, value, inside))
    if origin in (dict, Mapping):
        # What stands under the names is shown as it is and never computed with.
        return isinstance(value, Mapping) and all(_fits(key, inside[0]) for key in value)
    if origin in (list, Sequence):
        return isinstance(value, Sequence) and all(_fits(item, inside[0]) for item in value)
    return True


def _refusal(kind: type, got: str) -> ParameterError:
    return ParameterError(
        "CV-P661",
        f"these facts do not make a {kind.__name__}",
        expected=f"what {kind.__name__}.to_dict() returned",
        got=got,
        fix="pass the facts as they were written; what was lost is resent by its ledger under its request id",
    )
