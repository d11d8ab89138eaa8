"""Bounds on the numbers in another party's document, before an answer is made of it.

In: a document of plain values (from JSON) that another party sent, and that may be malformed or hostile. Out:
nothing, or an `UnreadableError` that names the field. A number must be finite and in a range in which
quantiles of its noise can be computed, quickly; a noise must have a mechanism that is known, with its own
numbers.

This protects whoever reads the document, not the people in it: their privacy was settled when their site
released the numbers. The bounds are limits of computing time and of doubles; the codec reads all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from counterveil.bounded_reading import (
    LARGEST,
    Fields,
    UnreadableError,
    check_values,
    parse_message,
    rational,
)
from counterveil.results.arms import ArmsResult, OutcomesResult
from counterveil.results.groups import GroupsResult
from counterveil.results.regression import Moments
from counterveil.results.survival import SurvivalResult

Answer = ArmsResult | GroupsResult | OutcomesResult | SurvivalResult
_TABLES = (ArmsResult, GroupsResult, OutcomesResult, SurvivalResult)
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*_TABLES, Moments)}
# What the numbers of each mechanism are; bounds keep its quantiles computable and quick.
_MECHANISMS = {
    "staircase": ("sensitivity", "epsilon"),
    "laplace": ("sensitivity", "epsilon"),
    "gaussian": ("sensitivity", "mu"),
    "laplace_pair": ("sensitivity", "epsilon", "narrow"),
    "summed_laplace": ("sensitivity", "epsilon", "sites", "honest"),
    "summed_gaussian": ("sensitivity", "mu", "sites", "honest"),
    "box": ("sensitivity", "epsilon", "dimension"),
}
_SMOOTH: dict[str, tuple[str, ...]] = {"lomax": ("epsilon", "smoothness")}
_BOUNDS = {
    "sensitivity": (1e-60, 1e60),
    "narrow": (1e-60, 1e60),
    "epsilon": (1e-12, 1e6),
    "mu": (1e-12, 1e6),
    "smoothness": (1e-12, 1e6),
    "sites": (1, 100),
    "honest": (1, 100),
    "dimension": (1, 1000),
}
_NEEDED = ("treatment", "outcome", "level", "releases", "details")
# Fields among what answers are computed from that hold texts.
_TEXTS = ("is", "name", "names", "outcome", "arm", "form", "convention", "causes", "formula")
# Most releases and details of an answer, most characters of a text inside a noise distribution, most rows of a site.
_MOST_RELEASES = 1000
_MOST_DETAILS = 500
_LONG_TEXT = 20_000
_MOST_ROWS = 10**12
# Numbers of an error or of a mean that have bounds of their own.
_RANGES = {
    **dict.fromkeys(("variance_cap", "extra", "bias", "ball_variance", "share_sd"), (0.0, LARGEST)),
    **dict.fromkeys(("noise_sd", "size_sd", "total_sd", "row_variance", "limit"), (0.0, LARGEST)),
    "share": (1e-9, 1 - 1e-9),
    "rows": (1.0, float(_MOST_ROWS)),
    "sizes": (1e-60, float(_MOST_ROWS)),
}


def check_document(document: object) -> None:
    """Raise `UnreadableError` unless what the result in a document is computed from is bounded; None is returned."""
    check_values(document)
    if not isinstance(document, Mapping) or any(name not in document for name in _NEEDED):
        raise UnreadableError("a result: a field is missing")
    facts = Fields("a result", document)
    for name in ("method", "treatment", "outcome"):
        if name in document or name in _NEEDED:
            facts.text(name, 500)
    facts.number("level", 1e-6, 1 - 1e-9)
    if len(facts.values["releases"]) > _MOST_RELEASES or len(facts.table("details")) > _MOST_DETAILS:
        raise facts.wrong("releases")
    if "rows" in facts.table("details"):
        Fields("details", facts.table("details")).number("rows", 1, _MOST_ROWS)
    for name, value in computed_facts(document).items():
        _check_bounded(name, value)


def computed_facts(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the result in a document is computed from."""
    kind = document.get("kind")
    further = KINDS[kind]._COMPUTED_FROM if isinstance(kind, str) and kind in KINDS else ()
    return {name: document.get(name) for name in ("estimate", "uncertainty", "limits", "numbers", *further)}


def _check_bounded(name: str, value: object) -> None:
    """Check every number under a name, and every noise distribution."""
    if isinstance(value, Mapping) and "mechanism" in value:
        _check_mechanism(dict(value))
    elif isinstance(value, Mapping):
        for inner_name, inner in value.items():
            _check_bounded(inner_name, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_bounded(name, inner)
    elif isinstance(value, str) and name not in _TEXTS:
        raise UnreadableError(f"{name} is invalid")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        Fields("a result", {name: value}).number(name, *_RANGES.get(name, (-LARGEST, LARGEST)))


def _check_mechanism(table: dict[str, Any]) -> None:
    """Check a noise distribution: a known mechanism with its own numbers, each in its range."""
    if table["mechanism"] == "noisy_scale":
        mechanism = Fields.of("a noise distribution", table, ("mechanism", "of", "scale", "log_scale"))
        for field, least in (("scale", 1e-60), ("log_scale", 0.0)):
            rational(mechanism.text(field), least, 1e60)
        _check_numbers(parse_message(mechanism.text("of", _LONG_TEXT)), _SMOOTH)
    elif table["mechanism"] == "weighted_sum":
        terms = parse_message(
            Fields.of("a noise distribution", table, ("mechanism", "of")).text("of", _LONG_TEXT)
        )
        for term in terms if isinstance(terms, list) else [terms]:
            if not isinstance(term, list) or len(term) != 2 or not isinstance(term[0], str):
                raise UnreadableError("a noise distribution that no result has")
            rational(term[0], 1e-60, 1e60)
            _check_numbers(term[1], _MECHANISMS)
    else:
        _check_numbers(table, _MECHANISMS)


def _check_numbers(table: object, mechanisms: dict[str, tuple[str, ...]]) -> None:
    name = table.get("mechanism") if isinstance(table, dict) else None
    if not isinstance(name, str) or name not in mechanisms:
        raise UnreadableError("a noise distribution that no result has")
    mechanism = Fields.of("a noise distribution", table, ("mechanism", *mechanisms[name]))
    for number in mechanisms[name]:
        mechanism.rational(number, *_BOUNDS[number])
