"""Simulated panels and experiments with known effects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from tools.loose_study import study_of

import counterveil as cv

Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Panel:
    """People in `earlier` periods before treatment and `later` after it, one column a period.

    Outcomes follow people of their own, a trend, and a moving part with autocorrelation `rho`. Treatment goes with
    levels and, where `confounded`, with a covariate that the trend depends on. The effect grows by period.
    """

    rows: int = 3000
    earlier: int = 1
    later: int = 1
    rho: float = 0.5
    confounded: bool = False
    moving: float = 0.5

    @property
    def effects(self) -> list[float]:
        """The effects of the periods after treatment."""
        return [0.5 + 0.25 * place for place in range(self.later)]

    def names(self) -> list[str]:
        """Return the columns in the order of time; the last one is the outcome."""
        return [f"y{place}" for place in range(self.earlier + self.later)]

    def draw(self, seed: int) -> Columns:
        """Return one panel."""
        rng = np.random.default_rng([seed, 16])
        x = rng.uniform(0, 1, self.rows)
        treated = rng.permutation(self.rows) < 0.4 * self.rows
        if self.confounded:
            treated = rng.uniform(size=self.rows) < 0.25 + 0.5 * x
        own = rng.normal(0, 1, self.rows) + 0.8 * treated + x
        found: Columns = {"t": treated.astype(np.float64), "x": x}
        part = rng.normal(0, self.moving, self.rows)
        for place, name in enumerate(self.names()):
            if place:
                part = self.rho * part + rng.normal(0, self.moving * np.sqrt(1 - self.rho**2), self.rows)
            trend = 0.2 * place * (1 + (2 * x if self.confounded else 0))
            after = place - self.earlier
            gain = self.effects[after] * treated if after >= 0 else 0.0
            found[name] = own + trend + part + gain
        return found

    def study(self, change: bool = True) -> cv.Study:
        """Return the study whose outcome is the last period; covariates are declared where they confound."""
        known = {"x": cv.Range(0, 1)} if self.confounded else {}
        names = self.names()
        within = {"change_range": (-4, 4)} if change else {}
        return study_of("t", names[-1], (-4, 8), known, control=0, before=names[: self.earlier], **within)

    def long(self, seed: int) -> tuple[Columns, cv.Study]:
        """Return the same people with a row for each period, and their study."""
        wide, names = self.draw(seed), self.names()
        periods = np.arange(len(names))
        rows = {
            "id": np.repeat(np.arange(self.rows), len(names)).astype(np.float64),
            "period": np.tile(periods, self.rows).astype(np.float64),
            "t": np.repeat(wide["t"], len(names)),
            "x": np.repeat(wide["x"], len(names)),
            "y": np.column_stack([wide[name] for name in names]).ravel(),
        }
        known = {"x": cv.Range(0, 1)} if self.confounded else {}
        study = cv.Study(
            cv.Treatment("t", control=0),
            cv.Change(
                "y",
                (-4, 8),
                before=periods[: self.earlier].tolist(),
                time="period",
                after=periods[self.earlier :].tolist(),
            ),
            known,
            people="id",
        )
        return rows, study


@dataclass(frozen=True)
class Visits:
    """An A/B test: clicks of visitors in their sessions; those who come often click more or less often a session.

    `link` is how the chance of a click goes with the number of sessions, `least` the least number of sessions.
    """

    rows: int = 3000
    link: float = 0.04
    least: int = 1
    lift: float = 0.04

    def draw(self, seed: int, rows: int | None = None) -> Columns:
        """Return one experiment, a row for each visitor."""
        rng = np.random.default_rng([seed, 17])
        size = self.rows if rows is None else rows
        treated, often = rng.permutation(size) % 2, rng.gamma(2, 1, size)
        sessions = np.clip(self.least + rng.poisson(2.5 * often), 0, 30)
        own = rng.beta(2, 6, size)
        chance = np.clip(own + self.link * (often - 2) + self.lift * treated, 0, 1)
        clicks = rng.binomial(sessions, chance)
        columns = {"t": treated, "clicks": clicks, "sessions": sessions}
        return {name: values.astype(np.float64) for name, values in columns.items()}

    def study(self) -> cv.Study:
        """Return the study."""
        ends = (self.least, 30)
        return cv.Study(
            cv.Treatment("t", control=0),
            cv.Ratio("clicks", (0, 30), "sessions", ends),
            assignment=cv.Trial(),
        )

    def truth(self) -> float:
        """Return the difference of both ratios, of four million people."""
        return _truth(self)


@lru_cache(maxsize=16)
def _truth(design: Visits) -> float:
    one = design.draw(10**6, 4_000_000)
    ratios = [one["clicks"][one["t"] == arm].sum() / one["sessions"][one["t"] == arm].sum() for arm in (1, 0)]
    return float(ratios[0] - ratios[1])
