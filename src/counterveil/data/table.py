"""The table: a study's columns, checked, clamped and in fixed point."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import fixed_point
from counterveil.data.cells import Column, Mask
from counterveil.data.domains import Binary, Range
from counterveil.data.encoding import arms, codes, gaps, numbers
from counterveil.data.labels import LabelIndex
from counterveil.data.missing import Drop, Fill
from counterveil.data.sources import read
from counterveil.data.study import Study
from counterveil.data.wrong_data import (
    constant_treatment,
    empty_arm,
    empty_table,
    missing_without_rule,
    not_binary,
    small_arm,
    undeclared_category,
)
from counterveil.errors import StudyError
from counterveil.privacy import exact

_SMALLEST_ARM = 2


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
    def attach(cls, source: object, study: Study) -> Table:
        """Return the columns of `source` that the study names, or say why they do not fit it."""
        _check_study(study)
        labels = {name: _labels(name, study) for name in study.columns}
        numeric = frozenset(name for name, index in labels.items() if index is None)
        columns = read(source, study.columns, numeric)
        holes = {name: gaps(columns[name], labels[name]) for name in study.columns}
        kept, holes = _apply_rules(columns, holes, study)
        arm = _arm(kept[study.treatment], holes[study.treatment], study)
        bounds = study.outcome_bounds
        outcome = numbers(
            kept[study.outcome], holes[study.outcome], _fill(study, study.outcome), study.outcome
        )
        covariates = {name: _covariate(kept[name], holes[name], name, study) for name in study.covariates}
        table = cls(study, arm, arm > 0, fixed_point.to_steps(outcome, bounds), covariates)
        for array in (table.arm, table.treated, table.outcome, *table.covariates.values()):
            array.setflags(write=False)
        return table

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


def _check_study(study: object) -> None:
    if not isinstance(study, Study):
        raise StudyError(
            "CV-S015",
            "the second argument is not a study",
            expected="a Study, which names the roles and the public bounds",
            got=type(study).__name__,
            fix="declare a Study(treatment=..., outcome=..., outcome_range=(lo, hi)) or read one with "
            "Study.from_toml(path)",
        )


def _labels(name: str, study: Study) -> LabelIndex | None:
    """Return the labels a column is compared with, None for a column of numbers."""
    if name == study.treatment:
        return LabelIndex(study.treatment_labels)
    domain = study.covariates.get(name)
    return None if domain is None or isinstance(domain, Range) else LabelIndex(domain.labels)


def _apply_rules(
    columns: dict[str, Column], holes: dict[str, Mask], study: Study
) -> tuple[dict[str, Column], dict[str, Mask]]:
    """Return the columns and their gaps without the rows that a rule drops."""
    keep = np.ones(len(columns[study.outcome]), dtype=np.bool_)
    for name in study.columns:
        rule = study.missing.get(name)
        if rule is None and holes[name].any():
            raise missing_without_rule(name)
        if isinstance(rule, Drop):
            keep &= ~holes[name]
    if not keep.any():
        raise empty_table()
    if keep.all():
        return columns, holes
    return (
        {name: column.keep(keep) for name, column in columns.items()},
        {name: hole[keep] for name, hole in holes.items()},
    )


def _fill(study: Study, name: str) -> float:
    rule = study.missing.get(name)
    return float(exact(rule.value, "Fill")) if isinstance(rule, Fill) else 0.0


def _arm(column: Column, hole: Mask, study: Study) -> NDArray[np.intp]:
    arm = arms(column, hole, study)
    fewest = int(np.bincount(arm, minlength=2 if study.arms is None else len(study.arms)).min())
    if fewest == 0:
        raise constant_treatment(study.treatment) if study.arms is None else empty_arm(study.treatment)
    if fewest < _SMALLEST_ARM:
        raise small_arm(study.treatment)
    return arm


def _covariate(column: Column, hole: Mask, name: str, study: Study) -> NDArray[np.float64]:
    domain = study.covariates[name]
    if isinstance(domain, Range):
        return fixed_point.clamp(numbers(column, hole, _fill(study, name), name), domain)
    found = codes(column, hole, LabelIndex(domain.labels), study.missing.get(name))
    if (found < 0).any():
        raise not_binary(name, domain.labels) if isinstance(domain, Binary) else undeclared_category(name)
    return found.astype(np.float64)
