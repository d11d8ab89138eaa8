"""The session: a table, its budget and its ledger, through which estimators run requests."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from counterveil.accounting import AccessPolicy, Account, Answered, Ledger, Reservation, Uses, open_ledger
from counterveil.accounting.access_policy import rules_of
from counterveil.accounting.chain import canonical
from counterveil.data import (
    Backend,
    Layout,
    SpooledRows,
    Study,
    Table,
    check_columns,
    check_study,
    cores,
    histogram_of_rows,
    histogram_of_source,
    named_table,
    rows_are_made,
    rows_of_source,
    silence,
    source_elsewhere,
    strata_of_rows,
    strata_of_source,
    strata_of_table,
    table_of_source,
    without_positions,
)
from counterveil.data.cells import Column
from counterveil.data.people import first_of_each
from counterveil.data.sources import read
from counterveil.data.spark import SparkRows
from counterveil.errors import refusal
from counterveil.mechanisms import BitSource, SystemNoise
from counterveil.numerics.strata import Strata
from counterveil.privacy import Budget, Unit, written
from counterveil.session.gate import Gate
from counterveil.session.plan import Plan


@dataclass(frozen=True, slots=True)
class Request:
    """One question: the plan it pays for, the public description that identifies it, and what it uses."""

    plan: Plan
    description: dict[str, object]
    uses: Uses
    request_id: str | None = None

    def fingerprint(self) -> str:
        """Return a hash of what is asked and what it uses; the same question always has the same one.

        The description must be JSON: an object's own text may hide in what it differs from another.
        """
        return hashlib.sha256(
            canonical(self.description | {"uses": self.uses.to_dict()}).encode()
        ).hexdigest()

    @property
    def recorded(self) -> dict[str, object]:
        """What the ledger writes down: the description and what each release pays, which a request keeps to the end."""
        return self.description | {"releases": {name: written(amount) for name, amount in self.plan.amounts}}


class BaseSession:
    """Holds private rows, the remaining budget and the noise source; `run` is the only way to an answer."""

    def __init__(
        self,
        source: object,
        study: Study,
        *,
        budget: Budget | None = None,
        ledger: str | Path | Ledger | None = None,
        dataset: str | None = None,
        noise: BitSource | None = None,
        attach: bool = True,
        analyst: str | None = None,
        access_policy: AccessPolicy | None = None,
    ) -> None:
        check_study(study)
        self.study = study
        self._source = named_table(source)
        self._table: Table | None = None
        self._streamed: Backend | None = None
        self._restricted = False
        # Rows that were counted where they lie, and not attached.
        self._counted: int | None = None
        self._noise = noise if noise is not None else SystemNoise()
        self._analyst = analyst
        self._owns_ledger = not isinstance(ledger, Ledger)
        self.ledger = _open(ledger)
        try:
            self.dataset, registered = _account_name(self.ledger, dataset, budget, access_policy)
            if registered:
                # Rows are checked under the account's missing rules only: the check tells which columns have gaps.
                self.ledger.check_missing(self.dataset, study.columns, study.missing_kinds)
            # Rows of a subset or of clusters are looked at once the policy allowed these, at the question's level.
            at_once = attach and study.free_to_attach and not source_elsewhere(source)
            if isinstance(source, Table) or at_once:
                self.attach()
            else:
                # What lies in a file or a database stays there until a question needs its rows.
                check_columns(self._source, study)
            if not registered and budget is not None:
                self.ledger.register(self.dataset, budget, access_policy=access_policy)
        except BaseException:
            self.close()
            raise

    def attach(self, method: str = "a method that reads all rows into this process") -> None:
        """Read the rows, or say why they do not fit the study.

        Where rows have no public positions, `method` is refused by this name.
        """
        if without_positions(self._source):
            raise refusal("CV-D050", method=method)
        if self._table is None:
            self._table = _attached(self._source, self.study)

    @property
    def table(self) -> Table:
        """The rows, attached when they are first asked for."""
        if self._table is None:
            self.attach()
        return cast("Table", self._table)

    @property
    def in_memory(self) -> Table | None:
        """The rows if they were attached, None where they were not or lie elsewhere."""
        return self._table

    def restricted(self, table: Table) -> Self:
        """Return this session with some of its rows; they must have been chosen by what the question holds public."""
        part = copy(self)
        # Whoever is left out is protected too.
        part._counted = self.batches.rows
        part._table, part._streamed, part._restricted = table, None, True
        return part

    def attach_batches(self) -> None:
        """Check the rows, or say why they do not fit the study; those of large files are not read into memory."""
        cores()  # so that a wrong number of them is refused before anything is spent
        if self._table is None and self._streamed is None:
            found = rows_of_source(self._source, self.study)
            if isinstance(found, Table):
                self._table = found
            else:
                self._streamed = found

    @property
    def batches(self) -> Backend:
        """The rows in batches, for methods that add them up in passes."""
        self.attach_batches()
        return cast("Backend", self._table if self._table is not None else self._streamed)

    def first_rows(self, names: tuple[str, ...]) -> dict[str, Column]:
        """Return columns as they stand in the source, to ask what they hold; a person's first row alone."""
        person = self.study.person
        wanted = names if person is None else tuple(dict.fromkeys((*names, person.column)))
        with silence():
            columns = read(self._source, wanted, frozenset())
            if person is not None:
                first = first_of_each(columns[person.column], person.column)
                columns = {name: columns[name].keep(first) for name in names}
        self._counted = len(columns[names[0]]) if names else 0
        return columns

    def strata(self, layout: Layout, most: int | None = None) -> Strata:
        """Return counts and sums by stratum; rows that are not attached are aggregated inside the database or engine.

        `most` is the number of strata that they may be counted in later.
        """
        if self._table is not None:
            return strata_of_table(self._table, layout)
        if rows_are_made(self.study):
            return strata_of_rows(self.batches, layout)
        found = strata_of_source(self._source, self.study, layout, most)
        self._counted = found.rows
        return found

    def histogram(self, name: str, cuts: tuple[Fraction, ...]) -> NDArray[np.int64]:
        """Return how many rows have a numeric covariate in each bin that the cut points make."""
        if self._table is not None or rows_are_made(self.study):
            # Rows are made once, for all that is asked of them.
            return histogram_of_rows(self.batches, name, cuts)
        return histogram_of_source(self._source, self.study, name, cuts)

    @property
    def simulated(self) -> bool:
        """Whether the noise comes from a seed."""
        return self._noise.simulated

    def admit(self, uses: Uses) -> None:
        """Raise the refusal of a study that the account's access policy does not allow; asked before rows are used."""
        self.ledger.check_study(self.dataset, uses)

    def run(self, request: Request, compute: Callable[[Gate], dict[str, object]]) -> dict[str, object]:
        """Return the answer to a request: reserve its budget, store each release as it is drawn, settle the answer.

        A delta that permits publishing a row is refused first (CV-P006).
        A request id that was answered before gets its stored answer and costs nothing. If `compute` fails or the
        process dies, the budget stays spent, and the request goes on when it is asked again by its id, at no cost.
        """
        budget = request.plan.budget
        if not budget.pure:
            budget.check_rows(self._rows())
        self.ledger.check_rows(self.dataset, self._rows)
        reserved = self.ledger.reserve(
            self.dataset,
            uuid.uuid4().hex if request.request_id is None else request.request_id,
            request.plan.charge,
            uses=request.uses,
            fingerprint=request.fingerprint(),
            description=request.recorded,
            simulated=self.simulated,
            asked_by=self._analyst,
        )
        if isinstance(reserved, Answered):
            return cast("dict[str, object]", json.loads(reserved.answer))
        gate = self._gate(request.plan, reserved)
        try:
            with silence():
                found = compute(gate)
        except Exception:
            if gate.forgetful:
                self.ledger.abandon(reserved)
            raise
        # Read back from its text, so that a first answer and a resent one cannot differ.
        settled = self.ledger.settle(reserved, json.dumps(found))
        return cast("dict[str, object]", settled)

    def _rows(self) -> int:
        return self.batches.rows if self._counted is None else self._counted

    def _gate(self, plan: Plan, reservation: Reservation) -> Gate:
        """Return the gate of a plan that was reserved; an audit puts one in its place that it can watch."""
        keep = partial(self.ledger.release, reservation) if plan.one_by_one else None
        return Gate(plan, self._noise, keep)

    def account(self) -> Account:
        """Return what was granted, what is spent and what remains for this data set."""
        return self.ledger.account(self.dataset)

    def remarks(self, unit: Unit) -> tuple[str, ...]:
        """Return what the guarantee of an answer that protects `unit` must say about the account."""
        return self.ledger.remarks(self.dataset, unit, self.study.treatment)

    def noise_pages(self, mechanisms: tuple[str, ...]) -> tuple[str, ...]:
        """Return the proof pages of the noise of these mechanisms."""
        return tuple(f"mechanisms/{mechanism}.proof.md" for mechanism in mechanisms)

    def close(self) -> None:
        """Close the ledger if it was opened here, and delete scratch rows, here or in Spark."""
        if isinstance(self._streamed, SpooledRows | SparkRows):
            self._streamed.close()
            self._streamed = None
        if self._owns_ledger:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _attached(source: object, study: Study) -> Table:
    """Return the table; one that was attached before must have been attached under the same study."""
    if not isinstance(source, Table):
        return table_of_source(source, study)
    if source.study != study:
        raise refusal("CV-P017")
    return source


def _open(ledger: str | Path | Ledger | None) -> Ledger:
    """Return the ledger to use; a persistent one must exist: a new one would not know what was spent."""
    if isinstance(ledger, Ledger):
        return ledger
    if ledger is None:
        return open_ledger(":memory:", create=True)
    return open_ledger(ledger)


def _listed(names: Iterable[str]) -> str:
    found = [repr(name) for name in names]
    return ", ".join([*found[:10], *(["..."] if len(found) > 10 else [])]) or "no data set"


def _account_name(
    ledger: Ledger, dataset: str | None, budget: Budget | None, access_policy: AccessPolicy | None
) -> tuple[str, bool]:
    """Return the name of the data set's account and whether it is registered; a new one needs a budget."""
    if budget is not None and not isinstance(budget, Budget):
        raise refusal("CV-P662", got=budget)
    if dataset is not None and not isinstance(dataset, str):
        raise refusal("CV-L011", name="dataset", value=dataset)
    known = {account.dataset: account.budget for account in ledger.datasets()}
    if dataset is None:
        if len(known) > 1:
            raise refusal("CV-P013b", known=_listed(known))
        dataset = next(iter(known), "data")
    if dataset not in known:
        if budget is None:
            raise refusal("CV-P012", dataset=dataset, known=_listed(known))
        return dataset, False
    if access_policy is not None:
        ledger.check_access_policy(dataset, access_policy)
    if budget is not None and known[dataset] != budget:
        raise refusal("CV-P014", known=known[dataset], budget=budget)
    return dataset, True


def drafted_access_policy(study: Study, unit: Unit) -> AccessPolicy:
    """Return an access policy that permits a study at one level of protection and nothing beyond it."""
    outcomes = study.outcomes if unit.covariates_public else None
    return AccessPolicy(
        outcomes=outcomes, protects=(unit,), **shown_columns(study, (unit,)), **study.unit_columns
    )


def shown_columns(study: Study, units: Iterable[Unit]) -> dict[str, Any]:
    """Return what a study shows at these levels, as arguments of an access policy: public columns, and what of others.

    That is which rows have values, which are chosen, by text, and clusters.
    """
    listed = tuple(units)
    public = {name for unit in listed for name in study.public_columns(unit)}
    shown: dict[str, Any] = {
        "public": public,
        "missing": rules_of(study.treatment, study.missing_kinds, public),
    }
    if all(unit.treatment_public for unit in listed):
        return shown
    assigned = study.cluster is not None and study.cluster.assigned
    field = "assigned_clusters" if assigned else "clusters"
    return shown | {"subsets": study.subsets, field: study.cluster_columns}
