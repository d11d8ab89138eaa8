"""How a command line is read: typer reads the words and prints its own help pages, without markup.

Two things are done around it. Words that do not fit may hold a password or control characters, so what typer says of
them is made printable. And a command is called when typer is done with the words: while typer runs, it turns an
interrupt, or an output that nobody reads, into exit codes of its own.

`option` and `argument` are what the annotations of a command's parameters hold.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial, wraps
from typing import Annotated, Any

import typer

from counterveil.bounded_reading import UnreadableError, written_number
from counterveil.errors import printable, shown

LEDGER, OUTPUT = "Ledger", "Output"
_HELP = ("-h", "--help")
# What typer raises for words that do not fit. It has no name of typer's own, and its module differs between versions.
_UsageError: type[Any] = typer.BadParameter.__mro__[1]


class Group:
    """Commands that share a first word, or all of a program; without a further word its help page is printed.

    `version` returns what a whole program prints for --version.
    """

    def __init__(self, about: str, version: Callable[[], str] | None = None) -> None:
        self.commands: dict[str, Callable[..., object]] = {}
        self.groups: dict[str, Group] = {}
        self.app = typer.Typer(
            help=about,
            rich_markup_mode=None,
            context_settings={"help_option_names": [*_HELP]},
            add_completion=version is not None,
            # A traceback with the values of variables would print private rows.
            pretty_exceptions_enable=False,
            pretty_exceptions_show_locals=False,
        )
        self.app.callback(invoke_without_command=True)(
            _without_command if version is None else _with_version(version)
        )

    def command(
        self, name: str | None = None, *, short_help: str
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Return a decorator that makes a function a command: by its own name if none is given."""

        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            word = name or function.__name__.replace("_", "-")

            @wraps(function)
            def chosen(**values: Any) -> Callable[[], object]:
                return partial(function, **values)

            self.commands[word] = function
            self.app.command(word, short_help=short_help)(chosen)
            return function

        return decorate

    def add(self, name: str, group: Group, *, short_help: str) -> None:
        """Add a group below this one."""
        self.groups[name] = group
        self.app.add_typer(group.app, name=name, short_help=short_help)

    def every(self, before: str = "") -> Iterator[tuple[str, Callable[..., object]]]:
        """Yield every command with the words that call it."""
        for name, command in self.commands.items():
            yield before + name, command
        for name, group in self.groups.items():
            yield from group.every(f"{before}{name} ")


def _without_command(ctx: typer.Context) -> None:
    """Print the help page of a group that was named without a command."""
    if ctx.invoked_subcommand is None:
        print(_without_escapes(ctx.get_help()))


def _without_escapes(page: str) -> str:
    """Return a help page as it is meant: typer 0.20, which Flower needs, writes `\\[required]`."""
    return page.replace("\\[", "[")


def _with_version(version: Callable[[], str]) -> Callable[..., None]:
    """Return the same for a program, which has a version."""

    def frame(
        ctx: typer.Context,
        version_wanted: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    ) -> None:
        if version_wanted:
            print(version())
            raise typer.Exit
        _without_command(ctx)

    return frame


def read(program: Group, name: str, words: Sequence[str]) -> Callable[[], object]:
    """Return the call that the words of a command line ask for.

    Raises SystemExit after a help page, a shell's question for completions, or words that do not fit.
    """
    page = io.StringIO()
    try:
        with redirect_stdout(page if {*words} & {*_HELP} else sys.stdout):
            call = program.app(list(words), prog_name=name, standalone_mode=False)
    except _UsageError as fault:
        complaint = io.StringIO()
        fault.show(complaint)
        lines = complaint.getvalue().splitlines()
        print("\n".join(map(printable, lines)), file=sys.stderr)
        raise SystemExit(fault.exit_code) from None
    if callable(call):
        return call  # type: ignore[no-any-return]
    print(_without_escapes(page.getvalue()), end="")
    raise SystemExit(call)


def option(
    metavar: str,
    text: str,
    *names: str,
    section: str | None = None,
    values: Callable[[typer.Context, str], list[str]] | None = None,
    reads: type[float] | type[int] | None = None,
) -> Any:
    """Return an option: what stands for its value, its help text, and its name if it is not the parameter's.

    Its `section` orders the help page, `values` offers values to a shell, and `reads` is the kind of its numbers.
    """
    parser = None if reads is None else _as_people_write(reads)
    return typer.Option(
        *names,
        metavar=metavar or None,
        help=text,
        rich_help_panel=section,
        autocompletion=values,
        parser=parser,
    )


def argument(metavar: str, text: str) -> Any:
    """Return an argument: what stands for it and its help text."""
    return typer.Argument(metavar=metavar, help=text)


def _as_people_write(number: type[float] | type[int]) -> Callable[[Any], Any]:
    """Return what reads the numbers of `written_number` alone, not all that Python reads."""
    name = {float: "float", int: "integer"}[number]

    def parse(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            written_number(value)
            return number(value)
        except (UnreadableError, ValueError):
            raise typer.BadParameter(f"{shown(value)} is not a valid {name}.") from None

    parse.__name__ = name
    return parse
