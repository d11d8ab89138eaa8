"""Tests of `covariate_columns`: what a rule or a model sees of a table's covariates."""

from __future__ import annotations

import numpy as np

from counterveil.data import (
    Binary,
    Categories,
    Range,
    Study,
    Table,
    columns_as_written,
    covariate_columns,
    public_points,
)

STUDY = Study(
    treatment="t",
    outcome="y",
    outcome_range=(0, 1),
    covariates={
        "age": Range(20, 60),
        "smoker": Binary("yes", "no"),
        "site": Categories(["north", "south", "east"]),
        "old": Binary(),
    },
)
ROWS = {
    "t": [0, 1, 0, 1],
    "y": [0.0, 1.0, 0.5, 0.25],
    "age": [10.0, 35.5, 60.0, 99.0],
    "smoker": ["yes", "no", "no", "yes"],
    "site": ["east", "north", "south", "north"],
    "old": [1, 0, 0, 1],
}


def test_numbers_are_clamped_and_labels_are_as_declared() -> None:
    found = covariate_columns(Table.attach(ROWS, STUDY))
    assert list(found) == ["age", "smoker", "site", "old"]
    assert found["age"].tolist() == [20.0, 35.5, 60.0, 60.0]
    assert found["smoker"].tolist() == ["yes", "no", "no", "yes"]
    assert found["site"].tolist() == ["east", "north", "south", "north"]
    assert found["old"].tolist() == [1, 0, 0, 1]


def test_labels_of_several_types_keep_them() -> None:
    study = Study(
        treatment="t", outcome="y", outcome_range=(0, 1), covariates={"dose": Categories([1, 2.5, "many"])}
    )
    table = Table.attach({"t": [0, 1, 0, 1], "y": [0, 1, 0, 1], "dose": ["1", "2.5", "many", "1"]}, study)
    assert covariate_columns(table)["dose"].tolist() == [1, 2.5, "many", 1]


def test_public_points_fill_the_domains_evenly_and_are_always_the_same() -> None:
    found = public_points(STUDY, 600)
    again = public_points(STUDY, 600)
    assert all((found[name] == again[name]).all() for name in STUDY.covariates)
    assert found["age"].min() >= 20
    assert found["age"].max() <= 60
    counts = np.histogram(found["age"], bins=10, range=(20, 60))[0]
    assert counts.min() > 50
    assert np.bincount(found["site"].astype(int), minlength=3).min() > 180
    written = columns_as_written(found, STUDY)
    assert set(written["site"]) == {"north", "south", "east"}
    # Covariates are not tied to each other.
    assert abs(np.corrcoef(found["age"], found["site"])[0, 1]) < 0.15
