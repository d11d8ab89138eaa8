"""Processes that try inputs one after the other, each within 5 seconds of CPU and 4 GiB; a dead one is replaced."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tools.fuzzing.judging import FAILED, Subject, Verdict, judge

CPU_SECONDS = 5.0
WALL_SECONDS = 90.0
MEMORY = 4 * 2**30
_START_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Task:
    """One input: the name of its subject and its number."""

    subject: str
    number: int


Told = Callable[[Task, Verdict], None]


class _Worker:
    """A process and the task it is at."""

    def __init__(self, subjects: dict[str, Subject], seed: int) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, inner = context.Pipe()
        self.process = context.Process(target=_serve, args=(inner, subjects, seed), daemon=True)
        self.process.start()
        inner.close()
        self.task: Task | None = None
        self.since = time.monotonic()

    def give(self, task: Task | None) -> None:
        """Send the next task, or the word to end."""
        self.task, self.since = task, time.monotonic()
        try:
            self.pipe.send(task)
        except OSError:
            return

    def end(self) -> int:
        """Stop the process; return how it ended."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return self.process.exitcode or 0


def run(
    tasks: Sequence[Task], subjects: dict[str, Subject], seed: int, processes: int, until: float, told: Told
) -> int:
    """Try the tasks, tell each verdict, and return how many were left when the time was over."""
    waiting = list(reversed(tasks))
    workers = [_Worker(subjects, seed) for _ in range(processes)]
    busy = list(workers)
    while busy:
        for pipe in wait([each.pipe for each in busy], timeout=1.0):
            worker = next(each for each in busy if each.pipe is pipe)
            replaced = _advance(worker, waiting, subjects, seed, until, told)
            busy.remove(worker)
            busy += [replaced] if replaced is not None else []
        for worker in [each for each in busy if time.monotonic() - each.since > _patience(each)]:
            _report(worker, f"no answer within {_patience(worker):.0f} s", told)
            worker.end()
            busy[busy.index(worker)] = _Worker(subjects, seed)
    return len(waiting)


def _patience(worker: _Worker) -> float:
    return _START_SECONDS if worker.task is None else WALL_SECONDS


def _advance(
    worker: _Worker, waiting: list[Task], subjects: dict[str, Subject], seed: int, until: float, told: Told
) -> _Worker | None:
    """Take what a worker says and give it the next task; return who goes on, None where nothing is left."""
    try:
        verdict: Verdict | None = worker.pipe.recv()
        alive = True
    except (EOFError, OSError):
        verdict, alive = None, False
    if alive and verdict is not None and worker.task is not None:
        told(worker.task, verdict)
    if not alive and worker.task is None:
        worker.end()
        raise RuntimeError("a worker could not prepare itself")
    if not alive:
        code = worker.end()
        hung = -code == signal.SIGPROF
        _report(
            worker, f"more than {CPU_SECONDS:.0f} s of CPU" if hung else f"the process died ({code})", told
        )
    if not waiting or time.monotonic() > until:
        if alive:
            worker.give(None)
            worker.process.join(10)
            worker.end()
        return None
    if not alive:
        return _Worker(subjects, seed)
    worker.give(waiting.pop())
    return worker


def _report(worker: _Worker, reason: str, told: Told) -> None:
    if worker.task is not None:
        told(worker.task, Verdict(FAILED, reason))


def _serve(pipe: Connection[Any, Any], subjects: dict[str, Subject], seed: int) -> None:
    """Answer tasks until told to end: a first None says that the process is ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory(prefix="fuzzing-") as folder:
        os.chdir(folder)
        for prepare in {getattr(subject, "prepare", None) for subject in subjects.values()} - {None}:
            prepare(Path(folder))
        pipe.send(None)
        while (task := pipe.recv()) is not None:
            # Its default action ends the process even inside a loop of C.
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS * getattr(subjects[task.subject], "batch", 1))
            verdict = judge(subjects[task.subject], task.subject, task.number, seed, Path(folder))
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send(verdict)
