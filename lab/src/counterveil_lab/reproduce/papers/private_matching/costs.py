"""Tables IV and V: CPU seconds and peak memory of every method, each estimate in a fresh process of its own.

Seconds are those of one estimate with the data in memory and the code compiled; megabytes are the peak of the whole
process, with the interpreter and its libraries. AIM runs in a second process, whose megabytes are added, and on the
smallest study alone: the paper's own figure for ACIC is 12,570 seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from counterveil_lab.reproduce.papers.private_matching.methods import AIM_STUDY, LABEL, SAMPLE
from counterveil_lab.reproduce.papers.private_matching.studies import COMPETITORS, DELTA, STUDIES, records_of
from counterveil_lab.reproduce.protocol import Cell, Figure, Row
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.environment import unavailable
from counterveil_lab.reproduce.rivals.measuring import measured
from counterveil_lab.reproduce.rivals.protocol import Budget, Records

EPSILON = 1.0
OURS = (
    "ours, matching (outcome)",
    "ours, weighting (outcome)",
    "ours, difference in means (outcome)",
    "ours, difference in means (record)",
)
METHODS = {
    **{name: name for name in (*COMPETITORS, *OURS)},
    SAMPLE: "PrivATE, sample",
    LABEL: "PrivATE, label",
}
# The printed figures of both tables by study.
PRINTED = {
    "IPW-PP": {"seconds": (0.29, 0.16, 0.32, 0.06), "megabytes": (471.13, 470.92, 493.67, 472.70)},
    "SmoothDPM": {"seconds": (0.03, 0.04, 0.06, 0.02), "megabytes": (469.13, 468.92, 477.31, 470.81)},
    "DPCI": {"seconds": (0.09, 0.04, 0.94, 0.08), "megabytes": (479.84, 476.26, 483.60, 476.05)},
    "PrivSyn": {"seconds": (67.02, 5.18, 4861.72, 8.11), "megabytes": (540.44, 534.98, 572.21, 537.60)},
    "AIM": {"seconds": (210.35, 22.24, 12569.72, 104.63), "megabytes": (1712.74, 933.76, 4177.00, 1043.12)},
    SAMPLE: {"seconds": (0.08, 0.04, 0.68, 0.05), "megabytes": (470.60, 469.97, 484.55, 470.92)},
    LABEL: {"seconds": (0.06, 0.02, 0.55, 0.04), "megabytes": (468.19, 467.46, 479.83, 468.29)},
}


def cells(quick: bool) -> list[Cell]:
    """Return every method on every study, AIM where it ends in a minute; one study in quick mode."""
    found: list[Cell] = []
    for data in (AIM_STUDY,) if quick else STUDIES:
        for method in METHODS:
            slow = method == "AIM" and (quick or data != AIM_STUDY or unavailable(RIVALS["AIM"]) is not None)
            if not slow:
                found.append({"data": data, "method": method, "epsilon": EPSILON, "seed": 1})
    return found


def run(cell: Cell) -> list[Row]:
    """Return seconds and megabytes of one estimate; both tables come from one run of it."""
    return [dict(_measured(str(cell["method"]), str(cell["data"]), int(cell["seed"] or 0)))]


@cache
def _measured(method: str, data: str, seed: int) -> Row:
    rival = RIVALS[METHODS[method]]
    budget = Budget(EPSILON, DELTA if rival.delta == "needed" else 0.0)
    found = measured(rival, _by_columns(data), budget, seed)
    return {
        "seconds": found.seconds,
        "megabytes": found.peak,
        "first": found.first,
        "added": found.peak - found.before,
        "refused": found.refused,
    }


def _by_columns(data: str) -> Records:
    """Return a study's records with each column in one piece, as data frames keep them."""
    records = records_of(data)
    return replace(records, x=np.asfortranarray(records.x))


def table_of(measure: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return one line for each method, one column for each study, the printed figures below."""
    ours = rows.pivot(index="method", columns="data", values=measure)
    ours = ours.reindex(index=[m for m in METHODS if m in ours.index], columns=list(STUDIES)).reset_index()
    paper = pd.DataFrame(
        [
            {"method": f"{method}, as printed"} | dict(zip(STUDIES, figures[measure], strict=True))
            for method, figures in PRINTED.items()
        ]
    )
    return pd.concat([ours, paper], ignore_index=True)


def seconds_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return Table IV."""
    return table_of("seconds", rows)


def megabytes_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return Table V."""
    return table_of("megabytes", rows)


TABLES = (
    Figure("table-4", "Table IV: CPU seconds of one estimate", cells, run, seconds_table),
    Figure(
        "table-5",
        "Table V: peak megabytes, of both processes for AIM",
        cells,
        run,
        megabytes_table,
    ),
)


def _not_printed(measure: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return what makes a table of a measure that the paper does not have."""

    def table(rows: pd.DataFrame) -> pd.DataFrame:
        found = rows.pivot(index="method", columns="data", values=measure)
        known = [method for method in METHODS if method in found.index]
        return found.reindex(index=known, columns=list(STUDIES)).reset_index()

    return table


BESIDE = (
    Figure(
        "table-4-first",
        "Beside Table IV: CPU seconds of the first estimate in a new process",
        cells,
        run,
        _not_printed("first"),
    ),
    Figure(
        "table-5-added",
        "Beside Table V: megabytes that estimates add to the process",
        cells,
        run,
        _not_printed("added"),
    ),
)
