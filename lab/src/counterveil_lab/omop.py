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

Tables = dict[str, dict[str, NDArray[Any]]]


def tables(people: int, seed: int) -> Tables:
    """Return the tables of so many people in either cohort, column by column."""
    rng = np.random.default_rng(seed)
    who = np.arange(1, people + 1)
    age, female, diabetes = (
        rng.integers(40, 80, people),
        rng.random(people) < 0.5,
        rng.random(people) < 0.3,
    )
    risk = (age - 60) / 20 + 0.8 * diabetes
    target = rng.random(people) < 1 / (1 + np.exp(-0.7 * risk))
    index = _ORIGIN + rng.integers(0, 1500, people)
    seen_from = index - rng.integers(100, 2000, people)
    seen_to = index + rng.integers(30, 1500, people)
    waited = rng.exponential(1 / (HAZARD * np.exp(0.5 * risk) * np.where(target, RATIO, 1))).astype(int) + 1
    event = index + np.minimum(waited, 20_000)
    seen = event <= seen_to
    earlier = rng.random(people) < 0.06
    days = np.concatenate([event[seen], (index - rng.integers(1, 900, people))[earlier]])
    cases = np.concatenate([who[seen], who[earlier]])
    other = rng.random(people) < 0.08
    later = index[other] + rng.integers(0, 400, int(other.sum()))
    arm, changed = np.where(target, TARGET, COMPARATOR), np.where(target, COMPARATOR, TARGET)[other]
    starts, subjects = np.concatenate([index, later, days]), np.concatenate([who, who[other], cases])
    kinds = np.concatenate([arm, changed, np.full(len(days), OUTCOME)])
    measured = rng.random(people) < 0.8
    return {
        "person": {
            "person_id": who,
            "year_of_birth": index.astype("datetime64[Y]").astype(int) + 1970 - age,
            "gender_concept_id": np.where(female, FEMALE, MALE),
        },
        "observation_period": {
            "person_id": who,
            "observation_period_start_date": seen_from,
            "observation_period_end_date": seen_to,
        },
        "cohort": {
            "cohort_definition_id": kinds,
            "subject_id": subjects,
            "cohort_start_date": starts,
            "cohort_end_date": starts + rng.integers(0, 300, len(starts)),
        },
        "condition_occurrence": {
            "person_id": np.concatenate([cases, who[diabetes]]),
            "condition_concept_id": np.concatenate(
                [np.full(len(cases), INFARCTION), np.where(female[diabetes], TYPE_2, DIABETES)]
            ),
            "condition_start_date": np.concatenate([days, (index - rng.integers(1, 300, people))[diabetes]]),
        },
        "measurement": {
            "person_id": who[measured],
            "measurement_concept_id": np.full(int(measured.sum()), PRESSURE),
            "measurement_date": (index - rng.integers(0, 500, people))[measured],
            "value_as_number": np.round(120 + 8 * risk + rng.normal(0, 12, people), 1)[measured],
        },
        "concept_ancestor": {
            "ancestor_concept_id": np.array([DIABETES, DIABETES, INFARCTION, PRESSURE]),
            "descendant_concept_id": np.array([DIABETES, TYPE_2, INFARCTION, PRESSURE]),
        },
    }


def written(connection: Any, found: Tables, schema: str = "main") -> None:
    """Write tables into a schema of a DuckDB connection."""
    import pyarrow as pa

    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    for name, columns in found.items():
        connection.register("counterveil_new", pa.table(columns))
        connection.execute(f'CREATE OR REPLACE TABLE "{schema}"."{name}" AS SELECT * FROM counterveil_new')
        connection.unregister("counterveil_new")
