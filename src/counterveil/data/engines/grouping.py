"""One group-by over the coded rows, and what it found: rows of equal keys, counted and summed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.data.cells import Column, Numbers
from counterveil.data.engines.coding import Coding, Key
from counterveil.data.engines.opening import Engine
from counterveil.data.sources.kinds import Kind
from counterveil.data.sources.relations import as_decimals

Integers = NDArray[np.int64]

# A result of this many groups still fits beside anything else in memory.
MOST_GROUPS = 10**7
# Squares of steps reach 2^48, and a sum of them does not fit 64 bits: it is taken in two limbs.
LIMB_BITS = 24
_LIMB_MASK = 2**LIMB_BITS - 1


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of rows with equal keys.

    `cells` holds the key of each group as the engine gave it, `columns` the same as the study compares it. `held`
    counts the outcomes that are numbers, `wrong` those that are other text; the rest of `rows` are gaps. The sum of
    squares of the steps is high * 2^LIMB_BITS + low.
    """

    keys: tuple[Key, ...]
    cells: dict[str, Column]
    columns: dict[str, Column]
    rows: Integers
    held: Integers
    wrong: Integers
    total: Integers
    high: Integers
    low: Integers
    extremes: dict[str, Integers]

    @property
    def cut_off(self) -> bool:
        """Whether there were more groups than were fetched."""
        return len(self.rows) > MOST_GROUPS


def grouped(engine: Engine, rows: Coding, order: Kind | None) -> Groups:
    """Return the groups of the coded rows; `order` is the kind of the column that orders them, if any."""
    aliases = [key.alias for key in rows.keys]
    parts = {
        "n": "COUNT(*)",
        "held": "COUNT(q)",
        "flaws": "COUNT(CASE WHEN wrong THEN 1 END)" if rows.flawed else "0",
        "total": "CAST(SUM(q) AS BIGINT)",
    }
    parts |= _squares(engine.native) | _extremes(order)
    found = engine.ask(
        f"SELECT {', '.join([*aliases, *(f'{sql} AS {name}' for name, sql in parts.items())])} "
        f"FROM ({rows.text}) AS coded GROUP BY {', '.join(aliases)} LIMIT {MOST_GROUPS + 1}",
        {key.alias: key.kind for key in rows.keys} | dict.fromkeys(parts, Kind.INTEGER),
    )
    cells = {key.name: found[key.alias] for key in rows.keys}
    columns = {key.name: as_decimals(cells[key.name]) if key.exact else cells[key.name] for key in rows.keys}
    sums = {name: integers(found, name) for name in parts}
    return Groups(
        keys=rows.keys,
        cells=cells,
        columns=columns,
        rows=sums["n"],
        held=sums["held"],
        wrong=sums["flaws"],
        total=sums["total"],
        high=sums["high"],
        low=sums["low"],
        extremes={name: sums[name] for name in _extremes(order)},
    )


def integers(found: Mapping[str, Column], name: str) -> Integers:
    """Return a column of integers; NULL, the sum of nothing, is 0."""
    column = found[name]
    if isinstance(column, Numbers):
        return np.where(column.missing, 0, column.values).astype(np.int64)
    # A column without a single value may come back without a type.
    return np.zeros(len(column), dtype=np.int64)


def _squares(native: bool) -> dict[str, str]:
    # DuckDB sums in 128 bits, so the sum can be split after it was taken instead of before.
    forms = ("SUM(q * q) >> {}", "SUM(q * q) & {}") if native else ("SUM((q * q) >> {})", "SUM((q * q) & {})")
    return {
        "high": f"CAST({forms[0].format(LIMB_BITS)} AS BIGINT)",
        "low": f"CAST({forms[1].format(_LIMB_MASK)} AS BIGINT)",
    }


def _extremes(order: Kind | None) -> dict[str, str]:
    return {"first": "MIN(ord)", "last": "MAX(ord)"} if order is Kind.INTEGER else {}
