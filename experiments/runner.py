"""Run an experiment: a module declares tables as values, and this runs their cells, keeps them and prints them.

A `Table` says what its columns are, which cells it has (designs crossed with methods and budgets, as tuples of
arguments), and which function computes the row of a cell from the seeds of its draws. A module ends in

    TABLES = {"coverage": Table(columns="design | coverage :.3f", cells=[...], row=coverage)}

    if __name__ == "__main__":
        run(__doc__, TABLES)

and has this command line:

    --only TABLE ...   these tables; all but those that are `apart` by default
    --cells WORD ...   cells one of whose arguments is one of these numbers, or holds one of these words
    --draws N          draws of a cell; every table has a number of its own
    --seed N           the first seed; every table has one of its own
    --quick            two draws of the first cell of every table
    --jobs N           processes; cells run side by side, and are printed in their order
    --out [FOLDER]     where finished cells, a CSV of each table and the page RESULTS.md are kept; a second call makes
                       what is missing
    --print            make no cells, print those that the folder has

A CSV has the values of a table, a line for each row; the page is made of the CSV by the formats of the columns. Where
the folder has a page already, only what stands below the line `MARK` is written, and a page without it stays as it is.
Results do not depend on the number of processes: a cell takes all its random numbers from its seeds.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

# Seeds of figures that are reported start here; designs and settings were tried on those below.
FIRST_SEED = 1000
DRAWS = 200
QUICK_DRAWS = 2
MARK = "<!-- written by python -m experiments -->"

Row = Sequence[Any]
Cell = tuple[Any, ...]
Draws = Mapping[str, np.ndarray]
Measure = Callable[[Draws], float]


@dataclass(frozen=True)
class Table:
    """A table of an experiment.

    Parameters
    ----------
    columns : str or sequence of str
        Titles, as they stand above the table: "design | coverage :.3f | width :.4g". A value is shown as it is, or in
        the format behind the colon.
    cells : iterable of tuple, or callable that returns one
        Arguments of `row`, cell by cell. A callable is called when the table is asked for, so that a table of data
        that are not there stops nothing else.
    row : callable
        `row(*cell, seeds=range(...))` returns the values of a row, or a list of rows. Its seeds are as many as draws.
    title : str
        Printed above; "{draws}" stands for the number of draws.
    draws, first_seed : int
        Of every cell, unless the command line says otherwise.
    apart : bool
        Whether the table is made only where `--only` names it.
    notes : callable, optional
        Returns lines that are printed below, from all rows of the table: values, or texts where they come from a CSV.
    """

    columns: str | Sequence[str]
    cells: Iterable[Cell] | Callable[[], Iterable[Cell]]
    row: Callable[..., Any]
    title: str = ""
    draws: int = DRAWS
    first_seed: int = FIRST_SEED
    apart: bool = False
    notes: Callable[[list[Row]], Iterable[str]] | None = None

    @property
    def titles(self) -> list[str]:
        """The names of the columns."""
        return [title for title, _ in self._columns]

    @property
    def _columns(self) -> list[tuple[str, str]]:
        columns = self.columns.split(" | ") if isinstance(self.columns, str) else self.columns
        return [(title, form) for title, _, form in (column.partition(" :") for column in columns)]

    def listed(self) -> list[Cell]:
        """Return all cells."""
        return list(self.cells() if callable(self.cells) else self.cells)

    def rows(self, cell: Cell, seeds: range) -> list[Row]:
        """Return the rows of a cell."""
        made = list(self.row(*cell, seeds=seeds))
        return made if made and isinstance(made[0], (list, tuple)) else [made]

    def heading(self) -> list[str]:
        """Return the first two lines in Markdown."""
        return [f"| {' | '.join(self.titles)} |", "|" + "---|" * len(self.titles)]

    def line(self, row: Row) -> str:
        """Return a row in Markdown; missing values at its end are empty."""
        formats = [form for _, form in self._columns]
        values = [*row, *[""] * (len(formats) - len(row))]
        shown = (formatted(value, form) for value, form in zip(values, formats, strict=True))
        return f"| {' | '.join(shown)} |"


def formatted(value: Any, form: str) -> str:
    """Return a value, or its text in a CSV, in a format; words that stand in place of a number as they are."""
    if form and isinstance(value, str):
        for kind in (int, float):
            try:
                return format(kind(value), form)
            except ValueError:
                continue
    return format(value, form) if form and not isinstance(value, str) else str(value)


# What cells share: a row from draws of their own, and measures of these draws.


def of_draws(
    labels: Callable[..., Row], draw: Callable[..., Mapping[str, Any]], measures: Sequence[Measure]
) -> Callable[..., Row]:
    """Return the `row` of a table from one draw: `draw(*cell, seed=...)` returns numbers or arrays by name.

    `labels(*cell)` returns the first values of the row, `measures` the others, from all draws stacked by name.
    """

    def row(*cell: Any, seeds: range) -> Row:
        drawn = stacked(draw(*cell, seed=seed) for seed in seeds)
        return [*labels(*cell), *(measure(drawn) for measure in measures)]

    return row


def stacked(drawn: Iterable[Mapping[str, Any]]) -> Draws:
    """Return arrays by name, whose first axis is that of the draws."""
    found = list(drawn)
    return {name: np.array([each[name] for each in found]) for name in found[0]}


def judged(ends: tuple[float, float], estimate: float, truth: float) -> dict[str, float]:
    """Return whether an interval covers, its width, half of it and the estimate's error, as `of_draws` takes them."""
    low, high = ends
    return {
        "covered": low <= truth <= high,
        "width": high - low,
        "half": (high - low) / 2,
        "error": estimate - truth,
    }


def mean(name: str) -> Measure:
    """Return the measure that is the mean over draws."""
    return lambda drawn: float(np.mean(drawn[name]))


def median(name: str) -> Measure:
    """Return the measure that is the median over draws."""
    return lambda drawn: float(np.median(drawn[name]))


def rmse(name: str) -> Measure:
    """Return the measure that is the root of the mean square over draws."""
    return lambda drawn: float(np.sqrt(np.mean(np.square(drawn[name]))))


# The command.


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    draws: int | None = None
    seed: int | None = None
    words: Sequence[str] = ()
    quick: bool = False
    jobs: int = 1
    out: Path | None = None
    make: bool = True

    def cells(self, table: Table) -> list[tuple[int, Cell]]:
        """Return the cells that are asked for, with their places in the table."""
        listed = list(enumerate(table.listed()))
        if self.words:
            listed = [(place, cell) for place, cell in listed if _named(cell, self.words)]
        return listed[:1] if self.quick else listed

    def seeds(self, table: Table) -> range:
        """Return the seeds of a cell."""
        first = table.first_seed if self.seed is None else self.seed
        usual = min(QUICK_DRAWS, table.draws) if self.quick else table.draws
        return range(first, first + (usual if self.draws is None else self.draws))


def _named(cell: Cell, words: Sequence[str]) -> bool:
    """Return whether a word is one of the cell's numbers, or part of the text of another argument."""
    return any(
        word == str(part) if isinstance(part, int | float) else word.lower() in str(part).lower()
        for word in words
        for part in cell
    )


def run(
    description: str | None,
    tables: Mapping[str, Table],
    arguments: Sequence[str] | None = None,
) -> None:
    """Make and print the tables that the command line asks for; `--out` without a name is the experiment's folder."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # Where no file is run, as in a test, answers are kept beside the reader.
    here = Path(getattr(sys.modules["__main__"], "__file__", None) or "main.py").parent
    parser.add_argument("--only", nargs="+", choices=list(tables), metavar="TABLE", help=", ".join(tables))
    parser.add_argument("--cells", nargs="+", default=[], metavar="WORD", help="cells that hold one of these")
    parser.add_argument("--draws", type=int, help="draws of a cell")
    parser.add_argument("--seed", type=int, help="the first seed")
    parser.add_argument("--quick", action="store_true", help="two draws of the first cell of every table")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--out",
        type=Path,
        nargs="?",
        const=here,
        help="folder for cells, CSV and the page",
    )
    parser.add_argument("--print", action="store_true", help="print what the folder has")
    given = parser.parse_args(arguments)
    if given.print and given.out is None:
        parser.error("--print needs --out")
    asked = Asked(
        given.draws, given.seed, given.cells, given.quick, given.jobs, given.out, make=not given.print
    )
    chosen = given.only or [name for name, table in tables.items() if not table.apart]
    page = io.StringIO()
    for line in lines(tables, chosen, asked):
        print(line, flush=True)
        page.write(line + "\n")
    if asked.out is not None:
        write_page(asked.out / "RESULTS.md", page.getvalue())


def lines(tables: Mapping[str, Table], chosen: Sequence[str], asked: Asked) -> Iterator[str]:
    """Yield the lines of tables in Markdown, every row as soon as it and those above it are made."""
    for name in chosen:
        table, rows = tables[name], []
        if table.title:
            yield table.title.format(draws=len(asked.seeds(table)))
            yield ""
        yield from table.heading()
        for row in _rows(name, table, asked):
            rows.append(row)
            yield table.line(row)
        if asked.out is not None and asked.make:
            write_csv(asked.out / f"{name}.csv", [table.titles, *rows])
        yield ""
        if table.notes is not None:
            yield from table.notes(rows)
            yield ""


def _rows(name: str, table: Table, asked: Asked) -> Iterator[Row]:
    """Yield the rows of all cells in their order: kept ones, or new ones, which are kept."""
    if not asked.make:
        assert asked.out is not None
        yield from read_csv(asked.out / f"{name}.csv")[1:]
        return
    seeds, cells = asked.seeds(table), asked.cells(table)
    path = None if asked.out is None else asked.out / "cells" / f"{name}.jsonl"
    kept = _kept(path, seeds)
    made = _made(table, [cell for place, cell in cells if place not in kept], seeds, asked.jobs)
    for place, _ in cells:
        if place not in kept:
            # As they come back from the file: a number is the same number, a truth value 1 or 0.
            kept[place] = json.loads(json.dumps(next(made), default=_plain))
            _keep(path, place, seeds, kept[place])
        yield from kept[place]


def _made(table: Table, cells: Sequence[Cell], seeds: range, jobs: int) -> Iterator[list[Row]]:
    if jobs < 2:
        yield from (table.rows(cell, seeds) for cell in cells)
        return
    # Cells hold functions, which are not sent to other processes: these are copies of this one and have them.
    _SHARED[:] = [(table, cell, seeds) for cell in cells]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        yield from pool.map(_shared, range(len(cells)))


_SHARED: list[tuple[Table, Cell, range]] = []


def _shared(place: int) -> list[Row]:
    table, cell, seeds = _SHARED[place]
    return table.rows(cell, seeds)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _kept(path: Path | None, seeds: range) -> dict[int, list[Row]]:
    """Return the rows of finished cells with the same seeds, by their places."""
    if path is None or not path.exists():
        return {}
    found = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {one["cell"]: one["rows"] for one in found if one["seeds"] == [seeds.start, seeds.stop]}


def _keep(path: Path | None, place: int, seeds: range, rows: list[Row]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"cell": place, "seeds": [seeds.start, seeds.stop], "rows": rows}) + "\n")


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write rows, the first of which are titles."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def read_csv(path: Path) -> list[list[str]]:
    """Return the rows of a file, titles first."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def write_page(path: Path, tables: str) -> None:
    """Write tables below the mark of a page, or a new page; a page without the mark is one of words alone."""
    about = path.read_text(encoding="utf-8") if path.exists() else MARK
    if MARK in about:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{about.partition(MARK)[0]}{MARK}\n\n{tables}", encoding="utf-8")


# Experiments whose unit is an answer rather than a cell keep their answers one by one.

Answer = TypeVar("Answer")
_READ = {"str": str, "int": int, "float": float}


def saved(path: Path, kind: type[Answer]) -> list[Answer]:
    """Return the answers that a file holds, dataclasses of texts and numbers; a line that was cut off is left out."""
    if not path.exists():
        return []
    read = [_READ[str(field.type)] for field in fields(kind)]  # type: ignore[arg-type]
    return [
        kind(*(one(cell) for one, cell in zip(read, cells, strict=True)))
        for cells in read_csv(path)
        if len(cells) == len(read)
    ]


def save(path: Path, answer: Any) -> None:
    """Add an answer to a file; what is left of a line that was cut off is taken away."""
    if path.exists():
        whole = path.read_bytes()
        if not whole.endswith(b"\n"):
            path.write_bytes(whole[: whole.rfind(b"\n") + 1])
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(astuple(answer))
