"""What the R package asks of Python: columns made whole, refusals and rows handed back as plain values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any


def columns(
    values: Mapping[str, Sequence[Any]], missing: Mapping[str, Sequence[int]]
) -> dict[str, list[Any]]:
    """Return columns of R with None where a text is missing; places are counted from 0."""
    made = {name: list(cells) for name, cells in values.items()}
    for name, places in missing.items():
        for place in places:
            made[name][int(place)] = None
    return made


def call(function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a function returned, or the facts of its refusal."""
    from counterveil.errors import CounterveilError

    try:
        return {"value": function(*args, **named)}
    except CounterveilError as error:
        return {"code": error.code, "text": str(error)}


def rows(result: Any) -> str:
    """Return the rows of a result as JSON; numbers that are none are null."""
    return json.dumps([{name: _plain(cell) for name, cell in row.items()} for row in result.tidy()])


def facts(result: Any) -> str:
    """Return one row about the whole result as JSON."""
    guarantee, details = result.guarantee, getattr(result, "details", {})
    found = {
        "n": details.get("rows", getattr(result, "rows", None)),
        "method": getattr(result, "method", None),
        "level": result.level,
        "epsilon": float(result.spent.epsilon),
        "delta": float(result.spent.delta),
        "protects": guarantee.unit.value,
        "proof": guarantee.proof.value,
    }
    return json.dumps([{name: _plain(cell) for name, cell in found.items()}])


def _plain(cell: Any) -> Any:
    value = cell.item() if hasattr(cell, "item") else cell
    return None if isinstance(value, float) and not isfinite(value) else value


def dict_has(found: Mapping[str, Any], key: str) -> bool:
    """Return whether a dictionary has a key."""
    return key in found
