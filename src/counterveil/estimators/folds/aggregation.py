"""Sample and aggregate: effects that any learner estimates in separate folds, clipped, averaged and released.

The rows are divided into K disjoint folds, a learner estimates an effect in each, and

    effect = h + c mean of u_k,    variance = c^2 (mean of u^2 - mean(u)^2) / (K - 1),

with u_k the effects of the folds, clipped to [-c, c] around the centre h, in parts of the bound c: h, c and
the effect are in units of the outcome, the variance in squared units. In come a public study, the budget and
private rows; the releases are the noisy mean of u and the noisy mean of u^2 (`rows/folds/fold_effects.py`),
and h and c are declared, or made of a noisy comparison of both arms. Out comes an estimate and its
uncertainty.

Why it is right: one row is in one fold and moves one u_k by at most 2, so that the noise is of a sensitivity
of 2 c / K, whatever the learner does: the method of Nissim, Raskhodnikova and Smith (2007). Folds are of
independent people, hence the variance between them over K - 1 is that of the average, and the interval is
Student's with K - 1 degrees of freedom. What clipping may have moved the average by, for normal effects, is a
bias that the interval allows for. The learner's own bias in folds of this size is not covered, and the answer
says so.

Proof: `rows/folds/fold_average.proof.md` (mean and squares), `rows/moments/inverse_weighting.proof.md` (both
in one Gaussian vector), `rows/moments/centred_contrast.proof.md` (comparison of the arms). A plan names these
releases and the part of the privacy budget each pays; the gate adds noise and lets each through once.
`_SMALLEST_ARM`, `_UPPER` and `_SMALL_SD` steer the clip and the choice of method; privacy does not depend on
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

from scipy.special import ndtri, stdtrit

from counterveil.data import Study
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.errors import refusal
from counterveil.estimators.folds.clip import (
    FEWEST_FOLDS,
    Clip,
    ClippingCentre,
    FoldDesign,
    average_noise,
    chosen_clip,
    declared_clip,
    details,
    expected_error,
    folds_plan,
    typical_centre,
)
from counterveil.estimators.folds.names import learner_name, learner_remarks
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.contrast import POOLED
from counterveil.estimators.moments.contrast import release as release_contrast
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy import Estimand, exact
from counterveil.privacy.caveats import Caveat, ClippedFolds, FoldModels, LearnerBias, LearnersAnswer
from counterveil.privacy.provenance import Bounded, FoldAverage, Quantity, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.folds.fold_effects import FoldEffects
from counterveil.rows.moments.centred_contrast import outcomes_by_arm
from counterveil.rows.moments.weighted_moments import WeightedMeans
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Plan
from counterveil.settings import Folds

PAGES = (
    "rows/folds/fold_average.proof.md",
    "rows/moments/inverse_weighting.proof.md",
    "rows/moments/centred_contrast.proof.md",
)
# Arms that seem smaller are taken to be of this share.
_SMALLEST_ARM = 0.02
# The released variance is raised by this many standard deviations of its noise.
_UPPER = 0.5
# A small standard deviation of one person's part of the effect, in widths of the range, for which methods are compared.
_SMALL_SD = 1 / 12
# What must be linear in the covariates for the learner to be right.
_LINEAR = {"ols": FoldModels.OUTCOME, "aipw": FoldModels.OUTCOME_OR_LOGIT}


@dataclass(frozen=True, slots=True)
class Folding:
    """What is known before a row is read.

    Attributes
    ----------
    learner : object
        What estimates an effect in a fold.
    name : str
        What answers call it.
    features : UnitFeatures
        Covariates as columns.
    width : Fraction
        Width of the outcome's range.
    plan : Plan
        What is released.
    centred : bool
        Whether effects are clipped around a released comparison of the arms.
    folds : int, optional
        Number of folds that was asked for.
    bound : Fraction
        Declared bound of effects, or the width.
    """

    learner: object
    name: str
    features: UnitFeatures
    width: Fraction
    plan: Plan
    centred: bool
    folds: int | None
    bound: Fraction

    @property
    def columns(self) -> int:
        """Coefficients of a fold's model: a line for each arm."""
        return 2 * (self.features.columns + 1)

    def design(self, rows: int) -> FoldDesign:
        """Return what is public of folds of so many rows."""
        return FoldDesign(self.plan, rows, self.columns, self.folds)

    def effects(self, clip: Clip) -> FoldEffects:
        """Return the effects of folds that a clip leaves."""
        return FoldEffects(
            learner=self.learner,
            features=self.features,
            folds=clip.folds,
            centre=clip.centre,
            bound=clip.bound,
        )


def sample_and_aggregate(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the noisy average of a learner's effects in separate folds; everything about a person is private."""
    study = public.study
    rows = public.rows
    folding = folding_of(study, rows, question)

    def estimate(gate: Gate) -> Facts:
        clip = released_clip(gate, study, rows, folding)
        weighted = folding.effects(clip).release(gate, folding.plan)
        name = folding.name
        bound = float(clip.bound)
        size = rows // clip.folds
        custom = not isinstance(folding.learner, str)
        comparison = ((Quantity.COMPARISON_OF_ARMS, Bounded.CENTRES_EFFECTS),)
        return Facts(
            estimate=float(clip.centre) + bound * weighted.mean,
            uncertainty=uncertainty_of(clip, weighted, question.level),
            method=FoldAverage(name),
            releases=(
                *(comparison if folding.centred else ()),
                (Quantity.FOLD_AVERAGE, Sensitivity(float(clip.sensitivity.mean))),
                (Quantity.ITS_SQUARES, Sensitivity(float(clip.sensitivity.square))),
            ),
            not_covered=(
                LearnerBias(name, size),
                Caveat.FAILED_FOLDS,
                ClippedFolds(bound, float(clip.centre)),
                Caveat.CLAMPING,
            ),
            details={
                "rows": rows,
                "mechanism": question.mechanism,
                "learner": name,
                "rows_per_fold": size,
                **details(clip),
            },
            interval_target=LearnersAnswer(name, size) if custom else None,
            assumptions=None if custom or study.randomised is True else _LINEAR[name],
        )

    return Prepared(
        question=question,
        plan=folding.plan,
        estimate=estimate,
        pages=PAGES,
        remarks=learner_remarks(folding.learner),
    )


def folding_of(study: Study, rows: int, question: Question) -> Folding:
    """Return the public design of a question, or refuse it; no row is looked at."""
    settings = question.settings or Folds()
    require_folds(study, question, rows, settings.folds)
    width = study.outcome_range[1] - study.outcome_range[0]
    bound = width if settings.bound is None else min(exact(settings.bound, "bound"), width)
    # What another learner answers need not lie near the comparison of the arms.
    centred = settings.bound is None and isinstance(settings.learner, str)
    plan = folds_plan(question, centred)
    return Folding(
        learner=settings.learner,
        name=learner_name(settings.learner, settings.name),
        features=UnitFeatures.of(study),
        width=width,
        plan=plan,
        centred=centred,
        folds=settings.folds,
        bound=bound,
    )


def expected_width(study: Study, rows: int, question: Question) -> tuple[float, float]:
    """Return about how many times wider the interval is than one without privacy; public numbers only.

    With it comes how large the noise of the average is, in widths of the outcome's range.
    """
    folding = folding_of(study, rows, question)
    design = folding.design(rows)
    typical = typical_centre(folding.plan, rows)
    # Noise weighs the more the less of their range outcomes fill.
    small = chosen_clip(replace(typical, sd=_SMALL_SD), design, width=Fraction(1))
    error = expected_error(small, design, _SMALL_SD**2)
    usual = chosen_clip(typical, design, width=Fraction(1))
    noise = average_noise(folding.plan, usual.sensitivity.mean)
    return sqrt(error * rows) / _SMALL_SD, sqrt(noise.variance)


def released_clip(gate: Gate, study: Study, rows: int, folding: Folding) -> Clip:
    """Return where effects are clipped: declared, or around the released comparison of the arms."""
    design = folding.design(rows)
    if not folding.centred:
        return declared_clip(folding.bound, design, width=folding.width)
    centre = released_centre(gate, folding.plan, study, folding.width)
    return chosen_clip(centre, design, width=folding.width)


def uncertainty_of(clip: Clip, weighted: WeightedMeans, level: float) -> Uncertainty:
    """Return the uncertainty of the average from the variance between folds, with K - 1 degrees of freedom."""
    bound = float(clip.bound)
    folds = clip.folds
    mean_square = weighted.mean**2 - weighted.effect_noise.variance / bound**2
    between = bound**2 * (weighted.square - mean_square) / (folds - 1)
    # Normal quantiles are used later on; the variance is raised so that at this level they are Student's.
    tail = (1 - level) / 2
    student = float((stdtrit(folds - 1, tail) / ndtri(tail)) ** 2)
    cap = bound**2 / (folds - 1)
    lost = clip.lost(weighted.mean, weighted.square) if clip.chosen else 0.0
    return Uncertainty(
        weighted.effect_noise, student * between, student * cap, weighted.variance_noise, bias=lost
    )


def require_folds(study: Study, question: Question, rows: int, folds: int | None) -> None:
    """Refuse what cannot be done in folds, from public numbers alone."""
    require_covariates(study, question.method)
    if question.estimand is not Estimand.ATE:
        raise refusal("CV-P427", estimand=question.estimand.value)
    wanted = FEWEST_FOLDS if folds is None else folds
    if rows // wanted < 2:
        raise refusal("CV-P424", wanted=2 * wanted, count=wanted, rows=rows)


def released_centre(gate: Gate, plan: Plan, study: Study, width: Fraction) -> ClippingCentre:
    """Return the comparison of the arms and its standard deviation; the plan holds their releases."""
    arms = outcomes_by_arm(gate)
    contrast = release_contrast(gate, plan, arms, declared=study.treated_share, centre=POOLED)
    share = contrast.setting.share
    effect = contrast.effect
    square = contrast.square
    variance = float(square) - float(effect) ** 2 + effect.noise.variance
    variance += _UPPER * sqrt(square.noise.variance)
    centre = min(max(effect.value, -width), width)
    largest = float(width) / sqrt(float(share * (1 - share))) / 2
    sd = min(sqrt(max(variance, 0.0)), largest)
    smaller = max(float(min(share, 1 - share)), _SMALLEST_ARM)
    return ClippingCentre(centre, sqrt(effect.noise.variance), sd, 1 / (2 * smaller))
