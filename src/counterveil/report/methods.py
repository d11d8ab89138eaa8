"""What estimators are called in answers: one text for each, written here alone."""

from __future__ import annotations

KAPLAN_MEIER = "Kaplan-Meier"
QUANTILES = "quantiles of each arm"


def average_of_function(method: str) -> str:
    """Return the name of an average effect that was computed from an effect as a function."""
    return f"average of a function by {method}"
