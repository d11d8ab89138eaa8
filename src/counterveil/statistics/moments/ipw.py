"""Private inverse probability weighting (PP-IPW) where the whole record is private, with scores that are clipped.

A logistic propensity model is fitted and released with noise, for one part of the budget; its scores, clipped to
a public range, weight the outcomes, whose sum is released for the rest. Both look at all rows, in passes. (With
disjoint halves, each at the whole budget, the noise of both would be as large or larger, and the sum would have half
the rows.) In a trial whose assignment probability is declared nothing is fitted.

The estimate is m1 - m0 + mean of h1 t (y - m1) - h0 (1-t) (y - m0): with m1, m0 the (released) means of the arms
it is the normalised, or Hajek, form up to a product of errors; with both at the middle of the range it is
Horvitz and Thompson's.

Lineage: inverse probability weighting (Horvitz and Thompson 1952; Hajek 1971; with an estimated propensity, Hirano,
Imbens and Ridder 2003), made private as in PP-IPW, whose printed form is in `published`; the fit is released by
output perturbation (Chaudhuri, Monteleoni and Sarwate 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import sqrt

import numpy as np

from counterveil.data import Carrier, Study, Sums, Table
from counterveil.data.encoding import outcome_unit
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.inference import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.newton import checked_tolerance
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.numerics.whole_logistic import probabilities
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import (
    Caveat,
    ClippedPropensities,
    ErrorsOfPropensity,
    Fact,
    SmallArms,
    Target,
    WeightedContrast,
)
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Plan, Session
from counterveil.settings import IPW
from counterveil.statistics.moments.ipw_nuisances import (
    CENTRES,
    FOR_CENTRES,
    Fitting,
    Nuisances,
    Weighted,
    ipw_plan,
    release_moments,
    release_nuisances,
    unit_rows,
)
from counterveil.statistics.moments.kernels.scores import Moments, Weighing, moments

# What inverse weighting chooses from public numbers alone: penalty, clip, and whether centring pays.
#
# The constants were chosen by `python -m experiments.ipw.tuning`.


# The penalty at which a released logit's noise has about this standard deviation, within the bounds below.
_LOGIT_NOISE = 0.25
_LEAST, _MOST = 1e-3, 0.6
# Clips of scores, and the rows times mu (or epsilon) from which on the wider range pays.
_NARROW, _WIDE, _ENOUGH = 0.2, 0.1, 8000
# Noise of an arm's mean, in half-widths of the outcome's range, beyond which centring does more harm than good.
_MOST_CENTRE_NOISE = 0.2


def chosen_penalty(rows: int, features: UnitFeatures, amount: float, mechanism: str) -> float:
    """Return the penalty that balances the noise of the weights against what it takes off the model.

    The noise of a weight has standard deviation 2R/(rows penalty mu), or sqrt(columns) times 1/epsilon in
    place of 1/mu for pure noise; a row of features is no longer than R, and `amount` is the mu or epsilon.
    """
    reach = sqrt(float(features.squared_reach) + 1)
    if mechanism != "gaussian":
        amount /= sqrt(features.columns + 2)
    return min(max(2 * reach * reach / (rows * amount * _LOGIT_NOISE), _LEAST), _MOST)


def chosen_clip(rows: int, amount: float) -> float:
    """Return the clip: narrow ranges of scores mean less noise, wide ones less confounding that is left."""
    return _NARROW if rows * amount < _ENOUGH else _WIDE


def chosen_form(rows: int, columns: int, part: float, amount: float, mechanism: str) -> str:
    """Return "hajek" if released means of arms, half of the rows each, would have little noise, else "ht".

    The totals are released at `part` of the length of a vector with this many columns.
    """
    if mechanism != "gaussian":
        amount /= sqrt(columns + 1)
    return "hajek" if 2 / (part * amount) < _MOST_CENTRE_NOISE * rows / 2 else "ht"


def _amount(budget: Budget, mechanism: str, share: float) -> float:
    """Return the mu, or epsilon, that a share of the budget is."""
    if mechanism != "gaussian":
        return float(budget.epsilon) * share
    return float(mu_of(budget.epsilon, budget.delta)) * sqrt(share)


# What the results of inverse weighting say in words: what was released, what the interval does not cover.


def interval_of(study: Study, nuisances: Nuisances, weighing: Weighing) -> Fact | None:
    """Return None where the propensity is declared by a trial's design, else what the interval is for."""
    if study.treated_share is not None:
        return None
    return WeightedContrast(weighing.low, weighing.high) if nuisances.adjusted else Target.UNADJUSTED_CONTRAST


def not_covered(study: Study, settings: IPW, fitting: Fitting | None, estimand: Estimand) -> tuple[Fact, ...]:
    """Return what the interval does not cover, the worst first."""
    if study.treated_share is not None:
        return (Caveat.CLAMPING,)
    return (
        ErrorsOfPropensity(0.0 if fitting is None else fitting.penalty, bool(settings.shrink)),
        Caveat.CONFOUNDING_NOT_LINEAR_IN_LOGIT,
        ClippedPropensities(settings.clip or 0.0),
        Caveat.CLAMPING,
        *(() if estimand is Estimand.ATE else (SmallArms(float(LEAST_SHARE)),)),
    )


def releases(
    settings: IPW, fitting: Fitting | None, weighing: Weighing, outcome_unit: Fraction
) -> tuple[tuple[str, str], ...]:
    """Return what was released, in words."""
    said: list[tuple[str, str]] = []
    if fitting is not None:
        said.append(("weights of the propensity model", f"sensitivity {float(fitting.sensitivity):.4g}"))
    if settings.centred:
        where = "with the weights; they" if fitting is not None else "they"
        said.append(("both arms' totals", f"{where} centre the outcomes"))
    largest = weighing.scale * float(outcome_unit)
    said.append(("weighted sum", f"each row's part lies within {largest:.4g} of zero"))
    said.append(("its squares", "with the sum"))
    if weighing.estimand != "ATE" and fitting is not None:
        said.append(("number treated", "with the sum"))
    return tuple(said)


def details(
    source: Carrier,
    settings: IPW,
    fitting: Fitting | None,
    nuisances: Nuisances,
    weighing: Weighing,
    mechanism: str,
) -> dict[str, float | str]:
    """Return single figures; all of them are public or released."""
    lo, unit = float(source.study.outcome_range[0]), _unit(source.study)
    found: dict[str, float | str] = {"rows": source.rows, "mechanism": mechanism, "form": settings.form or ""}
    if fitting is None:
        found["declared_propensity"] = weighing.low
    else:
        found |= {
            "adjusted": "yes" if nuisances.adjusted else "no",
            "model_budget_share": settings.fit_share,
            "penalty": fitting.penalty,
            "coefficient_noise_sd": nuisances.noise_sd,
            "slope_shrinkage": nuisances.kept,
            "min_propensity": weighing.low,
            "max_propensity": weighing.high,
        }
    if settings.centred:
        found["centre_treated"] = lo + unit * weighing.centres[0]
        found["centre_control"] = lo + unit * weighing.centres[1]
    return found


PAGES = (
    "statistics/moments/inverse_weighting.proof.md",
    "statistics/moments/penalised_fit.proof.md",
    "mechanisms/ball.proof.md",
)


@dataclass(frozen=True, slots=True)
class Design:
    """What is known before a row is read; `fitting` is None where the propensity is declared.

    The form of `settings` is set, and its clip wherever a model is fitted.
    """

    settings: IPW
    features: UnitFeatures
    fitting: Fitting | None
    plan: Plan


def ipw(session: Session, question: Question) -> Result:
    """Return the weighted effect; everything about a person is private, n is public."""
    source = session.batches
    design = design_of(session.study, source.rows, question)

    def compute(gate: Gate) -> dict[str, object]:
        nuisances, weighing, weighted = release(gate, source, design, question.estimand)
        return _result(session, question, design, nuisances, weighing, weighted).stored()

    return Result.from_dict(session.run(question.request(design.plan, session.study), compute))


def design_of(study: Study, rows: int, question: Question) -> Design:
    """Return the public design of a question, or refuse it; no row is looked at."""
    settings, noise = question.settings or IPW(), question.mechanism
    declared = study.treated_share is not None
    features = UnitFeatures.of(study)
    amount = partial(_amount, question.budget, noise)
    if settings.form is None:
        if declared:
            form = chosen_form(rows, 3, sqrt(CENTRES), amount(1.0), noise)
        else:
            form = chosen_form(
                rows, features.columns + 4, float(FOR_CENTRES), amount(settings.fit_share), noise
            )
        settings = replace(settings, form=form)
    plan = ipw_plan(question, settings, declared)
    if declared:
        return Design(settings, features, None, plan)
    require_covariates(study, "ipw")
    penalty = settings.penalty
    if penalty is None:
        penalty = chosen_penalty(rows, features, amount(settings.fit_share), noise)
    if settings.clip is None:
        settings = replace(settings, clip=chosen_clip(rows, amount(1 - settings.fit_share)))
    # Asked here, where nothing is spent yet; the fit itself asks again and cannot fail.
    checked_tolerance(rows, features.columns + 1, 2, penalty, None)
    return Design(settings, features, Fitting(rows, features, penalty), plan)


def release(
    gate: Gate, source: Carrier, design: Design, estimand: Estimand
) -> tuple[Nuisances, Weighing, Weighted]:
    """Return what was learned first, how the rows were weighed, and what came out."""
    nuisances = release_nuisances(gate, source, design.fitting, design.settings)
    weighing = weighing_of(nuisances, design, source.study, estimand)
    found = weighed(source, design.features, nuisances.weights, weighing)
    unit = Fraction(weighing.scale) * outcome_unit(source.study.outcome_bounds)
    denominator = _denominator(source.study, estimand)
    return nuisances, weighing, release_moments(gate, design.plan, found, unit, denominator)


def weighed(source: Carrier, features: UnitFeatures, weights: Floats | None, weighing: Weighing) -> Moments:
    """Return the exact sums of all rows' contributions under released weights, None where scores are declared."""
    passed = partial(weighted_sums, features=features, weights=weights, weighing=weighing)
    ((total, squares, treated),) = source.run(passed)
    return Moments(total, squares, treated, source.rows)


def weighted_sums(block: Table, features: UnitFeatures, weights: Floats | None, weighing: Weighing) -> Sums:
    """Return the sums of contributions and of their squares over a block, and the number treated."""
    scores = np.full(block.rows, weighing.low)
    if weights is not None:
        scores = np.concatenate([probabilities(z, weights) for z, _ in unit_rows(block, features)])
    found = moments(weighing.contributions(scores, block.treated, block.outcome), block.treated)
    return (np.array([found.total, found.squares, found.treated], dtype=object),)


def weighing_of(nuisances: Nuisances, design: Design, study: Study, estimand: Estimand) -> Weighing:
    """Return how rows are weighed, from released and declared numbers."""
    if study.treated_share is not None:
        low = high = float(study.treated_share)
    else:
        low, high = nuisances.score_range(design.features, design.settings.clip or 0.0)
    return Weighing(estimand.value, low, high, nuisances.centres)


def _denominator(study: Study, estimand: Estimand) -> float | Estimand:
    """Return by what part of the rows the sum is divided; the estimand where that has to be released."""
    share = study.treated_share
    if estimand is Estimand.ATE:
        return 1.0
    if share is None:
        return estimand
    return float(share if estimand is Estimand.ATT else 1 - share)


def _unit(study: Study) -> float:
    return float(outcome_unit(study.outcome_bounds))


def effect_of(study: Study, weighing: Weighing, weighted: Weighted) -> tuple[float, float]:
    """Return the effect and the part of it that was not known from the centres, in units of the outcome."""
    unit = _unit(study)
    first, second = weighing.centres
    beyond = weighing.scale * unit * weighted.mean * weighted.rows / weighted.size
    return (first - second) * unit + beyond, beyond


def uncertainty_of(study: Study, weighing: Weighing, weighted: Weighted) -> Uncertainty:
    """Return the uncertainty of the weighted contrast at the released scores and centres."""
    _, beyond = effect_of(study, weighing, weighted)
    factor = weighing.scale * _unit(study) / weighted.size
    # The squared mean holds the noise's variance once too often.
    mean_square = weighted.mean**2 - weighted.effect_noise.variance / (factor * weighted.rows) ** 2
    variance = factor**2 * weighted.rows * (weighted.square - mean_square)
    cap = factor**2 * weighted.rows
    extra = (beyond / weighted.size) ** 2 * weighted.count_variance
    return Uncertainty(weighted.effect_noise, variance, cap, weighted.variance_noise, extra)


def _result(
    session: Session,
    question: Question,
    design: Design,
    nuisances: Nuisances,
    weighing: Weighing,
    weighted: Weighted,
) -> Result:
    study, source = session.study, session.batches
    estimate, _ = effect_of(study, weighing, weighted)
    return Result(
        estimate=estimate,
        uncertainty=uncertainty_of(study, weighing, weighted),
        guarantee=question.guarantee(session, PAGES),
        method="inverse probability weighting" + (", normalised" if design.settings.centred else ""),
        **question.effect_terms(study),
        releases=releases(design.settings, design.fitting, weighing, outcome_unit(study.outcome_bounds)),
        not_covered=not_covered(study, design.settings, design.fitting, question.estimand),
        details=details(source, design.settings, design.fitting, nuisances, weighing, question.mechanism),
        interval_of=interval_of(study, nuisances, weighing),
    )
