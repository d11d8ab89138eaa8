"""Synthetic tables of the OMOP common data model: two cohorts with confounding and a known hazard ratio.

Not everybody is eligible: some are observed too briefly, had the outcome before, entered both cohorts or left early.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Cohorts, and concepts of the standard vocabulary: myocardial infarction; diabetes and a kind of it; blood pressure.
TARGET, COMPARATOR, OUTCOME = 1, 2, 3
INFARCTION, DIABETES, TYPE_2, PRESSURE = 4329847, 201820, 201826, 3004249
FEMALE, MALE = 8532, 8507
# Hazard of the outcome per day for a comparator of mean age without diabetes, and its ratio in the target cohort.
HAZARD, RATIO = 1 / 1500, 0.6
_ORIGIN = np.datetime64("2016-01-01", "D")

COLUMNS = {
    "person": ("person_id", "year_of_birth", "gender_concept_id"),
    "observation_period": (
        "person_id",
        "observation_period_start_date",
        "observation_period_end_date",
    ),
    "cohort": ("cohort_definition_id", "subject_id", "cohort_start_date", "cohort_end_date"),
    "condition_occurrence": ("person_id", "condition_concept_id", "condition_start_date"),
    "measurement": ("person_id", "measurement_concept_id", "measurement_date", "value_as_number"),
    "concept_ancestor": ("ancestor_concept_id", "descendant_concept_id"),
}
Tables = dict[str, dict[str, NDArray[Any]]]


def tables(people: int, seed: int) -> Tables:
    """Return the tables of so many people in either cohort, column by column."""
    rng = np.random.default_rng(seed)
    who = np.arange(1, people + 1)
    age = rng.integers(40, 80, people)
    female, diabetes = rng.random(people) < 0.5, rng.random(people) < 0.3
    risk = (age - 60) / 20 + 0.8 * diabetes
    target = rng.random(people) < 1 / (1 + np.exp(-0.7 * risk))
    index = _ORIGIN + rng.integers(0, 1500, people)
    seen_to = index + rng.integers(30, 1500, people)
    waited = rng.exponential(1 / (HAZARD * np.exp(0.5 * risk) * np.where(target, RATIO, 1)))
    event = index + np.minimum(waited.astype(int) + 1, 20_000)
    earlier = rng.random(people) < 0.06
    cases = (
        _chosen((who, event), event <= seen_to),
        _chosen((who, index - rng.integers(1, 900, people)), earlier),
    )
    events = tuple(np.concatenate(both) for both in zip(*cases, strict=True))
    other = _chosen((who, index + rng.integers(0, 400, people)), rng.random(people) < 0.08)
    arm = np.where(target, TARGET, COMPARATOR)
    ill = _chosen((who, index - rng.integers(1, 300, people)), diabetes)
    pressure = np.round(120 + 8 * risk + rng.normal(0, 12, people), 1)
    measured = _chosen((who, index - rng.integers(0, 500, people), pressure), rng.random(people) < 0.8)
    starts = np.concatenate([index, other[1], events[1]])
    kinds = (arm, TARGET + COMPARATOR - arm[other[0] - 1], np.full(len(events[0]), OUTCOME))
    year = index.astype("datetime64[Y]").astype(int) + 1970
    columns = {
        "person": (who, year - age, np.where(female, FEMALE, MALE)),
        "observation_period": (who, index - rng.integers(100, 2000, people), seen_to),
        "cohort": (
            np.concatenate(kinds),
            np.concatenate([who, other[0], events[0]]),
            starts,
            starts + rng.integers(0, 300, len(starts)),
        ),
        "condition_occurrence": (
            np.concatenate([events[0], ill[0]]),
            np.concatenate([np.full(len(events[0]), INFARCTION), np.where(ill[0] % 2, TYPE_2, DIABETES)]),
            np.concatenate([events[1], ill[1]]),
        ),
        "measurement": (measured[0], np.full(len(measured[0]), PRESSURE), *measured[1:]),
        "concept_ancestor": (np.array([DIABETES, DIABETES]), np.array([DIABETES, TYPE_2])),
    }
    return {name: dict(zip(COLUMNS[name], found, strict=True)) for name, found in columns.items()}


def _chosen(columns: tuple[NDArray[Any], ...], kept: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
    return tuple(column[kept] for column in columns)


def written(connection: Any, found: Tables, schema: str = "main") -> None:
    """Write tables into a schema of a DuckDB connection."""
    import pyarrow as pa

    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    for name, columns in found.items():
        connection.register("counterveil_new", pa.table(columns))
        connection.execute(f'CREATE OR REPLACE TABLE "{schema}"."{name}" AS SELECT * FROM counterveil_new')
        connection.unregister("counterveil_new")
