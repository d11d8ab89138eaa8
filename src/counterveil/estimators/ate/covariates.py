"""The covariates of a study as a matrix of features, for models of who was treated.

Only for questions that protect outcomes alone: covariates are public there, so columns may be centred and
scaled by what the data hold. (Scaling by declared bounds would let the penalty of the propensity model
press on columns that fill little of their bounds.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Binary, Categories, Range, Study, Table
from counterveil.errors import StudyError


@dataclass(frozen=True, slots=True)
class Features:
    """One column a number or two-label covariate, one a label of every other; values (n, p) in [-1, 1].

    Columns have mean zero and are divided by their largest deviation; a constant column is zero.
    `domains` says of every column what its covariate may hold.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    domains: tuple[Range | Binary | Categories, ...]


def covariate_features(table: Table) -> Features:
    """Return the features of a table's covariates; the study declares at least one."""
    columns = list(_columns(table))
    raw = np.empty((len(columns), table.rows))
    for place, (_, _, column, label) in enumerate(columns):
        raw[place] = column if label is None else column == label
    size = np.maximum(raw.max(axis=1), -raw.min(axis=1))
    raw -= raw.mean(axis=1)[:, None]
    largest = np.maximum(raw.max(axis=1), -raw.min(axis=1))
    # A constant column differs from its mean by rounding alone.
    constant = largest <= 1e-12 * size
    raw *= np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, largest))[:, None]
    values = np.ascontiguousarray(raw.T)
    return Features(tuple(name for name, *_ in columns), values, tuple(domain for _, domain, *_ in columns))


def require_covariates(study: Study, method: str) -> None:
    """Raise CV-S051 unless the study declares covariates; reads nothing else."""
    if not study.covariates:
        raise StudyError(
            "CV-S051",
            f"{method} needs covariates and the study declares none",
            expected='covariates={"age": Range(18, 90), ...} in the study',
            got="a study without covariates",
            fix="declare what treatment depended on, or use method='difference_in_means' for a trial",
        )


def _columns(
    table: Table,
) -> Iterator[tuple[str, Range | Binary | Categories, NDArray[np.float64], int | None]]:
    """Yield name, domain, raw column and, for a column of labels, the label's code."""
    for name, domain in table.study.covariates.items():
        column = table.covariates[name]
        if isinstance(domain, Categories):
            for code, label in enumerate(domain.labels):
                yield f"{name}={label}", domain, column, code
        else:
            yield name, domain, column, None
