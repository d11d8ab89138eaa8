"""The exact delta profile: how much probability a claimed epsilon leaves unexplained.

For distributions P and Q the smallest delta at epsilon is the hockey-stick divergence, the integral of
(p - e^epsilon q)+ . Continuous distributions are integrated panel by panel with two Gauss rules whose difference
bounds the error and decides which panels are halved; discrete distributions are summed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil_lab.audit.report import FloatArray, Mechanism, Pair, WhiteBox, draw, out_of_range

_PILOT = 513  # draws that say where the outputs lie


@dataclass(frozen=True, slots=True)
class Line:
    """The real line, for a continuous distribution of numbers.

    The first grid is fine near `centres` and grows geometrically, so that tails count; testers refine it.

    Attributes
    ----------
    centres : tuple of float or None
        Where outputs are likely, in their units. Default: medians of a pilot sample.
    scale : float or None
        Scale of the noise, above 0; goes with `centres`. Default: quartiles of a pilot sample.
    reach : float, default 1e9
        How many scales the grid extends on both sides.
    points : int, default 200
        Number of points of the first grid on each side of a centre.

    Raises
    ------
    CounterveilError
        One of `centres` and `scale` without the other, or a scale that is not positive (CV-A001).

    Examples
    --------
    >>> from counterveil_lab.audit import Line
    >>> Line(centres=(0.0, 1.0), scale=0.5).points
    200
    """

    centres: tuple[float, ...] | None = None
    scale: float | None = None
    reach: float = 1e9
    points: int = 200

    def __post_init__(self) -> None:
        if (self.centres is None) != (self.scale is None):
            raise out_of_range(
                "Line",
                (self.centres, self.scale),
                "both centres and scale, or neither",
                "pass the other one too",
            )
        if self.scale is not None and not self.scale > 0:
            raise out_of_range("scale", self.scale, "a positive number", "pass the scale of the noise")

    def grid(self, mechanism: Mechanism, pair: Pair, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """Return the first grid.

        Parameters
        ----------
        mechanism : Mechanism
            What is attacked.
        pair : (object, object)
            Neighbouring data sets.
        rng : numpy.random.Generator
            Draws the pilot sample.

        Returns
        -------
        (ndarray, float)
            Sorted points, and the largest number that enters x - centre near the centres.
        """
        steps = np.sinh(np.linspace(0.0, float(np.arcsinh(self.reach)), self.points))
        shape = np.concatenate([-steps[:0:-1], steps])
        places = self._places(mechanism, pair, rng)
        edges = np.unique(np.concatenate([centre + scale * shape for centre, scale in places]))
        return edges, max(abs(centre) + scale for centre, scale in places)

    def _places(
        self, mechanism: Mechanism, pair: Pair, rng: np.random.Generator
    ) -> list[tuple[float, float]]:
        if self.centres is not None and self.scale is not None:
            return [(centre, self.scale) for centre in self.centres]
        quartiles = [np.quantile(sample, [0.25, 0.5, 0.75]) for sample in draw(mechanism, pair, _PILOT, rng)]
        # A release without noise has no scale of its own; the gap between the two centres then serves.
        fallback = abs(float(quartiles[0][1] - quartiles[1][1])) or 1.0
        return [(float(q[1]), float(q[2] - q[0]) or fallback) for q in quartiles]


@dataclass(frozen=True, slots=True)
class Points:
    """The values of a discrete distribution; probability on values that are left out counts as uncertainty.

    Attributes
    ----------
    values : ndarray of float
        The values.

    Examples
    --------
    >>> from counterveil_lab.audit import Points
    >>> len(Points.integers(-5, 5).values)
    11
    """

    values: FloatArray

    @classmethod
    def integers(cls, low: int, high: int) -> Points:
        """Return the integers from one to another.

        Parameters
        ----------
        low, high : int
            First and last value.

        Returns
        -------
        Points
            The values, both ends included.
        """
        return cls(np.arange(low, high + 1, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class Cloud:
    """Vectors that are drawn from both data sets and improved by a local search; for pure claims in any
    dimension.

    Attributes
    ----------
    draws : int, default 4096
        Number of vectors that are drawn from each data set.
    kept : int, default 64
        Number of the best that the search starts from.
    rounds : int, default 60
        Number of rounds of the search.
    """

    draws: int = 4096
    kept: int = 64
    rounds: int = 60


Outputs: TypeAlias = Line | Points | Cloud

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_ROUGH_NODES, _ROUGH_WEIGHTS = np.polynomial.legendre.leggauss(8)
# Both rules are blind between their outermost node and the end of a panel, where a jump could hide. The
# value at the end is therefore compared with what the polynomial through the nodes expects there.
_TO_ENDS = np.linalg.solve(
    np.polynomial.legendre.legvander(_NODES, 15).T,
    np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), 15).T,
).T
_STRIP = 1.0 - float(_NODES[-1])
_ROUNDS = 60
_MOST_PANELS = 100_000
# Rounding of densities and sums, relative to the mass of a panel.
_FLOAT_ERROR = 1e-15
# A density whose integral is further from one than this is not a density.
_LOST_MASS = 1e-3


@dataclass(frozen=True, slots=True)
class Delta:
    """A delta between two numbers, which differ by the numerical uncertainty.

    Attributes
    ----------
    low : float
        Lower bound.
    high : float
        Upper bound.
    direction : str
        "first over second" or "second over first".
    """

    low: float
    high: float
    direction: str


def hockey_stick(log_p: FloatArray, log_q: FloatArray, epsilon: float) -> FloatArray:
    """Return (p - e^epsilon q)+ pointwise, without cancellation where the two are close."""
    with np.errstate(invalid="ignore"):
        gap = np.minimum(epsilon + log_q - log_p, 0.0)
    p = np.exp(log_p)
    return np.where(p > 0, -p * np.expm1(gap), 0.0)


def delta_at(
    epsilon: float,
    mechanism: WhiteBox,
    pair: Pair,
    outputs: Outputs,
    rng: np.random.Generator,
    tolerance: float = 1e-12,
) -> Delta:
    """Return the smallest delta that makes an epsilon true on a pair of neighbours, in the worse direction.

    Parameters
    ----------
    epsilon : float
        The epsilon.
    mechanism : WhiteBox
        A mechanism with ``log_density``.
    pair : (object, object)
        Neighbouring data sets.
    outputs : Line or Points
        Where outputs lie.
    rng : numpy.random.Generator
        Draws the pilot sample.
    tolerance : float, default 1e-12
        Error that the integral may have.

    Returns
    -------
    Delta
        Bounds on the delta, and the direction.

    Raises
    ------
    CounterveilError
        Vectors (CV-A007), or a density that does not integrate to one (CV-A005).

    Notes
    -----
    The delta is the hockey-stick divergence, the integral of max(p - e^epsilon q, 0).

    Examples
    --------
    >>> import numpy as np
    >>> from counterveil_lab.audit import Points, delta_at
    >>> class Coin:
    ...     def sample(self, bit, count, rng):
    ...         return np.where(rng.random(count) < 0.75, bit, 1 - bit)
    ...     def log_density(self, bit, outputs):
    ...         return np.log(np.where(outputs == bit, 0.75, 0.25))
    >>> delta = delta_at(0.0, Coin(), (0, 1), Points.integers(0, 1), np.random.default_rng(1))
    >>> round(delta.low, 3)
    0.5
    """
    if isinstance(outputs, Cloud):
        raise refusal("CV-A007")

    def columns(points: FloatArray) -> FloatArray:
        log_p, log_q = (mechanism.log_density(dataset, points) for dataset in pair)
        forth, back = hockey_stick(log_p, log_q, epsilon), hockey_stick(log_q, log_p, epsilon)
        return np.stack([np.exp(log_p), np.exp(log_q), forth, back])

    if isinstance(outputs, Points):
        totals = columns(outputs.values).sum(axis=-1)
        errors = _FLOAT_ERROR * np.maximum(totals, 1.0)
    else:
        totals, errors = integrate(columns, outputs.grid(mechanism, pair, rng)[0], tolerance)
    _check_mass(totals[:2], outputs)
    lost = np.maximum(1.0 - totals[:2], 0.0) + errors[:2]
    low = np.maximum(totals[2:] - errors[2:], 0.0)
    high = totals[2:] + errors[2:] + lost
    worse = int(np.argmax(low))
    direction = ("first over second", "second over first")[worse]
    return Delta(float(low[worse]), float(high.max()), direction)


def integrate(
    columns: Callable[[FloatArray], FloatArray], edges: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Return the integrals of several functions over the span of `edges`, and bounds on their errors.

    `columns` maps points of shape (m,) to values of shape (c, m); the first two columns are the densities,
    whose mass sets the floor below which rounding makes a smaller error meaningless.
    """
    left, right = edges[:-1], edges[1:]
    allowance = tolerance / len(left)
    pieces: list[FloatArray] = []
    doubts: list[FloatArray] = []
    for last in [False] * _ROUNDS + [True]:
        value, error = _panels(columns, left, right)
        floor = allowance + 4 * _FLOAT_ERROR * (value[0] + value[1])
        middle = (left + right) / 2
        halve = (error > floor).any(axis=0) & (left < middle) & (middle < right)
        if last or 2 * int(halve.sum()) > _MOST_PANELS:
            halve[:] = False
        pieces.append(value[:, ~halve])
        doubts.append(error[:, ~halve])
        if not halve.any():
            break
        left, right = (
            np.concatenate([left[halve], middle[halve]]),
            np.concatenate([middle[halve], right[halve]]),
        )
    return np.concatenate(pieces, axis=1).sum(axis=1), np.concatenate(doubts, axis=1).sum(axis=1)


def _panels(
    columns: Callable[[FloatArray], FloatArray], left: FloatArray, right: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the integrals over each panel and their error bounds, both of shape (c, panels)."""
    half = (right - left) / 2
    places = np.concatenate([_NODES, _ROUGH_NODES])
    inner = (left + half)[:, None] + half[:, None] * places
    # The ends are taken as given: computed from the middle they could fall just outside the panel.
    points = np.concatenate([inner, left[:, None], right[:, None]], axis=1)
    values = columns(points.reshape(-1)).reshape(-1, *points.shape)
    fine, rough, ends = np.split(values, [len(_NODES), len(places)], axis=2)
    value = (fine @ _WEIGHTS) * half
    surprise = np.abs(ends - fine @ _TO_ENDS.T).sum(axis=2)
    error = np.abs(value - (rough @ _ROUGH_WEIGHTS) * half) + _STRIP * half * surprise
    return value, error + _FLOAT_ERROR * (value[0] + value[1])


def _check_mass(masses: FloatArray, outputs: Outputs) -> None:
    most = masses.max() > 1 + _LOST_MASS
    least = isinstance(outputs, Line) and masses.min() < 1 - _LOST_MASS
    if most or least:
        raise refusal("CV-A005", masses=masses[0], masses_2=masses[1])


def check_normalised(mechanism: WhiteBox, pair: Pair, line: Line, rng: np.random.Generator) -> None:
    """Raise CV-A005 unless both densities integrate to one: a missing constant could hide a broken claim."""

    def densities(points: FloatArray) -> FloatArray:
        return np.exp(np.stack([mechanism.log_density(dataset, points) for dataset in pair]))

    masses, _ = integrate(densities, line.grid(mechanism, pair, rng)[0], _LOST_MASS / 10)
    _check_mass(masses, line)


# So many local maxima are zoomed in on, with so many points about each, in so many rounds.
_WINDOWS, _REFINED, _RATIO_ROUNDS = 64, 17, 16
# Two log densities each carry a few units in their last place; far in a tail that is no longer small.
_ULPS = 8 * float(np.finfo(np.float64).eps)
# At a jump of the density, x - centre may round to the wrong side. A ratio counts only if it holds over an
# interval this wide, relative to the numbers involved: thousands of roundings, and still far below any scale.
_WIDTH = 1e-12


@dataclass(frozen=True, slots=True)
class LogRatio:
    """The largest log ratio of two densities that was found.

    Attributes
    ----------
    value : float
        |ln p - ln q|, lowered by its rounding error.
    output : ndarray
        The output where it was found.
    direction : str
        "first over second" or "second over first".
    """

    value: float
    output: FloatArray
    direction: str


def largest_log_ratio(
    mechanism: WhiteBox, pair: Pair, outputs: Outputs, rng: np.random.Generator
) -> LogRatio:
    """Return the largest log ratio of the densities on two neighbours; always a true lower bound on epsilon.

    Parameters
    ----------
    mechanism : WhiteBox
        A mechanism with ``log_density``.
    pair : (object, object)
        Neighbouring data sets.
    outputs : Line or Points or Cloud
        Where to look.
    rng : numpy.random.Generator
        Draws pilot samples.

    Returns
    -------
    LogRatio
        The ratio, where it was found, and the direction.

    Examples
    --------
    >>> import numpy as np
    >>> from counterveil_lab.audit import Points, largest_log_ratio
    >>> class Coin:
    ...     def sample(self, bit, count, rng):
    ...         return np.where(rng.random(count) < 0.75, bit, 1 - bit)
    ...     def log_density(self, bit, outputs):
    ...         return np.log(np.where(outputs == bit, 0.75, 0.25))
    >>> ratio = largest_log_ratio(Coin(), (0, 1), Points.integers(0, 1), np.random.default_rng(1))
    >>> round(ratio.value, 3)  # ln 3
    1.099
    """

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
    """Return |ln p - ln q| less its rounding error; -inf without any mass, inf with mass of one distribution only."""
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
    for _ in range(_RATIO_ROUNDS):
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
