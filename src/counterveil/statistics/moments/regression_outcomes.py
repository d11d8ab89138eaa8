"""Second moments for regressions where outcomes alone are private: covariates, arms and their moments are public.

Public columns are made uncorrelated exactly. What is released are the outcome's mean and mean square, then, twice,
counts of residuals by size and moments of the public columns with the residual of the outcome: around its mean, and
around the prediction that the first of them give.
Proof: `outcome_moments.proof.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import WholeSum, exact_gram, grid_bits, steps
from counterveil.session import Gate, Kind, Plan
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.moments.doubly_robust_models import carried_by_few
from counterveil.statistics.moments.kernels.scores import TERM_BITS
from counterveil.statistics.moments.records import Records, TableRecords
from counterveil.statistics.moments.regression_columns import Columns
from counterveil.statistics.moments.regression_release import (
    CUT,
    SHOWN,
    SHOWN_OF_FEW,
    WINDOWS,
    Design,
    first_few,
)
from counterveil.statistics.moments.regression_rows import combined
from counterveil.statistics.moments.sensitivity import SQUARE_WEIGHT, RecordMoments, ResidualMoments

PAGES = (
    "statistics/moments/outcome_moments.proof.md",
    "statistics/moments/record_moments.proof.md",
    "statistics/moments/orthogonal_score.proof.md",
)
# Percents of the budget, Gaussian and pure; what is left is for the second moments. Chosen like those for records.
_PERCENTS = {
    False: {"centre": 3, "first reach": 2, "first moments": 12, "reach": 3},
    True: {"centre": 5, "first reach": 4, "first moments": 16, "reach": 5},
}
_BITS = 16  # steps of public columns, in their moments
# Squared lengths of public rows are told apart this finely.
_EDGES = np.geomspace(1.0, 1e6, 400)
# Least variance of a combination of public columns that is stretched to one, and of the outcome.
_LEAST_EIGENVALUE, _LEAST_VARIANCE = 1e-6, 1e-8
# Moments of uncorrelated public rows are about one; those below this part of the largest are of no variance.
_NO_VARIANCE = 1e-3
# Where outcomes are clipped, about, in standard deviations of their residuals: before it is known.
_USUAL_CLIP = 3.0
# Share of the rows that noise may add to the residuals beyond a clip.
_UNSURE = 0.1


def outcome_plan(design: Design) -> Plan:
    """Return the plan of the releases."""
    shares = {name: Fraction(percent, 100) for name, percent in _PERCENTS[design.pure].items()}
    shares |= {"moments": 1 - sum(shares.values(), Fraction(0))}
    kinds = {name: Kind.CELLS if design.pure and "reach" in name else Kind.VECTOR for name in shares}
    return Plan.split(design.budget, shares, design.mechanism, kinds)


@dataclass(frozen=True, slots=True)
class PublicRows:
    """How public columns become uncorrelated rows u of bounded length; all of it public.

    f = (1, columns, products) in [-1, 1], u = mix f, weighted down to a squared length of `length`. `prediction`, which
    is released, holds the coefficients of u that are taken off the outcome before it is clipped to [-clip, clip].
    """

    columns: Columns
    mix: Floats
    length: float
    prediction: Floats
    clip: float

    def parts(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        """Yield u (size, rows) before it is weighted and what is left of the outcome, a block at a time."""
        for part in records.parts():
            x = self.columns.block(part).T
            f = np.vstack((np.ones(x.shape[1]), x[:-1], *(x[i] * x[j] for i, j in self.columns.products)))
            u = np.array([combined(f, weights) for weights in self.mix])
            yield u, x[-1] - combined(u, self.prediction)

    def roots(self, u: Floats) -> Floats:
        """Return the square roots of the rows' weights."""
        return np.asarray(np.sqrt(np.minimum(1.0, self.length / _lengths(u))))

    def basis(self) -> Floats:
        """Return the constant and every named column as combinations of (u, what is left of the outcome)."""
        place, size = self.columns.singles, len(self.mix) + 1
        found = np.zeros((size, size))
        found[np.arange(size) != place, :-1] = np.linalg.inv(self.mix)
        found[place, :-1], found[place, -1] = self.prediction, 1.0
        return np.asarray(self.columns.basis(np.zeros(place), np.ones(place)) @ found)


def _lengths(u: Floats) -> Floats:
    found = np.zeros(u.shape[1])
    for row in u:
        found += row * row
    return found


def public_products(records: TableRecords, rows: PublicRows) -> Sums:
    """Return the sum of u u' over weighted public rows, in steps of 4**-_BITS."""
    return (exact_gram(((u * rows.roots(u)).T for u, _ in rows.parts(records)), rows_bits(rows)),)


def rows_bits(rows: PublicRows) -> int:
    """Return the grid of the public rows."""
    return grid_bits(sqrt(min(rows.length, float(_EDGES[-1]))))


def public_lengths(records: TableRecords, rows: PublicRows) -> Sums:
    """Return how many public rows have their squared length in each cell."""
    counts = np.zeros(len(_EDGES) + 1, dtype=np.int64)
    for u, _ in rows.parts(records):
        counts += np.bincount(np.searchsorted(_EDGES, _lengths(u)), minlength=len(counts))
    return (counts,)


def residual_counts(records: TableRecords, rows: PublicRows, edges: Floats) -> Sums:
    """Return how many residuals have their size in each cell."""
    counts = np.zeros(len(edges) + 1, dtype=np.int64)
    for _, left in rows.parts(records):
        counts += np.bincount(np.searchsorted(edges, np.abs(left)), minlength=len(counts))
    return (counts,)


def residual_products(records: TableRecords, rows: PublicRows) -> Sums:
    """Return sums of u rho and of rho^2 in parts of their bounds, in steps of 4**-TERM_BITS; both are weighted."""
    total, square, reach = WholeSum(), WholeSum(), sqrt(rows.length)
    for u, left in rows.parts(records):
        roots = rows.roots(u)
        rho = steps(np.clip(left / rows.clip, -1.0, 1.0) * roots, TERM_BITS).astype(np.int64)
        direction = steps(u * roots / reach, TERM_BITS).astype(np.int64)
        total.add((direction * rho).sum(axis=1))
        square.add(np.array([(rho * rho).sum()]))
    return total.whole(), square.whole()


@dataclass(frozen=True, slots=True)
class OutcomeMoments:
    """Public moments of u (size, size), released ones with the residual (size,) and of its square, and their noise."""

    public: Floats
    crossed: Floats
    square: float
    sd: float
    square_sd: float
    rows: PublicRows
    weighted_down: float

    @property
    def matrix(self) -> Floats:
        """The moments of (u, residual)."""
        return np.block([[self.public, self.crossed[:, None]], [self.crossed, np.array([self.square])]])

    @property
    def noise(self) -> Floats:
        """The standard deviation of the noise of each; none where moments are public."""
        found = np.zeros((len(self.public) + 1,) * 2)
        found[-1, :-1] = found[:-1, -1] = self.sd
        found[-1, -1] = self.square_sd
        return found


# Proof: outcome_moments.proof.md
def release_outcome_moments(gate: Gate, records: Records, design: Design) -> OutcomeMoments:
    """Return the moments of public columns with the outcome, by five releases."""
    rows, public, longer = public_rows(records, design)
    mean, sd = release_location(gate, records, rows)
    prediction = np.zeros(len(public))
    prediction[0] = mean
    rows = replace(rows, prediction=prediction)
    rows = _release_clip(gate, "first reach", records, rows, design, sd, mean)
    first = release_residual_moments(gate, "first moments", records, rows, public, longer)
    # Directions without variance, as of columns that depend on each other, predict nothing.
    # What noise alone pretends is cut to what moments can be: outcomes and public columns are bounded.
    most = sqrt(rows.length) * rows.clip
    crossed = np.clip(first.crossed, -most, most)
    inverse = np.linalg.pinv(public, rcond=_NO_VARIANCE, hermitian=True)
    more, noise = inverse @ crossed, first.sd**2 * float(np.trace(inverse))
    # A prediction of which half may be noise makes what is left of outcomes longer, and clips it.
    more, noise = (more, noise) if crossed @ more > 2 * noise else (np.zeros_like(more), 0.0)
    left = (first.square - crossed @ more) / public[0, 0] + noise
    sd = sqrt(min(max(left, first.square_sd, _LEAST_VARIANCE), 1.0))
    rows = replace(rows, prediction=rows.prediction + more)
    rows = _release_clip(gate, "reach", records, rows, design, sd, mean)
    return release_residual_moments(gate, "moments", records, rows, public, longer)


def outcome_sums(records: TableRecords, rows: PublicRows) -> Sums:
    """Return the sum of the outcomes and of their squares, in steps of 2**-TERM_BITS."""
    total = WholeSum()
    for part in records.parts():
        y = steps(rows.columns.block(part)[:, -1], TERM_BITS).astype(np.int64)
        total.add(np.array([y.sum(), (y * y).sum()]))
    return (total.whole(),)


# Proof: outcome_moments.proof.md
def release_location(gate: Gate, records: Records, rows: PublicRows) -> tuple[float, float]:
    """Return the mean and the standard deviation of the outcome in [-1, 1], from its released mean and mean square."""
    n = records.count
    ((first, second),) = records.run(outcome_sums, rows)
    one = Fraction(1, n << TERM_BITS)
    values = [first * one, SQUARE_WEIGHT * second * one / 2**TERM_BITS]
    released = gate.release_vector("centre", values, RecordMoments(n, 1, Fraction(0)).means)
    found, noise = released.floats(), sqrt(released.variance)
    mean = float(np.clip(found[0], -1.0, 1.0))
    doubt = noise * float(np.hypot(1 / float(SQUARE_WEIGHT), 2 * mean))
    return mean, sqrt(min(max(found[1] / float(SQUARE_WEIGHT) - mean**2, doubt, _LEAST_VARIANCE), 1.0))


def public_rows(records: Records, design: Design) -> tuple[PublicRows, Floats, float]:
    """Return uncorrelated rows, their moments, and the share of rows that are weighted down; nothing is private."""
    size, n = len(design.columns.names), records.count
    rows = PublicRows(design.columns, np.eye(size), np.inf, np.zeros(size), 1.0)
    # No row of numbers in [-1, 1] is longer.
    plain = replace(rows, length=float(size))
    matrix = _mean(records.run(public_products, plain)[0], n, rows_bits(plain))
    means = matrix[0] / matrix[0, 0]
    values, vectors = np.linalg.eigh((matrix / matrix[0, 0] - np.outer(means, means))[1:, 1:])
    root = (vectors / np.sqrt(np.clip(values, _LEAST_EIGENVALUE, None))) @ vectors.T
    mix = np.eye(size)
    mix[1:, 1:], mix[1:, 0] = root, -root @ means[1:]
    rows = replace(rows, mix=mix)
    (counts,) = records.run(public_lengths, rows)
    above = np.cumsum(counts[::-1].astype(np.int64))[::-1][1:]
    share = next(long for least, long, _ in CUT if _beside(design, size) >= least)
    # Instruments would not allow weights that depend on what they explain.
    share = 0.0 if any(design.columns.responses[: len(design.columns.features.columns)]) else share
    place = int(np.flatnonzero(above <= share * n)[0]) if above[-1] <= share * n else len(_EDGES) - 1
    rows = replace(rows, length=float(_EDGES[place]))
    public = _mean(records.run(public_products, rows)[0], n, rows_bits(rows))
    return rows, public, float(above[place]) / n


def _beside(design: Design, size: int) -> float:
    """Return the noise of a moment beside its sampling error, about."""
    amount = float(outcome_plan(design).amount("moments", Kind.VECTOR))
    entries = sqrt(size + 2) if design.pure else 1.0
    return 2 * _USUAL_CLIP * sqrt(2.0 * size) * entries / (amount * sqrt(design.rows))


def _mean(total: NDArray[np.object_], rows: int, bits: int) -> Floats:
    found = [[float(Fraction(int(value), rows * 4**bits)) for value in row] for row in total]
    return np.array(found)


# Proof: outcome_moments.proof.md
def release_residual_moments(
    gate: Gate, name: str, records: Records, rows: PublicRows, public: Floats, longer: float
) -> OutcomeMoments:
    """Return moments of u with what is left of the outcome, and of its square."""
    n = records.count
    sums, squares = records.run(residual_products, rows)
    unit = Fraction(1, n * 4**TERM_BITS)
    values = [*(total * unit for total in sums), SQUARE_WEIGHT * squares[0] * unit]
    released = gate.release_vector(name, values, ResidualMoments(n).means)
    found, sd, bound = released.floats(), sqrt(released.variance), sqrt(rows.length) * rows.clip
    square, weight = rows.clip**2, float(SQUARE_WEIGHT)
    return OutcomeMoments(
        public,
        found[:-1] * bound,
        found[-1] * square / weight,
        sd * bound,
        sd * square / weight,
        rows,
        longer,
    )


# Proof: outcome_moments.proof.md
def _release_clip(
    gate: Gate, name: str, records: Records, rows: PublicRows, design: Design, sd: float, mean: float
) -> PublicRows:
    """Return the rows with what residuals are clipped to, from noisy counts of their sizes.

    Outcomes lie in [-1, 1]. Where residuals would be clipped no lower, or noise may hide many of them, nothing is taken
    off the outcomes: they are in their range as they are, whatever the prediction.
    """
    edges = WINDOWS * sd
    (counts,) = records.run(residual_counts, rows, edges)
    released = release_counts(gate, name, counts, design.pure)
    clipped = next(share for least, _, share in CUT if _beside(design, len(rows.mix)) >= least)
    shown = SHOWN_OF_FEW if carried_by_few(mean) else SHOWN
    found, _ = first_few(
        released.floats(), released.variance, clipped * records.count, shown, np.append(edges, np.inf)
    )
    unsure = sqrt(released.variance * len(edges))
    if found < 1.0 and unsure <= _UNSURE * records.count:
        return replace(rows, clip=found)
    return replace(rows, prediction=np.zeros(len(rows.mix)), clip=1.0)
