"""Sample and aggregate: effects that any learner estimates in separate folds, clipped, averaged and released.

First how a learner is applied to a fold (`effects_of_folds`, `models_of_fold`). Then the budget, the clip and
its centre (`folds_plan`, `chosen_clip`, `ClippingCentre`), the method (`sample_and_aggregate`), and the error
of the average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from math import erf, exp, isfinite, pi, sqrt
from typing import TypeVar

import numpy as np
from scipy.special import ndtri, stdtrit

from counterveil.data import Study, Table, silence
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.errors import refusal
from counterveil.estimators.moments.contrast import POOLED
from counterveil.estimators.moments.contrast import release as release_contrast
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arm_totals import arm_totals
from counterveil.numerics.arrays import Floats, Indices, Integers
from counterveil.numerics.public_choices import fold_rows
from counterveil.privacy import Estimand, exact
from counterveil.privacy.caveats import Caveat, ClippedFolds, FoldModels, LearnerBias, LearnersAnswer
from counterveil.results.answering import Facts, answer_request
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.folds.learners import (
    MOST_ROWS,
    FoldNuisances,
    aipw_effect,
    aipw_effects,
    fitted_models,
    ols_effect,
    ridge_models,
    robust_effect,
)
from counterveil.rows.folds.sensitivity import FoldAverage
from counterveil.rows.moments.centred_contrast import PrivateArms
from counterveil.rows.moments.scores import GRID_BITS, moments
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.rows.moments.weighted_moments import WeightedMeans, release_moments
from counterveil.session import (
    BaseSession,
    Gate,
    Kind,
    KnownSensitivityMechanism,
    Plan,
    fixed_ambient_generators,
)
from counterveil.settings import Folds, ModelPair

Learner = Callable[[Floats, Floats, Floats], float]
FitModels = Callable[[Floats, Floats, Floats], FoldNuisances]
Answer = TypeVar("Answer")

BUILT_IN: dict[str, Learner] = {"ols": ols_effect, "aipw": aipw_effect}


def pair_effect(pair: ModelPair, x: Floats, t: Floats, y: Floats) -> float:
    """Return the doubly robust effect of a fold, each half scored by models of the other half."""
    fit = fitter(pair)
    first = np.arange(len(x)) % 2 == 0
    parts = []
    for own in (first, ~first):
        models = fit(x[~own], t[~own], y[~own])
        parts.append(robust_effect(models, x[own], t[own], y[own]) * own.sum())
    return float(sum(parts) / len(x))


def fitter(pair: ModelPair) -> FitModels:
    """Return the function that fits both models to a fold."""
    return fitted_models(pair.outcome, pair.propensity, deepcopy)


def learner_remarks(learner: object) -> tuple[str, ...]:
    """Return what the guarantee rests on beside the proofs, where the learner is not one of ours."""
    if isinstance(learner, str):
        return ()
    return (
        "the guarantee rests on the learner: what it answers for a fold must depend on that fold's rows alone, and "
        "what a fitted model predicts for a row on that model and that row alone",
    )


def learner_name(learner: object, name: str | None = None) -> str:
    """Return what answers call a learner: the `name` it was given, or that of its class or function."""
    if name is not None:
        return name
    if isinstance(learner, str):
        return learner
    if isinstance(learner, ModelPair):
        return f"{type(learner.outcome).__name__} and {type(learner.propensity).__name__}"
    return str(getattr(learner, "__qualname__", type(learner).__name__))


def effects_of_folds(learner: object, x: Floats, t: Floats, y: Floats, folds: list[Indices]) -> Floats:
    """Return the learner's answer for every fold, 0 where it fails; nothing else about the folds gets out.

    Ours draw from no generator and print nothing, so that one quiet block does for all folds.
    """
    if not isinstance(learner, str):
        return np.array([effect_of_fold(learner, x[rows], t[rows], y[rows]) for rows in folds])
    with silence():
        if learner == "aipw" and is_stacked(folds):
            found = aipw_effects(x, t, y, folds)
        else:
            found = np.array([_or_zero(BUILT_IN[learner], x[rows], t[rows], y[rows]) for rows in folds])
        return np.where(np.isfinite(found), found, 0.0)


def is_stacked(folds: list[Indices]) -> bool:
    """Return whether folds are so small that models of ours are fitted to many of them at once."""
    return max(map(len, folds)) <= MOST_ROWS


def _or_zero(learner: Learner, x: Floats, t: Floats, y: Floats) -> float:
    try:
        return learner(x, t, y)
    except Exception:
        return 0.0


def effect_of_fold(learner: object, x: Floats, t: Floats, y: Floats) -> float:
    """Return the same for one fold."""

    def answer() -> float:
        rows = x.copy(), t.copy(), y.copy()
        if isinstance(learner, ModelPair):
            return pair_effect(deepcopy(learner), *rows)
        run = BUILT_IN[learner] if isinstance(learner, str) else deepcopy(learner)
        return float(run(*rows))  # type: ignore[operator]

    value = quietly(answer)
    return value if value is not None and isfinite(value) else 0.0


def models_of_fold(learner: object, x: Floats, t: Floats, y: Floats) -> FoldNuisances | None:
    """Return the models fitted to one fold, None where that fails."""
    if not isinstance(learner, ModelPair):
        return quietly(lambda: ridge_models(x, t, y))
    return quietly(lambda: fitter(learner)(x.copy(), t.copy(), y.copy()))


def quietly(answer: Callable[[], Answer]) -> Answer | None:
    """Return the answer, or None where it fails; what it prints, logs or warns of is dropped.

    Global generators start every time from the same state, so that nothing goes from one fold to the next.
    """
    with silence(), fixed_ambient_generators():
        try:
            return answer()
        except (Exception, SystemExit):
            return None


# Any learner, made private: estimate the effect in separate folds, clip, average, add noise.
#
# Nothing about the learner has to be known. One record lies in one fold, so it moves the average of K effects clipped
# to within c of a released centre by at most 2c/K.
#
# Lineage: sample and aggregate (Nissim, Raskhodnikova and Smith 2007).
#
# Where the effects of folds are clipped, and into how many folds the rows are divided.
#
# An effect never exceeds the width of the outcome's range, but effects of folds lie much nearer together. A small
# part of the budget buys the private comparison of the arms and its standard deviation. Effects are clipped around
# that comparison, as far off as confounding and chance carry them, and the noise of their average shrinks with the
# clip.


# A fold has at least this many rows, and this many for every column of the covariates.
_AGGREGATION_FEWEST_ROWS, _AGGREGATION_ROWS_A_COLUMN = 20, 2
FEWEST_FOLDS = 5
# Of the budget of a mean and its squares, the mean's part.
FOR_EFFECT = Fraction(17, 20)


def require_folds(study: Study, question: Question, rows: int, folds: int | None) -> None:
    """Refuse what cannot be done in folds, from public numbers alone."""
    require_covariates(study, question.method)
    if question.estimand is not Estimand.ATE:
        raise refusal("CV-P427", estimand=question.estimand.value)
    wanted = FEWEST_FOLDS if folds is None else folds
    if rows // wanted < 2:
        raise refusal("CV-P424", wanted=2 * wanted, count=wanted, rows=rows)


# The clip was chosen by `python -m experiments.every_method --tuning`.
# Parts of the budget that go into the comparison of the arms, in hundredths.
_FOR_CENTRE = {
    "share": Fraction(3),
    "centre": Fraction(3, 2),
    "contrast": Fraction(21, 4),
    "moment": Fraction(21, 4),
}
# Clip, in standard deviations of one person's part of the comparison: room for confounding; and in those of a fold's
# effect and of the noise: room for chance.
_CONFOUNDING, _CHANCE, _NOISE = 0.4, 2.5, 1.5
# Arms that seem smaller are taken to be of this share.
_SMALLEST_ARM = 0.02
# The released variance is raised by this many standard deviations of its noise.
_UPPER = 0.5
# One person's part of the comparison has about this standard deviation, in widths of the outcome's range; and one that
# is small, where methods are compared.
_TYPICAL_SD, _SMALL_SD = 0.25, 1 / 12


@dataclass(frozen=True, slots=True)
class Clip:
    """Number of folds, and the bound of effects on either side of a centre; all public or released.

    `chosen` says that the bound was made of released numbers and may be nearer than effects lie; else it is declared,
    or the whole range, beyond which there is none.
    """

    folds: int
    bound: Fraction
    centre: Fraction = Fraction(0)
    chosen: bool = False

    @property
    def sensitivity(self) -> FoldAverage:
        """How far one record can move the average."""
        return FoldAverage(self.folds, self.bound)

    def lost(self, mean: float, square: float) -> float:
        """Return how far clipping moved the average, if effects are normal with these released moments.

        Both are in units of the bound.
        """
        off = min(abs(mean), 1.0)
        sd = sqrt(max(square - mean**2, 0.0))
        return float(self.bound) * (_beyond(1 - off, sd) - _beyond(1 + off, sd))


def _beyond(limit: float, sd: float) -> float:
    """Return by how much a normal number with mean zero exceeds a limit, on average."""
    if sd == 0.0:
        return 0.0
    z = limit / sd
    return sd * exp(-z * z / 2) / sqrt(2 * pi) - limit * (1 - erf(z / sqrt(2))) / 2


@dataclass(frozen=True, slots=True)
class ClippingCentre:
    """The comparison that effects are clipped around: noise and standard deviation, all in one unit.

    `sd` is an upper estimate of the standard deviation of one person's part of it. `arm_inflation` is by how much the
    number of rows must grow for the smaller arm to have as many people as half of them.
    """

    centre: Fraction
    noise: float
    sd: float
    arm_inflation: float = 1.0

    def bound(self, size: float, columns: float) -> float:
        """Return how far off the effect of a fold of `size` rows is expected to be at most."""
        chance = self.sd / sqrt(max(size - columns, 1.0))
        return _CONFOUNDING * self.sd + _CHANCE * chance + _NOISE * self.noise


def folds_plan(question: Question, centred: bool) -> Plan:
    """Return the plan: the comparison of the arms, where it is wanted, then a mean and its squares."""
    shares: dict[str, Fraction] = {}
    if centred:
        shares = {name: percent / 100 for name, percent in _FOR_CENTRE.items()}
    rest = 1 - sum(shares.values(), Fraction(0))
    if question.mechanism == "gaussian":
        shares["moments"] = rest
        return Plan.split(question.budget, shares, question.mechanism, {"moments": Kind.VECTOR})
    shares |= {"effect": FOR_EFFECT * rest, "squares": (1 - FOR_EFFECT) * rest}
    return Plan.split(question.budget, shares, question.mechanism)


def released_centre(gate: Gate, plan: Plan, table: Table, width: Fraction) -> ClippingCentre:
    """Return the comparison of the arms and its standard deviation; the plan holds their releases."""
    arms = PrivateArms(arm_totals(table.treated, table.outcome), table.outcome_unit, width)
    found = release_contrast(gate, plan, arms, declared=table.study.treated_share, centre=POOLED)
    share = found.setting.share
    effect = found.effect
    square = found.square
    variance = float(square) - float(effect) ** 2 + effect.noise.variance
    variance += _UPPER * sqrt(square.noise.variance)
    centre = min(max(effect.value, -width), width)
    largest = float(width) / sqrt(float(share * (1 - share))) / 2
    sd = min(sqrt(max(variance, 0.0)), largest)
    smaller = max(float(min(share, 1 - share)), _SMALLEST_ARM)
    return ClippingCentre(centre, sqrt(effect.noise.variance), sd, 1 / (2 * smaller))


def typical_centre(plan: Plan, rows: int) -> ClippingCentre:
    """Return what is expected before anything is released, in widths of the outcome's range."""
    noise = plan.noise("contrast", Fraction(4, rows)).variance
    return ClippingCentre(Fraction(0), sqrt(noise), _TYPICAL_SD)


def chosen_clip(
    centre: ClippingCentre, plan: Plan, rows: int, columns: int, width: Fraction, folds: int | None
) -> Clip:
    """Return folds and clip with the least expected error; the whole range, where that is nearer."""

    def clip(count: int) -> Clip:
        bound = Fraction(centre.bound(rows / count, centre.arm_inflation * columns))
        if bound >= width:
            return Clip(count, width)
        return Clip(count, max(bound, width / 2**10), centre.centre, chosen=True)

    return _best(clip, plan, rows, columns, centre.sd**2, folds, centre.arm_inflation)


def declared_clip(
    bound: Fraction, plan: Plan, rows: int, columns: int, width: Fraction, folds: int | None
) -> Clip:
    """Return the number of folds with the least expected error for a bound that is declared."""
    sd = float(width) * _TYPICAL_SD
    return _best(lambda count: Clip(count, bound), plan, rows, columns, sd**2, folds)


def _best(
    clip: Callable[[int], Clip],
    plan: Plan,
    rows: int,
    columns: int,
    variance: float,
    folds: int | None,
    arm_inflation: float = 1.0,
) -> Clip:
    """Return the clip with the least noise, sampling error and the noise in its estimate together.

    More folds mean less noise, a variance between folds that is known better, and fewer rows for each of p
    coefficients, which multiplies the sampling variance by about m/(m - p). Where an arm is smaller than half, so many
    people of it need `arm_inflation` times as many rows.
    """
    if folds is not None:
        return clip(folds)
    fewest = arm_inflation * max(_AGGREGATION_FEWEST_ROWS, _AGGREGATION_ROWS_A_COLUMN * columns)
    most = max(FEWEST_FOLDS, int(rows / fewest))
    grid = {int(FEWEST_FOLDS * (most / FEWEST_FOLDS) ** (step / 24)) for step in range(25)} | {most}
    return min(
        map(clip, sorted(grid)), key=lambda one: _expected(one, plan, rows, arm_inflation * columns, variance)
    )


def _expected(clip: Clip, plan: Plan, rows: int, columns: float, variance: float) -> float:
    """Return the expected squared error: noise, sampling, and the noise in the estimate of the latter."""
    size = rows / clip.folds
    sampling = variance / rows * size / max(size - columns, 1.0)
    noise_of_variance = sqrt(squares_noise(plan, clip.sensitivity).variance) / (clip.folds - 1)
    return average_noise(plan, clip.sensitivity.mean).variance + sampling + noise_of_variance


def average_noise(plan: Plan, sensitivity: Fraction) -> KnownSensitivityMechanism:
    """Return the noise of an average with this sensitivity."""
    if plan.mechanism == "gaussian":
        return plan.coordinate_noise("moments", sensitivity)
    return plan.noise("effect", sensitivity)


def squares_noise(plan: Plan, sensitivity: FoldAverage) -> KnownSensitivityMechanism:
    """Return the noise of the mean square of the effects."""
    if plan.mechanism == "gaussian":
        # Squares are released with a weight, so that they cost no more than the mean: `inverse_weighting.proof.md`.
        joint = sensitivity.mean * sensitivity.bound / SQUARE_WEIGHT
        return plan.coordinate_noise("moments", joint)
    return plan.noise("squares", sensitivity.square)


def details(clip: Clip) -> Mapping[str, float | str]:
    """Return what a result says about the clip."""
    return {
        "folds": clip.folds,
        "fold_bound": float(clip.bound),
        "fold_bound_centre": float(clip.centre),
    }


PAGES = (
    "rows/folds/fold_average.proof.md",
    "rows/moments/inverse_weighting.proof.md",
    "rows/moments/centred_contrast.proof.md",
)


@dataclass(frozen=True, slots=True)
class Folding:
    """What is known before a row is read; `centred` where effects are clipped around a released comparison."""

    learner: object
    name: str  # of the learner, in answers
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


def sample_and_aggregate(session: BaseSession, question: Question) -> Result:
    """Return the noisy average of a learner's effects in separate folds; everything about a person is private."""
    folding = folding_of(session.study, session.table.rows, question)

    def compute(gate: Gate) -> Facts:
        clip, weighted = release(gate, session.table, folding)
        study = session.study
        name = folding.name
        bound = float(clip.bound)
        size = session.table.rows // clip.folds
        own = not isinstance(folding.learner, str)
        return Facts(
            estimate=float(clip.centre) + bound * weighted.mean,
            uncertainty=uncertainty_of(clip, weighted, question.level),
            method=f"average over folds of {name}",
            releases=(
                *(
                    (("comparison of the arms", "it centres and bounds the effects"),)
                    if folding.centred
                    else ()
                ),
                ("average of the folds' effects", f"sensitivity {float(clip.sensitivity.mean):.6g}"),
                ("its squares", f"sensitivity {float(clip.sensitivity.square):.6g}"),
            ),
            not_covered=(
                LearnerBias(name, size),
                Caveat.FAILED_FOLDS,
                ClippedFolds(bound, float(clip.centre)),
                Caveat.CLAMPING,
            ),
            details={
                "rows": session.table.rows,
                "mechanism": question.mechanism,
                "learner": name,
                "rows_per_fold": size,
                **details(clip),
            },
            interval_target=LearnersAnswer(name, size) if own else None,
            assumptions=None if own or study.randomised is True else _LINEAR[name],
        )

    remarks = learner_remarks(folding.learner)
    return answer_request(Result, session, question, folding.plan, compute, pages=PAGES, remarks=remarks)


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
    plan = folding.plan
    columns = folding.columns
    typical = typical_centre(folding.plan, rows)

    def clip(centre: ClippingCentre) -> Clip:
        return chosen_clip(centre, plan, rows, columns, Fraction(1), folding.folds)

    # Noise weighs the more the less of their range outcomes fill.
    error = _expected(clip(replace(typical, sd=_SMALL_SD)), plan, rows, columns, _SMALL_SD**2)
    return sqrt(error * rows) / _SMALL_SD, sqrt(average_noise(plan, clip(typical).sensitivity.mean).variance)


def release(gate: Gate, table: Table, folding: Folding) -> tuple[Clip, WeightedMeans]:
    """Return where effects were clipped, and the released moments of the folds' effects."""
    clip = released_clip(gate, table, folding)
    steps = fold_effects(table, folding, clip)
    found = moments(steps, np.zeros(len(steps), np.bool_))
    return clip, release_moments(gate, folding.plan, found, clip.bound, 1.0)


def released_clip(gate: Gate, table: Table, folding: Folding) -> Clip:
    """Return where effects are clipped: declared, or around the released comparison of the arms."""
    rest = folding.plan, table.rows, folding.columns, folding.width, folding.folds
    if not folding.centred:
        return declared_clip(folding.bound, *rest)
    return chosen_clip(released_centre(gate, folding.plan, table, folding.width), *rest)


def fold_effects(table: Table, folding: Folding, clip: Clip) -> Integers:
    """Return every fold's effect less the centre, in whole parts of 2**-GRID_BITS of the bound, at most one bound."""
    z = folding.features.values(table)
    y = float(table.study.outcome_range[0]) + float(table.outcome_unit) * table.outcome.astype(np.float64)
    t = table.treated.astype(np.float64)
    effects = effects_of_folds(folding.learner, z, t, y, fold_rows(table.rows, clip.folds))
    part = np.clip((effects - float(clip.centre)) / float(clip.bound), -1.0, 1.0)
    return np.trunc(np.ldexp(part, GRID_BITS)).astype(np.int64)


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


# What must be linear in the covariates for the learner to be right.
_LINEAR = {"ols": FoldModels.OUTCOME, "aipw": FoldModels.OUTCOME_OR_LOGIT}
