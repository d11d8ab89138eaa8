"""Every data set of a few rows over a few values, and the neighbours of each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from counterveil.audit.protocols import Pair
from counterveil.audit.refusals import out_of_range
from counterveil.errors import ParameterError

_MOST_DATASETS = 2_000_000


def _everything(dataset: tuple[Any, ...]) -> bool:  # noqa: ARG001
    return True


@dataclass(frozen=True, slots=True)
class Universe:
    """All rows each position may hold; a data set is a tuple of rows, neighbours differ at one position.

    It counts as `Neighbours`: iterating over it yields each unordered pair once.
    """

    choices: tuple[tuple[Any, ...], ...]
    admits: Callable[[tuple[Any, ...]], bool] = _everything

    def where(self, admits: Callable[[tuple[Any, ...]], bool]) -> Universe:
        """Return the universe of the data sets that `admits` accepts, e.g. those with both arms present."""
        return Universe(self.choices, admits)

    def datasets(self) -> Iterator[tuple[Any, ...]]:
        """Yield every data set."""
        return (dataset for dataset in itertools.product(*self.choices) if self.admits(dataset))

    def neighbours(self, dataset: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Yield every data set that differs from `dataset` in one row."""
        for i, rows in enumerate(self.choices):
            for row in rows:
                if row != dataset[i]:
                    other = (*dataset[:i], row, *dataset[i + 1 :])
                    if self.admits(other):
                        yield other

    def __iter__(self) -> Iterator[Pair]:
        order = [{row: k for k, row in enumerate(rows)} for rows in self.choices]
        for dataset in self.datasets():
            rank = [order[i][row] for i, row in enumerate(dataset)]
            for other in self.neighbours(dataset):
                if rank < [order[i][row] for i, row in enumerate(other)]:
                    yield dataset, other


def all_outcome_changes(n: int, values: Sequence[Any], fixed: Sequence[Any] | None = None) -> Universe:
    """Return all data sets of `n` outcomes in `values`; neighbours differ in one outcome.

    With `fixed` (one public value per row, e.g. the arm) a row is the pair (fixed[i], outcome), otherwise
    the outcome alone.
    """
    _check_size(n, len(set(values)))
    if fixed is None:
        return Universe(tuple(tuple(dict.fromkeys(values)) for _ in range(n)))
    if len(fixed) != n:
        raise out_of_range("fixed", fixed, f"one public value for each of {n} rows", "pass n values")
    return Universe(tuple(tuple((public, value) for value in dict.fromkeys(values)) for public in fixed))


def all_record_replacements(n: int, records: Sequence[Any]) -> Universe:
    """Return all data sets of `n` rows in `records`; neighbours differ in one whole record."""
    _check_size(n, len(set(records)))
    return Universe(tuple(tuple(dict.fromkeys(records)) for _ in range(n)))


def _check_size(n: int, values: int) -> None:
    if n < 1 or values < 2:
        raise out_of_range("n, values", (n, values), "n >= 1 and two or more values", "widen the grid")
    if values**n > _MOST_DATASETS:
        raise ParameterError(
            "CV-A006",
            "there are too many data sets to try them all",
            expected=f"at most {_MOST_DATASETS} data sets",
            got=f"{values} values in {n} rows: {values**n} data sets",
            fix="use fewer rows or a coarser grid; extremes are usually attained at the ends of the range",
        )
