"""The paper's competitors on its studies: records as rivals take them, and repeated estimates."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from counterveil.reproduce.papers.private_matching.studies import study_named
from counterveil.reproduce.rivals import encoding
from counterveil.reproduce.rivals.catalogue import RIVALS
from counterveil.reproduce.rivals.protocol import Budget, Records

COMPETITORS = ("IPW-PP", "SmoothDPM", "DPCI", "PrivSyn", "AIM")
# The paper does not print the delta of its competitors.
DELTA = 1e-5


@cache
def records_of(name: str) -> Records:
    """Return one of the paper's studies as records, labels as codes."""
    study = study_named(name)
    low, high = (float(bound) for bound in study.table.study.outcome_range)
    return encoding.records_of(study.table, low + study.outcome * (high - low))


@cache
def rival_draws(method: str, data: str, epsilon: float, draws: int, seed: int) -> NDArray[np.float64]:
    """Return draws of a competitor, in units of the outcome's range; they are kept for other numbers of neighbours."""
    records, rival = records_of(data), RIVALS[method]
    budget = Budget(epsilon, 0.0 if rival.delta == "none" else DELTA)
    values = [rival.estimate(records, budget, 1000 * seed + draw).value for draw in range(draws)]
    return np.array(values) / records.width
