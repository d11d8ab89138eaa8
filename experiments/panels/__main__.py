"""Coverage of effects on changes, by period and of ratios.

`python -m experiments.panels` prints three tables with 200 draws a row, and `real` the example of re74, re75 and re78;
`--draws` changes their number, `--only` names one of changes, periods, ratios, real.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from experiments.panels.real import real
from experiments.panels.tables import changes, periods, ratios

TABLES: dict[str, Callable[[int], list[str]]] = {"changes": changes, "periods": periods, "ratios": ratios}


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=[*TABLES, "real"])
    given = parser.parse_args()
    for name, table in TABLES.items():
        if given.only in (None, name):
            for line in table(given.draws):
                print(line, flush=True)
            print()
    if given.only in (None, "real"):
        for line in real():
            print(line, flush=True)


if __name__ == "__main__":
    main()
