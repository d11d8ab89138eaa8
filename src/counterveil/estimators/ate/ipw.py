"""Private inverse probability weighting (PP-IPW) where the whole record is private, with scores that are clipped.

A logistic propensity model is fitted on one part of the rows and released with noise; its scores, clipped to
a public range, weight the outcomes of the other rows, whose sum is released. Each part of the rows pays for
one chain of releases, so that both have the whole budget. In a trial whose assignment probability is
declared nothing is fitted and all rows are weighted.

The estimate is m1 - m0 + mean of h1 t (y - m1) - h0 (1-t) (y - m0): with m1, m0 the (released) means of the arms
it is the normalised, or Hajek, form up to a product of errors; with both at the middle of the range it is
Horvitz and Thompson's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Custody, Gate, Plan
from counterveil.data import Study, Table
from counterveil.estimators.ate.covariates import require_covariates
from counterveil.estimators.ate.ipw_choices import chosen_clip, chosen_form, chosen_penalty
from counterveil.estimators.ate.ipw_moments import Weighted, release_moments
from counterveil.estimators.ate.ipw_nuisances import FOR_CENTRES, Fitting, Nuisances, release_nuisances
from counterveil.estimators.ate.ipw_settings import CENTRES, IPWSettings, ipw_plan
from counterveil.estimators.ate.ipw_wording import details, interval_of, not_covered, releases
from counterveil.estimators.ate.unit_features import UnitFeatures
from counterveil.estimators.question import Question
from counterveil.estimators.result import Result
from counterveil.inference import Uncertainty
from counterveil.kernels.fold_split import two_parts
from counterveil.kernels.inverse_weights import Weighing, moments
from counterveil.kernels.newton import checked_tolerance
from counterveil.kernels.propensity import logistic_scores
from counterveil.privacy import Estimand

Floats = NDArray[np.float64]

PAGES = (
    "sensitivity/inverse_weighting.proof.md",
    "sensitivity/penalised_fit.proof.md",
    "curator/branches.proof.md",
    "mechanisms/ball.proof.md",
)


@dataclass(frozen=True, slots=True)
class Design:
    """What is known before a row is read; `fitting` is None where the propensity is declared.

    The form of `settings` is set, and its clip wherever a model is fitted.
    """

    settings: IPWSettings
    features: UnitFeatures
    fitting: Fitting | None
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    plan: Plan


def ipw(custody: Custody, question: Question) -> Result:
    """Return the weighted effect; everything about a person is private, n is public."""
    design = design_of(custody.study, custody.table.rows, question)

    def compute(gate: Gate) -> dict[str, object]:
        nuisances, weighing, weighted = release(gate, custody.table, design, question.estimand)
        return _result(custody, question, design, nuisances, weighing, weighted).stored()

    return Result.from_dict(custody.run(question.request(design.plan, custody.study), compute))


def design_of(study: Study, rows: int, question: Question) -> Design:
    """Return the public design of a question, or refuse it; no row is looked at."""
    settings = question.settings or IPWSettings()
    declared = study.treated_share is not None
    features = UnitFeatures.of(study)
    size = rows if declared else settings.fit_rows(rows)
    if settings.form is None:
        columns, part = (3, sqrt(CENTRES)) if declared else (features.columns + 4, float(FOR_CENTRES))
        form = chosen_form(size, columns, part, question.budget, question.law)
        settings = replace(settings, form=form)
    plan = ipw_plan(question, settings, declared)
    if declared:
        everyone = np.arange(rows, dtype=np.intp)
        return Design(settings, features, None, everyone, everyone, plan)
    require_covariates(study, "ipw")
    penalty = settings.penalty
    if penalty is None:
        penalty = chosen_penalty(size, features, question.budget, question.law)
    if settings.clip is None:
        settings = replace(settings, clip=chosen_clip(rows - size, question.budget, question.law))
    # Asked here, where nothing is spent yet; the fit itself asks again and cannot fail.
    checked_tolerance(size, features.columns + 1, 2, penalty, None)
    return Design(settings, features, Fitting(size, features, penalty), *two_parts(rows, size), plan)


def release(
    gate: Gate, table: Table, design: Design, estimand: Estimand
) -> tuple[Nuisances, Weighing, Weighted]:
    """Return what the first rows taught, how the second rows were weighed, and what came out."""
    fitted = design.fitting is not None
    z = design.features.values(table) if fitted else np.empty((table.rows, 0))
    nuisances = release_nuisances(gate, table, z, design.first, design.fitting, design.settings)
    weighing = weighing_of(nuisances, design, table.study, estimand)
    second = design.second
    scores = np.full(len(second), weighing.low)
    if nuisances.weights is not None:
        scores = logistic_scores(z[second], nuisances.weights)
    treated = table.treated[second]
    found = moments(weighing.contributions(scores, treated, table.outcome[second]), treated)
    unit = Fraction(weighing.scale) * table.outcome_unit
    return nuisances, weighing, release_moments(gate, design.plan, found, unit, _denominator(table, estimand))


def weighing_of(nuisances: Nuisances, design: Design, study: Study, estimand: Estimand) -> Weighing:
    """Return how rows are weighed, from released and declared numbers."""
    if study.treated_share is not None:
        low = high = float(study.treated_share)
    else:
        low, high = nuisances.score_range(design.features, design.settings.clip or 0.0)
    return Weighing(estimand.value, low, high, nuisances.centres)


def _denominator(table: Table, estimand: Estimand) -> float | Estimand:
    """Return by what part of the rows the sum is divided; the estimand where that has to be released."""
    share = table.study.treated_share
    if estimand is Estimand.ATE:
        return 1.0
    if share is None:
        return estimand
    return float(share if estimand is Estimand.ATT else 1 - share)


def effect_of(table: Table, weighing: Weighing, weighted: Weighted) -> tuple[float, float]:
    """Return the effect and the part of it that was not known from the centres, in units of the outcome."""
    unit = float(table.outcome_unit)
    first, second = weighing.centres
    beyond = weighing.scale * unit * weighted.mean * weighted.rows / weighted.size
    return (first - second) * unit + beyond, beyond


def uncertainty_of(table: Table, weighing: Weighing, weighted: Weighted) -> Uncertainty:
    """Return the uncertainty of the weighted contrast, given the released scores and centres."""
    _, beyond = effect_of(table, weighing, weighted)
    factor = weighing.scale * float(table.outcome_unit) / weighted.size
    # The squared mean holds the noise's variance once too often.
    mean_square = weighted.mean**2 - weighted.effect_noise.variance / (factor * weighted.rows) ** 2
    variance = factor**2 * weighted.rows * (weighted.square - mean_square)
    cap = factor**2 * weighted.rows
    extra = (beyond / weighted.size) ** 2 * weighted.count_variance
    return Uncertainty(weighted.effect_noise, variance, cap, weighted.variance_noise, extra)


def _result(
    custody: Custody,
    question: Question,
    design: Design,
    nuisances: Nuisances,
    weighing: Weighing,
    weighted: Weighted,
) -> Result:
    study = custody.study
    estimate, _ = effect_of(custody.table, weighing, weighted)
    return Result(
        estimate=estimate,
        uncertainty=uncertainty_of(custody.table, weighing, weighted),
        guarantee=question.guarantee(custody, PAGES),
        method="inverse probability weighting" + (", normalised" if design.settings.centred else ""),
        **question.effect_terms(study),
        releases=releases(design.settings, design.fitting, weighing, custody.table.outcome_unit),
        not_covered=not_covered(study, design.settings, design.fitting, question.estimand),
        details=details(custody.table, design.settings, design.fitting, nuisances, weighing, question.law),
        interval_of=interval_of(study, nuisances, weighing),
    )
