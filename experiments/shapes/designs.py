"""Shapes of outcomes, designs of studies, and samples of both, with what is true of the people in them.

Covariates are a number, a binary and three labels. Their index s lies in [-1, 1]; outcomes and treatments follow it, so
that a study which is not randomised is confounded by what is measured, and by nothing else. Means are linear in s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from typing import Any

import numpy as np
from scipy.special import expit, ndtr
from tools.loose_study import study_of

import counterveil as cv

Floats = np.ndarray
LABELS = ("p", "q", "r")
QUARTERS = ("1/4", "1/2", "3/4")


@dataclass(frozen=True)
class Shape:
    """An outcome: its declared range, its mean given the index and the treatment, and draws around that mean."""

    name: str
    low: float
    high: float
    mean: Callable[[Floats, Floats], Floats]
    draw: Callable[[np.random.Generator, Floats], Floats]

    @property
    def binary(self) -> bool:
        return self.name.startswith("binary")

    def outcomes(self, rng: np.random.Generator, s: Floats, t: Floats) -> Floats:
        return np.clip(self.draw(rng, self.mean(s, t)), self.low, self.high)


def _shift(s: Floats, t: Floats) -> Floats:
    return 5 + s + 0.5 * t


def _bell(low: float, high: float, name: str) -> Shape:
    return Shape(name, low, high, _shift, lambda rng, mean: mean + rng.normal(size=len(mean)))


def _binary(rate: float) -> Shape:
    return Shape(
        f"binary {100 * rate:g}%",
        0,
        1,
        lambda s, t: rate * (1 + 0.5 * s) * (1 + 0.4 * t),
        lambda rng, mean: (rng.random(len(mean)) < mean).astype(float),
    )


# Spend of those who buy: log-normal, cut at the end of the declared range.
_LOG_MEAN, _LOG_SD, _MOST = 3.5, 1.0, 500.0
_END = (log(_MOST) - _LOG_MEAN) / _LOG_SD
_SPEND = float(exp(_LOG_MEAN + _LOG_SD**2 / 2) * ndtr(_END - _LOG_SD) + _MOST * ndtr(-_END))


def _spend(rng: np.random.Generator, mean: Floats) -> Floats:
    buys = rng.random(len(mean)) < mean / _SPEND
    return buys * np.minimum(np.exp(rng.normal(_LOG_MEAN, _LOG_SD, len(mean))), _MOST)


def _edge(rng: np.random.Generator, mean: Floats) -> Floats:
    """Return outcomes of which most are the highest there is."""
    below = rng.random(len(mean)) < (10 - mean) / 1.6
    return 10 - below * rng.gamma(2, 0.8, len(mean))


SHAPES = (
    _bell(0, 10, "bell"),
    _binary(0.4),
    _binary(0.05),
    _binary(0.02),
    _binary(0.005),
    Shape("spend, 1% positive", 0, _MOST, lambda s, t: 0.01 * _SPEND * (1 + 0.5 * s) * (1 + 0.5 * t), _spend),
    Shape(
        "gamma",
        0,
        60,
        lambda s, t: 2 * (1 + 0.5 * s) * (1 + 0.3 * t),
        lambda rng, mean: mean * rng.gamma(0.5, 2, len(mean)),
    ),
    Shape("t, 3 df", -15, 25, _shift, lambda rng, mean: mean + rng.standard_t(3, len(mean))),
    Shape("constant", 0, 10, lambda s, t: 3 + 0 * s * t, lambda _, mean: mean),
    Shape("at the edge", 0, 10, lambda s, t: 10 - 1.6 * (0.4 - 0.2 * s - 0.1 * t), _edge),
    _bell(-20, 30, "range 5 times too wide"),
    _bell(-95, 105, "range 20 times too wide"),
)


@dataclass(frozen=True)
class Times:
    """A time to an event within a horizon of 1: hazards, and how people are lost from sight."""

    name: str
    rate: float = 0.4  # share with the event by the horizon, about
    form: float = 1.0  # of a Weibull distribution
    lost: float = 0.2  # share lost by the horizon
    uneven: float = 1.0  # times as often lost when treated
    grid: int = 12
    binary = False

    def survival(self, s: Floats, t: Floats) -> Floats:
        """Return the chance to have no event by the horizon."""
        return np.exp(-self._hazard(s, t))

    def _hazard(self, s: Floats, t: Floats) -> Floats:
        return -np.log1p(-self.rate) * (1 + 0.5 * s) * np.where(t == 1, 0.7, 1.0)

    def draw(self, rng: np.random.Generator, s: Floats, t: Floats) -> tuple[Floats, Floats]:
        """Return times of follow-up and whether they ended with the event."""
        with np.errstate(divide="ignore"):
            event = (rng.exponential(size=len(s)) / self._hazard(s, t)) ** (1 / self.form)
        gone = rng.exponential(size=len(s)) / (
            -np.log1p(-self.lost) * np.where(t == 1, self.uneven, 1.0) + 1e-12
        )
        end = np.minimum(gone, 1.5)
        return np.minimum(event, end), (event <= end).astype(int)


TIMES = (
    Times("events 40%"),
    Times("events 5%", rate=0.05),
    Times("events 2%", rate=0.02),
    Times("events 0.5%", rate=0.005),
    Times("no events", rate=0.0),
    Times("nearly all", rate=0.97),
    Times("early, Weibull 0.4", form=0.4),
    Times("late, Weibull 2", form=2.0),
    Times("60% lost", lost=0.6),
    Times("nobody lost", lost=0.0),
    Times("early, 4 cells, lost unevenly", form=0.4, lost=0.4, uneven=2.0, grid=4),
    Times("early, 12 cells, lost unevenly", form=0.4, lost=0.4, uneven=3.0),
)


@dataclass(frozen=True)
class Design:
    """How treatment came about: its odds, and what is declared of them."""

    name: str
    slope: float
    declared: dict[str, Any]

    @property
    def trial(self) -> bool:
        return bool(self.declared)


SHARE = 0.4
DESIGNS = (
    Design("trial", 0, {"randomised": True}),
    Design("trial, share declared", 0, {"randomised": True, "treated_share": "2/5"}),
    Design("observational", 1, {}),
    Design("poor overlap", 4, {}),
)


@dataclass(frozen=True)
class Sample:
    """People of one draw; `given` is what every study of them declares."""

    shape: Any
    design: Design
    seed: int
    rows: int

    @cached_property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.rows])

    @cached_property
    def covariates(self) -> dict[str, Floats]:
        return {
            "a": self.rng.random(self.rows),
            "b": self.rng.integers(0, 2, self.rows),
            "c": self.rng.integers(0, 3, self.rows),
        }

    @cached_property
    def index(self) -> Floats:
        x = self.covariates
        return 0.5 * (2 * x["a"] - 1) + 0.3 * (2 * x["b"] - 1) + 0.2 * (x["c"] - 1.0)

    @cached_property
    def odds(self) -> Floats:
        """The chance of treatment."""
        if not self.design.slope:
            return np.full(self.rows, SHARE)
        return expit(self.design.slope * self.index - 0.2)

    @cached_property
    def treated(self) -> Floats:
        return (self.rng.random(self.rows) < self.odds).astype(int)

    @cached_property
    def outcome(self) -> Floats:
        return self.shape.outcomes(self.rng, self.index, self.treated)

    @cached_property
    def means(self) -> tuple[Floats, Floats]:
        """Everybody's mean outcome with and without treatment."""
        mean = self.shape.survival if isinstance(self.shape, Times) else self.shape.mean
        return mean(self.index, np.ones(self.rows)), mean(self.index, np.zeros(self.rows))

    @property
    def effects(self) -> Floats:
        return self.means[0] - self.means[1]

    def average(self, estimand: str = "ATE") -> float:
        """Return the effect on the people of the sample that an estimand names."""
        weights = {
            "ATE": np.ones(self.rows),
            "ATT": self.treated,
            "ATO": self.odds * (1 - self.odds),
        }[estimand]
        return float(np.average(self.effects, weights=weights))

    @cached_property
    def data(self) -> dict[str, Any]:
        x = self.covariates
        return {"a": x["a"], "b": x["b"], "c": np.array(LABELS)[x["c"]], "t": self.treated, "y": self.outcome}

    def study(self, **declared: Any) -> cv.Study:
        """Return the declaration of these people; `declared` takes the place of what is usual."""
        usual: dict[str, Any] = {
            "treatment": "t",
            "treated": 1,
            "control": 0,
            "covariates": {
                "a": cv.Range(0, 1).cut(*QUARTERS),
                "b": cv.Binary(),
                "c": cv.Categories(LABELS),
            },
        }
        if "outcomes" not in declared:
            usual |= {"outcome": "y"}
        if not {"outcomes", "event"} & set(declared):
            usual |= {"outcome_range": (self.shape.low, self.shape.high)}
        if "arms" in declared:
            usual = {key: value for key, value in usual.items() if key not in ("treated", "control")}
            usual |= {"randomised": True} if self.design.trial else {}
        else:
            usual |= self.design.declared
        return study_of(**(usual | declared))

    @property
    def columns(self) -> Floats:
        """The covariates in numbers."""
        x = self.covariates
        return np.column_stack([x["a"], x["b"], x["c"] == 1, x["c"] == 2])

    @cached_property
    def strata(self) -> Floats:
        """The stratum of everybody: quarters of the number, the binary and the label."""
        x = self.covariates
        return (np.minimum((4 * x["a"]).astype(int), 3) * 2 + x["b"]) * 3 + x["c"]
