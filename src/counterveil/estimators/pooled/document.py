"""The form of a result's document: what `Result.to_dict` writes and nothing else, every number bounded."""

from __future__ import annotations

from typing import Any

from counterveil.privacy import Adjacency, Estimand, Proof, Unit
from counterveil.untrusted import Fields, UntrustedError, check_values, rational, read_json

_NEEDED = (
    *("method", "estimand", "treatment", "outcome", "estimate", "std_error", "interval"),
    *("interval_without_noise", "p_value", "guarantee", "spent", "releases", "not_covered", "details"),
    *("diagnostics", "uncertainty"),
)
_OPENING = ("warning", "caution", "interval_of", "condition")
_UNCERTAINTY = (
    "noise",
    "variance",
    "variance_cap",
    "variance_noise",
    "variance_apart",
    "extra",
    "bias",
    "limits",
)
_GUARANTEE = ("epsilon", "delta", "protects", "adjacency", "proof", "public", "pages", "remarks", "sentence")
# What the numbers of each mechanism are; bounds keep its quantiles computable and quick.
_LAWS = {
    "staircase": ("sensitivity", "epsilon"),
    "laplace": ("sensitivity", "epsilon"),
    "gaussian": ("sensitivity", "mu"),
    "laplace_pair": ("sensitivity", "epsilon", "narrow"),
}
_SMOOTH = {
    "lomax": ("epsilon", "smoothness"),
    "student": ("epsilon", "smoothness", "df"),
    "smooth_laplace": ("epsilon", "delta", "smoothness"),
}
_BOUNDS = {
    "sensitivity": (1e-60, 1e60),
    "narrow": (1e-60, 1e60),
    "epsilon": (1e-12, 1e6),
    "delta": (1e-60, 1.0),
    "mu": (1e-12, 1e6),
    "smoothness": (1e-12, 1e6),
    "df": (1.0, 100.0),
}
_MOST_RELEASES, _MOST_DETAILS = 1000, 500
_LONG_TEXT = 20_000
_MOST_ROWS = 10**12


def check_document(document: object) -> None:
    """Raise `UntrustedError` unless a document has the form of a result of one effect; None is returned."""
    check_values(document)
    facts = Fields.of("a result", document, _NEEDED, _OPENING)
    for name in ("method", "treatment", "outcome"):
        facts.text(name, 500)
    for name in _OPENING:
        if name in facts.values:
            facts.text(name, _LONG_TEXT)
    facts.choice("estimand", tuple(Estimand))
    facts.number("estimate")
    facts.number("p_value", 0, 1)
    _check_shown(facts)
    _check_promise(facts)
    _check_texts(facts)
    _check_uncertainty(facts.table("uncertainty"))


def _check_shown(facts: Fields) -> None:
    """Check what is shown and never computed with."""
    error = Fields.of("std_error", facts.table("std_error"), ("total", "sampling", "noise"))
    for name in ("total", "sampling", "noise"):
        error.number(name, 0, infinite=True)
    for name, needed in (("interval", ("level", "low", "high")), ("interval_without_noise", ("low", "high"))):
        ends = Fields.of(name, facts.table(name), needed)
        for end in ("low", "high"):
            ends.number(end)
    Fields("interval", facts.values["interval"]).number("level", 1e-6, 1 - 1e-9)


def _check_promise(facts: Fields) -> None:
    promise = Fields.of("guarantee", facts.table("guarantee"), _GUARANTEE)
    spent = Fields.of("spent", facts.table("spent"), ("epsilon", "delta"))
    for table in (promise, spent):
        table.rational("epsilon", *_BOUNDS["epsilon"])
        table.rational("delta", 0, 1)
    promise.choice("protects", tuple(Unit))
    promise.choice("adjacency", tuple(Adjacency))
    promise.choice("proof", tuple(Proof))
    promise.text("sentence", _LONG_TEXT)
    for name in ("public", "pages", "remarks"):
        promise.texts(name)


def _check_texts(facts: Fields) -> None:
    facts.texts("not_covered")
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
    known = Fields.of("uncertainty", table, _UNCERTAINTY)
    known.number("variance")
    for name in ("variance_cap", "extra", "bias"):
        known.number(name, 0)
    known.flag("variance_apart")
    for name in ("noise", "variance_noise"):
        if known.values[name] is not None:
            _check_law(known.table(name))
    limits = known.values["limits"]
    if limits is not None:
        if not isinstance(limits, list) or len(limits) != 2:
            raise known.wrong("limits")
        low, high = (Fields("limits", {"end": end}).number("end") for end in limits)
        if not low < high:
            raise known.wrong("limits")


def _check_law(table: dict[str, Any]) -> None:
    """Check a noise distribution: a known mechanism with its own numbers, each in its range."""
    name = table.get("mechanism")
    if name == "unsure_scale":
        law = Fields.of("a noise distribution", table, ("mechanism", "of", "scale", "spread"))
        for field, least in (("scale", 1e-60), ("spread", 0.0)):
            rational(law.text(field), least, 1e60)
        _check_numbers(read_json(law.text("of", _LONG_TEXT)), _SMOOTH)
    else:
        _check_numbers(table, _LAWS)


def _check_numbers(table: object, known: dict[str, tuple[str, ...]]) -> None:
    name = table.get("mechanism") if isinstance(table, dict) else None
    if not isinstance(name, str) or name not in known:
        raise UntrustedError("a noise distribution that no result has")
    law = Fields.of("a noise distribution", table, ("mechanism", *known[name]))
    for number in known[name]:
        law.rational(number, *_BOUNDS[number])
