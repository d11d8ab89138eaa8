"""Strata of a table or a source: counts, sums and sums of squares by stratum and arm.

Rows in memory are counted with numpy; a file or a database is aggregated in one query, and no row of it reaches Python.
Both give the same integers.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from counterveil.data.batches import StreamedRows, rows_of_source
from counterveil.data.cells import too_many_groups
from counterveil.data.domains import Range
from counterveil.data.engines import (
    LIMB_BITS,
    MOST_GROUPS,
    Fitted,
    coding,
    columns_read,
    fit,
    grouped,
    integers,
)
from counterveil.data.layout import Layout
from counterveil.data.passes import Sums
from counterveil.data.silencing import silence
from counterveil.data.sources.dispatch import ROWS, Engine, opened
from counterveil.data.sources.relations import Kind
from counterveil.data.spool import SpooledRows
from counterveil.data.study import Study
from counterveil.data.table import Backend, Table, joined_tables, refuse_clusters
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.strata import Strata

_CHUNK = 2**22
# Below this many strata a plain array holds them all, occupied or not.
_DENSE = 2**16
_LIMB_MASK = 2**LIMB_BITS - 1


@silence()
def strata_of_source(source: object, study: Study, layout: Layout, most: int | None = None) -> Strata:
    """Return the strata of a source; raises what `Table.attach` raises, for the columns that strata need.

    `most` is the number of strata that the rows may be counted in later, where that is more than the layout's: too many
    for the number of rows are refused now (CV-D055).
    """
    _two_arms(study)
    refuse_clusters(source, study)
    if rows_are_made(study):
        return strata_of_rows(rows_of_source(source, study), layout)
    needed = columns_read(study, layout)
    with opened(source, needed) as engine:
        if engine is not None:
            _check_size(engine, max(layout.public, most or 0))
            fitted = fit(grouped(engine, coding(engine, study, layout)), study, layout)
            return _assembled(fitted, layout.public)
    covariates = {name: domain for name, domain in study.covariates.items() if name in needed}
    return strata_of_rows(rows_of_source(source, study._changed(covariates=covariates)), layout)


def rows_are_made(study: Study) -> bool:
    """Return whether rows are put together, chosen or computed before they are counted; engines count rows as they are.

    Which rows a condition chooses would depend on how an engine compares texts and missing values.
    """
    made = study.person is not None or study.cluster is not None or len(study.outcomes) > 1
    return made or study.where is not None


def strata_of_rows(rows: Backend, layout: Layout) -> Strata:
    """Return the strata of rows wherever they lie; CV-S020 for rows in Spark that are in too many strata.

    Only counts and sums leave where the rows are.
    """
    _two_arms(rows.study)
    if isinstance(rows, Table):
        return strata_of_table(rows, layout)
    if layout.public <= _DENSE:
        (sums,) = rows.run(partial(cell_sums, layout))
        count, total, high, low = sums.astype(np.int64)
        place = np.arange(layout.public, dtype=np.int64)
        return _occupied(layout.public, place, count, total, _nearest(high, low), None)
    if not isinstance(rows, SpooledRows | StreamedRows):
        raise refusal("CV-S020", dense=_DENSE, public=layout.public)
    return strata_of_table(joined_tables(list(rows.batches())), layout)


def cell_sums(layout: Layout, table: Table) -> Sums:
    """Return rows, sums and both limbs of sums of squares of a block, by stratum and arm."""
    cell = 2 * strata_codes(table, layout) + table.treated
    return (np.stack(_totals(table.outcome, cell, 2 * layout.public)),)


def strata_of_table(table: Table, layout: Layout, prefix: bool = False) -> Strata:
    """Return the strata of an attached table; `prefix` asks for sums over the first rows of each arm too."""
    _two_arms(table.study)
    code = strata_codes(table, layout)
    if layout.public <= max(_DENSE, table.rows):
        place = np.arange(layout.public, dtype=np.int64)
    else:
        place, code = np.unique(code, return_inverse=True)
    # Arms interleaved: control at even cells, treated at odd ones.
    code *= 2
    code += table.treated
    return _counted(table.outcome, code, place, layout.public, prefix)


def strata_codes(table: Table, layout: Layout) -> Integers:
    """Return the place in the layout of every row's stratum."""
    code = np.zeros(table.rows, dtype=np.int64)
    for name, domain, size in zip(layout.names, layout.domains, layout.sizes, strict=True):
        code *= size
        values = table.covariates[name]
        code += (
            np.searchsorted(domain.thresholds(), values, "right")
            if isinstance(domain, Range)
            else (values.astype(np.int64))
        )
    return code


def histogram_of_source(
    source: object, study: Study, name: str, cuts: tuple[Fraction, ...]
) -> NDArray[np.int64]:
    """Return how many rows of a source fall into each bin that `cuts` make of a numeric covariate."""
    layout = Layout.of(study, (name,), {name: cuts})
    return _histogram(strata_of_source(source, study, layout))


def histogram_of_rows(rows: Backend, name: str, cuts: tuple[Fraction, ...]) -> NDArray[np.int64]:
    """Return how many rows fall into each bin that `cuts` make of a numeric covariate."""
    return _histogram(strata_of_rows(rows, Layout.of(rows.study, (name,), {name: cuts})))


def _histogram(strata: Strata) -> NDArray[np.int64]:
    counts = np.zeros(strata.public, dtype=np.int64)
    counts[strata.place] = strata.treated + strata.control
    return counts


def _check_size(engine: Engine, strata: int) -> None:
    """Raise CV-D055 where there could be more groups than are fetched; both numbers are public."""
    if 2 * strata <= MOST_GROUPS:
        return
    rows = int(integers(engine.ask(f"SELECT COUNT(*) AS n FROM {ROWS}", {"n": Kind.INTEGER}), "n")[0])
    if rows > MOST_GROUPS:
        raise too_many_groups(MOST_GROUPS, rows, strata)


def _assembled(fitted: Fitted, public: int) -> Strata:
    place, inverse = np.unique(fitted.place, return_inverse=True)
    cell = inverse * 2 + fitted.treated
    sums = {}
    for name in ("rows", "total", "high", "low"):
        sums[name] = np.zeros(2 * len(place), dtype=np.int64)
        np.add.at(sums[name], cell, getattr(fitted, name))
    return _made(public, place, sums["rows"], sums["total"], _nearest(sums["high"], sums["low"]), None)


def _counted(outcome: Integers, cell: Integers, place: Integers, public: int, prefix: bool) -> Strata:
    rows, total, high, low = _totals(outcome, cell, 2 * len(place))
    first = _prefix_sums(cell, outcome, rows) if prefix else None
    return _occupied(public, place, rows, total, _nearest(high, low), first)


def _totals(outcome: Integers, cell: Integers, cells: int) -> list[Integers]:
    """Return the rows of each cell, the sum of their outcomes and both limbs of that of their squares."""
    square = outcome * outcome
    parts = (outcome, square >> LIMB_BITS, square & _LIMB_MASK)
    return [np.bincount(cell, minlength=cells), *(_summed(cell, part, cells) for part in parts)]


def _occupied(
    public: int, place: Integers, rows: Integers, total: Integers, squares: Floats, first: Integers | None
) -> Strata:
    """Return the strata with rows in them."""
    held = np.repeat(rows.reshape(-1, 2).any(axis=1), 2)
    return _made(
        public,
        place[held[::2]],
        rows[held],
        total[held],
        squares[held],
        None if first is None else first[held],
    )


def _summed(cell: Integers, steps: Integers, cells: int) -> Integers:
    """Return exact sums; in chunks, so that no partial sum leaves the integers that a double holds."""
    total = np.zeros(cells, dtype=np.int64)
    chunk = max(_CHUNK, cells)
    for start in range(0, len(cell), chunk):
        part = slice(start, start + chunk)
        total += np.bincount(cell[part], weights=steps[part], minlength=cells).astype(np.int64)
    return total


def _prefix_sums(cell: Integers, steps: Integers, rows: Integers) -> Integers:
    other = rows.reshape(-1, 2)[:, ::-1].ravel()
    cut = other % np.maximum(rows, 1)
    by_cell = np.argsort(cell, kind="stable")
    rank = np.arange(len(cell)) - np.repeat(np.cumsum(rows) - rows, rows)
    inside = by_cell[rank < np.repeat(cut, rows)]
    return _summed(cell[inside], steps[inside], len(rows))


def _nearest(high: Integers, low: Integers) -> Floats:
    """Return the doubles nearest to high * 2^LIMB_BITS + low."""
    high = high + (low >> LIMB_BITS)
    low = low & _LIMB_MASK
    # Both parts are exact, so the one addition rounds to the nearest double.
    top = high >> 8
    rest = ((high & 255) << LIMB_BITS) + low
    nearest: Floats = top.astype(np.float64) * 2.0**32 + rest.astype(np.float64)
    return nearest


def _made(
    public: int, place: Integers, rows: Integers, total: Integers, squares: Floats, prefix: Integers | None
) -> Strata:
    return Strata(
        public=public,
        place=place,
        treated=rows[1::2],
        control=rows[::2],
        treated_sum=total[1::2],
        control_sum=total[::2],
        treated_square=squares[1::2],
        control_square=squares[::2],
        treated_prefix=None if prefix is None else prefix[1::2],
        control_prefix=None if prefix is None else prefix[::2],
    )


def _two_arms(study: Study) -> None:
    if study.arms is not None:
        raise refusal("CV-S075", arms=len(study.arms))
