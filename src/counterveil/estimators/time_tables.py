"""Tables of events and censorings by time cell, one for every block of rows, released at once.

Every row is in one entry of one block's table, or between two of them. A block is an arm, or an arm of a stratum.
Proof: `time_tables.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from counterveil.data import Layout, Study, Table
from counterveil.data.features import covariate_features
from counterveil.data.follow_up import MOST_CELLS, PARTS, TimeCells, shared_entries
from counterveil.data.layout import MergedLayout
from counterveil.data.passes import Sums
from counterveil.data.strata import strata_codes
from counterveil.errors import refusal
from counterveil.estimators.histogram import count_mechanisms, counts_noise, counts_plan
from counterveil.estimators.linear.arm_means import arm_balance, balanced_arms
from counterveil.estimators.linear.kernels.balancing import WeightSettings
from counterveil.inference.biased_intervals import biased_half_width
from counterveil.inference.survival.blocks import LEAST_AT_RISK, Blocks
from counterveil.inference.survival.table_noise import TableNoise
from counterveil.inference.survival.tables import NoisyTables
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.propensity import fit_multinomial
from counterveil.numerics.running_sums import FLAT, SUMS, Form
from counterveil.privacy import Budget, Unit
from counterveil.privacy.caveats import BiasBeyond, Caveat, Fact
from counterveil.results.answering import answer_request
from counterveil.results.question import Question
from counterveil.results.survival import ARMS, QuantilesResult, SurvivalResult, survival_result
from counterveil.rows.counts import release_sums
from counterveil.rows.linear.weighted_sum import LinearForm, linear_form
from counterveil.session import BaseSession, Gate, Plan
from counterveil.settings import Survival
from counterveil.settings.methods import YES_OR_NO, allowed_bias

PAGE = "rows/time_tables.proof.md"
NAME = "table of times"
# What the choice of a form supposes of people: these parts have the event, or are censored, up to the horizon.
_EVENTS, _CENSORED = 0.4, 0.3
# Into how many parts cells may be cut, the most of all strata together, and the tail at which lengths are compared.
_PARTS, _MOST_PARTS, _TAIL = (1, 2, 4, 8, 16), 2_000, 0.025
# Lengths of curves that are taken for equal to the shortest, and the part of the variance that noise may be for free.
_NEAR, _FREE = 1.01, 1e-3


@dataclass(frozen=True, slots=True)
class CountEntries:
    """The pass that counts rows by stratum, arm and entry of the table of times."""

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
        return (shared_entries(fine, self.cells, self.parts, self.kinds, self.ends).ravel(),)


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
        self, gate: Gate, counts: Sequence[Sequence[int | Fraction]], event: TimeCells, **facts: Any
    ) -> NoisyTables:
        """Return the released tables with what is known of their noise; `facts` are the other public ones."""
        numbers, noise_sd = self.release(gate, counts)
        return NoisyTables(
            numbers=numbers,
            form=self.form.kind,
            noise_sd=noise_sd,
            heavy=self.pure,
            edges=event.cut(self.parts).edges,
            cut=self.parts,
            causes=event.causes,
            **facts,
        )

    def release(
        self, gate: Gate, counts: Sequence[Sequence[int | Fraction]]
    ) -> tuple[tuple[tuple[float, ...], ...], float]:
        """Return every block's numbers with noise and its standard deviation.

        A row must be in one block with weights that add up to at most 1.
        """
        values = [number for block in counts for number in self.form.numbers(block)]
        released = release_sums(gate, NAME, values, self.pure, self.form.l1, self.form.l2)
        noisy = released.floats().reshape(len(counts), self.form.entries)
        return tuple(tuple(map(float, block)) for block in noisy), sqrt(released.variance)


def chosen_release(
    session: BaseSession, question: Question, settings: Survival, rows: int | None, strata: int = 1
) -> TableRelease:
    """Return how the tables of a question are released: by the noise asked for, or that of least expected error."""
    event = session.study.event
    assert event is not None
    people = rows if settings.censoring == "middle" else None
    key = (event.cells, settings.release, people, strata, event.kinds)
    return table_release(count_mechanisms(session, question), question.budget, *key)


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
    releases = [
        TableRelease(counts_plan(budget, NAME, mechanism), Form(kind, cells * parts, causes), parts)
        for mechanism in mechanisms
        for kind in forms
        for parts in ((1,) if people is None else _PARTS)
        if parts == 1 or (cells * parts <= MOST_CELLS and strata * causes * cells * parts <= _MOST_PARTS)
    ]
    lengths = {one: expected_length(one, people or 1, strata) for one in releases}
    # Noise of fine cells adds up in hazard ratios: cells are cut no finer than curves gain by it, unless it is nothing.
    near = [one for one, length in lengths.items() if length <= _NEAR * min(lengths.values())]
    free = [one for one in near if noise_part(one, people or 1, strata) <= _FREE]
    if free:
        return max(free, key=lambda one: (one.parts, -lengths[one]))
    return min(near, key=lambda one: (one.parts, lengths[one]))


def most_strata(release: TableRelease, people: int) -> int:
    """Return how many strata of so many people keep their curves above the noise to the horizon, in default tables.

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
    noise = TableNoise(1e-12 * form.inverse @ form.inverse.T, ())
    blocks = Blocks(default_table(form.cells, form.causes), noise, "middle", np.ones(1), causes=form.causes)
    spread = np.diag(noise.of(blocks.gradients[0][:, None, :]))[1:]
    return float(np.mean(spread)) * 1e12


def default_table(cells: int, causes: int = 1) -> Floats:
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

    facts = {"question": "survival", "release": release.form.kind, "noise": release.plan.mechanism}
    return answer_request(SurvivalResult, session, question, release.plan, compute, said=facts)


def tables_of(sums: Sums, blocks: int) -> list[list[Fraction]]:
    """Return the counts of a pass as tables, (blocks, entries)."""
    counts = np.asarray(sums[0]).astype(np.int64).reshape(blocks, -1)
    return [[Fraction(one, 2 * PARTS) for one in own] for own in counts.tolist()]


# Survival of both arms from noisy tables of events by time cell, of everyone or by public strata.
#
# Strata are standardised: an arm's curve is the mean of its strata's curves, each with its share of everyone. Strata
# that would be lost in the noise are merged first, by public numbers alone.


# Numbers of one release: more of them are mostly noise.
_MOST_NUMBERS = 20_000


@dataclass(frozen=True, slots=True)
class SurvivalRequest:
    """A question about survival: its settings, the strata and how tables are released."""

    question: Question
    settings: Survival
    layout: Layout

    @classmethod
    def of(cls, study: Study, question: Question) -> SurvivalRequest:
        """Return the question with its strata, or refuse those that there cannot be."""
        assert study.event is not None
        settings = question.settings or Survival()
        names = settings.strata if question.method == "stratified" else ()
        layout = Layout.of(study, names)
        numbers = 2 * layout.public * study.event.entries
        if numbers > _MOST_NUMBERS:
            raise refusal(
                "CV-P691",
                most_numbers=_MOST_NUMBERS,
                numbers=numbers,
                layout=layout.describe(),
                cells=study.event.cells,
            )
        return cls(question, settings, layout)


def survival_by_strata(session: BaseSession, question: Question) -> SurvivalResult:
    """Return the survival of both arms; at record level n is public and nothing else, else arms and covariates are."""
    request = SurvivalRequest.of(session.study, question)
    study = session.study
    event = study.event
    assert event is not None
    session.attach_batches()
    rows = session.batches.rows
    all_people = chosen_release(session, question, request.settings, None)
    strata = MergedLayout.of(request.layout, most_strata(all_people, rows))
    release = chosen_release(session, question, request.settings, rows, strata.public)
    ends = request.settings.censoring == "end"
    passed = CountEntries(strata, event.cells, release.parts, event.kinds, ends)
    counts = tables_of(session.batches.run(passed), 2 * strata.public)
    facts: dict[str, Any] = {"totals": (float(rows),), "shares": ()}
    if question.unit is Unit.OUTCOME:
        people = np.sum(session.public("people", tuple(int(sum(one)) for one in counts)), axis=0)
        _refuse_missing_arms(people, request.layout)
        shares = people.reshape(-1, 2).sum(axis=1) / people.sum()
        facts = {"totals": tuple(map(float, people)), "shares": tuple(map(float, shares))}
    facts |= {"convention": request.settings.censoring, "design": (1.0,) * len(counts)}

    def tables(gate: Gate) -> NoisyTables:
        return release.tables(gate, counts, event, **facts)

    def finish(found: SurvivalResult) -> SurvivalResult:
        if question.method != "stratified":
            return found
        method = f"Kaplan-Meier by stratum, standardised: {request.layout.describe()}"
        if not strata.groups():
            return replace(found, method=method)
        return replace(
            found,
            method=f"{method}, merged into {strata.public}",
            merged_strata=strata.groups(),
            not_covered=(Caveat.CONFOUNDING_WITHIN_MERGED_STRATA, *found.not_covered),
        )

    return answer_tables(session, question, release, tables, finish)


def _refuse_missing_arms(people: Integers, layout: Layout) -> None:
    """Raise CV-S092 for strata that lack an arm; who is in which is public here."""
    people = people.reshape(-1, 2)
    lacking = int(((people.min(axis=1) == 0) & (people.max(axis=1) > 0)).sum())
    if lacking:
        raise refusal("CV-S092", lacking=lacking, layout=layout.describe())


# Survival of both arms with public balancing weights, where only times and events are private.
#
# Each arm is weighted towards everybody's covariates, and its table holds sums of weights, not numbers of people.
# Weights are divided by the largest of their arm, so that a row moves a table by as much as without weights.


Answer = TypeVar("Answer", SurvivalResult, QuantilesResult)


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """The rows of one arm and their public weights; `off` is the square of the imbalance that they leave."""

    rows: NDArray[np.intp]
    form: LinearForm
    off: float

    @property
    def total(self) -> Fraction:
        """Sum of the weights, the largest being 1."""
        return Fraction(int(self.form.units.sum()), int(self.form.units.max()))

    @property
    def design(self) -> float:
        """Sum of squared weights over the sum of weights, the largest being 1; more where imbalance is beyond chance.

        Where covariates explain a part r of what varies, squared errors are 1 - r, and r times the squared imbalance in
        those that chance leaves in an arm of the same effective size.
        """
        mean_squared_weight = float(self.form.squares / self.form.largest**2 / self.total)
        return mean_squared_weight * max(1.0, 1 + _EXPLAINED * (self.off / float(self.form.squares) - 1))

    def table(self, entry: NDArray[np.int64], entries: int) -> list[Fraction]:
        """Return the sums of weights by entry, exactly."""
        sums = np.zeros(entries, dtype=np.int64)
        np.add.at(sums, entry[self.rows], self.form.units)
        largest = int(self.form.units.max())
        return [Fraction(int(one), largest) for one in sums]


# The share of what varies that covariates are supposed to explain where weights leave them unbalanced, and what of
# their variance counts as none.
_EXPLAINED, _SINGULAR = 1 / 3, 1e-9


def weighted_rows(table: Table, noise_variance: float) -> tuple[tuple[WeightedRows, ...], dict[str, Any]]:
    """Return the weights of both arms, control first, of least supposed error, and their balance.

    `noise_variance` is that of a curve where the largest weight is 1. The share that is free of the event at a time is
    a binary outcome.
    """
    score = table.score
    scores = (
        fit_multinomial(covariate_features(table).values, table.arm, len(ARMS), 1 / table.rows).scores
        if score is None
        else np.column_stack([1 - score, score])
    )
    arms: list[tuple[NDArray[np.intp], LinearForm]] = []
    supposed = WeightSettings(YES_OR_NO, YES_OR_NO)
    for rows, weights, balanced in balanced_arms(table, scores, noise_variance, supposed):
        arms.append((rows, linear_form(np.maximum(weights, 0.0))))
        # Those of one arm are not held while the other's are made.
        del balanced
    features = covariate_features(table)
    spread = np.linalg.pinv(features.values.T @ features.values / table.rows, rcond=_SINGULAR, hermitian=True)
    rows_by_arm = []
    for rows, form in arms:
        gap = np.ldexp(form.units.astype(np.float64), -form.bits) @ features.values[rows]
        rows_by_arm.append(WeightedRows(rows, form, float(gap @ spread @ gap)))
    return tuple(rows_by_arm), arm_balance(features, scores, arms, ARMS)


def said_of_weights(result: Answer, what: str, bias: float, diagnostics: dict[str, Any]) -> Answer:
    """Return an answer with what weights add to it."""
    beyond: tuple[Fact, ...] = (BiasBeyond(bias, of_each_arm=False),) if bias else ()
    return replace(
        result,
        method=f"{what} with balancing weights in each arm",
        not_covered=(*result.not_covered, Caveat.IMBALANCE, *beyond),
        details=result.details | {"bias_allowed_standard_errors": bias},
        diagnostics=diagnostics,
    )


def survival_by_weights(session: BaseSession, question: Question) -> SurvivalResult:
    """Return the survival of both arms, weighted towards everybody; times and events are private."""
    settings = question.settings or Survival()
    study = session.study
    assert study.event is not None
    session.attach("survival with method='weighting'")
    release = chosen_release(session, question, settings, session.table.rows)
    arms, diagnostics = weighted_rows(session.table, expected_variance(release))
    bias = allowed_bias(None, study.randomised is True, len(study.covariates))
    facts = {
        "totals": tuple(float(one.total) for one in arms),
        "convention": settings.censoring,
        "shares": (1.0,),
        "design": tuple(one.design for one in arms),
        "inflation": 1 + bias**2,
    }

    def tables(gate: Gate) -> NoisyTables:
        event = study.event
        assert event is not None
        fine = [one.table(session.table.outcome, event.cut(PARTS).entries) for one in arms]
        given = (event.cells, release.parts, event.kinds, settings.censoring == "end")
        shared = shared_entries(np.array(fine), *given) / Fraction(2 * PARTS)
        return release.tables(gate, shared.tolist(), event, **facts)

    def finish(found: SurvivalResult) -> SurvivalResult:
        return said_of_weights(found, "Kaplan-Meier", bias, diagnostics)

    return answer_tables(session, question, release, tables, finish)
