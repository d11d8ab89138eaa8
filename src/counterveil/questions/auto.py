"""What `method="auto"` takes: a rule on declarations and public numbers, before anything is spent.

It reads the study, the level of protection, the budget and the number of rows; docs/decisions/0009-auto.md says
what it was measured on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt

from counterveil.data import Layout, Range, Study
from counterveil.data.features import feature_map
from counterveil.errors import ParameterError
from counterveil.numerics.products import FeatureMap
from counterveil.privacy import Estimand, Unit
from counterveil.results.measures import OF_MEANS
from counterveil.results.question import Question
from counterveil.session import BaseSession
from counterveil.settings import Auto, DoublyRobust, Trial
from counterveil.statistics.folds.aggregation import expected_width as folds_width
from counterveil.statistics.moments.adjusted import SCORE_REACH, ArmDesign, arm_design, arms_affordable
from counterveil.statistics.moments.orthogonal import Design
from counterveil.statistics.moments.trial import chosen

AUTO = "auto"
# Numbers of this rule were chosen by `python -m experiments.every_method --tuning` (docs/decisions/0009-auto.md).
# Up to here strata are compared, whatever the number of rows; beyond, where no model is affordable and they hold this
# many rows on average.
_FEW_STRATA, _ROWS_A_STRATUM = 64, 16
# With fewer rows than this for each feature, weights that balance a trial's arms may cost more than they gain.
_ROWS_A_FEATURE = 25
# The most noise of an average over folds, in parts of the outcome's range: it has to be less where a declared bound on
# confounding makes other answers possible.
_FOLD_NOISE = {"declared": 0.0125, "none": 0.05}
# Doubly robust answers beside folds, with pure noise: what clipping adds at either end, in parts of the score's noise;
# the variance of products of errors in lines beside that of independent coordinates; what noise of the Grams adds with
# richer features. Set on simulated people of plans with 3, 8 and 20 covariates.
_CLIPPING, _PRODUCT_ERRORS, _RICHER = 0.35, 110.0, 10.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The question with its method named, and why that one."""

    question: Question
    why: str


def choose(session: BaseSession, question: Question) -> Choice:
    """Return the question with its method; rows are counted where the choice depends on their number."""
    study = session.study
    if question.unit is Unit.TREATMENT_AND_OUTCOME:
        method = "trial" if study.randomised is True else "doubly_robust"
        return Choice(
            replace(question, method=method, settings=None), "covariates are public, which one score uses"
        )
    if question.estimand is Estimand.ATO:
        return Choice(_adjusting(question), "it estimates the overlap-weighted effect")
    if study.clustered and question.unit is Unit.RECORD:
        return _named(question, "trial", "a trial of clusters: counts and sums by cluster hold its error")
    if study.per is not None:
        method = "difference_in_means" if question.unit is Unit.OUTCOME else "trial"
        return _named(question, method, "a ratio of sums is compared without adjustment")
    if study.randomised is True:
        return _for_trial(session, question)
    if study.before is not None and not study.covariates:
        return _for_changes(session, question)
    if question.unit is Unit.OUTCOME:
        return _named(question, "weighting", "covariates are public, so adjusting for them costs no budget")
    if question.measure in OF_MEANS:
        return Choice(_adjusting(question), "covariates are adjusted for, and means of both arms released")
    if _strata(study) <= _FEW_STRATA:
        return _named(question, "stratified", "the covariates form few strata, and no model is needed")
    return _for_records(session, question)


def _for_trial(session: BaseSession, question: Question) -> Choice:
    features = feature_map(session.study, 1).size
    free = features > 0 and question.unit is Unit.OUTCOME
    if free and session.batches.rows >= _ROWS_A_FEATURE * features:
        why = "a trial with public covariates, which shorten the interval if they predict outcomes"
        return _named(question, "weighting", why)
    plain = "a trial: the plain comparison is unconfounded"
    if question.unit is Unit.OUTCOME:
        return _named(question, "difference_in_means", plain)
    if question.measure in OF_MEANS:
        return _named(question, "trial", "a trial: means of both arms are released without adjustment")
    pure = question.in_pure_noise()
    settings = chosen(session, pure, Trial())
    afforded = "a trial with enough rows and budget for a model of its outcomes"
    why = plain if settings.adjustment == "none" else afforded
    return Choice(replace(pure, method="trial", settings=settings), why)


def _for_changes(session: BaseSession, question: Question) -> Choice:
    """Return the plain comparison of changes, for a study that declares nothing to adjust for."""
    why = "changes of both arms are compared under parallel trends, without covariates"
    if question.unit is Unit.OUTCOME:
        return _named(question, "difference_in_means", why)
    pure = question.in_pure_noise()
    return Choice(replace(pure, method="trial", settings=chosen(session, pure, Trial())), why)


def _for_records(session: BaseSession, question: Question) -> Choice:
    """Return the adjusting method of the shortest expected interval."""
    adjusting, widths = _adjusting(question), expected_widths(session, question)
    kappa = adjusting.settings.kappa
    shortest = min(widths, key=lambda name: widths[name], default=None)
    if shortest == "doubly_robust":
        return Choice(adjusting, "rows and budget suffice to adjust for all covariates")
    if "doubly_robust" not in widths and _strata(session.study) * _ROWS_A_STRATUM <= session.batches.rows:
        return _named(
            question,
            "stratified",
            "the covariates form strata with many rows, and the budget is too small for a model",
        )
    if shortest is not None:
        return _named(question, shortest, "adjusting in separate folds is expected to be the most precise")
    if kappa is None:
        return Choice(adjusting, "every other interval for the effect needs a declared bound on confounding")
    plain = replace(question.in_pure_noise(), method="doubly_robust", settings=adjusting.settings)
    return Choice(plain, "rows and budget are too small to adjust, and kappa is declared")


def expected_widths(session: BaseSession, question: Question) -> dict[str, float]:
    """Return the methods that model private records and are affordable, each with its expected width.

    Widths are in those of an interval without privacy, from public numbers alone.
    """
    adjusting = _adjusting(question)
    features, design = arm_design(session, adjusting, adjusting.settings)
    found = {"doubly_robust": _width(features, design)} if arms_affordable(design) else {}
    folds = replace(question.in_pure_noise(), method="sample_and_aggregate", settings=None)
    # With Gaussian noise moments by arm are the shorter ones wherever they are affordable.
    if folds.estimand is not Estimand.ATE or folds.mechanism == "gaussian" or (found and not design.pure):
        return found
    try:
        width, noise = folds_width(session.study, session.batches.rows, folds)
    except ParameterError:
        return found
    most = _FOLD_NOISE["none" if adjusting.settings.kappa is None else "declared"]
    return found | ({"sample_and_aggregate": width} if noise <= most else {})


def _width(features: FeatureMap, design: Design) -> float:
    """Return about how many times wider a doubly robust interval is than one without privacy.

    The product of both models' errors is of second order: noise of variance t^2 in a coordinate of both adds about
    n t^4 + 2 t^2 to the variance of sampling.
    """
    chain = ArmDesign(design)
    noise, each = SCORE_REACH * chain.score_unit * sqrt(design.rows), chain.index**2 / (4 * design.features)
    lines = _PRODUCT_ERRORS * (design.rows * each**2 + 2 * each)
    models = (_RICHER * chain.index) ** 2 if features.pairs else lines
    return sqrt(1 + noise**2 + models) + _CLIPPING * noise


def _adjusting(question: Question) -> Question:
    """Return the question for the doubly robust method, with the declared bound on confounding."""
    kappa = question.settings.kappa if isinstance(question.settings, Auto) else None
    settings = DoublyRobust(fallback="refuse" if kappa is None else "unadjusted", kappa=kappa)
    return replace(question, method="doubly_robust", settings=settings)


def _named(question: Question, method: str, why: str) -> Choice:
    return Choice(replace(question, method=method, settings=None), why)


def _strata(study: Study) -> float:
    """Return how many strata the covariates as declared make; infinite where one of them makes none."""
    domains = study.covariates.values()
    if any(isinstance(domain, Range) and not domain.cuts for domain in domains):
        return inf
    return Layout.of(study).public
