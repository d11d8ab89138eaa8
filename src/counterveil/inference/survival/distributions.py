"""Distribution functions of both arms from noisy counts of outcomes by cell, as curves that fall from 1 to 0.

    1 - F_a(edge) = (people of arm a in cells beyond the edge) / (people of arm a)

One minus a distribution function is a survival curve that nobody is censored from, so that intervals, bands
and quantiles are those of survival. In: released counts (2, J) in people, or sums of public weights, with
noise of known standard deviation; edges in units of the outcome; public totals. Out: curves, which are
probabilities, with the covariances of their sampling error and noise. The counts' release is proved in
`rows/distribution.proof.md`; all of this is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from counterveil.inference.survival.answers import SurvivalAnswers
from counterveil.inference.survival.blocks import LEAST_AT_RISK, LEAST_PEOPLE
from counterveil.inference.survival.curves import Curves
from counterveil.inference.survival.heaping import heaped_unit
from counterveil.inference.survival.table_noise import TableNoise, with_totals


@dataclass(frozen=True, slots=True)
class NoisyHistograms:
    """Released counts of outcomes by cell, of the control arm first.

    Attributes
    ----------
    numbers : tuple of tuple of float
        Counts, or sums of public weights up to 1, by arm and cell.
    noise_sd : float
        Standard deviation of the noise of each.
    heavy : bool
        Whether the noise is Laplace's.
    totals : tuple of float
        Public numbers of people: of everyone, or of each arm; empty where weights follow private treatments.
    edges : tuple of float
        Edges of the cells, in units of the outcome.
    design : tuple of float
        Ratio of squared weights to weights of each arm; 1 without weights.
    inflation : float
        Factor of the sampling variance, for bias that intervals allow for.
    left_out : tuple of (float, float)
        Share of people for whom nobody in an arm stands, as weights are capped.
    """

    numbers: tuple[tuple[float, ...], ...]
    noise_sd: float
    heavy: bool
    totals: tuple[float, ...]
    edges: tuple[float, ...]
    design: tuple[float, ...]
    inflation: float = 1.0
    left_out: tuple[float, ...] = (0.0, 0.0)

    def _check(self) -> None:
        """Raise ValueError where the parts do not belong together."""
        sound = (
            len(self.numbers) == len(self.design) == len(self.left_out) == 2
            and all(0 <= value <= 1 for value in self.left_out)
            and all(len(value) == len(self.edges) - 1 >= 2 for value in self.numbers)
            and len(self.totals) <= 2
            and self.noise_sd >= 0
            and all(value > 0 for value in (*self.design, *self.totals, self.inflation))
            and all(later > earlier for earlier, later in pairwise(self.edges))
        )
        if not sound:
            raise ValueError("no counts of outcomes by cell")


@lru_cache(maxsize=32)
def distributions_of(tables: NoisyHistograms) -> SurvivalAnswers:
    """Return both arms' curves, one minus distribution functions, with their errors."""
    cells = len(tables.edges) - 1
    groups: tuple[tuple[int, ...], ...] = ((), ((0, 1),), ((0,), (1,)))[len(tables.totals)]
    noise = TableNoise(tables.noise_sd**2 * np.eye(cells), groups)
    counts = with_totals(np.array(tables.numbers), noise, tables.totals)
    people = counts.sum(axis=1)
    is_known = people > max(LEAST_AT_RISK * tables.noise_sd * cells**0.5, LEAST_PEOPLE)
    size = np.where(is_known, people, 1.0)[:, None]
    later = np.triu(np.ones((cells + 1, cells)))  # (P, J): what lies beyond an edge
    curves = np.where(is_known[:, None], counts @ later.T / size, (np.arange(cells + 1) < cells) * 1.0)
    slopes = is_known[:, None, None] * (later - curves[:, :, None]) / size[:, :, None]
    full = np.zeros((2, cells + 1, 2, cells))
    full[0, :, 0], full[1, :, 1] = slopes
    moved = full.reshape(2 * (cells + 1), 2, cells)
    worth = size / (np.array(tables.design) * tables.inflation)[:, None]
    falling = np.minimum.accumulate(np.clip(curves, 0.0, 1.0), axis=1)
    shared = np.minimum(falling[:, :, None], falling[:, None, :]) - falling[:, :, None] * falling[:, None, :]
    slack = np.zeros_like(curves)
    off = np.zeros_like(curves)
    slack[~is_known, 1:-1] = 1.0
    off[:, 1:-1] = np.array(tables.left_out)[:, None]
    return SurvivalAnswers(
        Curves(
            survival=curves,
            shown=curves,
            sampling=shared / worth[:, :, None],
            noise=noise.of(moved).reshape(2, cells + 1, 2, cells + 1),
            slack=slack,
            grouping=off,
            people=np.repeat(people[:, None], cells, axis=1),
            worth=np.repeat(worth, cells, axis=1),
            heaviness=noise.heaviness(moved).reshape(2, cells + 1),
            lengths=np.diff(tables.edges),
            rounded=True,
            heaped=heaped_unit(np.array(tables.edges), counts, np.array(tables.design), tables.noise_sd),
        ),
        np.array(tables.edges),
        "middle",
        tables.heavy,
        whole=True,
    )
