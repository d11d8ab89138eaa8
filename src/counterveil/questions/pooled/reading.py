"""Results of sites as they arrive: objects, facts, or files that were sent by mail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, sqrt
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from counterveil.bounded_reading import (
    Fields,
    UnreadableError,
    check_values,
    parse_message,
    rational,
    read_text,
)
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.inference import ClusterUncertainty, Uncertainty, half_width
from counterveil.inference.pooled_means import PooledMeans
from counterveil.privacy import Adjacency, Estimand, Proof, Unit
from counterveil.privacy.caveats import OPENING, read_fact, read_facts
from counterveil.results.measure_words import NEEDED
from counterveil.results.measures import MEASURES, MeasureResult, difference_result
from counterveil.results.ratio import RatioResult
from counterveil.results.result import Result
from counterveil.results.stored import VERSION

# The form of a result's document: what `Result.to_dict` writes and nothing else, every number bounded.


_NEEDED = (
    *("method", "estimand", "treatment", "outcome", "level", "estimate", "std_error", "interval"),
    *("interval_without_noise", "p_value", "guarantee", "spent", "releases", "not_covered", "details"),
    *("diagnostics", "uncertainty", "version"),
)
_SAID = ("warning", "caution", "sentence")
_OPENING = (*_SAID, *OPENING)
_UNCERTAINTY = (
    *("noise", "variance", "variance_cap", "variance_noise", "variance_apart", "extra", "bias", "limits"),
)
_GUARANTEE = ("epsilon", "delta", "protects", "adjacency", "proof", "public", "pages", "remarks", "sentence")
# What the numbers of each mechanism are; bounds keep its quantiles computable and quick.
_MECHANISMS = {
    "staircase": ("sensitivity", "epsilon"),
    "laplace": ("sensitivity", "epsilon"),
    "gaussian": ("sensitivity", "mu"),
    "laplace_pair": ("sensitivity", "epsilon", "narrow"),
}
_SMOOTH: dict[str, tuple[str, ...]] = {"lomax": ("epsilon", "smoothness")}
_BOUNDS = {
    "sensitivity": (1e-60, 1e60),
    "narrow": (1e-60, 1e60),
    "epsilon": (1e-12, 1e6),
    "mu": (1e-12, 1e6),
    "smoothness": (1e-12, 1e6),
}
_MOST_RELEASES, _MOST_DETAILS = 1000, 500
_LONG_TEXT = 20_000
_MOST_ROWS = 10**12


def check_document(document: object) -> None:
    """Raise `UnreadableError` unless a document has the form of a result of one effect; None is returned."""
    check_values(document)
    facts = Fields.of("a result", document, _NEEDED, (*_OPENING, "curvature_interval"))
    _check_opening(facts)
    facts.number("estimate")
    facts.number("p_value", 0, 1)
    _check_shown(facts)
    _check_guarantee(facts)
    _check_texts(facts)
    _check_uncertainty(facts.table("uncertainty"))


def _check_opening(facts: Fields) -> None:
    facts.whole("version", VERSION, VERSION)
    for name in ("method", "treatment", "outcome"):
        facts.text(name, 500)
    for name in _SAID:
        if name in facts.values:
            facts.text(name, _LONG_TEXT)
    for name in OPENING:
        if name in facts.values:
            read_fact(name, facts.values[name])
    facts.choice("estimand", tuple(Estimand))
    facts.number("level", 1e-6, 1 - 1e-9)


def _check_shown(facts: Fields) -> None:
    """Check what is shown and never computed with."""
    error = Fields.of("std_error", facts.table("std_error"), ("total", "sampling", "noise"))
    for name in ("total", "sampling", "noise"):
        error.number(name, 0, infinite=True)
    with_level = {"interval", "curvature_interval"} & {*facts.values}
    for name in (*sorted(with_level), "interval_without_noise"):
        ends = Fields.of(name, facts.table(name), ("level",) * (name in with_level) + ("low", "high"))
        for end in ("low", "high"):
            ends.number(end)
        if name in with_level:
            ends.number("level", 1e-6, 1 - 1e-9)


def _check_guarantee(facts: Fields) -> None:
    guarantee = Fields.of("guarantee", facts.table("guarantee"), _GUARANTEE, ("odds_factor",))
    spent = Fields.of("spent", facts.table("spent"), ("epsilon", "delta"))
    for table in (guarantee, spent):
        table.rational("epsilon", *_BOUNDS["epsilon"])
        table.rational("delta", 0, 1)
    guarantee.choice("protects", tuple(Unit))
    guarantee.choice("adjacency", tuple(Adjacency))
    guarantee.choice("proof", tuple(Proof))
    guarantee.text("sentence", _LONG_TEXT)
    if "odds_factor" in guarantee.values:  # said of a large epsilon
        guarantee.number("odds_factor", 1, inf)
    for name in ("public", "pages", "remarks"):
        guarantee.texts(name)


def _check_texts(facts: Fields) -> None:
    read_facts("not_covered", facts.values["not_covered"])
    facts.table("diagnostics")
    releases = facts.values["releases"]
    pairs = isinstance(releases, list) and len(releases) <= _MOST_RELEASES
    if not pairs or not all(
        isinstance(each, list) and len(each) == 2 and all(isinstance(text, str) for text in each)
        for each in releases
    ):
        raise facts.wrong("releases")
    details = facts.table("details")
    if len(details) > _MOST_DETAILS or not all(
        value is None or isinstance(value, str | int | float) for value in details.values()
    ):
        raise facts.wrong("details")
    if "rows" in details:
        Fields("details", details).number("rows", 1, _MOST_ROWS)


def _check_uncertainty(table: dict[str, Any]) -> None:
    known = Fields.of("uncertainty", table, _UNCERTAINTY, ("ball",))
    if "ball" in known.values:
        ball = Fields.of("noise of the ball", known.values["ball"], ("variance", "dimensions"))
        ball.number("variance", 0)
        ball.whole("dimensions", 2, 3)
    known.number("variance")
    for name in ("variance_cap", "extra", "bias"):
        known.number(name, 0)
    known.flag("variance_apart")
    for name in ("noise", "variance_noise"):
        if known.values[name] is not None:
            _check_mechanism(known.table(name))
    limits = known.values["limits"]
    if limits is not None:
        if not isinstance(limits, list) or len(limits) != 2:
            raise known.wrong("limits")
        low, high = (Fields("limits", {"end": end}).number("end") for end in limits)
        if not low < high:
            raise known.wrong("limits")


# Fields of a measure's document that are computed with, and those that are shown and never computed with.
_MEASURE = (
    *("method", "treatment", "outcome", "level", "guarantee", "spent", "releases", "not_covered", "details"),
    *("diagnostics", "measure", "estimand", "version"),
)
_MEASURE_SHOWN = (
    *("estimate", "std_error", "interval", "interval_without_noise", "p_value", "null", "notes"),
    *_OPENING,
)
_APART = ("values", "known", "range", "sizes")
_JOINT = ("mean", "mean_noise", "difference", "known", "share", "share_sd", "rows", "range")


def check_measure_document(document: object) -> None:
    """Raise `UnreadableError` unless a document has the form of a measure of means or of a difference; returns None."""
    check_values(document)
    # Numbers needed to treat are made of a released difference, or of the arms' means like the others.
    numbers = "difference" if isinstance(document, Mapping) and "difference" in document else "arm_means"
    facts = Fields.of("a result", document, (*_MEASURE, numbers), _MEASURE_SHOWN)
    _check_opening(facts)
    facts.choice("measure", MEASURES if numbers == "arm_means" else (NEEDED,))
    _check_guarantee(facts)
    _check_texts(facts)
    if numbers == "difference":
        rest = dict(facts.table("difference"))
        Fields("difference", {"estimate": rest.pop("estimate", None)}).number("estimate")
        return _check_uncertainty(rest | {"variance_apart": False})
    return _check_means(facts.table("arm_means"))


def _check_means(means: dict[str, Any]) -> None:
    """Check the means of both arms: released each, or as a mean of everyone and a difference."""
    if "values" in means:
        apart = Fields.of("arm means", means, _APART)
        _pair(apart, "values")
        if not all(0 < size <= _MOST_ROWS for size in _pair(apart, "sizes")):
            raise apart.wrong("sizes")
        known = apart.values["known"]
        if not isinstance(known, list) or len(known) != 2:
            raise apart.wrong("known")
    else:
        apart = Fields.of("arm means", means, _JOINT)
        for name in ("mean", "difference"):
            apart.number(name)
        apart.number("share", 1e-9, 1 - 1e-9)
        apart.number("share_sd", 0)
        apart.whole("rows", 1, _MOST_ROWS)
        if apart.values["mean_noise"] is not None:
            _check_mechanism(apart.table("mean_noise"))
        known = [apart.table("known")]
    low, high = _pair(apart, "range")
    if not low < high:
        raise apart.wrong("range")
    for each in known:
        if not isinstance(each, dict):
            raise apart.wrong("known")
        _check_uncertainty(each | {"variance_apart": False, "limits": None})


def _pair(facts: Fields, name: str) -> tuple[float, float]:
    """Return two numbers of a list."""
    found = facts.values[name]
    if not isinstance(found, list) or len(found) != 2:
        raise facts.wrong(name)
    one, other = (Fields(name, {"number": number}).number("number") for number in found)
    return one, other


def _check_mechanism(table: dict[str, Any]) -> None:
    """Check a noise distribution: a known mechanism with its own numbers, each in its range."""
    name = table.get("mechanism")
    if name == "unsure_scale":
        mechanism = Fields.of("a noise distribution", table, ("mechanism", "of", "scale", "log_scale"))
        for field, least in (("scale", 1e-60), ("log_scale", 0.0)):
            rational(mechanism.text(field), least, 1e60)
        _check_numbers(parse_message(mechanism.text("of", _LONG_TEXT)), _SMOOTH)
    else:
        _check_numbers(table, _MECHANISMS)


def _check_numbers(table: object, known: dict[str, tuple[str, ...]]) -> None:
    name = table.get("mechanism") if isinstance(table, dict) else None
    if not isinstance(name, str) or name not in known:
        raise UnreadableError("a noise distribution that no result has")
    mechanism = Fields.of("a noise distribution", table, ("mechanism", *known[name]))
    for number in known[name]:
        mechanism.rational(number, *_BOUNDS[number])


Source: TypeAlias = Result | Mapping[str, Any] | str | PathLike[str]
Sources: TypeAlias = Sequence[Source] | Mapping[str, Source]

# A file of a result has a few kilobytes, or some hundred with balance tables.
_LARGEST_FILE = 20_000_000
# Noise goes farther than what is allowed for it once in a thousand million results.
_NEVER = 1e-9
FAR_OUTSIDE = "an estimate far outside what its outcome and its noise allow"


def read_sites(sources: Sources, measures: bool = False) -> list[tuple[str, Result]]:
    """Return the name and the result of every site; names are given, or those of files, or counted.

    With `measures`, all of them may be ratios and the like instead of differences.
    """
    found = _named(sources, measures)
    kinds = {isinstance(result, MeasureResult) for _, result in found}
    if len(kinds) > 1:
        name = next(name for name, result in found if not isinstance(result, MeasureResult))
        raise _no_result(name, "a difference beside results of another measure")
    return found


def _named(sources: Sources, measures: bool) -> list[tuple[str, Result]]:
    if isinstance(sources, Mapping):
        return [(str(name), read_result(source, str(name), measures)) for name, source in sources.items()]
    if not isinstance(sources, Sequence) or isinstance(sources, str):
        raise _no_result("results", shown(sources))
    names = [_name(source, place) for place, source in enumerate(sources, 1)]
    if len(set(names)) < len(names):
        names = [f"{name} ({place})" for place, name in enumerate(names, 1)]
    return [(name, read_result(source, name, measures)) for name, source in zip(names, sources, strict=True)]


def _name(source: Source, place: int) -> str:
    if isinstance(source, str | PathLike):
        return Path(source).stem
    return f"site {place}"


def read_result(source: Source, name: str, measures: bool = False) -> Result:
    """Return the result in an object, in the facts of `Result.to_dict`, or in a JSON file of them.

    Facts have the form that `to_dict` gives them, with numbers in their ranges, before anything is made of them.
    """
    if isinstance(source, MeasureResult):
        return _of_means(source, name, measures)
    if isinstance(source, RatioResult):
        raise _no_result(name, "a difference of ratios, which is not pooled")
    if isinstance(source, Result):
        return _sound(source, name)
    if not isinstance(source, Mapping | str | PathLike):
        raise _no_result(name, shown(source))
    facts = source if isinstance(source, Mapping) else _read_file(source)
    if "error" in facts:
        raise _no_result(name, "a refusal: the site gave no result")
    try:
        if "measure" in facts and measures:
            check_measure_document(facts)
            return _of_means(MeasureResult.from_dict(dict(facts)), name, measures)
        check_document(facts)
        return _sound(Result.from_dict(dict(facts)), name)
    except UnreadableError as error:
        raise _no_result(name, str(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, ParameterError) as error:
        if isinstance(error, ParameterError) and error.code == "CV-P502":
            raise
        raise _no_result(name, "facts that do not make a result of one effect") from None


def _of_means(result: MeasureResult, name: str, measures: bool) -> MeasureResult:
    """Return a result of a measure if it is to be pooled and has the numbers of one site, in their range."""
    if not measures:
        raise _no_result(name, f"measure={result.measure!r}: differences are pooled")
    known = getattr(result.difference.known, "uncertainty", None)
    if result.means is None and isinstance(known, Uncertainty):
        _sound(difference_result(result), name)
        return result
    if result.means is None or isinstance(result.means, PooledMeans):
        raise _no_result(name, f"measure={result.measure!r} without the means of one site's arms")
    low, high = result.means.range
    for value, weights in zip(result.means.values, ((1.0, 0.0), (0.0, 1.0)), strict=True):
        sd, noise = result.means.errors(_NEVER)(*weights, (1.0, 1.0))
        reach = half_width(sd, noise, _NEVER)
        if not low - reach <= value <= high + reach:
            raise _no_result(name, FAR_OUTSIDE)
    return result


def _read_file(path: str | PathLike[str]) -> Mapping[str, Any]:
    try:
        facts = parse_message(read_text(path, _LARGEST_FILE), longest=_LARGEST_FILE, infinite=True)
    except UnreadableError as error:
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
    if isinstance(known, ClusterUncertainty):
        raise _no_result(name, "a result by cluster, whose degrees of freedom pooling would lose")
    if min(known.variance_cap, known.extra, known.bias) < 0 or known.total_sd <= 0:
        raise _no_result(name, "a result without uncertainty")
    if result.limits is not None:
        if not -inf < result.limits[0] < result.limits[1] < inf:
            raise _no_result(name, "a result whose effect can be nothing")
        # An estimate has sampling error and noise, so it may lie outside its limits, but not anywhere.
        reach = known.bias + half_width(sqrt(known.variance_cap + known.extra_at(_NEVER)), None, _NEVER)
        reach += 0.0 if known.noise is None else half_width(0.0, known.noise, _NEVER)
        if not result.limits[0] - reach <= result.estimate <= result.limits[1] + reach:
            raise _no_result(name, FAR_OUTSIDE)
    return result


def rows_of(result: Result) -> int | None:
    """Return the public number of rows behind a result, None where it does not say."""
    rows = result.details.get("rows")
    return int(rows) if isinstance(rows, int | float) and isfinite(rows) and rows >= 1 else None


def _unreadable(path: str | PathLike[str], got: str) -> CounterveilError:
    return refusal("CV-P501", path=str(path), got=got)


def _no_result(name: str, got: str) -> CounterveilError:
    return refusal("CV-P502", name=name, got=got)
