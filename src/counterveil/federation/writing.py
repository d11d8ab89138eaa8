"""Files that are either whole or not there, however a process ends."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from counterveil.bounded_reading import UnreadableError
from counterveil.bounded_reading import read_json as read_document
from counterveil.errors import ParameterError

PRIVATE = 0o600


def write_whole(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Put a file in its place in one step, after its content is on the disk; None is returned."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, facts: Any) -> None:
    """Put a JSON file in its place in one step; None is returned."""
    write_whole(path, json.dumps(facts, indent=2))


def read_json(path: Path, *names: str) -> dict[str, Any] | None:
    """Return the facts in a JSON file that was written here, None where there is none.

    A file that is broken, or lacks one of the names, raises CV-P660.
    """
    if not path.exists():
        return None
    try:
        facts = read_document(path)
    except UnreadableError as error:
        raise _damaged(path, str(error)) from None
    if not isinstance(facts, dict) or any(name not in facts for name in names):
        raise _damaged(path, "other facts, or not all of them")
    return facts


def _damaged(path: Path, got: str) -> ParameterError:
    return ParameterError(
        "CV-P660",
        "a file of this folder is damaged",
        expected=f"{path.parent.name}/{path.name} as counterveil wrote it",
        got=got,
        fix="restore it from a copy. A reply may be moved away instead: when the study is run again, the site "
        "sends the same answer at no cost",
    )
