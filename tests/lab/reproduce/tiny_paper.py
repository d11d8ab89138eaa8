"""A paper of two figures and four claims that costs nothing: to run the runner."""

from __future__ import annotations

import pandas as pd

from counterveil_lab.reproduce.page import Claim, Figure, Judged, Paper, Verdict
from counterveil_lab.reproduce.plots import Axes, heatmaps, panels


def cells(quick):
    return [
        {"data": data, "epsilon": e, "seed": 1} for data in ("A", "B") for e in ((1,) if quick else (1, 2, 4))
    ]


def run(cell):
    return [
        {"method": method, "value": gain / cell["epsilon"]} for method, gain in (("zero", 3.0), ("AIM", 1.0))
    ]


def table(rows):
    return rows.groupby(["data", "epsilon", "method"], sort=False, as_index=False)["value"].mean()


def grid(rows):
    return pd.DataFrame(
        [{"data": "A", "epsilon": 1, "x": i, "y": j, "v": i + j} for i in (0, 1) for j in (0, 1)]
    )


def smaller(tables):
    found = tables["first"].groupby("method")["value"].mean()
    verdict = Verdict.REPRODUCED if found["AIM"] < found["zero"] else Verdict.NOT_REPRODUCED
    return Judged(verdict, f"{found['AIM']:.2f}", "the mean of AIM is compared with that of zero")


def larger(tables):
    found = tables["first"].groupby("method")["value"].mean()
    verdict = Verdict.REPRODUCED if found["AIM"] > found["zero"] else Verdict.NOT_REPRODUCED
    return Judged(verdict, f"{found['AIM']:.2f}", "the other way round")


PAPER = Paper(
    "tiny",
    "A tiny paper",
    (
        Figure(
            "first",
            "First figure",
            cells,
            run,
            table,
            lambda got: panels(got, Axes("epsilon", "error"), x="epsilon", y="value", line="method", columns="data"),
        ),
        Figure(
            "second",
            "Second figure",
            cells,
            run,
            grid,
            lambda found: heatmaps(found, Axes("x", "y"), x="x", y="y", value="v", columns="data", rows="epsilon"),
        ),
    ),
    (
        Claim("AIM is below zero.", "Figure 1", ("first",), smaller),
        Claim("AIM is above zero.", "Figure 1", ("first",), larger),
    ),
)  # fmt: skip
