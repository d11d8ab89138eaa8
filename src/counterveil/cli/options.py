"""The options that several commands share, each written once, and the decorator that adds them to a command."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from counterveil.cli.help_text import LEDGER, OUTPUT


def option(metavar: str, text: str, *names: str, section: str | None = None) -> Any:
    """Return an option: what stands for its value, its help text, and its name if it is not the parameter's."""
    return typer.Option(*names, metavar=metavar or None, help=text, rich_help_panel=section)


def argument(metavar: str, text: str) -> Any:
    """Return an argument: what stands for it and its help text."""
    return typer.Argument(metavar=metavar, help=text)


Data = Annotated[str, argument("DATA", "A CSV or Parquet file, or a pattern that names several.")]
StudyFile = Annotated[Path, option("FILE", "Study file (TOML): column roles, public bounds and categories.")]
Protects = Annotated[
    str, option("LEVEL", '"outcome" if only outcomes are private, "record" if everything about a person is.')
]
Epsilon = Annotated[str, option("NUMBER", "Privacy loss to spend, read exactly: 0.1 or 1/10.")]
Delta = Annotated[
    str | None,
    option("NUMBER", "0 for pure differential privacy; a small positive number allows Gaussian noise."),
]
Method = Annotated[str, option("NAME", '"auto", or a method by name; an unknown name lists the methods.')]
Estimand = Annotated[str, option("NAME", '"ATE", "ATT" or "ATC".')]
Level = Annotated[float, option("NUMBER", "Confidence level of the intervals.")]
Mechanism = Annotated[
    str | None,
    option(
        "NAME",
        'Noise distribution: "staircase", "laplace", or "gaussian" if delta is positive; automatic if omitted.',
    ),
]
Settings = Annotated[list[str] | None, option("NAME=VALUE", "A setting of the method.", "--set")]
Table = Annotated[
    str | None, option("NAME", "Table to read if the data are a DuckDB file or a PostgreSQL URL.")
]
LedgerPlace = Annotated[
    str | None, option("PLACE", "Ledger to charge: a file or a PostgreSQL URL.", section=LEDGER)
]
Anchor = Annotated[
    str | None,
    option(
        "PLACE",
        "Second copy of the ledger's head, which must agree: a file, a folder or a PostgreSQL URL.",
        section=LEDGER,
    ),
]
Dataset = Annotated[
    str | None,
    option("NAME", "Account in the ledger; may be omitted if the ledger has only one.", section=LEDGER),
]
RequestId = Annotated[
    str | None,
    option(
        "NAME",
        "Name of this request. Repeating a named request returns the stored answer and costs nothing.",
        section=LEDGER,
    ),
]
Analyst = Annotated[
    str | None,
    option(
        "NAME", "Who asks, as the ledger records it; the operating system's user if omitted.", section=LEDGER
    ),
]
Report = Annotated[Path | None, option("FILE", "Also write an HTML report.", section=OUTPUT)]
Out = Annotated[Path | None, option("FILE", "Write the model as JSON; it holds no data.", section=OUTPUT)]
AsJson = Annotated[bool, option("", "Print JSON.", "--json", section=OUTPUT)]

Given = dict[str, Any]


def _shared(
    *,
    data: Data,
    study: StudyFile,
    protects: Protects,
    epsilon: Epsilon,
    delta: Delta = "0",
    method: Method = "auto",
    estimand: Estimand = "ATE",
    level: Level = 0.95,
    mechanism: Mechanism = None,
    setting: Settings = None,
    table: Table = None,
    ledger: LedgerPlace = None,
    anchor: Anchor = None,
    dataset: Dataset = None,
    request_id: RequestId = None,
    analyst: Analyst = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Hold the order and the defaults of the shared options."""


_SHARED = signature(_shared, eval_str=True).parameters


def shared(*names: str, **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds shared options to a command, which gets their values as its first argument.

    Required options come first, ledger and output last, the others in between.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = list(signature(function, eval_str=True).parameters.values())[1:]
        added = [each for each in _SHARED.values() if each.name in names]
        added = [
            each.replace(default=defaults[each.name]) if each.name in defaults else each for each in added
        ]

        @wraps(function)
        def command(**values: Any) -> None:
            given = {each.name: values.pop(each.name) for each in added}
            function(given, **values)

        merged = sorted(
            (each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*own, *added)),
            key=lambda each: _place(each, each.name in names),
        )
        command.__signature__ = Signature(merged)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in merged}
        # The signature of the function inside is not the command's.
        del command.__wrapped__
        return command

    return decorate


def _place(parameter: Parameter, is_shared: bool) -> int:
    """Return the place of an option: data and study, required ones, shared ones, own ones, then ledger and output."""
    if parameter.name in ("data", "study"):
        return 0
    if parameter.default is Parameter.empty:
        return 1 if is_shared else 2
    if not is_shared:
        return 4
    return 5 if parameter.annotation.__metadata__[0].rich_help_panel else 3
