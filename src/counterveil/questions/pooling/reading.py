"""Answers of sites as objects, facts or files: read, named, and refused where they cannot be pooled.

In: results, their `to_dict()`, or paths of files from sites that may be mistaken or hostile. Out: the name
and the answer of every site, every number within bounds (`documents.py`). An estimate is refused where it
lies farther outside the outcome's range than its noise goes once in a thousand million results.

A file that cannot be read is CV-P501; CV-P502 is an answer that is none, or that cannot be averaged. Nothing
here is estimated or spent: what was released is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf, isfinite, sqrt
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from counterveil.bounded_reading import UnreadableError, parse_message, read_text
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.inference.clusters import ClusterUncertainty
from counterveil.inference.convolution import half_width
from counterveil.inference.pooled_means import PooledMeans
from counterveil.inference.uncertainty import Uncertainty
from counterveil.questions.pooling.documents import KINDS, check_document
from counterveil.results.effect import Linear, kind_of
from counterveil.results.groups import RatioResult
from counterveil.results.result import MeasureResult, Result, difference_result

Item = TypeVar("Item")
Source: TypeAlias = Result | Mapping[str, Any] | str | PathLike[str]
Sources: TypeAlias = Sequence[Source] | Mapping[str, Source]
# A file of a result has a few kilobytes, or some hundred with balance tables.
_LARGEST_FILE = 20_000_000
# Noise goes farther than what is allowed for it once in a thousand million results.
_MISS_RATE = 1e-9
FAR_OUTSIDE = "an estimate far outside what its outcome and its noise allow"


def read_sites(sources: Sources, measures: bool = False) -> list[tuple[str, Result]]:
    """Return the name and the result of every site; names are given, or those of files, or counted.

    With `measures`, all of them may be ratios and the like instead of differences.
    """
    results = named(sources, partial(read_result, measures=measures))
    kinds = {isinstance(result, MeasureResult) for _, result in results}
    if len(kinds) > 1:
        name = next(name for name, result in results if not isinstance(result, MeasureResult))
        raise no_result(name, "a difference beside results of another measure")
    return results


def named(sources: Any, read_one: Callable[[Any, str], Item]) -> list[tuple[str, Item]]:
    """Return every site's name with what is read of it."""
    if isinstance(sources, Mapping):
        return [(str(name), read_one(source, str(name))) for name, source in sources.items()]
    if not isinstance(sources, Sequence) or isinstance(sources, str):
        raise no_result("results", shown(sources))
    names = [_name(source, number) for number, source in enumerate(sources, 1)]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    return [(name, read_one(source, name)) for name, source in zip(names, sources, strict=True)]


def _name(source: Source, number: int) -> str:
    if isinstance(source, str | PathLike):
        return Path(source).stem
    return f"site {number}"


def facts_of(source: Source | object, name: str) -> Mapping[str, Any]:
    """Return the facts of an answer, or those in a JSON file, or raise CV-P502."""
    if not isinstance(source, Mapping | str | PathLike):
        raise no_result(name, shown(source))
    facts = source if isinstance(source, Mapping) else _read_file(source)
    if "error" in facts:
        raise no_result(name, "a refusal: the site gave no result")
    return facts


@contextmanager
def refusing_others(name: str) -> Iterator[None]:
    """Raise CV-P502 where facts make no answer that can be pooled."""
    try:
        yield
    except UnreadableError as error:
        raise no_result(name, str(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, ParameterError) as error:
        if isinstance(error, ParameterError) and error.code == "CV-P502":
            raise
        raise no_result(name, "facts that do not make a result of one effect") from None


def read_result(source: Source, name: str, measures: bool = False) -> Result:
    """Return the result in an object, in the facts of `Result.to_dict`, or in a JSON file of them.

    Facts have the form that `to_dict` gives them, with numbers in their ranges, before anything is made of them.
    """
    if isinstance(source, MeasureResult):
        return of_means(source, name, measures)
    if isinstance(source, RatioResult):
        raise no_result(name, "a difference of ratios, which is not pooled")
    if isinstance(source, Result):
        return _sound(source, name)
    facts = facts_of(source, name)
    with refusing_others(name):
        check_document(facts)
        if measures and facts.get("kind") == MeasureResult.__name__:
            return of_means(MeasureResult.from_dict(dict(facts)), name, measures)
        return _sound(Result.from_dict(dict(facts)), name)


def of_means(result: MeasureResult, name: str, measures: bool) -> MeasureResult:
    """Return a result of a measure if it is to be pooled and has the numbers of one site, in their range."""
    if not measures:
        raise no_result(name, f"measure={result.measure!r}: differences are pooled")
    if isinstance(result.numbers, Linear) and isinstance(result.numbers.uncertainty, Uncertainty):
        _sound(difference_result(result), name)
        return result
    if result.means is None or isinstance(result.means, PooledMeans):
        raise no_result(name, f"measure={result.measure!r} without the means of one site's arms")
    low, high = result.means.range
    for value, weights in zip(result.means.values, ((1.0, 0.0), (0.0, 1.0)), strict=True):
        sd, noise, bias = result.means.errors(_MISS_RATE)(*weights, (1.0, 1.0))
        reach = half_width(sd, noise, _MISS_RATE) + bias
        if not low - reach <= value <= high + reach:
            raise no_result(name, FAR_OUTSIDE)
    return result


def _read_file(path: str | PathLike[str]) -> Mapping[str, Any]:
    try:
        facts = parse_message(read_text(path, _LARGEST_FILE), longest=_LARGEST_FILE, infinite=True)
    except UnreadableError as error:
        raise refusal("CV-P501", path=str(path), got=str(error)) from None
    if not isinstance(facts, Mapping):
        raise refusal("CV-P501", path=str(path), got="JSON that is not an object")
    return facts


def _sound(result: Result, name: str) -> Result:
    """Return the result if its numbers can be averaged."""
    check_sound(Linear(result.estimate, result.uncertainty, result.limits), name)
    return result


def check_sound(estimate: Linear, name: str) -> None:
    """Raise CV-P502 unless a number of a site can be averaged."""
    error = estimate.uncertainty
    if not isinstance(error, Uncertainty):
        raise no_result(name, "an average of other sites")
    numbers = (estimate.estimate, error.variance, error.variance_cap, error.extra, error.bias)
    if not all(isinstance(number, int | float) and isfinite(number) for number in numbers):
        raise no_result(name, "a result with a number that is not finite")
    if isinstance(error, ClusterUncertainty):
        raise no_result(name, "a result by cluster, whose degrees of freedom pooling would lose")
    if min(error.variance_cap, error.extra, error.bias) < 0 or error.total_sd <= 0:
        raise no_result(name, "a result without uncertainty")
    if estimate.limits is not None:
        if not -inf < estimate.limits[0] < estimate.limits[1] < inf:
            raise no_result(name, "a result whose effect can be nothing")
        # An estimate has sampling error and noise, so it may lie outside its limits, but not anywhere.
        reach = error.bias + half_width(
            sqrt(error.variance_cap + error.extra_at(_MISS_RATE)), None, _MISS_RATE
        )
        reach += 0.0 if error.noise is None else half_width(0.0, error.noise, _MISS_RATE)
        if not estimate.limits[0] - reach <= estimate.estimate <= estimate.limits[1] + reach:
            raise no_result(name, FAR_OUTSIDE)


def rows_of(result: Any) -> int | None:
    """Return the public number of rows behind a result, None where it does not say."""
    rows = result._site_rows()
    return int(rows) if isinstance(rows, int | float) and isfinite(rows) and rows >= 1 else None


def no_result(name: str, got: str) -> CounterveilError:
    """Return CV-P502."""
    return refusal("CV-P502", name=name, got=got)


def kind_of_all(sources: Any) -> type | None:
    """Return the kind of several answers, None where they are of one effect each, or of nothing that is known."""
    listed = [*sources.values()] if isinstance(sources, Mapping) else sources
    first = next(iter(listed), None) if isinstance(listed, Sequence) and not isinstance(listed, str) else None
    if isinstance(first, tuple(KINDS.values())):
        return type(first)
    if not isinstance(first, Mapping | str) and not hasattr(first, "__fspath__"):
        return None
    kind = facts_of(first, "a site").get("kind")
    return KINDS.get(kind) if isinstance(kind, str) else None


def read_answer(source: Any, name: str) -> Any:
    """Return an answer of several effects, or moments, in an object, its facts or a file of them, or raise CV-P502."""
    # What is pooled already is of another kind.
    if type(source) in KINDS.values():
        answer = source
    else:
        facts = facts_of(source, name)
        with refusing_others(name):
            check_document(facts)
            answer = kind_of(facts, KINDS).from_dict(dict(facts))
    for figure in answer._site_figures():
        if isinstance(figure.numbers, Linear):
            check_sound(figure.numbers, name)
    return answer
