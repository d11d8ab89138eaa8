"""Which outputs to bet on: tails, intervals and their complements, chosen on the training half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from counterveil.audit.binomial import log_excess, wilson
from counterveil.audit.protocols import FloatArray

# Ranks from both ends, so that rare outputs are on offer, and even quantiles, so that common ones are.
_END_RANKS = 24
_EVEN_RANKS = 33
_ATOMS = 16


@dataclass(frozen=True, slots=True)
class Event:
    """The set of scores in [low, high], or its complement when `inside` is false."""

    low: float
    high: float
    inside: bool = True

    def hits(self, scores: FloatArray) -> int:
        """Return how many scores lie in the event."""
        within = int(np.count_nonzero((scores >= self.low) & (scores <= self.high)))
        return within if self.inside else len(scores) - within

    def __str__(self) -> str:
        if not self.inside:
            return f"score < {self.low:.6g} or > {self.high:.6g}"
        if self.low == self.high:
            return f"score = {self.low:.6g}"
        if self.low == -np.inf:
            return f"score <= {self.high:.6g}"
        if self.high == np.inf:
            return f"score >= {self.low:.6g}"
        return f"{self.low:.6g} <= score <= {self.high:.6g}"


def cut_points(scores: FloatArray) -> FloatArray:
    """Return sorted candidate thresholds: extreme and even order statistics, and the commonest values."""
    ordered = np.sort(scores)
    last = len(ordered) - 1
    ends = np.unique(np.geomspace(1, max(last / 2, 1), _END_RANKS).astype(int)) - 1
    even = np.linspace(0, last, _EVEN_RANKS).astype(int)
    chosen = ordered[np.unique(np.concatenate([ends, last - ends, even]))]
    values, counts = np.unique(ordered, return_counts=True)
    common = values[np.argsort(-counts, kind="stable")[:_ATOMS]] if counts.max() > 1 else values[:0]
    return np.unique(np.concatenate([chosen, common]))


def choose_events(strong: FloatArray, weak: FloatArray, delta: float, error: float) -> tuple[Event, ...]:
    """Return for each family the event that best shows `strong` likelier than `weak` on training scores.

    The families are left tails, right tails, intervals (atoms among them) and complements of intervals.
    """
    cuts = cut_points(np.concatenate([strong, weak]))
    lows = np.concatenate([[-np.inf], cuts])
    highs = np.concatenate([cuts, [np.inf]])
    z = float(-ndtri(error))
    inside = [_counts_between(scores, lows, highs) for scores in (strong, weak)]
    outside = [len(scores) - count for scores, count in zip((strong, weak), inside, strict=True)]
    allowed = lows[:, None] <= highs[None, :]
    left, right = np.zeros_like(allowed), np.zeros_like(allowed)
    left[0, :-1], right[1:, -1] = True, True
    middle = allowed.copy()
    middle[0, :], middle[:, -1] = False, False
    sizes = (len(strong), len(weak))
    within = np.where(allowed, _training_score(inside, sizes, delta, z), -1.0)
    without = np.where(middle, _training_score(outside, sizes, delta, z), -1.0)
    chosen = [_best(lows, highs, np.where(family, within, -1.0), True) for family in (left, right, middle)]
    return (*chosen, _best(lows, highs, without, False))


def _counts_between(scores: FloatArray, lows: FloatArray, highs: FloatArray) -> FloatArray:
    ordered = np.sort(scores)
    below = np.searchsorted(ordered, lows, side="left")
    up_to = np.searchsorted(ordered, highs, side="right")
    counts: FloatArray = np.maximum(up_to[None, :] - below[:, None], 0).astype(np.float64)
    return counts


def _training_score(counts: list[FloatArray], sizes: tuple[int, int], delta: float, z: float) -> FloatArray:
    p_low, _ = wilson(counts[0], sizes[0], z)
    _, q_high = wilson(counts[1], sizes[1], z)
    return log_excess(p_low, q_high, delta)


def _best(lows: FloatArray, highs: FloatArray, score: FloatArray, inside: bool) -> Event:
    i, j = np.unravel_index(int(np.argmax(score)), score.shape)
    return Event(float(lows[i]), float(highs[j]), inside)
