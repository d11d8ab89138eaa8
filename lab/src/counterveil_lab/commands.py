"""What `counterveil audit` and `counterveil reproduce` run; each returns the exit code of the program."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

_INTERRUPTED = 130


def audit(
    *,
    names: list[str],
    everything: bool,
    epsilon: str | None,
    delta: str | None,
    samples: int | None,
    seed: int,
    jobs: int,
    gallery: bool,
    page: Path | None,
    listed: bool,
    as_json: bool,
) -> int:
    """Attack releases and print what was found; return 1 if a claim is broken or an attack has no power."""
    from counterveil_lab.attacks.command import EVERYTHING, chosen, examine_all, summary
    from counterveil_lab.attacks.command import page as written

    if listed:
        print("\n".join(EVERYTHING))
        return 0
    if gallery:
        return _gallery(seed, page, as_json)
    found = []
    for one in examine_all(
        chosen(names, everything), epsilon=epsilon, delta=delta, samples=samples, seed=seed, jobs=jobs
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
    return int(not all(one.report.passed for one in found))


def _gallery(seed: int, page: Path | None, as_json: bool) -> int:
    """Print the claims that fail; return 1 if one of them was not caught."""
    from counterveil_lab.attacks.gallery import GALLERY, shown, table
    from counterveil_lab.attacks.gallery import page as written

    found = shown(GALLERY, seed)
    if page is not None:
        page.write_text(written(found), encoding="utf-8")
    print(json.dumps([one.to_dict() for one in found], indent=2) if as_json else table(found))
    return int(not all(one.finding.violated for one in found))


def reproduce(
    paper: str | None, quick: bool, figures: Sequence[str], out: Path, jobs: int, listed: bool
) -> int:
    """Run a paper's tables and figures, print the verdicts on its claims; return 130 where it was interrupted."""
    from counterveil_lab.reproduce.command import Run, chosen, run_cells, write_results
    from counterveil_lab.reproduce.page import count_of
    from counterveil_lab.reproduce.papers.catalogue import MODULES, load

    if paper is None:
        if not listed:
            load("")
        print("\n".join(MODULES))
        return 0
    found = load(paper)
    if listed:
        print("\n".join(f"{figure.name:12} {figure.title}" for figure in found.figures))
        return 0
    run = Run(found, out / found.name, quick)
    try:
        run_cells(run, chosen(found, figures), jobs)
    except KeyboardInterrupt:
        print("what is finished is kept; the same command goes on", file=sys.stderr)
        return _INTERRUPTED
    judged = write_results(run)
    for claim, verdict in judged:
        print(f"{verdict.verdict.value:18} {claim.where}: {claim.says} {verdict.number}".rstrip())
    print(f"{count_of(judged)} {run.folder / 'page.md'}")
    return 0
