"""The releases of the orthogonal private effect: each one pass over blocks of rows, then the gate.

Every function takes public or released numbers and the rows, and returns released numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import (
    Standard,
    WholeSum,
    exact_gram,
    grid_bits,
    squared_lengths,
    steps,
    upper_places,
)
from counterveil.session import Gate
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.moments.kernels.scores import (
    TERM_BITS,
    Models,
    residual_sums,
    score_sums,
)
from counterveil.statistics.moments.records import MIDDLE, Records, TableRecords
from counterveil.statistics.moments.sensitivity import (
    LENGTH_SLACK,
    OFF_DIAGONAL,
    SQUARE_WEIGHT,
    CrossMoments,
    FreeGram,
    OrthogonalScore,
    RecordMoments,
    ResidualMoments,
)

# Edges of the histogram of |z|^2 / (number of features); one cell lies above the last.
EDGES = np.array([0.8, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.0])
# The shift of outcomes to steps of 2**-20 of half the range.
_SHIFT = 3
# Weight of the denominator beside the score in the last release; the less, the less noise the score gets.
INFORMATION = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Moments:
    """Released means and mean squares of features and outcome and the mean of 2t - 1, with their noise."""

    means: Floats
    squares: Floats
    treatment: float
    outcome: float
    outcome_square: float
    sd: float  # noise of a mean of features; a mean square has this divided by SQUARE_WEIGHT
    weight: float  # treatment and outcome have `sd` divided by this


def feature_moments(records: TableRecords, features: bool) -> Sums:
    """Return sums of features and of their squares, if wanted, and of (2t - 1, y, y^2), in steps of 2**-TERM_BITS."""
    first, second, own = WholeSum(), WholeSum(), WholeSum()
    for part in records.parts():
        x = np.zeros((1, 0), dtype=np.int64)
        if features:
            x = steps(part.x, TERM_BITS).astype(np.int64)
        outcome = (part.steps - MIDDLE) >> _SHIFT
        first.add(x.sum(axis=0))
        second.add((x * x).sum(axis=0))
        t = 2 * int(np.count_nonzero(part.treated)) - len(outcome)
        own.add(np.array([t, outcome.sum(), (outcome * outcome).sum()]))
    return first.whole(), second.whole(), own.whole()


def release_moments(gate: Gate, records: Records, counted: int) -> Moments:
    """Return first and second moments of every column; `counted` features bound what one record moves.

    With `counted` zero, features are left out: their moments are public.
    """
    n = records.count
    two_valued = records.features.two_valued if counted else np.zeros(0, dtype=np.bool_)
    weight = Fraction(round(1000 * sqrt(counted / 8)), 1000) if counted else Fraction(1)

    def values() -> list[Fraction]:
        first, second, (t, y, yy) = records.run(feature_moments, counted > 0)
        one = Fraction(1, n << TERM_BITS)
        square = SQUARE_WEIGHT * one / 2**TERM_BITS
        found = [total * one for total in first]
        found += [total * square for total, known in zip(second, two_valued, strict=True) if not known]
        return [*found, weight * Fraction(t, n), weight * y * one, weight * yy * square]

    released = gate.release_vector("centre", values, RecordMoments(n, counted, weight).means)
    found, size = released.floats(), len(two_valued)
    squares = np.ones(size)
    squares[~two_valued] = found[size:-3] / float(SQUARE_WEIGHT)
    t_mean, y_mean, y_square = found[-3:] / float(weight)
    return Moments(
        found[:size],
        squares,
        t_mean,
        y_mean,
        y_square / float(SQUARE_WEIGHT),
        sqrt(released.variance),
        float(weight),
    )


def length_counts(records: TableRecords, standard: Standard) -> Sums:
    """Return how many rows have |z|^2 / (number of features) in each cell between the edges."""
    counts = np.zeros(len(EDGES) + 1, dtype=np.int64)
    for part in records.parts():
        cells = np.searchsorted(EDGES, squared_lengths(standard.coordinates(part.x)) / records.features.size)
        counts += np.bincount(cells, minlength=len(counts))
    return (counts,)


def release_norms(gate: Gate, records: Records, standard: Standard, pure: bool, share: float) -> float:
    """Return the |z|^2 beyond which rows are shortened: about a part `share` of them, from a noisy histogram."""
    size = records.features.size
    released = release_counts(gate, "norms", lambda: records.run(length_counts, standard)[0], pure)
    noisy = released.floats()
    above = np.cumsum(noisy[::-1])[::-1][1:]
    sds = np.sqrt(released.variance * np.arange(len(EDGES), 0, -1))
    few = np.flatnonzero(above <= share * records.count + 1.6 * sds)
    return float(size * EDGES[few[0] if len(few) else -1])


@dataclass(frozen=True, slots=True)
class Scaling:
    """Centres and bounds of treatment and outcome, and their squared lengths a and b beside a row's.

    `crowded` says that the mean outcome lies near an end of its range; `variance` is what the outcome has before it is
    clipped to its bound, `variance_sd` the noise of that.
    """

    share: float
    mean: float
    treatment_bound: float
    outcome_bound: float
    a: float
    b: float
    crowded: bool = False
    variance: float = 0.0
    variance_sd: float = 0.0

    def columns(self, t: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return centred treatment and outcome in [-1, 1]."""
        outcome = np.clip((y - self.mean) / self.outcome_bound, -1.0, 1.0)
        return (t - self.share) / self.treatment_bound, outcome


@dataclass(frozen=True, slots=True)
class SecondMoments:
    """Released moments of u = (1, z), treatment and outcome, in the units of the latter two.

    `matrix` is None where correlations are public; `entry_sd` is the noise off its diagonal, and the
    other sds are those of the moments they are named after.
    """

    matrix: Floats | None
    with_treatment: Floats
    with_outcome: Floats
    treatment: float
    both: float
    outcome: float
    entry_sd: float
    treatment_sd: float
    outcome_sd: float
    both_sd: float
    square_sd: float


# Rows w of a table, in blocks of at most 4096.
Rows = Callable[..., Iterator[Floats]]


def product_sums(records: TableRecords, rows: Rows, bits: int, *arguments: Any) -> Sums:
    """Return the sum of w w' over the rows w that `rows` makes of the records and the arguments."""
    return (exact_gram(rows(records, *arguments), bits),)


def release_products(
    gate: Gate,
    name: str,
    records: Records,
    rows: Rows,
    arguments: tuple[Any, ...],
    largest: float,
    squared_reach: Fraction,
) -> tuple[Floats, float]:
    """Return the released mean of w w' over the rows w, and its noise off the diagonal.

    `rows` makes them of a table's records and the arguments. No entry of w is beyond `largest`, no |w|^2 beyond
    `squared_reach`.
    """
    count = records.count

    def values() -> list[Fraction]:
        bits = grid_bits(largest)
        (total,) = records.run(product_sums, rows, bits, *arguments)
        unit = Fraction(1, count * 4**bits)
        return [(unit if i == j else unit * OFF_DIAGONAL) * total[i, j] for i, j in upper_places(len(total))]

    released = gate.release_vector(name, values, FreeGram(count, squared_reach).entries)
    found = released.floats()
    size = isqrt(2 * len(found))  # of a triangle of m (m + 1) / 2 numbers
    noisy = np.zeros((size, size))
    for (i, j), value in zip(upper_places(size), found, strict=True):
        noisy[i, j] = noisy[j, i] = value if i == j else value / float(OFF_DIAGONAL)
    return noisy, sqrt(released.variance) / float(OFF_DIAGONAL)


def joint_rows(records: TableRecords, standard: Standard, scaling: Scaling) -> Iterator[Floats]:
    """Yield (u, sqrt(a) t, sqrt(b) y) of all rows, a block at a time."""
    root_a, root_b = sqrt(scaling.a), sqrt(scaling.b)
    for u, t, y in records.models(standard):
        treatment, outcome = scaling.columns(t, y)
        yield np.vstack((u.T, root_a * treatment, root_b * outcome)).T


def release_gram(
    gate: Gate, records: Records, standard: Standard, scaling: Scaling, name: str = "gram"
) -> SecondMoments:
    """Return the released second moments of (u, sqrt(a) t, sqrt(b) y)."""
    m = records.features.size + 1
    root_a, root_b = sqrt(scaling.a), sqrt(scaling.b)
    reach = Fraction(standard.squared_length) + 1 + Fraction(scaling.a) + Fraction(scaling.b)
    largest = max(standard.limit, root_a, root_b, 1.0)
    noisy, sd = release_products(gate, name, records, joint_rows, (standard, scaling), largest, reach)
    h_t, h_y = scaling.treatment_bound / root_a, scaling.outcome_bound / root_b
    return SecondMoments(
        noisy[:m, :m],
        noisy[:m, m] * h_t,
        noisy[:m, m + 1] * h_y,
        float(noisy[m, m]) * h_t**2,
        float(noisy[m, m + 1]) * h_t * h_y,
        float(noisy[m + 1, m + 1]) * h_y**2,
        sd,
        sd * h_t,
        sd * h_y,
        sd * h_t * h_y,
        sqrt(2.0) * sd * h_y**2,
    )


def cross_sums(
    records: TableRecords, standard: Standard, scaling: Scaling, root_pair: float, bits: int
) -> Sums:
    """Return sums of u with treatment and with outcome, then of both with each other and of the outcome's square."""
    crossed, own = WholeSum(), WholeSum()
    for u, t, y in records.models(standard):
        treatment, outcome = scaling.columns(t, y)
        whole = steps(u, bits).astype(np.int64)
        one, two = (
            steps(column * root, bits).astype(np.int64)
            for column, root in ((treatment, sqrt(scaling.a)), (outcome, sqrt(scaling.b)))
        )
        crossed.add(np.concatenate([(whole * column[:, None]).sum(axis=0) for column in (one, two)]))
        both, square = (steps(column * outcome * root_pair, bits) for column in (treatment, outcome))
        own.add(np.array([both.sum(), square.sum()]).astype(np.int64))
    return crossed.whole(), own.whole()


def release_cross(gate: Gate, records: Records, standard: Standard, scaling: Scaling) -> SecondMoments:
    """Return the released moments of u with treatment and outcome, where those of u are public."""
    n, m = records.count, records.features.size + 1
    squared = Fraction(standard.squared_length) + 1
    a, b = Fraction(scaling.a), Fraction(scaling.b)
    pair = squared * (a + b) / 10
    root_a, root_b, root_pair = sqrt(scaling.a), sqrt(scaling.b), sqrt(float(pair))

    def values() -> list[Fraction]:
        bits = grid_bits(max(standard.limit, root_a, root_b, root_pair, 1.0))
        crossed, own = records.run(cross_sums, standard, scaling, root_pair, bits)
        unit = Fraction(1, n * 4**bits)
        return [total * unit for total in crossed] + [Fraction(total, n << bits) for total in own]

    sensitivity = CrossMoments(n, squared, a + b, pair * (1 + LENGTH_SLACK)).entries
    released = gate.release_vector("gram", values, sensitivity)
    sd, found = sqrt(released.variance), released.floats()
    h_t, h_y = scaling.treatment_bound, scaling.outcome_bound
    with_t = found[:m] * h_t / root_a
    p = scaling.share
    return SecondMoments(
        None,
        with_t,
        found[m : 2 * m] * h_y / root_b,
        p * (1 - p) + (1 - 2 * p) * float(with_t[0]),
        float(found[-2]) * h_t * h_y / root_pair,
        float(found[-1]) * h_y**2 / root_pair,
        0.0,
        sd * h_t / root_a,
        sd * h_y / root_b,
        sd * h_t * h_y / root_pair,
        sd * h_y**2 / root_pair,
    )


@dataclass(frozen=True, slots=True)
class Residuals:
    """Released moments of u with the residual of the outcome, its mean square, and their noise."""

    with_rows: Floats
    square: float
    sd: float
    square_sd: float


def model_residuals(
    records: TableRecords, standard: Standard, models: Models, clip: float, reach: float
) -> Sums:
    """Return the sums of `residual_sums`."""
    sums, square = residual_sums(records.models(standard), models, clip, reach)
    return np.array(sums, dtype=object), np.array([square], dtype=object)


def release_residuals(
    gate: Gate, name: str, records: Records, standard: Standard, models: Models, clip: float
) -> Residuals:
    """Return moments of u with the residual of the outcome, which is clipped to [-clip, clip]."""
    n = records.count
    reach = sqrt(1.0 + standard.squared_length)

    def values() -> list[Fraction]:
        sums, (square,) = records.run(model_residuals, standard, models, clip, reach)
        unit = Fraction(1, n * 4**TERM_BITS)
        return [total * unit for total in sums] + [SQUARE_WEIGHT * square * unit]

    released = gate.release_vector(name, values, ResidualMoments(n).means)
    found, sd = released.floats(), sqrt(released.variance)
    weight = float(SQUARE_WEIGHT)
    return Residuals(
        found[:-1] * reach * clip, found[-1] * clip**2 / weight, sd * reach * clip, sd * clip**2 / weight
    )


@dataclass(frozen=True, slots=True)
class ScorePass:
    """Released means of the score r, its square and (t-e)^2, and their noise."""

    score: float
    square: float
    information: float
    score_sd: float
    square_sd: float
    information_sd: float


def model_scores(
    records: TableRecords, standard: Standard, models: Models, clip: float, largest: float
) -> Sums:
    """Return the sums of `score_sums`: scores, squares, information."""
    sums = score_sums(records.models(standard), models, clip, largest)
    return (np.array([sums.score, sums.square, sums.information], dtype=object),)


def release_score(
    gate: Gate,
    name: str,
    records: Records,
    standard: Standard,
    models: Models,
    clip: float,
    largest: float,
) -> ScorePass:
    """Return a pass over the orthogonal score; r is clipped to [-clip, clip] and (t-e)^2 to [0, largest]."""
    n = records.count

    def values() -> list[Fraction]:
        ((score, square, information),) = records.run(model_scores, standard, models, clip, largest)
        one = Fraction(1, n << TERM_BITS)
        return [score * one, SQUARE_WEIGHT * square * one / 2**TERM_BITS, INFORMATION * information * one]

    released = gate.release_vector(name, values, OrthogonalScore(n, INFORMATION).means)
    found, sd = released.floats(), sqrt(released.variance)
    return ScorePass(
        clip * float(found[0]),
        clip**2 * float(found[1]) / float(SQUARE_WEIGHT),
        largest * float(found[2]) / float(INFORMATION),
        clip * sd,
        clip**2 * sd / float(SQUARE_WEIGHT),
        largest * sd / float(INFORMATION),
    )
