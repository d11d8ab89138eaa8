"""The front door for groups: `groups(...)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger
from counterveil.curator import BitSource, Custody
from counterveil.data import Study, silence
from counterveil.estimators.groups.form_choice import chosen_form
from counterveil.estimators.groups.naming import By, layout_of
from counterveil.estimators.groups.outcome import outcome_groups
from counterveil.estimators.groups.question import ask_groups
from counterveil.estimators.groups.record import record_groups
from counterveil.estimators.groups.result import GroupsResult
from counterveil.estimators.question import Question
from counterveil.privacy import Number, Unit


def groups(
    data: object,
    study: Study,
    *,
    by: By,
    protects: str,
    epsilon: Number,
    delta: Number = 0,
    method: str = "auto",
    level: float = 0.95,
    law: str | None = None,
    settings: Any = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> GroupsResult:
    """Return the private effects of public groups; all groups together cost what one does.

    Args:
        data: as for `counterveil.ate`.
        study: column roles, public bounds and categories.
        by: a covariate, several (crossed), or a mapping to cut points: {"age": (40, 65), "sex": None}.
        protects: "outcome" (groups, arms and covariates are public) or "record" (nothing is).
        epsilon: privacy loss to spend on all groups together.
        method: "auto"; with outcomes protected "difference_in_means", "weighting" or "matching"; with
            records protected "scores" or "arms" (trials) or "adjusted" (covariates).
        level: confidence level of the intervals, single or simultaneous.
        settings: `WeightingSettings` or `MatchingSettings`; with records protected `GroupsSettings`.
        delta, law, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """
    layout_of(study, by)  # refuses what makes no groups
    arguments = {"protects": protects, "epsilon": epsilon, "delta": delta, "level": level, "law": law}
    question = ask_groups(study, method, **arguments, settings=settings, request_id=request_id)
    budget = None if ledger is not None else question.budget
    with Custody(data, study, budget=budget, ledger=ledger, dataset=dataset, noise=noise) as custody:
        return answer_groups(custody, question, by)


@silence()
def answer_groups(custody: Custody, question: Question, by: By) -> GroupsResult:
    """Return the answer of the form that the question names, or that public numbers choose."""
    layout = layout_of(custody.study, by)
    custody.admit(question.uses(custody.study, "groups"))
    if question.unit is Unit.OUTCOME:
        custody.attach()  # so that data which do not fit are refused before anything is spent
        return outcome_groups(custody, question, layout)
    custody.attach_batches()
    chosen = chosen_form(custody.study, question, custody.batches.rows, layout, layout.public)
    return record_groups(custody, chosen, layout)
