"""What a hospital gets from `method="auto"` on each study, at the largest of two equal sites."""

from __future__ import annotations

import numpy as np

import counterveil as cv
from counterveil.errors import CounterveilError
from experiments.multi_site.panels import Panel, cut, load

_STUDIES = (
    ("IST", 1, "outcome"),
    ("STAR", 1, "outcome"),
    ("Synth", 1, "record"),
    ("IHDP", 5, "record"),
    ("LaLonde", 5, "record"),
)


def chosen_methods() -> str:
    """Return a table: the study, who is protected, and the method or the refusal at one of two equal sites."""
    names = " | ".join(f"alpha {name}" for name in ("1/8", "1", "8"))
    rows = [f"| study | protects | {names} |", "|---|---|---|---|---|"]
    for name, epsilon, unit in _STUDIES:
        source = load(name, 0)
        site = cut(Panel(0, name, (1, 1), epsilon), source, np.random.default_rng(0))[0]
        cells = []
        for alpha in (0.125, 1, 8):
            given = {"protects": unit, "epsilon": epsilon * alpha, "noise": cv.SeededNoise(0)}
            try:
                cells.append(cv.ate(site.frame, source.study, **given).method)
            except CounterveilError as refusal:
                cells.append(f"refused, nothing spent: {refusal.code}")
        rows.append(f"| {name} | {unit} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"
