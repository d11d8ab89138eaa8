"""`python -m experiments.clusters.star`: small classes in kindergarten, by row, by class and by school.

Needs the STAR student file in the folder that COUNTERVEIL_DATA names: `star/STAR_Students_11601.parquet`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
from tools.loose_study import study_of

import counterveil as cv

FILE = "star/STAR_Students_11601.parquet"
COLUMNS = {"gktmathss": "math", "gkclasstype": "type", "gkschid": "school", "gktchid": "class"}


def kindergarten() -> pd.DataFrame:
    """Return the children with a mathematics score in kindergarten; a class is known by its teacher."""
    frame = pd.read_parquet(Path(os.environ["COUNTERVEIL_DATA"]) / FILE, columns=list(COLUMNS))
    frame = frame.rename(columns=COLUMNS).dropna()
    return frame.assign(small=(frame["type"] == "SMALL CLASS").astype(int)).drop(columns="type")


def asked(protects: str, epsilon: float, **clusters: Any) -> cv.results.Result:
    """Return one answer."""
    study = study_of("small", "math", (200, 800), control=0, randomised=True, **clusters)
    return cv.ate(kindergarten(), study, protects=protects, epsilon=epsilon, noise=cv.SeededNoise(1))


def main() -> None:
    by_class = {"cluster": "class", "assigned_by_cluster": True}
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("one outcome", "outcome", {}),
        ("one outcome", "outcome", by_class),
        ("one outcome", "outcome", {"cluster": "school"}),
        ("one record", "record", by_class),
        ("one class", "outcome", {"cluster": "class", "protects_cluster": True}),
    ]
    print("| protects | clusters | epsilon | effect | 95 % interval | std. error from sampling | noise |")
    print("|---|---|---|---|---|---|---|")
    for unit, protects, clusters in rows:
        for epsilon in (0.5, 2.0):
            found = asked(protects, epsilon, **clusters)
            low, high = found.interval()
            count = found.details.get(
                "clusters", found.details["rows"] if "protects_cluster" in clusters else "none"
            )
            print(
                f"| {unit} | {count} {clusters.get('cluster', '')} | {epsilon:g} | {found.estimate:.2f} "
                f"| {low:.1f} to {high:.1f} | {found.std_error.sampling:.2f} | {found.std_error.noise:.2f} |"
            )


if __name__ == "__main__":
    main()
