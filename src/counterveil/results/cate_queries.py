"""People to ask about, read from any table of covariates: public numbers, inside the declared bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study
from counterveil.data.encoding import clamp, codes, gaps, numbers
from counterveil.data.labels import Fill, Label, LabelIndex
from counterveil.data.sources import read
from counterveil.errors import ParameterError
from counterveil.privacy import exact

Floats = NDArray[np.float64]
Query = dict[str, float | Label]

# Characters of one answer beside its query, at most, and those of all that one request may have.
ANSWER_LENGTH, LONGEST_ANSWERS = 100, 16 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Public points at which effects are asked for.

    `columns` maps every covariate to float64 numbers inside its bounds, or to the codes of its labels;
    `rows` are the same points as people write them.
    """

    columns: Mapping[str, Floats]
    rows: tuple[Query, ...]

    def __len__(self) -> int:
        return len(self.rows)


def refuse_long_answers(queries: Queries) -> None:
    """Raise CV-P643 where the answers would be longer than a ledger keeps; a released function keeps no queries."""
    length = len(json.dumps(queries.rows, default=str)) + ANSWER_LENGTH * len(queries.rows)
    if length > LONGEST_ANSWERS:
        raise ParameterError(
            "CV-P643",
            "there are too many queries for one request",
            expected=f"queries whose answers take at most {LONGEST_ANSWERS // 2**20} MiB in the ledger",
            got=f"{len(queries.rows)} queries, about {length // 2**20} MiB",
            fix="ask about fewer people, or leave method out: a released function answers any number of queries",
        )


def read_queries(source: Any, study: Study) -> Queries:
    """Return the points of a table of covariates, clamped to the study's bounds."""
    columns = read_columns(source, study)
    shown = {name: _as_written(values, name, study) for name, values in columns.items()}
    rows = tuple(dict(zip(shown, row, strict=True)) for row in zip(*shown.values(), strict=True))
    return Queries(columns, rows)


def reference_queries(study: Study, most: int | None = None) -> tuple[tuple[str, ...], Queries]:
    """Return named points: the middle of every range and the first of all labels, then each covariate moved alone."""
    middle: Query = {
        name: sum(domain.floats()) / 2 if isinstance(domain, Range) else domain.labels[0]
        for name, domain in study.covariates.items()
    }
    names, rows = ["centre"], [middle]
    for name, domain in study.covariates.items():
        for value in domain.floats() if isinstance(domain, Range) else domain.labels[1:]:
            names.append(f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}")
            rows.append(middle | {name: value})
    return tuple(names[:most]), read_queries(rows[:most], study)


def read_columns(source: Any, study: Study) -> dict[str, Floats]:
    """Return the study's covariates from a frame, a mapping of columns, a list of rows or an (n, p) array.

    Numbers are clamped to their bounds, labels become codes. A matrix has the covariates in the study's order.
    """
    names = tuple(study.covariates)
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] == len(names):
        source = dict(zip(names, source.T, strict=True))
    elif isinstance(source, Sequence) and not isinstance(source, str):
        source = {name: [_cell(row, name) for row in source] for name in names}
    elif isinstance(source, Mapping):
        quick = _numbers_only(source, study)
        if quick is not None:
            return quick
        # One person may be written as a mapping of single values.
        source = {
            name: [value] if isinstance(value, str) or not hasattr(value, "__len__") else value
            for name, value in source.items()
        }
    numeric = frozenset(name for name, domain in study.covariates.items() if isinstance(domain, Range))
    found = read(source, names, numeric)
    return {name: _column(found[name], name, study) for name in names}


def _numbers_only(source: Mapping[Any, Any], study: Study) -> dict[str, Floats] | None:
    """Return the columns where all are plain arrays of finite numbers: the common case, and the fast one."""
    found: dict[str, Floats] = {}
    rows = -1
    for name, domain in study.covariates.items():
        values = source.get(name)
        if not isinstance(domain, Range) or not isinstance(values, np.ndarray) or values.ndim != 1:
            return None
        if values.dtype.kind not in "fiu" or rows not in (-1, len(values)):
            return None
        doubles = values.astype(np.float64)
        if np.isnan(doubles).any():
            return None
        found[name], rows = clamp(doubles, domain), len(values)
    return found or None


def _cell(row: Any, name: str) -> Any:
    if isinstance(row, Mapping) and name in row:
        return row[name]
    raise ParameterError(
        "CV-P522",
        "a row is missing a covariate",
        expected=f"rows as mappings that hold {name!r}",
        got=f"a row of type {type(row).__name__} without it",
        fix="pass a frame, a mapping of columns, or a list of dictionaries with every covariate of the study",
    )


def _column(column: Any, name: str, study: Study) -> Floats:
    domain, rule = study.covariates[name], study.missing.get(name)
    index = None if isinstance(domain, Range) else LabelIndex(domain.labels)
    hole = gaps(column, index)
    if hole.any() and not isinstance(rule, Fill):
        raise _not_known(name, "a value in every row", "rows without one")
    if isinstance(domain, Range):
        fill = float(exact(rule.value, "Fill")) if isinstance(rule, Fill) else 0.0
        return clamp(numbers(column, hole, fill, name), domain)
    assert index is not None
    found = codes(column, hole, index, rule)
    if (found < 0).any():
        raise _not_known(name, f"one of {list(domain.labels)!r}", "another label")
    return found.astype(np.float64)


def _not_known(name: str, expected: str, got: str) -> ParameterError:
    return ParameterError(
        "CV-P524",
        f"column {name!r}: effects cannot be evaluated for these rows",
        expected=expected,
        got=got,
        fix="ask about values that the study declares",
    )


def _as_written(values: Floats, name: str, study: Study) -> list[float | Label]:
    domain = study.covariates[name]
    if isinstance(domain, Range):
        return [float(value) for value in values]
    return [domain.labels[int(code)] for code in values]
