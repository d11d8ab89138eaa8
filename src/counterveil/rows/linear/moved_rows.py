"""Rows reordered, chosen, or with shifted outcomes, each by a public rule; private columns go along unseen.

    reorder or choose:  row i' = i(public columns),    shift outcomes:  y' = clamp(y - g, range'),

with g a public prediction or (for changes since a base period) another measurement of the same person, and
range' a public range in units of the outcome.

In and out: `PublicRows`, whose public columns can be read and whose private ones are reached by modules of
`counterveil.rows` alone. Nothing is released here.

Why it is right: reordering and choosing read public columns alone, so that two data sets which differ in one
person's private columns keep the same rows in the same order, and differ in one of them at most. A shift acts
on one row at a time: a changed outcome is one changed value inside the new range. So every bound holds
for the rows that come out, with the new range.

Proof: `rows/linear/trimmed_rows.proof.md`.
"""

# Proof: trimmed_rows.proof.md

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterveil.data import Range
from counterveil.data.domains import to_steps
from counterveil.data.panels import changes_from, complete
from counterveil.numerics.standard_columns import Ordered
from counterveil.privacy import Number
from counterveil.rows.public import PublicRows, private_table
from counterveil.session import BaseSession


def treated_first(rows: PublicRows) -> PublicRows:
    """Return the treated rows, then the others: an arm whose rows follow each other is read where it is."""
    table = private_table(rows)
    order = np.argsort(~rows.treated, kind="stable")
    sorted_rows = replace(
        table,
        arm=table.arm[order],
        treated=table.treated[order],
        outcome=table.outcome[order],
        covariates={},
        measures=tuple(values[order] for values in table.measures),
        cluster=None if table.cluster is None else table.cluster[order],
    )
    return PublicRows(replace(sorted_rows.sealed(), covariates=Ordered(table.covariates, order)), rows.unit)


def without_covariates(rows: PublicRows) -> PublicRows:
    """Return the rows without their covariates, where these have been read and would only take memory."""
    return PublicRows(replace(private_table(rows), covariates={}), rows.unit)


def residuals(rows: PublicRows, prediction: str, residual_range: tuple[Number, Number]) -> PublicRows:
    """Return rows whose outcome is the old one less a public prediction, clamped to the residuals' range."""
    table = private_table(rows)
    study = table.study
    bounds = Range(*residual_range, name="the residuals")
    lowest = float(study.outcome_range[0])
    values = lowest + float(table.outcome_unit) * table.outcome - table.covariates[prediction]
    rules = {name: rule for name, rule in study.missing.items() if name != study.outcome}
    moved = study._changed(outcome_range=(bounds.lo, bounds.hi), missing=rules)
    return PublicRows(replace(table, study=moved, outcome=to_steps(values, bounds), measures=()), rows.unit)


def people_in_every_period(rows: PublicRows) -> PublicRows:
    """Return people with a measurement in every period; others are there only where that pattern is public."""
    return PublicRows(complete(private_table(rows)), rows.unit)


def last_changes(rows: PublicRows, base_period: int) -> PublicRows:
    """Return rows whose outcome is the last change since the period at place `base_period`, in the range of changes."""
    return PublicRows(changes_from(private_table(rows), base_period), rows.unit)


def session_of(session: BaseSession, rows: PublicRows) -> BaseSession:
    """Return the session of some of its rows, which were chosen by public columns: it pays from the same account."""
    return session.restricted(private_table(rows))
