"""Beside the paper: what `method="auto"` answers with at one of two equal sites of each study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.reproduce.papers.multi_site.panels import Panel, cut, load
from counterveil.reproduce.protocol import Cell, Row

if TYPE_CHECKING:
    import pandas as pd

_STUDIES = (
    ("IST", 1, "outcome"),
    ("STAR", 1, "outcome"),
    ("Synth", 1, "record"),
    ("IHDP", 5, "record"),
    ("LaLonde", 5, "record"),
)


def cells(quick: bool) -> Sequence[Cell]:
    """Return a cell for each study; quick or not, it is one question for each alpha."""
    del quick
    return [
        {"study": name, "epsilon": epsilon, "protects": unit, "seed": 0} for name, epsilon, unit in _STUDIES
    ]


def run(cell: Cell) -> list[Row]:
    """Return the method that is chosen, or the refusal, at alpha 1/8, 1 and 8."""
    name, epsilon, seed = str(cell["study"]), float(cell["epsilon"] or 0), int(cell["seed"] or 0)
    source = load(name, seed)
    site = cut(Panel(0, name, (1, 1), epsilon), source, np.random.default_rng(seed))[0]
    found: dict[str, str] = {}
    for alpha, text in ((0.125, "alpha 1/8"), (1, "alpha 1"), (8, "alpha 8")):
        unit, noise = str(cell["protects"]), cv.SeededNoise(seed)
        try:
            asked = cv.ate(site.frame, source.study, protects=unit, epsilon=epsilon * alpha, noise=noise)
            found[text] = asked.method
        except CounterveilError as refusal:
            found[text] = f"refused, nothing spent: {refusal.code}"
    return [{"people": len(site.outcome), **found}]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows as they are."""
    return rows[["study", "people", "protects", "epsilon", "alpha 1/8", "alpha 1", "alpha 8"]]
