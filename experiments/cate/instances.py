"""The studies of the experiment: simulated designs of any size, IHDP and ACIC 2016, with true effects to score by.

Seeds start at 1000: settings were chosen on others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Study, Table
from counterveil.datasets import Dataset, acic2016, dataset_1, dataset_2, ihdp, skewed
from counterveil.results.cate_question import Queries, read_queries

Floats = NDArray[np.float64]

FIRST_SEED = 1000
_TEST_ROWS = 1000

_SIMULATED: dict[str, Callable[[int, int], Dataset]] = {
    "dataset 1": dataset_1,
    "dataset 2": dataset_2,
    "skewed 1": skewed,
    "skewed 2": lambda n, seed: skewed(n, seed, covariates=30),
}
# Bounds of the outcome that hold the simulated outcomes of every setting, stated for this benchmark.
_ACIC_RANGES = {1: (-20, 40), 2: (0, 100), 3: (-20, 30), 4: (-15, 40), 5: (-60, 20)}
_REALISATIONS = 25


@dataclass(frozen=True, eq=False)
class Instance:
    """A table, and the points at which effects are scored with the truth there."""

    table: Table
    queries: Queries
    truth: Floats

    @property
    def study(self) -> Study:
        return self.table.study

    @property
    def width(self) -> float:
        """The width of the outcome's range, which no effect exceeds."""
        low, high = self.study.outcome_range
        return float(high - low)

    def error(self, answers: Floats) -> float:
        """Return the root mean squared error of answers, each clipped to what an effect can be (PEHE)."""
        clipped = np.clip(answers, -self.width, self.width)
        return float(np.sqrt(np.mean((clipped - self.truth) ** 2)))


@lru_cache(maxsize=1)
def instance(design: str, rows: int, seed: int) -> Instance:
    """Return one study: people to learn from, and other people, or for real covariates the same, to score on."""
    if design in _SIMULATED:
        data = _SIMULATED[design](rows + _TEST_ROWS, seed)
        return _made(data, slice(0, rows), slice(rows, rows + _TEST_ROWS))
    if design == "IHDP":
        realisation = 1 + (seed - FIRST_SEED) % _REALISATIONS
        return _made(_wide_enough(realisation), slice(None), slice(None))
    setting = int(design.rsplit(" ", 1)[1])
    return _made(acic2016(setting, _ACIC_RANGES[setting]), slice(None), slice(None))


def _wide_enough(realisation: int) -> Dataset:
    """Return a realisation of IHDP in a public range of the outcome that holds all of them but the outliers."""
    return ihdp(realisation, (-10, 20))


def _made(data: Dataset, learn: slice, score: slice) -> Instance:
    assert data.effects is not None
    frame: Mapping[str, NDArray[Any]] = data.frame
    table = Table.attach({name: values[learn] for name, values in frame.items()}, data.study)
    asked = {name: frame[name][score] for name in data.study.covariates}
    return Instance(table, read_queries(asked, data.study), data.effects[score])
