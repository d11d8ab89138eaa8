"""One noisy matrix of second moments of private records, for every regression among their columns.

Centres and scales come first. Then the matrix is released twice: a first time with a small part of the budget, to know
which combinations of the columns are uncorrelated and what the columns leave of each response, and a second time in
these. Before either, counts say how far rows reach. Proof: `regression_moments.proof.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats, Integers, sqrt_up
from counterveil.numerics.products import WholeSum, steps
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan
from counterveil.statistics.moments.doubly_robust_models import carried_by_few
from counterveil.statistics.moments.doubly_robust_releases import release_products
from counterveil.statistics.moments.kernels.scores import TERM_BITS
from counterveil.statistics.moments.records import Records, TableRecords
from counterveil.statistics.moments.regression_columns import Columns
from counterveil.statistics.moments.regression_rows import Rows
from counterveil.statistics.moments.sensitivity import SQUARE_WEIGHT, RecordMoments

PAGES = (
    "statistics/moments/regression_moments.proof.md",
    "statistics/moments/record_moments.proof.md",
    "statistics/moments/free_gram.proof.md",
)
# Numbers of this module that are choices, and not derived, were set on the tuning designs of
# `experiments/regressions`.
# Percents of the budget for Gaussian noise and for pure; what is left is for the second matrix.
_PERCENTS = {
    False: {"centre": 5, "first reach": 2, "first moments": 15, "reach": 2},
    True: {"centre": 8, "first reach": 5, "first moments": 22, "reach": 5},
}
# Ends of the cells of a row's squared length, in parts of what is expected of it; one cell lies above the last.
_LENGTHS = np.array([0.6, 0.8, 1.0, 1.15, 1.3, 1.5, 1.65, 1.8, 2.0, 2.25, 2.5, 3.0, 4.0, 6.0, 9.0])
# Ends of the cells of a response's distance from its mean, in standard deviations.
WINDOWS = np.array([2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0])
# Shares of rows that are weighted down and of responses that are clipped, by the least noise of an entry beside its
# sampling error.
CUT = ((0.3, 0.05, 0.0005), (0.1, 0.02, 0.0005), (0.01, 0.002, 0.0002), (0.0, 0.0, 0.0))
# By how many standard deviations counts must show that no more are: for rows, and for responses whose mean is near an
# end of their range, as then few large values may carry it.
SHOWN, SHOWN_OF_FEW = -1.0, 2.0
# Least variance of a column in [-1, 1], and how many standard deviations of its noise it keeps above zero.
_LEAST_VARIANCE, _DOUBT = 1e-4, 1.0
# Least variance of a combination of standardised columns that is stretched to one.
_LEAST_EIGENVALUE = 0.02
# Combinations beyond this condition number cannot be turned back into columns.
_WORST_MIX = 1e12
# Squared lengths of standardised rows that are assumed before anything is known, in parts of their number of columns.
_USUAL_LENGTH = 1.8 * 1.75
# The largest noise of a matrix (its operator norm beside columns of variance one) and number of columns.
MOST_NOISE, MOST_COLUMNS = 0.8, 138


@dataclass(frozen=True, slots=True)
class Design:
    """The public numbers that the split depends on."""

    rows: int
    columns: Columns
    budget: Budget
    mechanism: str

    @property
    def pure(self) -> bool:
        """Whether noise comes from the l2 ball rather than from the Gaussian mechanism."""
        return self.mechanism != "gaussian"

    @property
    def size(self) -> int:
        """Number of working columns: the constant and every column."""
        return 1 + len(self.columns.names)

    def plan(self) -> Plan:
        """Return the plan of the releases."""
        shares = {name: Fraction(percent, 100) for name, percent in _PERCENTS[self.pure].items()}
        shares |= {"moments": 1 - sum(shares.values(), Fraction(0))}
        counts = Kind.CELLS if self.pure else Kind.VECTOR
        kinds = {name: counts if "reach" in name else Kind.VECTOR for name in shares}
        return Plan.split(self.budget, shares, self.mechanism, kinds)

    @property
    def noise(self) -> float:
        """The operator norm of the matrix's noise that is expected from public numbers."""
        return 2 * sqrt(self.size) * self.entry_noise

    @property
    def entry_noise(self) -> float:
        """The standard deviation of an entry's noise that is expected from public numbers."""
        strength = self.rows * float(self.plan().amount("moments", Kind.VECTOR))
        entries = sqrt(self.size * (self.size + 1) / 2 + 1) if self.pure else 1.0
        return (1 + _USUAL_LENGTH * (self.size - 1)) * entries / strength

    @property
    def fewest_rows(self) -> int:
        """The number of rows from which the noise would not hide the moments."""
        return int(self.rows * self.noise / MOST_NOISE) + 1


@dataclass(frozen=True, slots=True)
class ReleasedMoments:
    """The released matrix of working rows, the standard deviation of its noise off the diagonal, and how rows are made.

    `weighted_down` is the share of rows that count less, as released.
    """

    matrix: Floats
    sd: float
    rows: Rows
    weighted_down: float


# Proof: regression_moments.proof.md
def release_regression_moments(gate: Gate, records: Records, design: Design) -> ReleasedMoments:
    """Return the matrix of second moments of weighted working rows, by five releases."""
    first = _look(gate, records, design, release_centre(gate, records, design.columns), "first ")
    return _look(gate, records, design, mixed(first), "")


def _look(gate: Gate, records: Records, design: Design, rows: Rows, name: str) -> ReleasedMoments:
    rows, longer = release_reach(gate, f"{name}reach", records, rows, design)
    reach = rows.squared_reach
    largest = sqrt(float(reach))
    matrix, sd = release_products(gate, f"{name}moments", records, weighted_rows, (rows,), largest, reach)
    return ReleasedMoments(matrix, sd, rows, longer)


def weighted_rows(records: TableRecords, rows: Rows) -> Iterator[Floats]:
    """Yield the weighted rows, a block at a time."""
    for part in records.parts():
        yield rows.weighted(rows.columns.block(part))


def column_sums(records: TableRecords, columns: Columns) -> Sums:
    """Return sums of columns and of their squares, in steps of 2**-TERM_BITS."""
    first, second = WholeSum(), WholeSum()
    for part in records.parts():
        x = steps(columns.block(part), TERM_BITS).astype(np.int64)
        first.add(x.sum(axis=0))
        second.add((x * x).sum(axis=0))
    return first.whole(), second.whole()


# Proof: regression_moments.proof.md
def release_centre(gate: Gate, records: Records, columns: Columns) -> Rows:
    """Return rows with released centres and scales; variances stay above what their noise hides."""
    n, known = records.count, columns.two_valued
    first, second = records.run(column_sums, columns)
    one = Fraction(1, n << TERM_BITS)
    square = SQUARE_WEIGHT * one / 2**TERM_BITS
    values = [total * one for total in first]
    values += [total * square for total, two in zip(second, known, strict=True) if not two]
    released = gate.release_vector("centre", values, RecordMoments(n, columns.counted, Fraction(0)).means)
    found, sd = released.floats(), sqrt(released.variance)
    centre = np.clip(found[: len(known)], -1.0, 1.0)
    squares = np.ones(len(known))
    squares[~known] = found[len(known) :] / float(SQUARE_WEIGHT)
    doubt = sd * np.hypot(np.where(known, 0.0, 1 / float(SQUARE_WEIGHT)), 2 * centre)
    variance = np.maximum(squares - centre**2, np.maximum(_DOUBT * doubt, _LEAST_VARIANCE))
    return Rows.standardised(columns, centre, np.sqrt(np.minimum(variance, 1.0)))


def reach_counts(records: TableRecords, rows: Rows) -> Sums:
    """Return how many rows have their length, and each response that is a number its distance, in each cell."""
    watched = np.flatnonzero(rows.numbers)
    lengths = np.zeros(len(_LENGTHS) + 1, dtype=np.int64)
    windows = np.zeros((len(watched), len(WINDOWS) + 1), dtype=np.int64)
    for part in records.parts():
        u, z = rows.unweighted(rows.columns.block(part))
        cells = np.searchsorted(_LENGTHS * rows.usual_length, rows.lengths(u, z))
        lengths += np.bincount(cells, minlength=len(lengths))
        for place, column in enumerate(watched):
            cells = np.searchsorted(WINDOWS, np.abs(u[column]))
            windows[place] += np.bincount(cells, minlength=windows.shape[1])
    return lengths, windows.ravel()


# Proof: regression_moments.proof.md
def release_reach(gate: Gate, name: str, records: Records, rows: Rows, design: Design) -> tuple[Rows, float]:
    """Return the rows cut to released windows and a released length, and the share of longer ones."""
    n, watched = records.count, np.flatnonzero(rows.numbers)
    lengths, windows = records.run(reach_counts, rows)
    values = [Fraction(int(count)) for count in (*lengths, *windows)]
    moved = Fraction(2 * (1 + len(watched)))
    if design.pure:
        released = gate.release_cells(name, values, moved)
    else:
        released = gate.release_vector(name, values, sqrt_up(moved))
    noisy, variance = released.floats(), released.variance
    beside = design.entry_noise * sqrt(n)
    long, clipped = next((long, clipped) for least, long, clipped in CUT if beside >= least)
    reaches = np.full(len(rows.mix), np.inf)
    cells = noisy[len(lengths) :].reshape(len(watched), -1)
    for column, own in zip(watched, cells, strict=True):
        shown = SHOWN_OF_FEW if carried_by_few(float(rows.centre[column - 1])) else SHOWN
        edges = np.append(WINDOWS, np.inf)
        reaches[column] = first_few(own, variance, clipped * n, shown, edges)[0]
    edges = rows.usual_length * np.append(_LENGTHS, _LENGTHS[-1])
    length, longer = first_few(noisy[: len(lengths)], variance, long * n, SHOWN, edges)
    found = rows.cut(reaches, length)
    return found, min(max(longer / n, 0.0), 1.0) if found.length < found.longest else 0.0


def first_few(
    counts: Floats, variance: float, most: float, shown: float, edges: Floats
) -> tuple[float, float]:
    """Return the first edge beyond which at most `most` rows lie, and how many do; by `shown` standard deviations."""
    above = np.cumsum(counts[::-1])[::-1][1:]
    sds = np.sqrt(variance * np.arange(len(above), 0, -1))
    few = np.flatnonzero(above <= most - shown * sds)
    place = int(few[0]) if len(few) else len(above)
    return float(edges[place]), float(above[place]) if len(few) else 0.0


def mixed(first: ReleasedMoments) -> Rows:
    """Return rows of uncorrelated columns and of what columns leave of responses, by the first matrix.

    Combinations whose variance the noise hides are not stretched. Arms, other responses of two values and products with
    responses stay as they are. All columns do where noise left no weight to the rows.
    """
    rows, matrix = first.rows, first.matrix / np.outer(first.rows.factors, first.rows.factors)
    plain = Rows.standardised(rows.columns, rows.centre, rows.scale)
    if matrix[0, 0] <= 0:
        return plain
    means = matrix[0] / matrix[0, 0]
    covariance = matrix / matrix[0, 0] - np.outer(means, means)
    noise = first.sd / np.outer(first.rows.factors, first.rows.factors) / matrix[0, 0]
    mix = np.eye(len(matrix))
    own = np.flatnonzero(~rows.explained & ~rows.joint)[1:]
    if len(own):
        values, vectors = np.linalg.eigh(covariance[np.ix_(own, own)])
        least = max(_LEAST_EIGENVALUE, 2 * sqrt(len(own)) * first.sd / matrix[0, 0])
        root = (vectors / np.sqrt(np.clip(values, least, None))) @ vectors.T
        mix[np.ix_(own, own)] = root
        mix[own, 0] = -root @ means[own]
    others = np.flatnonzero(~rows.numbers)[1:]
    for place in np.flatnonzero(rows.numbers):
        _leave(mix, covariance, means, noise[place], int(place), others)
    sound = np.isfinite(mix).all() and np.linalg.cond(mix) < _WORST_MIX
    return replace(plain, mix=mix) if sound else plain


def _leave(
    mix: Floats, covariance: Floats, means: Floats, noise: Floats, place: int, others: Integers
) -> None:
    """Write into `mix` what the other columns leave of a response, divided by its standard deviation."""
    coefficients = np.zeros(len(mix))
    if len(others):
        values, vectors = np.linalg.eigh(covariance[np.ix_(others, others)])
        least = max(_LEAST_EIGENVALUE, 2 * sqrt(len(others)) * float(noise[0]))
        with_response = vectors.T @ covariance[others, place]
        coefficients[others] = vectors @ (with_response / np.clip(values, least, None))
    change = -coefficients
    change[place] = 1.0
    change[0] = -float(change @ means) + change[0] * means[0]
    left = float(change[1:] @ covariance[1:, 1:] @ change[1:])
    variance = max(left, _DOUBT * float(noise[place]), _LEAST_EIGENVALUE)
    mix[place] = change / sqrt(variance)
