"""Survival: coverage, rivals, the size of the log-rank test, forms of tables, and the lung data.

`python -m experiments.survival` prints all tables with 200 draws a row (the size of the test with 2000); `--draws`
changes their number, `--only` names one of coverage, rivals, sizes, forms, lung, or tuning, which is not among them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from experiments.survival.forms import forms
from experiments.survival.lung import lung
from experiments.survival.tables import coverage, rivals, sizes, tuning

TABLES: dict[str, Callable[[int], Iterator[str]]] = {
    "coverage": coverage,
    "rivals": rivals,
    "sizes": lambda draws: sizes(10 * draws),
    "forms": lambda _: forms(),
    "lung": lung,
}


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=[*TABLES, "tuning"])
    given = parser.parse_args()
    for name, table in TABLES.items():
        if given.only in (None, name):
            for line in table(given.draws):
                print(line, flush=True)
            print()
    if given.only == "tuning":
        print("\n".join(tuning(given.draws)))


if __name__ == "__main__":
    main()
