"""Keeps the rows whose propensity score is in [a, 1 - a], where covariates and treatment are public.

The limit a is declared, or it is that of Crump, Hotz, Imbens and Mitnik (2009), for which the effect on those
who are kept has the least variance (outcomes being of one variance): with g = 1 / (e (1 - e)) and scores e,
those are kept whose g is at most twice the mean g of those kept.

In: public covariates and treatments. Out: the kept rows, whose effect is then estimated, and a. Why it is
private: rows are chosen by public columns alone, so that data sets which differ in one outcome keep the same
rows, and a method that is private on a table is private on the kept part of it. Proof:
`rows/linear/trimmed_rows.proof.md`. An arm keeps at least 2 rows, which its variance needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.estimators.linear.matching_design import scored
from counterveil.numerics.arrays import Floats
from counterveil.privacy.caveats import KeptPeople
from counterveil.rows.public import PublicRows

PAGE = "rows/linear/trimmed_rows.proof.md"
OPTIMAL = "optimal"
# Rows that an arm keeps at the least.
_FEWEST = 2
# Scores nearer to 0 or 1 than this count as that near.
_LEAST_SCORE = 1e-9


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The rows that are kept, with scores in [limit, 1 - limit], out of so many people."""

    kept: PublicRows
    limit: float
    people: int

    @property
    def population(self) -> KeptPeople | None:
        """Whose effect it is, None where it is everybody's."""
        size = self.kept.rows
        return None if size == self.people else KeptPeople(size, self.people, self.limit)


def trimmed(rows: PublicRows, trim: float | str) -> Trimmed:
    """Return the rows that leave overlap, by a limit or by that of least variance; too small arms raise CV-S065."""
    require_covariates(rows.study, "trimming")
    score = scored(rows).score
    limit = crump_limit(score) if trim == OPTIMAL else float(trim)
    chosen = np.flatnonzero((score >= limit) & (score <= 1 - limit))
    treated = int(rows.treated[chosen].sum())
    if min(treated, len(chosen) - treated) < _FEWEST:
        raise refusal("CV-S065", limit=limit, upper=1 - limit, treated=treated, kept=len(chosen) - treated)
    return Trimmed(rows.take(chosen) if len(chosen) < rows.rows else rows, limit, rows.rows)


def crump_limit(score: Floats) -> float:
    """Return a in [0, 1/2) such that the effect on those with scores in [a, 1 - a] has the least variance.

    Crump, Hotz, Imbens and Mitnik (2009), for outcomes of one variance: with g = 1 / (e (1 - e)), those are
    kept whose g is at most twice the mean g of those kept; 0 where that is everybody.
    """
    clipped = np.clip(score, _LEAST_SCORE, 1 - _LEAST_SCORE)
    g = np.sort(1 / (clipped * (1 - clipped)))
    twice = 2 * np.cumsum(g) / np.arange(1, len(g) + 1)
    last = int(np.flatnonzero(g <= twice)[-1])
    if last == len(g) - 1:
        return 0.0
    return 0.5 - sqrt(max(0.25 - 1 / float(twice[last]), 0.0))
