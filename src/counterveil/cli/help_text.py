"""The arguments and options of a command as facts, and the help page that is drawn from them.

Versions of typer draw help differently, and some leak their markup into it. Everything here is read off the
signatures of our own functions, so that every version prints the same page; `tools/reference.py` reads the same facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo

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


class Command(TyperCommand):
    """A command whose help page lists its options by section, the same with every version of typer."""

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
