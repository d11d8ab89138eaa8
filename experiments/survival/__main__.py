"""Survival: coverage, rivals, the size of the log-rank test, forms of tables, and the lung data.

`python -m experiments.survival` prints all tables with 200 draws a row (the size of the test with 2000); `--draws`
changes their number, `--first` their seeds, `--only` names one of coverage, rivals, sizes, grouping, forms, ratios,
adjusted, competing, lung.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from experiments.survival.adjusted import adjusted
from experiments.survival.forms import forms
from experiments.survival.grouping import grouping
from experiments.survival.lung import lung
from experiments.survival.ratios import competing, ratios
from experiments.survival.tables import coverage, rivals, sizes
from experiments.tables import print_tables

TABLES: dict[str, Callable[[int], Iterator[str]]] = {
    "coverage": coverage,
    "rivals": rivals,
    "sizes": lambda draws: sizes(10 * draws),
    "grouping": grouping,
    "forms": lambda _: forms(),
    "ratios": ratios,
    "adjusted": adjusted,
    "competing": competing,
    "lung": lung,
}

if __name__ == "__main__":
    print_tables(__doc__, TABLES)
