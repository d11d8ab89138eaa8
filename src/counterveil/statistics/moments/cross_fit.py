"""The doubly robust effect by cross-fitting, with private models; everything about a person is private.

The rows are divided into two halves by their public index. Each half's models are released with noise and score the
rows of the other half; the mean score of all rows is released. A record enters the models of its own half and the
score of its own row, and nothing else: what the two halves' models cost is not added up.

Lineage: augmented inverse probability weighting (Robins, Rotnitzky and Zhao 1994) with cross-fitting (Chernozhukov et
al. 2018).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

from counterveil.data import PlacedCarrier, Study
from counterveil.data.features import feature_map, require_covariates
from counterveil.data.table import two_parts_by_place
from counterveil.errors import ParameterError
from counterveil.inference import Uncertainty
from counterveil.numerics.newton import checked_tolerance
from counterveil.numerics.products import FeatureMap
from counterveil.privacy import Estimand, exact
from counterveil.results.method_words import CROSS_FITTED
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Session
from counterveil.session.plan import ParallelPlan
from counterveil.settings import CrossFit as CrossFitSettings
from counterveil.statistics.moments.cross_fit_models import (
    OUTCOME,
    TREATMENT,
    HalfModels,
    affordable,
    chosen_penalty,
    cross_fit_plan,
    half_models,
    outcome_bound_factor,
)
from counterveil.statistics.moments.cross_fit_passes import Fitting, release_propensity, score_sums
from counterveil.statistics.moments.doubly_robust_models import scaling_of
from counterveil.statistics.moments.doubly_robust_plan import Design, clip_reach
from counterveil.statistics.moments.doubly_robust_releases import (
    release_gram,
)
from counterveil.statistics.moments.doubly_robust_run import standard_rows
from counterveil.statistics.moments.ipw_nuisances import Weighted, release_moments
from counterveil.statistics.moments.kernels.scores import Moments
from counterveil.statistics.moments.records import Records
from counterveil.statistics.moments.sensitivity import RobustScore

# What the results of cross-fitting say in words.


PAGES = (
    "statistics/moments/robust_score.proof.md",
    "statistics/moments/penalised_fit.proof.md",
    "statistics/moments/free_gram.proof.md",
    "statistics/moments/record_moments.proof.md",
    "statistics/histogram.proof.md",
    "session/parallel.proof.md",
)
_PURE_PAGES = ("mechanisms/ball.proof.md", "mechanisms/laplace.proof.md")


def pages(mechanism: str) -> tuple[str, ...]:
    """Return the pages that prove the guarantee, beside that of the mechanism itself."""
    return PAGES if mechanism == "gaussian" else (*PAGES, *_PURE_PAGES)


def releases(plan: ParallelPlan, declared: float | None) -> tuple[tuple[str, str], ...]:
    """Return what was released, in words."""
    said = [
        ("means and mean squares of all columns, lengths of rows", "all rows"),
        ("second moments of covariates, treatment and outcome", "each half"),
    ]
    if declared is None:
        said.append(("weights of the propensity model", "each half"))
    said.append(("mean score and its squares", f"all rows; parts of the budget: {plan.shares}"))
    return tuple(said)


def not_covered(settings: CrossFitSettings, penalty: float, declared: float | None) -> tuple[str, ...]:
    """Return what the interval does not cover, the worst first."""
    if declared is not None:
        return (
            "clipping of scores far beyond their predicted standard deviation",
            "clamping of outcomes to the declared range",
        )
    return (
        "misspecified models: outcomes that are not linear in the covariates with one effect, where the propensity "
        f"model, penalised ({penalty:.3g}) and noisy, is wrong as well",
        "CONFOUNDING by anything that is not among the covariates",
        f"propensities outside [{settings.clip:.3g}, {1 - settings.clip:.3g}], which are clipped, and scores far "
        "beyond their predicted standard deviation",
        "clamping of outcomes to the declared range; the interval is a large-sample one whose coverage was "
        "measured, not proved",
    )


def details(
    half: Design, penalty: float, declared: float | None, clip: float, share: float, kept: float
) -> dict[str, float | str]:
    """Return single figures; all of them are public or released."""
    found: dict[str, float | str] = {"adjusted": True, "features": half.features, "mechanism": half.drawn}
    found["share_treated"] = share
    found["score_clip"] = clip
    if declared is not None:
        return found | {"declared_propensity": declared}
    return found | {"penalty": penalty, "slope_shrinkage": kept}


# How wrong the bias from the models' effect may be, as a part of it.
_BIAS_DOUBT = 0.2


@dataclass(frozen=True, slots=True)
class CrossFit:
    """What is known before a row is read; `half` describes the smaller half."""

    settings: CrossFitSettings
    features: FeatureMap
    half: Design
    plan: ParallelPlan
    penalty: float
    declared: float | None


@dataclass(frozen=True, slots=True)
class Scored:
    """Released numbers of the scoring: the sums, where scores were clipped, and the models of both halves."""

    weighted: Weighted
    clip: float  # in units of half the outcome's range
    halves: tuple[HalfModels, HalfModels]
    sizes: tuple[int, int]  # of the halves that these models scored
    effect_bias: float
    kept: float
    share: float


def cross_fit(session: Session, question: Question) -> Result:
    """Return the cross-fitted effect, or refuse where the models would be noise."""
    source = session.placed
    design = design_of(session.study, source.rows, question)

    def compute(gate: Gate) -> dict[str, object]:
        scored = release(gate, source, design, question.estimand)
        return _result(session, question, design, scored).stored()

    return Result.from_dict(session.run(question.request(design.plan, session.study), compute))


def design_of(study: Study, rows: int, question: Question) -> CrossFit:
    """Return the public design of a question, or refuse it; no row is looked at."""
    require_covariates(study, "cross_fit")
    settings = question.settings or CrossFitSettings()
    declared = None if study.treated_share is None else float(study.treated_share)
    plan = cross_fit_plan(question, declared is not None)
    features = feature_map(study, 1)
    half = Design(max(rows // 2, 1), features.size, question.budget, question.mechanism)
    if not affordable(half, plan):
        raise _unaffordable(half, plan, rows)
    penalty = settings.penalty
    if penalty is None:
        penalty = 1.0 if declared is not None else chosen_penalty(half, plan)
    for size in (rows // 2, rows - rows // 2):
        # Asked here, where nothing is spent yet; the fit itself asks again and cannot fail.
        checked_tolerance(size, features.size + 1, 2, penalty, None)
    return CrossFit(settings, features, half, plan, penalty, declared)


def release(gate: Gate, source: PlacedCarrier, design: CrossFit, estimand: Estimand) -> Scored:
    """Return the released numbers: centre and lengths of all rows, both halves' models, the score of all rows."""
    rows = source.rows
    parts = two_parts_by_place(source, rows // 2)
    everyone = Records(source, design.features)
    centre, standard = standard_rows(gate, everyone, replace(design.half, rows=rows), None)
    scaling = scaling_of(centre, 1 + standard.squared_length, TREATMENT, OUTCOME)
    wide = min(1 + abs(scaling.mean), outcome_bound_factor(design.half, design.plan) * scaling.outcome_bound)
    scaling = replace(scaling, outcome_bound=wide)
    fitting = Fitting(design.penalty, design.settings.shrink, design.declared)
    halves, kept = [], []
    for place, part in enumerate(parts, 1):
        own = Records(part, design.features)
        propensity = release_propensity(gate, f"weights {place}", own, standard, fitting)
        second = release_gram(gate, own, standard, scaling, f"gram {place}")
        halves.append(half_models(second, scaling, propensity, estimand.value, design.settings.clip))
        kept.append(propensity.kept)
    clip = _clip(design, halves, estimand)
    first_sums, second_sums = (
        Records(part, design.features).run(score_sums, standard, other.models, estimand.value, clip)[0]
        for part, other in zip(parts, reversed(halves), strict=True)
    )
    total, squares, treated = first_sums + second_sums
    sizes = (parts[1].rows, parts[0].rows)
    effect_bias = sum(size * half.effect_bias for size, half in zip(sizes, halves, strict=True)) / rows
    low, high = source.study.outcome_range
    unit = Fraction(clip / (1 - effect_bias)) * (high - low) / 2
    found = Moments(total, squares, treated, rows)
    weighted = release_moments(gate, design.plan, found, unit, _denominator(design, estimand))
    return Scored(weighted, clip, (halves[0], halves[1]), sizes, effect_bias, sum(kept) / 2, scaling.share)


def _clip(design: CrossFit, halves: list[HalfModels], estimand: Estimand) -> float:
    """Return where scores are clipped, from released numbers; never beyond what a score can be."""
    # A declared propensity is used as it is, on either side of the clip of fitted ones.
    nearest = exact(design.settings.clip if design.declared is None else design.declared, "clip")
    largest = RobustScore(Fraction(2), min(nearest, 1 - nearest)).largest(estimand.value)
    most = float(largest) + max(abs(half.models.effect) for half in halves)
    reach = design.settings.reach
    if reach is None:
        rows = 2 * design.half.rows
        noise = replace(design.half, rows=rows).sd(1.0, 1, 2.0) * sqrt(rows)
        reach = float(clip_reach(noise))
    if reach == "bound":
        return most
    return min(max(max(float(reach) * half.sd, half.least_clip) for half in halves), most)


def _denominator(design: CrossFit, estimand: Estimand) -> float | Estimand:
    """Return by what part of the rows the sum is divided; the estimand where that has to be released."""
    if estimand is Estimand.ATE:
        return 1.0
    if design.declared is None:
        return estimand
    return design.declared if estimand is Estimand.ATT else 1 - design.declared


def effect_of(scored: Scored, unit: float, estimand: Estimand) -> tuple[float, Uncertainty]:
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


def _result(session: Session, question: Question, design: CrossFit, scored: Scored) -> Result:
    study = session.study
    low, high = study.outcome_range
    estimate, uncertainty = effect_of(scored, float(high - low) / 2, question.estimand)
    return Result(
        estimate=estimate,
        uncertainty=uncertainty,
        guarantee=question.guarantee(session, pages(question.mechanism)),
        method="doubly robust score, cross-fitted with private models",
        **question.effect_terms(study),
        releases=releases(design.plan, design.declared),
        not_covered=not_covered(design.settings, design.penalty, design.declared),
        assumes=None if design.declared is not None else CROSS_FITTED,
        details=details(design.half, design.penalty, design.declared, scored.clip, scored.share, scored.kept)
        | {"rows": scored.weighted.rows, "se_models": sqrt(uncertainty.extra)},
    )


def _unaffordable(half: Design, plan: ParallelPlan, rows: int) -> ParameterError:
    wanted = rows
    while not affordable(replace(half, rows=wanted // 2), plan):
        wanted = wanted + max(wanted // 20, 1)
    return ParameterError(
        "CV-P431",
        "the budget is too small for models of both halves",
        expected=f"about {wanted} rows for {half.features} features and {half.budget}",
        got=f"{rows} rows",
        fix="nothing was spent: use method='doubly_robust', which fits its models on all rows, fewer covariates, "
        "or a larger budget (a delta helps most)",
    )
