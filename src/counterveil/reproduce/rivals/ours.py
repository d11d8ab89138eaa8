"""The library's own methods, asked as an analyst asks them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import counterveil as cv
from counterveil.questions.ate import ate
from counterveil.reproduce.rivals.encoding import frame_of, names, strata_columns, study_of
from counterveil.reproduce.rivals.protocol import Answer, Budget, Estimate, Records
from counterveil.results.result import Result

# The bound on confounding that every comparison declares where one is needed.
KAPPA = 0.25


def answer_of(result: Result) -> Answer:
    """Return the value, and the interval if it is one for the effect."""
    low, high = result.uncut_interval()
    return Answer(result.estimate) if result.interval_of else Answer(result.estimate, low, high)


@lru_cache(maxsize=8)
def declared(records: Records, cut: tuple[int, ...] = ()) -> tuple[dict[str, Any], cv.Study]:
    """Return the columns and the study of records: made once, as records are for the methods that take these."""
    return dict(frame_of(records)), study_of(records, cut)


def asked(
    protects: str, method: str, records: Records, budget: Budget, seed: int, settings: Any = None
) -> Result:
    """Return the result of `cv.ate`; a refusal is raised, as an analyst sees it."""
    cut = strata_columns(records) if method == "stratified" else ()
    return ate(
        *declared(records, cut),
        protects=protects,
        method=method,
        epsilon=budget.epsilon,
        delta=budget.delta,
        settings=settings,
        noise=cv.SeededNoise(seed),
    )


def by_ate(protects: str, method: str, settings: Callable[[Records], Any] = lambda _: None) -> Estimate:
    """Return a method of `cv.ate` as a rival."""
    return lambda records, budget, seed: answer_of(
        asked(protects, method, records, budget, seed, settings(records))
    )


def p_value(records: Records, budget: Budget, seed: int) -> float:
    """Return the p-value of no effect from a private difference in means, outcomes private."""
    return asked("outcome", "difference_in_means", records, budget, seed).p_value


def by_strata(records: Records) -> cv.settings.Stratified:
    """Return settings that stratify by the covariates that the public rule takes."""
    known = names(records)
    return cv.settings.Stratified(strata=tuple(known[column] for column in strata_columns(records)))


def value_alone(_: Records) -> cv.settings.Weighting:
    """Return settings that spend everything on the value; the interval is for the largest variance there can be."""
    return cv.settings.Weighting(variance_share=0)


def means_alone(_: Records) -> cv.settings.DifferenceInMeans:
    """Return the same for the difference in means."""
    return cv.settings.DifferenceInMeans(variance_share=0)


def bounded(_: Records) -> cv.settings.Auto:
    """Return settings of an analyst who declares a bound on confounding, so that auto always answers."""
    return cv.settings.Auto(kappa=KAPPA)


def unadjusted(_: Records) -> cv.settings.Trial:
    """Return settings that compare the arms as they are."""
    return cv.settings.Trial("none", "auto")
