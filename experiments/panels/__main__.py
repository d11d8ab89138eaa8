"""Coverage of effects on changes, by period and of ratios.

`python -m experiments.panels` prints the tables with 200 draws a row; `real` and `years` are the example of re74, re75
and re78 (COUNTERVEIL_DATA), and `ratio_shapes` is made where `--only` names it.
"""

from __future__ import annotations

from experiments.panels.real import REAL
from experiments.panels.tables import TABLES
from experiments.runner import run

if __name__ == "__main__":
    run(__doc__, TABLES | REAL)
