"""Tables of events and censorings by time cell, one for every block of rows, released at once.

Every row is in one entry of one block's table. A block is an arm, or an arm of a stratum.
Proof: `time_tables.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from counterveil.data import Table
from counterveil.data.layout import MergedLayout
from counterveil.data.outcomes import MOST_CELLS, TimeToEvent, joined_entries
from counterveil.data.passes import Sums
from counterveil.data.strata import strata_codes
from counterveil.inference.survival import LEAST_AT_RISK, Blocks, NoisyTables, TableNoise, reach
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.running_sums import FLAT, SUMS, Form
from counterveil.privacy import Budget
from counterveil.results.answering import settled
from counterveil.results.question import Question
from counterveil.results.survival import SurvivalResult, survival_result
from counterveil.session import BaseSession, Gate, Plan
from counterveil.settings import Survival
from counterveil.statistics.histogram import count_mechanisms, counts_noise, counts_plan, release_sums

PAGE = "statistics/time_tables.proof.md"
NAME = "table of times"
# What the choice of a form supposes of people: these parts have the event, or are censored, up to the horizon.
_EVENTS, _CENSORED = 0.4, 0.3
# Into how many parts cells may be cut, the most of all strata together, and the tail at which lengths are compared.
_PARTS, _MOST_PARTS, _TAIL = (1, 2, 4, 8, 16), 2_000, 0.025
# Lengths of curves that are taken for equal to the shortest.
_NEAR = 1.01


@dataclass(frozen=True, slots=True)
class CountEntries:
    """The pass that counts rows by stratum, arm and entry of the table of times."""

    strata: MergedLayout
    cells: int
    parts: int
    kinds: int = 1

    def __call__(self, block: Table) -> Sums:
        """Return the counts of a block of rows, one array."""
        entries = (self.kinds + 1) * self.cells * self.parts + 1
        entry = joined_entries(self.cells, self.parts, self.kinds)[block.outcome]
        stratum = self.strata.places()[strata_codes(block, self.strata.layout)]
        place = (stratum * 2 + block.arm) * entries + entry
        return (np.bincount(place, minlength=self.strata.public * 2 * entries),)


@dataclass(frozen=True, slots=True)
class TableRelease:
    """How tables are released: the noise, the form, the plan that pays for them, and the parts cells are cut into."""

    plan: Plan
    form: Form
    parts: int = 1

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace's."""
        return self.plan.mechanism != "gaussian"

    @property
    def sensitivity(self) -> Fraction:
        """How far one row moves everything that is released; as a sum where the noise is pure, else as a length."""
        return self.form.l1 if self.pure else self.form.l2

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise of each number."""
        return counts_noise(self.plan, NAME, self.form.l1, self.form.l2)

    @property
    def noise(self) -> TableNoise:
        """The noise of one table."""
        return TableNoise(self.noise_sd**2 * self.form.inverse @ self.form.inverse.T, ())

    def tables(
        self, gate: Gate, counts: Sequence[Sequence[int | Fraction]], event: TimeToEvent, **known: Any
    ) -> NoisyTables:
        """Return the released tables with what is known of their noise; `known` are the other public facts."""
        numbers, noise_sd = self.release(gate, counts)
        return NoisyTables(
            numbers=numbers,
            form=self.form.kind,
            noise_sd=noise_sd,
            heavy=self.pure,
            edges=event.cut(self.parts).edges,
            cut=self.parts,
            causes=event.causes,
            **known,
        )

    def release(
        self, gate: Gate, counts: Sequence[Sequence[int | Fraction]]
    ) -> tuple[tuple[tuple[float, ...], ...], float]:
        """Return every block's numbers with noise and its standard deviation.

        A row must be in one entry of one block, with a weight up to 1.
        """
        values = [number for block in counts for number in self.form.numbers(block)]
        released = release_sums(gate, NAME, values, self.pure, self.form.l1, self.form.l2)
        found = released.floats().reshape(len(counts), self.form.entries)
        return tuple(tuple(map(float, block)) for block in found), sqrt(released.variance)


def chosen_release(
    session: BaseSession, question: Question, settings: Survival, rows: int | None, strata: int = 1
) -> TableRelease:
    """Return how the tables of a question are released: by the noise asked for, or that of least expected error."""
    event = session.study.event
    assert event is not None
    people = rows if settings.censoring == "middle" else None
    asked = (event.cells, settings.release, people, strata, event.kinds)
    return table_release(count_mechanisms(session, question), question.budget, *asked)


def table_release(
    mechanisms: Sequence[str],
    budget: Budget,
    cells: int,
    form: str,
    people: int | None = None,
    strata: int = 1,
    causes: int = 1,
) -> TableRelease:
    """Return the release of least expected error among these kinds of noise, all of it public.

    `form` is "flat", "sums", or "auto" for the better of both. Cells are cut into parts where that is worth more than
    its noise to so many `people`; None leaves them whole.
    """
    forms = (FLAT, SUMS) if form == "auto" else (form,)
    found = [
        TableRelease(counts_plan(budget, NAME, mechanism), Form(kind, cells * parts, causes), parts)
        for mechanism in mechanisms
        for kind in forms
        for parts in ((1,) if people is None else _PARTS)
        if parts == 1 or (cells * parts <= MOST_CELLS and strata * causes * cells * parts <= _MOST_PARTS)
    ]
    lengths = {one: expected_length(one, people or 1, strata) for one in found}
    # Noise of fine cells adds up in hazard ratios: cells are cut no finer than curves gain by it.
    near = [one for one, length in lengths.items() if length <= _NEAR * min(lengths.values())]
    return min(near, key=lambda one: (one.parts, lengths[one]))


def most_strata(release: TableRelease, people: int) -> int:
    """Return how many strata of so many people keep their curves above the noise to the horizon, in usual tables.

    Strata and arms differ in size: those of half the mean size must be known as well.
    """
    form = release.form
    table = usual_table(form.cells, form.causes)
    blocks = Blocks(table, release.noise, "middle", np.ones(1), causes=form.causes)
    needed = 2 * LEAST_AT_RISK * float(np.max(blocks.risk_sd / blocks.at_risk[0]))
    return max(int(people / (2 * needed)), 1)


def expected_length(release: TableRelease, people: int, strata: int) -> float:
    """Return how far intervals of an arm's curve reach for so many people in usual tables, on average over cells."""
    sampling, grouping = _usual_errors(release.form.cells, people / 2)
    noise = expected_variance(release) * strata / (people / 2) ** 2
    half = -float(ndtri(_TAIL)) * sqrt(sampling + noise)
    return reach(half, grouping, 1 - 2 * _TAIL)


@lru_cache(maxsize=256)
def _usual_errors(cells: int, people: float) -> tuple[float, float]:
    """Return the sampling variance of so many people's usual curve, and the bound on its grouping, means over cells."""
    table = usual_table(cells) * people
    blocks = Blocks(table, TableNoise(np.zeros((table.size, table.size)), ()), "middle", np.ones(1))
    return float(np.mean(np.diagonal(blocks.sampling[0])[1:])), float(np.mean(blocks.grouping[0, 1:]))


def expected_variance(release: TableRelease) -> float:
    """Return the mean variance of the noise of a curve over its cells, for a usual table; in units of 1 / people^2."""
    return _unit_variance(release.form) * release.noise_sd**2


@lru_cache(maxsize=64)
def _unit_variance(form: Form) -> float:
    # So small a noise that all cells are known; variances are in proportion.
    noise = TableNoise(1e-12 * form.inverse @ form.inverse.T, ())
    blocks = Blocks(usual_table(form.cells, form.causes), noise, "middle", np.ones(1), causes=form.causes)
    spread = np.diag(noise.of(blocks.gradients[0][:, None, :]))[1:]
    return float(np.mean(spread)) * 1e12


def usual_table(cells: int, causes: int = 1) -> Floats:
    """Return the table of one person that the choice of a form supposes, (1, entries)."""
    shares = [_EVENTS / causes] * causes + [_CENSORED]
    return np.append(np.repeat(shares, cells) / cells, 1 - _EVENTS - _CENSORED)[None]


def answer_tables(
    session: BaseSession,
    question: Question,
    release: TableRelease,
    tables: Callable[[Gate], NoisyTables],
    finish: Callable[[SurvivalResult], SurvivalResult],
) -> SurvivalResult:
    """Return the answer made of the tables that are released once the budget is reserved; `finish` says more of it."""

    def compute(gate: Gate) -> SurvivalResult:
        kind = "sum of changes" if release.pure else "length of the change"
        released = (NAME, f"{kind} {float(release.sensitivity):.4g}")
        return finish(survival_result(session, question, tables(gate), (PAGE,), released))

    said = {"question": "survival", "release": release.form.kind, "noise": release.plan.mechanism}
    return settled(SurvivalResult, session, question, release.plan, compute, said=said)


def tables_of(sums: Sums, blocks: int) -> Integers:
    """Return the counts of a pass as tables, (blocks, entries)."""
    return np.asarray(sums[0]).astype(np.int64).reshape(blocks, -1)
