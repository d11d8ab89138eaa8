"""`python -m benchmarks growth`: every method and question at two sizes, beside the ratios that are kept.

The exit code is 1 where something got worse by more than a quarter, failed, or misses an aim that it met.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import nan
from statistics import median

from rich.console import Console
from rich.table import Table

from .kept import PATH, WORSE, Kept, Ratios, findings, missed, shown_worse, this_machine
from .measuring import PEER
from .questions import ASKED

# What `--only` calls the part that compares showing with estimating.
SHOWN = "printing"
SIZES = (100_000, 1_000_000)
# Threads that wait for each other count as busy, and copies of a process not at all: with one core, CPU is work.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "COUNTERVEIL_CORES"), "1")
Figures = Mapping[str, float]


@dataclass(frozen=True)
class Run:
    """What was measured, by name and rows; a text where it failed."""

    rows: tuple[int, int]
    figures: Mapping[tuple[str, int], Figures | str]

    @property
    def bare(self) -> float:
        """CPU seconds of one pass over the columns at the larger size, the median of all processes."""
        _, large = self.rows
        found = [
            one["bare"]
            for (_, rows), one in self.figures.items()
            if rows == large and not isinstance(one, str)
        ]
        return median(found) if found else nan

    def of(self, name: str) -> tuple[Figures, Figures] | str:
        """Return the figures of both sizes, or why there are none."""
        small, large = (self.figures[name, rows] for rows in self.rows)
        if isinstance(small, str):
            return small
        return large if isinstance(large, str) else (small, large)

    def ratios(self, name: str) -> Ratios | None:
        """Return the ratios of an entry; None where it failed."""
        found = self.of(name)
        if isinstance(found, str):
            return None
        small, large = found
        other = self.figures.get((PEER, self.rows[1]))
        beside = large["cpu"] / other["cpu"] if isinstance(other, Mapping) and name != PEER else None
        memory = large["bytes"] / large["data"]
        return Ratios(large["cpu"] / self.bare, beside, memory, large["cpu"] / small["cpu"])


def main(words: list[str]) -> int:
    """Run what the words ask for, print the table and return the exit code."""
    options = _options(words)
    names = [name for name in ASKED if not options.only or any(one in name for one in options.only)]
    printing = not options.only or SHOWN in options.only
    if not names and not printing:
        print(f"nothing is called {' or '.join(options.only)}; there are: {SHOWN}, {', '.join(ASKED)}")
        return 2
    small, large = sorted(options.rows)
    kept = Kept.read()
    comparable = kept if (small, large) == kept.rows else None
    run, wrong = _run(names, (small, large)), 0
    if names:
        wrong = show(run, names, comparable)
    shown = _said_of("benchmarks.printing") if printing else {}
    if isinstance(shown, str):
        print(f"{SHOWN}: failed: {shown}")
        return 1
    wrong += show_printing(shown, kept)
    if options.update:
        return _update(run, names, replace(kept, shown={**kept.shown, **shown}))
    return 1 if wrong else 0


def show_printing(shown: Figures, kept: Kept) -> int:
    """Print what showing many effects takes beside estimating them; return how many got worse."""
    for name, ratio in shown.items():
        old = kept.shown.get(name)
        before = "" if old is None else f" ({old:.1f})"
        said = ["worse"] * shown_worse(ratio, old) + missed({}, {name: ratio}).get(name, [])
        print(f"shown / estimated: {name}: {ratio:.1f}{before} {'; '.join(said)}")
    return sum(shown_worse(ratio, kept.shown.get(name)) for name, ratio in shown.items())


def show(run: Run, names: list[str], kept: Kept | None) -> int:
    """Print the table, and below it which aims are missed; return how many entries have something wrong."""
    small, large = run.rows
    table = Table(title=f"growth: {small:,} and {large:,} rows, 20 covariates", title_justify="left")
    for heading in ("question", "CPU s, fewer", "CPU s, more", "growth", "/ columns", "/ peer"):
        table.add_column(heading, justify="left" if heading == "question" else "right", no_wrap=True)
    table.add_column("memory / data", justify="right", no_wrap=True)
    table.add_column("finding")
    wrong = 0
    for name in names + [PEER] * ((PEER, large) in run.figures):
        found, ratios = run.of(name), run.ratios(name)
        if isinstance(found, str) or ratios is None:
            wrong += 1
            table.add_row(name, "-", "-", "-", "-", "-", "-", f"failed: {found}")
            continue
        old = kept.ratios.get(name) if kept is not None else None
        said = findings(ratios, old) if name != PEER else []
        wrong += bool(said)
        table.add_row(name, *(f"{one['cpu']:.3f}" for one in found), *_cells(ratios, old), "; ".join(said))
    console = Console(width=max(160, Console().width))
    console.print(table)
    console.print(_legend(run, kept), highlight=False, soft_wrap=True)
    for name, aims in missed({name: one for name in names if (one := run.ratios(name))}, {}).items():
        console.print(f"missed: {name}: {'; '.join(aims)}", highlight=False, soft_wrap=True)
    return wrong


def _cells(found: Ratios, old: Ratios | None) -> list[str]:
    """Return the ratios as text, each with the kept one in brackets."""
    texts = []
    for name in ("growth", "columns", "peer", "memory"):
        value, before = getattr(found, name), None if old is None else getattr(old, name)
        texts.append(_short(value) + ("" if before is None else f" ({_short(before)})"))
    return texts


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _legend(run: Run, kept: Kept | None) -> str:
    lines = [
        "CPU: from the frame to the answer, user and system time of all threads (linear algebra has one), the least "
        "of one or two calls in a process of its own, after one on fewer rows.",
        f"/ columns: beside adding up the frame's 22 columns, {1000 * run.bare:.1f} ms in this run. "
        f"/ peer: beside {PEER} with linear and logistic learners.",
        "memory / data: peak memory above the frame, beside the frame. "
        + (
            "Nothing is kept for these sizes."
            if kept is None
            else f"In brackets what is kept, from {kept.machine}. Worse: above {WORSE:g} times that."
        ),
    ]
    if (PEER, run.rows[1]) not in run.figures:
        lines.append(
            "DoubleML is not installed: nothing is compared with it, and `--update` keeps no ratio to it."
        )
    return "\n".join(lines)


def _run(names: list[str], rows: tuple[int, int]) -> Run:
    figures: dict[tuple[str, int], Figures | str] = {}
    peers = [PEER] if names and find_spec("doubleml") is not None else []
    for name in peers + names:
        for size in rows:
            figures[name, size] = _measure(name, size)
            print(f"{name}, {size:,} rows: {_said(figures[name, size])}", file=sys.stderr, flush=True)
    return Run(rows, figures)


def _said(found: Figures | str) -> str:
    return found if isinstance(found, str) else f"{found['cpu']:.3f} s"


def _measure(name: str, rows: int) -> Figures | str:
    """Return the figures of an entry."""
    return _said_of("benchmarks.growth.measuring", name, str(rows))


def _said_of(*module: str) -> Figures | str:
    """Return the figures of a process of its own, or the last line of what went wrong there."""
    words = [sys.executable, "-m", *module]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD)
    if done.returncode:
        return next((line for line in reversed(done.stderr.splitlines()) if line), f"code {done.returncode}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _update(run: Run, names: list[str], kept: Kept) -> int:
    """Write the ratios that were found; entries that were not run stay, those of another list go."""
    found = {name: run.ratios(name) for name in names}
    if None in found.values() or (run.rows != kept.rows and len(names) < len(ASKED)):
        print("not written: something failed, or the sizes are others than the kept ones")
        return 1
    both = {**kept.ratios, **{name: one for name, one in found.items() if one is not None}}
    ratios = {name: both[name] for name in ASKED if name in both}
    rows = run.rows if names else kept.rows
    machine = this_machine() if names else kept.machine
    Kept(machine, rows, ratios, kept.shown, missed(ratios, kept.shown)).write()
    print(f"written: {PATH.name}")
    return 0


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__)
    parser.add_argument("--rows", type=lambda text: int(float(text)), nargs=2, default=SIZES, metavar="N")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="names, or parts of them")
    parser.add_argument("--update", action="store_true", help="keep what this run finds")
    return parser.parse_args(words)
