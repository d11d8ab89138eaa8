"""A summary that a statistician can paste."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, isfinite, log10
from textwrap import wrap
from typing import Any

from counterveil.privacy import Budget, Estimand

# Numbers as people write them.


def rounded(value: float, error: float) -> str:
    """Return `value` with as many decimals as its error makes meaningful (two digits of the error)."""
    if not isfinite(value):
        return "inf" if value > 0 else "-inf"
    if not isfinite(error) or error <= 0:
        return f"{value:.4g}"
    decimals = max(0, 1 - floor(log10(error)))
    return f"{value:,.{decimals}f}"


def probability(value: float) -> str:
    """Return a p-value as it is printed in a table."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def percent(level: float) -> str:
    """Return a level such as 0.95 as text."""
    return f"{100 * level:g} %"


# The tables of a result as cells of text: one effect, or one for each of several arms and their means.


@dataclass(frozen=True, slots=True)
class Cells:
    """Headings and rows of text, all of one length."""

    headings: list[str]
    rows: list[list[str]]


def effects_of(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the facts of every effect: those of several arms, or the result itself."""
    return list(facts.get("effects", [facts]))


def name_of(effect: dict[str, Any]) -> str:
    """Return what an effect is called in a table: its own name, its contrast, or the estimand."""
    if "name" in effect:
        return str(effect["name"])
    return f"{effect['arm']} - {effect['reference']}" if "arm" in effect else str(effect["estimand"])


def span(interval: dict[str, float], error: float) -> str:
    """Return an interval as text, with the digits that the error makes meaningful."""
    return f"[{rounded(interval['low'], error)}, {rounded(interval['high'], error)}]"


def effect_cells(facts: dict[str, Any]) -> Cells:
    """Return the table of effects; several effects have an interval for all of them together as well."""
    effects = effects_of(facts)
    several = "simultaneous_interval" in effects[0]
    level = percent(effects[0]["interval"]["level"])
    sized = "by" in facts
    headings = ["", *["people"] * sized, "estimate", "std. error", "sampling", "noise", f"{level} interval"]
    headings += [f"{level} for all"] * several
    headings += ["weight"] * ("weight" in effects[0])
    return Cells([*headings, "p"], [_effect(effect, several, sized) for effect in effects])


def _effect(effect: dict[str, Any], several: bool, sized: bool) -> list[str]:
    error = effect["std_error"]
    total = error["total"]
    return [
        name_of(effect),
        *([f"{max(round(effect['size']), 0):,}"] if sized else []),
        rounded(effect["estimate"], total),
        *(rounded(error[part], error[part]) for part in ("total", "sampling", "noise")),
        span(effect["interval"], total),
        *([span(effect["simultaneous_interval"], total)] if several else []),
        *([f"{effect['weight']:.3f}"] if "weight" in effect else []),
        probability(effect["p_value"]),
    ]


def mean_cells(facts: dict[str, Any]) -> Cells | None:
    """Return the table of the arms' means, None for a result that has none."""
    means = facts.get("means")
    if not means:
        return None
    headings = ["mean of arm", "rows", "estimate", "std. error", f"{percent(facts['level'])} interval"]
    rows = []
    for mean in means:
        total = mean["std_error"]["total"]
        shown = [rounded(mean["estimate"], total), rounded(total, total), span(mean["interval"], total)]
        rows.append([str(mean["arm"]), f"{mean['rows']:,}", *shown])
    return Cells(headings, rows)


_WIDTH = 79  # fits a terminal of 80 columns
_PARTS = ("sampling", "noise")
_LONGEST = 1200  # letters of one public fact


def text_summary(facts: dict[str, Any]) -> str:
    """Return the result as plain text: a table, then the promise and its price in words."""
    rule = "-" * _WIDTH
    lines: list[str] = []
    if facts.get("warning"):
        lines += wrapped(f"*** {facts['warning']} ***")
    if facts.get("caution"):
        lines += wrapped(f"*** {facts['caution']} ***")
    lines += [
        *wrapped(f"Effect of {facts['treatment']} on {facts['outcome']}"),
        *wrapped(f"{lead_sentence(facts)}; {facts['method']}"),
        rule,
        *text_table(effect_cells(facts)),
        rule,
    ]
    means = mean_cells(facts)
    lines += [*text_table(means), rule] if means else []
    return "\n".join([*lines, *summary_items(facts, interval_sentence(facts))])


def lead_sentence(facts: dict[str, Any]) -> str:
    """Return what was estimated, in words: a result's own sentence, or that of its estimand."""
    return str(facts["sentence"]) if "sentence" in facts else Estimand(facts["estimand"]).sentence


def summary_items(facts: dict[str, Any], covers: str) -> list[str]:
    """Return the lines under a table: what intervals cover and what they do not, the promise, the price."""
    spent = Budget.from_dict(facts["spent"])
    lines = _item("Interval", covers)
    for name, note in facts.get("notes", []):
        lines += _item(name, note)
    lines += _item("Details", details_sentence(facts))
    lines += _item("Not covered", "; ".join(facts["not_covered"]))
    lines += _item("Promise", facts["guarantee"]["sentence"])
    lines += _item("Public", "; ".join(map(brief, facts["guarantee"]["public"])))
    lines += _item("Spent", f"{spent} ({'; '.join(name for name, _ in facts['releases'])})")
    lines += _item("Proofs", ", ".join(facts["guarantee"]["pages"]))
    for remark in facts["guarantee"]["remarks"]:
        lines += _item("Remark", remark)
    return lines


def brief(fact: str) -> str:
    """Return a fact for reading: a list of very many covariates is cut, and it says where the whole is."""
    if len(fact) <= _LONGEST:
        return fact
    return f"{fact[: fact.rfind(', ', 0, _LONGEST)]}, ... (in full: guarantee.public)"


def interval_sentence(facts: dict[str, Any]) -> str:
    """Return what the intervals cover, in words."""
    covers = "covers sampling error and privacy noise together"
    if facts.get("interval_of"):
        covers += f", of {facts['interval_of']}: NOT AN INTERVAL FOR THE EFFECT"
    if "simultaneous_interval" in effects_of(facts)[0]:
        covers += f'; those "for all" hold for all {len(facts["effects"])} effects at once'
    if any(effect["std_error"]["sampling"] == 0 for effect in effects_of(facts)):
        covers += (
            "; a sampling error of 0 means that the variance, released with noise, came out at or below zero: "
            "intervals allow for that, on average over the noise, and standard errors do not"
        )
    return covers


def details_sentence(facts: dict[str, Any]) -> str:
    """Return the single figures that go with a result, in words."""
    figures = facts.get("details", {})
    return "; ".join(
        f"{name}: {f'{value:.4g}' if isinstance(value, float) else value}" for name, value in figures.items()
    )


def wrapped(text: str, lead: str = "") -> list[str]:
    """Return the lines of a paragraph; those after the first are indented by the length of `lead`."""
    # Names of files and columns stay whole, so that they can be copied.
    indent = " " * len(lead)
    return wrap(
        text,
        _WIDTH,
        initial_indent=lead,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def text_table(cells: Cells) -> Iterator[str]:
    """Yield the lines of a table whose columns are aligned.

    Where it is too wide, columns stand closer, then the two parts of the standard error are left out
    (all other forms of a result have them), then every name has a line of its own.
    """
    whole = [cells.headings, *cells.rows]
    shown = [place for place, heading in enumerate(cells.headings) if heading not in _PARTS]
    narrow = [[row[place] for place in shown] for row in whole]
    for rows, gap in ((whole, 3), (whole, 2), (narrow, 2)):
        lines = _aligned(rows, gap)
        if max(map(len, lines)) <= _WIDTH:
            yield from lines
            return
    headings, *figures = _aligned([["  ", *row[1:]] for row in narrow], 2)
    yield headings
    for row, line in zip(narrow[1:], figures, strict=True):
        yield f" {row[0]}"
        yield line


def _aligned(rows: list[list[str]], gap: int) -> list[str]:
    widths = [max(map(len, column)) + gap for column in zip(*rows, strict=True)]
    return [
        "".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))[gap - 1 :] for row in rows
    ]


def _item(name: str, text: str) -> list[str]:
    return wrapped(text, f"{name}:".ljust(12) + " ") if text else []
