"""The `counterveil` program: its list of commands, and errors turned into exit codes."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from textwrap import fill
from typing import NoReturn

from counterveil.cli.audit import audit, console, export, reproduce
from counterveil.cli.coordinator import coordinator_app
from counterveil.cli.drafting import check, draft
from counterveil.cli.effects import (
    arms,
    cate,
    compliance,
    effect,
    estimate,
    event_study,
    groups,
    look,
    moments,
    outcomes,
    overlap,
    policy_value,
    pool,
    quantiles,
    regress,
    sensitivity,
    survival,
)
from counterveil.cli.installation import demo, demo_federation, doctor, explain
from counterveil.cli.ledger import ledger_app
from counterveil.cli.omop import omop
from counterveil.cli.planning import plan
from counterveil.cli.program import Group, read
from counterveil.cli.requests import flush_output
from counterveil.cli.site import site_app
from counterveil.errors import CounterveilError, refusal, unforeseen

INTERRUPTED = 130
# What a shell shows for a program that was told to end.
TERMINATED = 128 + signal.SIGTERM
# What a shell shows for a program whose reader went away.
NO_READER = 141
# What the exit codes mean that no class of errors has for itself; `tools/reference` prints both.
EXIT_CODES = {
    0: "done",
    1: "`doctor` found a problem",
    2: "invalid command line",
    INTERRUPTED: "interrupted from the keyboard; a budget that was reserved stays spent",
    TERMINATED: "ended by SIGTERM; a budget that was reserved stays spent",
    NO_READER: "the output pipe was closed early",
}


def _version() -> str:
    import counterveil

    return f"counterveil {counterveil.__version__}"


program = Group(
    "Differentially private causal inference: effects with intervals that include the privacy noise.",
    version=_version,
)
federation = Group("Estimate one effect across sites that keep their records.")

# The short texts are for the list of commands, which cuts long ones off.
for function, short in (
    (estimate, "Average effect of a treatment."),
    (arms, "Effects of several arms against a reference."),
    (look, "Effect at a planned look while data come in."),
    (event_study, "Effects by period, before and after treatment."),
    (quantiles, "Differences of quantiles and distributions."),
    (survival, "Survival curves and restricted means of two arms."),
    (outcomes, "Effects on several outcomes in one request."),
    (groups, "Effects in subgroups."),
    (cate, "Effect as a function of the covariates (CATE)."),
    (effect, "Evaluate a released effect model; free."),
    (moments, "Second moments, for regressions without further cost."),
    (regress, "Regression from released moments; free."),
    (compliance, "Complier effects from released moments; free."),
    (overlap, "Balance and overlap of private arms."),
    (policy_value, "Value of a treatment policy."),
    (pool, "Pool the released effects of several sites; free."),
    (sensitivity, "What an omitted confounder could do; free."),
    (omop, "Effect or survival curves of cohorts in OMOP tables."),
    (plan, "Width of the intervals of a planned study; free."),
    (draft, "Draft a study file from a header and a codebook."),
    (check, "Check that data fit a study file; free."),
    (export, "Answers of a ledger, for an output check or a registry."),
):
    program.command(short_help=short)(function)
program.add("ledger", ledger_app, short_help="Privacy budgets: create, show, verify.")
program.add("federation", federation, short_help="Several sites over a network.")
federation.add("site", site_app, short_help="A site that answers a coordinator's requests.")
federation.add("coordinator", coordinator_app, short_help="One question to several sites.")
federation.command("demo", short_help="Four sites and a coordinator on this machine.")(demo_federation)
for function, short in (
    (console, "Work in the browser, on this machine."),
    (explain, "Page of an error code, or a proof."),
    (doctor, "Check the installation."),
    (audit, "Attack the releases of this library."),
    (reproduce, "Tables, figures and claims of papers, run again."),
    (demo, "A real study, from data to report and ledger."),
):
    program.command(short_help=short)(function)


def run(words: Sequence[str]) -> None:
    """Do what the words of a command line ask for; a refusal is raised, and SystemExit for another exit code."""
    read(program, "counterveil", words)()


class _Ending:
    """What SIGTERM does: the command ends as by Ctrl-C, so that nothing of it stays on a disk."""

    def __init__(self) -> None:
        self.wanted = False
        # A thread of somebody's program takes no signals.
        with suppress(ValueError):
            signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self.wanted = True
        # Whoever is told twice ends, whatever it is doing: what it leaves is removed by others.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise KeyboardInterrupt


def main() -> None:
    """Run the command line; refusals become a message and the exit code of their kind."""
    code: object = 0
    ending = _Ending()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name of a file or a label may have letters that a terminal's encoding has not.
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            run(sys.argv[1:])
        except SystemExit:
            flush_output()
            raise
        # Where the reader of the output has gone, it shows here and not after the last line of Python.
        flush_output()
    except CounterveilError as error:
        if ending.wanted:
            # The interrupt was taken for a fault of what it interrupted.
            _ended()
        _refuse(error)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        sys.exit(NO_READER)
    except SystemExit as end:
        # typer leaves so where the reader of a help page has gone.
        code = NO_READER if isinstance(end.__context__, OSError) else end.code
    except OSError as fault:
        _refuse(_output_fault() or unforeseen(fault))
    except Exception as fault:
        if ending.wanted:
            _ended()
        _refuse(unforeseen(fault))
    if ending.wanted:
        _ended()
    if code == INTERRUPTED:
        print("interrupted; a budget that was reserved stays spent", file=sys.stderr)
    sys.exit(code)  # type: ignore[arg-type]


def _ended() -> NoReturn:
    print("ended by SIGTERM; a budget that was reserved stays spent", file=sys.stderr)
    sys.exit(TERMINATED)


def _refuse(error: CounterveilError) -> NoReturn:
    """Print a refusal and leave with the exit code of its kind."""
    said = False
    if "--json" in sys.argv:
        with suppress(OSError):
            print(json.dumps({"error": error.to_dict()}, indent=2))
            flush_output()
            said = True
    if not said:
        print(_readable(error.text()), file=sys.stderr)
    if _output_fault() is not None:
        _drop_output()
    sys.exit(error.exit_code)


def _output_fault() -> CounterveilError | None:
    """Return CV-P310 where standard output takes nothing, None where it does."""
    try:
        flush_output()
    except OSError as error:
        return refusal("CV-P310b", got=os.strerror(error.errno or 0))
    return None


def _drop_output() -> None:
    """Send what is left in the buffer nowhere, without a second complaint."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _readable(text: str) -> str:
    """Return a message with its lines folded under one another on a terminal, and as it is elsewhere."""
    if not sys.stderr.isatty():
        return text
    width = max(shutil.get_terminal_size().columns - 1, 40)
    return "\n".join(
        fill(line, width, subsequent_indent=" " * 12, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )
