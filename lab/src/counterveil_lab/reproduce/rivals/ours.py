"""The library's own methods, asked as an analyst asks them, and the papers' methods as they were published."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import log, sqrt
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.published.strata import (
    match_in_order,
    printed_noise_scale,
    printed_smooth_change,
    printed_smoothness,
)
from counterveil.published.strata_sensitivity import StratumCounts
from counterveil.questions.ate import ate
from counterveil.results.result import Result
from counterveil_lab.reproduce.rivals.encoding import (
    Answer,
    Budget,
    Estimate,
    Records,
    frame_of,
    names,
    strata,
    strata_columns,
    study_of,
)
from counterveil_lab.reproduce.rivals.simple import design, regressed, scores

# The bound on confounding that every comparison declares where one is needed.
KAPPA = 0.25


def answer_of(result: Result) -> Answer:
    """Return the value, and the interval if it is one for the effect."""
    low, high = result.untruncated_interval()
    return Answer(result.estimate) if result.interval_target else Answer(result.estimate, low, high)


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


def as_published(form: Callable[..., Result]) -> Estimate:
    """Return a form of `counterveil.published` as a rival."""

    def estimate(records: Records, budget: Budget, seed: int) -> Answer:
        result = form(
            *declared(records),
            epsilon=budget.epsilon,
            delta=budget.delta,
            accept="unproved",
            noise=cv.SeededNoise(seed),
        )
        return answer_of(result)

    return estimate


def matched_effect(records: Records) -> float:
    """Return the effect by exact one-to-one matching in row order; people without a partner count as zero."""
    stratum, _ = strata(records)
    partner, _ = match_in_order(stratum, records.treated)
    found, y = partner >= 0, records.outcomes
    gaps = np.where(records.treated, 1.0, -1.0)[found] * (y[found] - y[partner[found]])
    return float(gaps.sum()) / records.rows


def smooth_scale(records: Records, budget: Budget) -> float:
    """Return the scale of the Laplace noise that SmoothDPM prints."""
    stratum, public = strata(records)
    treated = np.bincount(stratum[records.treated], minlength=public)
    counts = StratumCounts.of(treated, np.bincount(stratum, minlength=public) - treated, public)
    bound = printed_smooth_change(counts, printed_smoothness(budget.epsilon, budget.delta))
    return printed_noise_scale(records.width * bound / records.rows, budget.epsilon)


def smooth_matching(records: Records, budget: Budget, seed: int) -> Answer:
    """Return exact matching with noise for the printed smooth bound."""
    return Answer(matched_effect(records) + _laplace(seed, smooth_scale(records, budget)))


def global_matching(records: Records, budget: Budget, seed: int) -> Answer:
    """Return exact matching with noise for the printed global bound, the range of the outcome."""
    return Answer(matched_effect(records) + _laplace(seed, records.width / budget.epsilon))


def _laplace(seed: int, scale: float) -> float:
    return float(np.random.default_rng(seed).laplace(0, scale))


def dpci_sd(records: Records, budget: Budget, reach: float) -> float:
    """Return the standard deviation for an influence function of at most `reach`.

    The constant is that of the authors' DP-CATE, Theorem 1: 5 sqrt(2 ln n ln(2 / delta)) / (epsilon n).
    """
    n = records.rows
    return reach * 5 * sqrt(2 * log(n) * log(2 / budget.delta)) / (budget.epsilon * n)


def dpci(records: Records, budget: Budget, seed: int) -> Answer:
    """Return the doubly robust effect with Gaussian noise for the largest influence at the fitted models."""
    x, t, y = design(records), records.treated.astype(np.float64), records.outcomes
    e = scores(x, t)
    low, high = records.outcome_range
    m1, m0 = (
        np.clip(x @ regressed(x[own], y[own]), low, high) for own in (records.treated, ~records.treated)
    )
    value = float((m1 - m0 + t * (y - m1) / e - (1 - t) * (y - m0) / (1 - e)).mean())
    ends = [m1 - m0 - value + (end - m1) / e for end in (low, high)]
    ends += [m1 - m0 - value - (end - m0) / (1 - e) for end in (low, high)]
    reach = float(np.abs(ends).max())
    noise = np.random.default_rng(seed).normal(0, dpci_sd(records, budget, reach))
    return Answer(value + float(noise))
