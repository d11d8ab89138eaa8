"""Survival of both arms from noisy tables of events by time cell, of everyone or by public strata.

Strata are standardised: an arm's curve is the mean of its strata's curves, each with its share of everyone.
"""

from __future__ import annotations

from dataclasses import dataclass

from counterveil.data import Layout, Study
from counterveil.errors import ParameterError, StudyError
from counterveil.inference.noisy_tables import NoisyTables
from counterveil.numerics.arrays import Integers
from counterveil.privacy import Unit
from counterveil.results.question import Question
from counterveil.results.survival import SurvivalResult, survival_result
from counterveil.session import Gate, Session
from counterveil.settings import Survival
from counterveil.statistics.time_tables import (
    NAME,
    PAGE,
    CountEntries,
    TableRelease,
    table_release,
    tables_of,
)

# Numbers of one release: more of them are mostly noise.
_MOST_NUMBERS = 20_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about survival: its settings, the strata and how tables are released."""

    question: Question
    settings: Survival
    layout: Layout

    @classmethod
    def of(cls, study: Study, question: Question) -> Asked:
        """Return the question with its strata, or refuse those that there cannot be."""
        assert study.event is not None
        settings = question.settings or Survival()
        names = settings.strata if question.method == "stratified" else ()
        layout = Layout.of(study, names)
        numbers = 2 * layout.public * study.event.entries
        if numbers > _MOST_NUMBERS:
            raise ParameterError(
                "CV-P691",
                "the strata and time cells make too many counts",
                expected=f"at most {_MOST_NUMBERS} counts of stratum, arm, time cell and event",
                got=f"{numbers}: {layout.describe()}, {study.event.cells} time cells",
                fix="name fewer covariates in cv.settings.Survival(strata=...), or declare fewer cells",
            )
        return cls(question, settings, layout)

    def release(self, session: Session) -> TableRelease:
        """Return how the tables are released: by the noise that was asked for, or that of least expected error."""
        question, event = self.question, session.study.event
        assert event is not None
        kinds = ["laplace" if question.mechanism == "staircase" else question.mechanism]
        if question.mechanism == "gaussian" and question.open_noise and session.account().rule == "sum":
            kinds.append("laplace")
        return table_release(kinds, question.budget, event.cells, self.settings.release)


def survival_by_strata(session: Session, question: Question) -> SurvivalResult:
    """Return the survival of both arms; at record level n is public and nothing else, else arms and covariates are."""
    asked = Asked.of(session.study, question)
    event = session.study.event
    assert event is not None
    session.attach_batches()
    release, blocks = asked.release(session), 2 * asked.layout.public
    counts = tables_of(session.batches.run(CountEntries(asked.layout, event.entries)), blocks)
    open_arms = question.unit is Unit.OUTCOME
    if open_arms:
        _refuse_missing_arms(counts, asked.layout)

    def compute(gate: Gate) -> dict[str, object]:
        rows = session.batches.rows
        people = counts.sum(axis=1)
        tables = NoisyTables(
            numbers=release.release(gate, counts.tolist()),
            form=release.form.kind,
            noise_sd=release.noise_sd,
            heavy=release.pure,
            totals=tuple(map(float, people)) if open_arms else (float(rows),),
            edges=event.edges,
            convention=asked.settings.censoring,
            shares=tuple(map(float, people.reshape(-1, 2).sum(axis=1) / rows)) if open_arms else (),
            design=(1.0,) * blocks,
        )
        method = "Kaplan-Meier curves of noisy tables"
        if question.method == "stratified":
            method = f"Kaplan-Meier curves by stratum, standardised: {asked.layout.describe()}"
        return survival_result(session, question, tables, method, (PAGE,), rows, _sentence(release)).stored()

    said = {"question": "survival", "release": release.form.kind, "noise": release.plan.mechanism}
    request = question.request(release.plan, session.study, **said)
    return SurvivalResult.from_dict(session.run(request, compute))


def _sentence(release: TableRelease) -> tuple[str, str]:
    kind = "sum of changes" if release.pure else "length of the change"
    return NAME, f"{kind} {float(release.sensitivity):.4g}"


def _refuse_missing_arms(counts: Integers, layout: Layout) -> None:
    """Raise CV-S092 for strata that lack an arm; who is in which is public here."""
    people = counts.sum(axis=1).reshape(-1, 2)
    lacking = int(((people.min(axis=1) == 0) & (people.max(axis=1) > 0)).sum())
    if lacking:
        raise StudyError(
            "CV-S092",
            "some strata have people of one arm only",
            expected="people of both arms in every stratum that is not empty",
            got=f"{lacking} of {layout.describe()}",
            fix="name fewer covariates in cv.settings.Survival(strata=...), or cut them less finely",
        )
