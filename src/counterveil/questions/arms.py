"""The front door for several arms: `arms(...)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger
from counterveil.data import Study
from counterveil.privacy import Number
from counterveil.results.arms import ArmsResult
from counterveil.results.arms_question import ask_arms
from counterveil.session import BitSource, Custody
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
    law: str | None = None,
    settings: Any = None,
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
        epsilon: the privacy loss that may be spent on all arms together.
        method: "auto" or "difference_in_means" (trials), "weighting" or "matching" (covariates).
        level: confidence level of the intervals, single or simultaneous.
        settings: `settings.Arms` for weighting and matching.
        delta, law, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """
    arguments = {"protects": protects, "epsilon": epsilon, "delta": delta, "level": level, "law": law}
    question = ask_arms(study, method, **arguments, settings=settings, request_id=request_id)
    budget = None if ledger is not None else question.budget
    with Custody(data, study, budget=budget, ledger=ledger, dataset=dataset, noise=noise) as custody:
        return arm_means(custody, question)
