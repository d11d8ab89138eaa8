"""The command line's frame: verbs, and errors turned into exit codes."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import traceback
from textwrap import fill
from typing import Annotated, Any, NoReturn

import typer

from counterveil.cli.arms import arms
from counterveil.cli.cate import cate, effect
from counterveil.cli.check import check
from counterveil.cli.demo import demo
from counterveil.cli.demo_federation import demo_federation
from counterveil.cli.doctor import doctor
from counterveil.cli.estimate import estimate
from counterveil.cli.explain import explain
from counterveil.cli.groups import groups
from counterveil.cli.ledger import ledger_app
from counterveil.cli.policy_value import policy_value
from counterveil.cli.pool import pool
from counterveil.cli.rehearse import rehearse
from counterveil.cli.site import site_app
from counterveil.cli.study import study_app
from counterveil.errors import CounterveilError, InternalError, printable

INTERRUPTED = 130
# What a shell shows for a program whose reader went away.
NO_READER = 141

# What typer raises for wrong words: a class of the package click, or of typer's own copy of it in newer versions.
USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    name="counterveil",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with the values of variables would print private rows.
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        import counterveil

        print(f"counterveil {counterveil.__version__}")
        raise typer.Exit


@app.callback()
def frame(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    """Private effects of treatments, with intervals that include the noise and promises that hold."""


# The short words are for the list of verbs, which cuts long ones off.
app.command(short_help="The average effect of a treatment.")(estimate)
app.command(short_help="The effects of several arms against a reference.")(arms)
app.command(short_help="The effect as a function of the covariates.")(cate)
app.command(short_help="Read effects off such a function; free.")(effect)
app.command(short_help="The effects of public groups.")(groups)
app.command(short_help="What a rule for whom to treat gains.")(policy_value)
app.command(short_help="Average the effects of several sites; free.")(pool)
app.command(short_help="How long intervals would be, on made-up data; free.")(rehearse)
app.command(short_help="Say whether data fit a study file; free.")(check)
app.add_typer(ledger_app, name="ledger", short_help="Grant a budget, see what became of it, verify it.")
app.add_typer(site_app, name="site", short_help="A site that answers requests over the network.")
app.add_typer(study_app, name="study", short_help="A coordinator that asks several sites.")
app.command(short_help="Show the page of an error code, or a proof.")(explain)
app.command(short_help="Check the installation.")(doctor)
app.command(short_help="Real data, from a table to a report and a ledger.")(demo)
app.command(short_help="Four sites and a coordinator on this machine.")(demo_federation)


def main() -> None:
    """Run the command line; refusals become a message and the exit code of their kind."""
    try:
        try:
            code = app(standalone_mode=False)
        finally:
            # Where the reader of the output has gone, it shows here and not after the last line of Python.
            sys.stdout.flush()
    except CounterveilError as error:
        _refuse(error)
    except USAGE_ERROR as error:
        # Words of the command line are repeated here; one of them may be an address with a password.
        said = io.StringIO()
        error.show(said)
        print("\n".join(map(printable, said.getvalue().splitlines())), file=sys.stderr)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        # Nothing more can be said; what is left in the buffer goes nowhere, without a second complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(NO_READER)
    except SystemExit:
        # typer leaves so where the reader of the output has gone.
        sys.exit(NO_READER)
    except Exception as fault:
        _refuse(unforeseen(fault))
    # typer turns an interrupt into this exit code before it reaches us.
    if code == INTERRUPTED:
        print("interrupted; a budget that was reserved stays spent", file=sys.stderr)
    sys.exit(code or 0)


def _refuse(error: CounterveilError) -> NoReturn:
    """Print a refusal and leave with the exit code of its kind."""
    if "--json" in sys.argv:
        print(json.dumps({"error": error.to_dict()}, indent=2), flush=True)
    else:
        print(_readable(error.text()), file=sys.stderr)
    sys.exit(error.exit_code)


def unforeseen(fault: BaseException) -> InternalError:
    """Return CV-X060 for an error that is not one of ours: its kind and place, never its text or its variables.

    The text of a stranger's error may quote a cell of the data, and so may the variables of a traceback.
    """
    place = "outside the package"
    for frame, line in traceback.walk_tb(fault.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] == "counterveil":
            place = f"{name}, line {line}"
    return InternalError(
        "CV-X060",
        "an error that was not foreseen",
        expected="an answer or a refusal",
        got=f"{type(fault).__name__} in {place}",
        fix="please report it with these lines, the version and the command, without data; a budget that was "
        "reserved stays spent, and `counterveil ledger show` lists it",
    )


def _readable(text: str) -> str:
    """Return a message with its lines folded under one another on a terminal, and as it is elsewhere."""
    if not sys.stderr.isatty():
        return text
    width = max(shutil.get_terminal_size().columns - 1, 40)
    return "\n".join(
        fill(line, width, subsequent_indent=" " * 12, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )
