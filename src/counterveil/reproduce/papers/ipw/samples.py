"""The samples of the paper's Tables 2 and 3: balanced rows for fitting and for weighting, drawn anew in every run."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.datasets import Dataset, ihdp, nsw

FIT, WEIGHTED = 250, 100  # rows of each arm
_IHDP_FILES = 25
_TEST_PART = 0.1
# Public ranges: round figures that hold nearly every outcome of the 25 files.
_IHDP_RANGE = (-10, 20)
OUTCOME_UNIT = {"ihdp": 1.0, "lalonde": 1000.0}


@cache
def source(family: str, number: int) -> Dataset:
    """Return one of the data sets; numbers matter for IHDP alone."""
    return ihdp(number, outcome_range=_IHDP_RANGE) if family == "ihdp" else nsw()


def sample(family: str, run: int) -> tuple[Table, NDArray[np.intp], NDArray[np.intp]]:
    """Return a table of 700 rows, the places of the 500 for fitting and of the 200 for weighting."""
    data = source(family, run % _IHDP_FILES + 1)
    generator = np.random.default_rng([1, run])
    treated = np.asarray(data.frame[data.study.treatment]) == 1
    if family == "ihdp":
        test = generator.permutation(len(treated)) < _TEST_PART * len(treated)
        weighted = [
            generator.choice(np.flatnonzero(test & (treated == arm)), WEIGHTED) for arm in (True, False)
        ]
    else:
        weighted = [
            generator.choice(np.flatnonzero(treated == arm), WEIGHTED, replace=False) for arm in (True, False)
        ]
        test = np.isin(np.arange(len(treated)), np.concatenate(weighted))
    fitted = [generator.choice(np.flatnonzero(~test & (treated == arm)), FIT) for arm in (True, False)]
    rows = np.concatenate([*fitted, *weighted])
    frame = {name: np.asarray(column)[rows] for name, column in data.frame.items()}
    study = replace(data.study, randomised=None, treated_share=None)
    return Table.attach(frame, study), np.arange(2 * FIT), np.arange(2 * FIT, len(rows))
