"""The command line's frame: verbs, and errors turned into exit codes."""

from __future__ import annotations

import json
import sys

import typer

from counterveil.cli.arms import arms
from counterveil.cli.cate import cate, effect
from counterveil.cli.demo import demo
from counterveil.cli.demo_federation import demo_federation
from counterveil.cli.doctor import doctor
from counterveil.cli.estimate import estimate
from counterveil.cli.groups import groups
from counterveil.cli.ledger import ledger_app
from counterveil.cli.policy_value import policy_value
from counterveil.cli.pool import pool
from counterveil.cli.site import site_app
from counterveil.cli.study import study_app
from counterveil.errors import CounterveilError

INTERRUPTED = 130

app = typer.Typer(
    name="counterveil",
    help="Private effects of treatments, with intervals that include the noise and promises that hold.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(estimate)
app.command()(arms)
app.command()(cate)
app.command()(effect)
app.command()(groups)
app.command()(policy_value)
app.command()(pool)
app.add_typer(ledger_app, name="ledger")
app.add_typer(site_app, name="site")
app.add_typer(study_app, name="study")
app.command()(doctor)
app.command()(demo)
app.command()(demo_federation)


def main() -> None:
    """Run the command line; refusals become a message and the exit code of their kind."""
    try:
        app()
    except CounterveilError as error:
        if "--json" in sys.argv:
            print(json.dumps({"error": error.to_dict()}, indent=2))
        else:
            print(error.text(), file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as end:
        # typer turns an interrupt into this exit code before it reaches us.
        if end.code == INTERRUPTED:
            print("interrupted; a budget that was reserved stays spent", file=sys.stderr)
        raise
