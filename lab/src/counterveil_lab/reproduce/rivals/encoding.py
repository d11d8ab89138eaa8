"""What every method in a comparison offers, and records in the forms that methods take.

Every rule of the encoding reads public facts alone: declared ranges and values, and the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterveil.data import (
    Binary,
    Categories,
    Observational,
    Outcome,
    Range,
    Study,
    Table,
    Treatment,
    Trial,
)
from counterveil.data.domains import Domain


@dataclass(frozen=True, eq=False)
class Records:
    """Records as the papers hold them: numeric covariates, a 0/1 treatment, outcomes and what is public about them.

    `values` has, for each covariate, the values that it can take where these are few and public, else None; with more
    than two they are labels. Left out, every covariate is a measurement. `randomised` says whether the treatment was
    assigned by lot.
    """

    x: NDArray[np.float64]
    treated: NDArray[np.bool_]
    y: NDArray[np.float64]
    covariate_ranges: tuple[tuple[float, float], ...]
    outcome_range: tuple[float, float]
    values: tuple[tuple[float, ...] | None, ...] | None = None
    randomised: bool = False

    @property
    def rows(self) -> int:
        """How many people there are."""
        return len(self.y)

    @property
    def width(self) -> float:
        """How far outcomes can be apart."""
        return self.outcome_range[1] - self.outcome_range[0]

    @property
    def outcomes(self) -> NDArray[np.float64]:
        """Outcomes clamped to their public range."""
        return np.clip(self.y, *self.outcome_range)

    def values_of(self, column: int) -> tuple[float, ...] | None:
        """Return the public values of a covariate, None for a measurement."""
        return None if self.values is None else self.values[column]


@dataclass(frozen=True)
class Budget:
    """What one estimate may spend."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Answer:
    """A point estimate of the average effect, with the method's own interval where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


Estimate = Callable[[Records, Budget, int], Answer]


@dataclass(frozen=True)
class Rival:
    """A method by its name in tables, the unit it protects, and whether its claim holds.

    `claim` is "holds" for a guarantee that is true in finite samples, "refuted" where the gallery or a counterexample
    breaks it (`why` names it), "unproved" where nobody showed either, "none" for methods without privacy. `estimate`
    takes records, a budget and a seed. `delta` is "none" for methods with noise of pure epsilon, "needed" for those
    that cannot do without a delta, "either" for those that take what they get. `gallery` names the entry of the
    gallery of refuted claims that breaks the claim, `ours` tells our own methods, and `apart` those that run in the
    environment of `counterveil_lab.reproduce.rivals.environment`. A method that is not `seeded` draws from the system.
    """

    name: str
    protects: Literal["outcome", "record", "nothing"]
    claim: Literal["holds", "refuted", "unproved", "none"]
    why: str
    estimate: Estimate
    delta: Literal["none", "needed", "either"] = "either"
    gallery: str | None = None
    ours: bool = False
    apart: bool = False
    seeded: bool = True


Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
TREATMENT, OUTCOME = "treated", "y"
# Rows that a stratum should hold on average: fewer, and many strata lack an arm.
ROWS_A_STRATUM = 16
# Bins of a measurement in synthetic records; the square root of the rows where that is less.
MOST_BINS = 16


def names(records: Records) -> list[str]:
    """Return the covariates' names."""
    return [f"x{place}" for place in range(1, records.x.shape[1] + 1)]


def records_of(table: Table, y: Floats) -> Records:
    """Return an attached study with the outcomes `y` as records, labels as codes."""
    ranges: list[tuple[float, float]] = []
    values: list[tuple[float, ...] | None] = []
    for domain in table.study.covariates.values():
        if isinstance(domain, Range):
            ranges.append(domain.floats())
            values.append(None)
        else:
            count = 2 if isinstance(domain, Binary) else len(domain.labels)
            ranges.append((0.0, count - 1.0))
            values.append(tuple(float(code) for code in range(count)))
    low, high = (float(end) for end in table.study.outcome_range)
    return Records(
        np.column_stack([table.covariates[name] for name in table.study.covariates]).astype(np.float64),
        np.asarray(table.treated),
        y,
        tuple(ranges),
        (low, high),
        tuple(values),
        table.study.randomised is True,
    )


def study_of(records: Records, cut: tuple[int, ...] = ()) -> Study:
    """Return the study that declares what is public; measurements among `cut` are halved for strata."""
    domains = {name: _domain(records, column, column in cut) for column, name in enumerate(names(records))}
    low, high = records.outcome_range
    return Study(
        Treatment(TREATMENT, control=0),
        Outcome(OUTCOME, (low, high)),
        domains,
        assignment=Trial() if records.randomised else Observational(),
    )


def frame_of(records: Records) -> dict[str, NDArray[np.float64] | Codes]:
    """Return the columns by the names of the study."""
    columns: dict[str, NDArray[np.float64] | Codes] = dict(zip(names(records), records.x.T, strict=True))
    return columns | {TREATMENT: records.treated.astype(np.int64), OUTCOME: records.y}


def _domain(records: Records, column: int, cut: bool) -> Domain:
    values, (low, high) = records.values_of(column), records.covariate_ranges[column]
    if values is None:
        return Range(low, high).cut((low + high) / 2) if cut else Range(low, high)
    if len(values) == 2:
        return Binary(one=values[1], zero=values[0])
    return Categories(list(values))


def features(records: Records) -> Floats:
    """Return columns in [-1, 1]: measurements and pairs of values scaled by their public ranges, labels as 0 and 1."""
    found: list[Floats] = []
    for column, (low, high) in enumerate(records.covariate_ranges):
        values, x = records.values_of(column), records.x[:, column]
        if values is not None and len(values) > 2:
            found += [(x == label).astype(np.float64) for label in values[1:]]
        else:
            found.append(2 * (np.clip(x, low, high) - low) / (high - low) - 1)
    return np.column_stack(found) if found else np.zeros((records.rows, 0))


def strata_columns(records: Records) -> tuple[int, ...]:
    """Return the covariates that make strata: in their order, while strata hold enough rows on average."""
    chosen: list[int] = []
    cells, most = 1, max(2, records.rows // ROWS_A_STRATUM)
    for column in range(records.x.shape[1]):
        values = records.values_of(column)
        size = 2 if values is None else len(values)
        if cells * size <= most:
            chosen.append(column)
            cells *= size
    return tuple(chosen)


def strata(records: Records) -> tuple[Codes, int]:
    """Return each row's stratum and the number of strata, which is public."""
    return _crossed(*_coded(records, strata_columns(records), bins=2), records.rows)


def _crossed(codes: Codes, sizes: list[int], rows: int) -> tuple[Codes, int]:
    found = np.zeros(rows, dtype=np.int64)
    for column, size in enumerate(sizes):
        found = found * size + codes[:, column]
    return found, int(np.prod(sizes, dtype=np.int64))


def _coded(records: Records, columns: tuple[int, ...], bins: int) -> tuple[Codes, list[int]]:
    """Return codes of the columns and how many values each can take."""
    codes, sizes = np.zeros((records.rows, len(columns)), dtype=np.int64), []
    for place, column in enumerate(columns):
        values = records.values_of(column)
        if values is None:
            codes[:, place] = _bin(records.x[:, column], records.covariate_ranges[column], bins)
            sizes.append(bins)
        else:
            codes[:, place] = np.searchsorted(np.array(values), records.x[:, column]).clip(0, len(values) - 1)
            sizes.append(len(values))
    return codes, sizes


def _bin(x: Floats, ends: tuple[float, float], bins: int) -> Codes:
    low, high = ends
    return np.clip(((x - low) / (high - low) * bins).astype(np.int64), 0, bins - 1)


def bins_of(records: Records) -> int:
    """Return how many bins a measurement gets."""
    return max(2, min(MOST_BINS, isqrt(records.rows) // 2))


def binned(records: Records) -> tuple[Codes, list[int]]:
    """Return codes of the covariates, the treatment and the outcome in this order, with the sizes of their domains."""
    bins = bins_of(records)
    codes, sizes = _coded(records, tuple(range(records.x.shape[1])), bins)
    outcome = _bin(records.y, records.outcome_range, bins)
    whole = np.column_stack([codes, records.treated.astype(np.int64), outcome])
    return whole, [*sizes, 2, bins]


def unbinned(records: Records, codes: Codes) -> Floats:
    """Return covariates and outcomes of coded records, the outcome last: a bin's middle or a value."""
    bins = bins_of(records)
    found = np.empty((len(codes), records.x.shape[1] + 1))
    for column in range(records.x.shape[1]):
        values = records.values_of(column)
        if values is None:
            found[:, column] = _middle(codes[:, column], records.covariate_ranges[column], bins)
        else:
            found[:, column] = np.array(values)[codes[:, column]]
    found[:, -1] = _middle(codes[:, -1], records.outcome_range, bins)
    return found


def synthetic(records: Records, codes: Codes) -> Records:
    """Return coded records as records with the same public facts."""
    found = unbinned(records, codes)
    return replace(records, x=found[:, :-1], y=found[:, -1], treated=codes[:, -2] == 1)


def _middle(codes: Codes, ends: tuple[float, float], bins: int) -> Floats:
    low, high = ends
    return low + (codes + 0.5) / bins * (high - low)
