"""Probabilities of (sampling error + privacy noise): a normal plus any symmetric distribution.

P(N + X <= x) is the integral of the normal density times the noise's distribution function. It is
taken by Gauss-Legendre pieces that end wherever the noise distribution has a kink and shrink towards the
kinks, so that it is accurate whether the noise is a thousand times wider or narrower than the
sampling error. Time and memory are bounded whatever the two are.

The distribution of the sum of two independent symmetric noises, on a lattice, and how wide noise from a ball is.

Both noises are rounded to a lattice, which moves their sum by at most one lattice step, and their masses
are convolved. Between the lattice's points the distribution function is interpolated; in the tails, where it
is convex, that errs towards more noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from math import exp, hypot, inf, isfinite, isnan, log, pi, sqrt
from typing import Protocol, TypeVar, cast

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import k1, ndtr, ndtri

from counterveil.numerics.arrays import Floats

_NODES, _WEIGHTS = leggauss(12)
_SCALED_WEIGHTS = _WEIGHTS / np.sqrt(2 * np.pi)
# Beyond this many standard deviations a normal holds less than 3e-18 of its mass.
_REACH = 8.7
_NORMAL_ENDS = np.linspace(-_REACH, _REACH, 19)
# Distances from a kink, in standard deviations of the noise, at which pieces end.
_LADDER = np.concatenate([2.0 ** np.arange(-4, 7), [100.0, 200.0, 400.0, 1600.0]])
# Kinks at which pieces end, at most. Those beyond the reach of the noise, which it exceeds with this probability, are
# left out where all would be more. A distribution that has still more falls by less than 0.006 (in logarithms) from
# one to the next, so that its tails are within 5e-6 of smooth ones: they are taken as larger by twice that part.
_MOST_KINKS, _BEYOND, _RIPPLE = 20_000, 1e-25, 1e-5
# A normal this much narrower than the noise, as a part of its interquartile range, is bounded, not integrated: by so
# many standard deviations, which it exceeds with less than the probability beside them.
_NEGLIGIBLE, _FAR, _BEYOND_FAR = 1e-9, 9.6, 1e-21

# A half-width is at most this part above the one that is exact.
_TOLERANCE = 1e-8
# Part by which closed forms are rounded outwards.
_ROUNDING = 1e-12
_MOST_STEPS = 100
# Points at once: memory for more is asked of the system afresh each time, which takes longer than the work.
_AT_ONCE = 24_000
# Searches that go on together, and how many answers are remembered.
_TOGETHER, _MOST_REMEMBERED = 64, 16_384


class NoiseDistribution(Protocol):
    """A symmetric noise distribution, as far as inference needs it; hashable, so that results can be cached."""

    @property
    def variance(self) -> float:
        """The distribution's variance; may be infinite."""
        ...

    def cdf(self, x: Floats) -> Floats:
        """Return P(X <= x)."""
        ...

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest x with P(X <= x) >= p."""
        ...

    def kinks(self, low: float, high: float, most: int) -> Floats | None:
        """Return the points of [low, high] where the density is not smooth; None where they exceed `most`."""
        ...


def interquartile_range(distribution: NoiseDistribution) -> float:
    """Return the interquartile range of the distribution, which exists whatever its variance."""
    return _interquartile_range(cast("Hashable", distribution))


@lru_cache(maxsize=4096)
def _interquartile_range(distribution: NoiseDistribution) -> float:
    ends = distribution.quantile(np.array([0.25, 0.75]))
    return float(ends[1] - ends[0])


@lru_cache(maxsize=4096)
def _lower_quantile(distribution: NoiseDistribution, p: float) -> float:
    return float(distribution.quantile(np.array([p]))[0])


@lru_cache(maxsize=4096)
def _standard(distribution: NoiseDistribution) -> tuple[NoiseDistribution, float]:
    """Return a distribution that this one is a multiple of, and the factor."""
    found: tuple[NoiseDistribution, float] = getattr(distribution, "standard", (distribution, 1.0))
    return found


@lru_cache(maxsize=256)
def _quantiles(distribution: NoiseDistribution, levels: tuple[float, ...]) -> Floats:
    return distribution.quantile(np.array(levels))


class Noises:
    """Noise distributions one after another; `points[i]` below are numbers for the i-th of them."""

    def __init__(self, each: Sequence[NoiseDistribution]) -> None:
        parts = [_standard(cast("Hashable", one)) for one in each]
        places: dict[NoiseDistribution, int] = {}
        self._which = np.array([places.setdefault(law, len(places)) for law, _ in parts], dtype=np.intp)
        self._laws = list(places)
        self._scales = np.array([scale for _, scale in parts])
        self.widths = np.array([interquartile_range(one) for one in each])

    def of(self, rows: NDArray[np.intp]) -> Noises:
        """Return the noises of these places, in their order."""
        found = object.__new__(Noises)
        found._laws = self._laws
        found._which, found._scales, found.widths = self._which[rows], self._scales[rows], self.widths[rows]
        return found

    def cdf(self, points: Floats) -> Floats:
        """Return P(X_i <= points[i])."""
        return self._by_law(
            points, lambda law, own, scales: law.cdf((own / scales).ravel()).reshape(own.shape)
        )

    def quantile(self, points: Floats) -> Floats:
        """Return the x with P(X_i <= x) = points[i]."""
        return self._by_law(
            points, lambda law, own, scales: law.quantile(own.ravel()).reshape(own.shape) * scales
        )

    def kinks(self, low: Floats, high: Floats) -> list[Floats | None]:
        """Return the kinks of each in [low, high]; None where there are too many to integrate between."""
        places = zip(self._which.tolist(), self._scales.tolist(), low.tolist(), high.tolist(), strict=True)
        return [_kinks(self._laws[law], scale, *ends) for law, scale, *ends in places]

    def points(self, levels: tuple[float, ...]) -> Floats:
        """Return for each the x with P(X <= x) = level, for the same levels."""
        found = [_quantiles(cast("Hashable", law), levels) for law in self._laws]
        return np.asarray(np.array(found)[self._which] * self._scales[:, None])

    def _by_law(
        self, points: Floats, evaluate: Callable[[NoiseDistribution, Floats, Floats], Floats]
    ) -> Floats:
        scales = self._scales.reshape(-1, *[1] * (points.ndim - 1))
        if len(self._laws) == 1:
            return np.asarray(evaluate(self._laws[0], points, scales))
        found = np.empty_like(points)
        for place in np.unique(self._which):
            rows = np.flatnonzero(self._which == place)
            found[rows] = evaluate(self._laws[place], points[rows], scales[rows])
        return found


Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
Found = TypeVar("Found")
Key = TypeVar("Key")


def in_step(
    solvers: Sequence[Generator[Asked, Answer, Found]],
    evaluate: Callable[[list[int], list[Asked]], Sequence[Answer]],
) -> list[Found]:
    """Return what searches find that go on together: what all of them ask for next is evaluated at once.

    `evaluate` is given the places of the searches that are not over, and what each of them asks for.
    """
    found: dict[int, Found] = {}
    asked: dict[int, Asked] = {}

    def go_on(place: int, ask: Callable[[], Asked]) -> None:
        try:
            asked[place] = ask()
        except StopIteration as end:
            asked.pop(place, None)
            found[place] = end.value

    for place, solver in enumerate(solvers):
        go_on(place, partial(next, solver))
    while asked:
        places = list(asked)
        for place, answer in zip(places, evaluate(places, list(asked.values())), strict=True):
            go_on(place, partial(solvers[place].send, answer))
    return [found[place] for place in range(len(solvers))]


def remembered(
    memory: dict[Key, Found], keys: Sequence[Key], solve: Callable[[list[Key]], Sequence[Found]]
) -> list[Found]:
    """Return what is known of every key; those that are new are solved together, and kept."""
    if len(keys) == 1 and (one := memory.get(keys[0])) is not None:
        return [one]
    # Other threads may empty the memory meanwhile.
    known = {key: found for key in keys if (found := memory.get(key)) is not None}
    new = [key for key in dict.fromkeys(keys) if key not in known]
    for start in range(0, len(new), _TOGETHER):
        part = new[start : start + _TOGETHER]
        known.update(zip(part, solve(part), strict=True))
    if len(memory) + len(new) > _MOST_REMEMBERED:
        memory.clear()
    memory.update((key, known[key]) for key in new)
    return [known[key] for key in keys]


# A number, a standard deviation and a noise.
Place = tuple[float, float, NoiseDistribution | None]
_TAILS: dict[Place, float] = {}
_HALF_WIDTHS: dict[Place, float] = {}


def tail(x: float, sd: float, distribution: NoiseDistribution | None) -> float:
    """Return P(N + X > x) for N normal with standard deviation `sd` and X of the given distribution."""
    return tails_beyond([(x, sd, distribution)])[0]


def tails_beyond(places: Sequence[Place]) -> list[float]:
    """Return P(N + X > x) for every x, standard deviation and noise."""
    return remembered(_TAILS, places, partial(_solved, search=_one_tail))


def half_width(sd: float, distribution: NoiseDistribution | None, alpha: float) -> float:
    """Return the smallest h with P(|N + X| > h) <= alpha, rounded outwards."""
    return exact_half_widths([(alpha, sd, distribution)])[0]


def exact_half_widths(places: Sequence[Place]) -> list[float]:
    """Return for every alpha, standard deviation and noise the smallest h with P(|N + X| > h) <= alpha."""
    return remembered(_HALF_WIDTHS, places, partial(_solved, search=_one_half_width))


Search = Generator[float, tuple[float, float], float]


def _solved(
    places: list[Place], search: Callable[[float, float, NoiseDistribution | None], Search]
) -> list[float]:
    """Return what searches find that ask for tails and densities of N + X."""
    noisy = {place: row for row, place in enumerate(i for i, one in enumerate(places) if one[2] is not None)}
    noises = Noises([cast("NoiseDistribution", places[i][2]) for i in noisy])

    def evaluate(which: list[int], x: list[float]) -> list[tuple[float, float]]:
        sd = np.array([places[i][1] for i in which])
        own = noises.of(np.array([noisy[i] for i in which]))
        found, density = _tails_and_densities(np.array(x), sd, own)
        return list(zip(found.tolist(), density.tolist(), strict=True))

    return in_step([search(*place) for place in places], evaluate)


def _one_tail(x: float, sd: float, distribution: NoiseDistribution | None) -> Search:
    if not isfinite(x):
        # An estimate that somebody wrote into a file, or that an unproved form overflowed to.
        return float("nan") if isnan(x) else float(x < 0)
    if distribution is None:
        return float(ndtr(-x / sd)) if sd > 0 else float(x < 0)
    if sd <= 0:
        return float(1 - distribution.cdf(np.array([x]))[0])
    if sd < _NEGLIGIBLE * interquartile_range(distribution):
        return float(distribution.cdf(np.array([_FAR * sd - x]))[0]) + _BEYOND_FAR
    return (yield x)[0]


def _one_half_width(alpha: float, sd: float, distribution: NoiseDistribution | None) -> Search:
    normal = -sd * float(ndtri(alpha / 2)) if sd > 0 else 0.0
    if distribution is None:
        return normal * (1 + _ROUNDING)
    if sd <= 0:
        return -float(distribution.quantile(np.array([alpha / 2]))[0]) * (1 + _TOLERANCE)
    if sd < _NEGLIGIBLE * interquartile_range(distribution):
        # |N + X| is beyond h only where |X| is beyond h - FAR sd or |N| beyond FAR sd.
        own = -float(distribution.quantile(np.array([max(alpha / 2 - _BEYOND_FAR, alpha / 4)]))[0])
        return (own + _FAR * sd) * (1 + _TOLERANCE)
    # Exact for normal noise; heavier tails have their answer a little lower.
    h = hypot(_lower_quantile(cast("Hashable", distribution), alpha / 2), normal)
    low, high = 0.0, inf
    for _ in range(_MOST_STEPS):
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


def _tails_and_densities(x: Floats, sd: Floats, noises: Noises) -> tuple[Floats, Floats]:
    """Return P(N + X > x) and the density of N + X at x, for positive standard deviations."""
    reach = _REACH * sd * (1 + _TOLERANCE)
    kinks = noises.kinks(x - reach, x + reach)
    counts = np.array([1 if own is None else len(own) for own in kinks])
    found, density = np.empty_like(x), np.empty_like(x)
    # Those of about as many kinks are integrated together: none has many more pieces than it needs.
    order = np.argsort(counts, kind="stable")
    start = 0
    while start < len(order):
        most = max(16, 2 * int(counts[order[start]]))
        together = max(1, _AT_ONCE // (len(_NODES) * (most + len(_NORMAL_ENDS) + 2 * len(_LADDER))))
        rows = order[start : start + together]
        rows = rows[counts[rows] <= most]
        start += len(rows)
        ends = np.full((len(rows), int(counts[rows].max())), inf)
        for row, own in zip(ends, (kinks[i] for i in rows), strict=True):
            row[: 1 if own is None else len(own)] = 0.0 if own is None else own
        z, weight = _pieces(x[rows], sd[rows], noises.widths[rows], ends)
        # The upper tail is integrated itself rather than taken from 1, which would lose its digits.
        weight *= noises.of(rows).cdf(sd[rows, None] * z - x[rows, None])
        rippled = np.array([kinks[i] is None for i in rows])
        found[rows] = np.where(rippled, 1 + _RIPPLE, 1.0) * weight.sum(axis=1)
        density[rows] = np.einsum("ij,ij->i", weight, z) / sd[rows]
    return found, density


def _kinks(law: NoiseDistribution, scale: float, low: float, high: float) -> Floats | None:
    """Return the kinks of a multiple of a distribution in [low, high], None where there are too many."""
    low, high = low / scale, high / scale
    found = law.kinks(low, high, _MOST_KINKS)
    if found is None:
        end = -_lower_quantile(cast("Hashable", law), _BEYOND)
        found = law.kinks(max(low, -end), min(high, end), _MOST_KINKS)
    return None if found is None else found * scale


def _pieces(x: Floats, sd: Floats, widths: Floats, kinks: Floats) -> tuple[Floats, Floats]:
    """Return points of the normal parts and what they weigh, in pieces between which the integrands are smooth.

    `widths` are typical of the noises, `kinks[i]` those of the i-th. A piece beyond the normal's reach is empty.
    """
    ladder = _LADDER * widths[:, None]
    cuts = (x[:, None] - np.concatenate([kinks, -ladder, ladder], axis=1)) / sd[:, None]
    ends = np.broadcast_to(_NORMAL_ENDS, (len(x), len(_NORMAL_ENDS)))
    cuts = np.sort(np.concatenate([ends, np.clip(cuts, -_REACH, _REACH)], axis=1), axis=1)
    # Pieces that are empty for all are left out.
    first, last = (
        np.count_nonzero(cuts <= -_REACH, axis=1).min(),
        np.count_nonzero(cuts < _REACH, axis=1).max(),
    )
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


_NODES_scale, _WEIGHTS_scale = leggauss(6)
# Pieces of the Laplace distribution, in its own scale: beyond 36 it holds less than 1e-15.
_PIECES = np.concatenate([np.linspace(0.0, 6.0, 13), [8.0, 11.0, 15.0, 20.0, 27.0, 36.0]])
# The distribution function is tabulated at these logarithms of |x| / interquartile range.
_LOGS = np.arange(-14.0, 70.0, 0.04)
_LEAST_TAIL = 1e-300


@dataclass(frozen=True, slots=True)
class UnsureScale:
    """The distribution of scale * X * exp(-L), X of `distribution` and L Laplace with scale `log_scale`; symmetric.

    `origin` is a text that says where X comes from, for those who write the distribution down.
    """

    distribution: NoiseDistribution
    scale: float
    log_scale: float
    origin: str = ""

    @property
    def variance(self) -> float:
        """The variance; infinite where the scale is too unsure for one, or X has none."""
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

    def kinks(self, low: float, high: float, most: int) -> Floats:  # noqa: ARG002 - there is but one
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
    half, centre = np.diff(_PIECES) / 2, (_PIECES[1:] + _PIECES[:-1]) / 2
    points = (centre[:, None] + half[:, None] * _NODES_scale).ravel()
    weights = (half[:, None] * _WEIGHTS_scale).ravel() * np.exp(-points) / 2
    weights /= 2 * weights.sum()
    return np.concatenate([-points, points]) * log_scale, np.concatenate([weights, weights])


def tail_point(distribution: NoiseDistribution, log_scale: float, alpha: float) -> float:
    """Return the x with P(|X exp(-L)| > x) = alpha, without a table: for comparing designs."""
    changes, weights = _laplace_nodes(log_scale)
    low, high = log(interquartile_range(distribution)) - 20.0, log(interquartile_range(distribution)) + 60.0
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
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) > alpha else (low, middle)
    return high**2


# Lattice points on either side of zero, for each noise; the sum has twice as many.
_SIDE = 1 << 13
# The lattice reaches as far as either noise does with this probability; what is beyond is put at its ends.
_SUMS_BEYOND = 1e-13


@dataclass(frozen=True, slots=True)
class NoiseSum:
    """The distribution of X + Y for independent X and Y; itself a noise distribution."""

    first: NoiseDistribution
    second: NoiseDistribution

    @property
    def variance(self) -> float:
        """The sum of both variances."""
        return self.first.variance + self.second.variance

    def cdf(self, x: Floats) -> Floats:
        """Return P(X + Y <= x)."""
        step, below = self._table()
        place = -np.abs(np.asarray(x, np.float64)) / step + 2 * _SIDE
        inside = np.clip(place, 0.0, 2 * _SIDE)
        left = np.minimum(inside.astype(np.intp), 2 * _SIDE - 1)
        tail = below[left] + (inside - left) * (below[left + 1] - below[left])
        tail = np.where(place < 0, 0.0, tail)
        return np.where(np.asarray(x) < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats) -> Floats:
        """Return the x with P(X + Y <= x) = p, at most the lattice's end in size."""
        step, below = self._table()
        chance = np.asarray(p, np.float64)
        size = step * (2 * _SIDE - np.interp(np.minimum(chance, 1 - chance), below, np.arange(2 * _SIDE + 1)))
        return np.where(chance < 0.5, -size, size)

    def kinks(self, low: float, high: float, most: int) -> Floats | None:
        """Return the kinks of the wider noise; those of the other are smoothed at a smaller scale."""
        wider = self.first if self.first.variance >= self.second.variance else self.second
        return wider.kinks(low, high, most)

    def _table(self) -> tuple[float, Floats]:
        return _sums_table(cast("Hashable", self.first), cast("Hashable", self.second))


@lru_cache(maxsize=128)
def _sums_table(first: NoiseDistribution, second: NoiseDistribution) -> tuple[float, Floats]:
    """Return the lattice step and P(X + Y <= x) at x = -2 SIDE step, ..., -step, 0."""
    parts = [_standard(cast("Hashable", one)) for one in (first, second)]
    (wide, scale, end), (other, own, _) = sorted(
        ((law, scale, -_lower_quantile(cast("Hashable", law), _SUMS_BEYOND / 2)) for law, scale in parts),
        key=lambda one: -one[1] * one[2],
    )
    step = scale * end / _SIDE
    spectrum = _widest(cast("Hashable", wide), end) * _spectrum(other, step / own)
    masses = np.fft.irfft(spectrum, 4 * _SIDE)
    # Half the mass of a point lies on either side of it.
    masses = np.maximum(masses[: 2 * _SIDE + 1], 0.0)
    below = np.cumsum(masses)
    below -= masses / 2
    below *= 0.5 / below[-1]
    return step, below


@lru_cache(maxsize=8)
def _widest(distribution: NoiseDistribution, end: float) -> NDArray[np.complex128]:
    """Return the transform of the wider noise, the same for all multiples of one distribution."""
    return _spectrum(distribution, end / _SIDE)


def _spectrum(distribution: NoiseDistribution, step: float) -> NDArray[np.complex128]:
    """Return the transform of the masses of the lattice points -SIDE, ..., SIDE that the noise is rounded to."""
    edges = (np.arange(_SIDE + 1, dtype=np.float64) + 0.5) * np.float64(step)
    # Lower tails keep their digits; the upper half follows by symmetry.
    tails = distribution.cdf(-edges)
    half = np.append(tails[:-1] - tails[1:], tails[-1])  # from point 1 outwards, the rest at the end
    half[-2] += half[-1]
    outwards = half[:-1]
    masses = np.concatenate([outwards[::-1], [1.0 - 2.0 * float(tails[0])], outwards])
    # Of the sum's 4 SIDE + 1 points the last, of no mass to speak of, is put on the first.
    return np.fft.rfft(masses, 4 * _SIDE)


# The distribution of a weighted sum of independent symmetric noises, tabulated on a lattice.
#
# Each noise is cut where it goes beyond a reach that it exceeds with a tiny probability; that probability is
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
        size = np.abs(np.asarray(x, np.float64)) / step
        tail = np.interp(_HALF - size, np.arange(_HALF + 1), below)
        return np.where(np.asarray(x) < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats) -> Floats:
        """Return the x with P(sum <= x) = p, at most the lattice's end in size."""
        step, below = self._table()
        chance = np.asarray(p, np.float64)
        size = step * (_HALF - np.interp(np.minimum(chance, 1 - chance), below, np.arange(_HALF + 1)))
        return np.where(chance < 0.5, -size, size)

    def kinks(self, low: float, high: float, most: int) -> Floats:  # noqa: ARG002 - there is but one
        """Return the peak; sharper kinks are smoothed by the other noises."""
        return np.zeros(1 if low <= 0 <= high else 0)

    def _table(self) -> tuple[float, Floats]:
        return _table_sum(cast("Hashable", self.terms))


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
def _table_sum(terms: tuple[tuple[float, NoiseDistribution], ...]) -> tuple[float, Floats]:
    """Return the lattice step and P(sum <= x) at x = -HALF step, ..., -step, 0."""
    cut = _CUT / len(terms)
    reaches = [
        weight * float(-distribution.quantile(np.array([cut / 2]))[0]) for weight, distribution in terms
    ]
    step = _half_length(terms, reaches) / _HALF
    spectrum = np.ones(_HALF + 1)
    for (weight, distribution), count in Counter(terms).items():
        reach = weight * float(-distribution.quantile(np.array([cut / 2]))[0])
        # The masses are even around zero, so their transform is real.
        spectrum *= np.fft.rfft(_masses_sum(weight, distribution, step, reach)).real ** count
    masses = np.maximum(np.fft.irfft(spectrum, _POINTS), 0.0)
    lower = np.append(masses[_HALF:], masses[0])  # from the far end up to zero
    below = np.cumsum(lower) - lower / 2
    # What was cut lies beyond every point, half of it on this side.
    return step, _CUT / 2 + below * ((0.5 - _CUT / 2) / below[-1])


def _half_length(terms: tuple[tuple[float, NoiseDistribution], ...], reaches: list[float]) -> float:
    """Return a length that the sum of the cut noises exceeds with less than the allowed probability."""
    most = max(reaches)
    variance = sum(
        min(w**2 * distribution.variance, reach**2)
        for (w, distribution), reach in zip(terms, reaches, strict=True)
    )
    exponent = log(2 / _WRAPPED)
    bernstein = most * exponent / 3 + sqrt((most * exponent / 3) ** 2 + 2 * exponent * variance)
    return min(sum(reaches), bernstein) * (1 + 2 / _HALF)


def _masses_sum(weight: float, distribution: NoiseDistribution, step: float, reach: float) -> Floats:
    """Return the probabilities of the lattice points 0, 1, ..., HALF, -HALF + 1, ..., -1, in that order."""
    last = min(int(np.ceil(reach / step)), _HALF - 1)
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
