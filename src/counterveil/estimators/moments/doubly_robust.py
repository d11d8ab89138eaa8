"""The doubly robust effect of records: how its budget is spent, and its releases.

Index 0 is the untreated, 1 the treated. Outcomes are in units of a released scale, covariates standardised.

Weights that balance an arm against the people asked about, and what errors of weights and lines leave together.

Weights are lines in the covariates, alpha(z) = 1/p + (z - mean)' (C + ridge)^-1 (target - mean)/p, p being the arm's
share: the balancing form of an inverse propensity (Chernozhukov, Newey and Singh 2022; Hirshberg and Wager 2021).
Post-processing of released numbers throughout.

The effect on everyone, the treated or the untreated where everything about a person is private, with an interval.

Second moments of covariates and outcome are released arm by arm, which costs no more than one matrix for all; lines
of both arms are refined on moments of their residuals; weights balance each arm against the people asked about; the
effect is the mean of a doubly robust score, released with its square.

Lineage: augmented inverse weighting (Robins, Rotnitzky and Zhao 1994) with balancing weights (Chernozhukov, Newey and
Singh 2022); private regression from noisy second moments (Dwork, Talwar, Thakurta and Zhang 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.polynomial.laguerre import laggauss
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from counterveil.data import Study, Sums
from counterveil.data.features import counted_features, feature_map, feature_sets, require_covariates
from counterveil.errors import CounterveilError, refusal
from counterveil.estimators.histogram import HELD, outcomes_at_ends
from counterveil.estimators.moments.contrast import ARMS, POOLED, compare, is_worthwhile
from counterveil.estimators.moments.orthogonal import (
    MOST_ENTRIES,
    Design,
    bounded,
    feature_moments,
    fewest_rows,
    inner_share,
    release_norms,
    shrunk_towards_prior,
    symmetric,
    triangle,
)
from counterveil.estimators.moments.records import (
    Kernel,
    Records,
    ResidualProducts,
    TableRecords,
    release_residual_products,
)
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.numerics.denoising import low_rank, second_moments
from counterveil.numerics.products import (
    FeatureMap,
    Standard,
    exact_arm_grams,
    grid_bits,
)
from counterveil.numerics.shrinkage import averaged_posterior
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat, LinearScores, NotAdjusted, OutcomesAtEnds
from counterveil.results.answering import Facts, answer_request
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.scores import (
    TERM_BITS,
    ArmLines,
    ArmScore,
    Block,
    OwnScore,
    arm_score_sums,
    residual_sums,
    score_sizes,
)
from counterveil.rows.moments.sensitivity import (
    OFF_DIAGONAL,
    SQUARE_WEIGHT,
    free_gram,
    look_moments,
    orthogonal_score,
)
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, Gate, Kind, Plan
from counterveil.settings import DoublyRobust

# Numbers of this module that are choices, and not derived, were set on the tuning designs of
# `experiments/record_effect/RESULTS.md`.
# Parts of the budget, in thousandths: of mu squared for Gaussian noise, and of epsilon for pure budgets, which pay for
# every entry of the Grams and have noisier counts for the same part.
_SHARES = {
    "centre": (20, 30),
    "features": (30, 30),
    "place 1": (15, 30),
    "place 2": (45, 60),
    "norms": (20, 15),
    "gram": (390, 420),
    "residual 1": (120, 100),
    "residual 2": (120, 100),
    "sizes": (30, 40),
    "score": (210, 175),
}
_PLACES = ("place 1", "place 2")
_PASSES = 2  # over residuals
_HISTOGRAMS = (*_PLACES, "norms", "sizes")
# Cells of a histogram of outcomes, at least and at most; an average one holds this many times its noise.
_CELLS, _CELL_NOISE = (8, 32), 6.0
# Three columns: from this noise index of the Grams on, coordinates are clipped at so many standard deviations, and this
# share of the rows is shortened.
_ROW_LIMITS = ((0.5, 2.0, 0.1), (0.25, 2.0, 0.03), (0.1, 2.5, 0.005), (0.03, 3.0, 0.001), (0.0, 4.0, 0.0003))
# Rows are at most this long, squared, for each feature; longer where there is little noise.
_LONGEST, _LONGEST_OF_ALL, _LITTLE_NOISE = 3.0, 16.0, 0.1
# What the variance of the product of errors is multiplied by, below the first and above the second of these indices.
_INFLATION, _NOISY = (2.5, 4.5), (0.5, 1.0)
# The same where covariates explain this part of the outcome or more, and what it is where they explain nothing.
_EXPLAINED, _LEAST = 0.5, 1.3
# Noise of the l2 ball has no normal tails: its products have heavier ones, from lower indices on.
_PURE_INFLATION, _NOISY_BALL = 3.0, (0.1, 0.3)
# The least part of the shared error that is left from the first of them on.
_SHARED = 0.3
# Squared lengths of the constant and of the outcome beside that of the covariates.
_CONSTANT, _OUTCOME = 0.7, 0.3
# Squared lengths of standardised rows are about this many times the number of features.
_LENGTH = 1.5
# Expected widths: clip of scores in standard deviations, and what the Grams' noise adds beside sampling.
SCORE_CLIP_SDS, _MODELS = 4.0, 8.0
# Adjustment is affordable where the noise of the Grams is below these.
_MOST_NOISE = {"gaussian": 1.25, "pure": 0.35}
# The richest features are taken whose expected length is within the first factor of the shortest and no more than what
# smaller budgets would take, or than the second factor of no noise; there are at most so many.
_WITHIN, _HARDLY, _MOST_FEATURES = 1.25, 1.02, 120


@dataclass(frozen=True, slots=True)
class ArmDesign:
    """The public numbers that the chain of releases depends on.

    `searched` says whether the outcomes' place is looked for; otherwise they lie at both ends of their range.
    """

    design: Design
    searched: bool = True
    means: bool = False  # whether the means of all arms are wanted

    @property
    def pure(self) -> bool:
        """Whether noise comes from the l2 ball rather than from the Gaussian mechanism."""
        return self.design.pure

    @property
    def shares(self) -> dict[str, Fraction]:
        """Parts of the budget by release; what no search costs goes to the score."""
        parts = {name: both[int(self.pure)] for name, both in _SHARES.items()}
        if not self.searched:
            parts["score"] += sum(parts.pop(name) for name in _PLACES)
        return {name: Fraction(part, 1000) for name, part in parts.items()}

    @property
    def histograms(self) -> tuple[str, ...]:
        """The releases that are counts."""
        # Means have counts, sums and squares of scores by arm.
        return tuple(
            name for name in (*_HISTOGRAMS, *(["score"] if self.means else [])) if name in self.shares
        )

    @property
    def place_cells(self) -> int:
        """Cells of a histogram of outcomes: so many that an average one stands out of its noise."""
        amount = self.design.strength / self.design.rows
        share = float(self.shares[_PLACES[0]])
        sd = sqrt(8) / (share * amount) if self.pure else sqrt(2 / share) / amount
        return int(min(max(self.design.rows / (_CELL_NOISE * sd), _CELLS[0]), _CELLS[1]))

    @property
    def index(self) -> float:
        """The operator norm of the noise of one Gram of both arms at three quarters of the budget.

        That of an arm is divided by its share, which several arms make smaller.
        """
        m, arms = self.design.features + 2, self.design.arms
        squared_norm = (1 + _CONSTANT + _OUTCOME) * _LENGTH * self.design.features
        noise = float(self.design.sd(0.75, arms * m * (m + 1) // 2, squared_norm))
        return sqrt(self.design.features + 1) * noise * arms

    @property
    def limit(self) -> float:
        """Where coordinates are clipped."""
        return self._row_limits[0]

    @property
    def shortened(self) -> float:
        """The share of the rows that is shortened."""
        return self._row_limits[1]

    @property
    def _row_limits(self) -> tuple[float, float]:
        index = self.index
        return next((limit, share) for least, limit, share in _ROW_LIMITS if index >= least)

    @property
    def longest(self) -> float:
        """The largest squared length of a row for each feature."""
        return _LONGEST if self.index > _LITTLE_NOISE else _LONGEST_OF_ALL

    def inflation(self, explained: float) -> float:
        """Return what the variance of the product of errors is multiplied by.

        It is more where noise is so large that it skews, and where covariates explain much of the outcome.
        """
        least, most = _INFLATION
        low, high = _NOISY_BALL if self.pure else _NOISY
        part = (self.index - low) / (high - low)
        most = least + (most - least) * min(max(part, 0.0), 1.0)
        found = _LEAST + (most - _LEAST) * min(max(explained, 0.0) / _EXPLAINED, 1.0)
        return (_PURE_INFLATION if self.pure else 1.0) * found

    @property
    def shared(self) -> float:
        """The least part of the shared error of weights and lines that residuals are taken to leave."""
        return _SHARED * min(self.index / _NOISY[0], 1.0)

    @property
    def score_unit(self) -> float:
        """The noise of a mean score that is clipped at one."""
        # l2-ball noise grows with the number of coordinates: two sums, three with means.
        coordinates = 3 if self.means else 2
        return float(self.design.sd(float(self.shares["score"]), coordinates, 2.0))

    def plan(self) -> Plan:
        """Return the plan of the releases."""
        kinds = dict.fromkeys(self.shares, Kind.VECTOR)
        if self.pure:
            kinds |= dict.fromkeys(self.histograms, Kind.CELLS)
        return Plan.split(self.design.budget, self.shares, self.design.mechanism, kinds)


def arms_affordable(design: Design) -> bool:
    """Whether the public numbers afford moments by arm."""
    chain = ArmDesign(design)
    return design.fits and chain.index <= _MOST_NOISE["pure" if chain.pure else "gaussian"]


def expected_width(design: Design) -> float:
    """Return about how many times wider the interval is than one without privacy.

    Sampling counts as one; scores are clipped at about four of their standard deviations. A larger epsilon or delta
    never makes it wider for the same features and mechanism: it falls with what all of the budget is in noise.
    """
    chain = ArmDesign(design)
    noise = SCORE_CLIP_SDS * chain.score_unit * sqrt(design.rows)
    return sqrt(1 + noise**2 + (_MODELS * chain.index) ** 2)


@dataclass(frozen=True, slots=True)
class Spending:
    """Features and public numbers, and about how long the interval is expected to be beside one without privacy."""

    features: FeatureMap
    design: Design
    length: float


def shortest(
    feature_maps: Sequence[FeatureMap],
    rows: int,
    budget: Budget,
    mechanisms: Sequence[str],
    rule: Callable[[Design], bool] = arms_affordable,
    width: Callable[[Design], float] = expected_width,
    arms: int = 2,
) -> Spending:
    """Return the richest features whose interval is expected to be within a quarter of the shortest.

    Every set that the `rule` affords is compared with every mechanism. Unless there is hardly any noise, none is taken
    that is longer than what half of epsilon, or the mechanisms after the first, which need no delta, would take.
    """
    designs = [(of, Design(rows, of.size, budget, name, arms)) for of in feature_maps for name in mechanisms]
    found = [
        Spending(of, one, width(one) if of.size <= _MOST_FEATURES and rule(one) else inf)
        for of, one in designs
    ]
    if (least := min(one.length for one in found)) == inf:
        return found[0]
    most = _WITHIN * least
    if any(max(least, _HARDLY) < one.length <= most for one in found):
        smaller = [(Budget(budget.epsilon / 2, budget.delta), mechanisms), (budget, mechanisms[1:])]
        before = [shortest(feature_maps, rows, *one, rule, width, arms).length for one in smaller if one[1]]
        most = min(most, max(least, _HARDLY, min(before)))
    return min((one for one in found if one.length <= most), key=lambda one: (-one.features.size, one.length))


# Part of the outcomes that may lie outside the cells that are looked at again.
_OUTSIDE = 0.003
# Counts of this many standard deviations of their noise are taken to be people.
_SURE = 3.3
# Tails are heavy where outcomes exceed three standard deviations by this many of them, on average; outcomes are uneven
# beyond this skewness.
_HEAVY, _UNEVEN = 0.01, 0.9
# Outcomes of which a cell of the second histogram holds more than this part, or whose standard deviation is less than
# this part of a cell, may be one value and a few others that noise hides.
_ONE_CELL, _RESOLVED = 0.75, 0.4
# Outcomes are far out from this many standard deviations on.
_FAR_OUT = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """Cells where noise may hide outcomes: distances from the centre, noisy shares of all rows, and their noise."""

    distances: Floats
    shares: Floats
    sd: float

    def lost(self, losses: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        """Return estimates of what is lost, (clips,), and their noise; `losses` returns losses (clips, distances)."""
        lost = losses(self.distances)
        return lost @ self.shares, self.sd * np.sqrt((lost**2).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Centre:
    """Where the outcomes lie, in units of half their range around its middle: a centre and a scale.

    `tail` is the mean of what exceeds three scales from the centre, in scales, `farthest` how far the farthest lie, and
    `skew` the skewness. `whole` says that they may lie anywhere in the range, so that nothing is cut off. `hidden` are
    cells farther off, where noise may hide some; `ends` says how many outcomes crowd at the ends of the range.
    """

    centre: float
    scale: float
    tail: float
    farthest: float
    skew: float = 0.0
    whole: bool = False
    hidden: Hidden | None = None
    ends: OutcomesAtEnds | None = None

    @property
    def uneven(self) -> bool:
        """Whether clipping would cut off more on one side than on the other."""
        return self.heavy or self.whole or abs(self.skew) > _UNEVEN

    @property
    def heavy(self) -> bool:
        """Whether few people, far out, carry much of the outcome."""
        return self.tail > _HEAVY


# Where a place is not looked for, or noise may hide outcomes that matter.
WHOLE = Centre(0.0, 1.0, 0.0, 1.0, whole=True)


def outcome_counts(records: TableRecords, edges: Floats) -> Sums:
    """Return how many outcomes lie between every two edges; those outside count in the outermost cells."""
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for part in records.parts():
        counts += np.histogram(np.clip(part.y, edges[0], edges[-1]), edges)[0]
    return (counts,)


def _outcomes_between(records: Records, edges: Floats) -> NDArray[np.int64]:
    return records.run(outcome_counts, edges, covariates=False)[0]


def release_place(gate: Gate, records: Records, pure: bool, cells: int) -> Centre:
    """Return centre and standard deviation of the outcomes from two histograms, the second where the first is full."""
    edges, near = np.linspace(-1.0, 1.0, cells + 1), slice(0, cells)
    for look in (1, 2):
        counts = partial(_outcomes_between, records, edges)
        released = release_counts(gate, f"place {look}", counts, pure)
        noisy, sd = released.floats(), sqrt(released.variance)
        if look == 1:
            ends = outcomes_at_ends(noisy, sd, records.count, pure)
            edges, near = _around(*_filled(noisy, sd, edges, records.count), cells)
    found = _spread(noisy, sd, edges, near, records.count)
    # Outcomes of two values lie at the ends.
    return found if found is WHOLE else replace(found, ends=ends)


def _around(low: float, high: float, cells: int) -> tuple[Floats, slice]:
    """Return edges of cells of one width between these ends, and beyond them of widths that double; which are near."""
    middle, steps = (low + high) / 2, (high - low) / 2 * 2.0 ** np.arange(1, 12)
    below, above = (middle - steps)[::-1], middle + steps
    below = np.append(-1.0, below[below > -1]) if low > -1 else below[:0]
    above = np.append(above[above < 1], 1.0) if high < 1 else above[:0]
    edges = np.concatenate([below, np.linspace(low, high, cells + 1), above])
    return edges, slice(len(below), len(below) + cells)


def _filled(noisy: Floats, sd: float, edges: Floats, rows: int) -> tuple[float, float]:
    """Return the ends of the cells that hold nearly all rows, with a cell more on either side."""
    cells = len(noisy)
    bound = _OUTSIDE * rows + _SURE * sd * np.sqrt(np.arange(1, cells + 1))
    first = int(np.argmax(np.append(np.cumsum(noisy) > bound, True)))
    last = cells - int(np.argmax(np.append(np.cumsum(noisy[::-1]) > bound, True)))
    if first >= last:
        first, last = 0, cells
    return float(edges[max(first - 1, 0)]), float(edges[min(last + 1, cells)])


def _spread(noisy: Floats, sd: float, edges: Floats, near: slice, rows: int) -> Centre:
    """Return mean and standard deviation of the cells that noise cannot explain.

    Where these are two values or hardly more than one cell, outcomes that noise hides may have most of the variance:
    they may lie anywhere in the range.
    """
    middles, width = (edges[1:] + edges[:-1]) / 2, float(np.diff(edges[near.start : near.stop + 1])[0])
    ends = bool(noisy[0] > 4 * sd and noisy[-1] > 4 * sd)
    two_valued = ends and float(np.abs(noisy[1:-1]).sum()) < 8 * sd * sqrt(len(noisy))
    sure = noisy > _SURE * sd
    weights = np.where(sure, noisy, 0.0)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(noisy), 1 / len(noisy))
    centre = float(weights @ middles)
    # What cells hold that noise hides one by one counts together, the less the more noise there is in that.
    hidden = np.zeros(len(noisy))
    hidden[near] = (noisy / rows - weights)[near]

    def more(off: Floats, likely: float) -> float:
        noise_sd = sd / rows * float(np.linalg.norm(off[near]))
        return float(hidden @ off) / (1 + (noise_sd / likely) ** 2)

    least = max(float(weights @ (middles - centre) ** 2), width**2 / 12)
    scale = sqrt(least + max(more((middles - centre) ** 2, least), 0.0))
    if two_valued or scale < _RESOLVED * width or noisy.max() > _ONE_CELL * noisy.sum():
        most = int(noisy.argmax())
        others = np.arange(len(noisy)) != most
        far = Hidden(np.abs(middles - middles[most])[others], noisy[others] / rows, sd / rows)
        return WHOLE if two_valued else replace(WHOLE, hidden=far)
    off = (middles - centre) / scale
    size = np.abs(off)
    tail, farthest = (
        float(weights @ np.maximum(size - 3, 0.0)),
        float(size[_seen(noisy, sd)].max(initial=0.0)),
    )
    skew = float(weights @ off**3) + more(off**3, 1.0)
    outside = size > _FAR_OUT
    outside[near] &= ~(np.logical_or.accumulate(sure) & np.logical_or.accumulate(sure[::-1])[::-1])[near]
    far = Hidden(size[outside] * scale, noisy[outside] / rows, sd / rows)
    return Centre(centre, scale, tail, farthest, skew, hidden=far)


def _seen(noisy: Floats, sd: float) -> NDArray[np.bool_]:
    """Return the cells within which nearly everyone is, as far as noise lets see: beyond them there is none left."""
    noise = 2 * sd * np.sqrt(np.arange(1, len(noisy) + 1))
    below, above = (np.cumsum(one) > noise for one in (noisy, noisy[::-1]))
    inside = np.logical_or.accumulate(below) & np.logical_or.accumulate(above)[::-1]
    return np.asarray(inside)


@dataclass(frozen=True, slots=True)
class FeatureMeans:
    """Released means and mean squares of features, and their noise; a square's is `sd` over SQUARE_WEIGHT.

    `treated` is the share treated where it was released, and `treated_sd` its noise.
    """

    means: Floats
    squares: Floats
    sd: float
    treated: float = 0.5
    treated_sd: float = 0.0


def release_look(
    gate: Gate, name: str, records: Records, counted: int, chosen: NDArray[np.bool_], share: bool
) -> FeatureMeans:
    """Return moments of the `chosen` features and, if `share`, the share treated.

    `counted` bounds how many of the chosen features one record moves; the others have mean 0 and square 1.
    """
    n, two_valued = records.count, records.features.two_valued
    size = len(two_valued)
    weight = Fraction(round(1000 * sqrt(max(counted, 1) / 8)), 1000) if share else Fraction(0)
    places = np.flatnonzero(chosen)
    squared = [place for place in places if not two_valued[place]]

    def values() -> list[Fraction]:
        first, second, (treated, _, _) = records.run(feature_moments, True)
        one = Fraction(1, n << TERM_BITS)
        sums = [int(first[place]) * one for place in places]
        sums += [int(second[place]) * one * SQUARE_WEIGHT / 2**TERM_BITS for place in squared]
        return sums + ([weight * Fraction(treated, n)] if share else [])

    released = gate.release_vector(name, values, look_moments(n, counted, weight))
    found, sd = released.floats(), sqrt(released.variance)
    means, squares = np.zeros(size), np.ones(size)
    means[places] = found[: len(places)]
    squares[squared] = found[len(places) : len(places) + len(squared)] / float(SQUARE_WEIGHT)
    if not share:
        return FeatureMeans(means, squares, sd)
    return FeatureMeans(means, squares, sd, (1 + found[-1] / float(weight)) / 2, sd / float(weight) / 2)


@dataclass(frozen=True, slots=True)
class RowScale:
    """How rows enter the arm Grams: their map, the outcome's place, and squared lengths beside |z|^2.

    `constant` is the squared length of the constant, `outcome` that of the outcome, which is clipped at `clip`
    of its scales.
    """

    standard: Standard
    place: Centre
    constant: float
    outcome: float
    clip: float

    def least_clip(self, levels: Floats) -> float:
        """Return the least clip of residuals, in these units: as far as outcomes reach where they are uneven.

        `levels` are the mean outcomes of the arms.
        """
        if self.place.whole:
            return 1.0 + min(float(np.abs(levels).max()), 1.0)
        return min(self.place.farthest / self.clip, 1.0) if self.place.uneven else 0.0

    @property
    def unit(self) -> float:
        """Outcomes are divided by this."""
        return self.clip * self.place.scale

    @property
    def longest(self) -> float:
        """Bound of |(1, z)|."""
        return sqrt(1.0 + self.standard.squared_length)

    @property
    def farthest_outcome(self) -> float:
        """Bound of an outcome's size in these units: ranges are [-1, 1] before."""
        return (1.0 + abs(self.place.centre)) / self.unit

    def farthest_line(self, line: Floats) -> float:
        """Return a bound of |line'(1, z)|: of all rows, each coordinate and the length of z are limited."""
        by_length = sqrt(self.standard.squared_length) * float(np.linalg.norm(line[1:]))
        by_coordinate = self.standard.limit * float(np.abs(line[1:]).sum())
        return abs(float(line[0])) + min(by_length, by_coordinate)

    def rows(self, records: TableRecords) -> Iterator[Block]:
        """Yield (1, z), the place of the arm and outcome in these units, a block at a time."""
        for part in records.parts():
            t, y = part.batch.arm[part.rows].astype(np.float64), part.y
            yield part.u(self.standard), t, (y - self.place.centre) / self.unit


def arm_gram_sums(records: TableRecords, scale: RowScale, bits: int) -> Sums:
    """Return the sums of v v' over the rows of every arm, v = (a, z, b y)."""
    a, b = sqrt(scale.constant), sqrt(scale.outcome)

    def rows() -> Iterator[tuple[Floats, Floats]]:
        for u, t, y in scale.rows(records):
            outcome = b * np.clip(np.nan_to_num(y), -1.0, 1.0)
            yield t, np.vstack((np.full(len(outcome), a), u[:, 1:].T, outcome)).T

    return exact_arm_grams(rows(), bits, arms_of(records.table.study))


def arms_of(study: Study) -> int:
    """Return how many arms a study has."""
    return 2 if study.arms is None else len(study.arms)


def release_arm_grams(gate: Gate, records: Records, scale: RowScale) -> tuple[Floats, float]:
    """Return the means over all rows of v v' in each arm, (arms, m + 1, m + 1), v = (1, z, y), and an entry's noise.

    The noise is that of an entry between features; those with the constant or the outcome are divided by roots of
    their squared lengths.
    """
    n, a, b = records.count, sqrt(scale.constant), sqrt(scale.outcome)

    def values() -> list[Fraction]:
        bits = grid_bits(max(scale.standard.limit, a, b))
        totals = records.run(arm_gram_sums, scale, bits)
        return [value for total in totals for value in triangle(total, Fraction(1, n * 4**bits))]

    squared_max_norm = (
        Fraction(scale.standard.squared_length) + Fraction(scale.constant) + Fraction(scale.outcome)
    )
    released = gate.release_vector("gram", values, free_gram(n, squared_max_norm))
    grams = symmetric(released.floats().reshape(arms_of(records.source.study), -1))
    lengths = np.array([a, *[1.0] * (grams.shape[1] - 2), b])
    return grams / np.outer(lengths, lengths), sqrt(released.variance) / float(OFF_DIAGONAL)


def over_scaled(records: TableRecords, kernel: Kernel, scale: RowScale, *arguments: Any) -> Sums:
    """Return the kernel's sums over (1, z), treatment and outcome in the units of the scale."""
    return kernel(scale.rows(records), *arguments)


def release_arm_residuals(
    gate: Gate, name: str, records: Records, scale: RowScale, lines: ArmLines, clip: float
) -> ResidualProducts:
    """Return moments of u with the residuals of every arm, which are clipped to [-clip, clip]."""
    sums = partial(records.run, over_scaled, residual_sums, scale, lines, clip, scale.longest)
    found = release_residual_products(gate, name, records.count, sums, clip, scale.longest)
    return replace(found, products=found.products.reshape(len(lines.values), -1))


def release_sizes(
    gate: Gate, records: Records, scale: RowScale, score: ArmScore | OwnScore, edges: Floats, pure: bool
) -> tuple[Floats, float]:
    """Return how many scores lie between edges of their size, perhaps arm by arm, and the noise of one count."""
    released = release_counts(
        gate, "sizes", lambda: records.run(over_scaled, score_sizes, scale, score, edges)[0], pure
    )
    return released.floats(), sqrt(released.variance)


@dataclass(frozen=True, slots=True)
class ScoreMoments:
    """Released mean of the scores and of their squares, and their noise."""

    score: float
    square: float
    sd: float
    square_sd: float


def release_arm_score(
    gate: Gate, records: Records, scale: RowScale, score: ArmScore, clip: float
) -> ScoreMoments:
    """Return the mean score, clipped to [-clip, clip], and the mean of its square."""
    n, weight = records.count, float(SQUARE_WEIGHT)

    def values() -> list[Fraction]:
        ((total, square),) = records.run(over_scaled, arm_score_sums, scale, score, clip)
        one = Fraction(1, n << TERM_BITS)
        return [total * one, SQUARE_WEIGHT * square * one / 2**TERM_BITS]

    released = gate.release_vector("score", values, orthogonal_score(n))
    found, sd = released.floats(), sqrt(released.variance)
    return ScoreMoments(
        clip * float(found[0]), clip**2 * float(found[1]) / weight, clip * sd, clip**2 * sd / weight
    )


# An arm's share is taken for no less than this part of an equal one.
_LEAST_SHARE = 0.06
# Eigenvalues of the covariance are raised to at most the first of these and at least the second.
_FLOOR, _LEAST_FLOOR = 0.1, 0.02
# An arm's variance in any direction, beside that of everyone; it may be less where noise is small, down to the second
# number and to the third times the noise.
_BESIDE, _LEAST_BESIDE, _DOUBT = (0.3, 3.0), 0.02, 7.0
# The estimated squared error of an entry of a covariance, beside an upper bound of it.
_ERROR = 0.8
# Least standard deviation of the outcome, in its units.
_LEAST_SD = 0.1
# Prior standard deviations of slopes, in units of 1.5 sd(y) / sqrt(features): of what both arms share, and of an arm's
# own part (all but the last).
_PRIORS = (1e-3, 0.08, 0.25, 0.8, 2.0)
_PRIOR_SD = 1.5
# Prior variance along the directions of confounding, as a part of the outcome's variance, and the ridge parameters that
# these directions are taken with.
_ALONG, _RIDGES = (0.0, 0.1), (0.3, 30.0)
# Clip of residuals in standard deviations.
RESIDUAL_CLIP_SDS = 3.0
# Standard deviation of an arm's level around that of everyone, in standard deviations of the outcome; and what clipping
# does to a level, squared, beside the residual variance.
_LEVELS, _CLIPPED = 1.5, 0.01
# Parts of the largest variance of a direction below which another one is lost to rounding.
_ROUNDED = 1e-10


@dataclass(frozen=True, slots=True)
class ArmSecond:
    """What the Grams say about k arms; noise is a variance of one entry.

    `shares` (k,) with `share_error`, the variance of each, `means` (k, d), `covariances` (k, d, d), `errors` (k,) of
    their entries, `levels` (k,) of outcomes, with `level_error` (k,), the expected square of what they are off,
    `products` (k, d) of features and outcome around their means, with `noise` (k,). `overall` is the mean of z over
    everyone, `mean_sd` the noise of an arm's part of it.
    """

    shares: Floats
    share_error: float
    overall: Floats
    mean_sd: float
    means: Floats
    covariances: Floats
    errors: Floats
    levels: Floats
    level_error: Floats
    products: Floats
    noise: Floats
    outcome_sd: float
    left: float  # variance of the outcome within arms
    directions: Floats  # of confounding


def arm_moments(grams: Floats, sd: float, scale: RowScale, share: float, share_sd: float) -> ArmSecond:
    """Return the moments of all arms from their Grams (k, m + 1, m + 1); of two with the share treated too."""
    a, b, m = sqrt(scale.constant), sqrt(scale.outcome), grams.shape[1] - 1
    d = m - 1
    shares, share_error = _shares(grams[:, 0, 0], sqrt(2) * sd / scale.constant, share, share_sd)
    pooled = grams.sum(axis=0)
    common, common_error = second_moments(pooled[1:m, 1:m], sqrt(len(grams)) * sd)
    own = grams / shares[:, None, None]
    means, levels = own[:, 0, 1:m], own[:, 0, m]
    mean_noise, outcome_noise = (sd / a / shares) ** 2, (sd / b / shares) ** 2
    covariances, errors = np.empty((len(grams), d, d)), np.empty(len(grams))
    overall = pooled[0, 1:m]
    floor = max(min(_FLOOR, 2.8 * sqrt(d) * sd), _LEAST_FLOOR)
    matrix = common - np.outer(overall, overall)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    # Whatever was released, none so small beside the largest that rounding makes it negative.
    whole = np.asarray(vectors * np.maximum(values, max(floor, _ROUNDED * float(values[-1]))) @ vectors.T)
    for arm in range(len(grams)):
        gap, gap_error = low_rank(own[arm, 1:m, 1:m] - common, sd / shares[arm])
        covariance_within = common + gap - np.outer(means[arm], means[arm]) + mean_noise[arm] * np.eye(d)
        covariances[arm], errors[arm] = (
            _beside(covariance_within, whole, sd / shares[arm]),
            common_error + gap_error,
        )
    products = own[:, 1:m, m] - means * levels[:, None]
    noise = outcome_noise + mean_noise * levels**2 + (means**2).sum(axis=1) * outcome_noise / a**2 / d
    second = float(pooled[m, m])
    spread = max(sqrt(max(second - float(shares @ levels) ** 2, 0.01)), _LEAST_SD)
    left = max(second - float(shares @ levels**2), 0.02 * spread**2)
    return ArmSecond(
        shares,
        share_error,
        overall,
        sd / a,
        means,
        covariances,
        _ERROR * errors,
        levels,
        outcome_noise / a**2 + share_error * (levels / shares) ** 2,
        products,
        noise,
        spread,
        left,
        _directions(means, shares, covariances, spread),
    )


def _shares(corners: Floats, sd: float, share: float, share_sd: float) -> tuple[Floats, float]:
    """Return the arms' shares, of two those of the Grams and the one released before, by their noise; the variance."""
    arms = len(corners)
    found, variance = corners + (1 - corners.sum()) / arms, sd**2 * (1 - 1 / arms)
    if arms == 2:
        precision = 1 / variance + 1 / share_sd**2
        found = (found / variance + np.array([1 - share, share]) / share_sd**2) / precision
        variance = 1 / precision
    found = np.maximum(found, _LEAST_SHARE / arms)
    return found / found.sum(), variance


def _beside(matrix: Floats, whole: Floats, noise: float) -> Floats:
    """Return an arm's covariance, in no direction much smaller or larger than that of everyone.

    With propensities that keep away from 0 and 1 an arm's spread cannot be; what is beyond is taken for noise, unless
    the `noise` of an entry is too small for that.
    """
    root = np.linalg.cholesky(whole)
    turned = solve_triangular(root, solve_triangular(root, matrix, lower=True).T, lower=True)
    values, vectors = np.linalg.eigh((turned + turned.T) / 2)
    along = (solve_triangular(root.T, vectors) ** 2).sum(axis=0)
    least = np.clip(_DOUBT * noise * along, _LEAST_BESIDE, _BESIDE[0])
    found = root @ ((vectors * np.clip(values, least, _BESIDE[1])) @ vectors.T) @ root.T
    return np.asarray((found + found.T) / 2)


def _directions(means: Floats, shares: Floats, covariances: Floats, spread: float) -> Floats:
    """Return slopes along which an outcome would be most confounded, of the outcome's spread."""
    pooled = np.einsum("a,aij->ij", shares, covariances)
    values, vectors = np.linalg.eigh(pooled)
    gaps = (means[1:] - means[0]) @ vectors
    found = np.array([vectors @ (along / (values + ridge)) for along in gaps for ridge in _RIDGES])
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", found, pooled, found))
    return np.asarray(found * spread / np.maximum(lengths, 1e-12)[:, None] / sqrt(len(gaps)))


@dataclass(frozen=True, slots=True)
class ArmSlopes:
    """Slopes of all arms, (k, d), and their posterior covariances, (k, d, d)."""

    values: Floats
    covariances: Floats

    @property
    def errors(self) -> Floats:
        """Expected squared lengths of the slopes' errors, (k,)."""
        return np.asarray(np.einsum("aii->a", self.covariances))

    @property
    def squares(self) -> Floats:
        """Expected squared lengths of the slopes, (k,)."""
        return np.asarray((self.values**2).sum(axis=1) + self.errors)


def fitted_slopes(moments: ArmSecond, products: Floats, noise: Floats) -> ArmSlopes:
    """Return the posterior of all arms' slopes b from products C b + noise, by empirical Bayes.

    Slopes are a part that all arms share and a part of their own, each normal around zero, with variances of a grid.
    """
    arms, d = products.shape
    grid = _PRIOR_SD * moments.outcome_sd / sqrt(d) * np.array(_PRIORS)
    parts = [slice(arm * d, (arm + 1) * d) for arm in range(arms)]
    design = np.zeros((arms * d, arms * d))
    for part, own_design in zip(parts, moments.covariances, strict=True):
        design[part, part] = own_design
    seen, variances = products.ravel(), np.repeat(noise, d)
    along = moments.directions.T @ moments.directions
    priors = [
        _prior(arms, common, own, part * along) for part in _ALONG for common in grid for own in grid[:-1]
    ]
    centre, spread = averaged_posterior(design, seen, variances, priors)
    return ArmSlopes(centre.reshape(arms, d), np.stack([spread[part, part] for part in parts]))


def _prior(arms: int, common: float, own: float, along: Floats) -> Floats:
    """Return the prior covariance of the slopes of all arms together."""
    shared = common**2 * np.eye(len(along)) + (1 - min(0.5, (own / (common + own)) ** 2)) * along
    whole = (common**2 + own**2) * np.eye(len(along)) + along
    return np.block([[whole if one == other else shared for other in range(arms)] for one in range(arms)])


@dataclass(frozen=True, slots=True)
class ArmFit:
    """Lines of all arms and what is known about them.

    `products` (k, d) and their `noise` (k,) are all that was released about slopes so far; `residual` is an upper
    estimate of the residual variance, `square` and `square_sd` the last released one. `level_error` (k,) is the
    expected square of what `levels` are off, `first` (k,) the part of `products` that comes from the Grams.
    """

    levels: Floats
    slopes: ArmSlopes
    products: Floats
    noise: Floats
    residual: float
    level_error: Floats
    square: float = 0.0
    square_sd: float = 0.0
    step: float = 0.0  # explained by the last correction
    first: Floats = field(default_factory=lambda: np.ones(2))

    def lines(self, moments: ArmSecond) -> ArmLines:
        """Return the lines on (1, z)."""
        constants = self.levels - (moments.means * self.slopes.values).sum(axis=1)
        return ArmLines(np.column_stack([constants, self.slopes.values]))


def first_fit(moments: ArmSecond, square_sd: float) -> ArmFit:
    """Return the lines from the Grams alone; `square_sd` is the noise of the outcome's mean square."""
    noise = moments.noise + 0.1 * moments.errors * moments.outcome_sd**2
    slopes = fitted_slopes(moments, moments.products, noise)
    noise = moments.noise + moments.errors * slopes.squares
    slopes = fitted_slopes(moments, moments.products, noise)
    explained = explained_by(moments, slopes.values)
    left = max(moments.left - explained, 0.02 * moments.outcome_sd**2)
    left += float(moments.shares @ slopes.errors) + square_sd
    left = min(left, 1.5 * moments.outcome_sd**2)
    # What noise hides of a level is taken to lie near that of everyone.
    likely = (_LEVELS * moments.outcome_sd) ** 2
    part, everyone = likely / (likely + moments.level_error), float(moments.shares @ moments.levels)
    levels = everyone + part * (moments.levels - everyone)
    first = np.ones(len(levels))
    return ArmFit(levels, slopes, moments.products, noise, left, part * moments.level_error, first=first)


def explained_by(moments: ArmSecond, slopes: Floats) -> float:
    """Return the variance that slopes (k, d) explain within the arms."""
    own = np.einsum("ai,aij,aj->a", slopes, moments.covariances, slopes)
    return float(moments.shares @ own)


def refined(moments: ArmSecond, fit: ArmFit, residuals: ResidualProducts) -> ArmFit:
    """Return the lines moved by what the residuals still hold, both sources weighted by their noise."""
    seen = residuals.products / moments.shares[:, None]
    level_noise = (residuals.sd / moments.shares) ** 2
    level_error = np.maximum(fit.level_error, _CLIPPED * fit.residual)
    part = level_error / (level_error + level_noise)
    levels = fit.levels + part * seen[:, 0]
    # A correction is off by the share's part of what it corrects.
    level_error = part * level_noise + moments.share_error / moments.shares**2 * level_error
    bent = np.einsum("aij,aj->ai", moments.covariances, fit.slopes.values)
    products = seen[:, 1:] - moments.means * seen[:, :1] + bent
    noise = (residuals.sd / moments.shares) ** 2 + moments.errors * fit.slopes.errors
    together = 1 / (1 / fit.noise + 1 / noise)
    products = together[:, None] * (fit.products / fit.noise[:, None] + products / noise[:, None])
    slopes = fitted_slopes(moments, products, together)
    found = replace(
        fit,
        levels=levels,
        slopes=slopes,
        products=products,
        noise=together,
        level_error=level_error,
        square=max(residuals.square, 1e-6),
        square_sd=residuals.square_sd,
        step=explained_by(moments, slopes.values - fit.slopes.values),
        first=fit.first * together / fit.noise,
    )
    # An upper estimate of the residual variance: a quarter of the measured one at least, plus doubt.
    left = max(found.square - max(found.step, 0.0), found.square / 4)
    return replace(
        found,
        residual=min(left + float(moments.shares @ found.slopes.errors) + found.square_sd / 2, fit.residual),
    )


def residual_clip(fit: ArmFit) -> float:
    """Return where residuals are clipped when their moments are released."""
    return RESIDUAL_CLIP_SDS * sqrt(fit.residual + float(fit.level_error.max()))


_WEIGHTS_RIDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 10.0, 100.0)
# Least alignment of what weights and lines leave out: this many times what chance would give.
_ALIGNMENT = 3.0
# What the bound of the bias of shrinkage is multiplied by.
_BIAS = 1.5
_MOST_BIAS = 2.0
# Most that the squared spread of weights counts, beside one.
_MOST_SPREAD = 2.0
# The least mean of e (1 - e), and the part of the rows that overlap weights are taken to be worth.
_LEAST_OVERLAP, _OVERLAP = 0.02, 0.75
# Squares and products are taken to move an effect that moves by this many standard errors.
_SURE_MOVED = 2.0


@dataclass(frozen=True, slots=True)
class Guard:
    """What intervals are guarded with, from public numbers.

    `inflation` multiplies the variance of the product of both errors; `shared` is the least part of the shared error
    that residuals leave.
    """

    inflation: float
    shared: float


@dataclass(frozen=True, slots=True)
class BalancedScore:
    """The score of every row, and what its models leave: a variance and a bound of a bias.

    `sampling` is the part of the effect's sampling variance that scores with ridged weights do not show.
    `shared` is the expected error of the effect from noise of the Grams that weights and lines share, `degrees` how far
    squares and products move the effect where they surely do. `levels` are what the lines say of all arms' means, and
    `sides` what each arm has of all this, the reference first.
    """

    score: ArmScore
    levels: Floats
    sides: tuple[_Side, ...]
    degrees: float = 0.0

    @property
    def product(self) -> float:
        """The variance of the product of both models' errors."""
        return sum(side.product for side in self.sides)

    @property
    def bias(self) -> float:
        """The bound of the effect's bias, but for that of its degrees."""
        return sum(side.bias for side in self.sides)

    @property
    def shared(self) -> float:
        """The expected error of the effect."""
        return self.sides[0].shared - self.sides[1].shared

    @property
    def sampling(self) -> float:
        """The sampling variance that scores do not show."""
        return sum(side.sampling for side in self.sides)


@dataclass(frozen=True, slots=True)
class _Side:
    """One arm's slope of the weights, before it is divided by the arm's share, and what it leaves."""

    slope: Floats
    product: float = 0.0
    bias: float = 0.0
    shared: float = 0.0
    sampling: float = 0.0


def weighted(moments: ArmSecond, fit: ArmFit, estimand: Estimand, rows: int, guard: Guard) -> BalancedScore:
    """Return the score for an estimand, of several arms that on everyone, with the ridge of least expected error."""
    p = moments.shares
    target = _target(moments, estimand)
    # Of overlap weights the mean of z is released with the Grams, so that scores hold no more than residuals.
    people = {Estimand.ATE: (1.0, 1.0), Estimand.ATT: (0.0, 1 / p[1]), Estimand.ATC: (1 / p[0], 0.0)}
    own = {Estimand.ATT: 1, Estimand.ATC: 0}.get(estimand)
    weights = np.zeros((len(p), len(moments.overall) + 1))
    sides = []
    for arm in range(len(p)):
        weights[arm, 0] = 1 / p[arm]
        if arm == own:
            sides.append(_Side(np.zeros(len(moments.overall))))
            continue
        found = _side(moments, fit, arm, estimand, rows, guard)
        weights[arm, 0] -= moments.means[arm] @ found.slope / p[arm]
        weights[arm, 1:] = found.slope / p[arm]
        sides.append(found)
    slopes, off = fit.slopes.values, target - moments.means
    levels = fit.levels + (off * slopes).sum(axis=1)
    effect = float(levels[1] - levels[0])
    if estimand is Estimand.ATO:
        vary, noise = slopes[1] - slopes[0], _overlapping(moments)[1]
        chance = float(vary @ np.einsum("a,aij->ij", p, moments.covariances) @ vary) / (_OVERLAP * rows)
        product = sides[0].product + noise * float(vary @ vary)
        sides[0] = replace(sides[0], product=product, sampling=sides[0].sampling + chance)
    score = ArmScore(fit.lines(moments), weights, people.get(estimand, (0.0, 0.0)), effect)
    return BalancedScore(score, levels, tuple(sides))


# Which part of the arms' means is looked at: the difference of two.
_DIFFERENCE = (-1.0, 1.0)


def moved_by_richer(
    moments: ArmSecond,
    fit: ArmFit,
    estimand: Estimand,
    plain: int,
    rows: int,
    signs: Sequence[float] = _DIFFERENCE,
) -> float:
    """Return how far squares and products move the effect of the arms' lines, 0 where noise or chance may explain it.

    `plain` features are the covariates themselves. What richer ones still would move is of that size at most, if they
    matter less and less. With other `signs` than those of the effect it is a mean that is looked at.
    """
    means, covariances = moments.means[:, :plain], moments.covariances[:, :plain, :plain]
    along = _directions(means, moments.shares, covariances, moments.outcome_sd)
    fewer = replace(
        moments, overall=moments.overall[:plain], means=means, covariances=covariances, directions=along
    )
    without = fitted_slopes(fewer, fit.products[:, :plain], fit.noise)
    with_all, variance = _contrast(moments, fit.slopes, estimand, fit.residual / rows, signs)
    with_some, less = _contrast(fewer, without, estimand, fit.residual / rows, signs)
    moved = abs(with_all - with_some)
    return moved if moved > _SURE_MOVED * sqrt(max(variance - less, variance / 4)) else 0.0


def _contrast(
    moments: ArmSecond, slopes: ArmSlopes, estimand: Estimand, residual: float, signs: Sequence[float]
) -> tuple[float, float]:
    """Return what slopes add to the difference of levels, and its variance from noise and sampling."""
    off, weights = _target(moments, estimand) - moments.means, np.array(signs)
    along = np.einsum("ai,ai->a", off, slopes.values)
    noise = np.einsum("ai,aij,aj->a", off, slopes.covariances, off)
    spread = [
        float(gap @ np.linalg.solve(own, gap)) for own, gap in zip(moments.covariances, off, strict=True)
    ]
    return float(weights @ along), float(weights**2 @ (noise + residual * (spread / moments.shares)))


def _target(moments: ArmSecond, estimand: Estimand) -> Floats:
    """Return the mean of z over the people asked about."""
    if estimand is Estimand.ATO:
        return _overlapping(moments)[0]
    own = {Estimand.ATT: 1, Estimand.ATC: 0}.get(estimand)
    return moments.overall if own is None else np.asarray(moments.means[own])


def _overlapping(moments: ArmSecond) -> tuple[Floats, float]:
    """Return the mean of z over the people of overlap weights, and the variance of an entry of it from noise.

    Weights are 1 - e in the treated arm and e in the other, e being the regression b'z of treatment: with them both
    arms have the same mean of z (Li, Morgan and Zaslavsky 2018).
    """
    p, means, covariances = moments.shares, moments.means, moments.covariances
    gap = means[1] - means[0]
    # The spread of everyone is that within arms and that of the gap, which may be so large that the two together have
    # no inverse: with c the regression by the arms' spread, b = c/(1 + gap'c), and 1 - b'gap = 1/(1 + gap'c).
    c = np.linalg.solve(np.einsum("a,aij->ij", p, covariances), p[0] * p[1] * gap)
    apart = 1 + max(float(gap @ c), 0.0)
    part = c / apart / max(float(p[0] * p[1]) / apart, _LEAST_OVERLAP)
    found = means + np.array([p[0], -p[1]])[:, None] * (covariances @ part)
    noise = len(p) * moments.mean_sd**2 + float(p**4 @ moments.errors * (part @ part))
    return np.asarray(p @ found), 2 * noise


def _side(moments: ArmSecond, fit: ArmFit, arm: int, estimand: Estimand, rows: int, guard: Guard) -> _Side:
    """Return the slope of one arm's weights, with what a ridge leaves of imbalance and noise."""
    target, p = _target(moments, estimand), moments.shares
    noise = moments.mean_sd**2 * (
        (1 - 1 / p[arm]) ** 2 + len(p) - 1 if estimand is Estimand.ATE else float((1 / p**2).sum())
    )
    values, vectors = np.linalg.eigh(moments.covariances[arm])
    gap = vectors.T @ (target - moments.means[arm])
    slope_covariance = vectors.T @ fit.slopes.covariances[arm] @ vectors
    # How far the weights are off one on average: by the share's error and by that of the arm's means.
    share, mean = moments.share_error / p[arm] ** 2, (moments.mean_sd / p[arm]) ** 2
    scaled = share * float(gap**2 @ np.diag(slope_covariance))
    slopes = vectors.T @ fit.slopes.values[arm]
    error, size = max(float(np.trace(slope_covariance)), 0.0), float(slopes @ slopes)
    # Lines fitted to the same rows have the sampling error that weights without a ridge show.
    truly, each = np.maximum(gap**2 - noise, 0.0), fit.residual / (float(p[arm]) * rows)
    # With an error E of the covariance C, weights leave E v of imbalance, v = C^-1 (target - mean), and lines that were
    # made with C alone miss C^-1 E b of the slopes b; the mean of E C^-1 E is about the variance of an entry times
    # tr C^-1. Lines that were refined on residuals miss a part of it.
    both = max(float(fit.first[arm]), guard.shared) * float(moments.errors[arm] * (1 / values).sum())
    best: tuple[float, _Side] | None = None
    for ridge in _WEIGHTS_RIDGES:
        kept = values / (values + ridge)
        left, turned = (1 - kept) * gap, gap / (values + ridge)
        chance = float(((1 - kept) ** 2 * truly).sum())
        product = max(float(left @ slope_covariance @ left), _ALIGNMENT / len(target) * chance * error)
        product += noise * float(kept**2 @ np.diag(slope_covariance))
        product += float(moments.errors[arm]) * float(turned @ turned) * error
        product += scaled + (share + mean * float(turned @ turned)) * float(fit.level_error[arm])
        spread = float(values @ turned**2)
        # Weights that vary much rest on few rows, whose errors have heavier tails.
        product = max(product, 0.0) * guard.inflation * (1 + min(spread, _MOST_SPREAD))
        missed = each * float(truly @ (1 / values - values / (values + ridge) ** 2))
        bias = _BIAS * abs(float(left @ slopes)) * min(error / max(size, 1e-9), _MOST_BIAS)
        shared = both * float(turned @ slopes)
        # As the interval has it.
        expected = product + each * spread + missed + bias**2 + expected_shared(shared)
        if best is None or expected < best[0]:
            best = expected, _Side(vectors @ turned, product, bias, shared, missed)
    assert best is not None
    return best[1]


# A column is looked at again within so many standard deviations of its mean; one with less than this scale in it is
# taken to have this scale.
_WINDOW, _LEAST_SCALE = 3.0, 0.2
# Clip of the outcome in the Grams, in its standard deviations, and the farthest that it is where tails are heavy.
_OUTCOME_CLIP_SDS, _FARTHEST = 2.5, 6.0
# Cells of the sizes of scores, in expected standard deviations.
SIZES = 2.0 ** np.arange(-2, 7.01, 0.5)
# Part of the size that is cut off a score which moves its mean: scores are cut off on both sides.
_ONE_SIDED = 0.25
# The same of scores that noise hides, and from which skewness of outcomes on all of it does.
_HIDDEN, _SKEWED = 0.5, 0.5
# Scores farther out than so many expected standard deviations are counted by what clips lose of them.
_FAR = 6.0
# Counts of scores of events (0 or 1) beyond an edge are people from so many standard deviations of their noise on.
_STANDS_OUT = 4.0
# Tails of other scores are at most this many times what falls with the fourth power.
_TAILS = 4.0
# The largest part of the scores that is cut off.
_MOST_CUT = 0.03
# The standard deviation of what is left of the expected shared error once that is taken off, beside it.
_RUN_SHARED = 1.2
# Scores are clipped so far out that noise adds this part of the sampling error, or this where tails are heavy.
_NOISE, _HEAVY_NOISE = 0.25, 0.5
# The largest weights, in their standard deviations, where outcomes are uneven.
LARGEST_WEIGHT_SDS = 1.75
# The exponential distribution around its mean, in a few places: weights are skewed like that.
_NODES, _MASSES = laggauss(24)
_NODES = _NODES - 1


@dataclass(frozen=True, slots=True)
class ArmModels:
    """What is released before any score: rows with windows and their scale, moments and lines, and the weights."""

    rows: Records
    scale: RowScale
    moments: ArmSecond
    fit: ArmFit
    found: BalancedScore


def arm_models(gate: Gate, records: Records, design: ArmDesign, estimand: Estimand) -> ArmModels:
    """Return the models: two looks at the covariates, the outcome's place, lengths, Grams, residuals."""
    seen, first = _windows(gate, records, design)
    scale, share, share_sd = _scale(gate, seen, first, design)
    grams, sd = release_arm_grams(gate, seen, scale)
    moments = arm_moments(grams, sd, scale, share, share_sd)
    fit = first_fit(moments, sqrt(2) * sd / scale.outcome)
    for place in range(_PASSES):
        name = f"residual {place + 1}"
        clip = max(residual_clip(fit), scale.least_clip(fit.levels))
        residuals = release_arm_residuals(gate, name, seen, scale, fit.lines(moments), clip)
        fit = refined(moments, fit, residuals)
    explained = explained_by(moments, fit.slopes.values)
    guard = Guard(design.inflation(explained / (explained + fit.residual)), design.shared)
    found = weighted(moments, fit, estimand, records.count, guard)
    if records.features.pairs:
        numbers = moments, fit, estimand, len(records.features.columns), records.count
        if not design.means:
            found = replace(found, degrees=moved_by_richer(*numbers))
        else:
            own = [moved_by_richer(*numbers, signs) for signs in np.eye(len(found.sides)).tolist()]
            sides = zip(found.sides, own, strict=True)
            found = replace(found, sides=tuple(replace(one, bias=one.bias + more) for one, more in sides))
    return ArmModels(seen, scale, moments, fit, found)


def _windows(gate: Gate, records: Records, design: ArmDesign) -> tuple[Records, FeatureMeans]:
    """Return the rows with numbers taken within windows around their means, and the first look."""
    plain = Records(records.source, FeatureMap(records.features.columns))
    numbers = ~plain.features.two_valued
    look = release_look(gate, "centre", plain, int(numbers.sum()), numbers, share=True)
    square_noise_sd = look.sd / float(SQUARE_WEIGHT)
    means = np.clip(look.means, -1.0, 1.0)
    spread = np.sqrt(np.clip(look.squares - means**2, square_noise_sd, 1.0))
    half_widths = np.minimum(max(_WINDOW, design.limit) * spread, 1 + np.abs(means))
    windows = tuple(
        (float(m), float(r)) if number else (0.0, 1.0)
        for m, r, number in zip(means, half_widths, numbers, strict=True)
    )
    return Records(records.source, replace(records.features, windows=windows)), look


def _scale(
    gate: Gate, records: Records, first: FeatureMeans, design: ArmDesign
) -> tuple[RowScale, float, float]:
    """Return how rows enter the Grams, and the share treated with its noise."""
    everything = np.ones(records.features.size, dtype=np.bool_)
    look = release_look(
        gate, "features", records, counted_features(records.features), everything, share=False
    )
    means, squares = shrunk_towards_prior(look.means, look.squares, look.sd)
    square_noise = np.clip(look.sd / float(SQUARE_WEIGHT), 0.001, _LEAST_SCALE**2)
    least = np.where(records.features.two_valued, _LEAST_SCALE**2, square_noise)
    standard = Standard(means, np.sqrt(np.clip(squares - means**2, least, 1.0)), design.limit, np.inf)
    place = release_place(gate, records, design.pure, design.place_cells) if design.searched else WHOLE
    length = release_norms(gate, records, standard, design.pure, design.shortened)
    size = records.features.size
    length = size * min(length / size, design.limit**2, design.longest)
    standard = replace(standard, squared_length=length)
    outcome_clip = (
        max(_OUTCOME_CLIP_SDS, min(place.farthest, _FARTHEST)) if place.uneven else _OUTCOME_CLIP_SDS
    )
    outcome_clip = 1.0 if place.whole else outcome_clip
    scale = RowScale(standard, place, _CONSTANT * length, _OUTCOME * length, outcome_clip)
    return scale, first.treated, first.treated_sd


@dataclass(frozen=True, slots=True)
class ScoredEffect:
    """The effect in units of half the outcome's range, and the parts of its uncertainty.

    `sampling`, `noise` and `product` are variances, `bias` is a bound that is added to the half-width, of which
    `degrees` is how far squares and products move the effect. `share` is that of the treated.
    """

    value: float
    sampling: float
    noise: float
    product: float
    bias: float
    share: float
    degrees: float = 0.0
    ends: OutcomesAtEnds | None = None


def arm_effect(gate: Gate, records: Records, design: ArmDesign, estimand: Estimand) -> ScoredEffect:
    """Return the effect from the mean of the scores, clipped where a histogram of their sizes says."""
    models = arm_models(gate, records, design, estimand)
    records, scale, moments, fit, found = models.rows, models.scale, models.moments, models.fit, models.found
    # Weights have the mean one over their arm's share; uneven outcomes are clipped no nearer than they reach, times
    # about the largest of them.
    weights = found.score.weights[:, 1:]
    spread = np.sqrt(np.einsum("ai,aij,aj->a", weights, moments.covariances, weights))
    least = scale.least_clip(fit.levels) * float((1 / moments.shares + LARGEST_WEIGHT_SDS * spread).max())
    squares = 1 / moments.shares**2 + spread**2
    typical = fit.residual * float(moments.shares @ squares)
    # How peaked scores are because an arm is small, and how far they reach with residuals of one standard deviation.
    peaked = float(moments.shares @ squares**2) * (fit.residual / typical) ** 2
    far = sqrt(fit.residual) * float((1 / moments.shares + spread).max())
    edges = sqrt(typical) * SIZES
    counts, sd = release_sizes(gate, records, scale, found.score, edges, design.pure)
    missed = np.sum([not_corrected(moments, fit, arm, weights[arm], edges) for arm in (0, 1)], axis=0)
    hidden = far_lost(moments, scale, {0: weights[0], 1: weights[1]}, edges)
    numbers = design.score_unit, records.count, sqrt(typical), peaked, far, missed, hidden, least, scale.place
    clip, lost, more = chosen_clip(counts, sd, edges, *numbers, longest_score(found.score, scale))
    more /= len(found.sides)
    sides = tuple(replace(side, product=side.product + more) for side in found.sides)
    found = replace(found, sides=sides)
    seen = release_arm_score(gate, records, scale, found.score, clip)
    effect = _effect(seen, found, moments, scale, records.count, typical, lost)
    return replace(effect, ends=scale.place.ends)


# Proof: longest_score.proof.md
def longest_score(score: ArmScore, scale: RowScale) -> float:
    """Return a bound of the size of every score, from released lines and weights and the limits of rows and outcomes.

    A row of arm a has the score people_a (tau'u - effect) +- alpha_a'u (y - beta_a'u).
    """
    control, treated = score.lines.values
    gain = treated - control
    gain[0] -= score.effect
    own = longest_weighted(score.lines, score.weights, scale)
    return float(max(scale.farthest_line(gain) * np.array(score.people) + own))


# Proof: longest_score.proof.md
def longest_weighted(lines: ArmLines, weights: Floats, scale: RowScale) -> Floats:
    """Return for every arm a bound of the size of its weighted residuals alpha_a'u (y - beta_a'u)."""
    pairs = zip(weights, lines.values, strict=True)
    return np.array(
        [
            scale.farthest_line(weight) * (scale.farthest_outcome + scale.farthest_line(line))
            for weight, line in pairs
        ]
    )


def not_corrected(moments: ArmSecond, fit: ArmFit, arm: int, weights: Floats, clips: Floats) -> Floats:
    """Return the variance of what an arm's line is off by and scores do not correct, since a clip cuts their ends off.

    Scores with weights w lose the part P(|w e| > clip) of what their line is off, at every w; residuals e are taken
    as normal.
    """
    share, level = moments.shares[arm], float(fit.level_error[arm])
    along = moments.covariances[arm] @ weights
    spread = sqrt(max(float(weights @ along), 1e-12))
    each = 1 / share + spread * _NODES
    beyond = 2 * ndtr(-clips[:, None] / (np.abs(each) * sqrt(fit.residual + level)))
    lost = share * _MASSES * each * beyond
    slope = float(along @ fit.slopes.covariances[arm] @ along) / spread**2
    return np.asarray(lost.sum(axis=1) ** 2 * level + (lost @ _NODES) ** 2 * slope)


def far_lost(
    moments: ArmSecond, scale: RowScale, weights: Mapping[int, Floats], clips: Floats
) -> tuple[Floats, Floats, float]:
    """Return how much the means of these arms lose by outcomes far out, the noise of that, and the largest score."""
    far = scale.place.hidden
    if far is None:
        return np.zeros(len(clips)), np.zeros(len(clips)), 0.0
    spreads = {a: sqrt(max(float(own @ moments.covariances[a] @ own), 1e-12)) for a, own in weights.items()}

    def losses(distances: Floats) -> Floats:
        total = np.zeros((len(clips), len(distances)))
        for arm, spread in spreads.items():
            share = moments.shares[arm]
            scores = np.outer(distances / scale.unit, np.abs(1 / share + spread * _NODES))
            total += share * np.maximum(scores - clips[:, None, None], 0.0) @ _MASSES
        return total

    longest = max(1 / moments.shares[arm] + 2 * spread for arm, spread in spreads.items())
    return *far.lost(losses), longest * float(far.distances.max(initial=0.0)) / scale.unit


def _held(
    counts: Floats, sd: float, edges: Floats, typical: float, hidden: tuple[Floats, Floats, float]
) -> Floats:
    """Return what clips lose of scores far out, as a standard deviation: what is seen of it, or the noise in that."""
    lost, lost_sd, longest = hidden
    sizes = np.minimum(np.append(edges, 1.42 * edges[-1])[1:] / 1.19, longest)
    each = np.maximum(sizes - edges[:, None], 0.0) * (edges > _FAR * typical)
    found, noise = each @ counts[1:], sd * np.sqrt((each**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = 1 / lost_sd**2, 1 / noise**2
        both = (lost * precision[0] + found * precision[1]) / sum(precision)
        return HELD * np.where(
            (lost_sd > 0) & (noise > 0), np.maximum(both, 1 / np.sqrt(sum(precision))), 0.0
        )


def chosen_clip(
    counts: Floats,
    sd: float,
    edges: Floats,
    unit: float,
    rows: int,
    typical: float,
    peaked: float,
    far: float,
    missed: Floats,
    hidden: tuple[Floats, Floats, float],
    least: float,
    around: Centre,
    longest: float = inf,
) -> tuple[float, float, float]:
    """Return where scores are clipped, a bound of how far that moves their mean, and a variance of what that leaves.

    No score is longer than `longest`: cells beyond it are empty, whatever their noisy counts say, and a clip there cuts
    off nothing. A false count far out costs as much as its cell is far. So scores of events, which have no tails
    beyond `longest`, are counted where they stand out of the noise; of others no more lies beyond an edge than tails
    that fall with the fourth power leave.

    `least` is a clip that uneven outcomes need, and zero where they are even; `missed` is the variance of what scores
    do not correct. A clip may be so far out that noise adds a part of the sampling error. Outcomes that are skewed and
    no more are clipped nearer than `least` where a bound of what that cuts off is shorter than the noise.
    """
    events = around.whole and around.hidden is None
    skewed = not around.whole and abs(around.skew) > _SKEWED
    uneven = least > 0 or skewed
    # The last cell that a score may lie in is that of the longest.
    cells, place = int(np.searchsorted(edges, longest)) + 1, np.arange(1, len(counts))
    counts = np.where(np.arange(len(counts)) < cells, counts, 0.0)
    above = (
        place * np.cumsum(counts[::-1])[::-1][1:] + (cells - place) * (rows - np.cumsum(counts)[:-1])
    ) / cells
    above = np.where(place < cells, above, 0.0)
    noise = sd * np.sqrt(np.maximum(place * (cells - place), 0) / cells)
    sure = _STANDS_OUT if events else np.where(edges > 6 * typical, 4, 2) / (2 if uneven else 1)
    part = np.minimum.accumulate(np.where(above > sure * noise, above, 0.0) / rows)
    if not events:
        part = np.minimum(part, _TAILS * peaked * (typical / edges) ** 4)
    # What noise hides, if tails fall with the fourth power; all of it, and of what is seen, may lie on one side where
    # outcomes are skewed, which are more peaked and fall like residuals with large weights.
    missed = missed + _held(counts / rows, sd / rows, edges, typical, hidden) ** 2
    square, reached = around.skew**2 / 2, edges / 3
    if skewed:
        peaked, reached = peaked * (1 + square), np.maximum(reached, far * min(square, 1.0))
    unseen = np.minimum(noise / rows, peaked * (typical / edges) ** 4) * reached
    unseen *= 1.0 if skewed else 0.0 if uneven else _HIDDEN
    gaps = np.diff(np.append(edges, 1.4 * edges[-1]))
    cut = np.cumsum((part * gaps)[::-1])[::-1] * (1.0 if uneven else _ONE_SIDED) + unseen
    cut, missed = (np.where(edges < longest, one, 0.0) for one in (cut, missed))
    # Half the length of an interval from sampling, noise and what is cut off.
    cost = 2 * np.sqrt(typical**2 / rows + (edges * unit) ** 2 + missed) + cut
    cost += np.where(part > _MOST_CUT + noise / rows, np.inf, 0.0)
    best = int(np.argmin(cost)) if np.isfinite(cost).any() else len(edges) - 1
    clip = float(edges[best])
    clip = max(clip, min(2.5 * typical, 1.42 * clip))
    if around.heavy or events or 2 * sqrt(typical**2 / rows + (least * unit) ** 2) < cost[best]:
        clip = max(clip, least)
    free = (_HEAVY_NOISE if around.heavy else _NOISE) * typical / sqrt(rows) / unit
    clip = min(max(clip, min(free, float(edges[-1]))), longest)
    return clip, float(np.interp(clip, edges, cut)), float(np.interp(clip, edges, missed))


def _effect(
    seen: ScoreMoments,
    found: BalancedScore,
    moments: ArmSecond,
    scale: RowScale,
    rows: int,
    typical: float,
    lost: float,
) -> ScoredEffect:
    coefficients = found.score.weights.size
    square = max(seen.square, 0.0) + 0.7 * seen.square_sd
    sampling = max(square - seen.score**2, 0.1 * typical) / max(rows - coefficients, rows / 2)
    unit = scale.unit
    # Scores whose mean is off zero are cut off more on one side.
    lost *= 1 + 2 * min(abs(seen.score) / sqrt(typical), 1.0)
    return ScoredEffect(
        (found.score.effect + seen.score - found.shared) * unit,
        (sampling + found.sampling) * unit**2,
        seen.sd**2 * unit**2,
        (found.product + expected_shared(found.shared)) * unit**2,
        (found.bias + found.degrees + lost) * unit,
        float(moments.shares[1]),
        found.degrees * unit,
    )


def expected_shared(shared: float) -> float:
    """Return the variance of what is left of an expected shared error once that is taken off."""
    return (_RUN_SHARED * shared) ** 2


PAGES = (
    "rows/moments/arm_grams.proof.md",
    "rows/moments/arm_statistics.proof.md",
    "rows/moments/orthogonal_score.proof.md",
    "rows/histogram.proof.md",
)
_WORDS = {
    "centre": "means and mean squares of numbers, and the share treated",
    "features": "means and mean squares of the features, numbers rescaled",
    "place 1": "histogram of the outcome over its range",
    "place 2": "histogram of the outcome where the first is full",
    "norms": "histogram of the rows' lengths",
    "gram": "second moments of covariates and outcome in each arm",
    "sizes": "histogram of the sizes of the scores",
    "score": "mean and mean square of the doubly robust score",
}
# Of means.
_OWN_WORDS = {
    "sizes": "histogram of the sizes of weighted residuals in each arm",
    "score": "number of rows, sum and squares of weighted residuals in each arm",
}


def arm_design(session: BaseSession, question: Question, settings: DoublyRobust) -> tuple[FeatureMap, Design]:
    """Return the features and the public numbers of the shortest interval that is expected.

    Pure noise is compared too where the mechanism was left to the library: it keeps the guarantee for every delta.
    """
    study = session.study
    feature_maps = (
        feature_sets(study) if settings.degree == "auto" else (feature_map(study, int(settings.degree)),)
    )
    mechanisms = dict.fromkeys((question.mechanism, *(["staircase"] if question.open_noise else [])))
    numbers = session.batches.rows, question.budget, tuple(mechanisms)
    found = shortest(feature_maps, *numbers, arms=arms_of(study))
    return found.features, found.design


def arm_adjusted(session: BaseSession, question: Question, features: FeatureMap, design: Design) -> Result:
    """Return the adjusted private effect on the people that the estimand names."""
    chain = chain_of(session, design)
    question = replace(question, mechanism=design.mechanism)

    def compute(gate: Gate) -> Facts:
        effect = arm_effect(gate, Records(session.batches, features), chain, question.estimand)
        low, high = session.study.outcome_range
        unit = float(high - low) / 2
        sampling, noise, product = (
            part * unit**2 for part in (effect.sampling, effect.noise, effect.product)
        )
        # Pure noise is one of the coordinates of a ball: mean and mean square of the score.
        extra, ball, dimensions = (product, noise, 2) if design.pure else (noise + product, 0.0, 0)
        bias = effect.bias * unit
        details = {
            "adjusted": True,
            "rows": design.rows,
            "features": design.features,
            "mechanism": design.drawn,
            "share_treated": effect.share,
            "residual_passes": _PASSES,
            "se_sampling": sqrt(sampling),
            "se_score_noise": sqrt(noise),
            "se_models": sqrt(product),
            "model_bias_bound": bias,
            "moved_by_squares_and_products": effect.degrees * unit,
        }
        return Facts(
            # Overlap weights are lines where propensities are.
            adjusted_said(
                session, features, chain, inverse=question.estimand is not Estimand.ATO, ends=effect.ends
            ),
            estimate=effect.value * unit,
            uncertainty=Uncertainty(None, sampling, sampling, None, extra, bias, ball, dimensions),
            details=details,
        )

    drawn = mechanisms_of(design)
    return answer_request(Result, session, question, chain.plan(), compute, pages=PAGES, mechanisms=drawn)


def chain_of(session: BaseSession, design: Design, *, means: bool = False) -> ArmDesign:
    """Return the public numbers of a chain: of the effect, or of the means of all arms."""
    # Outcomes from 0 to 1 are events, which may be so rare that noise hides them.
    low, high = session.study.outcome_range
    return ArmDesign(design, searched=low != 0 or high != 1, means=means)


def adjusted_said(
    session: BaseSession,
    features: FeatureMap,
    chain: ArmDesign,
    *,
    inverse: bool = True,
    ends: OutcomesAtEnds | None = None,
) -> dict[str, Any]:
    """Return what every adjusted answer says of itself."""
    return {
        "method": "doubly robust with moments by arm",
        "releases": _releases(chain),
        "not_covered": (
            Caveat.UNDECLARED_COVARIATES,
            Caveat.NONLINEARITY,
            ends or Caveat.CLAMPING,
            Caveat.CLIPPED_SCORES,
            Caveat.COVERAGE_MEASURED,
        ),
        # Weights of a trial are right whatever the covariates.
        "assumptions": None if session.study.randomised is True else linear_scores(features, inverse=inverse),
    }


def mechanisms_of(design: Design) -> tuple[str, ...]:
    """Return the mechanisms of a chain's noise."""
    return ("ball", "laplace") if design.pure else ("gaussian",)


def linear_scores(features: FeatureMap, *, inverse: bool) -> LinearScores:
    """Return that a score or the outcome regression is linear in these features."""
    squares, products = any(i == j for i, j in features.pairs), any(i != j for i, j in features.pairs)
    return LinearScores(inverse, squares, products)


def _releases(chain: ArmDesign) -> tuple[tuple[str, str], ...]:
    noise = "l2-ball noise" if chain.pure else "Gaussian noise"
    cells = "Laplace noise" if chain.pure else noise
    words = _WORDS | (_OWN_WORDS if chain.means else {})
    return tuple(
        (
            words.get(name, "moments of the residuals in each arm"),
            f"{float(share):.3g} of the budget; {cells if name in chain.histograms else noise}",
        )
        for name, share in chain.shares.items()
    )


def bounded_contrast(session: BaseSession, question: Question, kappa: float) -> Result:
    """Return the private difference in means with kappa sd(y) / (0.75 sd(t)) added at both ends.

    Everything added is computed from the released contrast, so that it costs nothing.
    """
    better = is_worthwhile(session.batches.rows, question.budget, question.mechanism)
    public = PublicData(session, question.unit)
    plain = compare(public, question, ARMS if better else POOLED).run(session)
    known = plain.uncertainty
    share = inner_share(float(plain.details["share_treated"]))
    # The contrast weights a row by 1/q or 1/(1-q), at least one over the larger of the two.
    second_moment = max(known.known_sd(1 - question.level) ** 2 - known.extra, 0.0) * session.batches.rows
    sd = max(share, 1 - share) * sqrt(second_moment + plain.estimate**2)
    found = bounded(plain, kappa, sd, share, NotAdjusted(kappa))
    return replace(found, method="unadjusted contrast with a declared bound on confounding")


def doubly_robust(session: BaseSession, question: Question) -> Result:
    """Return the adjusted private effect, or what the settings say where adjustment is not affordable."""
    require_covariates(session.study, "doubly_robust")
    settings = question.settings or DoublyRobust()
    features, design = arm_design(session, question, settings)
    if arms_affordable(design):
        return arm_adjusted(session, question, features, design)
    if settings.kappa is None:
        raise unaffordable(design)
    return bounded_contrast(session, question, settings.kappa)


def unaffordable(
    design: Design, rule: Callable[[Design], bool] = arms_affordable, *, means: bool = False
) -> CounterveilError:
    """Return what public numbers that do not afford adjustment are refused with: CV-P404 or CV-P405."""
    if not design.fits:
        return _too_many(design.features)
    return refusal(
        "CV-P404b" if means else "CV-P404",
        design=fewest_rows(design, rule),
        features=design.features,
        budget=design.budget,
        rows=design.rows,
    )


def _too_many(features: int) -> CounterveilError:
    return refusal("CV-P405", most_entries=MOST_ENTRIES, features=features)
