"""Print how far widths of intervals vary over draws of one design, and how often they cover.

`python -m experiments.steady` draws designs of private records by their number: rows, covariates, how confounded, what
outcomes are like, and the budget. People, outcomes and noise are drawn anew for every run of a design. A line says the
95th percentile and the largest of the widths beside their median, how often intervals cover, and the root of the mean
squared error in units of the median width. Designs that are refused draw again. Two trees are compared by running it
with PYTHONPATH on each: design and people are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.errors import CounterveilError
from experiments.runner import Row, Table, run

FIRST_SEED = 760_000
OUTCOMES = ("event", "rare event", "even", "skewed")
# Steady: these times the median at most, at the 95th percentile and for the largest.
P95, LARGEST = 1.3, 2.0


@dataclass(frozen=True)
class Design:
    """A design of private records, all numbers of which are drawn from its seed."""

    seed: int
    rows: int
    covariates: int
    epsilon: float
    delta: float
    outcome: str
    confounding: float
    treated: float

    @classmethod
    def drawn(cls, seed: int) -> Design:
        """Return the design of a seed."""
        source = np.random.default_rng(seed)
        return cls(
            seed,
            rows=int(round(np.exp(source.uniform(np.log(1500), np.log(9000))), -2)),
            covariates=int(source.integers(3, 13)),
            epsilon=float(source.choice([1.0, 2.0, 3.0])),
            delta=1e-6,
            outcome=str(source.choice(OUTCOMES)),
            confounding=float(source.uniform(0.0, 0.8)),
            treated=float(source.choice([0.5, 0.3, 0.15])),
        )

    @property
    def study(self) -> cv.Study:
        """What is declared."""
        covariates = {f"x{place}": cv.Range(-3, 3) for place in range(self.covariates)}
        ends = {"even": (-6, 6), "skewed": (0, 30)}.get(self.outcome, (0, 1))
        return cv.Study("t", cv.Outcome("y", ends), covariates)

    def people(self, draw: int) -> tuple[dict[str, Any], float]:
        """Return data and the average effect on these people."""
        source = np.random.default_rng([self.seed, draw])
        x = np.clip(source.normal(size=(self.rows, self.covariates)), -3, 3)
        directions = np.random.default_rng([self.seed, 10**6]).normal(size=(2, self.covariates))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        # Treatment and outcome share one direction in part.
        index, other = x @ directions[0], x @ (directions[0] + directions[1]) / 2**0.5
        start = np.log(self.treated / (1 - self.treated))
        t = (source.random(self.rows) < 1 / (1 + np.exp(-start - self.confounding * index))).astype(int)
        if self.outcome in ("event", "rare event"):
            base, lift = (0.3, 0.05) if self.outcome == "event" else (0.05, 0.02)
            risks = [np.clip(base + lift * arm + 0.3 * base * other, 0.0, 1.0) for arm in (0, 1)]
            uniform = source.random(self.rows)
            y, effect = (uniform < np.where(t == 1, risks[1], risks[0])).astype(int), risks[1] - risks[0]
            return self._named(x, t, y), float(effect.mean())
        if self.outcome == "even":
            y = np.clip(0.3 * t + 0.6 * other + source.normal(size=self.rows), -6, 6)
            return self._named(x, t, y), 0.3
        sizes = source.gamma(1.0, 1.0, self.rows) * np.exp(0.3 * other)
        return self._named(x, t, np.clip(sizes * np.where(t == 1, 1.3, 1.0), 0, 30)), 0.3 * float(
            np.exp(0.3 * other).mean()
        )

    def _named(self, x: Any, t: Any, y: Any) -> dict[str, Any]:
        return {"t": t, "y": y} | {f"x{place}": x[:, place] for place in range(self.covariates)}

    def asked(self, draw: int) -> tuple[float, float, bool]:
        """Return width, error and whether the interval covers, of one draw of people and noise."""
        people, effect = self.people(draw)
        found = cv.ate(
            people,
            self.study,
            protects="record",
            epsilon=self.epsilon,
            delta=self.delta,
            method="doubly_robust",
            noise=cv.SeededNoise(1000 * self.seed + draw),
        )
        low, high = found.untruncated_interval()
        return high - low, found.estimate - effect, low <= effect <= high


def rows(designs: int, *, seeds: range) -> list[Row]:
    """Return a row for each design; designs that are refused draw again."""
    made: list[Row] = []
    seed = FIRST_SEED
    while len(made) < designs:
        seed += 1
        one = Design.drawn(seed)
        try:
            found = [one.asked(draw) for draw in seeds]
        except CounterveilError as refused:
            if refused.code not in ("CV-P404", "CV-P405"):
                raise
            continue
        widths, errors, hits = (np.array(column) for column in zip(*found, strict=True))
        middle = float(np.median(widths))
        high, largest = float(np.quantile(widths, 0.95)) / middle, float(widths.max()) / middle
        said = f"{seed} {one.outcome}, n {one.rows}, {one.covariates} covariates, epsilon {one.epsilon:g}, "
        said += f"{one.treated:.0%} treated"
        made.append([said, high, largest, hits.mean(), middle, np.sqrt(np.mean(errors**2))])
    return made


def summary(made: list[Row]) -> Iterator[str]:
    """Yield how many designs are unsteady, and how often intervals of all of them cover."""
    high, largest, covered = (np.array([float(row[place]) for row in made]) for place in (1, 2, 3))
    yield f"{len(made)} designs: 95th percentile above {P95} in {(high > P95).sum()}, largest above {LARGEST} in "
    yield f"{(largest > LARGEST).sum()}; covered {covered.mean():.3f}"


def table(designs: int, *, apart: bool) -> Table:
    """Return the table of so many designs."""
    return Table(
        columns="design | 95th :.2f | largest :.2f | covered :.2f | width :.4g | rmse :.3g",
        cells=[(designs,)],
        row=rows,
        draws=50,
        first_seed=0,
        apart=apart,
        notes=summary,
    )


TABLES = {"designs": table(40, apart=False), "page": table(26, apart=True)}

if __name__ == "__main__":
    run(__doc__, TABLES)
