"""Coverage of effects on changes, by period and of ratios.

`python -m experiments.panels` prints three tables with 200 draws a row, and `real` the example of re74, re75 and re78;
`--draws` changes their number, `--only` names one of changes, periods, ratios, real,
or ratio_shapes, which is not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from experiments.panels.real import real
from experiments.panels.tables import changes, periods, ratio_shapes, ratios
from experiments.tables import print_tables

TABLES: dict[str, Callable[[int], Iterator[str]]] = {
    "changes": changes,
    "periods": periods,
    "ratios": ratios,
    "ratio_shapes": ratio_shapes,
    "real": lambda _: real(),
}

if __name__ == "__main__":
    print_tables(__doc__, TABLES, apart=["ratio_shapes"])
