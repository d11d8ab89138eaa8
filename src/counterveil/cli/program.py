"""The words of a command line: commands and their options as facts, their help pages, and how words are read.

Words are read by typer, through its documented interface alone. What is printed is written here, from the signatures
of our own functions, so that every version of typer shows the same pages; `tools/reference` reads the same facts.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, Signature, getdoc, signature
from textwrap import wrap
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from counterveil.bounded_reading import UnreadableError, written_number
from counterveil.errors import printable, shown

LEDGER, OUTPUT = "Ledger", "Output"
_ARGUMENTS, _OPTIONS, _COMMANDS = "Arguments", "Options", "Commands"
_HELP = ("-h", "--help")
_HELP_TEXT = "Show this message and exit."
_VERSION_TEXT = "Show the version."
# Options that typer itself adds to a program.
_COMPLETION = (
    ("--install-completion", "Install completion for the current shell."),
    (
        "--show-completion",
        "Show completion for the current shell, to copy it or customize the installation.",
    ),
)
# Help pages are at most this wide, as narrow ones are read with less effort.
_WIDEST, _NARROWEST = 80, 52


@dataclass(frozen=True, slots=True)
class Word:
    """What the annotation of a parameter says of an option, or of an argument.

    `values` returns what a shell offers for an option of the command of this name.
    """

    metavar: str
    help: str
    names: tuple[str, ...] = ()
    section: str | None = None
    values: Callable[[str], list[str]] | None = None
    is_argument: bool = False


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
    return [_described(parameter, kind, word) for parameter, kind, word in _parameters(command)]


def _parameters(command: Callable[..., object]) -> Iterator[tuple[Parameter, Any, Word]]:
    """Yield each parameter of a command with its type and what its annotation says."""
    hints = get_type_hints(command, include_extras=True)
    for parameter in signature(command).parameters.values():
        kind, word = get_args(hints[parameter.name])
        yield parameter, kind, word


def _described(parameter: Parameter, kind: Any, word: Word) -> Described:
    kinds = [kind, *get_args(kind)]
    required = parameter.default is Parameter.empty
    given = None if required else parameter.default
    return Described(
        name=_typed(parameter, word)[0],
        metavar="" if bool in kinds else word.metavar,
        help=word.help,
        required=required,
        default=None if given is None or given is False or given == "" else str(given),
        repeated=any(get_origin(each) is list for each in kinds),
        is_argument=word.is_argument,
        section=_ARGUMENTS if word.is_argument else word.section or _OPTIONS,
    )


def _typed(parameter: Parameter, word: Word) -> tuple[str, ...]:
    return word.names or ("--" + parameter.name.replace("_", "-"),)


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a group: the function that it calls, and what the list of commands says of it."""

    function: Callable[..., object]
    short_help: str


@dataclass(frozen=True, slots=True)
class Group:
    """Commands that share a first word; without a further word its help page is printed.

    `version` returns what a whole program prints for --version.
    """

    help: str
    version: Callable[[], str] | None = None
    commands: dict[str, Command] = field(default_factory=dict)
    groups: dict[str, tuple[Group, str]] = field(default_factory=dict)

    def command(
        self, name: str | None = None, *, short_help: str
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Return a decorator that makes a function a command: by its own name if none is given."""

        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            self.commands[name or function.__name__.replace("_", "-")] = Command(function, short_help)
            return function

        return decorate

    def add(self, name: str, group: Group, *, short_help: str) -> None:
        """Add a group below this one."""
        self.groups[name] = (group, short_help)

    def every(self, before: str = "") -> Iterator[tuple[str, Callable[..., object]]]:
        """Yield every command with the words that call it."""
        for name, command in self.commands.items():
            yield before + name, command.function
        for name, (group, _) in self.groups.items():
            yield from group.every(f"{before}{name} ")


def read(program: Group, name: str, words: Sequence[str]) -> Callable[[], object]:
    """Return the call that the words of a command line ask for.

    Raises SystemExit after a help page, a shell's question for completions, or words that do not fit; the words of
    the message are made printable, as one of them may be an address with a password.
    """
    chosen: list[Callable[[], object]] = []
    # Only what was asked for is built: reading the options of every command takes a while.
    reader = _reader(program, name, list(words), chosen.append)
    complaint = io.TextIOWrapper(
        io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True
    )
    try:
        with redirect_stderr(complaint):
            reader(list(words), prog_name=name)
    except SystemExit:
        if chosen:
            return chosen[0]
        complaint.seek(0)
        lines = complaint.read().splitlines()
        if lines:
            path = _path(program, words)
            print("\n".join(map(printable, lines)), file=sys.stderr)
            print(f"Try '{' '.join([name, *path, _HELP[0]])}' for help.", file=sys.stderr)
        raise
    return chosen[0]


def _path(group: Group, words: Sequence[str]) -> list[str]:
    """Return the words at the beginning that name a group or a command."""
    for word in words[:1]:
        if word in group.groups:
            return [word, *_path(group.groups[word][0], words[1:])]
        if word in group.commands:
            return [word]
    return []


def _reader(group: Group, path: str, words: list[str], keep: Callable[[Any], None]) -> typer.Typer:
    """Return what reads the words below a group: all commands, or the one that the first word names."""
    is_program = group.version is not None
    # A traceback with the values of variables would print private rows.
    safe: dict[str, Any] = {"pretty_exceptions_enable": False, "pretty_exceptions_show_locals": False}
    app = typer.Typer(add_completion=is_program, rich_markup_mode=None, **safe)
    app.callback(invoke_without_command=True, add_help_option=False)(_without_command(group, path))
    asked = words[0] if words and {words[0]} & {*group.commands, *group.groups} else None
    for name, command in group.commands.items():
        if asked in (None, name):
            known: dict[str, Any] = {"name": name, "short_help": command.short_help, "add_help_option": False}
            app.command(**known)(_call(command.function, f"{path} {name}", name, keep))
    for name, (below, short_help) in group.groups.items():
        if asked in (None, name):
            app.add_typer(
                _reader(below, f"{path} {name}", words[1:] if asked else [], keep),
                name=name,
                short_help=short_help,
            )
    return app


def _without_command(group: Group, path: str) -> Callable[..., None]:
    """Return what a group does before its command: without one it prints its help page."""

    def frame(ctx: typer.Context, **_: bool) -> None:
        if ctx.invoked_subcommand is None:
            print(_group_page(group, path))

    flags = [_flag("help", lambda: _group_page(group, path), *_HELP, text=_HELP_TEXT)]
    if group.version is not None:
        flags.append(_flag("version", group.version, "--version", text=_VERSION_TEXT))
    context = Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    return _signed(frame, [context, *flags])


def _call(
    function: Callable[..., object], path: str, name: str, keep: Callable[[Any], None]
) -> Callable[..., None]:
    """Return what typer calls for a command: it keeps the call, which is made when typer is done."""

    def chosen(**values: Any) -> None:
        values.pop("help")
        keep(partial(function, **values))

    parameters = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=_annotation(parameter, kind, word, name))
        for parameter, kind, word in _parameters(function)
    ]
    return _signed(
        chosen, [*parameters, _flag("help", lambda: _page(function, path), *_HELP, text=_HELP_TEXT)]
    )


def _signed(function: Callable[..., None], parameters: list[Parameter]) -> Callable[..., None]:
    """Return a function with these parameters, as typer reads them."""
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    return function


def _flag(name: str, text_of: Callable[[], str], *typed: str, text: str) -> Parameter:
    """Return an option that prints a text and ends the program."""

    def print_text(ctx: typer.Context, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            print(text_of())
            raise typer.Exit

    # Annotations of this module are texts; typer looks them up where it finds no local names.
    print_text.__annotations__ = {"ctx": typer.Context, "wanted": bool}
    option = typer.Option(*typed, is_eager=True, callback=print_text, help=text)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option])


def _annotation(parameter: Parameter, kind: Any, word: Word, command: str) -> Any:
    """Return the annotation of a parameter in typer's terms."""
    told: dict[str, Any] = {"help": word.help}
    for number in (float, int):
        if number in (kind, *get_args(kind)):
            told["parser"] = _as_people_write(number)
    if bool not in (kind, *get_args(kind)):
        told["metavar"] = word.metavar
    if word.is_argument:
        return Annotated[kind, typer.Argument(**told)]
    values = word.values
    if values is not None:

        def offered(incomplete: str) -> list[str]:
            return [each.replace(" ", "\\ ") for each in values(command) if each.startswith(incomplete)]

        offered.__annotations__ = {"incomplete": str}
        told["autocompletion"] = offered
    return Annotated[kind, typer.Option(*_typed(parameter, word), **told)]


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


def _page(command: Callable[..., object], path: str) -> str:
    """Return the help page of a command."""
    options = described(command)
    usage = ["Usage:", path, "[OPTIONS]", *(each.usage for each in options if each.is_argument)]
    sections: dict[str, list[tuple[str, str]]] = {}
    for each in options:
        notes = f"  [{'; '.join(each.notes)}]" if each.notes else ""
        sections.setdefault(each.section, []).append((each.words, each.help + notes))
    last = [*sections.pop(OUTPUT, []), (", ".join(_HELP), _HELP_TEXT)]
    # A short page needs no section for its output.
    title = OUTPUT if set(sections) - {_ARGUMENTS, _OPTIONS} else _OPTIONS
    sections[title] = sections.get(title, []) + last
    return _text(usage, getdoc(command) or "", sections)


def _group_page(group: Group, path: str) -> str:
    """Return the help page of a group: its options and its commands."""
    options = [(", ".join(_HELP), _HELP_TEXT)]
    if group.version is not None:
        options = [("--version", _VERSION_TEXT), *_COMPLETION, *options]
    known = [(name, command.short_help) for name, command in group.commands.items()]
    known += [(name, short_help) for name, (_, short_help) in group.groups.items()]
    usage = ["Usage:", path, "[OPTIONS]", "COMMAND", "[ARGS]..."]
    return _text(usage, group.help, {_OPTIONS: options, _COMMANDS: known})


def _text(usage: list[str], about: str, sections: dict[str, list[tuple[str, str]]]) -> str:
    """Return a help page: usage, what it is about, and sections of words with their meaning."""
    width = max(min(shutil.get_terminal_size().columns, _WIDEST), _NARROWEST) - 2
    lines = wrap(" ".join(usage), width, subsequent_indent=" " * 8, **_UNBROKEN)
    for paragraph in about.split("\n\n"):
        lines += ["", *wrap(paragraph, width, initial_indent="  ", subsequent_indent="  ", **_UNBROKEN)]
    # One width for all sections of options, so that they line up.
    column = max(len(words) for rows in sections.values() for words, _ in rows) + 4
    for title, rows in sections.items():
        lines += ["", f"{title}:"]
        for words, text in rows:
            folded = wrap(text, max(width - column, 20), **_UNBROKEN)
            lines.append(f"  {words}".ljust(column) + folded[0])
            lines += [" " * column + line for line in folded[1:]]
    return "\n".join(lines)


_UNBROKEN: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
