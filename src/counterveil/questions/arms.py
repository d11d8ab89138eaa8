"""Effects of several arms: `arms(...)`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger
from counterveil.data import Study
from counterveil.privacy import Number
from counterveil.questions.asking import Asked, ask_once
from counterveil.results.arms import ArmsResult, ask_arms
from counterveil.results.question import Question, refuse_few_clusters
from counterveil.session import BitSource, Session
from counterveil.settings import Arms
from counterveil.statistics.linear.arm_means import arm_means


def arms(
    data: object,
    study: Study,
    *,
    protects: str,
    epsilon: Number,
    delta: Number = 0,
    method: str = "auto",
    level: float = 0.95,
    mechanism: str | None = None,
    settings: Arms | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> ArmsResult:
    """Return the private average effects of all arms of a study against its reference.

    Args:
        data: as for `counterveil.ate`.
        study: declared with `arms=` and `reference=`.
        protects: "outcome"; who is in which arm, and covariates, are public.
        epsilon: privacy loss to spend on all arms together.
        method: "difference_in_means" (trials), "weighting" or "matching" (covariates); "auto" takes the first in a
            trial and weighting elsewhere.
        level: confidence level of the intervals, single or simultaneous.
        settings: `cv.settings.Arms` for weighting and matching.
        delta, mechanism, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """
    return ask_once(asked_arms, locals())


def asked_arms(study: Study, **arguments: Any) -> Asked[ArmsResult]:
    """Return the checked question about several arms."""
    question = ask_arms(study, **arguments)
    return Asked(question.budget, partial(_answer, question=question))


def _answer(session: Session, question: Question) -> ArmsResult:
    session.admit(question.uses(session.study, "arms"))
    question = question.in_pure_noise(session.account().rule)
    # So that data which do not fit are refused before anything is spent.
    if question.method == "difference_in_means":
        session.attach_batches()
    else:
        session.attach(f"arms with method={question.method!r}")
    refuse_few_clusters(session.study, "arms", question.method, session.batches.rows)
    return arm_means(session, question)
