"""Settings in TOML and private files of coordinators and sites."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from counterveil.bounded_reading import LONGEST_MESSAGE, UnreadableError, parse_message, read_text
from counterveil.bounded_reading import read_toml as read_tables
from counterveil.errors import CounterveilError, refusal


def read_settings(path: Path, what: str) -> dict[str, Any]:
    """Return the contents of a TOML file, or raise CV-P600."""
    try:
        return read_tables(path)
    except UnreadableError as error:
        raise invalid(what, "a TOML file in UTF-8", f"{path.name!r}: {error}") from None


@dataclass(frozen=True, slots=True)
class TomlTable:
    """One table of a TOML file, read key by key; `what` names it in messages."""

    what: str
    values: Mapping[str, Any]

    def known(self, *names: str) -> None:
        """Raise CV-P600 for a key that nobody reads."""
        for name in self.values:
            if name not in names:
                raise invalid(self.what, f"one of {', '.join(names)}", f"the key {name!r}")

    def get(self, name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """Return a value of the kind wanted; without a default the key is required."""
        value = self.values.get(name, default)
        wrong = isinstance(value, bool) and kind is not bool
        if value is None or wrong or not isinstance(value, kind):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            names = " or ".join(each.__name__ for each in kinds)
            got = "no such key" if value is None else f"{name} = {value!r}"
            raise invalid(self.what, f"{name}: a {names}", got)
        return value

    def texts(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self.get(name, (list, tuple), default)
        if not all(isinstance(value, str) for value in values):
            raise invalid(self.what, f"{name}: a list of texts", f"{name} = {values!r}")
        return tuple(values)


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
            raise refusal("CV-F045", name=path.absolute().name, got=whose, path=path.absolute())


def write_json(path: Path, facts: Any) -> None:
    """Put a JSON file in its place in one step."""
    write_whole(path, json.dumps(facts, indent=2))


def read_json(path: Path, *names: str) -> dict[str, Any] | None:
    """Return the facts in a JSON file that was written here, None where there is none.

    A file that is broken, or lacks one of the names, raises CV-P660.
    """
    if not path.exists():
        return None
    try:
        facts = parse_message(read_text(path, LONGEST_MESSAGE), infinite=True)
    except UnreadableError as error:
        raise damaged(path, str(error)) from None
    if not isinstance(facts, dict) or any(name not in facts for name in names):
        raise damaged(path, "unknown or missing fields")
    return facts


def damaged(path: Path, got: str) -> CounterveilError:
    """Return CV-P660."""
    return refusal("CV-P660", parent=path.parent.name, name=path.name, got=got)


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,38}[A-Za-z0-9])?")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_HIGHEST_PORT = 65535


def check_name(name: str) -> str:
    """Return a site's name if it can be part of a file name, or raise CV-P601."""
    if _NAME.fullmatch(name):
        return name
    raise refusal("CV-P601", got=repr(name))


def check_address(address: str) -> str:
    """Return HOST:PORT if it is one, or raise CV-P602."""
    host, _, port = address.rpartition(":")
    if _HOST.fullmatch(host) and port.isascii() and port.isdecimal() and 0 < int(port) <= _HIGHEST_PORT:
        return address
    raise refusal("CV-P602", got=repr(address))


def host_of(address: str) -> str:
    """Return the host of a checked address."""
    return address.rpartition(":")[0]


def port_of(address: str) -> int:
    """Return the port of a checked address."""
    return int(address.rpartition(":")[2])


def invalid(what: str, expected: str, got: str) -> CounterveilError:
    """Return CV-P600."""
    return refusal("CV-P600", what=what, expected=expected, got=got)
