"""Checkpoints: the hash of a ledger's newest entry, stored in a second place, so that lost entries are detected.

A ledger alone cannot tell that its newest entries were cut off, that an older copy was put in its place, or that
another ledger was. A checkpoint holds the ledger's id and the number and hash of its newest entry. It moves forward
only, after each commit and before anybody acts on it: an entry that is in no checkpoint yet has led to nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from counterveil.accounting.accounts import checkpoint_failed, cut_off, other_ledger
from counterveil.accounting.records import sync

# Each record of the file is written in one piece; while one is written, the other is whole.
_RECORD = 512


@dataclass(frozen=True, slots=True)
class Mark:
    """What a checkpoint holds: a ledger's id, its newest entry, and the entry up to which it was verified."""

    ledger: str
    seq: int
    hash: str
    checked_seq: int = 0
    checked_hash: str = ""

    def moved_to(self, new: Mark) -> Mark:
        """Return the later of both; marks of other ledgers, and another entry of the same number, are refused."""
        if new.ledger != self.ledger:
            raise other_ledger(new.ledger, self.ledger)
        if new.seq == self.seq and new.hash != self.hash:
            raise cut_off(self.seq, self.hash)
        later = max(self, new, key=lambda mark: mark.seq)
        checked = max(self, new, key=lambda mark: mark.checked_seq)
        return replace(later, checked_seq=checked.checked_seq, checked_hash=checked.checked_hash)


class FileCheckpoint:
    """A mark in a file of two records, which its owner alone may read; the newest whole record counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def place(self) -> str:
        """The file's path."""
        return str(self._path)

    def read(self) -> Mark | None:
        """Return the mark, None where there is no file; one that cannot be read raises CV-L063."""
        try:
            with self._path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return self._newest(file.read(4 * _RECORD))[0]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise checkpoint_failed(self.place, error.strerror or type(error).__name__) from None

    def create(self, mark: Mark) -> None:
        """Put down the first mark in one step, unless there is one."""
        draft = None
        try:
            handle, draft = tempfile.mkstemp(prefix=".checkpoint-", dir=self._path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(_written(mark) * 2)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, self._path)
            sync(self._path.parent)
        except OSError as error:
            raise checkpoint_failed(self.place, error.strerror or type(error).__name__) from None
        finally:
            if draft is not None:
                Path(draft).unlink(missing_ok=True)

    def advance(self, mark: Mark) -> None:
        """Move forward to `mark`, durably; a mark that is behind changes nothing."""
        with self._locked() as handle:
            old, slot = self._newest(os.pread(handle, 4 * _RECORD, 0))
            new = old.moved_to(mark)
            if new != old:
                os.pwrite(handle, _written(new), _RECORD * (1 - slot))
                os.fsync(handle)

    def close(self) -> None:
        """Do nothing: the file is open only while it is read or written."""

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            handle = os.open(self._path, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield handle
            finally:
                os.close(handle)
        except OSError as error:
            raise checkpoint_failed(self.place, error.strerror or type(error).__name__) from None

    def _newest(self, content: bytes) -> tuple[Mark, int]:
        """Return the newest whole record and its place."""
        found = []
        for slot in (0, 1):
            mark = _mark(content[slot * _RECORD : (slot + 1) * _RECORD])
            if mark is not None:
                found.append((mark, slot))
        if not found or len(content) != 2 * _RECORD:
            raise checkpoint_failed(self.place, "its content is damaged")
        return max(found, key=lambda each: (each[0].seq, each[0].checked_seq))


def _written(mark: Mark) -> bytes:
    """Return one record: the mark as JSON with its own hash, filled up with spaces."""
    facts = json.dumps(asdict(mark), sort_keys=True)
    line = json.dumps(
        {"mark": asdict(mark), "sha256": hashlib.sha256(facts.encode()).hexdigest()}, sort_keys=True
    )
    return line.encode().ljust(_RECORD - 1) + b"\n"


def _mark(record: bytes) -> Mark | None:
    """Return the mark of a record, None for one that is not whole."""
    try:
        facts: dict[str, Any] = json.loads(record)["mark"]
        mark = Mark(**facts)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return mark if _written_alike(mark, record) else None


def _written_alike(mark: Mark, record: bytes) -> bool:
    kinds = (mark.ledger, mark.seq, mark.hash, mark.checked_seq, mark.checked_hash)
    return [type(each) for each in kinds] == [str, int, str, int, str] and _written(mark) == record
