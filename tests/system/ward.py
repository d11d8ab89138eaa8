"""A hospital file as people have it: 83 columns without a codebook, with numbers, dates and what happened later."""

import csv
from pathlib import Path

import numpy as np

PEOPLE = 1200
# What a person fills in: eleven fields of a table of 83 columns, and one of its design.
FILLED = {
    "catheter": {"role": "treatment"},
    "died_30d": {"role": "outcome", "kind": "binary"},
    "age": {"role": "covariate", "low": "18", "high": "100"},
    "sex": {"role": "covariate", "labels": "female; male"},
    "lab_0": {"role": "covariate", "low": "0", "high": "10"},
}
DESIGN = {"assignment": "observational"}
QUESTIONS = sum(map(len, FILLED.values())) + len(DESIGN)


def write(folder: Path) -> None:
    """Write ward.csv."""
    rng = np.random.default_rng(83)
    age, lab = rng.integers(18, 100, PEOPLE), rng.uniform(0, 10, PEOPLE).round(2)
    treated = (rng.uniform(size=PEOPLE) < 0.2 + 0.03 * lab).astype(int)
    died = (rng.uniform(size=PEOPLE) < 0.1 + 0.02 * lab + 0.1 * treated).astype(int)
    columns = {"patient_id": np.arange(PEOPLE), "admitted": np.full(PEOPLE, "2026-02-01"), "age": age}
    columns |= {"sex": rng.choice(["female", "male"], PEOPLE), "catheter": treated, "died_30d": died}
    columns |= {"date_of_death": np.full(PEOPLE, "2026-03-01"), "lab_0": lab}
    columns |= {f"lab_{place}": rng.uniform(0, 10, PEOPLE).round(2) for place in range(1, 40)}
    columns |= {f"history_{place}": rng.integers(0, 2, PEOPLE) for place in range(36)}
    with (folder / "ward.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
