"""MIMIC-III and TCGA as the paper prepares them, from files that need credentials and are not part of this library.

Both are looked for below COUNTERVEIL_DATA. What is read off their rows while they are prepared (percentiles, variances,
ends of the genes' values) is not protected by anything; that is how the paper does it.
"""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from counterveil.data import Categories, Range, Study
from counterveil.data.domains import Domain
from counterveil.datasets import Dataset
from counterveil.datasets.dataset import VARIABLE, find_file
from counterveil.numerics.arrays import Floats

# The tables of MIMIC-Extract (Wang et al. 2020) of the same names, each written as a packed CSV file: hourly means with
# one column a measure, hourly treatments with the column vent, and one row a stay with gender and age.
MIMIC_FILES = ("mimic3/vitals_labs_mean.csv.gz", "mimic3/interventions.csv.gz", "mimic3/patients.csv.gz")
# One row a patient, one column a gene, expression as measured.
TCGA_FILES = ("tcga/expression.csv.gz",)
HEMATOCRIT, _CELLS = "hematocrit", "red blood cell count"
# Ranges within which such measurements lie, declared and not read off the rows.
_MEASURES = {
    "heart rate": (0, 300),
    "sodium": (90, 200),
    _CELLS: (0, 10),
    "glucose": (0, 1500),
    HEMATOCRIT: (0, 80),
    "respiratory rate": (0, 100),
}
_STAY, _HOUR = "icustay_id", "hours_in"
# Measures are averaged over so many hours before the time point; outcomes over as many after it.
_HOURS = 10
_TAILS = (0.001, 0.999)
# What ventilation adds to the outcome for each unit of hematocrit: the paper makes the outcome "more responsive" and
# does not print how.
_RESPONSE = 0.05
_GENES, _CAUSES = 4000, 10


def is_there(files: tuple[str, ...]) -> bool:
    """Return whether all of these files are below COUNTERVEIL_DATA."""
    root = os.environ.get(VARIABLE, "")
    return bool(root) and all(Path(root, name).is_file() for name in files)


def mimic(seed: int = 0, folder: str | PathLike[str] | None = None) -> Dataset:
    """Return stays in intensive care at a random hour: ventilated or not, and red blood cells in the hours after."""
    hourly, treatments, patients = (pd.read_csv(find_file(name, folder)) for name in MIMIC_FILES)
    rng = np.random.default_rng(seed)
    rows = hourly.merge(treatments[[_STAY, _HOUR, "vent"]], on=[_STAY, _HOUR])
    stays = pd.DataFrame([_sampled(stay, rng) for _, stay in rows.groupby(_STAY, sort=True)])
    stays = stays.merge(patients[[_STAY, "age", "gender"]], on=_STAY).dropna()
    numbers = [*_MEASURES, "age", "y"]
    low, high = (stays[numbers].quantile(tail) for tail in _TAILS)
    stays = stays[((stays[numbers] >= low) & (stays[numbers] <= high)).all(axis=1)]
    stays = stays.sample(frac=1.0, random_state=seed)
    frame = {name: stays[name].to_numpy() for name in ("vent", *numbers, "gender")}
    ranges = {name: Range(*ends) for name, ends in _MEASURES.items()}
    covariates: dict[str, Domain] = {**ranges, "age": Range(0, 120), "gender": Categories(["F", "M"])}
    return Dataset(
        name=f"MIMIC-III, seed {seed}",
        frame=frame,
        study=Study("vent", "y", (0, 15), covariates, control=0, randomised=False),
        source="MIMIC-III (Johnson et al. 2016), through MIMIC-Extract (Wang et al. 2020)",
        licence="PhysioNet Credentialed Health Data License",
        notes=f"Ventilation adds {_RESPONSE} a unit of hematocrit to the outcome, a choice of this loader.",
    )


def _sampled(stay: pd.DataFrame, rng: np.random.Generator) -> dict[str, Any]:
    """Return a stay at a random hour that leaves enough hours before and after it; missing where none does."""
    hours = stay[_HOUR].to_numpy()
    inner = hours[(hours >= hours.min() + _HOURS) & (hours < hours.max() - _HOURS)]
    number = stay[_STAY].iloc[0]
    if not len(inner):
        return {_STAY: number, "y": np.nan}
    at = int(rng.choice(inner))
    before, after = stay[(hours >= at - _HOURS) & (hours < at)], stay[(hours > at) & (hours <= at + _HOURS)]
    found = {name: float(before[name].mean()) for name in _MEASURES}
    vent = int(stay.loc[stay[_HOUR] == at, "vent"].iloc[0])
    outcome = float(after[_CELLS].mean()) + _RESPONSE * vent * found[HEMATOCRIT]
    return {_STAY: number, "vent": vent, "y": outcome} | found


def tcga(seed: int = 0, folder: str | PathLike[str] | None = None) -> Dataset:
    """Return patients with the genes that vary most, a simulated treatment, and an effect of 1 for everybody."""
    values = pd.read_csv(find_file(TCGA_FILES[0], folder)).to_numpy(dtype=np.float64)
    rng = np.random.default_rng(seed)
    values = values[rng.permutation(len(values))]
    # The genes that vary most first.
    kept = values[:, np.argsort(-values.var(axis=0), kind="stable")[:_GENES]]
    unit = _to_unit(kept)
    causes = unit[:, :_CAUSES].mean(axis=1)
    spread = max(float(causes.std()), 1e-12)
    treated = rng.uniform(size=len(unit)) < expit((causes - causes.mean()) / spread)
    y = causes + treated + rng.uniform(-0.5, 0.5, len(unit))
    names = [f"gene{place}" for place in range(1, unit.shape[1] + 1)]
    columns: dict[str, NDArray[Any]] = dict(zip(names, np.ascontiguousarray(unit.T), strict=True))
    return Dataset(
        name=f"TCGA, seed {seed}",
        frame={"treated": treated.astype(np.int64), "y": y} | columns,
        study=Study(
            "treated", "y", ("-0.5", "2.5"), dict.fromkeys(names, Range(0, 1)), control=0, randomised=False
        ),
        source="The Cancer Genome Atlas (Weinstein et al. 2013); treatment and outcome are simulated",
        licence="NIH Genomic Data Sharing",
        true_effect=1.0,
        effects=np.ones(len(unit)),
    )


def _to_unit(values: Floats) -> Floats:
    low, high = values.min(axis=0), values.max(axis=0)
    return np.asarray((values - low) / np.where(high > low, high - low, 1.0), dtype=np.float64)
