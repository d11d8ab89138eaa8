"""The studies of the experiment: simulated designs of any size, IHDP and ACIC 2016, with true effects to score by.

Seeds start at 1000: settings were chosen on others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from counterveil.datasets import Dataset, acic2016, dataset_1, dataset_2, ihdp, skewed
from counterveil_lab.reproduce.papers.cate.studies import Instance, split

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


@lru_cache(maxsize=6)
def instance(design: str, rows: int, seed: int) -> Instance:
    """Return one study: people to learn from, and other people, or for real covariates the same, to score on."""
    if design in _SIMULATED:
        data = _SIMULATED[design](rows + _TEST_ROWS, seed)
        return split(data, slice(0, rows), slice(rows, rows + _TEST_ROWS))
    if design == "IHDP":
        realisation = 1 + (seed - FIRST_SEED) % _REALISATIONS
        return split(_wide_enough(realisation), slice(None), slice(None))
    setting = int(design.rsplit(" ", 1)[1])
    return split(acic2016(setting, _ACIC_RANGES[setting]), slice(None), slice(None))


def _wide_enough(realisation: int) -> Dataset:
    """Return a realisation of IHDP in a public range of the outcome that holds all of them but the outliers."""
    return ihdp(realisation, (-10, 20))
