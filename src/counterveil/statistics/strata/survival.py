"""Survival of both arms from noisy tables of events by time cell, of everyone or by public strata.

Strata are standardised: an arm's curve is the mean of its strata's curves, each with its share of everyone. Strata
that would be lost in the noise are merged first, by public numbers alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from counterveil.data import Layout, Study
from counterveil.data.layout import MergedLayout
from counterveil.errors import refusal
from counterveil.inference.survival import NoisyTables
from counterveil.numerics.arrays import Integers
from counterveil.privacy import Unit
from counterveil.privacy.caveats import Caveat
from counterveil.results.question import Question
from counterveil.results.survival import SurvivalResult
from counterveil.session import BaseSession, Gate
from counterveil.settings import Survival
from counterveil.statistics.time_tables import (
    CountEntries,
    answer_tables,
    chosen_release,
    most_strata,
    tables_of,
)

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
    asked, study = SurvivalRequest.of(session.study, question), session.study
    event = study.event
    assert event is not None
    session.attach_batches()
    rows = session.batches.rows
    whole = chosen_release(session, question, asked.settings, None)
    strata = MergedLayout.of(asked.layout, most_strata(whole, rows))
    release = chosen_release(session, question, asked.settings, rows, strata.public)
    passed = CountEntries(strata, event.cells, release.parts, event.kinds)
    counts = tables_of(session.batches.run(passed), 2 * strata.public)
    people = counts.sum(axis=1)
    known: dict[str, Any] = {"totals": (float(rows),), "shares": ()}
    if question.unit is Unit.OUTCOME:
        _refuse_missing_arms(counts, asked.layout)
        shares = people.reshape(-1, 2).sum(axis=1) / people.sum()
        known = {"totals": tuple(map(float, people)), "shares": tuple(map(float, shares))}
    known |= {"convention": asked.settings.censoring, "design": (1.0,) * len(counts)}

    def tables(gate: Gate) -> NoisyTables:
        return release.tables(gate, counts.tolist(), event, **known)

    def finish(found: SurvivalResult) -> SurvivalResult:
        if question.method != "stratified":
            return found
        method = f"Kaplan-Meier by stratum, standardised: {asked.layout.describe()}"
        if not strata.groups():
            return replace(found, method=method)
        return replace(
            found,
            method=f"{method}, merged into {strata.public}",
            merged_strata=strata.groups(),
            not_covered=(Caveat.CONFOUNDING_WITHIN_MERGED_STRATA, *found.not_covered),
        )

    return answer_tables(session, question, release, tables, finish)


def _refuse_missing_arms(counts: Integers, layout: Layout) -> None:
    """Raise CV-S092 for strata that lack an arm; who is in which is public here."""
    people = counts.sum(axis=1).reshape(-1, 2)
    lacking = int(((people.min(axis=1) == 0) & (people.max(axis=1) > 0)).sum())
    if lacking:
        raise refusal("CV-S092", lacking=lacking, layout=layout.describe())
