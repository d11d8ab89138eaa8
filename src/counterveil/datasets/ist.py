"""The International Stroke Trial: aspirin after stroke, 19435 patients."""

from __future__ import annotations

from os import PathLike

from counterveil.data import Binary, Categories, Fill, Range, Study
from counterveil.data.domains import Domain
from counterveil.datasets.dataset import Dataset, locate, numbers, read_text

FILE = "ist/IST_corrected_RESIDE.csv.gz"
_SHA256 = "f2ee6a40e32e39b8010879678f4814d1f17533594bb20e413e5fdae6de42a84d"
_NUMERIC = ("ISC14", "AGE", "RDELAY", "RSBP")


def ist(folder: str | PathLike[str] | None = None) -> Dataset:
    """Return aspirin (RXASP) against recurrent ischaemic stroke within 14 days (ISC14)."""
    study = _study()
    frame = read_text(locate(FILE, _SHA256, folder), list(study.columns))
    for name in _NUMERIC:
        frame[name] = numbers(frame[name])
    return Dataset(
        name="IST",
        frame=frame,
        study=study,
        source="International Stroke Trial, corrected data; Sandercock et al. 2011, doi 10.7488/ds/104; "
        "as carried by the R package RESIDE",
        licence="ODC-By",
        notes="9720 patients had aspirin and 9715 had none; heparin was assigned independently. "
        "Three baseline questions are blank for some patients: a blank counts as no.",
    )


def _study() -> Study:
    yes_or_no = Binary(one="Y", zero="N")
    covariates: dict[str, Domain] = {
        "AGE": Range(16, 100),
        "SEX": Binary(one="F", zero="M"),
        "RDELAY": Range(0, 48),
        "RSBP": Range(60, 300),
        "RCONSC": Categories(["F", "D", "U"]),
        "STYPE": Categories(["LACS", "PACS", "POCS", "TACS", "OTH"]),
        "RSLEEP": yes_or_no,
        "RATRIAL": yes_or_no,
        "RCT": yes_or_no,
        "RVISINF": yes_or_no,
        "RHEP24": yes_or_no,
        "RASP3": yes_or_no,
    }
    # Y, N, or C for cannot be assessed.
    covariates |= {f"RDEF{sign}": Categories(["N", "Y", "C"]) for sign in range(1, 9)}
    return Study(
        treatment="RXASP",
        outcome="ISC14",
        outcome_range=(0, 1),
        covariates=covariates,
        treated="Y",
        control="N",
        missing={name: Fill("N") for name in ("RATRIAL", "RHEP24", "RASP3")},
        randomised=True,
        treated_share="1/2",
    )
