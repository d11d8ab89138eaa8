"""Numbers as people write them; every report, page, table and picture takes them from here."""

from __future__ import annotations

from math import floor, isfinite, isnan, log10
from typing import Any

Facts = dict[str, Any]


def rounded(value: float | None, error: float | None) -> str:
    """Return `value` with as many decimals as its error makes meaningful (two digits of the error)."""
    if value is None:
        return "inf"
    if isnan(value):
        return "unknown"
    if not isfinite(value):
        return "inf" if value > 0 else "-inf"
    if error is None or not isfinite(error) or error <= 0:
        return f"{value:.4g}"
    decimals = max(0, 1 - floor(log10(error)))
    return f"{value:,.{decimals}f}"


def probability(value: float) -> str:
    """Return a p-value as it is printed in a table."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def percent(level: float) -> str:
    """Return a level such as 0.95 as text."""
    return f"{100 * level:g} %"


def span(interval: Facts, error: float | None) -> str:
    """Return an interval as text, with the digits that the error makes meaningful."""
    if interval.get("gap"):
        return " or ".join(_sides(interval["gap"], error))
    low = "(-inf" if interval["low"] is None else f"[{rounded(interval['low'], error)}"
    high = "inf)" if interval["high"] is None else f"{rounded(interval['high'], error)}]"
    return f"{low}, {high}"


def from_to(interval: Facts, error: float | None) -> str:
    """Return an interval as words of a sentence."""
    if interval.get("gap"):
        return " or ".join(_sides(interval["gap"], error))
    low, high = (interval[end] for end in ("low", "high"))
    if high is None:
        return f"{rounded(low, error)} upwards, without an upper end" if low is not None else "everything"
    return f"{rounded(low, error)} to {rounded(high, error)}"


def _sides(gap: list[float | None], error: float | None) -> list[str]:
    """Return the two parts of an interval that leaves out what is between; a part may be missing."""
    below, above = gap
    sides = [] if below is None else [f"at most {rounded(below, error)}"]
    return sides + ([] if above is None else [f"at least {rounded(above, error)}"])


def few_words(text: str, most: int) -> str:
    """Return a text of at most so many words."""
    words = text.split()
    return text if len(words) <= most else " ".join([*words[: most - 1], "..."])
