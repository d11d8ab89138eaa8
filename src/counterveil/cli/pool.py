"""`counterveil pool`: one effect from the private results of several sites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def pool(
    files: Annotated[
        list[Path], typer.Argument(help="Results of the sites, as `estimate --json` prints them.")
    ],
    method: Annotated[
        str, typer.Option(help='"mvagg", "ivw", "all", "largest" or "random_effects".')
    ] = "mvagg",
    level: Annotated[float, typer.Option(help="Confidence level of the interval.")] = 0.95,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Average the private effects of several sites; spends nothing."""
    import counterveil as cv

    result = cv.pool(files, method=method, level=level)
    if report is not None:
        result.to_html(report)
    print(json.dumps(result.to_dict(), indent=2) if as_json else str(result))
