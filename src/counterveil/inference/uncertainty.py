"""The total uncertainty of a released number: sampling error and privacy noise together.

- `tail`, `half_width`: probabilities and quantiles of a normal plus a symmetric noise, by Gauss-Legendre
  pieces.
- `NoiseOfNoisyScale`, `NoiseSum`, `WeightedSum`: noise whose scale is itself released, sums of two noises,
  and weighted sums of several, tabulated on a lattice.
- `p_value_from`: the p-value that belongs to intervals of every level.
- `inflation`: how much to add to a noisy variance so that the interval built from it keeps its level.
- `biased_half_width`: intervals that hold for every bias up to a bound (Armstrong and Kolesar 2018).
- `Uncertainty`: everything that is known about the error of one estimate, with its interval and p-value.
- `simultaneous`, `level_of_each`, `adjusted_p`: intervals that hold for several contrasts at once.
- `ClusterUncertainty`: few clusters. Without noise the estimate is compared with Student's t. A standard
  error that was released with noise xi is enlarged by the smallest constant kappa such that intervals built
  from `positive_part(S + xi)` + kappa cover at their level, averaged over xi and over the sampling
  distribution of S, whatever the true standard error in [0, cap] is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import pairwise
from math import ceil, exp, expm1, hypot, inf, isfinite, isnan, log, log1p, log2, nextafter, pi, sqrt
from typing import Protocol, TypeVar, cast

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import chdtri, k1, ndtr, ndtri, stdtrit

from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import public_normals

# Probabilities of (sampling error + privacy noise): a normal plus any symmetric distribution.
#
# P(N + X <= x) is the integral of the normal density times the noise's distribution function. It is
# taken by Gauss-Legendre pieces that end wherever the noise distribution has a breakpoint and shrink towards the
# breakpoints, so that it is accurate whether the noise is a thousand times wider or narrower than the
# sampling error. Time and memory are bounded whatever the two are.
#
# The distribution of the sum of two independent symmetric noises, on a lattice, and how wide noise from a ball is.
#
# Both noises are rounded to a lattice, which moves their sum by at most one lattice step, and their masses
# are convolved. Between the lattice's points the distribution function is interpolated; in the tails, where it
# is convex, that errs towards more noise.

_NODES, _WEIGHTS = leggauss(8)
_SCALED_WEIGHTS = _WEIGHTS / np.sqrt(2 * np.pi)
# Beyond this many standard deviations a normal holds less than 3e-18 of its mass.
_NORMAL_END = 8.7
_NORMAL_ENDS = np.linspace(-_NORMAL_END, _NORMAL_END, 19)
# Distances from a breakpoint, in standard deviations of the noise, at which pieces end.
_OFFSETS = np.concatenate([2.0 ** np.arange(-4, 7), [100.0, 200.0, 400.0, 1600.0]])
# Breakpoints at which pieces end, at most. Those beyond a value that the noise exceeds with this probability, are
# left out. A distribution that has still more falls by less than 0.006 (in logarithms) from one to the next, so that
# its tails are within 5e-6 of smooth ones: they are taken as larger by twice that part.
_MOST_BREAKPOINTS, _BEYOND, _RIPPLE = 20_000, 1e-25, 1e-5
# A normal this much narrower than the noise, as a part of its interquartile range, is bounded, not integrated: by so
# many standard deviations, which it exceeds with less than the probability beside them.
_NARROW, _FAR, _BEYOND_FAR = 1e-9, 9.6, 1e-21

# A half-width is at most this part above the one that is exact.
_TOLERANCE = 1e-8
# Part by which closed forms are rounded outwards.
_ROUNDING = 1e-12
_MOST_NEWTON_STEPS = 100
# Points at once: memory for more is asked of the system afresh each time, which takes longer than the work.
_AT_ONCE = 24_000
# Searches that go on together, and how many answers are remembered.
_TOGETHER, _MOST_REMEMBERED = 256, 16_384


class NoiseDistribution(Protocol):
    """A symmetric noise distribution, as far as inference needs it.

    It is hashable, so that what follows from it can be cached.
    """

    @property
    def variance(self) -> float:
        """Variance of the distribution; may be infinite."""
        ...

    def cdf(self, x: Floats) -> Floats:
        """Return P(X <= x).

        Parameters
        ----------
        x : ndarray of float
            Values.

        Returns
        -------
        ndarray of float
            Probabilities, of the shape of `x`.
        """
        ...

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest x with P(X <= x) >= p.

        Parameters
        ----------
        p : ndarray of float
            Probabilities, in (0, 1).

        Returns
        -------
        ndarray of float
            Values, of the shape of `p`.
        """
        ...

    def breakpoints(self, low: float, high: float, most: int) -> Floats | None:
        """Return the points where the density is not smooth.

        Parameters
        ----------
        low : float
            Lower end of the range.
        high : float
            Upper end of the range.
        most : int
            Points that are listed at most.

        Returns
        -------
        ndarray of float or None
            The points in [low, high]; None where they are more than `most`.
        """
        ...


def interquartile_range(distribution: NoiseDistribution) -> float:
    """Return the interquartile range of the distribution, which exists whatever its variance."""
    return _lower_quantile(distribution, 0.75) - _lower_quantile(distribution, 0.25)


def _lower_quantile(distribution: NoiseDistribution, p: float) -> float:
    law, scale = _standard(cast("Hashable", distribution))
    return scale * float(_quantiles(cast("Hashable", law), (p,))[0])


@lru_cache(maxsize=4096)
def _standard(distribution: NoiseDistribution) -> tuple[NoiseDistribution, float]:
    """Return a distribution that this one is a multiple of, and the factor."""
    found: tuple[NoiseDistribution, float] = getattr(distribution, "standard", (distribution, 1.0))
    return found


@lru_cache(maxsize=4096)
def _quantiles(distribution: NoiseDistribution, levels: tuple[float, ...]) -> Floats:
    return distribution.quantile(np.array(levels))


class NoiseBatch:
    """Noise distributions one after another; `points[i]` below are numbers for the i-th of them."""

    def __init__(self, noises: Sequence[NoiseDistribution]) -> None:
        standardised = [_standard(cast("Hashable", noise)) for noise in noises]
        index_of: dict[NoiseDistribution, int] = {}
        self.which = np.array(
            [index_of.setdefault(law, len(index_of)) for law, _ in standardised], dtype=np.intp
        )
        self._laws = list(index_of)
        self._scales = np.array([scale for _, scale in standardised])
        quarters = self.points((0.25, 0.75))
        self.widths = quarters[:, 1] - quarters[:, 0]

    def of(self, rows: NDArray[np.intp]) -> NoiseBatch:
        """Return the noises of these places, in their order."""
        chosen = object.__new__(NoiseBatch)
        chosen._laws = self._laws
        chosen.which, chosen._scales, chosen.widths = self.which[rows], self._scales[rows], self.widths[rows]
        return chosen

    def cdf(self, points: Floats) -> Floats:
        """Return P(X_i <= points[i])."""
        return self._by_law(points, lambda law, x, scales: law.cdf((x / scales).ravel()).reshape(x.shape))

    def quantile(self, points: Floats) -> Floats:
        """Return the x with P(X_i <= x) = points[i]."""
        return self._by_law(points, lambda law, p, scales: law.quantile(p.ravel()).reshape(p.shape) * scales)

    def breakpoints(self, low: Floats, high: Floats) -> list[Floats | None]:
        """Return the breakpoints of each in [low, high]; None where there are too many to integrate between."""
        ranges = zip(self.which.tolist(), self._scales.tolist(), low.tolist(), high.tolist(), strict=True)
        return [_breakpoints(self._laws[law], *ends) for law, *ends in ranges]

    def points(self, levels: tuple[float, ...]) -> Floats:
        """Return for each the x with P(X <= x) = level, for the same levels."""
        by_law = np.array([_quantiles(cast("Hashable", law), levels) for law in self._laws])
        return np.asarray(by_law.reshape(-1, len(levels))[self.which] * self._scales[:, None])

    def _by_law(
        self, points: Floats, evaluate: Callable[[NoiseDistribution, Floats, Floats], Floats]
    ) -> Floats:
        scales = self._scales.reshape(-1, *[1] * (points.ndim - 1))
        if len(self._laws) == 1:
            return np.asarray(evaluate(self._laws[0], points, scales))
        values = np.empty_like(points)
        for index in np.unique(self.which):
            rows = np.flatnonzero(self.which == index)
            values[rows] = evaluate(self._laws[index], points[rows], scales[rows])
        return values


Request = TypeVar("Request")
Answer = TypeVar("Answer")
Outcome = TypeVar("Outcome")
Key = TypeVar("Key")


def in_step(
    solvers: Sequence[Generator[Request, Answer, Outcome]],
    evaluate: Callable[[list[int], list[Request]], Sequence[Answer]],
) -> list[Outcome]:
    """Return what searches find that go on together: what all of them ask for next is evaluated at once.

    `evaluate` is given the indices of the searches that are not over, and what each of them asks for.
    """
    results: dict[int, Outcome] = {}
    requests: dict[int, Request] = {}

    def go_on(index: int, ask: Callable[[], Request]) -> None:
        try:
            requests[index] = ask()
        except StopIteration as end:
            requests.pop(index, None)
            results[index] = end.value

    for index, solver in enumerate(solvers):
        go_on(index, partial(next, solver))
    while requests:
        indices = list(requests)
        for index, answer in zip(indices, evaluate(indices, list(requests.values())), strict=True):
            go_on(index, partial(solvers[index].send, answer))
    return [results[index] for index in range(len(solvers))]


def remembered(
    memory: dict[Key, Outcome],
    keys: Sequence[Key],
    solve: Callable[[list[Key]], Sequence[Outcome]],
    together: int = _TOGETHER,
) -> list[Outcome]:
    """Return the value of every key from the memory; those that are new are solved together, and kept."""
    # Other threads may empty the memory meanwhile.
    remembered_values = [memory.get(key) for key in keys]
    if None not in remembered_values:
        return cast("list[Outcome]", remembered_values)
    new = list(
        dict.fromkeys(key for key, value in zip(keys, remembered_values, strict=True) if value is None)
    )
    batches = [new[start : start + together] for start in range(0, len(new), together)]
    solved = {key: value for batch in batches for key, value in zip(batch, solve(batch), strict=True)}
    if len(memory) + len(new) > _MOST_REMEMBERED:
        memory.clear()
    memory.update(solved)
    return [
        solved[key] if value is None else value for key, value in zip(keys, remembered_values, strict=True)
    ]


# A number, a standard deviation and a noise.
Case = tuple[float, float, NoiseDistribution | None]
_TAILS: dict[Case, float] = {}
_HALF_WIDTHS: dict[Case, float] = {}


def tail(x: float, sd: float, distribution: NoiseDistribution | None) -> float:
    """Return P(N + X > x) for N normal with standard deviation `sd` and X of the given distribution."""
    return tails_beyond([(x, sd, distribution)])[0]


def tails_beyond(cases: Sequence[Case]) -> list[float]:
    """Return P(N + X > x) for every x, standard deviation and noise."""
    return remembered(_TAILS, _near(cases), partial(_solved, search=_one_tail))


def half_width(sd: float, distribution: NoiseDistribution | None, alpha: float) -> float:
    """Return the smallest h with P(|N + X| > h) <= alpha, rounded outwards."""
    return exact_half_widths([(alpha, sd, distribution)])[0]


def exact_half_widths(cases: Sequence[Case]) -> list[float]:
    """Return for every alpha, standard deviation and noise the smallest h with P(|N + X| > h) <= alpha."""
    return remembered(_HALF_WIDTHS, _near(cases), partial(_solved, search=_one_half_width))


def _near(cases: Sequence[Case]) -> list[Case]:
    """Return the same with one of few sums of noises, no smaller, where the sampling error hides the difference.

    |N + X + ratio Y| grows with the ratio where X is symmetric with one peak. Half-widths grow by less than 0.4 %.
    """
    return [(number, sd, _hidden(sd, noise)) for number, sd, noise in cases]


def _hidden(sd: float, noise: NoiseDistribution | None) -> NoiseDistribution | None:
    if not isinstance(noise, NoiseSum) or noise.ratio != 1.0:
        return noise
    near, least = _no_smaller(cast("Hashable", noise))
    return near if sd > least else noise


Search = Generator[float, tuple[float, float], float]


def _solved(
    cases: list[Case], search: Callable[[float, float, NoiseDistribution | None], Search]
) -> list[float]:
    """Return what searches find that ask for tails and densities of N + X."""
    noisy = {index: row for row, index in enumerate(i for i, case in enumerate(cases) if case[2] is not None)}
    noises = NoiseBatch([cast("NoiseDistribution", cases[i][2]) for i in noisy])

    def evaluate(indices: list[int], x: list[float]) -> list[tuple[float, float]]:
        sd = np.array([cases[i][1] for i in indices])
        batch = noises.of(np.array([noisy[i] for i in indices]))
        tails, density = _tails_and_densities(np.array(x), sd, batch)
        return list(zip(tails.tolist(), density.tolist(), strict=True))

    return in_step([search(*case) for case in cases], evaluate)


def _one_tail(x: float, sd: float, distribution: NoiseDistribution | None) -> Search:
    if not isfinite(x):
        # An estimate that somebody wrote into a file, or that an unproved form overflowed to.
        return float("nan") if isnan(x) else float(x < 0)
    if distribution is None:
        return float(ndtr(-x / sd)) if sd > 0 else float(x < 0)
    if sd <= 0:
        return float(1 - distribution.cdf(np.array([x]))[0])
    if sd < _NARROW * interquartile_range(distribution):
        return float(distribution.cdf(np.array([_FAR * sd - x]))[0]) + _BEYOND_FAR
    return (yield x)[0]


def _one_half_width(alpha: float, sd: float, distribution: NoiseDistribution | None) -> Search:
    normal = -sd * float(ndtri(alpha / 2)) if sd > 0 else 0.0
    if distribution is None:
        return normal * (1 + _ROUNDING)
    if sd <= 0:
        return -float(distribution.quantile(np.array([alpha / 2]))[0]) * (1 + _TOLERANCE)
    if sd < _NARROW * interquartile_range(distribution):
        # |N + X| is beyond h only where |X| is beyond h - FAR sd or |N| beyond FAR sd.
        noise_half_width = -float(
            distribution.quantile(np.array([max(alpha / 2 - _BEYOND_FAR, alpha / 4)]))[0]
        )
        return (noise_half_width + _FAR * sd) * (1 + _TOLERANCE)
    # Exact for normal noise; heavier tails have their answer a little lower.
    h = hypot(_lower_quantile(distribution, alpha / 2), normal)
    low = 0.0
    high = inf
    for _ in range(_MOST_NEWTON_STEPS):
        beyond, density = yield h
        # Logarithms of tails are nearly straight: Newton's steps on them find the root fast.
        excess = log(max(2 * beyond, 1e-300) / alpha)
        step = excess * beyond / density if density > 0 else inf
        if excess <= 0 and (-step <= _TOLERANCE * h or h - low <= _TOLERANCE * h):
            return h
        low, high = (max(h, low), high) if excess > 0 else (low, min(h, high))
        # Aim a hair beyond the root, so that a good guess ends above it.
        trial = (h + step) * (1 + _TOLERANCE / 2)
        if not low < trial < high:
            trial = (low + high) / 2 if high < inf else 2 * h
        h = trial
    return high


def _tails_and_densities(x: Floats, sd: Floats, noises: NoiseBatch) -> tuple[Floats, Floats]:
    """Return P(N + X > x) and the density of N + X at x, for positive standard deviations."""
    normal_end = _NORMAL_END * sd * (1 + _TOLERANCE)
    breakpoints = noises.breakpoints(x - normal_end, x + normal_end)
    counts = np.array([1 if points is None else len(points) for points in breakpoints])
    tails, density = np.empty_like(x), np.empty_like(x)
    # Those of about as many breakpoints are integrated together: none has many more pieces than it needs.
    order = np.argsort(counts, kind="stable")
    start = 0
    while start < len(order):
        most = max(16, 2 * int(counts[order[start]]))
        together = max(1, _AT_ONCE // (len(_NODES) * (most + len(_NORMAL_ENDS) + 2 * len(_OFFSETS))))
        rows = order[start : start + together]
        rows = rows[counts[rows] <= most]
        start += len(rows)
        ends = np.full((len(rows), int(counts[rows].max())), inf)
        for row, points in zip(ends, (breakpoints[i] for i in rows), strict=True):
            row[: 1 if points is None else len(points)] = 0.0 if points is None else points
        z, weight = _pieces(x[rows], sd[rows], noises.widths[rows], ends)
        # The upper tail is integrated itself rather than taken from 1, which would lose its digits.
        weight *= noises.of(rows).cdf(sd[rows, None] * z - x[rows, None])
        rippled = np.array([breakpoints[i] is None for i in rows])
        tails[rows] = np.where(rippled, 1 + _RIPPLE, 1.0) * weight.sum(axis=1)
        density[rows] = np.einsum("ij,ij->i", weight, z) / sd[rows]
    return tails, density


def _breakpoints(law: NoiseDistribution, scale: float, low: float, high: float) -> Floats | None:
    """Return the breakpoints of a multiple of a distribution in [low, high], None where there are too many."""
    low, high = low / scale, high / scale
    end, points = _all_breakpoints(cast("Hashable", law))
    if points is not None:
        return points[points.searchsorted(low) : points.searchsorted(high, "right")] * scale
    points = law.breakpoints(max(low, -end), min(high, end), _MOST_BREAKPOINTS)
    return None if points is None else points * scale


@lru_cache(maxsize=256)
def _all_breakpoints(law: NoiseDistribution) -> tuple[float, Floats | None]:
    """Return how far a distribution reaches, and its breakpoints up to there."""
    end = -_lower_quantile(law, _BEYOND)
    return end, law.breakpoints(-end, end, _MOST_BREAKPOINTS)


def _pieces(x: Floats, sd: Floats, widths: Floats, breakpoints: Floats) -> tuple[Floats, Floats]:
    """Return points of the normal parts and what they weigh, in pieces between which the integrands are smooth.

    `widths` are typical of the noises, `breakpoints[i]` those of the i-th. A piece beyond the normal is empty.
    """
    offsets = _OFFSETS * widths[:, None]
    cuts = (x[:, None] - np.concatenate([breakpoints, -offsets, offsets], axis=1)) / sd[:, None]
    ends = np.broadcast_to(_NORMAL_ENDS, (len(x), len(_NORMAL_ENDS)))
    cuts = np.sort(np.concatenate([ends, np.clip(cuts, -_NORMAL_END, _NORMAL_END)], axis=1), axis=1)
    # Pieces that are empty for all are left out.
    first = np.count_nonzero(cuts <= -_NORMAL_END, axis=1).min()
    last = np.count_nonzero(cuts < _NORMAL_END, axis=1).max()
    cuts = cuts[:, first - 1 : last + 1]
    half = (cuts[:, 1:] - cuts[:, :-1]) / 2
    z = (half[:, :, None] * _NODES + (cuts[:, :-1] + half)[:, :, None]).reshape(len(x), -1)
    weight = z * z
    weight *= -0.5
    np.exp(weight, out=weight)
    weight *= (half[:, :, None] * _SCALED_WEIGHTS).reshape(len(x), -1)
    return z, weight


# Noise whose scale is itself known only up to noise: X exp(-L) beside a released scale S exp(L).
#
# A smooth-sensitivity mechanism draws S X with S private. What is released about S is S' = S exp(L), L being
# Laplace noise on the logarithm. In units of S' the error is X exp(-L), a distribution without unknown numbers: an
# interval made from its quantiles covers as often as it says, whatever S is.

_SCALE_NODES, _SCALE_WEIGHTS = leggauss(6)
# Pieces of the Laplace distribution, in its own scale: beyond 36 it holds less than 1e-15.
_PIECES = np.concatenate([np.linspace(0.0, 6.0, 13), [8.0, 11.0, 15.0, 20.0, 27.0, 36.0]])
# The distribution function is tabulated at these logarithms of |x| / interquartile range.
_LOGS = np.arange(-14.0, 70.0, 0.04)
_LEAST_TAIL = 1e-300


@dataclass(frozen=True, slots=True)
class NoiseOfNoisyScale:
    """The distribution of scale * X * exp(-L), X of `distribution` and L Laplace with scale `log_scale`; symmetric.

    `origin` is a text that says where X comes from, for those who write the distribution down.
    """

    distribution: NoiseDistribution
    scale: float
    log_scale: float
    origin: str = ""

    @property
    def variance(self) -> float:
        """The variance; infinite where the scale is too noisy (`log_scale` >= 0.5), or X has none."""
        if self.log_scale >= 0.5:
            return inf
        return self.scale**2 * self.distribution.variance / (1 - 4 * self.log_scale**2)

    def cdf(self, x: Floats) -> Floats:
        """Return P(scale X exp(-L) <= x)."""
        unit, logs = self._table()
        size = np.abs(np.asarray(x, np.float64)) / (self.scale * unit)
        with np.errstate(divide="ignore"):
            tail = 0.5 * np.exp(np.interp(np.log(size), _LOGS, logs, left=0.0))
        return np.where(np.asarray(x) < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats) -> Floats:
        """Return the x with P(scale X exp(-L) <= x) = p."""
        unit, logs = self._table()
        chance = np.asarray(p, np.float64)
        aim = np.log(np.maximum(2 * np.minimum(chance, 1 - chance), _LEAST_TAIL))
        # Tails fall with |x|: reversed, they are ascending as interpolation wants them.
        size = np.exp(np.interp(aim, logs[::-1], _LOGS[::-1])) * unit * self.scale
        size = np.where(aim >= logs[0], 0.0, size)
        return np.where(chance < 0.5, -size, size)

    def breakpoints(self, low: float, high: float, most: int) -> Floats:  # noqa: ARG002 - there is but one
        """Return the peak, the one point where the density is not smooth."""
        return np.zeros(1 if low <= 0 <= high else 0)

    def _table(self) -> tuple[float, Floats]:
        return _table(cast("Hashable", self.distribution), self.log_scale)


@lru_cache(maxsize=64)
def _table(distribution: NoiseDistribution, log_scale: float) -> tuple[float, Floats]:
    """Return a typical length of X and the logarithms of P(|X exp(-L)| > x) at the tabulated points."""
    unit = interquartile_range(distribution)
    changes, weights = _laplace_nodes(log_scale)
    points = np.exp(_LOGS[:, None] + changes) * unit
    tails = 2 * distribution.cdf(-points.ravel()).reshape(points.shape) @ weights
    return unit, np.minimum.accumulate(np.log(np.maximum(tails, _LEAST_TAIL)))


def _laplace_nodes(log_scale: float) -> tuple[Floats, Floats]:
    """Return points and weights that integrate against a Laplace distribution of this scale."""
    half = np.diff(_PIECES) / 2
    centre = (_PIECES[1:] + _PIECES[:-1]) / 2
    points = (centre[:, None] + half[:, None] * _SCALE_NODES).ravel()
    weights = (half[:, None] * _SCALE_WEIGHTS).ravel() * np.exp(-points) / 2
    weights /= 2 * weights.sum()
    return np.concatenate([-points, points]) * log_scale, np.concatenate([weights, weights])


def tail_point(distribution: NoiseDistribution, log_scale: float, alpha: float) -> float:
    """Return the x with P(|X exp(-L)| > x) = alpha, without a table: for comparing designs."""
    changes, weights = _laplace_nodes(log_scale)
    low = log(interquartile_range(distribution)) - 20.0
    high = log(interquartile_range(distribution)) + 60.0
    for _ in range(40):
        middle = (low + high) / 2
        missed = float(2 * distribution.cdf(-np.exp(middle + changes)) @ weights)
        low, high = (middle, high) if missed > alpha else (low, middle)
    return exp(high)


@lru_cache(maxsize=256)
def variance_allowance(log_scale: float, alpha: float) -> float:
    """Return the factor by which a variance known up to exp(2L) is enlarged to keep the level 1 - alpha.

    With sd the true standard deviation and sd exp(L) the known one, P(|N| > z sqrt(factor) exp(L)) = alpha.
    """
    changes, weights = _laplace_nodes(log_scale)
    z = float(-ndtri(alpha / 2))
    low, high = 0.0, 1.0

    def missed(root: float) -> float:
        return float(2 * ndtr(-z * root * np.exp(changes)) @ weights)

    while missed(high) > alpha:
        low = high
        high = 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) > alpha else (low, middle)
    return high**2


# Lattice points on either side of zero for each noise, a power of 2 within these ends; the sum has twice as many. So
# many are wanted for each interquartile range of the wider noise: half-widths then err outwards, by 0.001 at most.
_LEAST_SIDE, _MOST_SIDE, _A_RANGE = 1 << 11, 1 << 13, 90
# The lattice reaches as far as either noise does with this probability; what is beyond is put at its ends.
_SUMS_BEYOND, _ALIKE = 1e-13, 2.0**-40


@dataclass(frozen=True, slots=True)
class NoiseSum:
    """The distribution of X + ratio * Y for independent X and Y; itself a noise distribution."""

    first: NoiseDistribution
    second: NoiseDistribution
    ratio: float = 1.0

    @property
    def standard(self) -> tuple[NoiseSum, float]:
        """The sum whose wider part has scale one and comes first, and the scale."""
        parts = [_standard(cast("Hashable", one)) for one in (self.first, self.second)]
        (wide, scale, _), (other, own, _) = sorted(
            (
                (law, size * factor, size * factor * _largest_value(law))
                for (law, size), factor in zip(parts, (1.0, self.ratio), strict=True)
            ),
            key=lambda one: -one[2],
        )
        # Multiples of one sum have one law, whatever the division rounds to.
        return NoiseSum(wide, other, 2.0 ** (round(log2(own / scale) / _ALIKE) * _ALIKE)), scale

    @property
    def variance(self) -> float:
        """The sum of both variances."""
        return _sum_of_variances(cast("Hashable", self))

    def cdf(self, x: Floats) -> Floats:
        """Return P(X + ratio * Y <= x)."""
        step, below = self._table()
        position = np.abs(np.asarray(x, np.float64))
        position *= -1 / step
        position += len(below) - 1
        np.maximum(position, 0.0, out=position)
        index = np.minimum(position.astype(np.intp), len(below) - 2)
        position -= index
        low = below.take(index)
        index += 1
        tail = below.take(index)
        tail -= low
        tail *= position
        tail += low
        return np.where(np.asarray(x) < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats) -> Floats:
        """Return the x with P(X + ratio * Y <= x) = p, at most the lattice's end in size."""
        step, below = self._table()
        chance = np.asarray(p, np.float64)
        positions = np.arange(len(below))
        size = step * (positions[-1] - np.interp(np.minimum(chance, 1 - chance), below, positions))
        return np.asarray(np.where(chance < 0.5, -size, size))

    def breakpoints(self, low: float, high: float, most: int) -> Floats | None:
        """Return the breakpoints of the wider noise; those of the other are smoothed at a smaller scale."""
        law, scale = cast("tuple[NoiseSum, float]", _standard(self))
        points = law.first.breakpoints(low / scale, high / scale, most)
        return None if points is None else points * scale

    def _table(self) -> tuple[float, Floats]:
        law, scale = cast("tuple[NoiseSum, float]", _standard(self))
        step, below = _sums_table(cast("Hashable", law.first), cast("Hashable", law.second), law.ratio)
        return step * scale, below


@lru_cache(maxsize=4096)
def _sum_of_variances(noise: NoiseSum) -> float:
    return noise.first.variance + noise.ratio**2 * noise.second.variance


@lru_cache(maxsize=4096)
def _no_smaller(noise: NoiseSum) -> tuple[NoiseSum, float]:
    """Return the sum whose narrower part is a little wider, one of few but for its scale, and the least sd for it."""
    wide, other = noise.first, noise.second
    if _largest_value(wide) < noise.ratio * _largest_value(other):
        wide, other = other, wide
    law, _ = noise.standard
    ratio = 2.0 ** (ceil(2 * _RATIOS * log2(law.ratio)) / (2 * _RATIOS)) / law.ratio
    return NoiseSum(wide, other, ratio), _HIDES * sqrt(noise.variance)


@lru_cache(maxsize=128)
def _sums_table(first: NoiseDistribution, second: NoiseDistribution, ratio: float) -> tuple[float, Floats]:
    """Return the lattice step and P(X + ratio * Y <= x) at x = -2 side step, ..., -step, 0; X is the wider."""
    largest = _largest_value(first)
    wanted = min(_A_RANGE * largest / interquartile_range(first), _MOST_SIDE)
    side = max(2 ** ceil(log2(wanted)), _LEAST_SIDE)
    step = largest / side
    laws = ((cast("Hashable", first), step), (cast("Hashable", second), step / ratio))
    spectrum = np.prod([_spectrum(law, law_step, side) for law, law_step in laws], axis=0)
    # Half the mass of a point lies on either side of it.
    masses = np.maximum(np.fft.irfft(spectrum, 4 * side)[2 * side :: -1], 0.0)
    below = np.cumsum(masses)
    below -= masses / 2
    below *= 0.5 / below[-1]
    below[0] = 0.0  # nothing is beyond the lattice
    return step, below


def _largest_value(distribution: NoiseDistribution) -> float:
    return -_lower_quantile(distribution, _SUMS_BEYOND / 2)


@lru_cache(maxsize=8)
def _spectrum(distribution: NoiseDistribution, step: float, side: int) -> Floats:
    """Return the transform of the masses of the lattice points that the noise is rounded to, even around zero."""
    edges = (np.arange(side + 1, dtype=np.float64) + 0.5) * np.float64(step)
    # Lower tails keep their digits. What is beyond the last point is put on it.
    tails = distribution.cdf(-edges)
    masses = np.zeros(4 * side)
    masses[0] = 1.0 - 2.0 * float(tails[0])
    masses[1 : side + 1] = tails[:-1] - tails[1:]
    masses[side] += tails[-1]
    masses[-side:] = masses[side:0:-1]
    return np.asarray(np.fft.rfft(masses).real)


# The distribution of a weighted sum of independent symmetric noises, tabulated on a lattice.
#
# Each noise is cut at a value that it exceeds with a tiny probability; that probability is
# counted as noise of infinite size, so that tails err outwards. What is left is rounded to a lattice and
# convolved by the discrete Fourier transform.

# Points of the lattice; half of them lie on either side of zero.
_POINTS = 1 << 17
_HALF = _POINTS // 2
# What all noises together lose by being cut.
_CUT = 2e-6
# The sum of the cut noises leaves the lattice with less than this probability (Bernstein's inequality).
_WRAPPED = 1e-9


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """The distribution of the sum of weight * X over independent X; itself a noise distribution."""

    terms: tuple[tuple[float, NoiseDistribution], ...]

    @property
    def variance(self) -> float:
        """The sum of all variances; infinite where one of them is."""
        return sum(
            (weight**2 * distribution.variance for weight, distribution in self.terms if weight > 0), 0.0
        )

    def cdf(self, x: Floats) -> Floats:
        """Return P(sum <= x)."""
        step, below = self._table()
        with np.errstate(over="ignore"):  # points beyond every tail
            size = np.abs(np.asarray(x, np.float64)) / step
        tail = np.interp(_HALF - size, np.arange(_HALF + 1), below)
        return np.where(np.asarray(x) < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats) -> Floats:
        """Return the x with P(sum <= x) = p, at most the lattice's end in size."""
        step, below = self._table()
        chance = np.asarray(p, np.float64)
        size = step * (_HALF - np.interp(np.minimum(chance, 1 - chance), below, np.arange(_HALF + 1)))
        return np.where(chance < 0.5, -size, size)

    def breakpoints(self, low: float, high: float, most: int) -> Floats:  # noqa: ARG002 - there is but one
        """Return the peak; sharper breakpoints are smoothed by the other noises."""
        return np.zeros(1 if low <= 0 <= high else 0)

    def _table(self) -> tuple[float, Floats]:
        return _sum_table(cast("Hashable", self.terms))


def weighted_sum(weights: Floats, distributions: list[NoiseDistribution | None]) -> NoiseDistribution | None:
    """Return the distribution of the weighted sum, None where there is no noise; weights of zero are left out."""
    terms = [
        (float(w), distribution)
        for w, distribution in zip(weights, distributions, strict=True)
        if w > 0 and distribution is not None
    ]
    if len(terms) == 1 and terms[0][0] == 1.0:
        return terms[0][1]
    return WeightedSum(tuple(terms)) if terms else None


@lru_cache(maxsize=64)
def _sum_table(terms: tuple[tuple[float, NoiseDistribution], ...]) -> tuple[float, Floats]:
    """Return the lattice step and P(sum <= x) at x = -HALF step, ..., -step, 0."""
    cut = _CUT / len(terms)
    ends = [weight * float(-distribution.quantile(np.array([cut / 2]))[0]) for weight, distribution in terms]
    step = _half_length(terms, ends) / _HALF
    spectrum = np.ones(_HALF + 1)
    for (weight, distribution), count in Counter(terms).items():
        end = weight * float(-distribution.quantile(np.array([cut / 2]))[0])
        # The masses are even around zero, so their transform is real.
        spectrum *= np.fft.rfft(_lattice_masses(weight, distribution, step, end)).real ** count
    masses = np.maximum(np.fft.irfft(spectrum, _POINTS), 0.0)
    lower = np.append(masses[_HALF:], masses[0])  # from the far end up to zero
    below = np.cumsum(lower) - lower / 2
    # What was cut lies beyond every point, half of it on this side.
    return step, _CUT / 2 + below * ((0.5 - _CUT / 2) / below[-1])


def _half_length(terms: tuple[tuple[float, NoiseDistribution], ...], ends: list[float]) -> float:
    """Return a length that the sum of the cut noises exceeds with less than the allowed probability."""
    most = max(ends)
    variance = sum(
        min(w**2 * distribution.variance, end**2) for (w, distribution), end in zip(terms, ends, strict=True)
    )
    exponent = log(2 / _WRAPPED)
    bernstein = most * exponent / 3 + sqrt((most * exponent / 3) ** 2 + 2 * exponent * variance)
    return min(sum(ends), bernstein) * (1 + 2 / _HALF)


def _lattice_masses(weight: float, distribution: NoiseDistribution, step: float, end: float) -> Floats:
    """Return the probabilities of the lattice points 0, 1, ..., HALF, -HALF + 1, ..., -1, in that order."""
    last = min(int(np.ceil(end / step)), _HALF - 1)
    edges = (np.arange(last + 1, dtype=np.float64) + 0.5) * (step / weight)
    tails = distribution.cdf(-edges)
    outwards = tails[:-1] - tails[1:]  # points 1, ..., last
    masses = np.zeros(_POINTS)
    masses[0] = 1.0 - 2.0 * float(tails[0])
    masses[1 : last + 1] = outwards
    masses[_POINTS - last :] = outwards[::-1]
    return masses


@lru_cache(maxsize=64)
def ball_factor(level: float, dimensions: int) -> float:
    """Return by how much one coordinate of l2-ball noise, of 2 or 3, exceeds normal noise at this level, squared.

    In k dimensions a coordinate has variance k + 1.
    """
    beyond = _beyond_of_three if dimensions == 3 else _beyond_of_two
    low, high = 0.0, 800.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - level else (low, middle)
    return max(1.0, (high / sqrt(dimensions + 1) / -float(ndtri((1 - level) / 2))) ** 2)


def _beyond_of_three(q: float) -> float:
    """Return how often a coordinate exceeds q in size."""
    return exp(-q) * (2 + q) / 2


def _beyond_of_two(q: float) -> float:
    """Return how often a coordinate exceeds q in size: its density is |x| K1(|x|) / pi."""
    nodes, weights = _nodes()
    x = q + 20 * (nodes + 1)
    return float(2 / pi * 20 * (weights @ (x * np.asarray(k1(x))))) if q < 700 else 0.0


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Return nodes and weights of the integral: finding them takes far longer than using them."""
    return leggauss(80)


# Normal quantile of the least p-value that is told, about 1e-12.
_FARTHEST = 7.13
# Half-widths are matched to this part of the distance, p-values about to ten times it.
_NEAR = 1e-4
_TINY = 1e-300


def p_value_from(half_width: Callable[[float], float], distance: float, level: float, bias: float) -> float:
    """Return the least alpha at which `half_width(1 - alpha)` is less than the distance, from 1e-12 to 1.

    It is below 1 - level exactly where the interval of that level leaves out what lies this far off. Half-widths are
    `bias` at level 0.
    """
    distance = abs(distance)
    alpha = 1 - level
    beyond = distance - bias
    if beyond <= 0:
        return 1.0

    def relative(z: float) -> float:
        return half_width(1 - 2 * float(ndtr(-z))) / distance

    # Along normal quantiles half-widths are nearly straight lines, and their logarithms beyond: few are computed.
    here = -float(ndtri(alpha / 2))
    ratio = half_width(level) / distance
    if ratio >= 1:
        start = (0.0, -beyond / distance)
        found = _crossing(lambda z: relative(z) - 1, start, (here, ratio - 1))
        return max(2 * float(ndtr(-found)), alpha)
    farthest = max(_FARTHEST, here)
    last = (here, ratio)
    z = min(here / max(ratio, _TINY), farthest)
    while (reached := relative(z)) < 1:
        if z >= farthest:
            return 2 * float(ndtr(-farthest))
        last = (z, reached)
        z = min(1.5 * z, farthest)
    low, high = ((z, log(max(value, _TINY))) for z, value in (last, (z, reached)))
    found = _crossing(lambda z: log(relative(z)), low, high)
    return min(2 * float(ndtr(-found)), nextafter(alpha, 0.0))


def _crossing(excess: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]) -> float:
    """Return where a rising function is 0, by false position with the Illinois rule; ends come with their values.

    The function is below 0 at the lower end, and not at the upper one.
    """
    (a, at_a), (b, at_b) = low, high
    side = 0
    # What noise adds to a variance is found in steps, so that half-widths may jump over the value looked for.
    while b - a > _NEAR * b:
        middle = b - at_b * (b - a) / (at_b - at_a)
        value = excess(middle)
        if abs(value) <= _NEAR:
            return middle
        if value < 0:
            a = middle
            at_a = value
            at_b = at_b / 2 if side == -1 else at_b
            side = -1
        else:
            b = middle
            at_b = value
            at_a = at_a / 2 if side == 1 else at_a
            side = 1
    return b


# How much to add to a noisy variance so that the interval built from it keeps its level.
#
# An interval needs the sampling variance V, but only V + xi is known, xi being privacy noise. Adding
# a high quantile of xi and paying for it by Bonferroni is valid and wasteful: an interval a little too
# narrow for its V still covers almost as often as it should. Here V + xi is first taken for the median p of
# what V can be (`positive_part`), so that a release near or below zero is never read as no sampling error.
# Then the smallest constant kappa is found such that, averaged over xi, intervals built from
# min(p + kappa, HEADROOM * cap) cover at the wanted level whatever V in [0, cap] is. (With no headroom above
# the cap, V = cap could never be covered often enough.) Only public numbers enter: the two noise
# distributions, the cap and the level.

# An inflated variance may exceed the largest possible one by this factor.
HEADROOM = 1.1
# The grids below reproduce exact coverages to about 4e-4, or to less where alpha is small. The search aims
# this much higher: at least the first of these parts of alpha, at most the second.
_MARGIN, _PARTS = 2e-4, (1 / 200, 1 / 4)
# A cap below this part of the interquartile range of the variance's noise is used itself, with the headroom: what
# was released tells nothing, and the grids below are not made for it.
_TELLS_NOTHING = 1e-5
# Variances that are tried, beside 0 and the largest: those of a geometric series, in squared interquartile ranges of
# the noise, that lie between these multiples of the interquartile range of their own noise.
_TRIED, _LEAST_TRIED, _MOST_TRIED = 2.0 ** np.arange(-20, 60, 0.5), 1 / 50, 200.0
# Standard deviations that intervals are calibrated on, in interquartile ranges of the noise: so many an octave, above
# what is as good as none, to where the noise is. Numbers whose binary logarithms agree to this part are one.
_OCTAVE, _LOWEST, _HIGHEST, _AGREE = 16, -8, 30, 2.0**-26
_GRID = 2.0 ** np.arange(_LOWEST, _HIGHEST, 1 / _OCTAVE)
# Sums of two noises whose ratios of scales agree to a quarter of an octave are calibrated as one; intervals with a
# sampling error of so many of the noise's standard deviations are found as one where they agree to an eighth.
_RATIOS, _HIDES = 4, 4.0
# Numbers below this are none.
_LEAST = 2.0**-60
# Inflations that are searched for together.
_MOST_INFLATED = 1024
# The constant kappa is found to the first part of the noise's interquartile range, and rounded upwards, or until
# misses fall short of their aim by less than the second.
_PRECISION, _ENOUGH = 1 / 128, 1 / 8192
# Secant steps for a half-width, at most. They end when its tail is within _NEAR of alpha, as a part of alpha.
_MOST_STEPS = 60
# How many of the variances that are missed most often are searched first.
_FEW = 3
# Where the sampling error is this much wider than the noise, it is the smooth part of the convolution.
_WIDE = 1.5


def _normal_rule(nodes: int, end: float) -> tuple[Floats, Floats]:
    """Return nodes and weights that integrate against the standard normal density."""
    z, w = leggauss(nodes)
    return end * z, end * w * np.exp(-((end * z) ** 2) / 2) / sqrt(2 * pi)


def level_rule(low: int, high: int) -> tuple[Floats, Floats]:
    """Return levels and weights that average over a distribution; they crowd towards both ends of it."""
    (u, v), (u_high, v_high) = leggauss(low), leggauss(high)
    u = (1 + u) / 2
    v = v / 2
    u_high = (1 + u_high) / 2
    v_high = v_high / 2
    levels = np.concatenate([u**2 / 2, (1 - u_high**2 / 2)[::-1]])
    return levels, np.concatenate([u * v, (u_high * v_high)[::-1]])


_Z, _W = _normal_rule(56, 6.0)
# Too small a variance misses more often than too large a one, so the lower half has more of the levels.
_LEVELS, _SHARES = level_rule(64, 32)
# Of the other noise the upper half matters, beyond the interval's end.
_NOISE_LEVELS, _NOISE_SHARES = level_rule(16, 48)
_NOISE_POINTS = tuple(_NOISE_LEVELS.tolist())


def tails(sd: Floats, h: Floats, noises: NoiseBatch) -> Floats:
    """Return P(|N + X_i| > h[i]) for N with standard deviation sd[i]."""
    beyond = np.empty_like(h)
    wide = sd > _WIDE * noises.widths
    together = _AT_ONCE // len(_NOISE_SHARES)
    for chosen, chances in ((~wide, _narrow_tails), (wide, _wide_tails)):
        rows = np.flatnonzero(chosen)
        for start in range(0, len(rows), together):
            batch = rows[start : start + together]
            beyond[batch] = chances(sd[batch, None], h[batch, None], noises.of(batch))
    return 2 * beyond


def _narrow_tails(sd: Floats, h: Floats, noises: NoiseBatch) -> Floats:
    """Return P(N + X > h) as an average over N."""
    return np.asarray(noises.cdf(sd * _Z - h) @ _W)


def _wide_tails(sd: Floats, h: Floats, noises: NoiseBatch) -> Floats:
    """Return P(N + X > h) as an average over X."""
    points = noises.points(_NOISE_POINTS) - h
    points /= sd
    return np.asarray(ndtr(points, out=points) @ _NOISE_SHARES)


def half_widths(sd: Floats, noises: NoiseBatch, alpha: Floats) -> Floats:
    """Return for every sd the h with P(|N + X| > h) = alpha, by secants of the tail's logarithm."""
    noise_quantile = -noises.quantile(alpha / 2)
    normal = -ndtri(alpha / 2) * sd
    # Exact for normal noise; the usual distributions have heavier tails, and their answer is a little less.
    last = np.where(sd == 0, noise_quantile, np.hypot(noise_quantile, normal))
    h = np.where(sd == 0, noise_quantile, 0.97 * last)
    low = np.zeros_like(h)
    high = np.full_like(h, np.inf)
    before = _excess(sd, last, noises, alpha)
    excess = before.copy()
    open_ = np.arange(len(h))
    for _ in range(_MOST_STEPS):
        excess[open_] = _excess(sd[open_], h[open_], noises.of(open_), alpha[open_])
        open_ = np.flatnonzero(np.abs(excess) > _NEAR)
        if not len(open_):
            break
        low, high = np.where(excess > 0, h, low), np.where(excess > 0, high, h)
        rise = (excess - before) / np.where(h == last, np.inf, h - last)
        trial = h - excess / np.minimum(rise, -1e-300)
        # What leaves the bracket is replaced by its middle, or by twice the width while it is open.
        middle = np.where(high < np.inf, (low + high) / 2, 2 * h)
        last = h
        before = excess.copy()
        h = np.where(np.abs(excess) <= _NEAR, h, np.where((trial > low) & (trial < high), trial, middle))
    return h


def _excess(sd: Floats, h: Floats, noises: NoiseBatch, alpha: Floats) -> Floats:
    """Return log(P(|N + X| > h) / alpha) for every pair of sd and h."""
    return np.asarray(np.log(np.maximum(tails(sd, h, noises), 1e-300) / alpha))


def positive_part(released: Floats, noise: NoiseDistribution | NoiseBatch) -> Floats:
    """Return the median of what V >= 0 can be where V plus noise was released and no V is likelier than another.

    It is above 0 and no less than what was released, nearly the same where that is far above the noise. What came out
    below 0 is taken as 0: the lower half of the noise says nothing more about V.
    """
    at = np.maximum(released, 0.0)
    return np.asarray(at - noise.quantile(noise.cdf(at) / 2))


# A noise, that of the variance, the cap and alpha.
Inflated = tuple[NoiseDistribution, NoiseDistribution, float, float]
_LIKELY: dict[tuple[float, NoiseDistribution], float] = {}
_INFLATIONS: dict[Inflated, float] = {}


def likely_variances(released: Sequence[tuple[float, NoiseDistribution]]) -> list[float]:
    """Return the positive parts of variances that were released with these noises."""

    def solve(new: list[tuple[float, NoiseDistribution]]) -> list[float]:
        laws, scales = _shapes([noise for _, noise in new])
        variances: list[float] = (
            scales * positive_part(np.array([variance for variance, _ in new]) / scales, laws)
        ).tolist()
        return variances

    return remembered(_LIKELY, released, solve)


def inflation(
    distribution: NoiseDistribution, variance_noise: NoiseDistribution, cap: float, alpha: float
) -> float:
    """Return the smallest kappa beyond `positive_part` that keeps the level 1 - alpha for all variances in [0, cap].

    Infinity where the variance's noise dwarfs the cap: the interval is then built on the cap with its headroom.
    """
    return inflations([(distribution, variance_noise, cap, alpha)])[0]


def inflations(requests: Sequence[Inflated]) -> list[float]:
    """Return the `inflation` of each, searched for together."""
    return remembered(_INFLATIONS, requests, _inflations, _MOST_INFLATED)


def _inflations(requests: list[Inflated]) -> list[float]:
    noises, scales = _shapes([noise for noise, _, _, _ in requests])
    variance_noises, units = _shapes([noise for _, noise, _, _ in requests])
    units = units * variance_noises.widths
    caps = np.array([cap for _, _, cap, _ in requests]) / units
    alphas = np.array([alpha for _, _, _, alpha in requests])
    released = np.flatnonzero(caps >= _TELLS_NOTHING)
    tops = np.minimum(caps, _MOST_TRIED)
    # Noise that is nothing beside the sampling error is taken at what is nothing, too.
    spread = np.sqrt(units * (HEADROOM * tops + _MOST_TRIED))
    squares = units / np.maximum(scales * noises.widths, spread / 2.0 ** (_HIGHEST - 1)) ** 2
    tried = [
        np.concatenate(
            [[0.0], trials[(trials > _LEAST_TRIED) & (trials < tops[i] * (1 - _ROUNDING))], tops[i : i + 1]]
        )
        for i in released
        for trials in [_TRIED / squares[i]]
    ]
    case = np.repeat(released, list(map(len, tried)))
    variances = np.concatenate([[0.0], *tried])[1:]
    misses = _Misses(noises, alphas, case, np.sqrt(squares[case] * variances))
    positive, which_positive = _positive_parts(variance_noises, case, variances)

    def built(row: NDArray[np.intp], kappa: Floats) -> Floats:
        inflated = positive[which_positive[row]]
        inflated += kappa[:, None]
        np.minimum(inflated, HEADROOM * caps[case[row], None], out=inflated)
        inflated *= squares[case[row], None]
        return inflated

    # From `most` on every variance is taken at its largest: more changes nothing.
    lowest = variance_noises.points((float(_LEVELS[0]),))[:, 0] / variance_noises.widths
    ends = np.cumsum([0, *map(len, tried)]).tolist()
    searches = [
        least_inflation(
            np.arange(*ends[number : number + 2]), aimed_at(alphas[i]), 1.0, HEADROOM * caps[i] - lowest[i]
        )
        for number, i in enumerate(released)
    ]
    kappas = np.full(len(requests), inf)
    kappas[released] = in_step(searches, misses.asked(built, _SHARES))
    return list((kappas * units).tolist())


def _shapes(distributions: Sequence[NoiseDistribution]) -> tuple[NoiseBatch, Floats]:
    """Return the laws that noises are calibrated as, and their scales."""
    shapes = [_shape(cast("Hashable", noise)) for noise in distributions]
    return NoiseBatch([law for law, _ in shapes]), np.array([scale for _, scale in shapes])


@lru_cache(maxsize=4096)
def _shape(distribution: NoiseDistribution) -> tuple[NoiseDistribution, float]:
    """Return a law and a scale: exact, but for sums, which are one of few with the same variance."""
    law, scale = _standard(cast("Hashable", distribution))
    if not isinstance(law, NoiseSum) or not isfinite(law.variance):
        return law, scale
    near = replace(law, ratio=2.0 ** (round(_RATIOS * log2(law.ratio)) / _RATIOS))
    return near, scale * sqrt(law.variance / near.variance)


def _positive_parts(
    noises: NoiseBatch, case: NDArray[np.intp], variances: Floats
) -> tuple[Floats, NDArray[np.intp]]:
    """Return what variances can be taken for, level by level of their noise, and which is whose; all in its ranges."""
    keys, first, which = _distinct(noises.which[case], variances)
    chosen = noises.of(case[first])
    width = noises.widths[case[first], None]
    xi = chosen.points(tuple(_LEVELS.tolist()))
    return positive_part(keys[:, None] * width + xi, chosen) / width, which


def _distinct(group: NDArray[np.intp], numbers: Floats) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """Return the numbers of all groups that do not agree, rounded, the place of one of each, and which is whose."""
    logs = np.round(np.log2(np.maximum(numbers, _LEAST)) / _AGREE)
    _, first, which = np.unique(group * 2.0**40 + logs, return_index=True, return_inverse=True)
    return np.where(numbers[first] > _LEAST, 2.0 ** (logs[first] * _AGREE), 0.0), first, which


def aimed_at(alpha: float) -> float:
    """Return how often intervals may miss on the grids for them to miss no more often than `alpha`."""
    return alpha - min(max(_MARGIN, _PARTS[0] * alpha), _PARTS[1] * alpha)


# A constant and the variances whose misses are asked for; the answer is how often each is missed.
Asking = tuple[float, NDArray[np.intp]]


def least_inflation(
    everyone: NDArray[np.intp], aim: float, unit: float, most: float
) -> Generator[Asking, Floats, float]:
    """Return the least kappa at which none of the variances is missed more often than `aim`; not beyond about `most`.

    A few variances are the worst ones for every kappa. They are searched, and what is found is tried on all: those
    that are still missed too often are searched from there.
    """

    def excess(kappa: float, rows: NDArray[np.intp]) -> Generator[Asking, Floats, Floats]:
        # Logarithms fall more evenly than the misses themselves.
        return np.log((yield kappa, rows) / aim)

    low = 0.0
    high = unit
    at_low = yield from excess(low, everyone)
    if at_low.max() <= 0:
        return low
    at_high = yield from excess(high, everyone)
    few = sorted({index for misses in (at_low, at_high) for index in misses.argsort()[-_FEW:].tolist()})
    while True:
        ends = (low, max(at_low[few].tolist())), (high, max(at_high[few].tolist()))
        low = yield from _least_root(partial(excess, rows=everyone[few]), *ends, unit, most)
        at_low = yield from excess(low, everyone)
        few = np.flatnonzero(at_low > 0).tolist()
        high = low + unit / 4
        if low >= most or not few:
            return low
        at_high = yield from excess(high, everyone)


class _Misses:
    """How often intervals built for one standard deviation miss where another is true, for each noise and level.

    True ones are given row by row, with the case that names noise and alpha, in interquartile ranges of the noise.
    Logarithms are nearly straight between the points of `_GRID`, so interpolating them loses little. A point of a
    table is computed when it is first asked for: most never are.
    """

    def __init__(self, noises: NoiseBatch, alphas: Floats, case: NDArray[np.intp], true: Floats) -> None:
        # Cases of one law and level share half-widths, and rows of one deviation their misses.
        laws, first, table = np.unique(
            np.stack([noises.which, alphas]), axis=1, return_index=True, return_inverse=True
        )
        self._noises = noises.of(first)
        self._alphas = laws[1]
        self._half_widths = np.full((len(first), len(_GRID)), np.nan)
        self._true, first_of_row, self._row = _distinct(table[case], true)
        self._table = table[case[first_of_row]]
        self._logs = np.full((len(first_of_row), len(_GRID)), np.nan)
        # The columns of each row that are known.
        self._known = np.repeat([[len(_GRID)], [-1]], len(first_of_row), axis=1)

    def asked(
        self, built: Callable[[NDArray[np.intp], Floats], Floats], shares: Floats
    ) -> Callable[[list[int], list[Asking]], list[Floats]]:
        """Return what answers searches: misses averaged over the variances that `built` gives for a constant."""

        def evaluate(_: list[int], requests: list[Asking]) -> list[Floats]:
            counts = [len(rows) for _, rows in requests]
            row = np.concatenate([rows for _, rows in requests])
            kappa = np.repeat([kappa for kappa, _ in requests], counts)
            misses = np.empty(len(row))
            together = _AT_ONCE // len(shares)
            for batch in (slice(start, start + together) for start in range(0, len(row), together)):
                misses[batch] = self._mean(self._row[row[batch]], built(row[batch], kappa[batch]), shares)
            ends = np.cumsum([0, *counts]).tolist()
            return [misses[start:end] for start, end in pairwise(ends)]

        return evaluate

    def _mean(self, row: NDArray[np.intp], variances: Floats, shares: Floats) -> Floats:
        position = np.log2(np.maximum(variances, _GRID[0] ** 2, out=variances), out=variances)
        position *= _OCTAVE / 2
        position -= _LOWEST * _OCTAVE
        np.clip(position, 0, len(_GRID) - 1 - 1e-9, out=position)
        index = position.astype(np.intp)
        self._fill(row, index)
        position -= index
        index += (row * len(_GRID))[:, None]
        # Places are inside: clipping them checks the least.
        low = self._logs.take(index, mode="clip")
        index += 1
        position *= self._logs.take(index, mode="clip") - low
        position += low
        return np.asarray(np.exp(position, out=position) @ shares)

    def _fill(self, row: NDArray[np.intp], index: NDArray[np.intp]) -> None:
        low = index.min(axis=1)
        high = index.max(axis=1) + 1
        wider = (low < self._known[0, row]) | (high > self._known[1, row])
        if not wider.any():
            return
        low, high, row = low[wider], high[wider], row[wider]
        np.minimum.at(self._known[0], row, low)
        np.maximum.at(self._known[1], row, high)
        row = np.unique(row)
        columns = np.arange(len(_GRID))
        wanted = (columns >= self._known[0, row, None]) & (columns <= self._known[1, row, None])
        which, column = np.nonzero(wanted & np.isnan(self._logs[row]))
        row = row[which]
        table = self._table[row]
        new = np.isnan(self._half_widths[table, column])
        tables, cells = np.divmod(np.unique(table[new] * len(columns) + column[new]), len(columns))
        chosen = self._noises.of(tables)
        self._half_widths[tables, cells] = half_widths(
            _GRID[cells] * chosen.widths, chosen, self._alphas[tables]
        )
        chosen = self._noises.of(table)
        missed = tails(self._true[row] * chosen.widths, self._half_widths[table, column], chosen)
        self._logs[row, column] = np.log(np.maximum(missed, 1e-300))


def _least_root(
    excess: Callable[[float], Generator[Asking, Floats, Floats]],
    low: tuple[float, float],
    high: tuple[float, float],
    unit: float,
    most: float,
) -> Generator[Asking, Floats, float]:
    """Return where the largest excess falls to 0 or a little below; ends come with their values."""
    (lower, at_lower), (upper, at_upper) = low, high
    while upper < most and at_upper > 0:
        # As far again as the line through both ends says, and a little farther.
        ahead = 1.1 * at_upper / max(at_lower - at_upper, at_upper / 8)
        step = min(max(ahead, 0.5), 8.0) * (upper - lower)
        lower = upper
        at_lower = at_upper
        upper = upper + step
        at_upper = max((yield from excess(upper)).tolist())
    side = 0
    while at_upper < -_ENOUGH and upper - lower > _PRECISION * unit:
        # False position with the Illinois rule, aimed a little high so that the upper end closes in.
        middle = lower + (upper - lower) * at_lower / (at_lower - at_upper) + _PRECISION / 2 * unit
        middle = min(middle, (lower + 7 * upper) / 8)
        value = max((yield from excess(middle)).tolist())
        if value > 0:
            lower = middle
            at_lower = value
            at_upper = at_upper / 2 if side == 1 else at_upper
            side = 1
        else:
            upper = middle
            at_upper = value
            at_lower = at_lower / 2 if side == -1 else at_lower
            side = -1
    return upper


def biased_half_widths(halves: Floats, biases: Floats, level: float) -> Floats:
    """Return half-widths of intervals that hold for every bias up to these; `halves` are those without bias.

    Errors are normal, or carried as if they were at this level (Armstrong and Kolesar 2018).
    """
    normal = -float(ndtri((1 - level) / 2))
    plain = (biases <= 0) | (halves <= 0) | (normal <= 0)
    if plain.all():
        return np.asarray(halves + np.maximum(biases, 0.0))
    shift = biases * normal / np.where(plain, 1.0, halves)
    low = np.full(len(halves), normal)
    high = normal + shift
    for _ in range(30):  # halvings
        middle = (low + high) / 2
        missed = ndtr(shift - middle) + ndtr(-shift - middle) > 1 - level
        low, high = np.where(missed, middle, low), np.where(missed, high, middle)
    return np.where(plain, halves + np.maximum(biases, 0.0), halves * high / normal)


def biased_half_width(half: float, bias: float, level: float) -> float:
    """Return the same of one interval."""
    return float(biased_half_widths(np.array([half]), np.array([bias]), level)[0])


@dataclass(frozen=True, slots=True)
class Uncertainty:
    r"""What is known about the error of one estimate; every number in it is public or released.

    Attributes
    ----------
    noise : NoiseDistribution or None
        Distribution of the privacy noise; None for no noise.
    variance : float
        Sampling variance, as released where it is private: then it may lie outside [0, `variance_cap`].
    variance_cap : float
        Largest sampling variance that is possible.
    variance_noise : NoiseDistribution or None
        Noise of `variance`; None where it was not released, and is public or the cap itself.
    extra : float
        Variance of small noise terms that are carried as if they were normal.
    bias : float
        Bound of an error that no averaging removes: intervals hold for every error up to it.
    ball_variance : float
        Variance of one coordinate of l2-ball noise, carried as normal noise that is as wide at each level.
    ball_dimensions : {0, 2, 3}
        Dimensions of that noise; 0 for none.

    Notes
    -----
    The error is N(0, V) + X + b with X the privacy noise and \|b\| <= bias. Where V was released with noise
    xi, an interval takes min(p + kappa, 1.1 cap) for V: p is the most plausible variance behind the release,
    and kappa the smallest constant with which intervals cover at their level, averaged over xi, whatever V in
    [0, cap] is.
    """

    noise: NoiseDistribution | None
    variance: float
    variance_cap: float
    variance_noise: NoiseDistribution | None = None
    extra: float = 0.0
    bias: float = 0.0
    ball_variance: float = 0.0
    ball_dimensions: int = 0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, as far as it is known.

        It is above 0 where noise leaves variances above 0 possible.
        """
        return sqrt(min(self.likely_variance(), self.variance_cap))

    def likely_variance(self) -> float:
        """Return the sampling variance that the released one stands for.

        Returns
        -------
        float
            At least 0, in squared units of the estimate.
        """
        if self.variance_noise is None:
            return max(self.variance, 0.0)
        return likely_variances([(self.variance, self.variance_noise)])[0]

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise; infinite for distributions without one."""
        variance = self.noise.variance if self.noise is not None else 0.0
        return sqrt(variance + self.extra + self.ball_variance) if variance < inf else inf

    @property
    def total_sd(self) -> float:
        """Standard deviation of sampling error and privacy noise together."""
        return sqrt(self.sampling_sd**2 + self.noise_sd**2)

    def known_variance(self, alpha: float) -> float:
        """Return the sampling variance that an interval is built on: enlarged where it is noisy.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Variance, in squared units of the estimate.
        """
        if self.variance_noise is None:
            return self.variance
        kappa = inflation(self.noise or self.variance_noise, self.variance_noise, self.variance_cap, alpha)
        return min(self.likely_variance() + kappa, HEADROOM * self.variance_cap)

    def known_sd(self, alpha: float) -> float:
        """Return the standard deviation of the normal part that an interval is built on.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Standard deviation, in units of the estimate.
        """
        return sqrt(self.known_variance(alpha) + self.extra_at(alpha))

    def extra_at(self, alpha: float) -> float:
        """Return the variance of the noise that an interval carries as if it were normal.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Variance, in squared units of the estimate.
        """
        if not self.ball_variance:
            return self.extra
        return self.extra + self.ball_variance * ball_factor(1 - alpha, self.ball_dimensions)

    def half_width(self, level: float) -> float:
        """Return h such that (estimate - h, estimate + h) covers with probability at least `level`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            Half-width, in units of the estimate.
        """
        half = half_width(self.known_sd(1 - level), self.noise, 1 - level)
        return biased_half_width(half, self.bias, level) if self._normal else half + self.bias

    @property
    def _normal(self) -> bool:
        """Whether the whole error is carried as normal, which a bias shifts: only one end is then far off."""
        return self.noise is None and self.variance_noise is None

    def naive_half_width(self, level: float) -> float:
        """Return the half-width that ignores the noise: too short, for comparison only.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            Half-width, in units of the estimate.
        """
        return half_width(self.sampling_sd, None, 1 - level)

    def p_value(self, distance: float, level: float) -> float:
        r"""Return P(\|error\| > \|distance\|).

        Parameters
        ----------
        distance : float
            Distance of the estimate from the tested value, of either sign.
        level : float
            Noisy variances are enlarged as for an interval of this level, in (0, 1).

        Returns
        -------
        float
            Two-sided p-value, privacy noise included.
        """
        if self.ball_variance:  # whose part grows with the level
            return p_value_from(self.half_width, distance, level, 0.0 if self._normal else self.bias)
        sd = self.known_sd(1 - level)
        off = abs(distance)
        if self._normal:
            return min(1.0, tail(off - self.bias, sd, None) + tail(off + self.bias, sd, None))
        return min(1.0, 2 * tail(self.beyond(distance), sd, self.noise))

    def beyond(self, distance: float) -> float:
        r"""Return what of a distance the bias does not explain.

        Parameters
        ----------
        distance : float
            Distance of the estimate from a value, of either sign.

        Returns
        -------
        float
            max(\|distance\| - bias, 0).
        """
        return max(abs(distance) - self.bias, 0.0)


def solve_together(errors: Sequence[tuple[float, Uncertainty]], levels: Sequence[float]) -> None:
    """Solve what intervals and p-values of these estimates need at some levels at once; they are then at hand."""
    plain = [(estimate, known) for estimate, known in errors if type(known) is Uncertainty]
    alphas = [1 - level for level in levels]
    noisy = [(known, known.variance_noise) for _, known in plain if known.variance_noise is not None]
    likely_variances([(known.variance, noise) for known, noise in noisy])
    inflations(
        [
            (known.noise or noise, noise, known.variance_cap, alpha)
            for known, noise in noisy
            for alpha in alphas
        ]
    )
    sds = [(known.known_sd(alpha), alpha, estimate, known) for estimate, known in plain for alpha in alphas]
    exact_half_widths([(alpha, sd, known.noise) for sd, alpha, _, known in sds])
    tails_beyond(
        [
            (known.beyond(estimate), sd, known.noise)
            for sd, _, estimate, known in sds
            if not known.ball_variance
        ]
    )


_DRAWS = 4000  # public normal vectors that the width of a band is read off
# Directions that hold less than this part of the variance are left to Scheffé's bound, not drawn.
_NEGLIGIBLE = 1e-6
# Points beyond which the largest deviation is looked for on an evenly spaced part of them.
_MOST_POINTS = 2000


def deviations(features: Floats, covariance: Floats) -> Floats:
    """Return the standard deviation of features @ w at every row, for weights w of this covariance."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,ij->i", features @ covariance, features), 0.0)))


def pointwise(level: float) -> float:
    """Return how many standard deviations an interval at one point takes."""
    return -float(ndtri((1 - level) / 2))


def simultaneous(features: Floats, covariance: Floats, level: float) -> float:
    """Return how many standard deviations hold at all rows at once, with this probability.

    The quantile of the largest standardised deviation over the rows, from a fixed set of normal draws; never
    below that of one point nor above Scheffé's bound for all linear combinations.
    """
    rows = features[:: max(1, -(-len(features) // _MOST_POINTS))]
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    positive = values > _NEGLIGIBLE * max(float(values[-1]), 0.0)
    root = vectors[:, positive] * np.sqrt(values[positive])
    directions = rows @ root
    size = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    directions = directions[size > 0] / size[size > 0, None]
    pointwise_width = pointwise(level)
    if not len(directions):
        return pointwise_width
    largest = np.abs(public_normals(_DRAWS, directions.shape[1], 1) @ directions.T).max(axis=1)
    scheffe = float(np.sqrt(chdtri(int(positive.sum()), 1 - level)))
    return min(max(pointwise_width, float(np.quantile(largest, level))), scheffe)


# Intervals that hold for several contrasts at once. Proof: simultaneous.proof.md.


# Proof: simultaneous.proof.md
def level_of_each(level: float, count: int) -> float:
    """Return the level at which each of `count` contrasts must hold for all to hold together (Šidák)."""
    # Rounded to one, a level would ask for everything: the largest double below it is as near as levels get.
    return min(float(level ** (1.0 / count)), 1.0 - 2.0**-53)


def adjusted_p(p: float, count: int) -> float:
    """Return the p-value of one of `count` contrasts, adjusted for looking at all of them (Šidák)."""
    # 1 - (1 - p)^count without losing the digits of a small p.
    return 1.0 if p >= 1 else -expm1(count * log1p(-p))


# Levels that average over the noise of a standard error and over its own sampling distribution.
_CLUSTERS_LEVELS, _CLUSTERS_SHARES = level_rule(40, 20)
_OWN_LEVELS, _OWN_SHARES = level_rule(12, 8)
_CLUSTERS_TRIED = 20
# A standard error that is built on exceeds the largest possible one at most by this factor: estimates of it vary, and
# cut at the largest they would be too small on average.
_HEADROOM = 2.0


def t_factor(freedom: float, alpha: float) -> float:
    """Return by how much the quantile of Student's t exceeds the normal one."""
    return float(stdtrit(freedom, 1 - alpha / 2) / -ndtri(alpha / 2))


@dataclass(frozen=True, slots=True)
class ClusterUncertainty(Uncertainty):
    """What is known about an error whose standard error comes from clusters.

    Attributes
    ----------
    noise : NoiseDistribution or None
        Distribution of the privacy noise; None for no noise.
    variance : float
        Square of the standard error as released; 0 where that came out below 0.
    variance_cap : float
        Largest sampling variance that is possible.
    variance_noise : NoiseDistribution or None
        Noise of `variance`, where that was released instead of its root.
    extra : float
        Variance of small noise terms that are carried as if they were normal.
    bias : float
        Bound of an error that no averaging removes.
    ball_variance : float
        Variance of one coordinate of l2-ball noise.
    ball_dimensions : {0, 2, 3}
        Dimensions of that noise; 0 for none.
    sd_noise : NoiseDistribution or None
        Noise of the standard error; None where it has none of its own.
    freedom : float
        Its degrees of freedom, from public or released numbers: intervals are Student's t.
    """

    sd_noise: NoiseDistribution | None = None
    freedom: float = 1e6

    @property
    def _normal(self) -> bool:
        return False  # tails are those of t: an interval is longer by the whole bias

    def likely_variance(self) -> float:
        """Return the sampling variance that the released standard error stands for.

        Returns
        -------
        float
            At least 0, in squared units of the estimate.
        """
        if self.sd_noise is None:
            return Uncertainty.likely_variance(self)
        return float(positive_part(np.array([sqrt(self.variance)]), self.sd_noise)[0]) ** 2

    def known_variance(self, alpha: float) -> float:
        """Return the variance of the normal part that an interval is built on.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Variance, in squared units of the estimate.
        """
        factor = t_factor(self.freedom, alpha)
        if self.sd_noise is None:
            return factor**2 * Uncertainty.known_variance(self, alpha)
        assert self.noise is not None  # a released standard error goes with a released estimate
        cap = sqrt(self.variance_cap)
        noises = cast("Hashable", self.noise), cast("Hashable", self.sd_noise)
        kappa = sd_inflation(*noises, cap, self.freedom, alpha)
        return (factor * min(sqrt(self.likely_variance()) + kappa, _HEADROOM * cap)) ** 2

    def known_sd(self, alpha: float) -> float:
        """Return the standard deviation of the normal part that an interval is built on.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Standard deviation, in units of the estimate.
        """
        # Noise that the clusters hold was estimated with them: it has their degrees of freedom.
        return sqrt(self.known_variance(alpha) + t_factor(self.freedom, alpha) ** 2 * self.extra)

    def p_value(self, distance: float, level: float) -> float:
        """Return the least alpha whose interval leaves out what lies this far off, by tails of t.

        Parameters
        ----------
        distance : float
            Distance of the estimate from the tested value, of either sign.
        level : float
            Noisy variances are enlarged as for an interval of this level, in (0, 1).

        Returns
        -------
        float
            Two-sided p-value, privacy noise included.
        """
        return p_value_from(self.half_width, distance, level, self.bias)


@lru_cache(maxsize=4096)
def sd_inflation(
    noise: NoiseDistribution, sd_noise: NoiseDistribution, cap: float, freedom: float, alpha: float
) -> float:
    """Return the smallest kappa that keeps the level 1 - alpha for every standard error in [0, cap]."""
    unit = interquartile_range(sd_noise)
    factor = t_factor(freedom, alpha)
    top = min(cap, _MOST_TRIED * unit)
    ends = _HEADROOM * cap
    errors = np.append(0.0, np.geomspace(min(unit / 50, top / 2), top, _CLUSTERS_TRIED - 1))
    width = max(interquartile_range(noise), factor * (top + _MOST_TRIED * unit) / 2.0 ** (_HIGHEST - 1))
    misses = _Misses(
        NoiseBatch([_standard(cast("Hashable", noise))[0]]),
        np.array([alpha]),
        np.zeros(_CLUSTERS_TRIED, np.intp),
        errors / width,
    )
    xi = sd_noise.quantile(_CLUSTERS_LEVELS)
    levels_of_sd = np.sqrt(chdtri(freedom, 1 - _OWN_LEVELS) / freedom)
    shares = np.outer(_OWN_SHARES, _CLUSTERS_SHARES).ravel()
    inflated = positive_part(errors[:, None, None] * levels_of_sd[:, None] + xi, sd_noise).reshape(
        _CLUSTERS_TRIED, -1
    )

    def built(row: NDArray[np.intp], kappa: Floats) -> Floats:
        return np.asarray((factor / width * np.minimum(inflated[row] + kappa[:, None], ends)) ** 2)

    search = least_inflation(np.arange(_CLUSTERS_TRIED), aimed_at(alpha), unit, ends)
    return in_step([search], misses.asked(built, shares))[0]
