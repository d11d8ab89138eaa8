"""Designs whose outcomes are drawn anew: covariates, treatments and the range of outcomes stay as they are."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.datasets import acic2016, ihdp, synth
from counterveil.estimators.linear.matching_design import Scored, scored
from counterveil.estimators.linear.spline_score import ScoredRows
from counterveil.estimators.linear.weighting import weighting_design
from counterveil.privacy import Unit, exact
from counterveil.rows.public import PublicRows
from counterveil.settings import Weighting

# Seeds of Synth. Its covariates are unbalanced by chance in one direction or another, and an outcome whose
# slopes hardly change from draw to draw feels the same bias in all of them: only many designs average it.
SYNTH, OTHER_OUTCOMES = range(30, 70), range(30, 50)
EFFECT = 0.5


@dataclass(frozen=True)
class Design:
    """A table whose outcomes are drawn anew, its effect, and the draws in steps of the range."""

    table: Table
    effect: float
    draws: list[np.ndarray]

    @cached_property
    def scores(self) -> Scored:
        """The scores of matching."""
        return scored(PublicRows(self.table, Unit.OUTCOME))

    @cached_property
    def for_weighting(self) -> ScoredRows:
        """The scores that weights are made from."""
        return weighting_design(PublicRows(self.table, Unit.OUTCOME), Weighting())


def attached(data, draws: list[np.ndarray]) -> tuple[Table, list[np.ndarray]]:
    """Return the table under the range of all draws, widened by 2 % at each end, and the draws in steps."""
    low, high = min(y.min() for y in draws), max(y.max() for y in draws)
    bounds = (float(low - 0.02 * (high - low)), float(high + 0.02 * (high - low)))
    table = Table.attach(
        data.frame, data.study._changed(outcome_range=tuple(exact(end, "outcome") for end in bounds))
    )
    steps = [((y - bounds[0]) / (bounds[1] - bounds[0]) * OUTCOME_STEPS).astype(np.int64) for y in draws]
    return table, steps


def synth_designs(draws: int) -> list[Design]:
    """Slopes and noise of the outcome are fresh in every draw; both arms have the same slopes."""
    designs = []
    for seed in SYNTH:
        ys = [np.asarray(synth(seed, outcome_seed=k).frame["y"]) for k in range(max(draws // 10, 1))]
        table, steps = attached(synth(seed), ys)
        designs.append(Design(table, EFFECT, steps))
    return designs


def unrelated(Z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return mean outcomes of both arms, each with slopes of its own."""
    one, other = rng.normal(size=(2, Z.shape[1])) / Z.shape[1] ** 0.5
    return Z @ one, Z @ other


def opposite(Z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return mean outcomes with slopes of opposite signs."""
    slopes = rng.normal(size=Z.shape[1]) / Z.shape[1] ** 0.5
    return Z @ slopes, -Z @ slopes


def squares(Z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return mean outcomes that follow the squares of covariates alone, the same in both arms."""
    mean = (Z**2 - 1) @ rng.normal(size=Z.shape[1]) / Z.shape[1] ** 0.5
    return mean, mean


def other_outcomes(
    means: Callable[[np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]],
) -> Callable[[int], list[Design]]:
    """Return a maker of designs of Synth with these mean outcomes, noise of a tenth of their SD, and its effect."""

    def made(draws: int) -> list[Design]:
        designs = []
        for seed in OTHER_OUTCOMES:
            data, rng, ys = synth(seed), np.random.default_rng(seed), []
            table = Table.attach(data.frame, data.study)
            columns = np.array([table.covariates[name] for name in data.study.covariates]).T
            Z = (columns - columns.mean(axis=0)) / columns.std(axis=0)
            for _ in range(max(draws // 10, 1)):
                one, other = means(Z, rng)
                one = one + EFFECT - (one - other).mean()
                ys.append(np.where(table.treated, one, other) + 0.1 * rng.normal(size=len(Z)))
            table, steps = attached(data, ys)
            designs.append(Design(table, EFFECT, steps))
        return designs

    return made


def uneven_designs(draws: int) -> list[Design]:
    """Outcomes that do not follow covariates and vary in proportion to one over the chance of the row's own arm."""
    designs = []
    for seed in OTHER_OUTCOMES:
        data, rng = synth(seed), np.random.default_rng(seed)
        table = Table.attach(data.frame, data.study)
        score = Design(table, EFFECT, []).scores.score
        rare = 1 / np.where(table.treated, score, 1 - score)
        sd = 0.3 * rare / rare.mean()
        noise = rng.normal(size=(max(draws // 10, 1), len(sd)))
        table, steps = attached(data, list(np.clip(EFFECT * table.treated + sd * noise, -2.0, 3.0)))
        designs.append(Design(table, EFFECT, steps))
    return designs


def ihdp_designs(draws: int) -> list[Design]:
    """Response surfaces of files 16-25; the noise of the outcome, standard normal, is fresh in every draw."""
    designs = []
    for number in range(16, 26):
        data = ihdp(number)
        path = Path(os.environ["COUNTERVEIL_DATA"], "ihdp", f"ihdp_npci_{number}.csv.gz")
        with gzip.open(path, "rt", newline="") as file:
            rows = list(csv.DictReader(file))
        mu0, mu1 = (np.array([float(row[name]) for row in rows]) for name in ("mu0", "mu1"))
        mean = np.where(np.asarray(data.frame["treatment"]) == 1, mu1, mu0)
        rng = np.random.default_rng(number)
        table, steps = attached(data, [mean + rng.normal(size=len(mean)) for _ in range(draws)])
        designs.append(Design(table, float((mu1 - mu0).mean()), steps))
    return designs


def acic_designs(draws: int) -> list[Design]:
    """Settings 1, 4 and 5 with the outcomes of the files: coverage over the noise alone."""
    designs = []
    for setting in (1, 4, 5):
        data = acic2016(setting)
        table, steps = attached(data, [np.asarray(data.frame["y"])])
        designs.append(Design(table, data.true_effect, steps))
    return designs
