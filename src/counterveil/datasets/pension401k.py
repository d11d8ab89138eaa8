"""401(k): eligibility for a pension plan and financial assets, an observational survey of 9915 households."""

from __future__ import annotations

from os import PathLike

from counterveil.data import Binary, Range, Study
from counterveil.datasets.dataset import Dataset, locate, numbers, read_text
from counterveil.privacy import Number

FILE = "pension401k/pension_hdm.csv.gz"
_SHA256 = "fe1d5055c42b07b6c115b58c4f6eea73e8c00ecbd920c9da3eec9b3f03089510"
_DOLLARS = ("net_tfa", "inc")


def pension401k(
    outcome_range: tuple[Number, Number] = (-100, 500), folder: str | PathLike[str] | None = None
) -> Dataset:
    """Return eligibility (e401) against net financial assets in 1991 (net_tfa), assets and income in $1000."""
    study = _study(outcome_range)
    frame = read_text(locate(FILE, _SHA256, folder), list(study.columns))
    columns = {name: numbers(column) for name, column in frame.items()}
    return Dataset(
        name="401(k)",
        frame={name: column / 1000 if name in _DOLLARS else column for name, column in columns.items()},
        study=study,
        source="Survey of Income and Program Participation, 1991, as used in Chernozhukov et al. 2018, "
        "Econometrics Journal 21, C1-C68; R package hdm, data set pension",
        licence="package MIT; survey data of a public agency",
        notes="3682 households are eligible and 6233 are not. Not randomised: income drives both. A few "
        "households own more than the bound of the outcome; they count as the bound.",
    )


def _study(outcome_range: tuple[Number, Number]) -> Study:
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
