"""The command: `python -m tools.mutants [--only TEXT] [--list] [--jobs 2]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tools.mutants.finding import NotPlantableError, Sources
from tools.mutants.kept import MUTANTS
from tools.mutants.mutant import HALVES, Mutant
from tools.mutants.running import ROOT, Verdict, judged

# Of either half, at least this part has to be noticed.
LEAST_KILLED = 0.95


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", help="faults whose name or half holds this text")
    parser.add_argument(
        "--list", action="store_true", help="print the kept faults and where they go; run nothing"
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many faults are tried at a time")
    given = parser.parse_args(arguments)
    wanted = [
        one for one in MUTANTS if given.only is None or given.only in one.name or given.only == one.half
    ]
    lost = unplantable(wanted) if wanted else []
    if given.list:
        for one in wanted:
            print(f"{one.half:<9}  {one.name}")
        print(f"{len(wanted)} faults: " + ", ".join(f"{_count(wanted, half)} {half}" for half in HALVES))
    for problem in lost:
        print(f"cannot be planted: {problem}", file=sys.stderr)
    if lost or given.list or not wanted:
        return 1 if lost or not wanted else 0
    start = time.monotonic()
    verdicts = judged(wanted, given.jobs, lambda one: print(line(one), flush=True))
    return summary(verdicts, time.monotonic() - start)


def unplantable(mutants: Sequence[Mutant]) -> list[str]:
    """Return one line for each fault that has no place in the package, or more than one."""
    sources, found = Sources(ROOT / "src" / "counterveil"), []
    for mutant in mutants:
        try:
            sources.planted(mutant)
        except NotPlantableError as error:
            found.append(str(error))
    names = [one.name for one in mutants]
    return found + [f"{name}: kept twice" for name in sorted(set(names)) if names.count(name) > 1]


def line(verdict: Verdict) -> str:
    """Return one line of the table."""
    word = "SURVIVED" if verdict.killer is None else "killed"
    name = " ".join(verdict.mutant.name.split())
    path, *rest = (verdict.killer or "").split("::")
    by = "::".join((path.rsplit("/", 1)[-1], *rest))
    return f"{word:<8}  {verdict.seconds:5.1f} s  {name[:100]:<100}  {by}".rstrip()


def summary(verdicts: Sequence[Verdict], seconds: float) -> int:
    """Print survivors and totals; return 1 where too few were killed."""
    survivors = [one for one in verdicts if one.killer is None]
    print("-" * 60)
    for one in survivors:
        print(f"SURVIVED: {one.mutant.name}")
    enough = True
    for half in HALVES:
        own = [one for one in verdicts if one.mutant.half == half]
        if own:
            killed = sum(one.killer is not None for one in own)
            enough &= killed >= LEAST_KILLED * len(own)
            print(f"{half:<9}  killed {killed} of {len(own)} ({killed / len(own):.0%})")
    print(f"{len(verdicts)} faults in {seconds / 60:.1f} minutes")
    return 0 if enough else 1


def _count(mutants: Sequence[Mutant], half: str) -> int:
    return sum(one.half == half for one in mutants)


if __name__ == "__main__":
    sys.exit(main())
