"""What methods say before any number: what an interval is for, depends on, or assumes. Methods and readers share it."""

from __future__ import annotations

from collections.abc import Sequence

_ELSEWHERE = {
    "aipw": "doubly_robust",
    "dml": "doubly_robust",
    "dr": "doubly_robust",
    "psm": "matching",
    "cem": "stratified",
    "exact_matching": "stratified",
    "dim": "difference_in_means",
}


def called_here(method: object, known: Sequence[str]) -> str:
    """Return what a method of another name is called here, an empty text where it is not among the known ones."""
    if not isinstance(method, str):
        return ""
    found = _ELSEWHERE.get(method.lower().replace("-", "_").replace(" ", "_"))
    return f"here it is called {found!r}; " if found in known else ""


# What an interval is for where it is not for the effect.
CONFOUNDED = "the unadjusted difference between the arms, confounding included"
UNADJUSTED = (
    "the unadjusted contrast of the arms: no part of the propensity model was distinguishable from noise"
)
WEIGHTED = (
    "the contrast weighted by the released scores, which range from {low:.3g} to {high:.3g}; it estimates the effect "
    "only if those scores are correct"
)
SHRUNK = "the contrast of randomized treatments, which randomized response shrinks towards zero"
# What models must be right for an interval to cover: of folds by their learner, of scores that are cross-fitted, and of
# moments, with what a function is linear in and what is known of bends.
OF_FOLDS = {
    "ols": "the outcome regression in each arm is linear in the covariates",
    "aipw": "the outcome regression or the logit of the propensity score is linear in the covariates",
}
CROSS_FITTED = OF_FOLDS["aipw"]
OVERLAP_SCORES = "the propensity score or the outcome regression is "
ARM_SCORES = "the inverse propensity score or the outcome regression is "
FOLLOWED = ", apart from curvature along the fitted outcome index"
UNDETECTED = "; at this budget most curvature would go undetected"


def linear_in(squares: bool, products: bool) -> str:
    """Return what a function is linear in, with squares of covariates or products of two among the features."""
    more = ["their squares"] * squares + ["pairwise products"] * products
    return " and ".join([", ".join(["linear in the covariates", *more[:-1]]), *more[-1:]])


def not_adjusted(kappa: float) -> str:
    """Return under which bound on confounding the interval of an unadjusted contrast covers."""
    return (
        f"adjusted=False, covariates were not used; the interval covers if kappa <= {kappa:g}, the declared "
        "bound on confounding"
    )
