"""Draws the picture of the README: effects by age group of a simulated trial, one draw of the noise.

python -m tools.pictures    # writes docs/images/groups.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import counterveil as cv

PICTURE = Path("docs/images/groups.png")
AGES = ("under 40", "40 to 59", "60 to 79", "80 and over")
EFFECTS = (-0.02, -0.06, -0.11, -0.14)


def trial(rows: int = 12_000) -> tuple[dict[str, np.ndarray], cv.Study]:
    """Return a simulated trial in which the treatment prevents more relapses among older people, and its study."""
    draw = np.random.default_rng(7)
    age = draw.choice(len(AGES), rows, p=(0.2, 0.35, 0.3, 0.15))
    treated = draw.permutation(np.arange(rows) % 2)
    relapse = draw.binomial(1, 0.4 + treated * np.array(EFFECTS)[age])
    study = cv.Study(
        treatment="treated",
        outcome=cv.Outcome("relapse", (0, 1)),
        covariates={"age": cv.Categories(AGES)},
        assignment=cv.Trial(share="1/2"),
    )
    return {"treated": treated, "relapse": relapse, "age": np.array(AGES)[age]}, study


def main() -> int:
    """Write the picture; 0 is returned."""
    import matplotlib

    matplotlib.use("Agg")
    data, study = trial()
    result = cv.groups(data, study, by="age", protects="record", epsilon=1)
    axes = cv.plots.forest(result)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(PICTURE, dpi=110, bbox_inches="tight")
    print(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
