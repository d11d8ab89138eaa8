"""The page of the command line: every command with its arguments, options and defaults, and the exit codes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter, getdoc, signature
from typing import Any, get_args, get_origin, get_type_hints

import typer
from tools.reference.markdown import table, template

from counterveil import errors
from counterveil.cli import app as program

# The command whose options the others repeat.
MODEL = "estimate"
# Where the how-to of a command is.
HOW_TO = {
    "arms": "[several arms](../how-to/several-arms.md)",
    "cate": "[who benefits](../how-to/who-benefits.md)",
    "effect": "[who benefits](../how-to/who-benefits.md)",
    "estimate": "[choose a method](../how-to/choose-a-method.md), [use a database](../how-to/use-a-database.md)",
    "federation coordinator create": "[ask several hospitals at once](../how-to/federation.md)",
    "federation site create": "[ask several hospitals at once](../how-to/federation.md)",
    "groups": "[effects by group](../how-to/effects-by-group.md)",
    "ledger access-policy": "[access policies](ledger.md#accesspolicy)",
    "ledger create": "[register a budget](../how-to/register-a-budget.md), [checkpoints](ledger.md#checkpoints)",
    "omop": "[compare cohorts in OMOP tables](../how-to/omop.md)",
    "plan": "[choose epsilon](../how-to/choose-epsilon.md)",
    "policy-value": "[the value of a policy](../how-to/policy-value.md)",
    "pool": "[pool sites](../how-to/pool-sites.md)",
}


_ArgumentInfo: type[Any] = type(typer.Argument())


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

    @property
    def words(self) -> str:
        """What a person types."""
        return self.metavar if self.is_argument else f"{self.name} {self.metavar}".strip()

    @property
    def usage(self) -> str:
        """An argument in the line of usage."""
        words = self.metavar + "..." * self.repeated
        return words if self.required else f"[{words}]"


def described(command: Callable[..., object]) -> list[Described]:
    """Return the arguments and options of a command in the order of its signature."""
    hints = get_type_hints(command, include_extras=True)
    return [_described(each, *get_args(hints[each.name])) for each in signature(command).parameters.values()]


def _described(parameter: Parameter, kind: Any, info: Any) -> Described:
    required = parameter.default is Parameter.empty
    given = None if required else parameter.default
    is_argument = isinstance(info, _ArgumentInfo)
    # Of the words that an annotation gives, typer takes the first for a default until it reads the command.
    names = (
        [] if is_argument else [each for each in (info.default, *info.param_decls) if isinstance(each, str)]
    )
    return Described(
        name=names[0] if names else f"--{parameter.name.replace('_', '-')}",
        metavar=info.metavar or "",
        help=info.help,
        required=required,
        default=None if given is None or given is False or given == "" else str(given),
        repeated=any(get_origin(each) is list for each in (kind, *get_args(kind))),
        is_argument=is_argument,
    )


def cli_page() -> str:
    """Return the text of `docs/reference/cli.md`."""
    commands = dict(program.program.every())
    unknown = set(HOW_TO) - set(commands)
    if unknown:
        raise ValueError(f"no such command: {', '.join(sorted(unknown))}; put HOW_TO right")
    known = set(map(_row, described(commands[MODEL])))
    sections = [
        _section(name, command, set() if name == MODEL else known) for name, command in commands.items()
    ]
    return template("cli.head", commands="\n".join(sections), exit_codes=_exit_codes())


def _section(name: str, command: Any, known: set[tuple[str, str, str]]) -> str:
    """Return the section of a command; options that `estimate` has alike are named only."""
    options = described(command)
    words = [each.usage for each in options if each.is_argument]
    lines = [f"## `{' '.join(['counterveil', name, *words])}`", "", *_paragraphs(getdoc(command) or "")]
    if name in HOW_TO:
        lines += [f"See {HOW_TO[name]}.", ""]
    rows = list(map(_row, options))
    own = [row for row in rows if row not in known]
    lines += [*table(("argument or option", "default", "meaning"), own), ""] if own else []
    if len(own) < len(rows):
        alike = ", ".join(row[0].partition(" ")[0].rstrip("`") + "`" for row in rows if row in known)
        lines += [f"As for [`{MODEL}`](#counterveil-{MODEL}-data): {alike}.", ""]
    return "\n".join(lines)


def _row(each: Described) -> tuple[str, str, str]:
    default = "required" if each.required else "" if each.default is None else f"`{each.default}`"
    return f"`{each.words}`", default, each.help


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield " ".join(paragraph.split())
        yield ""


def _exit_codes() -> str:
    """Return the table of exit codes: those of the classes of errors, and those of the program itself."""
    meanings: dict[int, list[str]] = defaultdict(list)
    letters: dict[int, set[str]] = defaultdict(set)
    raised = _letters()
    for code, meaning in program.EXIT_CODES.items():
        meanings[code].append(meaning)
    for kind in errors.CounterveilError.__subclasses__():
        first = (getdoc(kind) or "").split("\n\n")[0].partition(" Codes ")[0].rstrip(".")
        meanings[kind.exit_code].append(first[0].lower() + first[1:])
        letters[kind.exit_code] |= raised.get(kind.__name__, set())
    rows = (
        (
            str(code),
            _meaning(meanings[code]),
            ", ".join(f"`CV-{letter}...`" for letter in sorted(letters[code])),
        )
        for code in sorted(meanings)
    )
    return "\n".join(table(("code", "meaning", "error codes"), rows))


def _meaning(texts: list[str]) -> str:
    """Return one meaning in full, or several in short."""
    return texts[0] if len(texts) == 1 else ", or ".join(text.partition(";")[0] for text in texts)


def _letters() -> dict[str, set[str]]:
    """Return the letters of the codes of each class of errors, from the table of refusals."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in errors.refusals():
        found[errors.KINDS[row[3]].__name__].add(row[3])
    return found
