"""How tables of events by time are released: as counts or running sums, with which noise, in how many cells.

In: the number of people, the budget, declared cells of time, all public. Compared are expected half-widths of
intervals of an arm's curve, sampling, noise and bias of grouping together (`expected_length`, in
probabilities), for people of whom the part 0.4 has the event and 0.3 is censored, evenly up to the horizon.
Out: a `TableRelease`, the form, the parts of cells and the plan, which names the release and what it pays.

The noise of counts adds up along a curve; that of running sums grows about like the logarithm of the number
of cells (`numerics/running_sums.py`). What a row moves in either form is proved in
`rows/time_tables.proof.md`; privacy does not depend on what is supposed of people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from counterveil.data.follow_up import MOST_CELLS, TimeCells
from counterveil.estimators.histogram import count_mechanisms, counts_noise, counts_plan
from counterveil.inference.biased_intervals import biased_half_width
from counterveil.inference.survival.blocks import LEAST_AT_RISK, Blocks
from counterveil.inference.survival.table_noise import TableNoise
from counterveil.inference.survival.tables import NoisyTables
from counterveil.numerics.arrays import Floats
from counterveil.numerics.running_sums import FLAT, SUMS, Form
from counterveil.privacy import Budget
from counterveil.results.question import Question
from counterveil.rows.public import PublicData
from counterveil.rows.time_tables import NAME, ReleasedTables, TimeTables
from counterveil.session import Plan
from counterveil.settings import Survival

# What the choice supposes of people: the part that has the event, and the part that is censored, up to the horizon.
_EVENTS = 0.4
_CENSORED = 0.3
# Into how many parts cells may be cut, and the most parts of all strata together.
_PARTS = (1, 2, 4, 8, 16)
_MOST_PARTS = 2_000
# The tail at which lengths of intervals are compared.
_TAIL = 0.025
# Lengths of curves that are taken for equal to the shortest, and the part of the variance that noise may be for free.
_NEAR = 1.01
_FREE = 1e-3
# A variance of noise at which all cells are known, and what takes a result back to noise of variance one.
_TINY_VARIANCE = 1e-12
_PER_TINY_VARIANCE = 1e12


@dataclass(frozen=True, slots=True)
class TableRelease:
    """How tables are released.

    Attributes
    ----------
    plan : Plan
        The plan that pays for them, and its noise.
    form : Form
        Counts or running sums, with the number of cells.
    parts : int
        Into how many parts each declared cell is cut.
    """

    plan: Plan
    form: Form
    parts: int = 1

    @property
    def tables(self) -> TimeTables:
        """What is released, with its bounds."""
        return TimeTables(self.form, pure=self.plan.mechanism != "gaussian")

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise of each number."""
        tables = self.tables
        if tables.pure:
            return counts_noise(self.plan, NAME, l1=tables.l1)
        return counts_noise(self.plan, NAME, l2=tables.l2)

    @property
    def noise(self) -> TableNoise:
        """The noise of one table."""
        return TableNoise(self.noise_sd**2 * self.form.inverse @ self.form.inverse.T, ())

    def noisy_tables(self, released: ReleasedTables, event: TimeCells, **public: Any) -> NoisyTables:
        """Return the released tables with what is known of their noise; `public` are the other public facts."""
        numbers, noise_sd = released
        return NoisyTables(
            numbers=numbers,
            form=self.form.kind,
            noise_sd=noise_sd,
            heavy=self.tables.pure,
            edges=event.cut(self.parts).edges,
            cut=self.parts,
            causes=event.causes,
            **public,
        )


def chosen_release(
    public: PublicData, question: Question, settings: Survival, rows: int | None, strata: int = 1
) -> TableRelease:
    """Return how the tables of a question are released: by the noise asked for, or that of least expected error."""
    event = public.study.event
    assert event is not None
    people = rows if settings.censoring == "middle" else None
    return table_release(
        count_mechanisms(public, question),
        question.budget,
        event.cells,
        settings.release,
        people=people,
        strata=strata,
        causes=event.kinds,
    )


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

    `form` is "flat", "sums", or "auto" for the better of both. Cells are cut into parts where that is worth
    more than its noise to so many `people`; None leaves them whole.
    """
    forms = (FLAT, SUMS) if form == "auto" else (form,)
    plans = [counts_plan(budget, NAME, mechanism) for mechanism in mechanisms]
    releases = [
        TableRelease(plan, Form(kind, cells * parts, causes), parts)
        for plan in plans
        for kind in forms
        for parts in ((1,) if people is None else _PARTS)
        if parts == 1 or (cells * parts <= MOST_CELLS and strata * causes * cells * parts <= _MOST_PARTS)
    ]
    lengths = {release: expected_length(release, people or 1, strata) for release in releases}
    # Noise of fine cells adds up in hazard ratios: cells are cut no finer than curves gain by it, unless it is nothing.
    near = [release for release, length in lengths.items() if length <= _NEAR * min(lengths.values())]
    free = [release for release in near if noise_part(release, people or 1, strata) <= _FREE]
    if free:
        return max(free, key=lambda release: (release.parts, -lengths[release]))
    return min(near, key=lambda release: (release.parts, lengths[release]))


def most_strata(release: TableRelease, people: int) -> int:
    """Return how many strata of so many people keep curves above the noise, in default tables.

    Strata and arms differ in size: those of half the mean size must be known as well.
    """
    form = release.form
    table = default_table(form.cells, form.causes)
    blocks = Blocks(table, release.noise, "middle", np.ones(1), causes=form.causes)
    needed = 2 * LEAST_AT_RISK * float(np.max(blocks.risk_sd / blocks.at_risk[0]))
    return max(int(people / (2 * needed)), 1)


def expected_length(release: TableRelease, people: int, strata: int) -> float:
    """Return the mean half-width over cells of intervals of an arm's curve, for so many people in default tables."""
    sampling, grouping = _default_errors(release.form.cells, people / 2)
    half = -float(ndtri(_TAIL)) * sqrt(sampling * (1 + noise_part(release, people, strata)))
    return biased_half_width(half, grouping, 1 - 2 * _TAIL)


def noise_part(release: TableRelease, people: int, strata: int) -> float:
    """Return the variance of the noise of an arm's curve in parts of that from sampling, in default tables."""
    sampling, _ = _default_errors(release.form.cells, people / 2)
    return expected_variance(release) * strata / (people / 2) ** 2 / sampling


@lru_cache(maxsize=256)
def _default_errors(cells: int, people: float) -> tuple[float, float]:
    """Return means over cells of the sampling variance and grouping bound of so many people in the default table."""
    table = default_table(cells) * people
    blocks = Blocks(table, TableNoise(np.zeros((table.size, table.size)), ()), "middle", np.ones(1))
    return float(np.mean(np.diagonal(blocks.sampling[0])[1:])), float(np.mean(blocks.grouping[0, 1:]))


def expected_variance(release: TableRelease) -> float:
    """Return the mean noise variance of a curve over its cells, for the default table; in units of 1 / people^2."""
    return _unit_variance(release.form) * release.noise_sd**2


@lru_cache(maxsize=64)
def _unit_variance(form: Form) -> float:
    # So small a noise that all cells are known; variances are in proportion.
    noise = TableNoise(_TINY_VARIANCE * form.inverse @ form.inverse.T, ())
    blocks = Blocks(default_table(form.cells, form.causes), noise, "middle", np.ones(1), causes=form.causes)
    spread = np.diag(noise.of(blocks.gradients[0][:, None, :]))[1:]
    return float(np.mean(spread)) * _PER_TINY_VARIANCE


def default_table(cells: int, causes: int = 1) -> Floats:
    """Return the table of one person that the choice of a form supposes, (1, entries)."""
    shares = [_EVENTS / causes] * causes + [_CENSORED]
    return np.append(np.repeat(shares, cells) / cells, 1 - _EVENTS - _CENSORED)[None]
