"""The published private interval for the effect (Schroeder, Hartenstein and Feuerriegel 2025), as we read it.

A cross-fitted doubly robust estimate is released with Gaussian noise whose scale is the largest size of the estimated
influence function, times 5 sqrt(2 ln n ln(2/delta)) / (epsilon n); the variance of the scores likewise, and the
interval is widened by the noise. The paper's three steps are those; its exact constants were not available to us and
are taken from the same authors' form for conditional effects, which is after Avella-Medina.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, log, pi, sqrt
from pathlib import Path

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.special import expit

from counterveil.accounting import Ledger
from counterveil.data import OUTCOME_STEPS, Study, Sums, Table
from counterveil.data.features import UnitFeatures, feature_map, require_covariates
from counterveil.errors import CounterveilError, refusal
from counterveil.estimators.moments.adjustment_budget import MAX_GRAM_NOISE, Design, clip_sds
from counterveil.estimators.moments.nuisance_models import first_models
from counterveil.estimators.moments.scaling import scaling_of, standard_rows
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.numerics.denoising import Denoised, denoised
from counterveil.numerics.fold_learners import FoldNuisances, Predict
from counterveil.numerics.products import FeatureMap, Standard, projected
from counterveil.numerics.propensity import checked_tolerance, fit_propensity
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget, Estimand, Number, Proof, Unit, exact
from counterveil.privacy.caveats import Caveat, ClippedPropensities, Fact, FoldModels, MisspecifiedModels
from counterveil.published.asking import EffectForm, PublishedQuestion, release_scaled, unproved
from counterveil.published.cate import published_factor
from counterveil.published.matching import fit_sensitivity
from counterveil.published.weighting import denominator, score_shares, shrunk
from counterveil.results.answering import Facts, answer_request
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.folds.quiet_learners import models_of_fold, quietly
from counterveil.rows.moments.joint_gram import Scaling, SecondMoments, release_gram
from counterveil.rows.moments.sensitivity import LENGTH_SLACK
from counterveil.rows.moments.weighted_moments import (
    GRID_BITS,
    RowSums,
    WeightedMeans,
    contribution_sums,
    release_moments,
)
from counterveil.rows.records import Records, TableRecords
from counterveil.session import BaseSession, BitSource, Gate, Kind, Plan
from counterveil.session.session import ParallelPlan, in_parallel

PAGE = "published/robust_score.proof.md"
REMARK = (
    "the published claim is for large samples: the noise follows the influence function of an average at the fitted "
    "models. Rows that only the models see are not counted, although one of them can move everyone's score; the "
    "scale of the noise is computed from the rows and is itself not protected; constants are our reading of the paper"
)


@dataclass(frozen=True, slots=True)
class Influence:
    """The estimate and the variance of its scores, with the largest sizes of their influence functions."""

    effect: float
    variance: float
    largest: float
    largest_of_variance: float
    rows: int


def _printed_cross_fit(session: BaseSession, question: PublishedQuestion) -> Result:
    """Return the cross-fitted effect with noise by its influence function (Schroeder et al. 2025); asymptotic."""
    require_covariates(session.study, "cross_fit")
    plan = paper_plan(question)
    question.require_acceptance(Proof.ASYMPTOTIC, REMARK)
    halved(plan.budget)  # before it is charged

    def compute(gate: Gate) -> Facts:
        released = release_printed(gate, plan, session.table, influence(session.table, CLIP))
        (effect, effect_sd), (square, square_sd) = released
        rows = session.table.rows
        noise = plan.noise("effect", Fraction(effect_sd) * plan.amount("effect"))
        # The published variance is kept from falling below zero, and noise is never taken off it.
        variance = max(square, 0.0) / rows
        return Facts(
            estimate=effect,
            uncertainty=Uncertainty(noise, variance, variance),
            method="doubly robust score, cross-fitted, noise by the influence function, as published",
            not_covered=(
                Caveat.PRIVACY_ASYMPTOTIC,
                Caveat.ERRORS_BEYOND_PRODUCT,
                Caveat.CONFOUNDING,
                Caveat.NOISE_OF_VARIANCE,
                Caveat.CLAMPING,
            ),
            details={
                "adjusted": True,
                "rows": rows,
                "mechanism": "gaussian, scaled by the rows",
                "effect_noise_sd": effect_sd,
                "variance_noise_sd": square_sd,
            },
        )

    return unproved(session, question, plan, compute, PAGE, (Proof.ASYMPTOTIC, REMARK))


_CROSS_FIT = EffectForm("cross_fit", Unit.RECORD, None, _printed_cross_fit)


def cross_fit(
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
    """Estimate an average effect by cross-fitted doubly robust scores, as Schröder et al. (2025) print it.

    Gaussian noise in proportion to the largest influence function in the rows, on the estimate and on its
    variance; half of the budget each. The constants are our reading of the paper.

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
    estimand : {"ATE"}, default "ATE"
        Average effect on everyone.
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
    Claims (epsilon, delta)-DP for whole records; holds in large samples only. Rows that enter only the models
    are ignored, and the noise scale is computed from the rows. With 10,000 rows an audit finds more than
    twice the claimed epsilon of 1. Instead: `cross_fit_proved`, or ``cv.ate(method="doubly_robust")``.

    References
    ----------
    .. [1] Schröder, M., Hartenstein, J. and Feuerriegel, S. (2025). PrivATE: Differentially Private
       Confidence Intervals for Average Treatment Effects. arXiv:2505.21641.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=2000, covariates=3)
    >>> result = cv.published.cross_fit(
    ...     data.frame, data.study, epsilon=2, delta=1e-6, accept="unproved", noise=cv.SeededNoise(1)
    ... )
    >>> result.spent.epsilon >= 2
    True
    """
    return _CROSS_FIT(
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
    """Return the plan, half of the budget each; a pure budget or another estimand is refused."""
    if question.mechanism != "gaussian":
        raise refusal("CV-P432", budget=question.budget)
    if question.estimand is not Estimand.ATE:
        raise refusal("CV-P433", estimand=question.estimand.value)
    half = Fraction(1, 2)
    return Plan.split(question.budget, {"effect": half, "variance": half}, question.mechanism)


def influence(table: Table, clip: float) -> Influence:
    """Return the cross-fitted estimate without noise, and its influence function's largest size.

    That is the largest over the rows' covariates, both arms and both ends of the outcome's range.
    """
    unit = float(table.outcome_unit)
    half = unit * OUTCOME_STEPS / 2
    features, t = UnitFeatures.of(table.study), table.treated.astype(np.float64)
    y = np.asarray(unit * table.outcome - half, dtype=np.float64)
    parts = two_parts(table.rows, table.rows // 2)
    answers = np.empty((4, table.rows))
    for own, other in (parts, parts[::-1]):
        models = models_of_fold("ridge", features.values(table.take(other)), t[other], y[other])
        answers[:, own] = model_answers(models, features.values(table.take(own)), half, clip)
    first, second, r1, r0 = answers
    scores = first - second + t * r1 * (y - first) - (1 - t) * r0 * (y - second)
    effect = float(scores.mean())
    ends = [first - second + r1 * (end - first) for end in (-half, half)]
    ends += [first - second - r0 * (end - second) for end in (-half, half)]
    largest = max(float(np.abs(score - effect).max()) for score in ends)
    variance = float(((scores - effect) ** 2).mean())
    return Influence(effect, variance, largest, max(abs(largest**2 - variance), variance), table.rows)


def model_answers(models: FoldNuisances | None, z: Floats, half: float, clip: float) -> Floats:
    """Return one fold's m1, m0, 1/p and 1/(1-p) at every row, clipped; (4, rows)."""

    def asked(predict: Predict | None, low: float, high: float) -> Floats:
        values = None if predict is None else quietly(lambda: np.asarray(predict(z), np.float64))
        middle = (low + high) / 2
        if values is None or values.shape != (len(z),):
            return np.full(len(z), middle)
        return np.clip(np.nan_to_num(values, nan=middle), low, high)

    chosen = (models.treated, models.control, models.propensity) if models is not None else (None,) * 3
    first, second = asked(chosen[0], -half, half), asked(chosen[1], -half, half)
    p = asked(chosen[2], clip, 1 - clip)
    return np.stack([first, second, 1 / p, 1 / (1 - p)])


def halved(budget: Budget) -> Budget:
    """Return half of a budget; raises where that is too small a number."""
    return Budget(budget.epsilon / 2, budget.delta / 2)


def release_printed(gate: Gate, plan: Plan, table: Table, found: Influence) -> list[tuple[float, float]]:
    """Return effect and variance with noise that follows their influence functions, and the noise's deviations."""
    factor = published_factor(halved(plan.budget), max(found.rows, 2))
    width = table.study.outcome_bounds.width
    numbers = []
    for name, value, largest, least in (
        ("effect", found.effect, found.largest, width),
        ("variance", found.variance, found.largest_of_variance, width**2),
    ):
        bound = Fraction(factor * largest) * plan.amount(name)
        drawn = release_scaled(gate, name, Fraction(value), bound, least / found.rows)
        numbers.append((float(drawn), factor * largest))
    return numbers


# The doubly robust effect by cross-fitting, with private models: `published.cross_fit` as it can be proved.
#
# The rows are divided into two halves by their public index. Each half's models are released with noise and score the
# rows of the other half; the mean score of all rows is released. A record enters the models of its own half and the
# score of its own row, and nothing else: what the two halves' models cost is not added up.
#
# Lineage: augmented inverse probability weighting (Robins, Rotnitzky and Zhao 1994) with cross-fitting (Chernozhukov et
# al. 2018).


# Proof: robust_score.proof.md


# Fitted propensities are kept this far from 0 and 1.
CLIP = 0.1

PAGES = (
    "published/robust_score.proof.md",
    "rows/moments/penalised_fit.proof.md",
    "rows/moments/free_gram.proof.md",
    "rows/moments/record_moments.proof.md",
    "rows/histogram.proof.md",
    "session/parallel.proof.md",
)
_PURE_PAGES = ("mechanisms/ball.proof.md", "mechanisms/laplace.proof.md")


def not_covered(penalty: float, declared: float | None) -> tuple[Fact, ...]:
    """Return what the interval does not cover, the worst first."""
    if declared is not None:
        return Caveat.CLIPPED_FAR_SCORES, Caveat.CLAMPING
    return (
        MisspecifiedModels(penalty),
        Caveat.CONFOUNDING,
        ClippedPropensities(CLIP),
        Caveat.CLIPPED_FAR_SCORES,
        Caveat.CLAMPING,
        Caveat.COVERAGE_MEASURED,
    )


# How wrong the bias from the models' effect may be, as a part of it.
_BIAS_DOUBT = 0.2


@dataclass(frozen=True, slots=True)
class CrossFit:
    """What is known before a row is read; `half` describes the smaller half."""

    features: FeatureMap
    half: Design
    plan: ParallelPlan
    penalty: float
    declared: float | None


@dataclass(frozen=True, slots=True)
class Halves:
    """Released numbers of the scoring: the sums, where scores were clipped, and the models of both halves."""

    weighted: WeightedMeans
    clip: float  # in units of half the outcome's range
    halves: tuple[HalfModels, HalfModels]
    sizes: tuple[int, int]  # of the halves that these models scored
    effect_bias: float


def _proved_cross_fit(session: BaseSession, question: Question) -> Result:
    """Return the cross-fitted effect with private models, as proved; refused where the models would be noise."""
    table = session.table
    design = design_of(session.study, table.rows, question)

    def compute(gate: Gate) -> Facts:
        scored = release(gate, table, design, question.estimand)
        low, high = session.study.outcome_range
        estimate, uncertainty = effect_of(scored, float(high - low) / 2, question.estimand)
        return Facts(
            estimate=estimate,
            uncertainty=uncertainty,
            method="doubly robust score, cross-fitted with private models",
            not_covered=not_covered(design.penalty, design.declared),
            assumptions=None if design.declared is not None else FoldModels.OUTCOME_OR_LOGIT,
            details={
                "adjusted": True,
                "mechanism": design.half.drawn,
                "score_clip": scored.clip,
                "rows": scored.weighted.rows,
                "se_models": sqrt(uncertainty.extra),
            },
        )

    return answer_request(
        Result,
        session,
        question,
        design.plan,
        compute,
        pages=PAGES if question.mechanism == "gaussian" else (*PAGES, *_PURE_PAGES),
    )


_CROSS_FIT_PROVED = EffectForm("cross_fit_proved", Unit.RECORD, None, _proved_cross_fit, printed=False)


def cross_fit_proved(
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
    """Estimate an average effect by cross-fitted doubly robust scores, with a proved guarantee.

    The propensity and outcome models of each half of the rows are released with noise; everyone's score under
    the models of the other half is clipped, and sums of scores are released. The costs of the halves do not
    add up.

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
    Protects whole records; (epsilon, delta)-DP. The score for the effect on everyone is

        m1 - m0 + T (Y - m1) / p - (1 - T) (Y - m0) / (1 - p),

    with released outcome models m1, m0 and propensity p of the other half. Proof:
    ``published/robust_score.proof.md``. Instead: ``cv.ate(method="doubly_robust")``.

    References
    ----------
    .. [1] Schröder, M., Hartenstein, J. and Feuerriegel, S. (2025). PrivATE: Differentially Private
       Confidence Intervals for Average Treatment Effects. arXiv:2505.21641.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=8000, covariates=3)
    >>> result = cv.published.cross_fit_proved(
    ...     data.frame, data.study, epsilon=2, delta=1e-6, noise=cv.SeededNoise(1)
    ... )
    >>> result.details["rows"]
    8000
    """
    return _CROSS_FIT_PROVED(
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


def design_of(study: Study, rows: int, question: Question) -> CrossFit:
    """Return the public design of a question, or refuse it; no row is looked at."""
    require_covariates(study, "cross_fit")
    declared = None if study.treated_share is None else float(study.treated_share)
    plan = cross_fit_plan(question, declared is not None)
    features = feature_map(study, 1)
    half = Design(max(rows // 2, 1), features.size, question.budget, question.mechanism)
    if not affordable(half, plan):
        raise _unaffordable(half, plan, rows)
    penalty = 1.0 if declared is not None else chosen_penalty(half, plan)
    for size in (rows // 2, rows - rows // 2):
        # Asked here, where nothing is spent yet; the fit itself asks again and cannot fail.
        checked_tolerance(size, features.size + 1, 2, penalty, None)
    return CrossFit(features, half, plan, penalty, declared)


def release(gate: Gate, table: Table, design: CrossFit, estimand: Estimand) -> Halves:
    """Return the released numbers: centre and lengths of all rows, both halves' models, the score of all rows."""
    rows, parts = table.rows, two_parts(table.rows, table.rows // 2)
    # Tables keep features: those of all rows and of a half go with a table of their own.
    whole = replace(design.half, rows=rows)
    centre, standard = standard_rows(gate, Records(table.take(slice(None)), design.features), whole)
    scaling = scaling_of(centre, 1 + standard.squared_length, TREATMENT, OUTCOME)
    noise = noise_of_gram(design.half, design.plan)
    wide = min(
        1 + abs(scaling.mean),
        (1.0 if noise >= 0.3 else 1.4 if noise >= 0.05 else 1.8) * scaling.outcome_bound,
    )
    scaling = replace(scaling, outcome_bound=wide)
    halves = []
    for place in (1, 2):
        part = table.take(parts[place - 1])
        propensity = release_propensity(gate, f"weights {place}", part, standard, design)
        second = release_gram(gate, Records(part, design.features), standard, scaling, f"gram {place}")
        halves.append(half_models(second, scaling, propensity, estimand.value, CLIP))
        del part
    clip = _clip(design, halves, estimand)
    score = estimand.value, clip
    first_sums, second_sums = (
        Records(table.take(own), design.features).run(score_sums, standard, other.models, *score)[0]
        for own, other in zip(parts, reversed(halves), strict=True)
    )
    total, squares, treated = first_sums + second_sums
    sizes = (len(parts[1]), len(parts[0]))
    effect_bias = sum(size * half.effect_bias for size, half in zip(sizes, halves, strict=True)) / rows
    low, high = table.study.outcome_range
    unit = Fraction(clip / (1 - effect_bias)) * (high - low) / 2
    found = RowSums(total, squares, treated, rows)
    weighted = release_moments(gate, design.plan, found, unit, denominator(design.declared, estimand))
    return Halves(weighted, clip, (halves[0], halves[1]), sizes, effect_bias)


def _clip(design: CrossFit, halves: list[HalfModels], estimand: Estimand) -> float:
    """Return where scores are clipped, from released numbers; never beyond what a score can be."""
    # A declared propensity is used as it is, on either side of the clip of fitted ones.
    nearest = exact(CLIP if design.declared is None else design.declared, "clip")
    largest = largest_score(Fraction(2), min(nearest, 1 - nearest), estimand.value)
    most = float(largest) + max(abs(half.models.effect) for half in halves)
    rows = 2 * design.half.rows
    noise = replace(design.half, rows=rows).sd(1.0, 1, 2.0) * sqrt(rows)
    reach = float(clip_sds(noise))
    return min(max(max(reach * half.sd, half.least_clip) for half in halves), most)


def effect_of(scored: Halves, unit: float, estimand: Estimand) -> tuple[float, Uncertainty]:
    """Return the effect and its uncertainty, in units of the outcome; `unit` is half its range.

    The mean score has the models' effect in it, as far as they are wrong: that part is taken out again.
    """
    weighted, halves, rows = scored.weighted, scored.halves, scored.weighted.rows
    pairs = [(size / rows, half) for size, half in zip(scored.sizes, halves, strict=True)]
    left = 1 - scored.effect_bias
    own = sum(part * (1 - half.effect_bias) * half.models.effect for part, half in pairs) / left
    factor = scored.clip * unit / weighted.size / left
    beyond = factor * rows * weighted.mean
    effect = own + beyond / unit
    # The squared mean holds the noise's variance once too often.
    mean_square = weighted.mean**2 - weighted.effect_noise.variance / (factor * rows) ** 2
    variance, cap = factor**2 * rows * (weighted.square - mean_square), factor**2 * rows
    product = sum(
        part**2 * (half.variance + (_BIAS_DOUBT * half.effect_bias * (effect - half.models.effect)) ** 2)
        for part, half in pairs
    )
    if estimand is not Estimand.ATE:
        # Both halves' effects are mixed by their sizes, while the arm's rows are split a little unevenly.
        gap = halves[0].models.effect - halves[1].models.effect
        product += gap**2 * pairs[0][0] * pairs[1][0] / max(weighted.size, 1.0)
    extra = product * (unit / left) ** 2 + (beyond / weighted.size) ** 2 * weighted.count_variance
    bias = sum(part * half.bias for part, half in pairs) * unit / left
    known = Uncertainty(weighted.effect_noise, variance, cap, weighted.variance_noise, extra, bias)
    return effect * unit, known


def _unaffordable(half: Design, plan: ParallelPlan, rows: int) -> CounterveilError:
    wanted = rows
    while not affordable(replace(half, rows=wanted // 2), plan):
        wanted = wanted + max(wanted // 20, 1)
    return refusal("CV-P431", wanted=wanted, features=half.features, budget=half.budget, rows=rows)


def largest_score(width: Fraction, clip: Fraction, estimand: str) -> Fraction:
    """Return the largest size of a row's score: width/clip for ATE, width (1-clip)/clip for ATT and ATC.

    `width` is that of the outcome's range, `clip` the distance that propensities keep from 0 and 1.
    """
    return width / clip * (1 if estimand == "ATE" else 1 - clip)


# The doubly robust (AIPW) score of a row under given models, and its exact sums.
#
# All parameters are public or were released before; a row's score depends on that row alone. Outcomes and predictions
# are in units of half the outcome's range, in [-1, 1].


@dataclass(frozen=True, slots=True)
class ScoreModels:
    """A linear outcome model on u = (1, z) with one effect, and a logistic propensity or a known one.

    The outcome of arm t is predicted as mean + u.outcome + effect (t - share), kept inside [-1, 1]. `slopes` are
    the logit's on z, `intercept` its constant; where `known` is a number, it is everyone's propensity.
    Propensities are kept `least` away from 0 and 1.
    """

    mean: float
    share: float
    outcome: Floats
    effect: float
    slopes: Floats
    intercept: float
    known: float | None
    least: float

    def predictions(self, u: Floats) -> tuple[Floats, Floats]:
        """Return the predicted outcomes with and without treatment, (rows,) each."""
        line = self.mean + projected(u, self.outcome)
        treated = np.clip(line + self.effect * (1 - self.share), -1.0, 1.0)
        return treated, np.clip(line - self.effect * self.share, -1.0, 1.0)

    def propensity(self, u: Floats) -> Floats:
        """Return the propensity of every row, inside [least, 1 - least]; a known one as it is."""
        if self.known is not None:
            return np.full(len(u), self.known)
        e: Floats = expit(projected(u[:, 1:], self.slopes) + self.intercept)
        return np.clip(e, self.least, 1 - self.least)

    def score(self, estimand: str, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return every row's score; for ATT and ATC it is to be divided by the part of rows in that arm."""
        first, second = self.predictions(u)
        e = self.propensity(u)
        if estimand == "ATE":
            return np.asarray(first - second + t * (y - first) / e - (1 - t) * (y - second) / (1 - e))
        if estimand == "ATT":
            return np.asarray((y - second) * np.where(t == 1, 1.0, -e / (1 - e)))
        return np.asarray((y - first) * np.where(t == 1, (1 - e) / e, -1.0))

    def centred(self, estimand: str, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return the score less the model's own effect, where the row counts for it."""
        counts = np.ones_like(t) if estimand == "ATE" else t if estimand == "ATT" else 1 - t
        return np.asarray(self.score(estimand, u, t, y) - self.effect * counts)


def whole_parts(values: Floats, bound: float) -> NDArray[np.int64]:
    """Return values in whole parts of 2**-GRID_BITS of a bound, clipped to it and truncated towards zero.

    A NaN, which models with noise of 1e300 can give, counts as 0: processors disagree on the integer of one.
    """
    part: Floats = np.clip(np.nan_to_num(values / bound), -1.0, 1.0)
    return np.trunc(np.ldexp(part, GRID_BITS)).astype(np.int64)


# Upper estimate of a squared length: this many standard deviations.
_UPPER = 1.3
# The product's variance is taken this much larger: its pieces come from linear and normal approximations.
_MARGIN = 1.5
# Parts of the bound on the shared error of the second moments that alignment and lengths have.
_ALIGNED, _LENGTHS = 0.4, 0.6
# Scores vary more than the mean weight says, where propensities vary.
_UNEVEN = 1.3
_LEAST_SD, _LARGEST_SD = 1e-4, 4.0
# Logits of a standard deviation beyond this would leave hardly anyone in doubt.
_LARGEST_LOGIT_VARIANCE = 9.0
# Beyond this, the effect is read off the outcome model rather than off the score.
_LARGEST_EFFECT_BIAS = 0.8
_NODES, _MASS = hermegauss(24)
_MASS = _MASS / _MASS.sum()


@dataclass(frozen=True, slots=True)
class HalfLogit:
    """A released logistic model on standardised rows, or a declared share."""

    slopes: Floats
    intercept: float
    known: float | None

    def averages(self, gram: Floats) -> tuple[float, float]:
        """Return the mean propensity and the mean of p(1-p), for logits that are about normal."""
        if self.known is not None:
            return self.known, self.known * (1 - self.known)
        p = expit(self.intercept + sqrt(self.variance(gram)) * _NODES)
        return float(_MASS @ p), float(_MASS @ (p * (1 - p)))

    def variance(self, gram: Floats) -> float:
        """Return the variance of the logits."""
        return float(self.slopes @ gram[1:, 1:] @ self.slopes)


@dataclass(frozen=True, slots=True)
class HalfModels:
    """The models of one half, and what their errors leave in the mean score of the other half.

    `variance` is that of the product of both models' errors, `bias` a bound of what the noise of the second moments
    does to it on average; both are in units of half the outcome's range. An error of the models' effect moves
    the mean score by `effect_bias` times itself. `sd` is about the score's; nearer than `least_clip` it is not clipped.
    """

    models: ScoreModels
    variance: float
    bias: float
    effect_bias: float
    sd: float
    least_clip: float


def half_models(
    second: SecondMoments, scaling: Scaling, propensity: HalfLogit, estimand: str, least: float
) -> HalfModels:
    """Return the models of a half from its second moments and its propensity model."""
    assert second.matrix is not None
    gram = denoised(second.matrix, second.entry_sd)
    first = first_models(second, scaling, gram)
    effect = first.models.effect
    outcome = gram.inverse @ (second.with_outcome - effect * second.with_treatment)
    slopes, intercept = propensity.slopes, propensity.intercept
    models = ScoreModels(
        scaling.mean, scaling.share, outcome, effect, slopes, intercept, propensity.known, least
    )
    squared = max(first.beta, first.product)
    noise = second.outcome_sd**2 + effect**2 * second.treatment_sd**2 + gram.error * squared
    left = first.residual_variance + noise * gram.trace
    sd = sqrt(_UNEVEN * left * _size(estimand, *propensity.averages(gram.matrix)))
    sd = float(np.clip(sd, _LEAST_SD, _LARGEST_SD))
    least_clip = _UNEVEN * first.least_clip / min(scaling.share, 1 - scaling.share)
    if propensity.known is not None:
        return HalfModels(models, 0.0, 0.0, 0.0, sd, least_clip)
    wrong, size, effect_bias = _imbalance(second, scaling, propensity, gram, estimand, least)
    longest = sqrt(size * squared)
    aligned = min(abs(float(wrong @ outcome)), longest)
    shared = (gram.error * gram.trace + gram.raised) * (_ALIGNED * aligned + _LENGTHS * longest)
    return HalfModels(models, _MARGIN * noise * size, shared, effect_bias, sd, least_clip)


def _imbalance(
    second: SecondMoments,
    scaling: Scaling,
    propensity: HalfLogit,
    gram: Denoised,
    estimand: str,
    least: float,
) -> tuple[Floats, float, float]:
    """Return coefficients on u of what weighting leaves unbalanced, an upper estimate of their squared length,
    and how far an error of the models' effect moves the mean score, as a part of it.

    With e the propensity and p the model's, outcomes that are wrong by d(u) move the mean score by the mean of
    d f, f = (e - p)/(p(1-p)) for ATE. With u about normal its projection on u is a b + c w: b and w are the true
    logit's slopes and the model's, a and c the means of f's derivatives in the two logits (Stein's identity).
    The true slopes are those of a linear fit of the treatment, divided by the mean of e(1-e). An error in the effect
    moves the outcome's coefficients by itself times that linear fit, the other way.
    """
    matrix = gram.matrix
    linear = gram.inverse @ second.with_treatment
    explained = float(second.with_treatment @ linear) - second.treatment_sd**2 * gram.trace
    share = float(np.clip(scaling.share + linear[0], 0.05, 0.95))
    slope, variance, intercept = _true_logit(max(explained, 0.0), share)
    own = propensity.variance(matrix)
    both = float(second.with_treatment[1:] @ propensity.slopes) / slope
    both = float(np.clip(both, -sqrt(own * variance), sqrt(own * variance)))
    means = _derivatives((intercept, variance), (propensity.intercept, own), both, share, estimand, least)
    f, by_true, by_model, first, second_arm = means
    wrong = np.append(f, by_true * linear[1:] / slope + by_model * propensity.slopes)
    noise_variance = (by_true / slope * second.treatment_sd) ** 2 * gram.squares
    size = max(float(wrong @ wrong) - noise_variance, 0.0)
    size += _UPPER * sqrt(
        2 * noise_variance * noise_variance / len(wrong) + 4 * noise_variance * size / len(wrong)
    )
    effect_bias = slope * (by_true * variance + by_model * both)
    effect_bias += scaling.share * second_arm - (1 - scaling.share) * first
    return wrong, size, float(np.clip(effect_bias, 0.0, _LARGEST_EFFECT_BIAS))


def _true_logit(explained: float, share: float) -> tuple[float, float, float]:
    """Return the mean of e(1-e), the logit's variance and its mean, from the variance of a linear fit."""
    slope, variance, middle = share * (1 - share), 0.0, log(share / (1 - share))
    for _ in range(30):
        variance = min(explained / slope**2, _LARGEST_LOGIT_VARIANCE)
        mean = middle * sqrt(1 + pi * variance / 8)
        e = expit(mean + sqrt(variance) * _NODES)
        slope = (slope + max(float(_MASS @ (e * (1 - e))), 0.02)) / 2
    return slope, variance, mean


def _derivatives(
    true: tuple[float, float],
    model: tuple[float, float],
    both: float,
    share: float,
    estimand: str,
    least: float,
) -> tuple[float, float, float, float, float]:
    """Return the means of f and of its derivatives in the true logit and in the model's, both normal.

    The last two are the means of what an outcome model's error on the treated and on the untreated is weighted by.
    """
    (mean, variance), (own_mean, own) = true, model
    first, second = np.meshgrid(_NODES, _NODES, indexing="ij")
    weight = np.outer(_MASS, _MASS)
    logit = own_mean + sqrt(own) * first
    part = both / sqrt(own) if own > 0 else 0.0
    e = expit(mean + part * first + sqrt(max(variance - part**2, 0.0)) * second)
    free = expit(logit)
    p = np.clip(free, least, 1 - least)
    inside = free == p
    if estimand == "ATE":
        f, by_true = (e - p) / (p * (1 - p)), e * (1 - e) / (p * (1 - p))
        by_model = -1 - (e - p) * (1 - 2 * p) / (p * (1 - p))
        arms = (e - p) / p, (e - p) / (1 - p)
    elif estimand == "ATT":
        f, by_true = (e - p) / (1 - p) / share, e * (1 - e) / (1 - p) / share
        by_model = -(1 - e) * p / (1 - p) / share
        arms = np.zeros_like(f), f
    else:
        f, by_true = (e - p) / p / (1 - share), e * (1 - e) / p / (1 - share)
        by_model = -e * (1 - p) / p / (1 - share)
        arms = f, np.zeros_like(f)
    means = [float((weight * each).sum()) for each in (f, by_true, by_model * inside, *arms)]
    return means[0], means[1], means[2], means[3], means[4]


def _size(estimand: str, mean: float, mixed: float) -> float:
    """Return the mean square of a score beside that of a residual; `mixed` is the mean of p(1-p)."""
    if estimand == "ATE":
        return 1 / max(mixed, 0.02)
    odds = mean / max(1 - mean, 0.02)
    return odds if estimand == "ATT" else 1 / max(odds, 0.02)


# Squared lengths of treatment and outcome beside a row's in the second moments.
TREATMENT, OUTCOME = 0.25, 1.0
# Shares of the budget by release, chosen on other seeds than those reported; each record pays all of them once.
_FIRST = {"gaussian": (Fraction(6, 100), Fraction(2, 100)), "pure": (Fraction(12, 100), Fraction(5, 100))}
_REST = {"weights": Fraction(25, 100), "gram": Fraction(65, 100), "score": Fraction(10, 100)}
# The penalty at which the noise of a logit has about this standard deviation.
_LOGIT_NOISE = 0.5
_LEAST_PENALTY, _MOST_PENALTY = 1e-5, 0.5
# Squared lengths of standardised rows, as a multiple of their number of features.
_LENGTH = 1.5


def cross_fit_plan(question: Question, declared: bool) -> ParallelPlan:
    """Return the plan: what is released of one half costs nothing beside what is released of the other.

    Where the propensity is `declared`, no model of it is fitted.
    """
    counted = question.estimand is not Estimand.ATE and not declared
    shares = _shares(question.mechanism, declared, counted)
    kinds = {"centre": Kind.VECTOR, "norms": Kind.VECTOR, "weights": Kind.VECTOR, "gram": Kind.VECTOR}
    if question.mechanism == "gaussian":
        kinds["moments"] = Kind.VECTOR
    else:
        kinds["norms"] = Kind.CELLS
    groups = {name: [name] for name in shares}
    groups |= {name: [f"{name} {half}" for half in (1, 2)] for name in ("weights", "gram") if name in shares}
    return in_parallel(Plan.split(question.budget, shares, question.mechanism, kinds), groups)


def _shares(mechanism: str, declared: bool, counted: bool) -> dict[str, Fraction]:
    centre, norms = _FIRST["gaussian" if mechanism == "gaussian" else "pure"]
    left = 1 - centre - norms
    rest = {name: share for name, share in _REST.items() if name != "weights" or not declared}
    total = sum(rest.values(), Fraction(0))
    shares = {"centre": centre, "norms": norms}
    shares |= {name: left * share / total for name, share in rest.items()}
    score = shares.pop("score")
    return shares | {name: score * part for name, part in score_shares(mechanism, counted).items()}


def noise_of_gram(design: Design, plan: Plan) -> float:
    """Return the operator norm of the noise of a half's second moments; `design` has the rows of a half."""
    reach = (1 + _LENGTH * design.features) * (1 + TREATMENT + OUTCOME)
    share = plan.parts["gram"]
    return 2 * sqrt(design.features + 1) * float(design.gram_noise(share, reach))


def affordable(design: Design, plan: Plan) -> bool:
    """Whether the public numbers afford models of both halves."""
    return noise_of_gram(design, plan) <= MAX_GRAM_NOISE["pure" if design.pure else "gaussian"]


def chosen_penalty(design: Design, plan: Plan) -> float:
    """Return the penalty that balances the noise of the weights against what it takes off the model.

    Rows are no longer than sqrt(2), and the weights move by 2 sqrt(2)/(rows penalty): a logit by 4/(rows penalty).
    """
    sd = float(design.sd(plan.parts["weights"], design.features + 1, 4.0))
    return float(np.clip(sd / _LOGIT_NOISE, _LEAST_PENALTY, _MOST_PENALTY))


def release_propensity(gate: Gate, name: str, own: Table, standard: Standard, design: CrossFit) -> HalfLogit:
    """Return the released propensity model of a half; none is fitted where it is declared."""
    rows, features, penalty = own.rows, design.features.size, design.penalty
    if design.declared is not None:
        return HalfLogit(np.zeros(features), 0.0, design.declared)
    sensitivity = fit_sensitivity(rows, features + 1, 2 * (1 + LENGTH_SLACK), penalty)
    # Rows, divided by the longest length, have length 1 at most beside the constant, but for rounding.
    blocks = list(TableRecords(own, design.features).models(standard))
    z = np.concatenate([u[:, 1:] for u, _, _ in blocks])
    z /= sqrt(standard.squared_length)
    fitted = fit_propensity(z, own.treated, penalty).weights
    released = gate.release_vector(name, [Fraction(weight) for weight in fitted], sensitivity)
    # The slopes are pulled towards zero by what is known of their noise.
    weights = shrunk(released.floats(), sqrt(released.variance), inf)
    return HalfLogit(weights[:-1] / sqrt(standard.squared_length), float(weights[-1]), None)


def score_sums(
    records: TableRecords, standard: Standard, models: ScoreModels, estimand: str, clip: float
) -> Sums:
    """Return the sums of scores less the models' effect and of their squares, and the number treated.

    Scores are in whole parts of 2**-GRID_BITS of `clip`.
    """
    parts = [whole_parts(models.centred(estimand, u, t, y), clip) for u, t, y in records.models(standard)]
    found = contribution_sums(np.concatenate(parts), records.table.treated)
    return (np.array([found.total, found.squares, found.treated], dtype=object),)
