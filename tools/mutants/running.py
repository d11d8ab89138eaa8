"""Runs tests against a copy of the package that holds one fault."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import Queue
from typing import Any

from tools.mutants.finding import Sources
from tools.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
# In seconds. A test that does not end, or ends the whole process, has noticed the fault.
LONGEST = 600
_NO_END, _DIED = "(no end)", "(the process died)"
_NOTHING_RAN = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one fault: the first test that failed, or None, and the seconds it took."""

    mutant: Mutant
    killer: str | None
    seconds: float


class Copies:
    """Copies of the package, one a worker, in a temporary folder; `close` takes them away."""

    def __init__(self, workers: int) -> None:
        self._sources: dict[Path, Sources] = {}
        self._servers: dict[Path, subprocess.Popen[str]] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="counterveil-mutants-"))
        self._free: Queue[Path] = Queue()
        for number in range(workers):
            copy = self.folder / str(number)
            shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
            # By time and size a changed file could pass for the old one.
            compile_dir(copy / "src", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
            self._sources[copy] = Sources(copy / "src" / "counterveil")
            self._servers[copy] = _server()
            self._free.put(copy)

    def close(self) -> None:
        """End the processes and remove all copies."""
        for server in self._servers.values():
            server.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def judge(self, mutant: Mutant) -> Verdict:
        """Return what the tests say about one fault."""
        copy = self._free.get()
        start = time.monotonic()
        try:
            path, text = self._sources[copy].planted(mutant)
            before = path.read_text(encoding="utf-8")
            path.write_text(text, encoding="utf-8")
            try:
                killer = self._killer(mutant, copy)
            finally:
                path.write_text(before, encoding="utf-8")
            return Verdict(mutant, killer, time.monotonic() - start)
        finally:
            self._free.put(copy)

    def _killer(self, mutant: Mutant, copy: Path) -> str | None:
        found = self._failed(copy, mutant.tests, stop=True)
        if not found and mutant.wider:
            # Many tests may take long for other reasons than a fault.
            found = [name for name in self._failed(copy, mutant.wider, stop=True) if name != _NO_END]
        return found[0] if found else None

    def _failed(self, copy: Path, tests: Sequence[str], *, stop: bool) -> list[str]:
        """Return the tests that failed, the first only with `stop`."""
        asked = {"source": str(copy / "src"), "tests": tests, "stop": stop}
        answer = self._answer(copy, asked) or self._answer(copy, asked)
        if answer is None:
            raise RuntimeError(f"the process that runs tests died twice: {' '.join(tests)}")
        if answer["code"] is None:
            return [_NO_END]
        if answer["code"] < 0:
            return [_DIED]
        if answer["code"] == _NOTHING_RAN or (answer["code"] and not answer["failed"]):
            raise RuntimeError(f"pytest ended with {answer['code']}: {' '.join(tests)}")
        return list(answer["failed"])

    def _answer(self, copy: Path, asked: dict[str, object]) -> dict[str, Any] | None:
        """Return what the copy's process answers; None where it died, and another one takes its place."""
        server = self._servers[copy]
        assert server.stdin is not None
        assert server.stdout is not None
        with suppress(BrokenPipeError):
            server.stdin.write(json.dumps(asked | {"longest": LONGEST}) + "\n")
            server.stdin.flush()
            line = server.stdout.readline()
            if line:
                found: dict[str, Any] = json.loads(line)
                return found
        self._servers[copy] = _server()
        return None

    def sound(self, tests: Iterable[str]) -> list[str]:
        """Return those of the tests that fail without any fault."""
        copy = self._free.get()
        try:
            wanted = sorted(set(tests))
            return self._failed(copy, wanted, stop=False) if wanted else []
        finally:
            self._free.put(copy)


def _server() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tools.mutants.serving"]
    # As tests/conftest.py has it; numpy is loaded before.
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=alone
    )


def judged(mutants: Sequence[Mutant], jobs: int, show: Callable[[Verdict], None]) -> list[Verdict]:
    """Return the verdicts in the order of the list; `show` is called with each as it comes."""
    copies = Copies(jobs)
    try:
        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(copies.judge, mutant) for mutant in mutants]
            for future in futures:
                future.add_done_callback(
                    lambda done: show(done.result()) if done.exception() is None else None
                )
            verdicts = [future.result() for future in futures]
        killers = [one.killer for one in verdicts if one.killer not in (None, _NO_END, _DIED)]
        broken = copies.sound(filter(None, killers))
        if broken:
            raise RuntimeError(f"these tests fail without any fault: {', '.join(broken)}")
        return verdicts
    finally:
        copies.close()
