"""The options that several commands share, each written once, and the decorator that adds them to a command."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo

from counterveil.bounded_reading import UnreadableError, written_number
from counterveil.errors import shown

# The arguments and options of a command as facts, and the help page that is drawn from them.
#
# Versions of typer draw help differently, and some leak their markup into it. Everything here is read off the
# signatures of our own functions, so that every version prints the same page; `tools/reference` reads the same.


_ARGUMENTS, _OPTIONS = "Arguments", "Options"
LEDGER, OUTPUT = "Ledger", "Output"


@dataclass(frozen=True, slots=True)
class Described:
    """One argument or option: its name as typed, what stands for its value, and what it means."""

    name: str
    metavar: str
    help: str
    required: bool
    default: str | None
    repeated: bool
    is_argument: bool
    section: str

    @property
    def words(self) -> str:
        """What a person types."""
        return self.metavar if self.is_argument else f"{self.name} {self.metavar}".strip()

    @property
    def usage(self) -> str:
        """An argument in the line of usage."""
        words = self.metavar + "..." * self.repeated
        return words if self.required else f"[{words}]"

    @property
    def notes(self) -> list[str]:
        """What the help page adds in brackets."""
        notes = ["required"] * (self.required and not self.is_argument)
        notes += ["repeatable"] * (self.repeated and not self.is_argument)
        return notes + ([] if self.default is None else [f"default: {self.default}"])


def described(command: Callable[..., object]) -> list[Described]:
    """Return the arguments and options of a command in the order of its signature."""
    hints = get_type_hints(command, include_extras=True)
    return [
        _described(each, *get_args(hints[each.name])[:2]) for each in signature(command).parameters.values()
    ]


def _described(parameter: Parameter, kind: Any, info: Any) -> Described:
    kinds = [kind, *get_args(kind)]
    is_argument = isinstance(info, ArgumentInfo)
    required = parameter.default is Parameter.empty
    given = None if required else parameter.default
    # typer takes the first name of an annotated option for a default, and puts it right later.
    names = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    return Described(
        name=next(iter(names), "--" + parameter.name.replace("_", "-")),
        metavar="" if bool in kinds else info.metavar,
        help=info.help,
        required=required,
        default=None if given is None or given is False or given == "" else str(given),
        repeated=any(get_origin(each) is list for each in kinds),
        is_argument=is_argument,
        section=_ARGUMENTS if is_argument else info.rich_help_panel or _OPTIONS,
    )


def _as_people_write(kind: Any) -> Any:
    """Return a type of options that takes the numbers of `written_number` alone, not all that Python reads."""
    own = copy(kind)

    def convert(value: Any, param: Any, ctx: Any) -> Any:
        if isinstance(value, str):
            try:
                written_number(value)
            except UnreadableError:
                own.fail(f"{shown(value)} is not a valid {own.name}.", param, ctx)
        return kind.convert(value, param, ctx)

    own.convert = convert
    return own


class Command(TyperCommand):
    """A command whose help page lists its options by section, the same with every version of typer."""

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        for param in self.params:
            if param.type.name in ("float", "integer"):
                param.type = _as_people_write(param.type)

    def _described(self) -> list[Described]:
        # typer wraps the function whose signature is read.
        callback: Any = self.callback
        return described(getattr(callback, "__wrapped__", callback))

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:
        """Return what follows the name of the command in its line of usage."""
        return ["[OPTIONS]", *(each.usage for each in self._described() if each.is_argument)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of the help page."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for each in self._described():
            notes = f"  [{'; '.join(each.notes)}]" if each.notes else ""
            sections.setdefault(each.section, []).append((each.words, each.help + notes))
        last = sections.pop(OUTPUT, [])
        last.append((", ".join(ctx.help_option_names), "Show this message and exit."))
        # A short page needs no section for its output.
        title = OUTPUT if set(sections) - {_ARGUMENTS, _OPTIONS} else _OPTIONS
        sections[title] = sections.get(title, []) + last
        # One width for all sections, so that they line up.
        width = max(len(words) for rows in sections.values() for words, _ in rows)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl([(words.ljust(width), text) for words, text in rows], col_max=width + 2)


def commands(help_text: str, **options: Any) -> typer.Typer:
    """Return an empty group of commands; without a command it prints its help page."""
    # A traceback with the values of variables would print private rows.
    safe: dict[str, Any] = {"pretty_exceptions_enable": False, "pretty_exceptions_show_locals": False}
    return typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None, **safe, **options)


def option(metavar: str, text: str, *names: str, section: str | None = None) -> Any:
    """Return an option: what stands for its value, its help text, and its name if it is not the parameter's."""
    return typer.Option(*names, metavar=metavar or None, help=text, rich_help_panel=section)


def argument(metavar: str, text: str) -> Any:
    """Return an argument: what stands for it and its help text."""
    return typer.Argument(metavar=metavar, help=text)


Data = Annotated[str, argument("DATA", "A CSV or Parquet file, or a pattern that names several.")]
StudyFile = Annotated[
    Path,
    option(
        "FILE",
        "Study file (TOML): column roles, public bounds and categories; FILE#NAME for one of several in it.",
    ),
]
Protects = Annotated[
    str,
    option(
        "LEVEL",
        'What is private: "outcome", "treatment and outcome" (covariates are public), or "record" (everything).',
    ),
]
Epsilon = Annotated[str, option("NUMBER", "Privacy loss to spend, read exactly: 0.1 or 1/10.")]
Delta = Annotated[
    str | None,
    option("NUMBER", "0 for pure differential privacy; a small positive number allows Gaussian noise."),
]
Method = Annotated[str, option("NAME", '"auto", or a method by name; an unknown name lists the methods.')]
Estimand = Annotated[
    str | None,
    option("NAME", '"ATE" (the default), "ATT" (the default of a study with `before`), "ATC" or "ATO".'),
]
Level = Annotated[float, option("NUMBER", "Confidence level of the intervals.")]
Mechanism = Annotated[
    str | None,
    option(
        "NAME",
        'Noise distribution: "staircase", "laplace", or "gaussian" if delta is positive; automatic if omitted.',
    ),
]
Trim = Annotated[
    str | None,
    option(
        "NUMBER",
        'Keep people with propensity scores in [NUMBER, 1 - NUMBER], or "optimal"; protects="outcome" only.',
    ),
]
Measure = Annotated[
    str,
    option("NAME", '"difference", "ratio", "odds_ratio", "lift" or "nnt" (number needed to treat).'),
]
Settings = Annotated[list[str] | None, option("NAME=VALUE", "A setting of the method.", "--set")]
Where = Annotated[
    str | None,
    option("CONDITION", "Rows that belong to the study: \"age >= 18 and site in ['A', 'B']\"."),
]
Table = Annotated[
    str | None, option("NAME", "Table to read if the data are a DuckDB file, a database URL or spark://.")
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
Report = Annotated[
    Path | None,
    option(
        "FILE", "Also write a report: HTML, or Markdown or LaTeX for a name in .md or .tex.", section=OUTPUT
    ),
]
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
    estimand: Estimand = None,
    level: Level = 0.95,
    mechanism: Mechanism = None,
    setting: Settings = None,
    trim: Trim = None,
    measure: Measure = "difference",
    where: Where = None,
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
