"""Observational studies: NHEFS (quitting smoking and weight) and 401(k) (pension plans and assets)."""

from __future__ import annotations

from os import PathLike

from counterveil.data import Binary, Categories, Range, Study
from counterveil.datasets.dataset import Dataset, locate, numbers, read_text
from counterveil.privacy import Number

NHEFS_FILE = "nhefs/nhefs_complete.csv.gz"
_NHEFS_SHA256 = "e78cab19ec33426f4d682e04633d1104188a65974b603faf47b61d91ba9f1006"

PENSION401K_FILE = "pension401k/pension_hdm.csv.gz"
_PENSION401K_SHA256 = "fe1d5055c42b07b6c115b58c4f6eea73e8c00ecbd920c9da3eec9b3f03089510"
_PENSION401K_DOLLARS = ("net_tfa", "inc")


def nhefs(folder: str | PathLike[str] | None = None) -> Dataset:
    """Return quitting (qsmk) against the change of weight from 1971 to 1982 in kg (wt82_71)."""
    study = _nhefs_study()
    frame = read_text(locate(NHEFS_FILE, _NHEFS_SHA256, folder), list(study.columns))
    return Dataset(
        name="NHEFS",
        frame={name: numbers(column) for name, column in frame.items()},
        study=study,
        source="NHANES I Epidemiologic Follow-up Study, as used in Hernan and Robins, Causal Inference: "
        "What If; PyPI package causaldata",
        licence="package MIT; survey data of a public agency",
        notes="403 quit and 1163 did not. Not randomised: a difference in means is confounded.",
    )


def _nhefs_study() -> Study:
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


def pension401k(
    outcome_range: tuple[Number, Number] = (-100, 500), folder: str | PathLike[str] | None = None
) -> Dataset:
    """Return eligibility (e401) against net financial assets in 1991 (net_tfa), assets and income in $1000."""
    study = _pension401k_study(outcome_range)
    frame = read_text(locate(PENSION401K_FILE, _PENSION401K_SHA256, folder), list(study.columns))
    columns = {name: numbers(column) for name, column in frame.items()}
    return Dataset(
        name="401(k)",
        frame={
            name: column / 1000 if name in _PENSION401K_DOLLARS else column
            for name, column in columns.items()
        },
        study=study,
        source="Survey of Income and Program Participation, 1991, as used in Chernozhukov et al. 2018, "
        "Econometrics Journal 21, C1-C68; R package hdm, data set pension",
        licence="package MIT; survey data of a public agency",
        notes="3682 households are eligible and 6233 are not. Not randomised: income drives both. A few "
        "households own more than the bound of the outcome; they are clamped to it.",
    )


def _pension401k_study(outcome_range: tuple[Number, Number]) -> Study:
    return Study(
        treatment="e401",
        outcome="net_tfa",
        outcome_range=outcome_range,
        covariates={
            "age": Range(25, 65),
            "inc": Range(0, 250),
            "educ": Range(0, 18),
            "fsize": Range(1, 13),
            "marr": Binary(),
            "twoearn": Binary(),
            "db": Binary(),
            "pira": Binary(),
            "hown": Binary(),
        },
        control=0,
        randomised=False,
    )
