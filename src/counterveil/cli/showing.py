"""How a command shows its answer: as text or JSON, and as a page where one is wanted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol


class Answer(Protocol):
    """A result that can be written down."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts."""
        ...

    def to_html(self, path: str | Path) -> Path:
        """Write a page and return its path."""
        ...


def show(answer: Answer, report: Path | None, as_json: bool) -> None:
    """Print the answer, and write its page where a path is given."""
    if report is not None:
        answer.to_html(report)
    print(json.dumps(answer.to_dict(), indent=2) if as_json else str(answer))
