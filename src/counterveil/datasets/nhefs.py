"""NHEFS: quitting smoking and weight, an observational study of 1566 smokers."""

from __future__ import annotations

from os import PathLike

from counterveil.data import Binary, Categories, Range, Study
from counterveil.datasets.dataset import Dataset, locate, numbers, read_text

FILE = "nhefs/nhefs_complete.csv.gz"
_SHA256 = "e78cab19ec33426f4d682e04633d1104188a65974b603faf47b61d91ba9f1006"


def nhefs(folder: str | PathLike[str] | None = None) -> Dataset:
    """Return quitting (qsmk) against the change of weight from 1971 to 1982 in kg (wt82_71)."""
    study = _study()
    frame = read_text(locate(FILE, _SHA256, folder), list(study.columns))
    return Dataset(
        name="NHEFS",
        frame={name: numbers(column) for name, column in frame.items()},
        study=study,
        source="NHANES I Epidemiologic Follow-up Study, as used in Hernan and Robins, Causal Inference: "
        "What If; PyPI package causaldata",
        licence="package MIT; survey data of a public agency",
        notes="403 quit and 1163 did not. Not randomised: a difference in means is confounded.",
    )


def _study() -> Study:
    return Study(
        treatment="qsmk",
        outcome="wt82_71",
        outcome_range=(-50, 50),
        covariates={
            "sex": Binary(),
            "race": Binary(),
            "age": Range(25, 80),
            "education": Categories([1, 2, 3, 4, 5]),
            "smokeintensity": Range(0, 80),
            "smokeyrs": Range(0, 70),
            "exercise": Categories([0, 1, 2]),
            "active": Categories([0, 1, 2]),
            "wt71": Range(35, 160),
        },
        control=0,
        randomised=False,
    )
