"""What the R package asks of Python: columns made whole, refusals and rows handed back as plain values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from math import isfinite
from typing import Any

import numpy as np

from counterveil.data import Study
from counterveil.data.cells import duplicated_columns
from counterveil.errors import CounterveilError, refusal
from counterveil.report.measures import ARMS, arm_rows, risk_columns


class Columns(dict[str, Any]):
    """Columns of a data frame; one whose class is unknown is refused where it is asked for."""

    def __init__(self, columns: Mapping[str, Any], refused: Mapping[str, CounterveilError]) -> None:
        super().__init__(columns)
        self._refused = dict(refused)

    def __getitem__(self, name: str) -> Any:
        if name in self._refused:
            raise self._refused[name]
        return super().__getitem__(name)


def columns(names: Sequence[str], read: Sequence[Mapping[str, Any]]) -> Columns:
    """Return the columns of a data frame as R read them.

    Parameters
    ----------
    names : sequence of str
        The name of each column.
    read : sequence of mapping
        For each column its ``kind`` and what goes with it. "number" has ``cells``, the bytes of doubles; "integer64"
        the bytes of doubles whose bits are whole numbers; "text" its ``cells`` and the places of ``missing`` ones,
        counted from 0; "refused" its ``class``, a ``fix`` and how many ``rows``.
    """
    if len(set(names)) < len(names):
        raise duplicated_columns(name for name in names if names.count(name) > 1)
    cells: dict[str, Any] = {}
    refused = {}
    for name, column in zip(names, read, strict=True):
        if column["kind"] == "refused":
            cells[name] = [None] * int(column["rows"])
            refused[name] = refusal("CV-D013r", name=name, kind=column["class"], fix=column["fix"])
        elif column["kind"] == "integer64":
            cells[name] = _integers(column["cells"])
        elif column["kind"] == "text":
            cells[name] = list(column["cells"])
            for place in column["missing"]:
                cells[name][int(place)] = None
        else:
            cells[name] = np.frombuffer(column["cells"], dtype="<f8")
    return Columns(cells, refused)


def _integers(bits: bytes) -> np.ma.MaskedArray[Any, Any]:
    """Return the whole numbers of an integer64, which R stores in the bits of doubles; its NA is the smallest one."""
    values = np.frombuffer(bits, dtype="<i8")
    return np.ma.MaskedArray(values, values == np.iinfo(np.int64).min)


def whole_numbers(bits: bytes) -> int | list[int | None] | None:
    """Return an integer64 as whole numbers, one of them alone where it is one."""
    numbers = _integers(bits).tolist()
    return numbers[0] if len(numbers) == 1 else numbers


def call(function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a function returned, or the facts of its refusal."""
    try:
        return {"value": function(*args, **named)}
    except CounterveilError as error:
        return {"code": error.code, "text": in_r(str(error))}


# Python in the lines of refusals, and the same in R; in this order. A pair of parentheses or brackets holds no other.
_SPELLINGS = (
    (re.compile(r"\b(?:cv|counterveil)\.(?:Range|Categories)\(([^()]*)\)"), r"\1"),
    (re.compile(r"\b(?:cv|counterveil)\.Binary\(\)"), "cv_binary()"),
    (re.compile(r"\b(?:cv|counterveil)\.SeededNoise\("), "cv_seeded("),
    (re.compile(r"\b(?:cv|counterveil)\.(Trial|Observational)\(\)"), lambda found: f'"{found[1].lower()}"'),
    (re.compile(r"\b(?:cv|counterveil)\.Study\("), "cv_study("),
    (re.compile(r"\b(?:cv|counterveil)\.([a-z_]+)\("), r"cv_\1("),
    # Parts of a study are lists: treatment = list(control = 0).
    (re.compile(r"\b(?:cv|counterveil)\.[A-Z]\w*\("), "list("),
    (re.compile(r"\bresult\.interval\(\)"), "confint(result)"),
    (re.compile(r"\bresult\.([a-z_]+)\(\)"), r"cv_\1(result)"),
    (re.compile(r"\bTrue\b"), "TRUE"),
    (re.compile(r"\bFalse\b"), "FALSE"),
    (re.compile(r"\bNone\b"), "NULL"),
    # Two bounds, labels, then names with what is said of them.
    (re.compile(r"(?<![\w)])\(((?:[-\w.]+), (?:[-\w.]+))\)"), r"c(\1)"),
    (
        re.compile(r"""(?<![\w)])\[((?:"[^"]*"|'[^']*'|[-\w.]+)(?:, (?:"[^"]*"|'[^']*'|[-\w.]+))*)\]"""),
        r"c(\1)",
    ),
    (re.compile(r"\{((?:\"[^\"]+\": [^{}]+)+)\}"), r"list(\1)"),
    (re.compile(r"\"([A-Za-z.][\w.]*)\": "), r"\1 = "),
)


def in_r(text: str) -> str:
    """Return the lines of a refusal with calls, bounds, labels and truth values as R writes them.

    The first line is prose and stays, and so does the command of the last one.
    """
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if not line.startswith(("  expected:", "  to fix:")):
            continue
        for pattern, ours in _SPELLINGS:
            line = pattern.sub(ours, line)  # noqa: PLW2901
        lines[place] = line
    return "\n".join(lines)


def design_arguments(function: Callable[..., Any], names: Sequence[str]) -> list[str]:
    """Return those of the names that declare a study, and that a question does not take itself."""
    own = set(signature(function).parameters)
    return [name for name in names if name not in own and name in signature(Study).parameters]


def study(
    treatment_column: str,
    outcome_column: str,
    ends: Sequence[Any] | None = None,
    covariates: Mapping[str, Any] | None = None,
    **parts: Any,
) -> Study:
    """Return the study of a formula; parts are tables of a study file without the columns that the formula names."""
    told = dict(parts.pop("outcome", {}))
    key = "time" if "event" in told else "numerator" if "denominator" in told else "column"
    document = {
        "treatment": {"column": treatment_column, **parts.pop("treatment", {})},
        "outcome": {key: outcome_column, **({} if ends is None else {"range": ends}), **told},
        "covariates": {name: domain.to_dict() for name, domain in (covariates or {}).items()},
    }
    return Study.from_dict(document | parts)


def rows(result: Any) -> str:
    """Return the rows of a result as JSON; numbers that are none are null."""
    return table(result.tidy())


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


def effect(name: str, one: Any) -> str:
    """Return one effect as the row of a data frame, in JSON."""
    return json.dumps([{"contrast": name} | {key: _plain(cell) for key, cell in one.row().items()}])


def table(listed: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as JSON."""
    return json.dumps([{name: _plain(cell) for name, cell in row.items()} for row in listed])


def curves(result: Any) -> str:
    """Return what a plot of survival draws, as JSON: both arms' curves, numbers at risk, and the words on the axes.

    The time has the name of its column, and arms have the labels that the study gives them; results that were read
    from a file know neither.
    """
    facts = result.report_facts()
    study = getattr(result.repeat, "study", None)
    names = {arm: arm if study is None else f"{study.treatment} = {getattr(study, arm)}" for arm in ARMS}
    if study is not None and study.control is None:
        names["control"] = f"{study.treatment} other than {study.treated}"
    drawn = [row | {"arm": names[arm]} for arm in ARMS for row in arm_rows(facts, arm)]
    risk = [
        {"time": time, "label": "\n".join([f"{time:g}", *(counts[arm] for arm in ARMS)])}
        for time, counts in risk_columns(facts)
    ]
    return json.dumps(
        {
            "curves": [{name: _plain(cell) for name, cell in row.items()} for row in drawn],
            "risk": risk,
            "arms": [names[arm] for arm in ARMS],
            "time": "time" if study is None else study.outcome,
            "event": "the event" if study is None else study.event.column,
            "level": facts["level"],
            "spent": str(result.spent),
            "simulated": result.simulated,
        }
    )


def _plain(cell: Any) -> Any:
    value = cell.item() if hasattr(cell, "item") else cell
    return None if isinstance(value, float) and not isfinite(value) else value


def dict_has(found: Mapping[str, Any], key: str) -> bool:
    """Return whether a dictionary has a key."""
    return key in found
