"""The covariates of a study as a matrix of features, for models of who was treated.

Only for questions that protect outcomes alone: covariates are public there, so columns may be centred and
scaled by what the data hold. (Scaling by declared bounds would let the penalty of the propensity model
press on columns that fill little of their bounds.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Binary, Categories, Range, Study, Table
from counterveil.errors import StudyError

# Name, domain, raw column and, for a column of labels, the label's code.
_Column: TypeAlias = tuple[str, Range | Binary | Categories, NDArray[np.float64], int | None]

# Rows that are turned from columns into rows at once.
_BLOCK = 1024


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
    high, low, mean = (np.array(ends) for ends in zip(*map(_ends, columns), strict=True))
    # Rounding keeps order: these are the largest and the least of what is left when the mean is taken off.
    largest = np.maximum(high - mean, mean - low)
    # A constant column differs from its mean by rounding alone.
    constant = largest <= 1e-12 * np.maximum(high, -low)
    factor = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, largest))
    values, buffer = np.empty((table.rows, len(columns))), np.empty((len(columns), _BLOCK))
    for start in range(0, table.rows, _BLOCK):
        here = slice(start, min(start + _BLOCK, table.rows))
        raw = buffer[:, : here.stop - start]
        for place, (_, _, column, label) in enumerate(columns):
            raw[place] = column[here] if label is None else column[here] == label
        np.subtract(raw.T, mean, out=values[here])
        values[here] *= factor
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


def _ends(column: _Column) -> tuple[float, float, float]:
    """Return the largest and the least value of a feature before it is centred, and the mean."""
    _, _, raw, label = column
    if label is None:
        return float(raw.max()), float(raw.min()), float(raw.mean())
    share = int(np.count_nonzero(raw == label)) / len(raw)
    return float(share > 0), float(share == 1), share


def _columns(table: Table) -> Iterator[_Column]:
    """Yield name, domain, raw column and, for a column of labels, the label's code."""
    for name, domain in table.study.covariates.items():
        column = table.covariates[name]
        if isinstance(domain, Categories):
            for code, label in enumerate(domain.labels):
                yield f"{name}={label}", domain, column, code
        else:
            yield name, domain, column, None
