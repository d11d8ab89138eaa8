"""What is kept of a call, and how two records of it differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tools.golden.asking import Call
from tools.golden.numbers import numbers, texts

from counterveil.errors import CounterveilError

Record = dict[str, Any]
Records = dict[str, Record]
_SHOWN = 3


def record(call: Call) -> Record:
    """Return the numbers and texts of a call's answer, the code of its refusal, or what it failed with."""
    try:
        answer = call.answer()
        return {"numbers": numbers(call.question, answer), "text": texts(answer)}
    except CounterveilError as error:
        return {"refused": error.code}
    except Exception as error:
        return {"fault": f"{type(error).__name__}: {error}"}


def write(records: Records, path: Path) -> None:
    """Write records as JSON, one call a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(records[name])}" for name in sorted(records)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(paths: Iterable[Path]) -> Records:
    """Return the records of several files together."""
    found: Records = {}
    for path in paths:
        found |= json.loads(path.read_text(encoding="utf-8"))
    return found


def differences(before: Records, after: Records, text: bool) -> Iterator[str]:
    """Yield a line for every call that is in one of both alone, or that differs."""
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"{name}: no longer asked"
        elif name not in before:
            yield f"{name}: not in the file"
        else:
            found = [*_apart(before[name], after[name], text)]
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            if found:
                yield f"{name}: {'; '.join(found[:_SHOWN])}{more}"


def _apart(before: Record, after: Record, text: bool) -> Iterator[str]:
    if "numbers" not in before or "numbers" not in after:
        if before != after:
            yield f"{_said(before)} before, {_said(after)} now"
        return
    old, new = before["numbers"], after["numbers"]
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield f"{key} was {_decimal(old.get(key))}, is {_decimal(new.get(key))}"
    if text:
        for key, digest in before["text"].items():
            if after["text"].get(key) != digest:
                yield f"{key} has another text"


def _said(one: Record) -> str:
    if "refused" in one:
        return f"refused with {one['refused']}"
    return f"failed with {one['fault']}" if "fault" in one else "answered"


def _decimal(written: list[str] | None) -> str:
    """Return numbers as people read them, with every digit that tells two apart."""
    if written is None:
        return "missing"
    return "[" + ", ".join(repr(float.fromhex(one)) if "0x" in one else one for one in written) + "]"
