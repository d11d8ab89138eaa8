"""Made-up rows on which a user's statistic is tried before any privacy budget is spent.

In: the public description of a study and its public columns. Out: a table with as many rows as the real
one. Public columns are as they are; private ones are filled in from the declared ranges and labels by a
fixed public sequence: outcomes in whole steps (2^24 of them) spread evenly over their range, numeric
covariates over theirs, labels and arms over all that are declared. Arms alternate where they are private,
and every made-up cluster has two rows.

Why it is right: no private value is read, so that what a statistic returns here (how many numbers, whether
it fails) is public and costs nothing.

Used in the argument of `rows/statistic.proof.md`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterveil.data import OUTCOME_STEPS, Range, Study, Table
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.public_choices import public_uniforms
from counterveil.rows.public import PublicData, private_table


def made_up_rows(public: PublicData) -> Table:
    """Return as many rows as there are, with the public columns and made-up private ones."""
    study = public.study
    rows = public.rows
    outcome = _steps(rows, column=0)
    if public.unit.treatment_public:
        table = private_table(public.columns)
        measures = tuple(_steps(rows, column=number + 1) for number in range(len(table.measures)))
        return replace(table, outcome=outcome, measures=measures)
    arm = (np.arange(rows) % max(len(study.treatment_labels), 2)).astype(np.intp)
    if public.unit.covariates_public:
        covariates = dict(private_table(public.columns).covariates)
    else:
        covariates = {
            name: _covariate(study, name, rows, column=-number - 1)
            for number, name in enumerate(study.covariates)
        }
    others = tuple(_steps(rows, column=number) for number in range(1, len(study.outcomes)))
    # Each cluster has two rows.
    cluster = None if study.cluster is None else (np.arange(rows) // 2).astype(np.intp)
    return Table(
        study=study,
        arm=arm,
        treated=arm > 0,
        outcome=outcome,
        covariates=covariates,
        measures=others,
        cluster=cluster,
    ).sealed()


def _uniforms(rows: int, column: int) -> Floats:
    return public_uniforms(rows, 1, seed=(1 << 20) + column)[:, 0]


def _steps(rows: int, column: int) -> Integers:
    return np.floor(_uniforms(rows, column) * (OUTCOME_STEPS + 1)).astype(np.int64)


def _covariate(study: Study, name: str, rows: int, column: int) -> Floats:
    """Return values of a covariate over its whole range, or codes of all its labels."""
    domain = study.covariates[name]
    uniforms = _uniforms(rows, column)
    if isinstance(domain, Range):
        low, high = domain.floats()
        return np.asarray(low + (high - low) * uniforms)
    return np.floor(uniforms * len(domain.labels))
