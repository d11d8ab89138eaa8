"""Tables of event times: counts of events and censorings by time cell, one for every arm, released at once.

A block is an arm, or an arm of a stratum. With J time cells and K causes of the event its table has
(K + 1) J + 1 entries: events by cause and cell, censorings by cell, and people followed to the horizon. A
row adds 1 to one entry of one block, or shares it between two: whoever is censored after a part u of a cell
counts as 1 - u at its beginning and as u at its end. Released are, in people,

    the counts N_k plus noise, or (R N)_k plus noise,    R R = (matrix of running sums),

where R is lower triangular with first column r_0 = 1, r_k = r_(k-1) (2k - 1) / (2k). With R the noise of a
running sum, which survival curves need, hardly grows with the number of cells (Fichtenberger, Henzinger and
Upadhyay 2023; `numerics/running_sums.py`).

In: private times, events and (with records private) arms. Out: every block's numbers and the standard
deviation of their noise.

Why it is right: a row's entries are not negative and add up to at most 1, so that a changed row moves counts
by at most 2 (sum) and sqrt 2 (length), and R times them by at most twice the sum, and the root of twice the
sum of squares, of a column of R. Public weights up to 1 do not enlarge that.

Proof: `rows/time_tables.proof.md`.
"""

# Proof: time_tables.proof.md

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import sqrt

import numpy as np

from counterveil.data import Table
from counterveil.data.follow_up import PARTS, TimeCells, shared_entries
from counterveil.data.layout import MergedLayout
from counterveil.data.passes import Sums
from counterveil.data.strata import strata_codes
from counterveil.data.table import without_rows
from counterveil.errors import refusal
from counterveil.numerics.arrays import sqrt_up
from counterveil.numerics.running_sums import FLAT, Form, root_coefficients
from counterveil.privacy import Unit
from counterveil.rows.counts import release_sums
from counterveil.rows.public import PublicData, private_session
from counterveil.rows.weighted_counts import ArmWeights
from counterveil.session import Gate

NAME = "table of times"
# Every block's numbers with noise, and the standard deviation of the noise of each.
ReleasedTables = tuple[tuple[tuple[float, ...], ...], float]


@dataclass(frozen=True, slots=True)
class TimeTables:
    """What is released of all blocks' tables, and how far one row moves it.

    With r_0 = 1, r_k = r_(k-1) (2k - 1) / (2k) the coefficients of R and J cells, a row moves the numbers
    by at most

        2 and sqrt(2)    (counts),    2 (r_0 + ... + r_J) and sqrt(2 (r_0^2 + ... + r_J^2))    (running sums),

    as a sum of absolute changes and in Euclidean length. It must be in one block with weights that add up
    to at most 1.

    Attributes
    ----------
    form : Form
        Counts or running sums, the number of cells and of causes of the event.
    pure : bool
        Whether the noise is Laplace's, by the sum of changes; else that of a vector, by its length.
    """

    form: Form
    pure: bool = True

    @property
    def bound(self) -> Fraction:
        """How far one row moves everything that is released, by which the noise is drawn."""
        return self.l1 if self.pure else self.l2

    @property
    def l2(self) -> Fraction:
        """How far one person's move from any entry to any other changes the numbers, in Euclidean length."""
        if self.form.kind == FLAT:
            return sqrt_up(Fraction(2))
        return sqrt_up(2 * sum((r**2 for r in root_coefficients(self.form.cells + 1)), Fraction(0)))

    @property
    def l1(self) -> Fraction:
        """The same as a sum of absolute changes."""
        if self.form.kind == FLAT:
            return Fraction(2)
        return 2 * sum(root_coefficients(self.form.cells + 1), Fraction(0))

    def numbers(self, counts: Sequence[int | Fraction]) -> list[Fraction]:
        """Return what is released of one table's counts, exactly."""
        exact = [Fraction(count) for count in counts]
        if self.form.kind == FLAT:
            return exact
        root = root_coefficients(self.form.cells + 1)
        cells = self.form.cells
        events = [_rooted(exact[k * cells : (k + 1) * cells], root) for k in range(self.form.causes)]
        return [*chain.from_iterable(events), *_rooted(exact[: self.form.causes * cells - 1 : -1], root)]

    def release(self, gate: Gate, counts: Sequence[Sequence[int | Fraction]]) -> ReleasedTables:
        """Return every block's numbers with noise, (blocks, entries), and its standard deviation."""
        values = [number for block in counts for number in self.numbers(block)]
        released = release_sums(gate, NAME, values=values, pure=self.pure, l1=self.l1, l2=self.l2)
        noisy = released.floats().reshape(len(counts), self.form.entries)
        return tuple(tuple(map(float, block)) for block in noisy), sqrt(released.variance)


def _rooted(values: Sequence[Fraction], coefficients: tuple[Fraction, ...]) -> list[Fraction]:
    """Return R times the values, R having these coefficients below its diagonal."""
    return [
        sum((coefficients[row - column] * values[column] for column in range(row + 1)), Fraction(0))
        for row in range(len(values))
    ]


@dataclass(frozen=True, slots=True)
class TableEntries:
    """The pass that counts rows by stratum, arm and entry of the table of times.

    Attributes
    ----------
    strata : MergedLayout
        Strata of which each arm is a block.
    cells : int
        Declared time cells.
    parts : int
        Into how many equal parts each of them is cut.
    kinds : int
        Number of causes of the event.
    ends : bool
        Whether who is censored counts at the end of the cell, at risk in all of it.
    """

    strata: MergedLayout
    cells: int
    parts: int
    kinds: int = 1
    ends: bool = False

    def __call__(self, block: Table) -> Sums:
        """Return the counts of a block of rows in units of 1 / (2 PARTS), one array."""
        entries = (self.kinds + 1) * self.cells * PARTS + 1
        blocks = 2 * self.strata.public
        stratum = self.strata.places()[strata_codes(block, self.strata.layout)]
        entry = (stratum * 2 + block.arm) * entries + block.outcome
        fine = np.bincount(entry, minlength=blocks * entries).reshape(blocks, entries)
        return (shared_entries(fine, self.cells, parts=self.parts, kinds=self.kinds, ends=self.ends).ravel(),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimedRows:
    """The rows counted by block and entry before anything is released.

    Attributes
    ----------
    block_sizes : tuple of int
        Rows of every block; public where outcomes alone are private.
    """

    unit: Unit
    _counts: list[list[Fraction]]

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Rows of every block; CV-P851 where they are private."""
        if not self.unit.treatment_public:
            raise refusal("CV-P851", what="sizes of blocks", unit=self.unit.value)
        return tuple(int(sum(block)) for block in self._counts)

    def release(self, gate: Gate, tables: TimeTables) -> ReleasedTables:
        """Return every block's numbers with noise, and its standard deviation."""
        return tables.release(gate, self._counts)

    __repr__ = without_rows


def timed_rows(public: PublicData, entries: TableEntries) -> TimedRows:
    """Return the rows counted by block and entry."""
    sums = private_session(public).batches.run(entries)
    return TimedRows(public.unit, tables_of(sums, 2 * entries.strata.public))


def tables_of(sums: Sums, blocks: int) -> list[list[Fraction]]:
    """Return the counts of a pass as tables, (blocks, entries)."""
    counts = np.asarray(sums[0]).astype(np.int64).reshape(blocks, -1)
    return [[Fraction(count, 2 * PARTS) for count in block] for block in counts.tolist()]


@dataclass(frozen=True, slots=True)
class WeightedTimes:
    """Tables of both arms that hold sums of public weights instead of numbers of people.

    Weights are divided by the largest of their arm, so that a row moves a table by as much as without
    weights.

    Attributes
    ----------
    arms : tuple of ArmWeights
        Rows and weights of each arm.
    event : TimeCells
        Time cells and causes.
    parts : int
        Into how many equal parts each cell is cut.
    ends : bool
        Whether who is censored counts at the end of the cell.
    """

    arms: tuple[ArmWeights, ...]
    event: TimeCells
    parts: int
    ends: bool

    def release(self, gate: Gate, tables: TimeTables) -> ReleasedTables:
        """Return both arms' numbers with noise, and its standard deviation."""
        entry = gate.rows.table.outcome
        fine = np.array([arm.sums(entry, self.event.cut(PARTS).entries) for arm in self.arms])
        shared = shared_entries(
            fine, self.event.cells, parts=self.parts, kinds=self.event.kinds, ends=self.ends
        )
        return tables.release(gate, (shared / Fraction(2 * PARTS)).tolist())
