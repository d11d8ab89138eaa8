"""Which features private pairs are adjusted for, and how the privacy budget is split over the releases.

Both are chosen from public numbers alone. For every set of features and every split the squared length of the
interval is expected to be about

    sampling + noise + products + curves,

in squares of the half-width of outcomes, with `sampling` the variance over people, `noise` that of the
released scores, `products` what errors of the propensity and outcome models together make of the doubly
robust score (its bias is second order in them), and `curves` what features that are left out do. The richest
features are taken whose length is about the shortest; where products would exceed sampling by much, the
question is refused.

In: public covariates, numbers of rows, arms and outcomes, the budget. Out: a `Choice` of features and a plan,
which names the releases and the part of the budget that each pays.

Nothing private is read, so that the choice costs nothing; whatever is chosen, the parts add up to the budget.
Numbers of this module are guesses that steer choices only; they were set on designs of
`experiments/third_level`, and privacy does not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import exp, log, sqrt

import numpy as np

from counterveil.data import Study
from counterveil.errors import refusal
from counterveil.estimators.outcome_place import PLACES
from counterveil.estimators.pairs.features import INTERACTIONS, LINEAR, NONLINEAR, PairFeatures, feature_sets
from counterveil.estimators.pairs.limits import MODEL_PARTS, PLACE_PART
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget
from counterveil.rows.pairs.moments import TREATED, pair_sensitivity
from counterveil.rows.public import PublicRows
from counterveil.session import Kind, Plan

# The richest features are taken whose expected length is at most this many times the shortest.
_LONGER = 1.05
# The supposed variance of outcomes, in squares of their half-width.
_SPREAD = 0.2
# Variances of events that are common and rare, in the same: expected lengths are averaged in proportion.
_EVENTS = (1.0, 0.04)
# The supposed mean square of inverse propensity weights, and the largest of them.
_MEAN_SQUARED_WEIGHT = 5.5
LARGEST_WEIGHT = 5.0
# The supposed curvature of a logistic model, e (1 - e).
_CURVATURE = 0.2
# Supposed variances that covariates, and then curves and products, explain: of log odds, and of mean
# outcomes.
_SIGNAL = (0.6, 0.1), (0.06, 0.01)
# How far the two models are supposed to be aligned.
_ALIGNMENT = 0.5
# The supposed squared coefficient of the constant: it is not shrunk.
_CONSTANT_SIGNAL = 10.0
# The treatment's penalty is so many times less than its error calls for: what it leaves is confounding.
_TREATED_PENALTY = 4
# Searched outcomes' scores reach so much farther.
_SEARCHED_FARTHER = 1.25
# Most that products of both models' errors may be expected to be beside the sampling error, squared.
_MOST_PRODUCTS = 1.5


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What the expected error depends on beside features, plan and outcome variance.

    Attributes
    ----------
    unconfounded : bool
        Whether the design fixes propensities.
    curves_omitted : bool
        Whether richer features exist that this set leaves out.
    sensitivity : Fraction
        Largest Euclidean change of the sums that models are fitted to, when one row's treatment and outcome change.
    sums : int
        Released sums per feature.
    effects : int
        Effects (of groups) that share the rows.
    arms_per_pair : float
        Arms over two: with more arms each comparison has fewer rows.
    outcomes : int
        Outcomes that share the release.
    """

    unconfounded: bool
    curves_omitted: bool
    sensitivity: Fraction
    sums: int
    effects: int
    arms_per_pair: float
    outcomes: int


def _coefficient_variances(
    features: PairFeatures, plan: Plan, facts: PublicFacts, outcome_variance: float
) -> tuple[Floats, Floats]:
    """Return the variances of unshrunk treatment and outcome coefficients, shape (p,): privacy noise and sampling."""
    p = features.z.shape[1]
    ball = facts.sums * p + 1 if plan.kind("models") is Kind.VECTOR else 1
    noise_sd = float(facts.sensitivity / dict(plan.amounts)["models"])
    noise = facts.outcomes * noise_sd**2 * ball / features.scale**2
    weighted_squares = np.array([features.weight @ column**2 for column in features.z.T])
    curvature = _CURVATURE * weighted_squares / facts.arms_per_pair
    treatment = noise / facts.outcomes / float(TREATED) ** 2 / curvature**2 + 1 / curvature
    outcome = noise / (2 * curvature) ** 2 + outcome_variance / (2 * curvature)
    return treatment, outcome


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Features and the split of the budget over the releases, with expected squared errors; all public.

    Attributes
    ----------
    features : PairFeatures
        Features of every row.
    plan : Plan
        Releases, and what each pays.
    sampling, products : float
        Expected squared errors: by sampling, and by products of both models' errors.
    length : float
        Expected squared length of the interval, in squares of the half-width of outcomes.
    """

    features: PairFeatures
    plan: Plan
    sampling: float
    products: float
    length: float

    @property
    def is_feasible(self) -> bool:
        """Whether products of the models' errors are expected to be small enough."""
        return self.products <= _MOST_PRODUCTS * self.sampling


def choices(
    public: PublicRows, budget: Budget, *, effects: int = 1, outcomes: Sequence[Study] | None = None
) -> list[Choice]:
    """Return the best split for each set of features, the plainest first; reads covariates alone.

    Parameters
    ----------
    public : PublicRows
        Public columns of the rows.
    budget : Budget
        What the answer may cost.
    effects : int
        Effects of groups without a row in common.
    outcomes : sequence of Study, optional
        The study with one outcome each, if there are several.
    """
    searched_outcomes = [searched(study) for study in outcomes or (public.study,)]
    arms = len(public.study.arms or (0, 1))
    sums = 2 * len(searched_outcomes) if arms == 2 else 2 * arms
    sums += int(arms == 2 and known_propensities(public) is None)
    # Pure noise hides curves; in parts of the rows even covariates may be hidden.
    hidden = ((NONLINEAR, INTERACTIONS) if budget.pure else ()) + ((LINEAR,) if effects > 1 else ())
    # Outcomes in [0, 1] may be common or rare events: both count, in proportion.
    variances = (_SPREAD,) if any(searched_outcomes) else (_SPREAD, *_EVENTS)
    plans = [
        plan_of(budget, models, searched_outcomes, vector=vector)
        for models, vector in product(MODEL_PARTS, _vectors(budget))
    ]
    candidates = feature_sets(public)
    best = []
    for candidate in candidates:
        features = replace(candidate, hidden=hidden)
        facts = PublicFacts(
            unconfounded=public.study.unconfounded,
            curves_omitted=features.order.max() == LINEAR < candidates[-1].order.max(),
            sensitivity=pair_sensitivity(features),
            sums=sums,
            effects=effects,
            arms_per_pair=arms / 2,
            outcomes=len(searched_outcomes),
        )
        splits = []
        for plan in plans:
            cases = [_expected(features, plan, facts, variance) for variance in variances]
            geometric_mean = exp(sum(log(case.length) for case in cases) / len(cases))
            splits.append(replace(cases[0], length=geometric_mean))
        best.append(min(splits, key=lambda choice: (not choice.is_feasible, choice.length)))
    return best


def chosen(
    public: PublicRows, budget: Budget, *, effects: int = 1, outcomes: Sequence[Study] | None = None
) -> Choice:
    """Return the richest features of about the shortest expected length; refuses where errors would exceed sampling.

    Arguments are those of `choices`.
    """
    candidates = choices(public, budget, effects=effects, outcomes=outcomes)
    if not candidates:
        raise refusal("CV-P407", features=len(public.study.covariates), rows=public.rows)
    feasible = [choice for choice in candidates if choice.is_feasible]
    if not feasible:
        plainest = candidates[0]
        raise refusal(
            "CV-P408",
            features=plainest.features.z.shape[1] - 1,
            budget=budget,
            rows=public.rows,
            ratio=f"{sqrt(plainest.products / plainest.sampling):.2g}",
        )
    shortest = min(choice.length for choice in feasible)
    return next(choice for choice in reversed(feasible) if choice.length <= _LONGER**2 * shortest)


def searched(study: Study) -> bool:
    """Whether the place of outcomes is looked for: not that of events."""
    low, high = study.outcome_range
    return low != 0 or high != 1


def known_propensities(public: PublicRows) -> Floats | None:
    """Return every row's probability of treatment where the design says it."""
    share = public.study.treated_share
    return public.score if share is None else np.full(public.rows, float(share))


def _vectors(budget: Budget) -> tuple[Kind, ...]:
    """Return the noises that models may have: pure noise of few numbers is the smaller one, whatever delta is."""
    return (Kind.VECTOR,) if budget.pure else (Kind.NORMAL, Kind.VECTOR)


def plan_of(
    budget: Budget,
    models: Fraction,
    outcomes_searched: Sequence[bool],
    *,
    last: str = "score",
    vector: Kind | None = None,
) -> Plan:
    """Return the split: places that are searched, the models' part of the rest, and the score, or a vector.

    Of several outcomes places are named by their number.

    Parameters
    ----------
    budget : Budget
        What is split.
    models : Fraction
        The models' part of what places leave.
    outcomes_searched : sequence of bool
        For every outcome whether its place is searched.
    last : str
        The last release: "score", or a vector of another name.
    vector : Kind, optional
        Noise of vectors; by default the first that the budget allows.
    """
    rest = 1 - PLACE_PART if any(outcomes_searched) else Fraction(1)
    several = len(outcomes_searched) > 1
    ends = [
        f" {number}" if several else "" for number, searched in enumerate(outcomes_searched, 1) if searched
    ]
    shares = {name + end: PLACE_PART * share / len(ends) for end in ends for name, share in PLACES.items()}
    shares |= {"models": models * rest, last: (1 - models) * rest}
    vector = vector or _vectors(budget)[0]
    # Normal noise of places and of vectors is paid for together: squares of mus add up, with one delta.
    place_kind = Kind.NORMAL if vector is Kind.NORMAL else Kind.CELLS
    kinds = {name + end: place_kind for end in ends for name in PLACES}
    kinds |= {"models": vector, last: Kind.CELLS if last == "score" else vector}
    return Plan.split(budget, shares, "laplace", kinds)


def _expected(features: PairFeatures, plan: Plan, facts: PublicFacts, outcome_variance: float) -> Choice:
    """Return the expected squared errors of a plan.

    With e_t, e_y the squared errors of the treatment and outcome coefficients (shrunk by assumed signals g_t,
    g_y) and r their assumed alignment, the bias of the doubly robust score has the squared expectation

        products = e_t . e_y + (r sum sqrt(g_t g_y) l_t l_y)^2,      l = share that shrinkage leaves out,

    and the squared length of the interval is about sampling + noise + products + curves.
    """
    n = len(features.z) / facts.effects / facts.arms_per_pair
    treatment_error, outcome_error = _coefficient_variances(features, plan, facts, outcome_variance)
    treatment_sizes, unit_outcome_sizes = _SIGNAL
    outcome_sizes = tuple(size * outcome_variance / _SPREAD for size in unit_outcome_sizes)
    treatment_signal = _assumed_squares(features, treatment_sizes)
    outcome_signal = _assumed_squares(features, outcome_sizes)
    penalised_error = treatment_error / _TREATED_PENALTY
    treatment_left = penalised_error / (penalised_error + treatment_signal)
    outcome_left = outcome_error / (outcome_error + outcome_signal)
    aligned = _ALIGNMENT * np.sqrt(treatment_signal * outcome_signal) * treatment_left * outcome_left
    line_bias = float(aligned[features.order == LINEAR].sum())
    curve_bias = float(aligned[features.order > LINEAR].sum())
    if facts.curves_omitted:
        curve_bias = _ALIGNMENT * sqrt(treatment_sizes[1] * outcome_sizes[1])
    shrunk_treatment = treatment_error * treatment_signal / (treatment_error + treatment_signal)
    shrunk_outcome = outcome_error * outcome_signal / (outcome_error + outcome_signal)
    sampling = _MEAN_SQUARED_WEIGHT * outcome_variance / n
    if facts.unconfounded:
        # Known propensities leave no bias; mean outcomes that are not known enlarge the scores.
        products = curves = 0.0
        worse = sampling * float(shrunk_outcome.sum()) / outcome_variance
    else:
        products = float(shrunk_treatment @ shrunk_outcome) + line_bias**2
        curves = (line_bias + curve_bias) ** 2 - line_bias**2
        worse = 0.0
    epsilon = float(dict(plan.amounts)["score"])
    clip = LARGEST_WEIGHT * (_SEARCHED_FARTHER if len(plan.amounts) > 2 else 1.0)
    noise = 8 * (clip * facts.outcomes / (epsilon * n)) ** 2 + worse
    return Choice(
        features=features,
        plan=plan,
        sampling=sampling,
        products=products,
        length=sampling + noise + products + curves,
    )


def _assumed_squares(features: PairFeatures, sizes: tuple[float, ...]) -> Floats:
    """Return squared coefficients that features are supposed to have: of covariates, and of all others together."""
    linear = features.order == LINEAR
    richer = features.order > LINEAR
    squares = np.full(len(features.order), _CONSTANT_SIGNAL)
    squares[linear] = sizes[0] / max(int(linear.sum()), 1)
    squares[richer] = sizes[1] / max(int(richer.sum()), 1)
    return squares
