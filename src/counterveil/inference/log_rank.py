"""Noisy tables of events by time cell, and the log-rank test with the noise of the tables in its variance.

Events of the treated less those expected if all hazards were alike, summed over cells and strata (Mantel 1966; Peto and
Peto 1972), with the hypergeometric variance. Noise enters through events and through people at risk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import sqrt

import numpy as np

from counterveil.inference.ratio import p_value
from counterveil.inference.survival_answers import Ends, SurvivalAnswers, joint_bias, quantiles, reach
from counterveil.inference.survival_curves import AT_RISK, Blocks, TableNoise, standardised, with_totals
from counterveil.numerics.arrays import Floats
from counterveil.numerics.running_sums import FLAT, SUMS, Form


@dataclass(frozen=True, slots=True)
class NoisyTables:
    """Released numbers by block: strata in their order, and in each the control arm first.

    Attributes:
        numbers: of every block, in the form in which they were released.
        form: "flat" or "sums".
        noise_sd: standard deviation of the noise of each number; `heavy` says that it is Laplace's.
        totals: public numbers of people: of everyone, or of every block where arms are public.
        edges: time 0 and the ends of the time cells.
        convention: where in a cell people are censored: "middle" or "end".
        shares: public shares of the strata; none where they are read off the tables.
        design: ratio of squared weights to weights of every block; 1 without weights.
        inflation: of the sampling variance, for bias that intervals allow for.
        cut: how many of the cells make one of the declared grid.
    """

    numbers: tuple[tuple[float, ...], ...]
    form: str
    noise_sd: float
    heavy: bool
    totals: tuple[float, ...]
    edges: tuple[float, ...]
    convention: str
    shares: tuple[float, ...]
    design: tuple[float, ...]
    inflation: float = 1.0
    cut: int = 1

    def check(self) -> None:
        """Raise ValueError where the parts do not belong together."""
        blocks, entries = len(self.numbers), 2 * len(self.edges) - 1
        sound = (
            blocks >= 2
            and blocks % 2 == 0
            and all(len(one) == entries for one in self.numbers)
            and len(self.design) == blocks
            and len(self.totals) in (1, blocks)
            and len(self.shares) in (0, blocks // 2)
            and self.form in (FLAT, SUMS)
            and self.convention in AT_RISK
            and self.noise_sd >= 0
            and self.cut >= 1
            and (len(self.edges) - 1) % self.cut == 0
            and all(one > 0 for one in (*self.design, self.inflation))
            and all(later > earlier for earlier, later in pairwise(self.edges))
        )
        if not sound:
            raise ValueError("no tables of events by time")


@lru_cache(maxsize=32)
def blocks_of(tables: NoisyTables) -> Blocks:
    """Return the tables as counts, moved to public totals."""
    form = Form(tables.form, len(tables.edges) - 1)
    count = len(tables.numbers)
    everyone = len(tables.totals) == 1
    groups = (tuple(range(count)),) if everyone else tuple((place,) for place in range(count))
    noise = TableNoise(tables.noise_sd**2 * form.inverse @ form.inverse.T, groups)
    counts = with_totals(form.counts(np.array(tables.numbers)), noise, tables.totals)
    return Blocks(counts, noise, tables.convention, np.array(tables.design), tables.inflation)


@lru_cache(maxsize=32)
def answers_of(tables: NoisyTables) -> SurvivalAnswers:
    """Return everything that the tables say of survival."""
    blocks = blocks_of(tables)
    if tables.shares:
        curves = standardised(blocks, np.array(tables.shares))
    else:
        people = blocks.counts.reshape(len(tables.numbers) // 2, -1).sum(axis=1)
        shares = np.clip(people, 0.0, None)
        several = len(shares) > 1
        curves = standardised(
            blocks, shares / max(shares.sum(), 1e-9), 1 / tables.totals[0] if several else 0.0
        )
    return SurvivalAnswers(curves, np.array(tables.edges), tables.convention, tables.heavy, tables.cut)


@lru_cache(maxsize=32)
def log_rank_of(tables: NoisyTables) -> LogRank:
    """Return the log-rank test of equal hazards, within strata."""
    found = log_rank(blocks_of(tables), tables.heavy)
    return replace(found, cells=found.cells // tables.cut)


@dataclass(frozen=True, slots=True)
class LogRank:
    """Events of the treated less those expected, with their variances; `cells` is how many cells entered, at least.

    `bias` is how far the difference may be off as cells do not say when in them people were censored.
    """

    difference: float
    variance: float
    noise: float
    heavy: bool
    cells: int
    bias: float = 0.0

    @property
    def statistic(self) -> float:
        """The difference in standard errors, sampling and noise together; its square is the usual chi-square."""
        total = self.variance + self.noise
        return self.difference / sqrt(total) if total > 0 else 0.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal hazards, noise included; 1 where no cell is known."""
        return p_value(self._interval) if self.variance + self.noise > 0 else 1.0

    def _interval(self, level: float) -> Ends:
        normal, heavy = quantiles(level, self.heavy)
        half = reach(sqrt(normal**2 * self.variance + heavy**2 * self.noise), self.bias, level)
        return self.difference - half, self.difference + half


def log_rank(blocks: Blocks, heavy: bool) -> LogRank:
    """Return the test over all strata, in the cells that are known of both arms; blocks are (stratum, arm)."""
    strata, cells = len(blocks.counts) // 2, blocks.cells
    known = blocks.known.reshape(strata, 2).min(axis=1)
    used = np.arange(cells) < known[:, None]
    events = blocks.events.reshape(strata, 2, cells)
    people = np.where(used[:, None], blocks.at_risk.reshape(strata, 2, cells), 1.0)
    control, treated = people[:, 0], people[:, 1]
    both, total = events.sum(axis=1), people.sum(axis=1)
    difference = float(np.sum(used * (events[:, 1] * control - events[:, 0] * treated) / total))
    happened = np.clip(both, 0.0, total)
    left = np.maximum(total - 1, 1e-9)
    spread = used * treated * control * happened * (total - happened) / (total**2 * left)
    # (S, 2, J): how the difference moves with events and with people at risk.
    by_events = used[:, None] * np.stack([-treated, control], axis=1) / total[:, None]
    by_people = used[:, None] * np.stack([treated, -control], axis=1) * (both / total**2)[:, None]
    noise = float(blocks.noise.of(_gradient(blocks, by_events, by_people))[0, 0])
    noise += _of_products(blocks, used, total)
    # The variance is a noisy number too: it is taken one standard deviation of its noise larger.
    share = np.stack([used * treated * control / total**2] * 2, axis=1)
    unsure = sqrt(max(float(blocks.noise.of(_gradient(blocks, share, 0 * share))[0, 0]), 0.0))
    # Of weighted counts, each arm's own variance is larger than counts would have it.
    design = blocks.design.reshape(strata, 2).max(axis=1)
    variance = blocks.inflation * (float(np.sum(design[:, None] * spread)) + float(design.max()) * unsure)
    censored = AT_RISK[blocks.convention] * blocks.counts[:, cells : 2 * cells].reshape(strata, 2, cells)
    either = used[:, None] * censored * people[:, ::-1] * (both / total**2)[:, None]
    bias = joint_bias(*(max(float(one), 0.0) for one in either.sum(axis=(0, 2))))
    return LogRank(difference, variance, max(noise, 0.0), heavy, int(known.min()), bias)


def _gradient(blocks: Blocks, by_events: Floats, by_people: Floats) -> Floats:
    cells = blocks.cells
    found = by_people.reshape(-1, cells) @ blocks.risk_rows
    found[:, :cells] += by_events.reshape(-1, cells)
    return found[None]


def _of_products(blocks: Blocks, used: Floats, total: Floats) -> float:
    """Return the variance of products of an arm's noise in events and the other's in people at risk."""
    covariance, rows = blocks.noise.covariance, blocks.risk_rows
    events = np.diag(covariance)[: blocks.cells]
    people = np.diag(rows @ covariance @ rows.T)
    return float(np.sum(used * 2 * events * people / total**2))
