"""Simulated trials and cohorts with times to an event, and what is true in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from tools.loose_study import study_of

import counterveil as cv

Columns = dict[str, np.ndarray]
HORIZON = 1.0


@dataclass(frozen=True)
class Trial:
    """A trial with Weibull times and exponential censoring.

    `left` is the part of the control arm that is free of the event at the horizon, `ratio` the ratio of hazards,
    `shape` that of the Weibull law; `censored` is the part of people that is censored before the horizon. `share` of
    people are treated, and are censored at `lost_ratio` times the rate of the others. With `confounded`, hazards and
    treatment follow a covariate x, the middle of a quarter.
    """

    rows: int = 2000
    censored: float = 0.3
    left: float = 0.45
    ratio: float = 0.7
    shape: float = 1.5
    share: float = 0.5
    lost_ratio: float = 1.0
    confounded: bool = False

    def study(self, cells: int = 12, **more: Any) -> cv.Study:
        """Return the declaration."""
        given: dict[str, Any] = {"control": 0, "randomised": not self.confounded, "grid": cells, "horizon": 1}
        if self.confounded:
            given["covariates"] = {"x": cv.Range(0, 1).cut("1/4", "1/2", "3/4")}
        return study_of("arm", outcome="time", event="event", **(given | more))

    def draw(self, seed: int) -> Columns:
        """Return one simulated study."""
        rng = np.random.default_rng([seed, self.rows])
        x = (np.floor(4 * rng.random(self.rows)) + 0.5) / 4
        chance = self.share * (0.6 + 0.8 * x) if self.confounded else np.full(self.rows, self.share)
        arm = (rng.random(self.rows) < chance).astype(np.int64)
        rate = self._rate * np.where(arm == 1, self.ratio, 1.0)
        rate = rate * np.exp(_SLOPE * (x - 0.5)) if self.confounded else rate
        time = (rng.exponential(1.0, self.rows) / rate) ** (1 / self.shape)
        lost = rng.exponential(1.0, self.rows) / (self._lost * np.where(arm == 1, self.lost_ratio, 1.0))
        columns = {"arm": arm, "time": np.minimum(time, lost), "event": (time <= lost).astype(np.int64)}
        return columns | ({"x": x} if self.confounded else {})

    @property
    def _rate(self) -> float:
        return -float(np.log(self.left))

    @property
    def _lost(self) -> float:
        """The rate of censoring at which the declared part of people is censored before the horizon."""
        return _lost_rate(self)

    def lost_rate(self) -> float:
        """Return that rate, found afresh."""

        def excess(rate: float) -> float:
            own = (rate, rate * self.lost_ratio)
            found = [
                quad(lambda t, a=arm: own[a] * np.exp(-own[a] * t) * self.survival(a, t), 0, HORIZON)[0]
                for arm in (0, 1)
            ]
            return (1 - self.share) * found[0] + self.share * found[1] - self.censored

        return float(brentq(excess, 1e-9, 200.0)) if self.censored else 1e-9

    def survival(self, arm: int, time: float) -> float:
        """Return the part of an arm that is free of the event, averaged over the covariate."""
        rate = self._rate * (self.ratio if arm else 1.0) * time**self.shape
        if not self.confounded:
            return float(np.exp(-rate))
        return float(np.mean(np.exp(-rate * np.exp(_SLOPE * (_QUARTERS - 0.5)))))

    def mean(self, arm: int) -> float:
        """Return the restricted mean of an arm."""
        return float(quad(lambda t: self.survival(arm, t), 0, HORIZON)[0])

    @property
    def gap(self) -> float:
        """The true difference at the horizon."""
        return self.survival(1, HORIZON) - self.survival(0, HORIZON)

    @property
    def mean_gap(self) -> float:
        """The true difference of restricted means."""
        return self.mean(1) - self.mean(0)


@cache
def _lost_rate(design: Trial) -> float:
    return design.lost_rate()


_SLOPE = 1.5
_QUARTERS = (np.arange(4) + 0.5) / 4
