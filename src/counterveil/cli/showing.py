"""How a command shows its answer: as text or JSON, and as a page where one is wanted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Protocol

from counterveil.bounded_reading import UnreadableError, checked_path
from counterveil.cli.charging import Charging
from counterveil.errors import ParameterError


class Answer(Protocol):
    """A result that can be written down."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts."""
        ...

    def to_html(self, path: str | Path) -> Path:
        """Write a page and return its path."""
        ...


def check_target(path: Path | None) -> None:
    """Raise CV-P021 where a file could not be written; asked before anything is spent."""
    if path is None:
        return
    try:
        checked_path(path)
    except UnreadableError as error:
        raise _unwritable(path, str(error)) from None
    if path.is_dir():
        raise _unwritable(path, "a folder")
    if not path.absolute().parent.is_dir():
        raise _unwritable(path, "a file in a folder that is not there")


def show(
    answer: Answer,
    report: Path | None,
    as_json: bool,
    charged: Charging | None = None,
    more: dict[str, Any] | None = None,
) -> None:
    """Print the answer and what it was charged to, and write its page where a path is given; `more` goes into JSON."""
    say(answer.to_dict() | (more or {}), str(answer), as_json, charged)
    if report is not None:
        try:
            answer.to_html(report)
        except OSError as error:
            raise _unwritable(report, str(error)) from None
        if not as_json:
            print(f"Report:      {report}")


def say(facts: dict[str, Any], text: str, as_json: bool, charged: Charging | None = None) -> None:
    """Print facts as JSON or text; what was charged goes with the text, or beside the JSON on standard error."""
    print(json.dumps(facts, indent=2) if as_json else text)
    if charged is not None and not (as_json and charged.ledger is None):
        print("\n".join(charged.lines()), file=sys.stderr if as_json else sys.stdout)


def _unwritable(path: Path, got: str) -> ParameterError:
    return ParameterError(
        "CV-P021",
        "this file cannot be written",
        expected="a path in a folder that exists and may be written to",
        got=f"{path}: {got}",
        fix="make the folder, or name another file; where a ledger was charged, ask again with the same "
        "--request-id: the answer is resent at no cost",
    )
