"""The commands that check claims, run by the laboratory: `audit` attacks our own releases, `reproduce` runs papers."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from counterveil.cli.options import AsJson, argument, option
from counterveil.errors import refusal

Names = Annotated[list[str] | None, argument("METHOD", "Methods, questions, or names that --list shows.")]
Epsilon = Annotated[str | None, option("NUMBER", "Claim to audit; that of the list if omitted.")]
Delta = Annotated[str | None, option("NUMBER", "Its delta; that of the list if omitted.")]
Trials = Annotated[
    int | None, option("INTEGER", "Samples from each data set; as listed if omitted, 0 for none.")
]
Seed = Annotated[int, option("INTEGER", "Seed of data, search and noise.")]
Jobs = Annotated[int, option("INTEGER", "Audits that run at the same time, each on a core of its own.")]
All = Annotated[bool, option("", "Audit everything: about 4 minutes of CPU.", "--all")]
Gallery = Annotated[
    bool, option("", "Run published claims that fail, each on its counterexample.", "--gallery")
]
Page = Annotated[Path | None, option("FILE", "Write what was found as a page.")]
List = Annotated[bool, option("", "Show what can be audited, and stop.", "--list")]


def audit(
    names: Names = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    trials: Trials = None,
    seed: Seed = 1,
    jobs: Jobs = 1,
    everything: All = False,
    gallery: Gallery = False,
    page: Page = None,
    listed: List = False,
    as_json: AsJson = False,
) -> None:
    """Attack releases of this library, and show the power of each attack; needs the package counterveil-lab.

    Every form is asked of the worst neighbouring data sets that a search finds. Three attacks follow: the
    largest loss of any output, a bet on the likelihood ratio of samples, and a replay in which everything
    visible must be equal. Each must catch a third of the noise. The exit
    code is 1 if a claim is broken or an attack has no power.
    """
    found = laboratory().audit(
        names=names or [],
        everything=everything,
        epsilon=epsilon,
        delta=delta,
        samples=trials,
        seed=seed,
        jobs=max(jobs, 1),
        gallery=gallery,
        page=page,
        listed=listed,
        as_json=as_json,
    )
    raise typer.Exit(found)


Name = Annotated[str | None, argument("PAPER", "Short name of a paper; --list shows them.")]
Quick = Annotated[bool, option("", "Few repetitions: minutes instead of a quarter of an hour.", "--quick")]
Figures = Annotated[
    list[str] | None, option("NAME", "A figure or table; all of the paper if omitted.", "--figure")
]
Out = Annotated[Path, option("FOLDER", "Where tables, pictures and the page go, in a folder for the paper.")]
PaperJobs = Annotated[int, option("INTEGER", "Cells that run at the same time, each on a core of its own.")]
ListPapers = Annotated[bool, option("", "Show the papers, or the figures of a paper, and stop.", "--list")]


def reproduce(
    paper: Name = None,
    quick: Quick = False,
    figures: Figures = None,
    out: Out = Path("reproduced"),
    jobs: PaperJobs = 1,
    listed: ListPapers = False,
) -> None:
    """Run the tables and figures of a paper again, and judge its claims; needs the package counterveil-lab.

    Every finished piece is kept at once: after Ctrl-C the same command goes on where it stopped. A table is a CSV file,
    a figure SVG and PNG. claims.csv has the verdict on every claim; page.md links all of them and lists the claims that
    fail. Data sets are looked for below COUNTERVEIL_DATA.
    """
    raise typer.Exit(laboratory().reproduce(paper, quick, figures or [], out, max(jobs, 1), listed))


def laboratory() -> Any:
    """Return the commands of `counterveil-lab`, a distribution of its own that nothing here imports otherwise."""
    if find_spec("counterveil_lab") is None:
        raise refusal("CV-E100")
    return import_module("counterveil_lab.commands")
