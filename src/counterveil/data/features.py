"""The covariates of a study as features.

Where outcomes alone are protected, covariates are public (`Features`): columns may be centred and scaled by what the
data hold. (Scaling by declared bounds would let the penalty of the propensity model press on columns that fill little
of their bounds.) Where whole records are protected, bounds are public (`UnitFeatures`, `feature_map`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data.domains import Binary, Categories, Range
from counterveil.data.study import Study
from counterveil.data.table import Table
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Column, FeatureMap

# Name, domain, raw column and, for a column of labels, the label's code.
_Column: TypeAlias = tuple[str, Range | Binary | Categories, NDArray[np.float64], int | None]

# Rows and columns that are turned at once: they stay in a core's cache. (Not a power of two of rows, with which
# columns would crowd into one corner of it.)
_BLOCK, _TOGETHER = 8000, 32
# Rows whose bounded features are written at once.
_UNIT_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Features:
    """One column per numeric or two-label covariate, one per label of any other; values (n, p) in [-1, 1].

    Columns have mean zero and are divided by their largest deviation; a constant column is zero.
    `domains` says of every column what its covariate may hold.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    domains: tuple[Range | Binary | Categories, ...]


class CovariateRows(Protocol):
    """The covariates of rows by name: values inside their bounds, or codes of labels."""

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def covariates(self) -> Mapping[str, Floats]:
        """Covariates by name."""
        ...


def covariate_features(table: CovariateRows) -> Features:
    """Return the features of the covariates of rows; the study declares at least one."""
    columns = list(_columns(table))
    values = np.empty((table.rows, len(columns)))
    buffer = np.empty((_TOGETHER, min(table.rows, _BLOCK)))
    for first in range(0, len(columns), _TOGETHER):
        part = columns[first : first + _TOGETHER]
        _encode(part, values[:, first : first + len(part)], buffer[: len(part)])
    return Features(tuple(name for name, *_ in columns), values, tuple(domain for _, domain, *_ in columns))


def _encode(columns: list[_Column], values: Floats, buffer: Floats) -> None:
    """Write the columns' features to `values` (n, k), by way of a buffer of k columns side by side."""
    n = len(values)
    raw = buffer
    spans = [slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]
    high = np.full(len(columns), -np.inf)
    low = np.full(len(columns), np.inf)
    mean = np.zeros(len(columns))
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
        values[span] = ((raw - mean[:, None]) * factor[:, None]).T


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
        raise refusal("CV-S051", method=method)


def column_names(study: Study) -> tuple[str, ...]:
    """Return the names of the features' columns."""
    return tuple(
        name if label is None else f"{name}={label}"
        for name, domain in study.covariates.items()
        for label in (domain.labels if isinstance(domain, Categories) else (None,))
    )


def _columns(table: CovariateRows) -> Iterator[_Column]:
    """Yield name, domain, raw column and, for a column of labels, the label's code."""
    for name, domain in table.study.covariates.items():
        column = table.covariates[name]
        if isinstance(domain, Categories):
            for code, label in enumerate(domain.labels):
                yield f"{name}={label}", domain, column, code
        else:
            yield name, domain, column, None


@dataclass(frozen=True, slots=True)
class UnitFeatures:
    """The public shape of features with public bounds: for every covariate its first column and its number of labels.

    `labels` is 0 for covariates that take one column. Nothing is read off the data: a number is scaled by its declared
    range and centred at the middle of it, a two-label covariate is -1/2 or 1/2, any other one has a column for each
    declared label, less one over their number. A row's features depend on that row alone.
    """

    names: tuple[str, ...]
    labels: tuple[int, ...]

    @classmethod
    def of(cls, study: Study) -> UnitFeatures:
        """Return the shape that a study's declarations give; no row is looked at."""
        sizes = [len(d.labels) if isinstance(d, Categories) else 0 for d in study.covariates.values()]
        return cls(tuple(study.covariates), tuple(sizes))

    @property
    def columns(self) -> int:
        """Number of columns, without a constant one."""
        return sum(max(1, size) for size in self.labels)

    @property
    def squared_max_norm(self) -> Fraction:
        """A bound on the squared Euclidean length of every row."""
        return sum((Fraction(1) if size else Fraction(1, 4) for size in self.labels), Fraction(0))

    @property
    def middle(self) -> Floats:
        """What was taken off every column: with it added, features lie in [0, 1]."""
        return np.concatenate([np.full(max(1, size), 1.0 / size if size else 0.5) for size in self.labels])

    def values(self, table: Table) -> Floats:
        """Return the (rows, columns) features of a table."""
        return self.values_of(table.covariates, table.study)

    def values_of(self, columns: Mapping[str, Floats], study: Study) -> Floats:
        """Return the (rows, columns) features of columns of numbers and codes."""
        rows = len(columns[self.names[0]])
        found = np.empty((rows, self.columns))
        # A column of the whole matrix at a time would go through all of its memory once a column.
        for first in range(0, rows, _UNIT_BLOCK):
            part = slice(first, first + _UNIT_BLOCK)
            self._write({name: columns[name][part] for name in self.names}, study, found[part])
        return found

    def blocks(self, table: Table, rows: int) -> Iterator[tuple[slice, Floats]]:
        """Yield a table's rows, so many at a time, and their (rows, columns) features; a column lies together."""
        for start in range(0, table.rows, rows):
            part = slice(start, min(start + rows, table.rows))
            found = np.empty((self.columns, part.stop - start))
            columns = {name: table.covariates[name][part] for name in self.names}
            self._write(columns, table.study, found.T)
            yield part, found.T

    def _write(self, columns: Mapping[str, Floats], study: Study, found: Floats) -> None:
        """Write the features of columns to (rows, columns) `found`."""
        place = 0
        for name, size in zip(self.names, self.labels, strict=True):
            column = columns[name]
            domain = study.covariates[name]
            if size:
                found[:, place : place + size] = (column[:, None] == np.arange(size)) - 1.0 / size
            elif isinstance(domain, Range):
                low, high = domain.floats()
                # Clipped after the division, whose rounding could step over the end.
                found[:, place] = np.clip((column - low) / (high - low), 0.0, 1.0) - 0.5
            else:
                found[:, place] = column - 0.5
            place += max(1, size)

    def index_range(self, weights: Floats) -> tuple[float, float]:
        """Return the smallest and largest weighted sum of features that any row could have."""
        low = high = 0.0
        place = 0
        for size in self.labels:
            own = weights[place : place + max(1, size)]
            ends = own - own.mean() if size else np.array([-own[0] / 2, own[0] / 2])
            low, high = low + float(ends.min()), high + float(ends.max())
            place += max(1, size)
        return low, high


def feature_map(study: Study, degree: int, *, reference: Literal["first", "last"] = "last") -> FeatureMap:
    """Return the columns of a study's covariates and, at degree 2, their products and squares.

    Parameters
    ----------
    reference : {"first", "last"}
        Which label of a covariate has no column: with one for each label the columns would add up to a constant.
        Coefficients of regressions compare with it; what adjusts for covariates is the same either way.
    """
    columns = tuple(_mapped_columns(study, reference))
    if degree == 1:
        return FeatureMap(columns)
    pairs = [
        (i, j)
        for i in range(len(columns))
        for j in range(i, len(columns))
        if not _known(columns[i], columns[j], i == j)
    ]
    return FeatureMap(columns, tuple(pairs))


def feature_sets(study: Study) -> tuple[FeatureMap, ...]:
    """Return the columns of a study's covariates, the same with squares of numbers, and with products as well."""
    whole = feature_map(study, 2)
    squares = tuple(pair for pair in whole.pairs if pair[0] == pair[1])
    found = {
        maps.size: maps for maps in (FeatureMap(whole.columns), FeatureMap(whole.columns, squares), whole)
    }
    return tuple(found.values())


def counted_features(features: FeatureMap) -> int:
    """Return the number of features; flags of one covariate, of which one at most is up, count as two at most."""
    flags: dict[str, int] = {}
    others = len(features.pairs)
    for column in features.columns:
        if column.label is None:
            others += 1
        else:
            flags[column.source] = flags.get(column.source, 0) + 1
    return others + sum(min(2, count) for count in flags.values())


def _mapped_columns(study: Study, reference: Literal["first", "last"]) -> Iterator[Column]:
    for name, domain in study.covariates.items():
        if isinstance(domain, Categories):
            first = 1 if reference == "first" else 0
            for code in range(first, first + len(domain.labels) - 1):
                yield Column(name, 0.0, 1.0, code, True)
        elif isinstance(domain, Range):
            low, high = domain.floats()
            yield Column(name, low, high - low, None, False)
        else:
            yield Column(name, 0.0, 1.0, None, True)


def _known(first: Column, second: Column, same: bool) -> bool:
    """Whether the product is constant or a combination of features that are there already."""
    if same:
        return first.two_valued
    return first.source == second.source
