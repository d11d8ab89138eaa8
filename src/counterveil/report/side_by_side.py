"""Several results as one table: a column each, rows of effects, and below them what they cost and protect."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from counterveil.privacy import Adjacency, Budget, Guarantee, Protected, show
from counterveil.report.document import Cells, Item, View
from counterveil.report.numbers import Facts, few_words, percent, rounded, span
from counterveil.report.view import first_lines, guarantee_line

_WORDS = 4  # of a method in a cell


def effects_of(facts: Facts) -> dict[str, Facts]:
    """Return the effects or coefficients of a result by the names of their rows; one effect is its treatment's."""
    found: list[Facts] = facts.get("coefficients") or facts["effects"]
    if len(found) != 1 or "estimand" not in facts:
        return {str(one["name"]): one for one in found}
    measure = facts.get("measure", "difference")
    own = "" if measure == "difference" else f", {measure.replace('_', ' ')}"
    return {f"{facts['treatment']}{own}": found[0]}


def side_by_side(results: Sequence[Facts], names: Sequence[str], full: bool = False) -> View:
    """Return the table, with the warnings of every column above it."""
    columns = [effects_of(facts) for facts in results]
    rows = []
    for name in dict.fromkeys(name for column in columns for name in column):
        held = [column.get(name) for column in columns]
        rows += [[name, *map(_estimate, held)], ["", *map(_interval, held)]]
    below: list[tuple[str, list[Any]]] = [
        ("outcome", [facts.get("response") or facts["outcome"] for facts in results]),
        ("estimand", [facts.get("estimand", "") for facts in results]),
        ("n", [_count(facts) for facts in results]),
        ("epsilon", [show(_spent(facts).epsilon) for facts in results]),
        ("delta", [show(_spent(facts).delta) for facts in results]),
        ("protects", [_protected(facts) for facts in results]),
        ("method", [few_words(str(facts.get("method", "")), _WORDS) for facts in results]),
        ("interval", [percent(facts["level"]) for facts in results]),
    ]
    effects = len(rows)
    rows += [[name, *cells] for name, cells in below if any(cells)]
    items: list[Item] = [("Cells", _READING)]
    if full:
        items += [(name, _source(facts)) for name, facts in zip(names, results, strict=True)]
    cells = Cells(["effect", *names], rows, "", effects)
    return View(_warnings(results, names), _TITLE, "", [cells], items, note=_READING)


def _source(facts: Facts) -> str:
    """Return what a column is of, by which method, and its guarantee."""
    cause = facts.get("received") or facts.get("treatment")
    what = facts.get("formula") or facts.get("title") or f"effect of {cause} on {facts['outcome']}"
    return "; ".join(filter(None, (what, facts.get("method"), guarantee_line(facts))))


def drawn_side_by_side(results: Sequence[Facts], names: Sequence[str]) -> Facts:
    """Return all effects for one forest; in their standard errors where outcomes or measures differ."""
    kinds = {
        (facts.get("response") or facts["outcome"], facts.get("measure", "difference")) for facts in results
    }
    apart = len(kinds) > 1 or any("coefficients" in facts for facts in results)
    effects = []
    for facts, column in zip(results, names, strict=True):
        for name, one in effects_of(facts).items():
            null, error = one.get("null") or 0.0, one["std_error"]["total"]
            said = f"{column} {name}" + f": {_estimate(one)}" * apart
            ends = {end: one["interval"][end] for end in ("low", "high")}
            scaled = {
                key: _scaled(value, null, error)
                for key, value in (ends | {"estimate": one["estimate"]}).items()
            }
            own = {"estimate": scaled.pop("estimate"), "interval": scaled, "null": 0.0}
            effects.append((own if apart else one | {"interval": ends}) | {"name": said})
    kept = [{key: value for key, value in one.items() if key != "simultaneous_interval"} for one in effects]
    axis = {"axis": "distance from no effect, in standard errors"} if apart else {}
    return results[0] | axis | {"title": _TITLE, "kind": "", "effects": kept}


def _scaled(value: float | None, null: float, error: float | None) -> float | None:
    found = None if value is None or not error else (value - null) / error
    return found if found is not None and isfinite(found) else None


_TITLE = "Results side by side"
_READING = (
    "Estimate (standard error), and below it the interval; both cover sampling error and privacy noise. What columns "
    "cost together is in their ledger."
)


def _warnings(results: Sequence[Facts], names: Sequence[str]) -> list[str]:
    said: dict[str, list[str]] = {}
    for facts, name in zip(results, names, strict=True):
        for text in first_lines(facts):
            said.setdefault(text, []).append(name)
    return [
        text if len(whose) == len(names) else f"{', '.join(whose)}: {text}" for text, whose in said.items()
    ]


def _estimate(effect: Facts | None) -> str:
    if effect is None:
        return ""
    error = effect["std_error"]["total"]
    return f"{rounded(effect['estimate'], error)} ({rounded(error, error)})"


def _interval(effect: Facts | None) -> str:
    return "" if effect is None else span(effect["interval"], effect["std_error"]["total"])


def _count(facts: Facts) -> str:
    rows = facts.get("rows") or facts.get("details", {}).get("rows")
    return f"{rows:,}" if isinstance(rows, int) else ""


def _protected(facts: Facts) -> str:
    adjacency = Adjacency(facts["guarantee"]["adjacency"])
    whose = "" if adjacency.whose is Protected.ROW else f", whole {adjacency.whose.value}"
    return f"{Guarantee.from_dict(facts['guarantee']).unit.value}{whose}"


def _spent(facts: Facts) -> Budget:
    return Budget.from_dict(facts["spent"])
