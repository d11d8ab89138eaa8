"""Planned looks: how often intervals cover together, sizes of tests against margins, confidence sequences.

`python -m experiments.interim` prints `looks`, with 400 draws a row: the intervals of three looks beside intervals that
each say 95 %, with binary outcomes at risk .3 and two arms of equal size; "reported" is for a study that stops at the
first interval without zero, and reports that one. `decisions` takes 10 minutes of CPU with 200 draws; `--out` the
folder writes decisions.csv.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np

import counterveil as cv
from experiments.interim import decisions
from experiments.runner import Row, Table, run

ROWS = ([150, 300, 450], [400, 800, 2000])
STUDY = cv.Study("arm", cv.Outcome("y", (0, 1)), assignment=cv.Trial())
METHOD = {"outcome": "difference_in_means", "record": "trial"}


def looks_of(
    rows: list[int], level: str, epsilon: float, effect: float, spending: str, draw: int
) -> np.ndarray:
    """Return whether each look's interval covers, planned and at 95 %, and whether it excludes zero."""
    rng = np.random.default_rng([draw, rows[-1], int(100 * effect)])
    arm = np.arange(rows[-1]) % 2
    y = (rng.random(rows[-1]) < 0.3 + effect * arm).astype(float)
    plan = cv.interim.planned("y", rows, epsilon=epsilon, spending=spending)
    found = []
    with cv.open_ledger(":memory:", create=True) as book:
        book.register(
            "trial", cv.Budget(epsilon), access_policy=cv.drafting.AccessPolicy(public=["arm"], looks=plan)
        )
        for number, several in enumerate(rows, 1):
            data = {"arm": arm[:several], "y": y[:several]}
            seen = cv.interim.look(
                data,
                STUDY,
                number=number,
                protects=level,
                method=METHOD[level],
                ledger=book,
                noise=cv.SeededNoise(1000 * draw + number),
            )
            ends = [seen.interval(), seen.interval(0.95)]
            found.append([[low <= effect <= high, not low <= 0 <= high] for low, high in ends])
    return np.array(found)


def shares(found: np.ndarray) -> list[float]:
    """Return the shares of draws whose looks all cover, and whose reported look does, planned and at 95 %."""
    cells = []
    for kind in (0, 1):
        covers, stops = found[:, :, kind, 0], found[:, :, kind, 1]
        stops[:, -1] = True
        reported = covers[np.arange(len(covers)), stops.argmax(axis=1)]
        cells += [covers.all(axis=1).mean(), reported.mean()]
    return cells


def row(rows: list[int], level: str, epsilon: float, effect: float, spending: str, *, seeds: range) -> Row:
    """Return the shares of one plan of looks."""
    found = np.array([looks_of(rows, level, epsilon, effect, spending, draw) for draw in seeds])
    return [", ".join(map(str, rows)), level, epsilon, effect, spending, *shares(found)]


TABLES = {
    "looks": Table(
        columns=(
            "rows | protects | epsilon | effect | spending | planned: all :.3f | reported :.3f | "
            "each 95 %: all :.3f | reported :.3f"
        ),
        cells=list(product(ROWS, METHOD, (1, 6), (0.0, 0.1), ("obrien_fleming", "pocock"))),
        row=row,
        draws=400,
        first_seed=0,
    ),
    "decisions": decisions.TABLE,
}

if __name__ == "__main__":
    run(__doc__, TABLES, folder=Path(__file__).parent)
