"""Results of sites as they arrive: objects, facts, or files that were sent by mail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, sqrt
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from counterveil.bounded_reading import UnreadableError, read_text
from counterveil.errors import ParameterError, shown
from counterveil.estimators.pooled.document import check_document
from counterveil.estimators.result import Result
from counterveil.inference import half_width
from counterveil.untrusted import UntrustedError, read_json

Source: TypeAlias = Result | Mapping[str, Any] | str | PathLike[str]
Sources: TypeAlias = Sequence[Source] | Mapping[str, Source]

# A file of a result has a few kilobytes, or some hundred with balance tables.
_LARGEST_FILE = 20_000_000
# Noise goes farther than what is allowed for it once in a thousand million results.
_NEVER = 1e-9
FAR_OUTSIDE = "an estimate far outside what its outcome and its noise allow"


def read_sites(sources: Sources) -> list[tuple[str, Result]]:
    """Return the name and the result of every site; names are given, or those of files, or counted."""
    if isinstance(sources, Mapping):
        return [(str(name), read_result(source, str(name))) for name, source in sources.items()]
    if not isinstance(sources, Sequence) or isinstance(sources, str):
        raise _no_result("results", shown(sources))
    names = [_name(source, place) for place, source in enumerate(sources, 1)]
    if len(set(names)) < len(names):
        names = [f"{name} ({place})" for place, name in enumerate(names, 1)]
    return [(name, read_result(source, name)) for name, source in zip(names, sources, strict=True)]


def _name(source: Source, place: int) -> str:
    if isinstance(source, str | PathLike):
        return Path(source).stem
    return f"site {place}"


def read_result(source: Source, name: str) -> Result:
    """Return the result in an object, in the facts of `Result.to_dict`, or in a JSON file of them.

    Facts have the form that `to_dict` gives them, with numbers in their ranges, before anything is made of them.
    """
    if isinstance(source, Result):
        return _sound(source, name)
    if not isinstance(source, Mapping | str | PathLike):
        raise _no_result(name, shown(source))
    facts = source if isinstance(source, Mapping) else _read_file(source)
    if "error" in facts:
        raise _no_result(name, "a refusal: the site gave no result")
    try:
        check_document(facts)
        return _sound(Result.from_dict(dict(facts)), name)
    except UntrustedError as error:
        raise _no_result(name, str(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, ParameterError) as error:
        if isinstance(error, ParameterError) and error.code == "CV-P502":
            raise
        raise _no_result(name, "facts that do not make a result of one effect") from None


def _read_file(path: str | PathLike[str]) -> Mapping[str, Any]:
    try:
        facts = read_json(read_text(path, _LARGEST_FILE), longest=_LARGEST_FILE, infinite=True)
    except (UnreadableError, UntrustedError) as error:
        raise _unreadable(path, str(error)) from None
    if not isinstance(facts, Mapping):
        raise _unreadable(path, "JSON that is not an object")
    return facts


def _sound(result: Result, name: str) -> Result:
    """Return the result if its numbers can be averaged."""
    known = result.uncertainty
    numbers = (result.estimate, known.variance, known.variance_cap, known.extra, known.bias)
    if not all(isinstance(number, int | float) and isfinite(number) for number in numbers):
        raise _no_result(name, "a result with a number that is not finite")
    if min(known.variance_cap, known.extra, known.bias) < 0 or known.total_sd <= 0:
        raise _no_result(name, "a result without uncertainty")
    if result.limits is not None:
        if not -inf < result.limits[0] < result.limits[1] < inf:
            raise _no_result(name, "a result whose effect can be nothing")
        # An estimate has sampling error and noise, so it may lie outside its limits, but not anywhere.
        reach = known.bias + half_width(sqrt(known.variance_cap + known.extra), None, _NEVER)
        reach += 0.0 if known.noise is None else half_width(0.0, known.noise, _NEVER)
        if not result.limits[0] - reach <= result.estimate <= result.limits[1] + reach:
            raise _no_result(name, FAR_OUTSIDE)
    return result


def rows_of(result: Result) -> int | None:
    """Return the public number of rows behind a result, None where it does not say."""
    rows = result.details.get("rows")
    return int(rows) if isinstance(rows, int | float) and isfinite(rows) and rows >= 1 else None


def _unreadable(path: str | PathLike[str], got: str) -> ParameterError:
    return ParameterError(
        "CV-P501",
        "a site's file cannot be read",
        expected=f"{shown(str(path))}: the JSON that `counterveil estimate --json` prints",
        got=got,
        fix="check the path, and ask the site to send the file again",
    )


def _no_result(name: str, got: str) -> ParameterError:
    return ParameterError(
        "CV-P502",
        "this is not the result of one effect",
        expected=f"{name}: a Result of `ate`, or what its to_dict() gives",
        got=got,
        fix="pool results of `ate`; leave out sites that gave none",
    )
