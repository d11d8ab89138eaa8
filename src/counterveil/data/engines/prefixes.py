"""Prefix sums in an engine: each arm's first rows in every stratum, without sorting all rows.

Rows are counted in blocks of the public order; where the cut of a stratum falls is known from these counts, and
only the rows of that one block are ranked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from counterveil.data.engines.coding import Coding
from counterveil.data.engines.expressions import double
from counterveil.data.engines.fitting import Fitted, places
from counterveil.data.engines.grouping import Groups, Integers, integers
from counterveil.data.engines.opening import Engine
from counterveil.data.engines.readings import Reading, kept, outcome, reading_of
from counterveil.data.layout import Layout
from counterveil.data.sources.kinds import Kind
from counterveil.data.study import Study
from counterveil.data.wrong_data import changed_table


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
