"""The largest log ratio of two densities: the exact epsilon of a pure claim on one pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from counterveil.audit.outputs import Cloud, Line, Outputs, Points
from counterveil.audit.protocols import FloatArray, Pair, WhiteBox
from counterveil.audit.refusals import draw

# So many local maxima are zoomed in on, with so many points about each, in so many rounds.
_WINDOWS, _REFINED, _ROUNDS = 64, 17, 16
# Two log densities each carry a few units in their last place; far in a tail that is no longer small.
_ULPS = 8 * float(np.finfo(np.float64).eps)
# At a jump of the density, x - centre may round to the wrong side. A ratio counts only if it holds over an
# interval this wide, relative to the numbers involved: thousands of roundings, and still far below any scale.
_WIDTH = 1e-12


@dataclass(frozen=True, slots=True)
class LogRatio:
    """The largest |ln p - ln q| found, already lowered by its rounding error, and the output it was at."""

    value: float
    output: FloatArray
    direction: str


def largest_log_ratio(
    mechanism: WhiteBox, pair: Pair, outputs: Outputs, rng: np.random.Generator
) -> LogRatio:
    """Return the largest log ratio over `outputs`, both ways; always a true lower bound on epsilon."""

    def pointwise(points: FloatArray) -> FloatArray:
        log_p, log_q = (mechanism.log_density(dataset, points) for dataset in pair)
        return _certain_ratio(log_p, log_q)

    excess = pointwise
    if isinstance(outputs, Points):
        points = outputs.values
    elif isinstance(outputs, Line):
        edges, size = outputs.grid(mechanism, pair, rng)
        excess = partial(_over_an_interval, pointwise, size)
        points = _climb_line(excess, edges)
    else:
        points = _climb_cloud(excess, mechanism, pair, outputs, rng)
    values = excess(points)
    best = int(np.argmax(values))
    where = points[best : best + 1]
    with np.errstate(invalid="ignore"):
        forth = float((mechanism.log_density(pair[0], where) - mechanism.log_density(pair[1], where))[0])
    direction = "first over second" if forth >= 0 else "second over first"
    return LogRatio(max(float(values[best]), 0.0), np.atleast_1d(where[0]), direction)


def _certain_ratio(log_p: FloatArray, log_q: FloatArray) -> FloatArray:
    """Return |ln p - ln q| less its rounding error; -inf without any mass, inf with mass of one law only."""
    none_p, none_q = np.isneginf(log_p), np.isneginf(log_q)
    with np.errstate(invalid="ignore"):
        ratio = np.abs(log_p - log_q) - _ULPS * (np.abs(log_p) + np.abs(log_q))
    ratio = np.where(none_p ^ none_q, np.inf, ratio)
    return np.where(none_p & none_q, -np.inf, ratio)


def _over_an_interval(
    pointwise: Callable[[FloatArray], FloatArray], size: float, points: FloatArray
) -> FloatArray:
    """Return the ratio that holds at each point and a little to one side of it."""
    width = _WIDTH * (np.abs(points) + size)
    here = pointwise(points)
    sides = np.maximum(pointwise(points - width), pointwise(points + width))
    return np.minimum(here, sides)


def _climb_line(excess: Callable[[FloatArray], FloatArray], edges: FloatArray) -> FloatArray:
    """Return the best output of each round of zooming in on the local maxima of a grid."""
    points = np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))
    found: list[float] = []
    for _ in range(_ROUNDS):
        values = excess(points)
        found.append(float(points[int(np.argmax(values))]))
        if np.isposinf(values).any():
            break
        centres = _peaks(values)
        low = points[np.maximum(centres - 1, 0)]
        high = points[np.minimum(centres + 1, len(points) - 1)]
        points = np.unique(np.linspace(low, high, _REFINED))
    return np.array(found)


def _peaks(values: FloatArray) -> NDArray[np.intp]:
    """Return the indices of the highest local maxima; the inside of a plateau is no maximum."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    before, here, after = padded[:-2], padded[1:-1], padded[2:]
    peak = (here >= before) & (here >= after) & ((here > before) | (here > after))
    indices = np.flatnonzero(peak & np.isfinite(here))
    if len(indices) == 0:
        indices = np.array([int(np.argmax(values))])
    return indices[np.argsort(-values[indices], kind="stable")[:_WINDOWS]]


def _climb_cloud(
    excess: Callable[[FloatArray], FloatArray],
    mechanism: WhiteBox,
    pair: Pair,
    cloud: Cloud,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the best vectors after a random search whose steps shrink around the best so far."""
    points = np.concatenate(draw(mechanism, pair, cloud.draws, rng))
    spread = np.quantile(points, 0.75, axis=0) - np.quantile(points, 0.25, axis=0)
    centre = np.median(points, axis=0)
    best = points
    for round_ in range(cloud.rounds):
        best = best[np.argsort(-excess(best), kind="stable")[: cloud.kept]]
        step = spread * 2.0 ** (2 - round_ / 4)
        moves = rng.standard_normal((8, *best.shape)) * step
        # Ratios are often largest far out along a ray, which small steps would take long to reach.
        stretched = centre + (best - centre) * rng.uniform(0.5, 3.0, (len(best), 1))
        best = np.concatenate([best, (best + moves).reshape(-1, best.shape[1]), stretched])
    return best
