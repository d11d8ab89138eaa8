"""Sums of covariates by private arm, and counts of both arms along a released score: balance of a study.

Released of both arms, the treated first, are sums over the arm's rows of

    1,    u_j for numbers and truth values,    2 flag for every label,    k (u_j^2 - 1/2) for numbers,

with k = 1.665 and u_j in [-1, 1] the covariate in half ranges around the middle of its declared range, or -1
and 1 for a truth value. Then, for a score (a linear combination of these columns with released weights) cut
at released places, the number of rows of either arm in each of 8 cells. Covariates and arm are private,
declared ranges and labels public. Out come noisy sums over people, without units.

Why it is right: a number and 1.665 times its square move by at most 2 in Euclidean length together, so that
the square is free of charge; a row that changes arm takes its vector from one arm to the other. For p
numbers, b truth values and g covariates with labels the sums move by at most D = `balance_sums(p, b, g)`,

    D^2 = max(4 (p + b) + 8 g, 2 + p (2 + k^2 / 2) + 2 b + 8 g),

in Euclidean length; a row moves two counts by one each.
Proof: `rows/moments/arm_balance.proof.md`; counts: `rows/histogram.proof.md`.
"""

# Proof: arm_balance.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from counterveil.data import Backend, Binary, Range, Study, Sums, Table
from counterveil.numerics.arrays import Floats, sqrt_up
from counterveil.numerics.products import WholeSum, projected
from counterveil.rows.counts import release_counts
from counterveil.session import Gate, ReleasedVector

# Equal parts of a normal score that are counted.
CELLS = 8
# Values are added up in steps of 2**-_BITS.
_BITS = 20
# Rows added up at once: sums of their squares in units of 4^-20 stay below 2^53.
_AT_ONCE = 1 << 12
# Weight of the squares of numbers beside the numbers.
SQUARES = Fraction(1665, 1000)
# Weight of the flags of labels.
FLAGS = Fraction(2)


def balance_sums(numbers: int, binaries: int, labelled: int) -> Fraction:
    """Return the l2 sensitivity of the sums by arm of (1, u_j, k (u_j^2 - 1/2)) for numbers, u_j = +-1 for truth
    values, and 2 times a flag for every label; k = 1.665, u_j in [-1, 1].

    `labelled` counts covariates with labels, however many labels they have.
    """
    same_arm = 4 * (numbers + binaries) + 2 * FLAGS**2 * labelled
    other_arm = 2 + numbers * (2 + SQUARES**2 / 2) + 2 * binaries + 2 * FLAGS**2 * labelled
    return sqrt_up(max(same_arm, other_arm))


@dataclass(frozen=True, slots=True)
class BalanceColumns:
    """What a study's covariates are added up as, in this order.

    Attributes
    ----------
    numbers, binaries : tuple of str
        Covariates with a range, and those of two values.
    flags : tuple of (str, int)
        Covariates with labels, once for each, and the label's code.
    """

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
        """Largest l2 change of the released sums."""
        return balance_sums(len(self.numbers), len(self.binaries), len({name for name, _ in self.flags}))

    def values(self, table: Table, rows: slice) -> Floats:
        """Return (columns, rows) numbers and truth values in [-1, 1], and flags 0 or 1."""
        study = table.study
        columns = []
        for name in self.numbers:
            low, high = study.covariates[name].floats()  # type: ignore[union-attr]
            columns.append(np.clip(2 * (table.covariates[name][rows] - low) / (high - low) - 1, -1.0, 1.0))
        columns += [2 * table.covariates[name][rows] - 1 for name in self.binaries]
        columns += [(table.covariates[name][rows] == code) * 1.0 for name, code in self.flags]
        return np.array(columns)

    def release(self, gate: Gate) -> ReleasedVector:
        """Return the sums of both arms, released under the name "moments"."""
        return gate.release_vector("moments", exact_sums(gate.rows.batches, self), self.sensitivity)


def exact_sums(source: Backend, columns: BalanceColumns) -> list[Fraction]:
    """Return the sums of both arms, the treated first: count, numbers, truth values, flags, squares of numbers."""
    counts, firsts, seconds = source.run(partial(_column_sums, columns))
    sums: list[Fraction] = []
    for count, first, second in zip(counts, firsts, seconds, strict=True):
        plain = [Fraction(total, 2**_BITS) for total in first]
        flags = len(plain) - len(columns.flags)
        sums += [Fraction(count), *plain[:flags], *(FLAGS * total for total in plain[flags:])]
        sums += [SQUARES * Fraction(total, 4**_BITS) for total in second]
    return sums


def _column_sums(columns: BalanceColumns, table: Table) -> Sums:
    """Return both arms' counts (2,), sums of columns (2, size) and of squares of numbers less a half, in steps."""
    p = len(columns.numbers)
    counts = WholeSum()
    firsts = WholeSum()
    seconds = WholeSum()
    for rows in _blocks(table.rows):
        steps = np.trunc(columns.values(table, rows) * 2**_BITS).astype(np.int64)
        arms = [steps[:, arm] for arm in (table.treated[rows], ~table.treated[rows])]
        counts.add(np.array([columns_of_arm.shape[1] for columns_of_arm in arms]))
        firsts.add(np.array([columns_of_arm.sum(axis=1) for columns_of_arm in arms]))
        seconds.add(
            np.array(
                [(columns_of_arm[:p] ** 2 - 2 ** (2 * _BITS - 1)).sum(axis=1) for columns_of_arm in arms]
            )
        )
    return counts.whole(), firsts.whole(), seconds.whole()


def _blocks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _AT_ONCE):
        yield slice(start, min(start + _AT_ONCE, rows))


@dataclass(frozen=True, slots=True)
class CutScore:
    """A released linear combination of the columns, cut into cells.

    Attributes
    ----------
    weights : ndarray of shape (columns,)
        Of the columns, released.
    cuts : ndarray of shape (CELLS - 1,)
        Where the score of a row is cut, released too.
    """

    weights: Floats
    cuts: Floats

    def release(self, gate: Gate, columns: BalanceColumns, *, pure: bool) -> tuple[Floats, float]:
        """Return counts (2, cells), the treated first, released under the name "counts", and the noise of one."""
        (counts,) = gate.rows.batches.run(partial(self.cells, columns))
        noisy = release_counts(gate, "counts", counts.ravel().tolist(), pure)
        return noisy.floats().reshape(2, CELLS), noisy.variance**0.5

    def cells(self, columns: BalanceColumns, table: Table) -> Sums:
        """Return (2, cells) how many of the treated and of the others are in each cell."""
        counts = np.zeros((2, CELLS), np.int64)
        for rows in _blocks(table.rows):
            score = projected(columns.values(table, rows).T, self.weights)
            cell = np.searchsorted(self.cuts, score, side="right")
            for k, arm in enumerate((table.treated[rows], ~table.treated[rows])):
                counts[k] += np.bincount(cell[arm], minlength=CELLS)
        return (counts,)
