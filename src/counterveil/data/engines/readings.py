"""Keys in a second query: written so that all rows of one stratum have one value, whatever they look like.

A label may stand in the data in several spellings, and a gap may be filled with it; the first query found them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterveil.data.cells import Coded, Column, Numbers
from counterveil.data.encoding import gaps
from counterveil.data.engines.coding import Key
from counterveil.data.engines.expressions import INFINITY, literal
from counterveil.data.engines.fitting import Fitted, fill_bin, fill_steps
from counterveil.data.engines.grouping import Groups, Integers, integers
from counterveil.data.layout import Layout
from counterveil.data.missing import Drop, Fill
from counterveil.data.sources.kinds import Kind
from counterveil.data.study import Study

# The code of a cell that the first query did not find.
_UNSEEN = -1


@dataclass(frozen=True, slots=True)
class Reading:
    """How a key is written so that rows of one stratum have one value, and how that value is read back."""

    key: Key
    sql: str
    kind: Kind
    codes: dict[object, int] | None

    def decode(self, column: Column) -> Integers:
        """Return the codes of what a query gave back."""
        if self.codes is None:
            return integers({"": column}, "")
        codes = [self.codes.get(cell, _UNSEEN) for cell in cells_of(column)]
        return np.array(codes, dtype=np.int64)


def reading_of(key: Key, groups: Groups, fitted: Fitted, study: Study, layout: Layout) -> Reading:
    """Return how a key that makes strata, or the treatment, is written and read back."""
    if key.labels is None:
        bin_of_gap = fill_bin(key.name, study, layout)
        return Reading(key, f"COALESCE({key.alias}, {bin_of_gap})", Kind.INTEGER, None)
    kept = groups.cells[key.name].keep(fitted.kept)
    found = fitted.treated.astype(np.int64) if key.name == study.treatment else fitted.codes[key.name]
    # Equal cells have equal codes, so that a dictionary holds each of them once.
    codes = dict(zip(cells_of(kept), found.tolist(), strict=True))
    gap = codes.pop(None, None)
    # Not for floats, which have two zeros.
    if gap is None and len(set(codes.values())) == len(codes) and key.kind is not Kind.FLOAT:
        return Reading(key, key.alias, key.kind, codes)
    cases = " ".join(f"WHEN {key.alias} = {literal(cell)} THEN {code}" for cell, code in codes.items())
    rest = 0 if gap is None else gap
    return Reading(key, f"CASE {cases} ELSE {rest} END" if cases else str(rest), Kind.INTEGER, None)


def cells_of(column: Column) -> list[object]:
    """Return the cells of a column as Python has them, None where there is nothing."""
    if isinstance(column, Numbers):
        held = column.values.tolist()
        return [None if gap else cell for cell, gap in zip(held, column.missing.tolist(), strict=True)]
    return [column.cells[code] if code >= 0 else None for code in column.codes.tolist()]


def kept(groups: Groups, study: Study) -> str:
    """Return SQL that says whether a rule keeps a row."""
    tests = ["q IS NOT NULL"] if isinstance(study.missing.get(study.outcome), Drop) else []
    for key in groups.keys:
        if not isinstance(study.missing.get(key.name), Drop):
            continue
        tests.append(f"{key.alias} IS NOT NULL")
        column, cells = groups.columns[key.name], groups.cells[key.name]
        if key.kind is Kind.FLOAT:
            tests.append(f"{key.alias} <= {INFINITY}")
        elif isinstance(cells, Coded):
            hole = gaps(column, key.labels)
            blank = {cell for cell in cells_of(cells.keep(hole)) if cell is not None}
            tests += [f"{key.alias} <> {literal(cell)}" for cell in sorted(blank, key=str)]
    return " AND ".join(tests) or "TRUE"


def outcome(study: Study) -> str:
    """Return SQL for the steps of a row's outcome, filled where the study says so."""
    filled = isinstance(study.missing.get(study.outcome), Fill)
    return f"COALESCE(q, {fill_steps(study)})" if filled else "q"
