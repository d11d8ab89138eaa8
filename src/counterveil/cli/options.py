"""The options that several commands have, each with one text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataFile = Annotated[str, typer.Argument(help="A CSV or Parquet file.")]
StudyFile = Annotated[Path, typer.Option(help="The study file (TOML): roles, public bounds, categories.")]
Protects = Annotated[str, typer.Option(help='"outcome" or "record": what is kept secret.')]
Method = Annotated[str, typer.Option(help='"auto" or an estimator; a wrong name lists them.')]
Target = Annotated[str, typer.Option("--estimand", help='"ATE", "ATT" or "ATC".')]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the method, NAME=VALUE; may be repeated.")
]
Epsilon = Annotated[str, typer.Option(help="Privacy loss to spend, exact: 0.1 or 1/10.")]
Delta = Annotated[str, typer.Option(help="0 for a pure guarantee.")]
Level = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
Law = Annotated[str | None, typer.Option(help="Law of the noise; chosen when left out.")]
LedgerPlace = Annotated[str | None, typer.Option(help="Ledger file or PostgreSQL URL to charge.")]
AnchorPlace = Annotated[
    str | None,
    typer.Option("--anchor", help="Second place of the ledger's head: a file, a folder or a PostgreSQL URL."),
]
Account = Annotated[str | None, typer.Option(help="Account in the ledger.")]
RequestId = Annotated[
    str | None, typer.Option(help="Name of this request; asked again, it is answered again at no cost.")
]
Analyst = Annotated[
    str | None,
    typer.Option(help="Who asks, as the ledger keeps it; the operating system's user when left out."),
]
Report = Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
