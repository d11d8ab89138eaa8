"""Scratch folders: where rows may lie on a disk while a request runs, and how they leave it again.

Every engine that may write rows gets its folder here. A process has one, for its user alone, in the folder that
`COUNTERVEIL_SCRATCH` names or in that for temporary files; each use of it has a folder in that one. Rows go

- with the request, also where it fails, and with the process, where it ends or is told to end;
- with a process that is killed: a watching shell waits for the end of a pipe that only this process holds open;
- where the shell was killed too, with the next process that makes such a folder: it removes those that nobody locks.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from counterveil.errors import refusal

# Names the folder for all of this, or says "none": never write rows to a disk.
VARIABLE = "COUNTERVEIL_SCRATCH"
NEVER = "none"
PREFIX = "counterveil-scratch-"
_NAME = re.compile(re.escape(PREFIX) + r"[a-z0-9_]{8}")
_LOCK = "lock"
# Waits until the pipe ends, whoever else is told to end meanwhile, and removes the folder. In the background of a
# shell that ends at once, so that nobody has to wait for it.
_WATCH = """exec 3<&0; (trap '' HUP INT TERM; read -r _ <&3; rm -rf -- "$0") &"""
# A folder may be removed by a process that sweeps before it is locked.
_ATTEMPTS = 10


def place() -> str | None:
    """Return the folder in which rows may lie, None where there is none; raises CV-D057."""
    named = os.environ.get(VARIABLE)
    if named == NEVER:
        return None
    if named:
        if not Path(named).is_dir() or not os.access(named, os.W_OK | os.X_OK):
            raise refusal("CV-D057", variable=VARIABLE)
        return str(Path(named).absolute())
    try:
        return tempfile.gettempdir()
    except OSError:
        return None


@contextmanager
def folder() -> Iterator[str | None]:
    """Give a folder that is removed afterwards, None where no rows may lie on a disk.

    Files in it are for their owner alone, whoever writes them.
    """
    root = _root()
    if root is None:
        yield None
        return
    made = tempfile.mkdtemp(dir=root)
    try:
        with _OWNER_ALONE:
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def lasting() -> str | None:
    """Return a path for a folder that is removed when the process ends, None where no rows may lie on a disk."""
    root = _root()
    return None if root is None else str(Path(root) / "lasting")


def unnamed_file() -> FileIO | None:
    """Return a file without a name, which is gone once it is closed; None where no rows may lie on a disk."""
    root = _root()
    if root is None:
        return None
    try:
        # Never linked or, where the file system knows no such files, unlinked at once.
        return tempfile.TemporaryFile(buffering=0, dir=root)
    except OSError:
        _require_usual()
        return None


class _OwnerAlone:
    """While any thread is inside, the files that this process makes are for their owner alone.

    The mask belongs to the process: an engine makes its files in threads of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = os.umask(0o077)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                os.umask(self._before)


_OWNER_ALONE = _OwnerAlone()


@dataclass(frozen=True, slots=True)
class _Root:
    """A process's folder, the lock on it, and the pipe whose end says that the process has ended."""

    path: str
    lock: int
    pipe: int

    def forget(self) -> None:
        """Let go of the lock and of the pipe."""
        os.close(self.lock)
        os.close(self.pipe)


# By the folder that they are in; and whoever makes or removes one.
_ROOTS: dict[str, _Root] = {}
_MAKING = threading.Lock()


def _root() -> str | None:
    """Return this process's folder, made anew where there is none, None where there cannot be one."""
    within = place()
    if within is None:
        return None
    with _MAKING:
        found = _ROOTS.get(within)
        # Whoever tidies a disk may have removed what was not used for days.
        if found is not None and not Path(found.path).is_dir():
            _ROOTS.pop(within).forget()
            found = None
        if found is None:
            try:
                _sweep(within)
                found = _ROOTS[within] = _made(within)
            except OSError:
                _require_usual()
                return None
        return found.path


def _require_usual() -> None:
    """Raise CV-D057 if somebody named the folder that cannot be used; without the usual one rows stay in memory."""
    if os.environ.get(VARIABLE):
        raise refusal("CV-D057", variable=VARIABLE)


def _made(within: str) -> _Root:
    """Return a new folder that is locked and watched, or raise OSError."""
    for _ in range(_ATTEMPTS):
        path = tempfile.mkdtemp(prefix=PREFIX, dir=within)
        try:
            lock = _locked(path)
        except (BlockingIOError, FileNotFoundError):
            # Another process swept it away before it was locked.
            continue
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return _Root(path, lock, _watched(path))
    raise OSError


def _sweep(within: str) -> None:
    """Remove the folders of processes that are gone: our user's, that nobody has locked."""
    with os.scandir(within) as entries:
        found = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
    # Some file systems lend a lock to the whole process, which then would not stop it here.
    own = {root.path for root in _ROOTS.values()}
    for path in found:
        with suppress(OSError):
            lock = _locked(path) if path not in own else None
            if lock is not None:
                # Follows no link; the lock goes with the rest.
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _locked(path: str) -> int:
    """Return the lock on a folder of our user, or raise OSError: BlockingIOError where somebody has it."""
    inside = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(inside).st_uid != os.geteuid():
            raise PermissionError(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        lock = os.open(_LOCK, flags, 0o600, dir_fd=inside)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Neither the lock nor the folder was removed before the lock was had.
            there = Path(path).lstat(), os.stat(_LOCK, dir_fd=inside, follow_symlinks=False)
            same = map(os.path.samestat, there, (os.fstat(inside), os.fstat(lock)))
            if not all(same) or not stat.S_ISREG(there[1].st_mode):
                raise FileNotFoundError(path)
        except OSError:
            os.close(lock)
            raise
        return lock
    finally:
        os.close(inside)


def _watched(path: str) -> int:
    """Return the writing end of a pipe; once it ends, a shell removes the folder."""
    import subprocess

    reading, writing = os.pipe()
    # Without a shell, the next process sweeps.
    with suppress(OSError):
        subprocess.run(
            ["/bin/sh", "-c", _WATCH, path],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            cwd="/",
            start_new_session=True,
            check=False,
        )
    os.close(reading)
    return writing


def _remove_all() -> None:
    """Remove the folders of this process."""
    with _MAKING:
        for root in _ROOTS.values():
            shutil.rmtree(root.path, ignore_errors=True)
            root.forget()
        _ROOTS.clear()


def _forget_all() -> None:
    """Leave the folders to the process that this one is a copy of, and let them go with that one."""
    global _MAKING, _OWNER_ALONE
    _MAKING, _OWNER_ALONE = threading.Lock(), _OwnerAlone()
    for root in _ROOTS.values():
        root.forget()
    _ROOTS.clear()


atexit.register(_remove_all)
os.register_at_fork(after_in_child=_forget_all)
