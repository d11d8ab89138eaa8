"""The effect where a row's treatment and outcome are private together, covariates and their order being public.

Three releases: the place of outcomes (none for outcomes from 0 to 1), one vector for propensities and both arms'
mean outcomes, and the sums of an orthogonal score and of its squares. Doubly robust scores: Robins, Rotnitzky and Zhao
(1994); overlap weights: Li, Morgan and Zaslavsky (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Study, Table
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.inference.measures import ApartMeans, with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat, Fact, LinearScores
from counterveil.results.answering import Facts, settled
from counterveil.results.arms import ArmsResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question, design_says
from counterveil.results.result import MeasureResult, Result
from counterveil.session import BaseSession, Gate, Kind, Plan
from counterveil.statistics.outcome_place import PLACE_KINDS, PLACE_WORDS, PLACES, WHOLE, Spread, find_place
from counterveil.statistics.pairs.models import (
    ARM_SCORES,
    CURVES,
    LINES,
    PRODUCTS,
    TREATED,
    WHOLE_SCORES,
    Form,
    Models,
    PublicRows,
    Scores,
    Sums,
    Target,
    arm_sums,
    best_scores,
    fit_models,
    ladder,
    pair_sensitivity,
    pair_sums,
)
from counterveil.statistics.pairs.sensitivity import MODEL_PARTS, MOST_LEFT, PLACE_PART

PAGES = (
    "statistics/histogram.proof.md",
    "statistics/pairs/pair_moments.proof.md",
    "statistics/pairs/pair_scores.proof.md",
)
# The richest features are taken whose expected length is at most this many times the shortest.
_LONGER = 1.2
# Public guesses that steer choices only, in units of the outcomes' reach: their variance, the mean square of weights,
# the largest weight, and the curvature of a logistic model.
_SPREAD, _WEIGHTS, LARGEST_WEIGHT, _CURVATURE = 0.2, 5.5, 5.0, 0.2
# Supposed variances of log odds and of mean outcomes that covariates, and curves and products, explain; and how far the
# two models are aligned.
_SIGNAL, _ALIGNMENT = ((0.6, 0.1), (0.06, 0.01)), 0.5
# Most that products of both models' errors may be expected to be beside the sampling error, squared.
_MOST_PRODUCTS = 1.5
# Products of both models' errors count so often: confounding aligns them.
ALIGNED = 2.0
# The models' check rejects where what shrinkage left exceeds so many of its standard deviations: in an effect, and in
# either of two means that are compared.
REJECTS, _REJECTS_MEAN = 1.645, 1.96


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Features and the split of the budget over the releases, with the expected squared errors; all public."""

    rows: PublicRows
    plan: Plan
    sampling: float
    noise: float
    products: float
    curves: float  # confounding by curves and products that models leave out or shrink

    @property
    def length(self) -> float:
        """The expected squared length of the interval, in units of outcomes."""
        return self.sampling + self.noise + self.products + self.curves


def choices(table: Table, budget: Budget, numbers: int = 1) -> list[Choice]:
    """Return the best split for each set of features, the plainest first; reads covariates alone.

    So many numbers share the rows: effects of groups.
    """
    found, on, arms = [], searched(table.study), len(table.study.arms or (0, 1))
    released = 2 if known_propensities(table) is not None else 3 if arms == 2 else 2 * arms
    rungs = ladder(table)
    for rows in rungs:
        omitted = rows.order.max() == LINES < rungs[-1].order.max()
        known, sizes = (table.study.unconfounded, omitted), (released, numbers, arms / 2)
        splits = [
            _expected(rows, plan_of(budget, part, on, vector=vector), known, sizes)
            for part in MODEL_PARTS
            for vector in _vectors(budget)
        ]
        found.append(min(splits, key=lambda choice: choice.length))
    return found


def chosen(table: Table, budget: Budget, numbers: int = 1) -> Choice:
    """Return the richest features of about the shortest expected length; refuses where errors would exceed sampling."""
    found = choices(table, budget, numbers)
    if not found:
        raise refusal("CV-P407", features=len(table.study.covariates), rows=table.rows)
    able = [choice for choice in found if choice.products <= _MOST_PRODUCTS * choice.sampling]
    if not able:
        raise refusal(
            "CV-P408",
            features=found[0].rows.z.shape[1] - 1,
            budget=budget,
            rows=table.rows,
            ratio=f"{sqrt(found[0].products / found[0].sampling):.2g}",
        )
    shortest = min(choice.length for choice in able)
    return next(choice for choice in reversed(able) if choice.length <= _LONGER**2 * shortest)


def searched(study: Study) -> bool:
    """Whether the place of outcomes is looked for: not that of events."""
    low, high = study.outcome_range
    return low != 0 or high != 1


def known_propensities(table: Table) -> Floats | None:
    """Return every row's probability of treatment where the design says it."""
    share = table.study.treated_share
    return table.score if share is None else np.full(table.rows, float(share))


def _vectors(budget: Budget) -> tuple[Kind, ...]:
    """Return the noises that models may have: pure noise of few numbers is the smaller one, whatever delta is."""
    return (Kind.VECTOR,) if budget.pure else (Kind.NORMAL, Kind.VECTOR)


def plan_of(
    budget: Budget, part: Fraction, on: bool, last: str = "score", vector: Kind | None = None
) -> Plan:
    """Return the split: the place if it is searched, the models' part of the rest, and the score, or a vector."""
    rest = 1 - PLACE_PART if on else Fraction(1)
    shares = {name: PLACE_PART * share for name, share in PLACES.items()} if on else {}
    shares |= {"models": part * rest, last: (1 - part) * rest}
    kinds = dict(PLACE_KINDS) if on else {}
    vector = vector or _vectors(budget)[0]
    kinds |= {"models": vector, last: Kind.CELLS if last == "score" else vector}
    return Plan.split(budget, shares, "laplace", kinds)


def _expected(
    rows: PublicRows, plan: Plan, known: tuple[bool, bool], sizes: tuple[int, int, float]
) -> Choice:
    (unconfounded, omitted), (released, numbers, crowd) = known, sizes
    p, n = rows.z.shape[1], len(rows.z) / numbers / crowd
    amount, score = dict(plan.amounts)["models"], float(dict(plan.amounts)["score"])
    length = pair_sensitivity(rows)
    unit = float(length / amount) ** 2 * (released * p + 1 if plan.kind("models") is Kind.VECTOR else 1)
    own = unit / rows.scale**2
    half = _CURVATURE * (rows.weight @ rows.z**2) / crowd
    treated = own / float(TREATED) ** 2 / half**2 + 1 / half
    arms = own / (2 * half) ** 2 + _SPREAD / (2 * half)
    signal = [_assumed(rows, most) for most in _SIGNAL]
    left = [treated / 4 / (treated / 4 + signal[0]), arms / (arms + signal[1])]
    aligned = _ALIGNMENT * np.sqrt(signal[0] * signal[1]) * left[0] * left[1]
    by_lines, by_curves = (float(aligned[at].sum()) for at in (rows.order == LINES, rows.order > LINES))
    # Curves that are left out are left out entirely.
    by_curves = _ALIGNMENT * sqrt(_SIGNAL[0][1] * _SIGNAL[1][1]) if omitted else by_curves
    errors = treated * signal[0] / (treated + signal[0]), arms * signal[1] / (arms + signal[1])
    products = 0.0 if unconfounded else float(errors[0] @ errors[1]) + by_lines**2
    curves = 0.0 if unconfounded else (by_lines + by_curves) ** 2 - by_lines**2
    sampling = _WEIGHTS * _SPREAD / n
    # Mean outcomes that are not known enlarge the scores.
    worse = sampling * float(errors[1].sum()) / _SPREAD if unconfounded else 0.0
    noise = 8 * (LARGEST_WEIGHT / (score * n)) ** 2 + worse
    return Choice(rows, plan, sampling, noise, products, curves)


def _assumed(rows: PublicRows, sizes: tuple[float, float]) -> Floats:
    """Return squared coefficients that features are supposed to have: of covariates, and of all others together."""
    lines, others = rows.order == LINES, rows.order > LINES
    found = np.full(len(rows.order), 10.0)
    found[lines], found[others] = sizes[0] / max(int(lines.sum()), 1), sizes[1] / max(int(others.sum()), 1)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class PairEffect:
    """A released effect and its uncertainty, in units of the outcome."""

    estimate: float
    uncertainty: Uncertainty
    details: dict[str, float | str]


def place_of(gate: Gate, table: Table) -> Spread:
    """Return where outcomes lie: released where it is searched, the whole range for events."""
    return find_place(gate, table) if searched(table.study) else Spread(WHOLE, 0.0)


def release_models(gate: Gate, table: Table, choice: Choice) -> tuple[Models, Spread]:
    """Return models of treatment and outcomes, and where outcomes lie: the place, then one vector."""
    study, rows, spread = table.study, choice.rows, place_of(gate, table)
    known = known_propensities(table)
    released = gate.release_vector(
        "models",
        lambda: pair_sums(rows, table.treated, table.outcome, spread.place, known is not None),
        pair_sensitivity(rows),
    )
    sums = Sums.of(released.floats(), released.variance, rows, known)
    found = fit_models(rows, sums, spread.centre, spread.reach, spread.sd, known, study.randomised is True)
    return found, spread


@dataclass(frozen=True, slots=True, eq=False)
class Sought:
    """One number that scores tell: of which rows, how they weigh, and what was released of them."""

    places: Integers
    target: Target
    models: Models
    form: Form = WHOLE_SCORES
    arm: int | None = None  # whose rows count as treated; None where there are two arms

    def inside(self, table: Table) -> NDArray[np.bool_]:
        """Return which of the rows count as treated."""
        return (table.treated if self.arm is None else table.arm == self.arm)[self.places]


def release_scores(
    gate: Gate, table: Table, choice: Choice, numbers: Sequence[Sought], spread: Spread
) -> list[PairEffect]:
    """Return numbers of which no pair moves two by more than their form says, all released together."""
    form, plan = numbers[0].form, choice.plan
    noise = plan.cells_noise("score", form[1]).variance
    rows = [(choice.rows.at(one.places), one.models.at(one.places)) for one in numbers]
    scores = [best_scores(*own, spread, one.target, noise) for own, one in zip(rows, numbers, strict=True)]

    def sums() -> list[Fraction]:
        both = zip(scores, numbers, strict=True)
        own = ((score, one.inside(table), table.outcome[one.places]) for score, one in both)
        return [value for score, treated, outcome in own for value in score.sums(treated, outcome, form)]

    found = gate.release_cells("score", sums, form[1]).floats().reshape(-1, 2)
    unit = float(table.study.outcome_range[1] - table.study.outcome_range[0]) / 2
    return [
        _effect(plan, *own, score, one, released, (one.models.fitted(one.target.arm), unit))
        for own, score, one, released in zip(rows, scores, numbers, found, strict=True)
    ]


def pair_effect(gate: Gate, table: Table, choice: Choice, estimand: Estimand) -> PairEffect:
    """Return the effect: place, models, score, each released once."""
    (found,) = pair_effects(gate, table, choice, estimand, [np.arange(table.rows)])
    return found


def pair_effects(
    gate: Gate, table: Table, choice: Choice, estimand: Estimand, groups: Sequence[Integers]
) -> list[PairEffect]:
    """Return the effects of groups of rows, of which no two share one; all cost what one does."""
    models, spread = release_models(gate, table, choice)
    numbers = [Sought(own, Target.of(estimand, models.propensity[own]), models) for own in groups]
    found = release_scores(gate, table, choice, numbers, spread)
    sizes = [one.target.sizes(models.propensity[one.places]) for one in numbers]
    return [
        replace(one, uncertainty=with_rare_events(one.uncertainty, table.study.outcome_range, own))
        for one, own in zip(found, sizes, strict=True)
    ]


def _effect(
    plan: Plan,
    rows: PublicRows,
    models: Models,
    scores: Scores,
    sought: Sought,
    released: Floats,
    sizes: tuple[float, float],
) -> PairEffect:
    """Return the number of released sums of scores, with every part of its error.

    `sizes` are by how much rows vary more than around models fitted to them, and half the range.
    """
    fitted, unit = sizes
    clip, middle, target, (weight, sensitivity) = scores.clip, scores.middle, sought.target, sought.form
    n, part = len(rows.z), unit / scores.size
    total, squares = float(released[0]), float(released[1]) / float(weight)
    estimate = scores.start * unit + (clip * total + n * middle) * part
    variance = fitted * (clip**2 * squares + 2 * middle * clip * total + n * middle**2) * part**2
    second, left, left_sd = models.products(target.errors, rows)
    second, left, left_sd = ALIGNED * second * part**2, left * part, left_sd * part
    rejects = abs(left) > (REJECTS if target.arm is None else _REJECTS_MEAN) * left_sd
    lost, capped = (scores.lost * part) ** 2, scores.capped * part**2
    # The variance holds the noise of both sums: that of squares, and that of scores around their middle.
    of_variance = fitted * clip * sqrt((clip / float(weight)) ** 2 + 4 * middle**2) * part**2
    uncertainty = Uncertainty(
        plan.cells_noise("score", sensitivity * Fraction(clip * part)),
        variance,
        fitted * n * ((clip + abs(middle)) * part) ** 2,
        plan.cells_noise("score", sensitivity * Fraction(of_variance)),
        second + lost + capped,
        min(abs(left), MOST_LEFT * models.sd * unit) if rejects else 0.0,
    )
    details: dict[str, float | str] = {
        "se_models": sqrt(second),
        "se_clipping": sqrt(lost),
        "se_capped_weights": sqrt(capped),
        "models_differ": left,
        "models_differ_se": left_sd,
        "models_differ_rejects": rejects,
    }
    return PairEffect(estimate, uncertainty, details)


def pairs(session: BaseSession, question: Question) -> Result:
    """Return the private effect; covariates and the order of rows are public, treatments and outcomes are not."""
    table, (question, choice) = session.table, asked(session, question)

    def compute(gate: Gate) -> Facts:
        effect = pair_effect(gate, table, choice, question.estimand)
        said = provenance(session, question, choice, effect.details)
        return Facts(said, estimate=effect.estimate, uncertainty=effect.uncertainty)

    return settled(Result, session, question, choice.plan, compute)


def pair_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of both arms' means, each with a score of its own."""
    table, (question, choice) = session.table, asked(session, question)

    def compute(gate: Gate) -> Facts:
        means, details = released_means(gate, table, choice)
        said = provenance(session, question, choice, details)
        return Facts(said, measure=question.measure, numbers=means)

    return settled(MeasureResult, session, question, choice.plan, compute)


def released_means(gate: Gate, table: Table, choice: Choice) -> tuple[ApartMeans, dict[str, float | str]]:
    """Return what both arms' mean outcomes would be if everyone were in them, and details."""
    models, spread = release_models(gate, table, choice)
    whole, everyone = Target.of(Estimand.ATE, models.propensity), np.arange(table.rows)
    sought = [Sought(everyone, whole.of_arm(arm), models, ARM_SCORES) for arm in (0, 1)]
    one, other = release_scores(gate, table, choice, sought, spread)
    low, high = map(float, table.study.outcome_range)
    values = (low + high) / 2 + one.estimate, (low + high) / 2 - other.estimate
    means = ApartMeans(
        values, (one.uncertainty, other.uncertainty), (low, high), whole.sizes(models.propensity)
    )
    return means, {"mean_treated": values[0], "mean_control": values[1]}


def asked(session: BaseSession, question: Question, numbers: int = 1) -> tuple[Question, Choice]:
    """Return the question with its noise, and features and split from public numbers; so many numbers share rows."""
    if session.study.randomised is not True:
        require_covariates(session.study, question.method)
    choice = chosen(session.table, question.budget, numbers)
    return replace(question, mechanism="laplace"), choice


def provenance(
    session: BaseSession, question: Question, choice: Choice, details: dict[str, float | str]
) -> dict[str, Any]:
    """Return what every answer of this level says of itself."""
    study, pure = session.study, choice.plan.kind("models") is Kind.VECTOR
    pages = PAGES if searched(study) else PAGES[1:]
    laplace = ("laplace",) if Kind.CELLS in dict(choice.plan.kinds).values() else ()
    drawn = ("ball" if pure else "gaussian", *laplace)
    return {
        "guarantee": question.guarantee(session, pages, mechanisms=drawn),
        "method": "doubly robust score with public covariates",
        "releases": _releases(choice.plan, pure),
        "not_covered": _not_covered(study),
        "details": {"rows": len(choice.rows.z), "features": len(choice.rows.order) - 1} | details,
        "assumptions": design_says(study) if study.unconfounded else _assumes(choice.rows),
    }


def _assumes(rows: PublicRows) -> LinearScores:
    """Return that either model is linear in the features."""
    squares, products = (bool((rows.order == one).any()) for one in (CURVES, PRODUCTS))
    return LinearScores(False, squares, products)


_WORDS = PLACE_WORDS | {
    "models": "sums of features with treatment and with outcomes of both arms",
    "score": "sums of scores and of their squares",
    "effects": "sums of functions of covariates with scores, and of squared scores",
}


def _releases(plan: Plan, pure: bool) -> tuple[tuple[str, str], ...]:
    own = "l2-ball noise" if pure else "Gaussian noise"
    return tuple(
        (
            _WORDS[name],
            f"{part:.3g} of the budget; {own if name in ('models', 'effects') else 'Laplace noise'}",
        )
        for name, part in plan.parts.items()
    )


def _not_covered(study: Study) -> tuple[Fact, ...]:
    if study.unconfounded:
        return Caveat.CLAMPING, Caveat.CLIPPED_SCORES
    models = Caveat.UNDECLARED_COVARIATES, Caveat.OTHER_THAN_FEATURES
    return (*models, Caveat.CLAMPING, Caveat.CLIPPED_SCORES, Caveat.COVERAGE_MEASURED)


# Means of several arms where a row's arm and outcome are private together, covariates being public.
#
# A row is in one arm: a replaced pair moves the sums of two arms at most, however many there are.


# Proof: pair_moments.proof.md, pair_scores.proof.md
def pair_arms(session: BaseSession, question: Question) -> ArmsResult:
    """Return the private means of all arms; covariates and the order of rows are public."""
    table, (question, choice) = session.table, asked(session, question)

    def compute(gate: Gate) -> Facts:
        return Facts(
            provenance(session, question, choice, {}),
            means=released_arms(gate, table, choice, question.level),
        )

    return settled(ArmsResult, session, question, choice.plan, compute, said={"question": "arms"})


def released_arms(gate: Gate, table: Table, choice: Choice, level: float) -> tuple[Effect, ...]:
    """Return what everybody's mean outcome would be in each arm: place, models and scores, each released once."""
    study, spread = table.study, place_of(gate, table)
    numbers = arm_numbers(gate, table, choice, spread)
    found, means = release_scores(gate, table, choice, numbers, spread), []
    low, high = map(float, study.outcome_range)
    for label, one, number in zip(study.treatment_labels, found, numbers, strict=True):
        size, _ = Target.of(Estimand.ATE, number.models.propensity).sizes(number.models.propensity)
        known = with_rare_events(one.uncertainty, study.outcome_range, (size,))
        means.append(Effect(label, Linear((low + high) / 2 + one.estimate, known, (low, high)), level))
    return tuple(means)


def arm_numbers(gate: Gate, table: Table, choice: Choice, spread: Spread) -> list[Sought]:
    """Return what scores tell of every arm beside all others together, from one vector for all of them."""
    rows, arms, study = choice.rows, len(table.study.treatment_labels), table.study
    released = gate.release_vector(
        "models",
        lambda: arm_sums(rows, table.arm, arms, table.outcome, spread.place),
        pair_sensitivity(rows),
    )
    inside, outcomes = released.floats().reshape(2, arms, -1) / rows.scale
    noise, everyone, found = released.variance / rows.scale**2, np.arange(table.rows), []
    for arm in range(arms):
        values = np.stack([inside[arm], outcomes[arm], outcomes.sum(axis=0) - outcomes[arm]])
        sums = Sums(values, np.outer((1.0, 1.0, arms - 1.0), noise))
        models = fit_models(
            rows, sums, spread.centre, spread.reach, spread.sd, None, study.randomised is True
        )
        target = Target.of(Estimand.ATE, models.propensity).of_arm(0)
        found.append(Sought(everyone, target, models, ARM_SCORES, arm))
    return found
