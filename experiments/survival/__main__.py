"""Survival: coverage, rivals, the size of the log-rank test, forms of tables, and the lung data.

`python -m experiments.survival` prints all tables with 200 draws a row, the size of the test with 2000.
"""

from __future__ import annotations

from experiments.runner import Table, run
from experiments.survival import adjusted, forms, grouping, lung, ratios, tables

TABLES: dict[str, Table] = {
    **tables.TABLES,
    "grouping": grouping.TABLE,
    "forms": forms.TABLE,
    "ratios": ratios.RATIOS,
    "adjusted": adjusted.TABLE,
    "competing": ratios.COMPETING,
    "lung": lung.TABLE,
}

if __name__ == "__main__":
    run(__doc__, TABLES)
