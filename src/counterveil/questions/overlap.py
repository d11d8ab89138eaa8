"""Balance and overlap of the arms where whole records are private: one small release with its own price."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from counterveil.data import Study, silence
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.privacy import Unit
from counterveil.questions.asking import Arguments, Asked, question_of
from counterveil.questions.choices import Mechanism
from counterveil.results.answering import answer_request
from counterveil.results.arms import refuse_several_arms
from counterveil.results.overlap import ArmDifference, OverlapSummary, ScoreCell
from counterveil.results.question import Question, refuse_extremes
from counterveil.session import BaseSession, Gate
from counterveil.statistics.moments.arm_balance import (
    PAGE,
    BalanceColumns,
    BalanceSums,
    balance_plan,
    differences,
    release_cells,
    release_moments,
    score_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapArguments(Arguments[OverlapSummary]):
    """Return how alike the arms are before adjustment: standardised differences, and shares treated along a score.

    Where only outcomes are private this is free: see the diagnostics of a result of `ate`.

    Args:
        data: as for `counterveil.ate`.
        study: column roles, public bounds and categories.
        protects: "record", everything about a person.
        epsilon: privacy loss to spend.
        level: confidence level of the intervals; they cover the privacy noise.
        delta, mechanism, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """

    name: ClassVar[str] = "overlap"
    mechanism: Mechanism | None = None

    def checked(self, study: Study) -> Asked[OverlapSummary]:
        """Return the checked question; nothing here looks at data or budget."""
        refuse_several_arms(study, ratio=True)
        question = self.question("overlap", self.mechanism)
        if question.unit is not Unit.RECORD:
            raise refusal("CV-P670", unit=question.unit.value)
        refuse_extremes(study, question.budget)
        require_covariates(study, "overlap")
        return Asked(question.budget, partial(answer_overlap, question=question))


overlap = question_of(OverlapArguments)


@silence()
def answer_overlap(session: BaseSession, question: Question) -> OverlapSummary:
    """Return balance and overlap of the arms of an open session."""
    session.admit(question.uses(session.study, "overlap"))
    session.attach_batches()
    drawn = ("gaussian",) if question.mechanism == "gaussian" else ("ball", "laplace")
    columns, plan = BalanceColumns.of(session.study), balance_plan(question.budget, question.mechanism)

    def compute(gate: Gate) -> OverlapSummary:
        found = release_moments(gate, session.batches, columns)
        cells, sd = release_cells(gate, session.batches, columns, score_of(found), question.mechanism)
        return OverlapSummary(
            treatment=session.study.treatment,
            rows=session.batches.rows,
            share=float(found.shares[0]),
            share_sd=found.share_sd,
            differences=_differences(session.study, columns, found),
            cells=tuple(ScoreCell(float(one), float(other)) for one, other in cells.T),
            count_sd=sd,
            heavy=question.mechanism != "gaussian",
            level=question.level,
            guarantee=question.guarantee(session, PAGE, mechanisms=drawn),
            spent=question.budget,
            releases=(
                (
                    "counts, means and squares of both arms",
                    f"l2 sensitivity {float(columns.sensitivity):.4g}",
                ),
                ("counts of both arms along the released score", "sensitivity 2"),
            ),
        )

    return answer_request(OverlapSummary, session, question, plan, compute, said={"question": "overlap"})


def _differences(study: Study, columns: BalanceColumns, found: BalanceSums) -> tuple[ArmDifference, ...]:
    """Return every column with its means in the units of its declaration."""
    gap, sd = differences(found)
    names = [*columns.numbers, *columns.binaries]
    names += [f"{name}={study.covariates[name].labels[code]}" for name, code in columns.flags]  # type: ignore[union-attr]
    rows = []
    for place, name in enumerate(names):
        low, width = 0.0, 1.0
        if place < len(columns.numbers):
            ends = study.covariates[name].floats()  # type: ignore[union-attr]
            low, width = ends[0], (ends[1] - ends[0])
        in_unit = found.means[:, place]
        if place < len(columns.numbers) + len(columns.binaries):
            in_unit = (in_unit + 1) / 2
        treated, control = (low + width * float(mean) for mean in in_unit)
        rows.append(ArmDifference(name, treated, control, float(gap[place]), float(sd[place])))
    return tuple(rows)
