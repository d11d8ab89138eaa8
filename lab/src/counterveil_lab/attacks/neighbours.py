"""Data sets that differ in one unit: an outcome, a pair, a record, a person with all rows, a cluster with all rows.

A pool holds data sets of which every two are neighbours, so that all pairs of it are tried. What is not private at
the level of a question is the same in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from counterveil.data import Study

Columns = dict[str, Any]
Pool = list[Columns]
Base = Callable[[int, int], Columns]

LOW, HIGH = -3.0, 5.0
# The ends of every private column: extremes are where bounds are attained.
ENDS: Mapping[str, tuple[Any, ...]] = {
    "t": (0, 1),
    "y": (LOW, HIGH),
    "a": (0.0, 1.0),
    "b": (0, 1),
    "c": ("p", "r"),
    "before": (LOW, HIGH),
    "earlier": (LOW, HIGH),
    "sessions": (0.0, 1.0),
    "school": (0, 1),
}
# Columns that move together, so that a pool stays small.
_TIED = ("a", "b", "c", "before", "earlier", "sessions")


def people(rows: int, kind: int) -> Columns:
    """Return made people: usual ones for kind 0, those with every outcome at an end for 1, all alike for 2."""
    draw = np.random.default_rng(rows)
    a, b, c = draw.random(rows), draw.integers(0, 2, rows), draw.integers(0, 3, rows)
    t = np.arange(rows) % 2
    y = np.clip(1 + a + t + draw.normal(0, 1, rows), LOW, HIGH)
    if kind == 1:
        y = np.where(draw.random(rows) < 0.5, LOW, HIGH)
    elif kind == 2:
        a, b, c, y = np.full(rows, 0.25), np.zeros(rows, int), np.zeros(rows, int), np.ones(rows)
    schools = max(min(rows // 4, 10), 1)
    return {
        "t": t,
        "y": y,
        "a": a,
        "b": b,
        "c": np.array(["p", "q", "r"])[c],
        "before": np.clip(a + draw.normal(0, 1, rows), LOW, HIGH),
        "earlier": np.clip(draw.normal(0, 1, rows), LOW, HIGH),
        "sessions": np.clip(a, 0.1, 1.0),
        # Arms alternate in pairs, so that every school has both.
        "school": (np.arange(rows) // 2) % schools,
    }


def narrow(rows: int, kind: int) -> Columns:  # noqa: ARG001 - there is but one
    """Return usual people whose outcomes lie in a small part of their range, to which a search clamps them."""
    found = people(rows, 0)
    return found | {"y": 1 + (found["y"] - 1) / 8}


def several_arms(rows: int, kind: int) -> Columns:
    """Return made people in three arms by turns."""
    return people(rows, kind) | {"t": np.arange(rows) % 3}


def schools_assigned(rows: int, kind: int) -> Columns:
    """Return made people of whom whole schools are in one arm."""
    found = people(rows, kind)
    return found | {"t": found["school"] % 2}


def pairs_of_pupils(rows: int, kind: int) -> Columns:
    """Return made people in schools of two, which are in the arms by turns."""
    school = np.arange(rows) // 2
    return people(rows, kind) | {"school": school, "t": school % 2}


def lone_controls(rows: int, kind: int) -> Columns:  # noqa: ARG001 - there is but one kind
    """Return five people: whoever is in row 0 has one control at each end, with opposite outcomes."""
    return people(5, 0) | {
        "t": np.array([1, 0, 0, 1, 0]),
        "a": np.array([0.0, 0.0, 1.0, 0.5, 0.5]),
        "y": np.array([HIGH, LOW, HIGH, LOW, LOW]),
    }


def row_pools(names: Sequence[str], columns: Columns, places: Sequence[int]) -> Iterator[Pool]:
    """Yield, for each place, the data sets in which these columns of that row stand at the ends of their ranges."""
    for place in places:
        yield [_with(columns, place, values) for values in _corners(names)]


def group_pools(
    study: Study, columns: Columns, places: Sequence[int], unit: str, outcomes: bool
) -> Iterator[Pool]:
    """Yield, for each person or cluster, the data sets in which all of its rows are one of the extreme records.

    At outcome level the rows keep what is public and their outcomes move together; else a person may have one row more.
    """
    names = study.outcomes if outcomes else tuple(name for name in study.columns)
    for place in places:
        own = np.flatnonzero(columns[unit] == columns[unit][place])
        pool = [_with(columns, own, values) for values in _corners(names)]
        yield pool if outcomes else [*pool, _one_more(pool[0], int(own[-1]))]


# Cells that a reader may take for a number that is none, or for nothing.
SPELLINGS = ("0.5", "NAN", "NaN ", "-nan", "\u00a0nan", "nan(1)", "inf", "", "1e999", "0x1p3", "1_0", "٣")


def spelled_pools(study: Study, columns: Columns, places: Sequence[int]) -> Iterator[Pool]:
    """Yield, for each place, the data as text in which that row is extreme, or has a covariate of an odd spelling."""
    texts = {name: columns[name].astype(str).astype(object) for name in study.read_columns}
    for place in places:
        extreme = [{name: str(value) for name, value in one.items()} for one in _corners(study.read_columns)]
        odd = [{"a": cell} for cell in SPELLINGS]
        yield [_with(texts, place, values) for values in (*extreme[::3], *odd)]


def _corners(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the extreme values of the columns; covariates move together, from one end to the other."""
    tied = [name for name in names if name in _TIED]
    free = [name for name in names if name not in _TIED and name in ENDS]
    ends = [[dict.fromkeys([])] if not tied else [{name: ENDS[name][end] for name in tied} for end in (0, 1)]]
    for values in product(*([{name: end} for end in ENDS[name]] for name in free), *ends):
        yield {name: value for one in values for name, value in one.items()}


def _with(columns: Columns, places: Any, values: Mapping[str, Any]) -> Columns:
    """Return the data with these rows changed."""
    changed = {}
    for name, value in values.items():
        column = columns[name].copy()
        column[places] = value
        changed[name] = column
    return columns | changed


def _one_more(columns: Columns, place: int) -> Columns:
    """Return the data with one row twice."""
    return {name: np.insert(column, place, column[place]) for name, column in columns.items()}
