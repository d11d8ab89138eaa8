"""The command line, as all tests call it."""

import json

from typer.testing import CliRunner

from counterveil.cli.app import app


def asked(*words, typed=None):
    """Return what became of a command: its output, its exit code and the error that ended it."""
    return CliRunner().invoke(app, [str(word) for word in words], input=typed)


def said(*words, typed=None):
    """Return what a command prints that ends well; a refusal is raised."""
    found = asked(*words, typed=typed)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.stdout


def as_json(*words):
    """Return what a command prints as JSON."""
    return json.loads(said(*words, "--json"))


def refusal(*words):
    """Return the code of the refusal that ends a command."""
    return asked(*words).exception.code
