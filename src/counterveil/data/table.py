"""The table: a study's columns, checked, clamped and in fixed point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import fixed_point
from counterveil.data.cells import Column, Mask, Numbers
from counterveil.data.domains import Range
from counterveil.data.encoding import gaps
from counterveil.data.missing import Drop
from counterveil.data.silence import silence
from counterveil.data.sources import read
from counterveil.data.study import Study
from counterveil.data.survey import Stage, Survey, label_index
from counterveil.data.wrong_data import missing_without_rule
from counterveil.errors import StudyError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table:
    """Rows that fit a study; made by `Table.attach`.

    `arm` holds the place of each row's arm, 0 being the reference or control; `treated` says which rows are
    in another arm than that; `outcome` holds whole steps in [0, OUTCOME_STEPS]; `covariates` maps
    each name to float64 values inside its bounds, or to the codes of its labels. All arrays have
    `rows` entries and cannot be written to.
    """

    study: Study
    arm: NDArray[np.intp]
    treated: NDArray[np.bool_]
    outcome: NDArray[np.int64]
    covariates: dict[str, NDArray[np.float64]]

    @classmethod
    @silence()
    def attach(cls, source: object, study: Study) -> Table:
        """Return the columns of `source` that the study names, or say why they do not fit it."""
        check_study(study)
        return cls.of_columns(read(source, study.columns, numeric_columns(study)), study)

    @classmethod
    def of_columns(cls, columns: dict[str, Column], study: Study, survey: Survey | None = None) -> Table:
        """Return the rows of columns as they were read, or say why they do not fit the study.

        With a survey, what does not fit is noted there and raised by its `verdict`, after all parts were read.
        """
        noted = Survey(study) if survey is None else survey
        kept, holes = _apply_rules(columns, study, noted)
        arm = noted.arms.add(kept[study.treatment], holes[study.treatment])
        outcome = noted.numbers(kept[study.outcome], holes[study.outcome], study.outcome)
        steps = fixed_point.to_steps(outcome, study.outcome_bounds)
        covariates = {name: noted.covariate(kept[name], holes[name], name) for name in study.covariates}
        if survey is None:
            noted.verdict()
        return cls(study, arm, arm > 0, steps, covariates).sealed()

    def sealed(self) -> Table:
        """Return the same table, whose arrays cannot be written to from here on."""
        for array in (self.arm, self.treated, self.outcome, *self.covariates.values()):
            array.setflags(write=False)
        return self

    def take(self, rows: slice | NDArray[np.intp]) -> Table:
        """Return the table of these rows; a slice of it is not copied."""
        covariates = {name: values[rows] for name, values in self.covariates.items()}
        return Table(self.study, self.arm[rows], self.treated[rows], self.outcome[rows], covariates)

    def batches(self) -> Iterator[Table]:
        """Yield all rows: a table is one batch."""
        yield self

    @property
    def rows(self) -> int:
        """The number of rows, public by declaration."""
        return len(self.outcome)

    @property
    def outcome_unit(self) -> Fraction:
        """The exact width of one step of the outcome: a value is about lo + unit * steps."""
        return fixed_point.outcome_unit(self.study.outcome_bounds)

    def __repr__(self) -> str:
        # Declarations only: a table that is printed by accident shows nothing of its rows.
        return f"Table(treatment={self.study.treatment!r}, outcome={self.study.outcome!r}, rows not shown)"


def check_study(study: object) -> None:
    """Raise CV-S015 for what is not a study."""
    if not isinstance(study, Study):
        raise StudyError(
            "CV-S015",
            "the second argument is not a study",
            expected="a Study, which names the roles and the public bounds",
            got=type(study).__name__,
            fix="declare a Study(treatment=..., outcome=..., outcome_range=(lo, hi)) or read one with "
            "Study.from_toml(path)",
        )


def numeric_columns(study: Study) -> frozenset[str]:
    """Return the names of the columns that must be numbers."""
    numbers = (name for name, domain in study.covariates.items() if isinstance(domain, Range))
    return frozenset((study.outcome, *numbers)) - {study.treatment}


def _apply_rules(
    columns: dict[str, Column], study: Study, survey: Survey
) -> tuple[dict[str, Column], dict[str, Mask]]:
    """Return the columns and their gaps without the rows that a rule drops."""
    holes = {
        # Numbers are not compared with labels to know whether they are missing.
        name: gaps(columns[name], None if isinstance(columns[name], Numbers) else label_index(name, study))
        for name in study.columns
    }
    keep = np.ones(len(columns[study.outcome]), dtype=np.bool_)
    for name in study.columns:
        rule = study.missing.get(name)
        if rule is None and np.count_nonzero(holes[name]):
            survey.note(Stage.MISSING, name, missing_without_rule(name))
        if isinstance(rule, Drop):
            keep &= ~holes[name]
    survey.rows += int(np.count_nonzero(keep))
    if keep.all():
        return columns, holes
    return (
        {name: column.keep(keep) for name, column in columns.items()},
        {name: hole[keep] for name, hole in holes.items()},
    )
