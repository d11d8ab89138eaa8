"""Small classes in kindergarten, by row, by class and by school.

Needs the STAR student file in the folder that COUNTERVEIL_DATA names: `star/STAR_Students_11601.parquet`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
from tools.loose_study import study_of

import counterveil as cv
from experiments.runner import Row, Table

FILE = "star/STAR_Students_11601.parquet"
COLUMNS = {"gktmathss": "math", "gkclasstype": "type", "gkschid": "school", "gktchid": "class"}


def kindergarten() -> pd.DataFrame:
    """Return the children with a mathematics score in kindergarten; a class is known by its teacher."""
    frame = pd.read_parquet(Path(os.environ["COUNTERVEIL_DATA"]) / FILE, columns=list(COLUMNS))
    frame = frame.rename(columns=COLUMNS).dropna()
    return frame.assign(small=(frame["type"] == "SMALL CLASS").astype(int)).drop(columns="type")


BY_CLASS = {"cluster": "class", "assigned_by_cluster": True}
# What is said of who is protected, the argument of `ate`, and what is declared.
QUESTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("one outcome", "outcome", {}),
    ("one outcome", "outcome", BY_CLASS),
    ("one outcome", "outcome", {"cluster": "school"}),
    ("one record", "record", BY_CLASS),
    ("one class", "outcome", {"cluster": "class", "protects_cluster": True}),
]


def answer(unit: str, protects: str, clusters: dict[str, Any], epsilon: float, *, seeds: range) -> Row:
    """Return one answer."""
    study = study_of("small", "math", (200, 800), control=0, randomised=True, **clusters)
    noise = cv.SeededNoise(seeds.start)
    found = cv.ate(kindergarten(), study, protects=protects, epsilon=epsilon, noise=noise)
    low, high = found.interval()
    count = found.details.get("clusters", found.details["rows"] if "protects_cluster" in clusters else "none")
    errors = found.std_error
    interval = f"{low:.1f} to {high:.1f}"
    named = f"{count} {clusters.get('cluster', '')}"
    return [unit, named, epsilon, found.estimate, interval, errors.sampling, errors.noise]


TABLE = Table(
    columns=(
        "protects | clusters | epsilon :g | effect :.2f | 95 % interval | "
        "std. error from sampling :.2f | noise :.2f"
    ),
    cells=[(*question, epsilon) for question in QUESTIONS for epsilon in (0.5, 2.0)],
    row=answer,
    draws=1,
    first_seed=1,
)
