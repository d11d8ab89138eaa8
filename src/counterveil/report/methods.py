"""What estimators are called in answers: one text for each, written here alone."""

from __future__ import annotations

DIFFERENCE_IN_MEANS = "difference in means"
CENTRED_DIFFERENCE = "difference in means (centred contrast)"
CENTRED_MEANS = "means of both arms (centred contrast and mean of everyone)"
UNADJUSTED_CONTRAST = "unadjusted contrast"
BOUNDED_CONFOUNDING = "unadjusted contrast with a declared bound on confounding"
RATIOS_OF_SUMS = "difference of ratios of sums"
WEIGHTING = "weighting for balance"
KNOWN_SCORES = "weighting by inverse known scores"
MATCHING = "matching on the propensity score"
STRATIFIED = "exact matching on strata"
MEANS_OVER_STRATA = "means of both arms over strata"
KAPLAN_MEIER = "Kaplan-Meier"
QUANTILES = "quantiles of each arm"


def difference_within_sites(sites: int) -> str:
    """Return the name of a difference in means, taken within each site where there are several."""
    return f"{DIFFERENCE_IN_MEANS} within {sites} sites" if sites > 1 else DIFFERENCE_IN_MEANS


def changes_compared(*, slopes: bool) -> str:
    """Return the name of a centred contrast of outcomes, less earlier numbers where they have slopes."""
    return f"{CENTRED_DIFFERENCE}{', less earlier numbers' if slopes else ''}"


def clustered(method: str, column: str, clusters: int) -> str:
    """Return the name of a method whose standard error is clustered by a column."""
    return f"{method}; standard error clustered by {column}, {clusters} clusters"


def bounded_strata(limit: float) -> str:
    """Return the name of exact matching on strata with weights up to a limit."""
    return f"{STRATIFIED}, weights up to {limit:g}"


def average_over_folds(learner: str) -> str:
    """Return the name of an average of what a learner finds in each fold."""
    return f"average over folds of {learner}"


def average_of_function(method: str) -> str:
    """Return the name of an average effect that was computed from an effect as a function."""
    return f"average of a function by {method}"
