"""The National Supported Work experiment as LaLonde used it: 722 men, a randomised trial of the 1970s."""

from __future__ import annotations

from os import PathLike

from counterveil.data import Binary, Categories, Range, Study
from counterveil.datasets.dataset import Dataset, locate, numbers, read_text

FILE = "lalonde/nsw.csv.gz"
_SHA256 = "17ce34157d8aef57b0e827019d8fd0b500035869434917a4b065f0d8e7805b3e"
_DOLLARS = ("re75", "re78")


def nsw(folder: str | PathLike[str] | None = None) -> Dataset:
    """Return the experiment (297 trained, 425 not), earnings in $1000, age as whole years."""
    study = _study()
    frame = read_text(locate(FILE, _SHA256, folder), list(study.columns))
    columns = {name: numbers(column) for name, column in frame.items()}
    return Dataset(
        name="NSW 722",
        frame={name: column / 1000 if name in _DOLLARS else column for name, column in columns.items()},
        study=study,
        source="R. J. LaLonde (1986), American Economic Review 76, 604-620",
        licence="public data without a stated licence",
        notes="Earnings in thousands of dollars; values above the bound of 60 count as 60. Age has one "
        "category a year from 16 to 60, so that people of the same age make a stratum.",
    )


def _study() -> Study:
    return Study(
        treatment="treat",
        outcome="re78",
        outcome_range=(0, 60),
        covariates={
            "age": Categories(range(16, 61)),
            "education": Range(0, 18),
            "black": Binary(),
            "hispanic": Binary(),
            "married": Binary(),
            "nodegree": Binary(),
            "re75": Range(0, 60),
        },
        control=0,
        randomised=True,
    )
