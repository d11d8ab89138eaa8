"""Cells and frames of every kind of source in memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from tools.fuzzing import nasty, trials
from tools.fuzzing.judging import Answer, Attempt

_DTYPES = ("O", "f2", "f4", "f8", "i1", "i8", "u8", "c16", "U", "S", "?", "M8[D]", "m8[s]")


def prepare(_folder: Path) -> None:
    """Have everything compiled before anything is timed."""
    trials.warm_up()


def make(rng: random.Random, _folder: Path) -> Attempt:
    """Return a question about broken columns in a frame of some kind."""
    columns = trials.people(rng)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        _break(rng, columns)
    source = _framed(rng, columns)
    name, arguments = trials.question(rng)

    def attempt() -> Answer:
        return trials.ask(source, trials.STUDY, name, arguments)

    return attempt


def _break(rng: random.Random, columns: dict[Any, Any]) -> None:
    """Put strange cells into a column, or make it longer, shorter, double, empty or something else."""
    name = rng.choice(list(columns)) if columns else "arm"
    cells = columns.get(name, [])
    how = rng.random()
    if how < 0.6 and isinstance(cells, list) and cells:
        for _ in range(rng.choice((1, 1, 3, len(cells)))):
            cells[rng.randrange(len(cells))] = trials.cell(rng)
    elif how < 0.7:
        columns[name] = [trials.cell(rng)] * (len(cells) if isinstance(cells, list) else 1)
    elif how < 0.76 and isinstance(cells, list):
        columns[name] = cells[: rng.randrange(len(cells) + 1)]
    elif how < 0.82:
        columns.pop(name, None)
    elif how < 0.88:
        columns[rng.choice((name.upper() if isinstance(name, str) else "x", "", 5, None, "\x1b[2J"))] = cells
    elif how < 0.94:
        columns[name] = nasty.value(rng)
    else:
        for each in columns:
            columns[each] = columns[each][: rng.choice((0, 1, 2))] if isinstance(columns[each], list) else []


def _framed(rng: random.Random, columns: dict[Any, Any]) -> Any:
    """Return the columns in a frame; what the frame's library itself refuses stays a dictionary."""
    kinds: tuple[Callable[[random.Random, dict[Any, Any]], Any], ...] = (
        lambda _rng, given: given, _arrays, _pandas, _pandas, _polars, _pyarrow, _relation, _other,
    )  # fmt: skip
    try:
        return rng.choice(kinds)(rng, columns)
    except Exception:  # of another library, while the input is made
        return columns


def _arrays(rng: random.Random, columns: dict[Any, Any]) -> Any:
    made: dict[Any, Any] = {}
    for name, cells in columns.items():
        try:
            with np.errstate(all="ignore"):
                made[name] = np.array(cells, dtype=rng.choice(_DTYPES) if rng.random() < 0.3 else None)
        except (ValueError, TypeError, OverflowError):
            made[name] = np.array(cells, dtype=object)
    return made


def _pandas(rng: random.Random, columns: dict[Any, Any]) -> Any:
    import pandas as pd

    frame = pd.DataFrame(columns)
    name = rng.choice(list(frame.columns))
    how = rng.random()
    if how < 0.15:
        frame[name] = frame[name].astype("category")
    elif how < 0.3:
        frame = frame.convert_dtypes()
    elif how < 0.36:
        frame[name] = frame[name].astype("string")
    elif how < 0.42:
        frame.columns = pd.MultiIndex.from_tuples([(each, "x") for each in frame.columns])
    elif how < 0.48:
        frame = pd.concat([frame, frame[[name]]], axis=1)
    elif how < 0.54:
        frame[name] = pd.to_datetime("2020-01-01", utc=True)
    elif how < 0.6:
        frame.index = [rng.choice((0, 0, 1)) for _ in range(len(frame))]
    elif how < 0.66:
        frame[name] = frame[name].astype(rng.choice(("Int64", "Float64", "boolean", "complex", "float16")))
    return frame


def _endless(cell: object) -> bool:
    return isinstance(cell, Decimal) and cell.is_finite() and abs(cell.adjusted()) > 1000


def _deep(cells: object) -> bool:
    for _ in range(100):
        if not isinstance(cells, list) or not cells:
            return False
        cells = cells[0]
    return True


def _polars(rng: random.Random, columns: dict[Any, Any]) -> Any:
    import polars as pl

    # Polars walks through a list that is nested thousands deep for minutes, before anything of ours sees it.
    if any(_deep(cells) for cells in columns.values()):
        return columns
    # It writes a decimal out in full, digit by digit.
    held = {name: [None if _endless(cell) else cell for cell in cells] for name, cells in columns.items()}
    frame = pl.DataFrame(held, strict=False)
    name = rng.choice(frame.columns)
    kinds = (
        pl.Categorical,
        pl.Decimal(20, 3),
        pl.Float32,
        pl.Int8,
        pl.String,
        pl.Boolean,
        pl.Date,
        pl.Object,
    )
    if rng.random() < 0.3:
        frame = frame.with_columns(pl.col(name).cast(rng.choice(kinds), strict=False))
    return frame.lazy() if rng.random() < 0.2 else frame


def _pyarrow(rng: random.Random, columns: dict[Any, Any]) -> Any:
    import pyarrow as pa

    # Arrow takes gigabytes for the type of a list that is nested thousands deep, before anything of ours sees it.
    if any(_deep(cells) for cells in columns.values()):
        return columns
    table = pa.table(columns)
    place = rng.randrange(table.num_columns)
    how = rng.random()
    if how < 0.2:
        table = table.set_column(place, table.column_names[place], table.column(place).dictionary_encode())
    elif how < 0.3:
        table = pa.concat_tables([table, table.slice(0, 1)])
    elif how < 0.4:
        table = table.append_column(table.column_names[place], table.column(place))
    elif how < 0.5:
        table = table.set_column(place, table.column_names[place], pa.nulls(table.num_rows))
    return table


def _relation(_rng: random.Random, columns: dict[Any, Any]) -> Any:
    import duckdb
    import pandas as pd

    return duckdb.connect().from_df(pd.DataFrame(columns))


def _other(rng: random.Random, columns: dict[Any, Any]) -> Any:
    """Return something that is no frame, rows of the data in it."""
    rows = list(zip(*columns.values(), strict=False))
    return rng.choice((rows, np.array(rows, dtype=object), iter(rows), nasty.value(rng), repr(columns)))
