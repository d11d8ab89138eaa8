"""Prefix sums in an engine: each arm's first rows in every stratum, without sorting all rows.

Rows are counted in blocks of the public order; where the cut of a stratum falls is known from these counts, and
only the rows of that one block are ranked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from counterveil.data.cells import Coded, Column, Numbers
from counterveil.data.encoding import gaps
from counterveil.data.engines.fitting import Fitted, fill_bin, fill_steps, places
from counterveil.data.engines.grouping import INFINITY, Coding, Groups, Key, double, integers, literal
from counterveil.data.engines.opening import Engine
from counterveil.data.labels import Drop, Fill
from counterveil.data.layout import Layout
from counterveil.data.sources.relations import Kind
from counterveil.data.study import Study
from counterveil.data.wrong_data import changed_table
from counterveil.numerics.arrays import Integers

# Keys in a second query: written so that all rows of one stratum have one value, whatever they look like.
#
# A label may stand in the data in several spellings, and a gap may be filled with it; the first query found them all.


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


@dataclass(frozen=True, slots=True)
class Order:
    """The public order of the rows: its SQL, and the column's name and kind where it is a column."""

    sql: str
    name: str | None = None
    kind: Kind | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """Prefix sums, one for each stratum and arm that has one: its place, its arm and the sum."""

    place: Integers
    treated: Integers
    total: Integers


def prefixes(
    engine: Engine, rows: Coding, groups: Groups, fitted: Fitted, study: Study, layout: Layout, order: Order
) -> Prefixes:
    """Return the prefix sums of the strata that `groups` found; one more query."""
    names = (study.treatment, *layout.names)
    keys = [key for key in groups.keys if key.name in names]
    readings = [reading_of(key, groups, fitted, study, layout) for key in keys]
    source = _rows(rows, readings, groups, fitted, study, order)
    arm = next(reading.key.alias for reading in readings if reading.key.name == study.treatment)
    strata = [reading.key.alias for reading in readings if reading.key.alias != arm]
    text = _text(source, strata, arm, len(fitted.rows))
    # In the order of the query's columns: the strata, then the arm.
    kinds = {
        reading.key.alias: reading.kind for reading in sorted(readings, key=lambda r: r.key.alias == arm)
    }
    kinds |= dict.fromkeys(("own", "total"), Kind.INTEGER)
    found = engine.ask(text, kinds)
    codes = {reading.key.name: reading.decode(found[reading.key.alias]) for reading in readings}
    if any((code < 0).any() for code in codes.values()):
        # A label that the first query did not see.
        raise changed_table()
    treated = codes[study.treatment]
    place = places(codes, layout, len(treated))
    _check_sizes(place, treated, integers(found, "own"), fitted)
    return Prefixes(place, treated, integers(found, "total"))


def _rows(
    rows: Coding, readings: list[Reading], groups: Groups, fitted: Fitted, study: Study, order: Order
) -> str:
    """Return the query for every kept row: its keys, its steps, its place in the order, its block."""
    keys = ", ".join(f"{reading.sql} AS {reading.key.alias}" for reading in readings)
    return (
        f"(SELECT {keys}, 0 AS everybody, {outcome(study)} AS q, ord, {_block(groups, fitted, order)} AS block "
        f"FROM ({rows.text}) AS coded WHERE {kept(groups, study)})"
    )


def _block(groups: Groups, fitted: Fitted, order: Order) -> str:
    """Return SQL for the block of a row: any map that never descends along the order will do."""
    if order.name is None:
        first, last = 1, int(groups.rows.sum())
    elif order.kind is Kind.INTEGER:
        first, last = int(groups.extremes["first"].min()), int(groups.extremes["last"].max())
    else:
        return "0"
    # As many blocks to count, over all strata, as there are rows left to rank.
    blocks = math.isqrt(max(int(fitted.rows.sum()) // len(fitted.rows), 1))
    width = max((last - first) // blocks + 1, 1)
    return f"CAST(FLOOR((CAST(ord AS DOUBLE) - {double(float(first))}) / {double(float(width))}) AS BIGINT)"


def _text(rows: str, strata: list[str], arm: str, most: int) -> str:
    """Return the query for the prefix sums; `most` is a number of cells that is not too small."""
    wanted = ", ".join([*strata, arm])
    strata = strata or ["everybody"]
    stratum = ", ".join(strata)
    cell = f"{stratum}, {arm}"
    counted = (
        f"SELECT {cell}, block, CAST(COUNT(*) AS BIGINT) AS n, CAST(SUM(q) AS BIGINT) AS s "
        f"FROM {rows} AS rows_1 GROUP BY {cell}, block"
    )
    running = (
        f"SELECT {cell}, block, n, s, "
        f"CAST(SUM(n) OVER (PARTITION BY {cell} ORDER BY block) AS BIGINT) AS upto, "
        f"CAST(SUM(s) OVER (PARTITION BY {cell} ORDER BY block) AS BIGINT) AS s_upto, "
        f"CAST(SUM(n) OVER (PARTITION BY {cell}) AS BIGINT) AS own, "
        f"CAST(SUM(n) OVER (PARTITION BY {stratum}) AS BIGINT) AS both_arms FROM ({counted}) AS counted"
    )
    # The cut: the other arm's size modulo the arm's own. The limit leaves nothing out: it tells the planner how
    # small this side of the join is, which would otherwise put all rows into a hash table.
    cuts = (
        f"SELECT {cell}, block, own, s_upto - s AS before, (both_arms - own) % own - (upto - n) AS need "
        f"FROM ({running}) AS running "
        "WHERE (both_arms - own) % own > upto - n AND (both_arms - own) % own <= upto "
        f"LIMIT {most}"
    )
    same = " AND ".join(f"r.{key} = c.{key}" for key in [*strata, arm, "block"])
    listed = ", ".join(f"r.{key} AS {key}" for key in [*strata, arm])
    partition = ", ".join(f"r.{key}" for key in [*strata, arm])
    ranked = (
        f"SELECT {listed}, r.q AS q, c.own AS own, c.before AS before, c.need AS need, "
        f"ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY r.ord) AS rank_in_block "
        f"FROM {rows} AS r JOIN ({cuts}) AS c ON {same}"
    )
    inside = "CASE WHEN rank_in_block <= need THEN {} END"
    return (
        f"SELECT {wanted}, MAX(own) AS own, CAST(MAX(before) + SUM({inside.format('q')}) AS BIGINT) AS total "
        f"FROM ({ranked}) AS ranked GROUP BY {cell}"
    )


def _check_sizes(place: Integers, treated: Integers, own: Integers, fitted: Fitted) -> None:
    """Raise CV-D056 where the second query saw other arms than the first."""
    cells, inverse = np.unique(fitted.place * 2 + fitted.treated, return_inverse=True)
    sizes = np.zeros(len(cells), dtype=np.int64)
    np.add.at(sizes, inverse, fitted.rows)
    found = place * 2 + treated
    at = np.minimum(np.searchsorted(cells, found), len(cells) - 1)
    if (cells[at] != found).any() or (sizes[at] != own).any():
        raise changed_table()
