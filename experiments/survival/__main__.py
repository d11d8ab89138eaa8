"""Survival: coverage, rivals, the size of the log-rank test, forms of tables, and the lung data.

`python -m experiments.survival` prints all tables with 200 draws a row (the size of the test with 2000); `--draws`
changes their number, `--only` names one of coverage, rivals, sizes, forms, lung, or tuning, which is not among them.
`--first` is the first seed of the size of the test.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from experiments.survival.forms import forms
from experiments.survival.lung import lung
from experiments.survival.tables import FIRST_SEED, coverage, rivals, sizes, tuning

TABLES: dict[str, Callable[[int, int], Iterator[str]]] = {
    "coverage": lambda draws, _: coverage(draws),
    "rivals": lambda draws, _: rivals(draws),
    "sizes": lambda draws, first: sizes(10 * draws, first),
    "forms": lambda _, __: forms(),
    "lung": lambda draws, _: lung(draws),
}


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--only", choices=[*TABLES, "tuning"])
    given = parser.parse_args()
    for name, table in TABLES.items():
        if given.only in (None, name):
            for line in table(given.draws, given.first):
                print(line, flush=True)
            print()
    if given.only == "tuning":
        print("\n".join(tuning(given.draws)))


if __name__ == "__main__":
    main()
