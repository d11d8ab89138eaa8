"""Released effects as files: written as JSON with no data in it, and read back or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

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
        "this file holds no effects of this kind",
        expected=f"a file that {writer} wrote",
        got=got,
        fix="check the path; what was lost is resent by its ledger under its request id",
    )
