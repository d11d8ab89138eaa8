"""Survival of both arms from noisy tables of events by time cell.

A table counts, for each arm, events and censorings in cells of time; the curve is the product over cells of
one minus events over people at risk (Kaplan and Meier 1958). Of everyone, by strata, or with public weights.
Strata are standardised,

    S_a(t) = sum_s (n_s / n) S_as(t),

with n_s / n the share of stratum s of everyone; strata that would be lost in the noise are merged first, by
public numbers alone. With weights each arm is weighted towards everybody's covariates (`arm_weights.py`), and
its table holds sums of weights, not numbers of people.

In: private rows (times and events; at record level arm and covariates too), public cells of time. Out: noisy
tables with the standard deviation of their noise. Times are in the unit of the data, curves are probabilities
(`inference/survival`). Proof: `rows/time_tables.proof.md`, how far one row moves a table; curves are
post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from counterveil.data import Layout, Study
from counterveil.data.layout import MergedLayout
from counterveil.errors import refusal
from counterveil.estimators.arm_weights import weighted_arms, weights_facts
from counterveil.estimators.method import Prepared
from counterveil.estimators.time_tables import TableRelease, chosen_release, expected_variance, most_strata
from counterveil.inference.survival.tables import NoisyTables
from counterveil.numerics.arrays import Integers
from counterveil.privacy import Unit
from counterveil.privacy.caveats import Caveat, Fact
from counterveil.privacy.provenance import CountChange, Estimator, StandardisedSurvival
from counterveil.report.survival_words import censoring_words
from counterveil.results.answering import Facts
from counterveil.results.question import Question
from counterveil.results.survival import SurvivalResult
from counterveil.rows.public import PublicData
from counterveil.rows.time_tables import NAME, TableEntries, WeightedTimes, timed_rows
from counterveil.session import Gate
from counterveil.settings import Survival
from counterveil.settings.methods import allowed_bias

PAGE = "rows/time_tables.proof.md"
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


def survival_by_strata(public: PublicData, question: Question) -> Prepared[SurvivalResult]:
    """Return the survival of both arms; at record level n is public and nothing else, else arms and covariates are."""
    request = SurvivalRequest.of(public.study, question)
    event = public.study.event
    assert event is not None
    rows = public.rows
    all_people = chosen_release(public, question, request.settings, None)
    strata = MergedLayout.of(request.layout, most_strata(all_people, rows))
    release = chosen_release(public, question, settings=request.settings, rows=rows, strata=strata.public)
    convention = request.settings.censoring
    counted = timed_rows(
        public, TableEntries(strata, event.cells, release.parts, event.kinds, ends=convention == "end")
    )
    totals: tuple[float, ...] = (float(rows),)
    shares: tuple[float, ...] = ()
    if question.unit is Unit.OUTCOME:
        people = np.sum(public.of_sites("people", counted.block_sizes), axis=0)
        _refuse_missing_arms(people, request.layout)
        totals = tuple(map(float, people))
        shares = tuple(map(float, people.reshape(-1, 2).sum(axis=1) / people.sum()))

    def tables(gate: Gate) -> NoisyTables:
        return release.noisy_tables(
            counted.release(gate, release.tables),
            event,
            totals=totals,
            shares=shares,
            convention=convention,
            design=(1.0,) * (2 * strata.public),
        )

    def of_strata(facts: Facts) -> Facts:
        if question.method != "stratified":
            return facts
        merged = strata.public if strata.groups() else None
        facts["method"] = StandardisedSurvival(request.layout.describe(), merged)
        if strata.groups():
            facts["merged_strata"] = strata.groups()
            facts["not_covered"] = (Caveat.CONFOUNDING_WITHIN_MERGED_STRATA, *facts["not_covered"])
        return facts

    return _prepared(public, question, release=release, tables=tables, with_method=of_strata)


def _refuse_missing_arms(people: Integers, layout: Layout) -> None:
    """Raise CV-S092 for strata that lack an arm; who is in which is public here."""
    people = people.reshape(-1, 2)
    lacking = int(((people.min(axis=1) == 0) & (people.max(axis=1) > 0)).sum())
    if lacking:
        raise refusal("CV-S092", lacking=lacking, layout=layout.describe())


def survival_by_weights(public: PublicData, question: Question) -> Prepared[SurvivalResult]:
    """Return the survival of both arms, weighted towards everybody; times and events are private."""
    settings = question.settings or Survival()
    study = public.study
    event = study.event
    assert event is not None
    people = public.columns
    release = chosen_release(public, question, settings, people.rows)
    arms, diagnostics = weighted_arms(people, expected_variance(release))
    bias = allowed_bias(None, study.randomised is True, len(study.covariates))
    times = WeightedTimes(
        tuple(arm.weights for arm in arms), event, release.parts, ends=settings.censoring == "end"
    )

    def tables(gate: Gate) -> NoisyTables:
        return release.noisy_tables(
            times.release(gate, release.tables),
            event,
            totals=tuple(float(arm.total) for arm in arms),
            convention=settings.censoring,
            shares=(1.0,),
            design=tuple(arm.design for arm in arms),
            inflation=1 + bias**2,
        )

    def of_weights(facts: Facts) -> Facts:
        return weights_facts(facts, Estimator.KAPLAN_MEIER, bias, diagnostics)

    return _prepared(public, question, release=release, tables=tables, with_method=of_weights)


def _prepared(
    public: PublicData,
    question: Question,
    release: TableRelease,
    tables: Callable[[Gate], NoisyTables],
    with_method: Callable[[Facts], Facts],
) -> Prepared[SurvivalResult]:
    """Return the request that releases tables; `with_method` adds what the method says to the facts of the answer."""
    noise = "laplace" if release.tables.pure else "gaussian"

    def estimate(gate: Gate) -> Facts:
        return with_method(_facts(public, question, release, tables(gate)))

    return Prepared(
        question=question,
        plan=release.plan,
        estimate=estimate,
        answer=SurvivalResult,
        pages=(PAGE,),
        mechanisms=(noise,),
        description={"question": "survival", "release": release.form.kind, "noise": release.plan.mechanism},
    )


def _facts(public: PublicData, question: Question, release: TableRelease, tables: NoisyTables) -> Facts:
    """Return the fields of an answer that are made of released tables."""
    event = public.study.event
    assert event is not None
    return Facts(
        tables=tables,
        method=Estimator.KAPLAN_MEIER,
        releases=((NAME, CountChange(float(release.tables.bound), tables.heavy)),),
        not_covered=_caveats(public.study, question, tables.convention),
        details={
            "rows": public.rows,
            "cells": event.cells,
            "parts_of_a_cell": tables.cut,
            "release": "counts" if tables.form == "flat" else "running sums",
            "mechanism": "laplace" if tables.heavy else "gaussian",
            "censored_in": censoring_words(tables.convention),
        },
    )


_CENSORING = {
    "stratified": Caveat.CENSORING_WITHIN_STRATA,
    "weighting": Caveat.CENSORING_IN_WEIGHTED_ARMS,
}


def _caveats(study: Study, question: Question, convention: str) -> tuple[Fact, ...]:
    open_to = Caveat.NOTHING_ADJUSTED if question.method == "kaplan_meier" else Caveat.CONFOUNDING
    return (
        *(() if study.randomised is True else (open_to,)),
        _CENSORING.get(question.method, Caveat.CENSORING),
        Caveat.BETWEEN_ENDS_OF_CELLS if convention == "end" else Caveat.UNEVEN_CENSORING,
        Caveat.AFTER_THE_HORIZON,
    )
