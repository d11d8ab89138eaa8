"""The commands that check claims: `audit` attacks our own releases, `reproduce` runs the papers' tables and figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from counterveil.cli.options import AsJson, argument, option

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
    """Attack releases of this library, and show the power of each attack.

    Every form is asked of neighbouring data sets, the worst that a search finds. Three attacks follow: the largest loss
    of any output, a bet on the likelihood ratio of samples, and a replay in which the neighbour must release the same
    and everything visible must be equal. Each is repeated with a third of the noise, which it must catch. The exit
    code is 1 if a claim is broken or an attack has no power.
    """
    from counterveil.attacks.command import EVERYTHING, chosen, examine_all, summary
    from counterveil.attacks.command import page as written

    if listed:
        print("\n".join(EVERYTHING))
        return
    if gallery:
        _gallery(seed, page, as_json)
        return
    found = []
    for one in examine_all(
        chosen(names or [], everything),
        epsilon=epsilon,
        delta=delta,
        samples=trials,
        seed=seed,
        jobs=max(jobs, 1),
    ):
        found.append(one)
        if not as_json:
            print(f"{one.verdict.value:12} {one.name}", file=sys.stderr, flush=True)
    if page is not None:
        page.write_text(written(found), encoding="utf-8")
    if as_json:
        print(json.dumps([one.to_dict() for one in found], indent=2))
    else:
        print(str(found[0].report) if len(found) == 1 else summary(found))
    if not all(one.report.passed for one in found):
        raise typer.Exit(1)


def _gallery(seed: int, page: Path | None, as_json: bool) -> None:
    """Print the claims that fail; the exit code is 1 if one of them was not caught."""
    from counterveil.attacks.gallery import page as written
    from counterveil.attacks.gallery import shown, table
    from counterveil.attacks.refuted import GALLERY

    found = shown(GALLERY, seed)
    if page is not None:
        page.write_text(written(found), encoding="utf-8")
    print(json.dumps([one.to_dict() for one in found], indent=2) if as_json else table(found))
    if not all(one.finding.violated for one in found):
        raise typer.Exit(1)


Name = Annotated[str | None, argument("PAPER", "Short name of a paper; --list shows them.")]
Quick = Annotated[bool, option("", "Few repetitions: minutes instead of a quarter of an hour.", "--quick")]
Figures = Annotated[
    list[str] | None, option("NAME", "A figure or table; all of the paper if omitted.", "--figure")
]
Out = Annotated[Path, option("FOLDER", "Where tables, pictures and the page go, in a folder for the paper.")]
PaperJobs = Annotated[int, option("INTEGER", "Cells that run at the same time, each on a core of its own.")]
ListPapers = Annotated[bool, option("", "Show the papers, or the figures of a paper, and stop.", "--list")]
_INTERRUPTED = 130


def reproduce(
    paper: Name = None,
    quick: Quick = False,
    figures: Figures = None,
    out: Out = Path("reproduced"),
    jobs: PaperJobs = 1,
    listed: ListPapers = False,
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
