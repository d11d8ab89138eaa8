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

Floats = NDArray[np.float64]
# Name, domain, raw column and, for a column of labels, the label's code.
_Column: TypeAlias = tuple[str, Range | Binary | Categories, NDArray[np.float64], int | None]

# Rows and columns that are turned at once: they stay in a core's cache. (Not a power of two of rows, with which
# columns would crowd into one corner of it.)
_BLOCK, _TOGETHER = 8000, 32


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
    values, buffer = np.empty((table.rows, len(columns))), np.empty((_TOGETHER, min(table.rows, _BLOCK)))
    for first in range(0, len(columns), _TOGETHER):
        part = columns[first : first + _TOGETHER]
        _encode(part, values[:, first : first + len(part)], buffer[: len(part)])
    return Features(tuple(name for name, *_ in columns), values, tuple(domain for _, domain, *_ in columns))


def _encode(columns: list[_Column], values: Floats, buffer: Floats) -> None:
    """Write the columns' features to `values` (n, k), by way of a buffer of k columns side by side."""
    n, raw = len(values), buffer
    spans = [slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]
    high, low, mean = np.full(len(columns), -np.inf), np.full(len(columns), np.inf), np.zeros(len(columns))
    for span in spans:
        raw = _read(columns, span, buffer)
        np.maximum(high, raw.max(axis=1), out=high)
        np.minimum(low, raw.min(axis=1), out=low)
        mean += raw.sum(axis=1) / n
    # Rounding keeps order: these are the largest and the least of what is left when the mean is taken off.
    largest = np.maximum(high - mean, mean - low)
    # A constant column differs from its mean by rounding alone.
    constant = largest <= 1e-12 * np.maximum(high, -low)
    factor = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, largest))
    for span in spans:
        raw = raw if len(spans) == 1 else _read(columns, span, buffer)
        _turn(raw, mean, factor, values[span])


def _turn(raw: Floats, mean: Floats, factor: Floats, rows: Floats) -> None:
    """Write columns (k, n), centred and scaled, to rows (n, k)."""
    from counterveil.kernels.compilation import is_compiled, run
    from counterveil.kernels.turning import turn

    if is_compiled(turn):
        run(turn, (raw, mean, factor), (rows,))
    else:
        raw -= mean[:, None]
        raw *= factor[:, None]
        # Contiguous column by column, and turned into rows at once.
        rows[...] = raw.T


def _read(columns: list[_Column], span: slice, buffer: Floats) -> Floats:
    """Return the columns before they are centred, (k, rows), written into the buffer."""
    raw = buffer[:, : span.stop - span.start]
    for place, (_, _, column, label) in enumerate(columns):
        if label is None:
            raw[place] = column[span]
        else:
            np.equal(column[span], label, out=raw[place])
    return raw


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


def column_names(study: Study) -> tuple[str, ...]:
    """Return the names of the features' columns."""
    return tuple(
        name if label is None else f"{name}={label}"
        for name, domain in study.covariates.items()
        for label in (domain.labels if isinstance(domain, Categories) else (None,))
    )


def _columns(table: Table) -> Iterator[_Column]:
    """Yield name, domain, raw column and, for a column of labels, the label's code."""
    for name, domain in table.study.covariates.items():
        column = table.covariates[name]
        if isinstance(domain, Categories):
            for code, label in enumerate(domain.labels):
                yield f"{name}={label}", domain, column, code
        else:
            yield name, domain, column, None
