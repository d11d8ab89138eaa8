"""The library's own methods, asked as an analyst asks them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import counterveil as cv
from counterveil.reproduce.rivals.encoding import frame_of, names, strata_columns, study_of
from counterveil.reproduce.rivals.protocol import Answer, Budget, Estimate, Records
from counterveil.results.result import Result


def answer_of(result: Result) -> Answer:
    """Return the value, and the interval if it is one for the effect."""
    low, high = result.uncut_interval()
    # Half a plane is no interval: such ends are left out.
    return Answer(result.estimate) if result.interval_of else Answer(result.estimate, low, high)


def by_ate(
    protects: str, method: str, settings: Callable[[Records], Any] = lambda _: None, pure: bool = False
) -> Estimate:
    """Return `cv.ate` with a method; a refusal is raised, as an analyst sees it."""

    def estimate(records: Records, budget: Budget, seed: int) -> Answer:
        cut = strata_columns(records) if method == "stratified" else ()
        result = cv.ate(
            frame_of(records),
            study_of(records, cut),
            protects=protects,
            method=method,
            epsilon=budget.epsilon,
            delta=0 if pure else budget.delta,
            settings=settings(records),
            noise=cv.SeededNoise(seed),
        )
        return answer_of(result)

    return estimate


def by_strata(records: Records) -> cv.settings.Stratified:
    """Return settings that stratify by the covariates that the public rule takes."""
    known = names(records)
    return cv.settings.Stratified(strata=tuple(known[column] for column in strata_columns(records)))


def unadjusted(_: Records) -> cv.settings.Trial:
    """Return settings that compare the arms as they are."""
    return cv.settings.Trial("none", "auto")
