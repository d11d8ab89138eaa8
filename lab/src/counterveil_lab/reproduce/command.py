"""Running a paper: its cells one by one or several at a time, kept on disk, and its tables, pictures and page."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

from counterveil.data.progress import Waiting
from counterveil.datasets.dataset import VARIABLE
from counterveil.errors import refusal
from counterveil_lab.reproduce.page import (
    CLAIMS,
    Cell,
    Claim,
    Figure,
    Judged,
    Paper,
    Row,
    Shown,
    Verdict,
    claims_table,
    written,
)
from counterveil_lab.reproduce.papers.catalogue import load


def key_of(cell: Cell) -> str:
    """Return the text under which the rows of a cell are kept; the order of its entries does not matter."""
    return json.dumps(dict(cell), sort_keys=True)


@dataclass(frozen=True)
class Done:
    """The rows of a finished cell, and the CPU seconds that it took."""

    rows: list[Row]
    seconds: float


@dataclass(frozen=True)
class Store:
    """The finished cells of one figure, in one file."""

    path: Path

    def read(self) -> dict[str, Done]:
        """Return what is finished, by the key of its cell; a line that was cut short is left out."""
        if not self.path.exists():
            return {}
        found = {}
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                facts = json.loads(line)
                found[key_of(facts["cell"])] = Done(facts["rows"], facts["seconds"])
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def add(self, cell: Cell, done: Done) -> None:
        """Append a finished cell; what stands behind a line that was cut short begins a line of its own."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"cell": dict(cell), "rows": done.rows, "seconds": round(done.seconds, 4)})
        with self.path.open("a+b") as file:
            if file.tell():
                file.seek(-1, 2)
                torn = file.read(1) != b"\n"
                file.write(b"\n" * torn)
            file.write(line.encode() + b"\n")


ROWS = "rows"  # the folder of finished cells, below that of the paper
_LISTED = 10  # files that a message names
_END = "Ctrl-C stops it; what is done is kept"


@dataclass(frozen=True)
class Run:
    """One way of running a paper: in full or quickly, and where its results are kept."""

    paper: Paper
    folder: Path
    quick: bool = False

    def store(self, figure: Figure) -> Store:
        """Return where the finished cells of a figure are kept."""
        return Store(self.folder / ROWS / f"{figure.name}.jsonl")

    def missing(self, figure: Figure) -> list[Cell]:
        """Return the cells of a figure that are not finished."""
        done = self.store(figure).read()
        return [cell for cell in figure.cells(self.quick) if key_of(cell) not in done]


def chosen(paper: Paper, names: Sequence[str]) -> list[Figure]:
    """Return the figures of these names, all of them where none is named; refuse a name that the paper lacks."""
    known = {figure.name: figure for figure in paper.figures}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise refusal("CV-P811", known=", ".join(known), unknown=unknown[0], paper=paper.name)
    return [figure for name, figure in known.items() if not names or name in names]


def run_cells(run: Run, figures: Sequence[Figure], jobs: int = 1) -> None:
    """Finish the missing cells of these figures; each is kept as soon as it is done.

    Raises CV-D313 before the first one where files are missing that any of them needs.
    """
    _look_for_files(run, figures)
    for figure in figures:
        missing = run.missing(figure)
        if not missing:
            continue
        store, total = run.store(figure), len(figure.cells(run.quick))
        with Waiting(f"{run.paper.name}, {figure.name}", _END) as waiting:
            done = total - len(missing)
            for cell, found in _finished(run.paper.name, figure, missing, jobs):
                store.add(cell, found)
                done += 1
                waiting.report(f"{done} of {total}")


def _look_for_files(run: Run, figures: Sequence[Figure]) -> None:
    root, files = os.environ.get(VARIABLE, ""), run.paper.files
    cells = [cell for figure in figures if files for cell in run.missing(figure)]
    named = dict.fromkeys(str(cell.get("data", cell.get("study"))) for cell in cells)
    wanted = dict.fromkeys(file for name in named for file in files.get(name, ()))
    missing = [file for file in wanted if not root or not Path(root, file).is_file()]
    if missing:
        listed = ", ".join(missing[:_LISTED]) + (", ..." if len(missing) > _LISTED else "")
        raise refusal("CV-D313", count=len(missing), variable=VARIABLE, files=listed)


def _finished(paper: str, figure: Figure, cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, Done]]:
    if jobs == 1 or len(cells) == 1:
        yield from ((cell, _timed(figure, cell)) for cell in cells)
        return
    # Workers leave Ctrl-C to this process, which stops handing out cells and keeps what is done.
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    ) as pool:
        asked = {pool.submit(_work, paper, figure.name, dict(cell)): cell for cell in cells}
        try:
            for one in as_completed(asked):
                yield asked[one], one.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _work(paper: str, figure: str, cell: Cell) -> Done:
    """Return the rows of a cell; a process of its own finds the figure by its name."""
    return _timed(chosen(load(paper), [figure])[0], cell)


def _timed(figure: Figure, cell: Cell) -> Done:
    began = time.process_time()
    rows = [dict(row) for row in figure.run(cell)]
    return Done(list(rows), time.process_time() - began)


def rows_of(run: Run, figure: Figure) -> tuple[pd.DataFrame | None, int, float]:
    """Return the rows of the finished cells of this run, how many cells are missing, and their CPU seconds."""
    done, cells = run.store(figure).read(), figure.cells(run.quick)
    kept = [(cell, done[key_of(cell)]) for cell in cells if key_of(cell) in done]
    frame = pd.DataFrame([{**cell, **row} for cell, found in kept for row in found.rows])
    seconds = sum(found.seconds for _, found in kept)
    return (None if frame.empty else frame), len(cells) - len(kept), seconds


def write_results(run: Run) -> list[tuple[Claim, Judged]]:
    """Write tables, pictures and the page from everything that is finished; return the judged claims."""
    run.folder.mkdir(parents=True, exist_ok=True)
    kept, tables = [], {}
    for figure in run.paper.figures:
        rows, missing, seconds = rows_of(run, figure)
        if rows is None:
            continue
        table = figure.table(rows)
        table.to_csv(run.folder / f"{figure.name}.csv", index=False, float_format="%.6g", lineterminator="\n")
        picture = None
        if figure.draw is not None:
            from counterveil_lab.reproduce.plots import save

            picture = save(figure.draw(table), run.folder, figure.name)
        kept.append(Shown(figure, table, picture, missing, seconds))
        if not missing:
            tables[figure.name] = table
    judged = [(claim, judge(claim, tables)) for claim in run.paper.claims]
    if judged:
        claims_table(judged).to_csv(run.folder / CLAIMS, index=False, lineterminator="\n")
    text = written(run.paper, kept, judged, quick=run.quick)
    (run.folder / "page.md").write_text(text, encoding="utf-8")
    return judged


def judge(claim: Claim, tables: dict[str, pd.DataFrame]) -> Judged:
    """Return the verdict on a claim; one that needs a figure that is not finished cannot be checked."""
    absent = [name for name in claim.figures if name not in tables]
    if absent:
        return Judged(Verdict.CANNOT_BE_CHECKED, "", f"not finished: {', '.join(absent)}")
    return claim.judge(tables)
