"""What is public of the rows at each level of protection: the only view of them that estimators get.

What counts as private is chosen by the question; two data sets are neighbours if they differ in it for one
person, and all else is public:

- "outcome": covariates, treatments, clusters and the order of rows are public;
- "treatment and outcome": covariates and the order of rows are public;
- "record": the number of rows alone is public.

In: a session, which holds the rows, or a table of them, and the level (`Unit`). Out: `PublicRows` (columns)
and `PublicData` (sizes, ranges, declared study), in units of the data; reading what is private at the level
raises the refusal CV-P851.

Why it is right: neighbouring data sets agree on every number that these classes return, so that decisions
based on them cost no privacy and no noise is needed. `Study.public_columns` says the same of columns.
`private_table` and `private_session` lead to the private columns; only modules of `counterveil.rows`, whose
sums have proof pages, call them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Categories, Layout, Study, Sums, Table, strata_codes
from counterveil.data.panels import complete_sizes
from counterveil.data.table import arm_sizes, covariate_columns, without_rows
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy import Unit
from counterveil.session import BaseSession

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublicRows:
    """The public columns of rows, and a handle by which `counterveil.rows` finds the private ones.

    Attributes
    ----------
    study : Study
        The study that the rows fit.
    rows : int
        Number of rows.
    covariates : mapping of str to ndarray of float64
        By name: values inside their bounds, or codes of labels in the order of their declaration.
    arm, treated : ndarray
        Place of each row's arm, and whether it is another than the reference. Public with outcomes alone
        private.
    cluster : ndarray of int, or None
        Place of each row's cluster. Public with outcomes alone private.
    score : ndarray of float64, or None
        Every row's declared probability of treatment; None where the study declares none.
    outcome_unit : Fraction
        Exact length of one step of the outcome, in its units.
    unit : Unit
        What is private.
    """

    _table: Table
    unit: Unit

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        return self._table.study

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._table.rows

    @property
    def covariates(self) -> Mapping[str, Floats]:
        """Covariates by name; CV-P851 where they are private."""
        self._require("covariates", self.unit.covariates_public)
        return self._table.covariates

    @property
    def score(self) -> Floats | None:
        """Every row's declared probability of treatment, None where the study declares none."""
        self._require("scores", self.unit.covariates_public)
        return self._table.score

    @property
    def arm(self) -> NDArray[np.intp]:
        """Place of each row's arm; CV-P851 where it is private."""
        self._require("arms", self.unit.treatment_public)
        return self._table.arm

    @property
    def treated(self) -> NDArray[np.bool_]:
        """Whether a row is in another arm than the reference; CV-P851 where it is private."""
        self._require("arms", self.unit.treatment_public)
        return self._table.treated

    @property
    def cluster(self) -> NDArray[np.intp] | None:
        """Place of each row's cluster, None without clusters; CV-P851 where it is private."""
        self._require("clusters", self.unit.treatment_public)
        return self._table.cluster

    @property
    def outcome_unit(self) -> Fraction:
        """Length of one step of the outcome."""
        return self._table.outcome_unit

    def cached(self, name: str, make: Callable[[], Made]) -> Made:
        """Return what `make` returned when these rows were asked for it first."""
        return self._table.cached(name, make)

    def codes(self, layout: Layout) -> Integers:
        """Return the place of each row's stratum, which public covariates make."""
        self._require("covariates", self.unit.covariates_public)
        return strata_codes(self._table, layout)

    def shown(self) -> dict[str, NDArray[Any]]:
        """Return the covariates as people write them: labels as labels."""
        self._require("covariates", self.unit.covariates_public)
        return covariate_columns(self._table)

    def with_labels(self, name: str, labels: Sequence[str], codes: Integers) -> PublicRows:
        """Return the rows with one more public covariate: the place of each row's label in `labels`."""
        self._require("covariates", self.unit.covariates_public)
        covariates = {**self.study.covariates, name: Categories(labels)}
        columns = dict(self._table.covariates) | {name: codes.astype(np.float64)}
        study = self.study._changed(covariates=covariates)
        return PublicRows(replace(self._table, study=study, covariates=columns), self.unit)

    def take(self, rows: slice | NDArray[np.intp]) -> PublicRows:
        """Return the same of some rows, which were chosen by what is public.

        Parameters
        ----------
        rows : slice or ndarray of int
            Places of the rows.

        Returns
        -------
        PublicRows
            These rows, in this order.
        """
        return PublicRows(self._table.take(rows), self.unit)

    def _require(self, what: str, public: bool) -> None:
        if not public:
            raise refusal("CV-P851", what=what, unit=self.unit.value)

    __repr__ = without_rows


def private_table(rows: PublicRows) -> Table:
    """Return the rows with their private columns; only modules of `counterveil.rows` call it."""
    return rows._table


@dataclass(frozen=True, slots=True)
class PublicData:
    """What a method may know before anything is released.

    Attributes
    ----------
    study : Study
        Roles, ranges and labels of columns.
    unit : Unit
        What is private.
    rows : int
        Number of rows.
    width : Fraction
        Width of the outcome's range, in its units.
    columns : PublicRows
        Public columns; reading them attaches the rows.
    arm_sizes : tuple of int
        Rows of each arm, in the order of `study.treatment_labels`; where treatments are public.
    people_in_every_period : int
        Number of people with a measurement in every period.
    """

    _session: BaseSession
    unit: Unit

    @property
    def study(self) -> Study:
        """Roles, ranges and labels of columns."""
        return self._session.study

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._session.batches.rows

    @property
    def width(self) -> Fraction:
        """Width of the outcome's range, in its units: the most by which one outcome can change."""
        low, high = self.study.outcome_range
        return high - low

    @property
    def columns(self) -> PublicRows:
        """The public columns, all in memory."""
        return PublicRows(self._session.table, self.unit)

    @property
    def columns_at_hand(self) -> PublicRows | None:
        """The public columns if rows are in memory already, None where they lie elsewhere."""
        table = self._session.in_memory
        return None if table is None else PublicRows(table, self.unit)

    @property
    def arm_sizes(self) -> tuple[int, ...]:
        """Rows of each arm of this site; CV-P851 where treatments are private."""
        if not self.unit.treatment_public:
            raise refusal("CV-P851", what="sizes of arms", unit=self.unit.value)
        arms = len(self.study.treatment_labels)
        (sizes,) = self._session.batches.run(partial(arm_sizes, arms=arms))
        return cast("tuple[int, ...]", tuple(map(int, sizes)))

    @property
    def people_in_every_period(self) -> int:
        """People with a measurement in every period: others are there only where that pattern is public."""
        people, _ = complete_sizes(self._session.batches)
        return people

    @property
    def complete_sizes(self) -> tuple[int, int]:
        """People with a measurement in every period, and how many of them are treated; CV-P851 where arms are private.

        Who has no measurement in a period is public where a study of periods drops missing ones.
        """
        if not self.unit.treatment_public:
            raise refusal("CV-P851", what="sizes of arms", unit=self.unit.value)
        return complete_sizes(self._session.batches)

    def group_sizes(self, layout: Layout) -> list[tuple[int, int]]:
        """Return how many rows of every group are untreated, and treated; CV-P851 where treatments are private."""
        if not self.unit.treatment_public:
            raise refusal("CV-P851", what="sizes of arms", unit=self.unit.value)
        (counts,) = self._session.batches.run(partial(_group_sizes, layout=layout))
        return [(int(control), int(treated)) for control, treated in counts.reshape(-1, 2)]

    def of_sites(self, name: str, numbers: tuple[int, ...], least: int = 0) -> tuple[tuple[int, ...], ...]:
        """Return public numbers of every site whose sums are added; those of this one alone where it is alone."""
        return self._session.public(name, numbers, least)

    @property
    def account_rule(self) -> str:
        """How the account adds up requests: "sum", or by the Gaussian rule."""
        return self._session.account().rule


def private_session(public: PublicData) -> BaseSession:
    """Return the session that holds the rows; only modules of `counterveil.rows` call it."""
    return public._session


def _group_sizes(block: Table, layout: Layout) -> Sums:
    """Return how many rows every group has in either arm, those without treatment first."""
    cells = 2 * strata_codes(block, layout) + block.treated
    return (np.bincount(cells, minlength=2 * layout.public),)
