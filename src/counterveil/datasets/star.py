"""Project STAR: class size and test scores in Tennessee, one row per student at entry."""

from __future__ import annotations

from os import PathLike

from counterveil.data import Binary, Categories, Drop, Fill, Range, Study
from counterveil.datasets.dataset import Dataset, locate, numbers, out_of_range, read_text

FILE = "star/star_entry_11601.csv.gz"
_SHA256 = "4d072ff0e30933438dad989389906d1baacecea50d4b0d46afe8b4cade83f61e"
_GRADES = ("K", "1", "2", "3")


def star(grade: str | None = None, folder: str | PathLike[str] | None = None) -> Dataset:
    """Return small classes against the mathematics score of the entry grade, in one grade or in all."""
    if grade is not None and grade not in _GRADES:
        raise out_of_range("grade", f"one of {_GRADES} or None for all", grade)
    study = _study()
    frame = read_text(locate(FILE, _SHA256, folder), [*study.columns, "entry_grade"])
    if grade is not None:
        entered = frame["entry_grade"] == grade
        frame = {name: column[entered] for name, column in frame.items()}
    for name in ("small", "entry_math", "entry_tyears"):
        frame[name] = numbers(frame[name])
    return Dataset(
        name="STAR" if grade is None else f"STAR, entry in grade {grade}",
        frame=frame,
        study=study,
        source="Project STAR student file; as carried by the repository tobhatt/CorNet",
        licence="no licence stated by the carrying repository",
        notes="The score scale moves with the grade, so a comparison that pools grades misleads: estimate "
        "within a grade. Students were randomised within schools. Students without a score are left out, "
        "and who they are is taken as public.",
    )


def _study() -> Study:
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
