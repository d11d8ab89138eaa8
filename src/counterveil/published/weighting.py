"""Private inverse probability weighting, as printed and as proved.

Its privacy claim is refuted: the noise of the weighted sum is calibrated for bounds of the true propensity,
while the sum is divided by the noisy fitted one, which nothing bounds. What is drawn is what is printed:
weights of a logistic model without intercept on features of length one at most, the classical Gaussian
constant, no clipping, no centring.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterveil.accounting import Ledger
from counterveil.data import Study, Table
from counterveil.data.domains import outcome_unit
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.errors import refusal
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats, Indices, Integers
from counterveil.numerics.gaussian_profile import delta_of, mu_of
from counterveil.numerics.propensity import checked_tolerance, fit_propensity, logistic_scores
from counterveil.numerics.public_choices import LEAST_SHARE, two_parts
from counterveil.privacy import Budget, Estimand, Number, Proof, Unit
from counterveil.privacy.caveats import (
    Caveat,
    ClippedPropensities,
    ErrorsOfPropensity,
    Fact,
    SmallArms,
    Target,
    WeightedContrast,
)
from counterveil.published.asking import EffectForm, PublishedQuestion, textbook_constant, unproved
from counterveil.published.matching import fit_sensitivity, fit_without_intercept
from counterveil.results.answering import Facts, answer_request
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.moments.weighted_moments import (
    ARM_COUNT_FACTOR,
    ARM_TOTALS,
    GRID_BITS,
    RowSums,
    WeightedMeans,
    contribution_sums,
    release_moments,
)
from counterveil.session import BaseSession, BitSource, Gate, Kind, Plan
from counterveil.session.session import in_branches

PAGE = "rows/moments/inverse_weighting.proof.md"
REMARK = (
    "the published claim is false: the weighted sum is divided by the noisy score, which is not clipped, while its "
    "noise is made for bounds of the true propensity. The Gaussian constant is proved for epsilon below 1 only and "
    "fails from about 8. The published effects on the treated and on the untreated are multiplied by the share of "
    "that arm: they estimate another quantity. Details give the delta that this draw lost at its epsilon"
)
_SHRUNK = {
    Estimand.ATT: Target.TREATED_TIMES_SHARE,
    Estimand.ATC: Target.UNTREATED_TIMES_SHARE,
}

# Bounds that the paper assumes for the true propensity, which nothing enforces; the penalty of the propensity model;
# and the part of the rows that it is fitted on.
LOWEST, HIGHEST = 0.1, 0.9
PENALTY = 0.1
_FIT_PART = 0.5
# A standard deviation beyond this says no more, and its square would not be a double.
_LARGEST = 1e100


@dataclass(frozen=True, slots=True)
class PublishedSum:
    """A draw of the published form: its value, before and after the last noise, and its two sensitivities.

    `claimed` is the published bound of how far a record moves the sum, `true` the bound at the noisy weights.
    """

    partly: float
    value: float
    claimed: Fraction
    true: float


def _ipw(session: BaseSession, question: PublishedQuestion) -> Result:
    """Return the effect by inverse probability weighting, as in PP-IPW (Lee et al.); refuted."""
    require_covariates(session.study, "ipw")
    plan = paper_plan(question)
    question.require_acceptance(Proof.REFUTED, REMARK)

    def compute(gate: Gate) -> Facts:
        parts = two_parts(session.table.rows, fit_rows(session.table.rows))
        published = release(gate, plan, session.table, parts, question.estimand)
        noise = plan.noise("effect", published.claimed * classical(plan, "effect"))
        rows = session.table.rows
        cap = min(published.true / 2, _LARGEST) ** 2 * rows
        target = _SHRUNK.get(question.estimand, Target.UNCLIPPED_CONTRAST)
        return Facts(
            estimate=published.value,
            uncertainty=Uncertainty(noise, cap, cap),
            method="inverse probability weighting, as published",
            not_covered=(
                Caveat.ERRORS_OF_NOISY_WEIGHTS,
                Caveat.CONFOUNDING_LEFT_BY_PENALTY,
            ),
            details={
                "rows": rows,
                "mechanism": "gaussian, classical constant",
                "max_delta_loss": lost_delta(question, published),
            },
            interval_target=target,
        )

    pages = (PAGE, "session/branches.proof.md")
    return unproved(session, question, plan, compute, pages, (Proof.REFUTED, REMARK))


_IPW = EffectForm("ipw", Unit.RECORD, None, _ipw)


def ipw(
    data: object,
    study: Study | None = None,
    *,
    epsilon: Number,
    delta: Number = 0,
    estimand: str = "ATE",
    level: float = 0.95,
    settings: None = None,
    accept: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Estimate an average effect by inverse probability weighting, as PP-IPW prints it.

    A logistic model without intercept is fitted to half of the rows, and its coefficients get Gaussian noise
    of the textbook scale; the other half is weighted by the noisy scores, without clipping.

    Parameters
    ----------
    data : object
        The rows: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays, or
        the path of a CSV or Parquet file; or an open `Session`, which brings its study, ledger, account and
        noise.
    study : Study, optional
        Roles of the columns, with public ranges and labels. Left out with a session.
    epsilon : number
        Privacy loss that the paper claims, above 0.
    delta : number, default 0
        A small positive number, below 1: the form draws Gaussian noise.
    estimand : {"ATE", "ATT", "ATC"}, default "ATE"
        Average effect on everyone, on the treated, or on the controls.
    level : float, default 0.95
        Confidence level, above 0 and below 1.
    settings : None
        The form has none.
    accept : "unproved", optional
        Needed, from an analyst who knows that the claim is not proved in finite samples. A ledger on disk
        takes such a request only if the account's access policy has ``unproved = true``.
    ledger : Ledger or path-like, optional
        Charge an account of this ledger. Default: a ledger for this call alone.
    dataset : str, optional
        Account in the ledger. Default: the only one.
    request_id : str, optional
        Name of the request; asked again under it, the stored answer comes back, free of charge. Default: a
        new request.
    noise : SeededNoise, optional
        Reproducible noise, for tests alone: it protects nobody. Default: noise of the operating system.

    Returns
    -------
    Result
        Estimate, standard error, interval, guarantee with what is true of the claim, and what was spent.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), missing acceptance (CV-C001), study (CV-S), data (CV-D),
        ledger (CV-L), budget (CV-B).

    Notes
    -----
    Claims (epsilon, delta)-DP for whole records; refuted. The noise of the weighted sum assumes bounds on the
    true propensity, but the sum is divided by the noisy fitted one, which is unbounded. With 100 rows at
    epsilon 0.2, single draws lose a delta above 0.9; ``details["max_delta_loss"]`` says what this one lost at
    least. Effects on one arm are multiplied by its share. Instead: `ipw_proved`, or
    ``cv.ate(method="doubly_robust")``.

    References
    ----------
    .. [1] Lee, S. K., Gresele, L., Park, M. and Muandet, K. (2019). Privacy-Preserving Causal Inference via
       Inverse Probability Weighting. arXiv:1905.12592.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=1000, covariates=3)
    >>> result = cv.published.ipw(
    ...     data.frame, data.study, epsilon=1, delta=1e-6, accept="unproved", noise=cv.SeededNoise(1)
    ... )
    >>> result.spent.epsilon >= 1
    True
    """
    return _IPW(
        data,
        study,
        epsilon=epsilon,
        delta=delta,
        estimand=estimand,
        level=level,
        settings=settings,
        accept=accept,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )


def paper_plan(question: PublishedQuestion) -> Plan:
    """Return the plan, or refuse a pure budget: the published noise is Gaussian."""
    if question.mechanism != "gaussian":
        raise refusal("CV-P421", budget=question.budget)
    chains = [
        ({"weights": Fraction(1)}, {"weights": Kind.VECTOR}),
        ({"effect": Fraction(1)}, dict[str, Kind]()),
    ]
    return in_branches(question.budget, question.mechanism, chains)


def classical(plan: Plan, name: str) -> Fraction:
    """Return by what a sensitivity is multiplied so that the plan's noise has the classical constant."""
    kind = Kind.VECTOR if name == "weights" else Kind.NUMBER
    epsilon, delta = float(plan.budget.epsilon), float(plan.budget.delta)
    return plan.amount(name, kind) * Fraction(textbook_constant(delta) / epsilon)


def fit_rows(rows: int) -> int:
    """Return how many rows the propensity model is fitted on: at least one, and one is left."""
    return min(max(round(_FIT_PART * rows), 1), rows - 1)


def unit_rows(features: UnitFeatures, table: Table) -> Floats:
    """Return features whose rows are no longer than one, by public numbers."""
    found = features.values(table)
    found /= sqrt(float(features.squared_max_norm))
    return found


def release(
    gate: Gate,
    plan: Plan,
    table: Table,
    parts: tuple[Indices, Indices],
    estimand: Estimand,
) -> PublishedSum:
    """Return one draw of the published algorithm on the two parts of the rows."""
    first, second = parts
    z = unit_rows(UnitFeatures.of(table.study), table)
    fitted = fit_without_intercept(z[first], table.treated[first], PENALTY)
    claimed = 2 / (len(first) * Fraction(PENALTY)) * classical(plan, "weights")
    weights = gate.release_vector("weights", [Fraction(w) for w in fitted], claimed).floats()
    steps = table.outcome[second].astype(np.float64)
    y = float(table.study.outcome_range[0]) + float(table.outcome_unit) * steps
    partly = weighted_sum(z[second] @ weights, table.treated[second], y, estimand)
    largest = max(abs(bound) for bound in table.study.outcome_range)
    unit = 2 * largest / len(second)
    bound = unit * Fraction(_claimed_weight(estimand))
    value = gate.release("effect", Fraction(partly), bound * classical(plan, "effect")).value
    odds = exp(min(float(np.linalg.norm(weights)), 700.0))
    true = float(unit) * (1 + odds if estimand is Estimand.ATE else odds)
    return PublishedSum(partly, float(value), bound, true)


def weighted_sum(logits: Floats, treated: NDArray[np.bool_], y: Floats, estimand: Estimand) -> float:
    """Return the published mean over rows; each weight is what the unclipped noisy score gives."""
    with np.errstate(over="ignore"):
        odds = np.exp(np.where(treated, -logits, logits))
    if estimand is Estimand.ATE:
        weights = 1 + odds
    else:
        own = treated if estimand is Estimand.ATT else ~treated
        weights = np.where(own, 1.0, odds)
    # Sums of float64 overflow only for logits in the hundreds; a finite number must be released all the same.
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(np.where(treated, weights, -weights) @ y) / len(y)
    return total if np.isfinite(total) else 0.0


def _claimed_weight(estimand: Estimand) -> float:
    """Return the largest weight under the bounds that the published form assumes."""
    low, high = LOWEST, HIGHEST
    if estimand is Estimand.ATE:
        return max(1 / low, 1 / (1 - high))
    return max(1.0, high / (1 - high), (1 - low) / low)


def lost_delta(question: PublishedQuestion, published: PublishedSum) -> float:
    """Return the delta that the last step loses at the epsilon of the claim, for this draw of the weights."""
    epsilon, delta = question.budget.epsilon, question.budget.delta
    ratio = published.true / float(published.claimed)
    mu = Fraction(min(ratio * float(epsilon) / textbook_constant(float(delta)), 1e6))
    return float(delta_of(mu, epsilon))


# Private inverse probability weighting with scores that are clipped: `published.ipw` as it can be proved.
#
# A logistic propensity model is fitted and released with noise, for one part of the budget; its scores, clipped to a
# public range, weight the outcomes, whose sum is released for the rest. Both look at all rows. (With disjoint halves,
# each at the whole budget, the noise of both would be as large or larger, and the sum would have half the rows.) In a
# trial whose assignment probability is declared nothing is fitted.
#
# The estimate is m1 - m0 + mean of h1 t (y - m1) - h0 (1-t) (y - m0): with m1, m0 the (released) means of the arms it
# is the normalised, or Hajek, form up to a product of errors; with both at the middle of the range it is Horvitz and
# Thompson's.
#
# Lineage: inverse probability weighting (Horvitz and Thompson 1952; Hajek 1971; with an estimated propensity, Hirano,
# Imbens and Ridder 2003), made private as in PP-IPW; the fit is released by output perturbation (Chaudhuri,
# Monteleoni and Sarwate 2011).


# What is chosen from public numbers alone: penalty, clip, and whether centring pays.
#
# The constants were chosen on simulated studies that nothing is reported of.

# The share of the budget for the propensity model and the arms' means.
FIT_SHARE = Fraction(1, 2)
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
    reach = sqrt(float(features.squared_max_norm) + 1)
    if mechanism != "gaussian":
        amount /= sqrt(features.columns + 2)
    return min(max(2 * reach * reach / (rows * amount * _LOGIT_NOISE), _LEAST), _MOST)


def chosen_clip(rows: int, amount: float) -> float:
    """Return the clip: narrow ranges of scores mean less noise, wide ones less confounding that is left."""
    return _NARROW if rows * amount < _ENOUGH else _WIDE


def centring_pays(rows: int, columns: int, part: float, amount: float, mechanism: str) -> bool:
    """Return whether released means of arms, half of the rows each, would have little noise.

    The totals are released at `part` of the length of a vector with this many columns.
    """
    if mechanism != "gaussian":
        amount /= sqrt(columns + 1)
    return 2 / (part * amount) < _MOST_CENTRE_NOISE * rows / 2


def _amount(budget: Budget, mechanism: str, share: Fraction) -> float:
    """Return the mu, or epsilon, that a share of the budget is."""
    if mechanism != "gaussian":
        return float(budget.epsilon * share)
    return float(mu_of(budget.epsilon, budget.delta)) * sqrt(share)


def interval_target(study: Study, nuisances: IpwModels, weighing: Weighing) -> Fact | None:
    """Return None where the propensity is declared by a trial's design, else what the interval is for."""
    if study.treated_share is not None:
        return None
    return WeightedContrast(weighing.low, weighing.high) if nuisances.adjusted else Target.UNADJUSTED_CONTRAST


def not_covered(design: IpwDesign, estimand: Estimand) -> tuple[Fact, ...]:
    """Return what the interval does not cover, the worst first."""
    if design.fitting is None:
        return (Caveat.CLAMPING,)
    return (
        ErrorsOfPropensity(design.fitting.penalty, True),
        Caveat.CONFOUNDING_NOT_LINEAR_IN_LOGIT,
        ClippedPropensities(design.clip),
        Caveat.CLAMPING,
        *(() if estimand is Estimand.ATE else (SmallArms(float(LEAST_SHARE)),)),
    )


PAGES = (
    "rows/moments/inverse_weighting.proof.md",
    "rows/moments/penalised_fit.proof.md",
    "mechanisms/ball.proof.md",
)


@dataclass(frozen=True, slots=True)
class IpwDesign:
    """What is known before a row is read; `fitting` is None where the propensity is declared.

    `centred` says whether outcomes are centred at released means; scores are clipped to [clip, 1 - clip].
    """

    centred: bool
    clip: float
    features: UnitFeatures
    fitting: Fitting | None
    plan: Plan


def _proved_ipw(session: BaseSession, question: Question) -> Result:
    """Return the effect by inverse probability weighting with clipped scores, as proved."""
    table = session.table
    design = design_of(session.study, table.rows, question)

    def compute(gate: Gate) -> Facts:
        nuisances, weighing, weighted = release_proved(gate, table, design, question.estimand)
        study = session.study
        return Facts(
            estimate=effect_of(study, weighing, weighted)[0],
            uncertainty=uncertainty_of(study, weighing, weighted),
            method="inverse probability weighting" + (", normalised" if design.centred else ""),
            not_covered=not_covered(design, question.estimand),
            details={
                "rows": table.rows,
                "mechanism": design.plan.mechanism,
                "form": "hajek" if design.centred else "ht",
                "adjusted": "yes" if nuisances.adjusted else "no",
                "min_propensity": weighing.low,
                "max_propensity": weighing.high,
            },
            interval_target=interval_target(study, nuisances, weighing),
        )

    return answer_request(Result, session, question, design.plan, compute, pages=PAGES)


_IPW_PROVED = EffectForm("ipw_proved", Unit.RECORD, None, _proved_ipw, printed=False)


def ipw_proved(
    data: object,
    study: Study | None = None,
    *,
    epsilon: Number,
    delta: Number = 0,
    estimand: str = "ATE",
    level: float = 0.95,
    settings: None = None,
    accept: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Estimate an average effect by inverse probability weighting, with a proved guarantee.

    The coefficients of a penalised propensity model are released; scores are clipped to a public [xi, 1 -
    xi], and the weighted sum gets noise for that bound.

    Parameters
    ----------
    data : object
        The rows: a DataFrame (pandas, Polars, PyArrow, DuckDB, Ibis, Spark), a mapping of names to arrays, or
        the path of a CSV or Parquet file; or an open `Session`, which brings its study, ledger, account and
        noise.
    study : Study, optional
        Roles of the columns, with public ranges and labels. Left out with a session.
    epsilon : number
        Privacy loss, above 0.
    delta : number, default 0
        From 0 to below 1. 0: pure noise; above 0: Gaussian noise.
    estimand : {"ATE", "ATT", "ATC"}, default "ATE"
        Average effect on everyone, on the treated, or on the controls.
    level : float, default 0.95
        Confidence level, above 0 and below 1.
    settings : None
        The form has none.
    accept : "unproved", optional
        Without meaning here: the form is proved.
    ledger : Ledger or path-like, optional
        Charge an account of this ledger. Default: a ledger for this call alone.
    dataset : str, optional
        Account in the ledger. Default: the only one.
    request_id : str, optional
        Name of the request; asked again under it, the stored answer comes back, free of charge. Default: a
        new request.
    noise : SeededNoise, optional
        Reproducible noise, for tests alone: it protects nobody. Default: noise of the operating system.

    Returns
    -------
    Result
        Estimate, standard error, interval, guarantee with what is true of the claim, and what was spent.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L), budget (CV-B).

    Notes
    -----
    Protects whole records; (epsilon, delta)-DP. With released scores p_i, clipped,

        estimate = (1/n) sum of T_i (Y_i - c) / p_i - (1 - T_i) (Y_i - c) / (1 - p_i),

    where c is 0 or a released centre. The interval is for this contrast at the released scores; in a trial
    with a declared share treated, for the effect. Proof: ``rows/moments/inverse_weighting.proof.md``.
    Instead:
    ``cv.ate(method="doubly_robust")``.

    References
    ----------
    .. [1] Lee, S. K., Gresele, L., Park, M. and Muandet, K. (2019). Privacy-Preserving Causal Inference via
       Inverse Probability Weighting. arXiv:1905.12592.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=1000, covariates=3)
    >>> result = cv.published.ipw_proved(data.frame, data.study, epsilon=1, noise=cv.SeededNoise(1))
    >>> result.details["rows"]
    1000
    """
    return _IPW_PROVED(
        data,
        study,
        epsilon=epsilon,
        delta=delta,
        estimand=estimand,
        level=level,
        settings=settings,
        accept=accept,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )


def design_of(study: Study, rows: int, question: Question, centred: bool | None = None) -> IpwDesign:
    """Return the public design of a question, or refuse it; no row is looked at.

    Whether outcomes are centred follows public numbers, unless it is said.
    """
    noise, features = question.mechanism, UnitFeatures.of(study)
    if study.treated_share is not None:
        amount = _amount(question.budget, noise, Fraction(1))
        if centred is None:
            centred = centring_pays(rows, 3, sqrt(CENTRES), amount, noise)
        return IpwDesign(centred, 0.0, features, None, ipw_plan(question, centred, declared=True))
    require_covariates(study, "ipw_proved")
    amount = _amount(question.budget, noise, FIT_SHARE)
    if centred is None:
        centred = centring_pays(rows, features.columns + 4, float(FOR_CENTRES), amount, noise)
    penalty = chosen_penalty(rows, features, amount, noise)
    clip = chosen_clip(rows, _amount(question.budget, noise, 1 - FIT_SHARE))
    # Asked here, where nothing is spent yet; the fit itself asks again and cannot fail.
    checked_tolerance(rows, features.columns + 1, 2, penalty, None)
    fitting = Fitting(rows, features, penalty)
    return IpwDesign(centred, clip, features, fitting, ipw_plan(question, centred, declared=False))


def release_proved(
    gate: Gate, table: Table, design: IpwDesign, estimand: Estimand
) -> tuple[IpwModels, Weighing, WeightedMeans]:
    """Return what was learned first, how the rows were weighed, and what came out."""
    nuisances = release_nuisances(gate, table, design)
    weighing = weighing_of(nuisances, design, table.study, estimand)
    found = weighed(table, design.features, nuisances.weights, weighing)
    unit = Fraction(weighing.scale) * outcome_unit(table.study.outcome_bounds)
    part = denominator(table.study.treated_share, estimand)
    return nuisances, weighing, release_moments(gate, design.plan, found, unit, part)


def weighed(table: Table, features: UnitFeatures, weights: Floats | None, weighing: Weighing) -> RowSums:
    """Return the exact sums of all rows' contributions under released weights, None where scores are declared."""
    scores = np.full(table.rows, weighing.low)
    if weights is not None:
        scores = logistic_scores(features.values(table), weights)
    return contribution_sums(weighing.contributions(scores, table.treated, table.outcome), table.treated)


def weighing_of(nuisances: IpwModels, design: IpwDesign, study: Study, estimand: Estimand) -> Weighing:
    """Return how rows are weighed, from released and declared numbers."""
    if study.treated_share is not None:
        low = high = float(study.treated_share)
    else:
        low, high = nuisances.score_range(design.features, design.clip)
    return Weighing(estimand.value, low, high, nuisances.centres)


def denominator(declared: Fraction | float | None, estimand: Estimand) -> float | Estimand:
    """Return by what part of the rows the sum is divided; the estimand where that has to be released."""
    if estimand is Estimand.ATE:
        return 1.0
    if declared is None:
        return estimand
    return float(declared if estimand is Estimand.ATT else 1 - declared)


def _unit(study: Study) -> float:
    return float(outcome_unit(study.outcome_bounds))


def effect_of(study: Study, weighing: Weighing, weighted: WeightedMeans) -> tuple[float, float]:
    """Return the effect and the part of it that was not known from the centres, in units of the outcome."""
    unit = _unit(study)
    first, second = weighing.centres
    beyond = weighing.scale * unit * weighted.mean * weighted.rows / weighted.size
    return (first - second) * unit + beyond, beyond


def uncertainty_of(study: Study, weighing: Weighing, weighted: WeightedMeans) -> Uncertainty:
    """Return the uncertainty of the weighted contrast at the released scores and centres."""
    _, beyond = effect_of(study, weighing, weighted)
    factor = weighing.scale * _unit(study) / weighted.size
    # The squared mean holds the noise's variance once too often.
    mean_square = weighted.mean**2 - weighted.effect_noise.variance / (factor * weighted.rows) ** 2
    variance = factor**2 * weighted.rows * (weighted.square - mean_square)
    cap = factor**2 * weighted.rows
    extra = (beyond / weighted.size) ** 2 * weighted.count_variance
    return Uncertainty(weighted.effect_noise, variance, cap, weighted.variance_noise, extra)


# What is learned before rows are weighed: a propensity model and the arms' centres, one vector, released once. The
# weights of the model are divided by how far one record can move them and the arms' totals likewise, so that one noise
# serves both.


# Part of the budget for the arms' centres where the propensity is declared.
CENTRES = Fraction(3, 20)
# Of a pure budget: the weighted sum, its squares, and the number treated where that has to be known.
_PURE_SHARES = {"effect": Fraction(17, 20), "squares": Fraction(3, 20)}
_PURE_SHARES_COUNTED = {"effect": Fraction(3, 4), "squares": Fraction(1, 8), "count": Fraction(1, 8)}


def score_shares(mechanism: str, counted: bool) -> dict[str, Fraction]:
    """Return the parts of what the weighted sums cost; `counted` says that the number treated is released too."""
    if mechanism == "gaussian":
        return {"moments": Fraction(1)}
    return _PURE_SHARES_COUNTED if counted else _PURE_SHARES


def ipw_plan(question: Question, centred: bool, declared: bool) -> Plan:
    """Return the plan: what is learned first, if anything is, and the weighted sums."""
    counted = question.estimand is not Estimand.ATE and not declared
    kinds: dict[str, Kind] = {}
    if question.mechanism == "gaussian":
        kinds = {"moments": Kind.VECTOR}
    shares = score_shares(question.mechanism, counted)
    if declared and not centred:
        return Plan.split(question.budget, shares, question.mechanism, kinds)
    learned = CENTRES if declared else FIT_SHARE
    rest = {name: share * (1 - learned) for name, share in shares.items()}
    kinds = {"nuisances": Kind.VECTOR} | kinds
    return Plan.split(question.budget, {"nuisances": learned} | rest, question.mechanism, kinds)


# Lengths of the two parts of the vector: their squares sum to one.
_FOR_WEIGHTS, FOR_CENTRES = Fraction(12, 13), Fraction(5, 13)
# Logits are computed in floating point; their range is widened by this much.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class IpwModels:
    """Released numbers only: weights of the propensity model (None where declared) and centres, in steps."""

    weights: Floats | None
    centres: tuple[float, float]

    @property
    def adjusted(self) -> bool:
        """Whether anything of the covariates is left in the scores."""
        return self.weights is not None and bool(self.weights[:-1].any())

    def score_range(self, features: UnitFeatures, clip: float) -> tuple[float, float]:
        """Return the range of scores after clipping: no row can have another one under these weights."""
        if self.weights is None:
            return clip, 1 - clip
        low, high = features.index_range(self.weights[:-1])
        bounds = (_logistic(low + self.weights[-1] - _SLACK), _logistic(high + self.weights[-1] + _SLACK))
        inside = [min(max(bound, clip), 1 - clip) for bound in bounds]
        return inside[0], inside[1]


@dataclass(frozen=True, slots=True)
class Fitting:
    """The public side of the fit: how many rows, which features, which penalty; None where declared."""

    rows: int
    features: UnitFeatures
    penalty: float

    @property
    def sensitivity(self) -> Fraction:
        """How far one record can move the weights."""
        columns, reach = self.features.columns + 1, self.features.squared_max_norm + 1
        return fit_sensitivity(self.rows, columns, reach, self.penalty)

    @property
    def longest(self) -> float:
        """The longest that fitted weights can be: the objective at its minimum is at most ln 2, its value at 0."""
        return sqrt(2 * log(2) / self.penalty)


def release_nuisances(gate: Gate, table: Table, design: IpwDesign) -> IpwModels:
    """Return the released weights and centres."""
    fitting, centres = design.fitting, (STEPS / 2, STEPS / 2)
    if fitting is None and not design.centred:
        return IpwModels(None, centres)
    for_weights, for_centres = _lengths(design)
    released = gate.release_vector("nuisances", nuisance_vector(table, design), Fraction(1))
    found, sd = released.floats(), sqrt(released.variance)
    if design.centred:
        scale = float(ARM_TOTALS / for_centres)
        centres = arm_centres(found[-3:] * scale, sd * scale, table.rows)
    if fitting is None:
        return IpwModels(None, centres)
    scale = float(fitting.sensitivity / for_weights)
    # Pulled towards zero by what is known of their noise.
    weights = shrunk(found[: fitting.features.columns + 1] * scale, sd * scale, fitting.longest)
    return IpwModels(weights, centres)


def nuisance_vector(table: Table, design: IpwDesign) -> list[Fraction]:
    """Return fitted weights and arms' totals; one record moves the whole by one at most."""
    for_weights, for_centres = _lengths(design)
    values: list[Fraction] = []
    fitting = design.fitting
    if fitting is not None:
        fitted = fit_propensity(fitting.features.values(table), table.treated, fitting.penalty).weights
        values += [Fraction(weight) * for_weights / fitting.sensitivity for weight in fitted]
    if design.centred:
        values += [total * for_centres / ARM_TOTALS for total in arm_totals(table)]
    return values


def _lengths(design: IpwDesign) -> tuple[Fraction, Fraction]:
    """Return how far one record may move the weights' and the totals' parts of the vector."""
    if design.fitting is None or not design.centred:
        return Fraction(1), Fraction(1)
    return _FOR_WEIGHTS, FOR_CENTRES


def arm_totals(table: Table) -> list[Fraction]:
    """Return (sum t y, sum (1-t) y, ARM_COUNT_FACTOR sum t), y mapped to [-1, 1]; exact."""
    doubled = 2 * table.outcome - STEPS
    first, treated = int(doubled[table.treated].sum()), int(np.count_nonzero(table.treated))
    second = int(doubled.sum()) - first
    return [Fraction(first, STEPS), Fraction(second, STEPS), treated * ARM_COUNT_FACTOR]


def arm_centres(totals: Floats, sd: float, rows: int) -> tuple[float, float]:
    """Return both arms' means in steps, from noisy totals; where noise is large, near the middle."""
    least = max(float(LEAST_SHARE) * rows, 1.0)
    count = min(max(float(totals[2]) / float(ARM_COUNT_FACTOR), least), max(rows - least, 1.0))
    centres = []
    for total, size in ((totals[0], count), (totals[1], rows - count)):
        # The factor size^2/(size^2 + sd^2) shrinks a mean that is mostly noise towards the middle.
        mean = min(max(float(total) * size / (size**2 + sd**2), -1.0), 1.0)
        centres.append(round((mean + 1) / 2 * STEPS))
    return float(centres[0]), float(centres[1])


def shrunk(weights: Floats, sd: float, longest: float) -> Floats:
    """Return the weights times what is likely to be signal (James and Stein's rule).

    Where the noise is longer than any fitted weights can be, nothing of the slopes is kept.
    """
    size = (len(weights) - 1) * sd**2
    slopes = max(0.0, 1 - size / max(float(weights[:-1] @ weights[:-1]), 1e-300))
    if size >= longest**2:
        slopes = 0.0
    intercept = max(0.0, 1 - sd**2 / max(float(weights[-1]) ** 2, 1e-300))
    return np.append(weights[:-1] * slopes, weights[-1] * intercept)


def _logistic(logit: float) -> float:
    return 1 / (1 + exp(-logit)) if logit > -700 else 0.0


# Inversely weighted outcomes on a grid: every row's contribution is bounded, and sums are exact.
#
# Outcomes are whole steps in [0, STEPS]. A contribution is +-h (y - c)/scale, h the row's weight and c the
# centre of its arm, clipped to [-1, 1] and truncated towards zero to whole parts of 2**-GRID_BITS.


STEPS = 1 << 24  # of the outcome's range, as tables hold it
_GRID = 1 << GRID_BITS


@dataclass(frozen=True, slots=True)
class Weighing:
    """What turns rows into contributions; all of it is public or released.

    Scores are clipped to [low, high]. `centres`: of the treated and of the controls, in steps. `estimand`:
    "ATE", "ATT" or "ATC".
    """

    estimand: str
    low: float
    high: float
    centres: tuple[float, float]

    @property
    def largest(self) -> tuple[float, float]:
        """The largest weight a treated row, and a control, can have."""
        if self.estimand == "ATE":
            return 1 / self.low, 1 / (1 - self.high)
        if self.estimand == "ATT":
            return 1.0, self.high / (1 - self.high)
        return (1 - self.low) / self.low, 1.0

    @property
    def scale(self) -> float:
        """The largest possible size of h (y - c), in steps."""
        reach = [max(c, STEPS - c) for c in self.centres]
        return max(h * r for h, r in zip(self.largest, reach, strict=True))

    def weights(self, scores: Floats, treated: NDArray[np.bool_]) -> Floats:
        """Return every row's weight h."""
        p = np.clip(scores, self.low, self.high)
        if self.estimand == "ATE":
            return np.where(treated, 1 / p, 1 / (1 - p))
        if self.estimand == "ATT":
            return np.where(treated, 1.0, p / (1 - p))
        return np.where(treated, (1 - p) / p, 1.0)

    def contributions(self, scores: Floats, treated: NDArray[np.bool_], outcome: Integers) -> Integers:
        """Return every row's contribution, in whole parts of 2**-GRID_BITS of the scale."""
        first, second = self.centres
        off = np.where(treated, outcome - first, second - outcome)
        part = self.weights(scores, treated) * off / self.scale
        # A NaN, from scores of huge weights, counts as 0: processors disagree on the integer of one.
        return np.trunc(np.clip(np.nan_to_num(part), -1.0, 1.0) * _GRID).astype(np.int64)
