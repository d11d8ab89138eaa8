"""How alike two private arms are: means and variances of covariates by arm, and counts along a released score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.special import ndtri

from counterveil.data import Backend, Binary, Range, Study, Sums, Table
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import WholeSum, projected
from counterveil.privacy import Budget
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.sensitivity import FLAGS, SQUARES, balance_sums
from counterveil.session import Gate, Kind, Plan

PAGE = "rows/moments/arm_balance.proof.md"
# Equal parts of a normal score that are counted.
CELLS = 8
# The part of the budget for moments, before counts: they make the direction that the score follows.
_MOMENTS = Fraction(3, 5)
_BITS = 20
# Rows added up at once: sums of their squares in units of 4^-20 stay below 2^53.
_AT_ONCE = 1 << 12


def balance_plan(budget: Budget, mechanism: str) -> Plan:
    """Return the split of the budget over moments and counts."""
    pure = mechanism != "gaussian"
    kinds = {"moments": Kind.VECTOR, "counts": Kind.CELLS if pure else Kind.VECTOR}
    return Plan.split(budget, {"moments": _MOMENTS, "counts": 1 - _MOMENTS}, mechanism, kinds)


@dataclass(frozen=True, slots=True)
class BalanceColumns:
    """What a study's covariates are added up as, in this order: numbers, truth values, flags of labels."""

    numbers: tuple[str, ...]
    binaries: tuple[str, ...]
    flags: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, study: Study) -> BalanceColumns:
        """Return the columns of a study, from its declarations alone."""
        numbers = [name for name, domain in study.covariates.items() if isinstance(domain, Range)]
        binaries = [name for name, domain in study.covariates.items() if isinstance(domain, Binary)]
        labelled = [name for name in study.covariates if name not in (*numbers, *binaries)]
        flags = [(name, code) for name in labelled for code in range(len(study.covariates[name].labels))]  # type: ignore[union-attr]
        return cls(tuple(numbers), tuple(binaries), tuple(flags))

    @property
    def sensitivity(self) -> Fraction:
        """The bound of the released sums."""
        return balance_sums(len(self.numbers), len(self.binaries), len({name for name, _ in self.flags}))

    def values(self, table: Table, rows: slice) -> Floats:
        """Return (columns, rows) numbers and truth values in [-1, 1], and flags 0 or 1."""
        study = table.study
        found = []
        for name in self.numbers:
            low, high = study.covariates[name].floats()  # type: ignore[union-attr]
            found.append(np.clip(2 * (table.covariates[name][rows] - low) / (high - low) - 1, -1.0, 1.0))
        found += [2 * table.covariates[name][rows] - 1 for name in self.binaries]
        found += [(table.covariates[name][rows] == code) * 1.0 for name, code in self.flags]
        return np.array(found)


@dataclass(frozen=True, slots=True)
class BalanceSums:
    """Released moments of both arms, the treated first: shares of rows (2,), means (2, columns), variances alike.

    `mean_sd` (2, columns) and `variance_sd` are standard deviations of their noise, `share_sd` that of the shares.
    Numbers and truth values are in [-1, 1], flags in [0, 1].
    """

    rows: int
    shares: Floats
    share_sd: float
    means: Floats
    variances: Floats
    mean_sd: Floats
    variance_sd: Floats


def release_moments(gate: Gate, source: Backend, columns: BalanceColumns) -> BalanceSums:
    """Return the moments of both arms, released as one vector."""
    values = exact_sums(source, columns)
    found = gate.release_vector("moments", values, columns.sensitivity)
    return _moments(found.floats().reshape(2, -1), found.variance**0.5, source.rows, columns)


def exact_sums(source: Backend, columns: BalanceColumns) -> list[Fraction]:
    """Return the sums of both arms, the treated first: count, numbers, truth values, flags, squares of numbers."""
    counts, firsts, seconds = source.run(partial(_column_sums, columns))
    found: list[Fraction] = []
    for count, first, second in zip(counts, firsts, seconds, strict=True):
        plain = [Fraction(total, 2**_BITS) for total in first]
        flags = len(plain) - len(columns.flags)
        found += [Fraction(count), *plain[:flags], *(FLAGS * total for total in plain[flags:])]
        found += [SQUARES * Fraction(total, 4**_BITS) for total in second]
    return found


def _column_sums(columns: BalanceColumns, table: Table) -> Sums:
    """Return both arms' counts (2,), sums of columns (2, size) and of squares of numbers less a half, in steps."""
    p = len(columns.numbers)
    counts, firsts, seconds = WholeSum(), WholeSum(), WholeSum()
    for rows in _blocks(table.rows):
        steps = np.trunc(columns.values(table, rows) * 2**_BITS).astype(np.int64)
        arms = [steps[:, arm] for arm in (table.treated[rows], ~table.treated[rows])]
        counts.add(np.array([own.shape[1] for own in arms]))
        firsts.add(np.array([own.sum(axis=1) for own in arms]))
        seconds.add(np.array([(own[:p] ** 2 - 2 ** (2 * _BITS - 1)).sum(axis=1) for own in arms]))
    return counts.whole(), firsts.whole(), seconds.whole()


def _blocks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _AT_ONCE):
        yield slice(start, min(start + _AT_ONCE, rows))


def _moments(released: Floats, sd: float, rows: int, columns: BalanceColumns) -> BalanceSums:
    """Return means and variances from released sums (2, ...), with the noise that is left in them."""
    p, flags = len(columns.numbers), len(columns.flags)
    # Both counts add up to the public number of rows, which halves the variance of their noise.
    treated = (released[0, 0] + rows - released[1, 0]) / 2
    least = max(2.0, sd)
    sizes = np.clip(np.array([treated, rows - treated]), least, max(rows - least, least))[:, None]
    weights = np.ones(released.shape[1] - 1 - p)
    weights[len(weights) - flags :] = float(FLAGS)
    low = np.where(np.arange(len(weights)) < len(weights) - flags, -1.0, 0.0)
    sums = released[:, 1 : 1 + len(weights)] / weights
    means = np.clip(sums / sizes, low, 1.0)
    count_sd = sd / 2**0.5
    mean_sd = np.hypot(sd / weights, means * count_sd) / sizes
    variances = np.where(low < 0, 1 - means**2, means * (1 - means))
    variance_sd = np.abs(np.where(low < 0, 2 * means, 1 - 2 * means)) * mean_sd
    if p:
        squares = released[:, 1 + len(weights) :] / float(SQUARES) / sizes + 0.5
        variances[:, :p] = squares - means[:, :p] ** 2
        variance_sd[:, :p] = np.hypot(sd / float(SQUARES) / sizes, 2 * means[:, :p] * mean_sd[:, :p])
    return BalanceSums(
        rows,
        sizes[:, 0] / rows,
        count_sd / rows,
        means,
        np.maximum(variances, np.maximum(variance_sd, 1e-9)),
        mean_sd,
        variance_sd,
    )


def differences(found: BalanceSums) -> tuple[Floats, Floats]:
    """Return standardised differences (columns,), treated minus control, and the standard deviation of their noise."""
    scale = np.sqrt(found.variances.mean(axis=0))
    gap = (found.means[0] - found.means[1]) / scale
    own = np.hypot(*found.mean_sd) / scale
    # The scale is a root of a noisy mean of two variances.
    scales = gap * np.hypot(*found.variance_sd) / 4 / scale**2
    return gap, np.hypot(own, scales)


@dataclass(frozen=True, slots=True)
class CutScore:
    """A released combination of the columns and where it is cut; everything in it was released."""

    weights: Floats
    cuts: Floats

    def cells(self, columns: BalanceColumns, table: Table) -> Sums:
        """Return (2, cells) how many of the treated and of the others are in each cell."""
        counts = np.zeros((2, CELLS), np.int64)
        for rows in _blocks(table.rows):
            place = np.searchsorted(
                self.cuts, projected(columns.values(table, rows).T, self.weights), side="right"
            )
            for k, arm in enumerate((table.treated[rows], ~table.treated[rows])):
                counts[k] += np.bincount(place[arm], minlength=CELLS)
        return (counts,)


def score_of(found: BalanceSums) -> CutScore:
    """Return the direction between the arms, each covariate by its own variance, cut into parts of a normal law.

    A difference counts as far as it exceeds its noise. Covariates that go together make the score wider than
    supposed here: the outer cells then hold more people.
    """
    gap, noise = differences(found)
    variance = found.variances.mean(axis=0)
    kept = gap**2 / (gap**2 + noise**2 + 1e-300)
    weights = kept * gap / np.sqrt(variance)
    centre = float(weights @ (found.shares @ found.means))
    spread = max(float(np.sqrt(weights**2 @ variance)), 1e-12)
    return CutScore(weights, centre + spread * np.asarray(ndtri(np.arange(1, CELLS) / CELLS)))


def release_cells(
    gate: Gate, source: Backend, columns: BalanceColumns, score: CutScore, mechanism: str
) -> tuple[Floats, float]:
    """Return the released counts (2, cells), the treated first, and the standard deviation of their noise."""
    (counts,) = source.run(partial(score.cells, columns))
    noisy = release_counts(gate, "counts", counts.ravel().tolist(), pure=mechanism != "gaussian")
    return noisy.floats().reshape(2, CELLS), noisy.variance**0.5
