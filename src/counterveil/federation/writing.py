"""Files that are either whole or not there, and that their owner alone may read."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import IO, Any

from counterveil.bounded_reading import UnreadableError, read_text
from counterveil.errors import FederationError, ParameterError
from counterveil.untrusted import LONGEST_DOCUMENT, UntrustedError
from counterveil.untrusted import read_json as read_untrusted

_FILE, _FOLDER = 0o600, 0o700
_OTHERS = 0o077


def write_whole(path: Path, content: str | bytes) -> None:
    """Put a file of the owner's alone in its place in one step, after its content is on the disk."""
    data = content.encode() if isinstance(content, str) else content
    private_folder(path.parent)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE)
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


def private_folder(path: Path) -> Path:
    """Return a folder, made for its owner alone where it is new."""
    path.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    return path


def open_private(path: Path) -> IO[bytes]:
    """Return a file of the owner's alone to append to, made so where it is new."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _FILE), "ab")


def check_private(*paths: Path) -> None:
    """Raise CV-F045 where others than the owner may open a file or folder; what is missing is passed over."""
    for path in paths:
        try:
            found = path.stat()
        except OSError:
            continue
        if found.st_mode & _OTHERS or found.st_uid != os.geteuid():
            whose = (
                "another user's"
                if found.st_uid != os.geteuid()
                else f"open to others ({found.st_mode & 0o777:o})"
            )
            raise FederationError(
                "CV-F045",
                "others can open what must be the owner's alone",
                expected=f"{path.absolute().name}: a file or folder that only the user who runs this can open",
                got=whose,
                fix=f"chmod go-rwx {path.absolute()}; if others may have read a key or a token, make a "
                "new folder",
            )


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
        facts = read_untrusted(read_text(path, LONGEST_DOCUMENT), infinite=True)
    except (UnreadableError, UntrustedError) as error:
        raise damaged(path, str(error)) from None
    if not isinstance(facts, dict) or any(name not in facts for name in names):
        raise damaged(path, "other facts, or not all of them")
    return facts


def damaged(path: Path, got: str) -> ParameterError:
    """Return CV-P660."""
    return ParameterError(
        "CV-P660",
        "a file of this folder is damaged",
        expected=f"{path.parent.name}/{path.name} as counterveil wrote it",
        got=got,
        fix="restore it from a copy. A reply may be moved away instead: when the study is run again, the site "
        "sends the same answer at no cost",
    )
