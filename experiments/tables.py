"""What tables of several experiments share: a tally of intervals, and the command that prints them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

# Seeds of the figures that are reported; designs and settings were tried on those below.
FIRST_SEED = 1000
_FIRST = [FIRST_SEED]


def seeds(draws: int) -> range:
    """Return the seeds of a table."""
    return range(_FIRST[-1], _FIRST[-1] + draws)


@dataclass
class Tally:
    """How often intervals covered, how long they were and how far estimates were off."""

    covered: list[bool] = field(default_factory=list)
    halves: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    def add(self, ends: tuple[float, float], estimate: float, truth: float) -> None:
        """Count one interval."""
        self.covered.append(ends[0] <= truth <= ends[1])
        self.halves.append((ends[1] - ends[0]) / 2)
        self.errors.append(estimate - truth)

    @property
    def error(self) -> float:
        """Root mean squared error."""
        return float(np.sqrt(np.mean(np.square(self.errors))))

    def cells(self, digits: int = 3) -> str:
        """Return coverage, mean half-width and root mean squared error, the last with so many digits."""
        return f"{100 * np.mean(self.covered):.1f} % | {np.mean(self.halves):.3f} | {self.error:.{digits}f}"


def print_tables(
    said: str | None, tables: Mapping[str, Callable[[int], Iterable[str]]], apart: Sequence[str] = ()
) -> None:
    """Print the tables that the command line asks for: all, or one; those apart are printed only by their names."""
    parser = argparse.ArgumentParser(description=said)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=list(tables))
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="the first seed")
    given = parser.parse_args()
    _FIRST.append(given.first)
    for name, table in tables.items():
        if given.only == name or (given.only is None and name not in apart):
            for line in table(given.draws):
                print(line, flush=True)
            print()
