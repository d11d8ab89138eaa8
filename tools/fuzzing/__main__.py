"""`python -m tools.fuzzing`: thousands of malformed inputs and messages, a table by subject, and every failure."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

from tools.fuzzing.judging import Answer, Attempt, BrokenRuleError, Subject, Verdict, generator, judge
from tools.fuzzing.workers import Task, run

# The parts of the inputs, out of their sum.
PARTS = {
    "frames": 24,
    "files": 14,
    "studies": 14,
    "drafts": 12,
    "documents": 14,
    "ledgers": 8,
    "arguments": 18,
    "commands": 8,
    "console": 13,
}
# So many messages are one task: a worker's time is then for these together.
_BATCH = 10


def subjects() -> dict[str, Subject]:
    """Return what makes the inputs of each subject, by its name."""
    found: dict[str, Subject] = {}
    for name in PARTS:
        module = import_module(f"tools.fuzzing.{name}")
        made: Subject = module.make
        if hasattr(module, "prepare"):
            made.prepare = module.prepare  # type: ignore[attr-defined]
        found[name] = made
    _messages.batch = _BATCH  # type: ignore[attr-defined]
    _messages.prepare = _prepare_messages  # type: ignore[attr-defined]
    return found | {"messages": _messages}


def _prepare_messages(_folder: Path) -> None:
    """Have the coordinator and the sites made before anything is timed."""
    from tools.fuzzing import messages

    messages.run(1, 0)


def _messages(rng: object, _folder: Path) -> Attempt:
    """Return the trial of a batch of changed messages between a coordinator and sites."""
    from tools.fuzzing import messages

    seed = rng.getrandbits(60)  # type: ignore[attr-defined]

    def attempt() -> Answer:
        failures = messages.run(_BATCH, seed)
        if failures:
            raise BrokenRuleError(f"messages.run({_BATCH}, {seed}): {failures[0]}")
        return Answer()

    return attempt


def tasks(inputs: int, messages: int) -> list[Task]:
    """Return the inputs of all subjects in their parts, well mixed, and the batches of messages."""
    total = sum(PARTS.values())
    listed = [Task(name, number) for name, part in PARTS.items() for number in range(inputs * part // total)]
    listed += [Task("messages", number) for number in range(messages // _BATCH)]
    generator("order", 0, 0).shuffle(listed)
    return listed


def main(arguments: list[str]) -> int:
    """Run what the arguments say, print a table and the failures, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzzing", description=__doc__)
    parser.add_argument("--inputs", type=int, default=5000)
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=None, help="left out: drawn, and printed")
    parser.add_argument("--minutes", type=float, default=20.0, help="stop after this time")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--only", default=None, help="SUBJECT or SUBJECT/NUMBER: one subject, or one input of it"
    )
    given = parser.parse_args(arguments)
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    known = subjects()
    if given.only and "/" in given.only:
        name, _, number = given.only.partition("/")
        return _one(known, name, int(number), seed)
    wanted = [task for task in tasks(given.inputs, given.messages) if given.only in (None, task.subject)]
    counts: Counter[tuple[str, str]] = Counter()
    failures: list[str] = []

    def told(task: Task, verdict: Verdict) -> None:
        counts[task.subject, verdict.state] += 1
        if verdict.state == "failed":
            line = f"{task.subject}/{task.number} --seed {seed}: {verdict.reason}"
            failures.append(line)
            print(line, flush=True)

    begin = time.monotonic()
    used = {name: known[name] for name in {task.subject for task in wanted}}
    left = run(wanted, used, seed, given.processes, begin + 60 * given.minutes, told)
    print(_table(counts))
    print(
        f"{sum(counts.values())} tried in {time.monotonic() - begin:.0f} s, {left} left, {len(failures)} failures"
    )
    return 1 if failures else 0


def _one(known: dict[str, Subject], name: str, number: int, seed: int) -> int:
    """Try one input in this process, where a debugger can be."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="fuzzing-") as folder, contextlib.chdir(folder):
        prepare = getattr(known[name], "prepare", None)
        if prepare is not None:
            prepare(Path(folder))
        verdict = judge(known[name], name, number, seed, Path(folder))
    print(f"{name}/{number} --seed {seed}: {verdict.state} {verdict.reason}")
    return 1 if verdict.state == "failed" else 0


def _table(counts: Counter[tuple[str, str]]) -> str:
    lines = [f"{'subject':12} {'tried':>7} {'answered':>9} {'refused':>8} {'failed':>7}"]
    for name in (*PARTS, "messages"):
        found = [counts[name, state] for state in ("answered", "refused", "failed")]
        lines.append(f"{name:12} {sum(found):7} {found[0]:9} {found[1]:8} {found[2]:7}")
    lines.append(f"messages are tried in batches of {_BATCH}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
