"""What a rule or a model says of every row, each row by itself, and nothing else about the rows getting out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from counterveil.data import (
    Range,
    Study,
    Sums,
    Table,
    columns_as_written,
    covariate_columns,
    public_points,
    silence,
)
from counterveil.data.labels import LabelIndex
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats
from counterveil.results.cate_model import CateModel
from counterveil.session import Gate, fixed_ambient_generators
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.moments.kernels.scores import counts_between
from counterveil.statistics.moments.records import Part, Records, TableRecords

Columns = Mapping[str, NDArray[Any]]


class EffectModel(Protocol):
    """Anything that says how large the effect is, from covariates alone."""

    def effect(self, columns: Any, /) -> Any:
        """Return the effect for every row of a mapping from covariate to values."""
        ...


def reads_rows_alone(model: object) -> TypeGuard[CateModel]:
    """Return whether what a model says of a row is known to depend on that row alone: a subclass could do anything."""
    return type(model) is CateModel


def model_remarks(model: object) -> tuple[str, ...]:
    """Return what a guarantee rests on beside the proofs, where a model or a rule says which people are meant."""
    if reads_rows_alone(model):
        return ("the model was released before: what it cost comes on top of this",)
    return (
        "the guarantee rests on the rule or model: it must be public and carry nothing over from one row to the next",
    )


def fits(model: EffectModel, study: Study) -> bool:
    """Return whether a model can be asked about every row that a study allows; compares declarations only.

    Otherwise a row's label could make it fail, and the failure would tell of that row.
    """
    if not reads_rows_alone(model):
        return True
    for name, known in model.study.covariates.items():
        own = study.covariates.get(name)
        if own is None or isinstance(own, Range) is not isinstance(known, Range):
            return False
        if not isinstance(own, Range) and not isinstance(known, Range):
            labels = LabelIndex(known.labels)
            if any(labels.code(label) is None for label in own.labels):
                return False
    return True


def effects_at(model: EffectModel, columns: Columns) -> Floats:
    """Return the model's effects; models that are not ours are asked about one row at a time."""
    if reads_rows_alone(model):
        return np.asarray(model.effect(columns), dtype=np.float64)
    return one_by_one(model.effect, columns)


def one_by_one(function: Callable[[Any], Any], columns: Columns) -> Floats:
    """Return what a function answers to every row alone, 0 where it fails.

    It never sees two rows together, so that what it says of one cannot depend on another, unless it keeps
    state between calls. What it prints, logs or warns of is dropped.
    """
    rows = len(next(iter(columns.values()))) if columns else 0
    found = np.zeros(rows)
    # Going through a matrix of one column is quicker than slicing: its rows are arrays of length one.
    cells = zip(*(values[:, None] for values in columns.values()), strict=True)
    with silence(), fixed_ambient_generators() as again:
        for place, row in enumerate(cells):
            again()
            try:
                answer = function(dict(zip(columns, row, strict=True)))
                found[place] = float(np.asarray(answer, dtype=np.float64).reshape(-1)[0])
            except (Exception, SystemExit):
                found[place] = 0.0
    return np.where(np.isfinite(found), found, 0.0)


@dataclass(slots=True)
class RowNumbers:
    """A number for every row of a block, from its covariates, by a public function of mappings of columns.

    A function that is not ours is asked about one block after the other and, while a batch stays the same, about
    each block once.
    """

    function: Callable[[Columns], Floats]
    in_turn: bool
    _batch: Table | None = field(default=None, init=False)
    _kept: dict[int, Floats] = field(default_factory=dict, init=False)

    def __call__(self, part: Part) -> Floats:
        """Return the numbers of a block's rows."""
        if not self.in_turn:
            return self.function(covariate_columns(part.batch, part.rows))
        if self._batch is not part.batch:
            self._batch, self._kept = part.batch, {}
        if part.rows.start not in self._kept:
            self._kept[part.rows.start] = self.function(covariate_columns(part.batch, part.rows))
        return self._kept[part.rows.start]


# Where a model's score is cut: public thresholds, or quantiles of a bought histogram on a public grid.


MOST_BINS = 100
# Cells of the public grid on which quantiles are bought, and points of the public box that its ends come from.
_GRID, _POINTS = 64, 512


def checked_thresholds(thresholds: object) -> tuple[float, ...]:
    """Return public thresholds in ascending order, or refuse them."""
    given = tuple(thresholds) if isinstance(thresholds, Sequence) and not isinstance(thresholds, str) else ()
    usable = all(isinstance(one, int | float) and isfinite(one) for one in given)
    if not given or not usable or len(given) >= MOST_BINS or len(set(given)) < len(given):
        raise refusal("CV-P546", most_bins=MOST_BINS - 1, thresholds=thresholds)
    return tuple(sorted(float(one) for one in given))


def checked_bins(bins: object) -> int:
    """Return how many parts people are ranked into, or refuse it."""
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= MOST_BINS:
        raise refusal("CV-P547", most_bins=MOST_BINS, bins=bins)
    return bins


def public_grid(model: EffectModel, study: Study) -> Floats:
    """Return the edges of equal cells between the least and the largest score over the public box."""
    scores = effects_at(model, columns_as_written(public_points(study, _POINTS), study))
    low, high = float(scores.min()), float(scores.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, _GRID + 1)[1:-1]


def rank_counts(records: TableRecords, rank: RowNumbers, edges: Floats) -> Sums:
    """Return how many rows have their number between every two edges."""
    return (counts_between(edges, (rank(part) for part in records.parts())),)


def bought_thresholds(
    gate: Gate, records: Records, rank: RowNumbers, edges: Floats, bins: int, pure: bool
) -> Floats:
    """Return edges of the grid nearest to the quantiles of the rows' numbers, from a noisy histogram."""
    (counts,) = records.run(rank_counts, rank, edges, in_turn=rank.in_turn)
    released = release_counts(gate, "ranks", counts, pure)
    running = np.maximum.accumulate(np.cumsum(np.maximum(released.floats(), 0.0)))
    wanted = np.arange(1, bins) / bins * max(float(running[-1]), 1.0)
    return np.unique(edges[np.minimum(np.searchsorted(running, wanted), len(edges) - 1)])
