"""`counterveil pool`: one effect from the private results of several sites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterveil.cli.options import AsJson, Report
from counterveil.cli.showing import check_target, show


def pool(
    files: Annotated[
        list[Path], typer.Argument(help="Results of the sites, as `estimate --json` prints them.")
    ],
    method: Annotated[
        str, typer.Option(help='"mvagg", "ivw", "all", "largest" or "random_effects".')
    ] = "mvagg",
    level: Annotated[float, typer.Option(help="Confidence level of the interval.")] = 0.95,
    most_weight: Annotated[
        float | None,
        typer.Option(
            help="The most weight of one site; weights then follow no variance that a site reports."
        ),
    ] = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Average the private effects of several sites; spends nothing."""
    import counterveil as cv

    check_target(report)
    bounds = None if most_weight is None else cv.settings.WeightLimits(most_weight)
    show(cv.pool(files, method=method, level=level, weight_limits=bounds), report, as_json)
