"""A declared bound on confounding: what an interval that adjusts for little or nothing is widened by."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from counterveil.errors import StudyError, shown
from counterveil.estimators.result import Result
from counterveil.estimators.setting_checks import number

# Confounding is bounded by kappa sd(y) / (this times sd(t)).
LEFT_OF_TREATMENT = 0.75
LARGEST_KAPPA = 1.0
# A share treated is never taken further out than this when the bound is worked out.
_LEAST_SHARE = 0.02


def checked_kappa(kappa: object) -> None:
    """Raise CV-S082 unless kappa is None or a number that can bound confounding."""
    if kappa is None:
        return
    if not (number(kappa, 0, LARGEST_KAPPA) and kappa):
        raise StudyError(
            "CV-S082",
            "the declared bound on confounding is out of range",
            expected=f"kappa=None, or a number above 0, at most {LARGEST_KAPPA:g}",
            got=f"kappa={shown(kappa)}",
            fix="declare how far confounding can move the comparison, or leave kappa out",
        )


def inner_share(share: float) -> float:
    """Return a share treated, away from 0 and 1."""
    return min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)


def bounded(plain: Result, kappa: float, spread: float, share: float, condition: str) -> Result:
    """Return a comparison with kappa sd(y) / (0.75 sd(t)) added at both ends of its interval.

    `spread` stands for sd(y) and `share` for the share treated; both come from released numbers, so that what
    is added costs nothing.
    """
    bound = kappa * spread / (LEFT_OF_TREATMENT * sqrt(share * (1 - share)))
    details: dict[str, float | str] = {"adjusted": False, "kappa": kappa, "bound on confounding": bound}
    return replace(
        plain,
        uncertainty=replace(plain.uncertainty, bias=bound),
        not_covered=(
            f"CONFOUNDING beyond the declared kappa = {kappa:g}",
            *(text for text in plain.not_covered if not text.startswith("CONFOUNDING")),
        ),
        details=details | plain.details,
        interval_of=None,
        condition=condition,
    )
