"""The benchmark instances, as attached tables with everything public about them computed once.

The outcome's range is the observed range widened by 2 % at each end and treated as public (LaLonde: 60.308
thousand dollars). Settings were tuned on `TUNING` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from counterveil.data import Table
from counterveil.datasets import acic2016, ihdp, lalonde, synth
from counterveil.settings import Weighting
from counterveil.statistics.linear.matching_design import Scored, match, scored
from counterveil.statistics.linear.weighting import weighting_design

NEIGHBOURS = 5

TUNING = {
    "IHDP 1-5": [("ihdp", i) for i in range(1, 6)],
    "Synth 0-9": [("synth", i) for i in range(10)],
    "ACIC 2-3": [("acic", 2), ("acic", 3)],
}
HELD_OUT = {
    "IHDP 6-25": [("ihdp", i) for i in range(6, 26)],
    "LaLonde": [("lalonde", 0)],
    "ACIC 1": [("acic", 1)],
    "ACIC 4-5": [("acic", 4), ("acic", 5)],
    "Synth 10-29": [("synth", i) for i in range(10, 30)],
}


@dataclass(frozen=True)
class Instance:
    """A table, its scores for matching, its outcomes on [0, 1], and in the same unit its effect (nan if unknown)."""

    table: Table
    design: Scored
    outcome: np.ndarray
    effect: float
    matched: float
    _weighting: dict[str, Scored] = field(default_factory=dict, compare=False, repr=False)

    def for_weighting(self, goal: str) -> Scored:
        """Return the scores that weights of this goal are made from."""
        if goal not in self._weighting:
            self._weighting[goal] = weighting_design(self.table, Weighting(goal=goal))
        return self._weighting[goal]


@cache
def load(family: str, number: int) -> Instance:
    make = {"ihdp": ihdp, "acic": acic2016, "synth": synth, "lalonde": lambda _: lalonde()}[family]
    data = make(number)
    y = np.asarray(data.frame[data.study.outcome], dtype=float)
    margin = 0.02 * (y.max() - y.min())
    bounds = (0.0, 60.308) if family == "lalonde" else (float(y.min() - margin), float(y.max() + margin))
    table = Table.attach(data.frame, replace(data.study, outcome_range=bounds))
    design = scored(table, None)
    outcome = (np.clip(y, *bounds) - bounds[0]) / (bounds[1] - bounds[0])
    effect = float("nan") if data.true_effect is None else data.true_effect / (bounds[1] - bounds[0])
    coefficients = match(design, NEIGHBOURS, (None, None), "ATE").matching.coefficients
    return Instance(table, design, outcome, effect, float(coefficients @ outcome))
