"""Frozen data classes whose constructor is written by hand."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

Declared = TypeVar("Declared")


def frozen(declared: type[Declared]) -> type[Declared]:
    """Make a class a frozen data class with slots, which keeps its own `__init__`.

    Equality, hashing and the text of a value are those of `dataclass(frozen=True, slots=True, init=False)`. That
    decorator hides the constructor from jedi, so that editors show no argument; this one does not.

    Parameters
    ----------
    declared : type
        A class with annotated fields and an `__init__` that sets them.

    Returns
    -------
    type
        The data class.
    """
    return dataclass(frozen=True, slots=True, init=False)(declared)


def field_names(declared: type) -> tuple[str, ...]:
    """Return the names of the fields of a class that `frozen` made, in order."""
    return tuple(each.name for each in fields(cast("Any", declared)))
