"""The command line, as all tests call it."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from counterveil.cli.app import INTERRUPTED, run


@dataclass(frozen=True)
class Asked:
    """What became of a command: what it printed, its exit code and the error that ended it."""

    stdout: str
    stderr: str
    output: str
    exit_code: int
    exception: BaseException | None


class Both(io.StringIO):
    """A stream whose text goes into another one too, in the order in which it comes."""

    def __init__(self, joint):
        super().__init__()
        self.joint = joint

    def write(self, text):
        self.joint.write(text)
        return super().write(text)


def asked(*words, typed=None):
    """Return what became of a command; `typed` is what a person answers."""
    joint = io.StringIO()
    out, err, code, fault = Both(joint), Both(joint), 0, None
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", io.StringIO(typed or "")):
        try:
            run([str(word) for word in words])
        except SystemExit as end:
            code = end.code or 0
            fault = end if code else None
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Exception as error:
            code, fault = 1, error
    return Asked(out.getvalue(), err.getvalue(), joint.getvalue(), code, fault)


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
