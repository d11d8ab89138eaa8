"""The unadjusted contrast, widened by a declared bound on confounding: for where adjustment is not affordable."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from counterveil.curator import Custody
from counterveil.estimators.ate.centred_contrast import centred_contrast
from counterveil.estimators.ate.contrast import contrast, pays
from counterveil.estimators.ate.declared_bound import bounded, inner_share
from counterveil.estimators.question import Question
from counterveil.estimators.result import Result


def bounded_contrast(custody: Custody, question: Question, kappa: float, target: str) -> Result:
    """Return the private difference in means with kappa sd(y) / (0.75 sd(t)) added at both ends.

    Everything added is computed from the released contrast, so that it costs nothing.
    """
    better = pays(custody.table.rows, question.budget, question.law)
    plain = contrast(custody, question) if better else centred_contrast(custody, question)
    known = plain.uncertainty
    declared = custody.study.treated_share
    share = inner_share(
        float(declared if declared is not None else plain.details["share treated (released)"])
    )
    # The contrast weights a row by 1/q or 1/(1-q), at least one over the larger of the two.
    second_moment = max(known.known_sd(1 - question.level) ** 2 - known.extra, 0.0) * custody.table.rows
    spread = max(share, 1 - share) * sqrt(second_moment + plain.estimate**2)
    found = bounded(plain, kappa, spread, share, condition(kappa))
    return replace(
        found,
        method="unadjusted contrast with a declared bound on confounding",
        details=found.details | {"target": target},
    )


def condition(kappa: float) -> str:
    """Return the sentence that every rendering of an unadjusted answer starts with."""
    return (
        f"adjusted=False, covariates were not used; the interval covers if kappa <= {kappa:g}, the declared "
        "bound on confounding"
    )
