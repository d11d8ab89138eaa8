"""The published site methods, drawn from their printed mechanisms; comparators without a guarantee of ours.

Koga, Chaudhuri and Page: difference in means with Laplace noise on four sums; exact one-to-one matching with
noise from the global or the printed smooth sensitivity. Budgets are split evenly over the releases.
Everything is in units of the outcome's range.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from counterveil.published.strata import (
    match_in_order,
    printed_log_sd,
    printed_noise_scale,
    printed_smooth_change,
    printed_smoothness,
    printed_variance_within,
    published_variance,
)
from counterveil.published.strata_sensitivity import StratumCounts, largest_discounted
from counterveil_lab.reproduce.papers.multi_site.panels import Rows

DELTA = 1e-5


@dataclass(frozen=True)
class Answer:
    """What a site sends: an estimate, and a variance that is not below that of the noise."""

    estimate: float
    variance: float


def mean_difference(rows: Rows) -> float:
    """Return the difference in means."""
    return float(rows.outcome[rows.treated].mean() - rows.outcome[~rows.treated].mean())


def private_mean_difference(rows: Rows, epsilon: float, rng: np.random.Generator) -> Answer:
    """Return the published difference in means; half of epsilon for the sums, half for the sums of squares."""
    scale = 2 / epsilon
    means, noise, sampling = [], 0.0, 0.0
    for arm in (rows.outcome[rows.treated], rows.outcome[~rows.treated]):
        mean = (arm.sum() + rng.laplace(0, scale)) / len(arm)
        square = ((arm**2).sum() + rng.laplace(0, scale)) / len(arm)
        means.append(mean)
        noise += 2 * scale**2 / len(arm) ** 2
        sampling += (square - mean**2) / len(arm)
    return Answer(float(means[0] - means[1]), noise + max(float(sampling), 0.0))


def stratum_counts(rows: Rows, strata: int) -> StratumCounts:
    """Return how many people each of the public strata has in each arm."""
    _, place = np.unique(rows.stratum, return_inverse=True)
    treated = np.bincount(place, rows.treated).astype(np.int64)
    return StratumCounts.of(treated, np.bincount(place) - treated, strata)


class Matching:
    """Exact one-to-one matching at one site; what does not depend on epsilon is found once."""

    def __init__(self, rows: Rows, strata: int) -> None:
        self._rows, self._strata, self.size = rows, strata, len(rows.outcome)
        self._within: dict[int, float] = {}

    @cached_property
    def _matched(self) -> tuple[float, float]:
        """The effect and its variance, people without a match counting as zero."""
        rows = self._rows
        partner, uses = match_in_order(rows.stratum, rows.treated)
        gap = np.where(partner >= 0, rows.outcome - rows.outcome[partner], 0.0)
        effect = float(np.where(rows.treated, gap, -gap).mean())
        return effect, float(published_variance(rows.outcome, partner, uses)) / (2 * self.size**2)

    @property
    def effect(self) -> float:
        """The effect without privacy."""
        return self._matched[0]

    @cached_property
    def _counts(self) -> StratumCounts:
        return stratum_counts(self._rows, self._strata)

    def _variance_bound(self, smoothness: float) -> float:
        def value(k: int, floor: float) -> float:
            del floor
            if k not in self._within:
                self._within[k] = printed_variance_within(self._counts, k)
            return self._within[k]

        most = 64.0 * (self.size + 2) ** 2
        return largest_discounted(value, most, self.size, smoothness) / self.size**2

    def _noisy_variance(self, epsilon: float, delta: float, rng: np.random.Generator) -> float:
        bound = self._variance_bound(printed_smoothness(epsilon, delta))
        return max(self._matched[1] + rng.laplace(0, printed_noise_scale(bound, epsilon)), 0.0)

    def smooth(self, epsilon: float, rng: np.random.Generator) -> Answer:
        """Return SmoothDPMatching with its variance: three releases."""
        part, delta = epsilon / 3, DELTA / 3
        smoothness = printed_smoothness(part, delta)
        bound = printed_smooth_change(self._counts, smoothness) / self.size
        estimate = self.effect + rng.laplace(0, printed_noise_scale(bound, part))
        sd = printed_log_sd(smoothness, part, delta)
        released = np.exp(log(bound) + rng.normal(0, sd) - sd**2 / 2)
        noise = 8 * float(released) ** 2 / part**2
        return Answer(estimate, noise + self._noisy_variance(part, delta, rng))

    def constant(self, epsilon: float, rng: np.random.Generator) -> Answer:
        """Return GlobalDPMatching with its variance: two releases, noise from a sensitivity of one range."""
        part, delta = epsilon / 2, DELTA / 2
        estimate = self.effect + rng.laplace(0, 1 / part)
        return Answer(estimate, 2 / part**2 + self._noisy_variance(part, delta, rng))
