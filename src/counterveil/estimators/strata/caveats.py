"""What intervals of effects over strata do not cover."""

from __future__ import annotations

from counterveil.data import Study
from counterveil.privacy.caveats import Caveat, Fact


def caveats(study: Study, of_strata: Fact) -> tuple[Fact, ...]:
    """Return what the interval does not cover, from what the study declares."""
    open_to = () if study.randomised is True else (Caveat.CONFOUNDING_WITHIN_STRATA,)
    return (*open_to, of_strata, Caveat.CLAMPING, Caveat.FIXED_STRATA)
