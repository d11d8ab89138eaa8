"""Files that are either whole or not there, however a process ends."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

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


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, None where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
