"""The unadjusted contrast, widened by a declared bound on confounding: for where adjustment is not affordable."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from counterveil.curator import Custody
from counterveil.estimators.ate.centred_contrast import centred_contrast
from counterveil.estimators.ate.doubly_robust_run import LEFT_OF_TREATMENT
from counterveil.estimators.question import Question
from counterveil.estimators.result import Result

# A share treated is never taken further out than this when the bound is worked out.
_LEAST_SHARE = 0.02


def bounded_contrast(custody: Custody, question: Question, kappa: float, target: str) -> Result:
    """Return the private difference in means with kappa sd(y) / (0.75 sd(t)) added at both ends.

    Everything added is computed from the released contrast, so that it costs nothing.
    """
    plain = centred_contrast(custody, question)
    known = plain.uncertainty
    declared = custody.study.treated_share
    share = float(declared if declared is not None else plain.details["share treated (released)"])
    share = min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)
    # The contrast weights a row by 1/q or 1/(1-q), at least one over the larger of the two.
    second_moment = max(known.known_sd(1 - question.level) ** 2 - known.extra, 0.0) * custody.table.rows
    spread = max(share, 1 - share) * sqrt(second_moment + plain.estimate**2)
    bound = kappa * spread / (LEFT_OF_TREATMENT * sqrt(share * (1 - share)))
    details: dict[str, float | str] = {"adjusted": False, "kappa": kappa, "target": target}
    details["bound on confounding"] = bound
    return replace(
        plain,
        uncertainty=replace(known, bias=bound),
        method="unadjusted contrast with a declared bound on confounding",
        not_covered=(
            f"CONFOUNDING beyond the declared kappa = {kappa:g}",
            *(text for text in plain.not_covered if not text.startswith("CONFOUNDING")),
        ),
        details=details | plain.details,
        interval_of=None,
        condition=condition(kappa),
    )


def condition(kappa: float) -> str:
    """Return the sentence that every rendering of an unadjusted answer starts with."""
    return (
        f"adjusted=False, covariates were not used; the interval covers if kappa <= {kappa:g}, the declared "
        "bound on confounding"
    )
