"""The benchmark instances, as attached tables with everything public about them computed once.

Settings were tuned on `TUNING` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from counterveil.estimators.linear.spline_score import ScoredRows
from counterveil.estimators.linear.weighting import weighting_design
from counterveil.privacy import Unit
from counterveil.rows.public import PublicRows
from counterveil.settings import Weighting
from counterveil_lab.reproduce.papers.private_matching.studies import Benchmark, benchmark

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
class Instance(Benchmark):
    """A benchmark with the scores that weights are made from."""

    @property
    def matched(self) -> float:
        """The effect by matching without privacy."""
        return self.matched_with(NEIGHBOURS)

    @cached_property
    def for_weighting(self) -> ScoredRows:
        """The scores that weights are made from."""
        return weighting_design(PublicRows(self.table, Unit.OUTCOME), Weighting())


@cache
def load(family: str, number: int) -> Instance:
    found = benchmark(family, number)
    return Instance(found.table, found.design, found.outcome, found.effect)
