"""The command `reproduce`: tables, figures and claims of the papers behind this library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from counterveil.cli.options import argument, option

Name = Annotated[str | None, argument("PAPER", "Short name of a paper; --list shows them.")]
Quick = Annotated[bool, option("", "Few repetitions: minutes instead of a quarter of an hour.", "--quick")]
Figures = Annotated[
    list[str] | None, option("NAME", "A figure or table; all of the paper if omitted.", "--figure")
]
Out = Annotated[Path, option("FOLDER", "Where tables, pictures and the page go, in a folder for the paper.")]
Jobs = Annotated[int, option("INTEGER", "Cells that run at the same time, each on a core of its own.")]
List = Annotated[bool, option("", "Show the papers, or the figures of a paper, and stop.", "--list")]
_INTERRUPTED = 130


def reproduce(
    paper: Name = None,
    quick: Quick = False,
    figures: Figures = None,
    out: Out = Path("reproduced"),
    jobs: Jobs = 1,
    listed: List = False,
) -> None:
    """Run the tables and figures of a paper again, and judge its claims.

    Every finished piece is kept at once: after Ctrl-C the same command goes on where it stopped. A table is a CSV file,
    a figure SVG and PNG, and page.md has all of them with the verdict on every claim. Data sets are looked for below
    COUNTERVEIL_DATA.
    """
    from counterveil.reproduce.command import Run, chosen, run_cells, write_results
    from counterveil.reproduce.page import count_of
    from counterveil.reproduce.papers.catalogue import MODULES, load

    if paper is None:
        if not listed:
            load("")
        print("\n".join(MODULES))
        return
    found = load(paper)
    if listed:
        print("\n".join(f"{figure.name:12} {figure.title}" for figure in found.figures))
        return
    run = Run(found, out / found.name, quick)
    try:
        run_cells(run, chosen(found, figures or []), max(jobs, 1))
    except KeyboardInterrupt:
        print("what is finished is kept; the same command goes on", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None
    judged = write_results(run)
    for claim, verdict in judged:
        print(f"{verdict.verdict.value:18} {claim.where}: {claim.says} {verdict.number}".rstrip())
    print(f"{count_of(judged)} {run.folder / 'page.md'}")
