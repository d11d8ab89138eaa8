"""Whether a site's answer fits the question: everything that follows from the question is recomputed.

Nothing is read off a reply that follows from public numbers. Sensitivities of a difference in means follow from both
arms, those of a trial's contrast from the number of rows and the share treated. Weights of other averages of private
outcomes are not known, but none is negative and they add up to one. Scores of private records are bounded by released
numbers: methods that locate outcomes in their range may have less noise than any rule on the range allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import isclose, isfinite, sqrt
from typing import Any, cast

import numpy as np

from counterveil.bounded_reading import Fields, UnreadableError
from counterveil.data import Range, Study
from counterveil.data.layout import Layout, MergedLayout
from counterveil.data.study_documents import column_of, is_trial, propensity_of
from counterveil.errors import CounterveilError, refusal
from counterveil.estimators.moments.regression import Columns, RowPlan
from counterveil.federation.messages import MOST_SITES, SUMMED, Ask, Head, Reply, SiteRequest
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans, rare_events
from counterveil.inference.clusters import t_factor
from counterveil.inference.convolution import half_width
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import WeightedSum
from counterveil.inference.noisy_ratio import NoisyRatio, RatioDifference
from counterveil.inference.pooling import other_variance
from counterveil.inference.quotient import DIFFERENCE
from counterveil.inference.survival.tables import NoisyTables
from counterveil.inference.uncertainty import Uncertainty
from counterveil.inference.variance_inflation import HEADROOM
from counterveil.numerics.arrays import sqrt_up
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.public_choices import LEAST_SHARE, LEFT_OF_TREATMENT
from counterveil.numerics.running_sums import SUMS, Form
from counterveil.privacy import Budget, Estimand, Proof, Unit, exact
from counterveil.privacy.caveats import (
    OPENING,
    ClippedOutliers,
    Fact,
    FoldModels,
    KnownScore,
    LearnerBias,
    LinearIn,
    LinearScores,
    NotAdjusted,
    NotExpressed,
    OtherFunctions,
    ParallelTrends,
    SitesLeftOut,
    SitesWithoutAnswer,
    Target,
)
from counterveil.questions.groups import group_names, layout_of
from counterveil.questions.pooled import FAR_OUTSIDE, read_answer, read_result, rows_of
from counterveil.results.arms import ArmsResult, OutcomesResult
from counterveil.results.effect import Effect, Linear, noise_from_dict, noise_to_dict
from counterveil.results.groups import GroupsResult
from counterveil.results.measures import OF_MEANS
from counterveil.results.regression import Moments, parse_formula
from counterveil.results.result import MeasureResult, Result, difference_result
from counterveil.results.survival import SurvivalResult
from counterveil.rows.linear.sensitivity import ArmMean, MeanContrast
from counterveil.rows.moments.cell_sums import SCORE_TERMS
from counterveil.rows.moments.centred_contrast import CentredContrast, mean_of_everyone
from counterveil.rows.pairs.sensitivity import LEAST_PROPENSITY, MOST_LEFT, least_part, score_amounts
from counterveil.rows.time_tables import TimeTables
from counterveil.settings.methods import BLOCKS, MOST_BIAS

# The facts with which an answer may begin: each method has its own, and a site can say no others.
#
# Every rendering of a pooled result repeats them before any number.


# Nothing, or one of a few facts.
_Facts = tuple[Fact | None, ...]
_SILENT: _Facts = (None,)
_LEARNERS = ("ols", "aipw")  # the others are functions, which no message carries
_MODELS: _Facts = (*(LinearScores(*said) for said in product((False, True), repeat=3)),)


def fits(ask: Ask, declaration: Mapping[str, Any], result: Any) -> bool:
    """Return whether a result begins with facts that the method can say of the declared study; no question trims."""
    allowed = _allowed(ask, declaration)
    opening = all(
        getattr(result, name, None) in allowed.get(name, _SILENT)
        or _weighted(ask, declaration, name, getattr(result, name, None))
        for name in OPENING
    )
    return opening and all(_public(one, ask) for one in result.not_covered)


def _weighted(ask: Ask, declaration: Mapping[str, Any], name: str, fact: Fact | None) -> bool:
    """Return whether a fact says what weights that are made of public columns assume."""
    of_weights = Unit(ask.protects).treatment_public and ask.method in ("auto", "weighting")
    if not of_weights or name != "assumptions":
        return False
    score = propensity_of(declaration)
    return isinstance(fact, LinearIn) if score is None else fact == KnownScore(score)


def _public(fact: Fact, ask: Ask) -> bool:
    """Return whether a caveat is one of a single table, with no text that a site could have chosen."""
    if isinstance(fact, ClippedOutliers):
        # Of columns, whose names are compared with the declaration.
        return ask.question == "moments"
    if isinstance(fact, LearnerBias):
        return fact.learner in _LEARNERS
    if isinstance(fact, OtherFunctions):
        return {*fact.balanced} <= {*BLOCKS}
    return not isinstance(fact, ParallelTrends | SitesLeftOut | SitesWithoutAnswer | NotExpressed)


def _allowed(ask: Ask, declaration: Mapping[str, Any]) -> dict[str, _Facts]:
    if Unit(ask.protects).treatment_public:
        return {}
    if Unit(ask.protects).covariates_public:
        return {"assumptions": _of_pairs(declaration)}
    known = _of_records(ask, declaration)
    if ask.method != "auto":
        return known.get(ask.method, {})
    found: dict[str, _Facts] = {}
    for facts in known.values():
        found = {name: (*_SILENT, *found.get(name, ()), *facts.get(name, ())) for name in {*found, *facts}}
    return found


def _of_pairs(declaration: Mapping[str, Any]) -> _Facts:
    """Return what an effect of private pairs may assume: a design, or one of its models."""
    score = propensity_of(declaration)
    if score is not None:
        return (KnownScore(score),)
    return _SILENT if is_trial(declaration) else _MODELS


def _of_records(ask: Ask, declaration: Mapping[str, Any]) -> dict[str, dict[str, _Facts]]:
    """Return what methods for private records say by name: what intervals are for, depend on and assume."""
    trial = is_trial(declaration)
    kappa = ask.settings.get("kappa")
    bounded = isinstance(kappa, int | float) and not isinstance(kappa, bool)
    bound = float(kappa or 0.0) if bounded else 0.0
    return {
        "trial": {"interval_target": _SILENT if trial else (Target.CONFOUNDED_DIFFERENCE,)},
        "doubly_robust": {
            "condition": (None, NotAdjusted(bound)) if bounded else _SILENT,
            "assumptions": _SILENT if trial else (None, *_MODELS),
        },
        "sample_and_aggregate": {"assumptions": _SILENT if trial else (None, *FoldModels)},
    }


_WHAT = "the declaration"
# Weights of an arm add up to one, so some outcome has a weight of 2/n or more where only outcomes are private. Where
# records are, estimates may be released in parts: half the width over n is below what any of them adds.
_LEAST_STEPS = {Unit.OUTCOME: Fraction(2), Unit.RECORD: Fraction(1, 2)}


@dataclass(frozen=True, slots=True)
class Expected:
    """The public facts that an answer must repeat, and the range it must lie in."""

    treatment: str
    outcome: str
    low: Fraction
    high: Fraction
    least_propensity: float = LEAST_PROPENSITY

    @classmethod
    def of(cls, declaration: Mapping[str, Any]) -> Expected:
        """Return them from a declaration of one outcome, or raise CV-P600."""
        (declared,) = ranges_of(judgeable(declaration, "ate")).values()
        return declared

    @property
    def width(self) -> Fraction:
        """Width of the outcome's range: no effect is larger."""
        return self.high - self.low

    @property
    def limits(self) -> tuple[float, float]:
        """What an effect can be at all."""
        return -float(self.width), float(self.width)

    def least_noise(self, ask: Ask, rows: int) -> float:
        """Return the variance of the least noise that an effect of so many rows can have at the budget asked for."""
        if Unit(ask.protects) is Unit.TREATMENT_AND_OUTCOME:
            amount = score_amounts(budget_of(ask), self.searched)[0]
            return 2 * float(self.least_step(ask, rows) / amount) ** 2
        step = _LEAST_STEPS[Unit(ask.protects)] * self.residual_widths(ask)[0] / rows
        facts = {"mechanism": "staircase", "sensitivity": str(step), "epsilon": str(budget_of(ask).epsilon)}
        pure = float(noise_from_dict(facts).variance)
        mu = most_mu(ask)
        # At a large delta normal noise is the smaller one.
        return pure if mu is None else min(pure, float(step / mu) ** 2 / SLACK**2)

    @property
    def searched(self) -> bool:
        """Whether outcomes are looked for in their range where pairs are protected: not those of events."""
        return self.low != 0 or self.high != 1

    def least_step(self, ask: Ask, rows: int) -> Fraction:
        """Return the least that a pair of treatment and outcome moves an effect of so many rows."""
        return least_part(Estimand(ask.estimand), self.searched) * self.width / rows

    def residual_widths(self, ask: Ask) -> tuple[Fraction, Fraction]:
        """Return the least and the largest width of what is averaged: residuals where a prediction is subtracted."""
        bounds = ask.settings.get("residual_range")
        if isinstance(bounds, list | tuple) and len(bounds) == 2:
            try:
                low, high = (exact(bound, "residual_range") for bound in bounds)
            except CounterveilError:
                return self.width, self.width
            if low < high:
                return min(self.width, high - low), max(self.width, high - low)
        return self.width, self.width


def _least_propensity(study: Study) -> float:
    """Return how near to 0 or 1 a propensity may be: as models are cut, or as the design says."""
    ends = [] if study.treated_share is None else [study.treated_share]
    domain = None if study.score is None else study.covariates[study.score]
    ends += [domain.lo, domain.hi] if isinstance(domain, Range) else []
    return float(min([Fraction(LEAST_PROPENSITY), *(min(end, 1 - end) for end in ends)]))


def budget_of(ask: Ask) -> Budget:
    """Return the budget that a question asks for."""
    return Budget(ask.epsilon, ask.delta)


def most_mu(ask: Ask) -> Fraction | None:
    """Return the largest mu of Gaussian noise at the budget asked for, None where delta is zero."""
    budget = budget_of(ask)
    return None if budget.pure else mu_of(budget.epsilon, budget.delta)


# An honest answer lies beyond its reach once in a thousand million studies.
NEVER = 1e-9
FEWEST_IN_ARM, MOST_ROWS = 2, 10**12
# Released sampling variances are rounded to a grid, and a mu is a fraction below the exact one.
SLACK = 1 + 1e-9

NOT_AN_ANSWER = "it is not an answer to this request"
NO_RESULT = "it is not a result with a single effect, or a number is out of range"
OTHER_QUESTION = "it has a different treatment, outcome, estimand, measure or confidence level"
OTHER_PRIVACY = "its guarantee or its cost is not the one requested"
OTHER_FACTS = "it says something of itself that the requested method does not say"
OTHER_LIMITS = "its bounds are not those of the declared outcome"
OUT_OF_REACH = "its estimate lies beyond what the declared outcome and its noise allow"
OTHER_NOISE = "its noise distribution or its variance does not follow from the question"
TOO_MANY_ROWS = "it claims more rows than the site is known to have, or none"
NO_HEAD = "it does not say where the site's ledger ends"
WENT_BACK = "the site's ledger was rolled back: it ends before an entry that an earlier answer named"
COPY = "it is a copy of another site's answer"


class SetAsideError(Exception):
    """Carries the reason for which an answer is not pooled; the text is ours."""


def farthest(noise: NoiseDistribution | None) -> float:
    """Return how far a noise goes, once in a thousand million studies apart."""
    return 0.0 if noise is None else half_width(0.0, noise, NEVER)


# The amount of privacy that the noise of each mechanism names.
_AMOUNTS = {
    **dict.fromkeys(("staircase", "laplace", "summed_laplace"), "epsilon"),
    **dict.fromkeys(("gaussian", "summed_gaussian"), "mu"),
}
# What is a fraction at a site and a float in its message agrees to this part.
NEAR = 1e-6
# No release has a smaller part of the budget, unless the question says so.
LEAST_PART = Fraction(1, 50)


def require(condition: bool, reason: str = OTHER_NOISE) -> None:
    """Raise the reason for setting a site aside unless a condition holds; most are on its noise."""
    if not condition:
        raise SetAsideError(reason)


def is_plain(noise: Any) -> bool:
    """Return whether the scale of a noise follows from a sensitivity that nothing private is in."""
    return noise_to_dict(noise).get("mechanism") in _AMOUNTS


def facts_of(noise: Any) -> Mapping[str, Any]:
    """Return what is said of a noise, one whose scale follows from a sensitivity."""
    require(is_plain(noise))
    return noise_to_dict(noise)


def sensitivity_of(noise: Any) -> Fraction:
    """Return the sensitivity that a noise is for."""
    return Fields("mechanism", facts_of(noise)).rational("sensitivity", 0, 1e60)


def check_budget(ask: Ask, noises: Sequence[Any], spare: Fraction = Fraction(0)) -> Fraction:
    """Return what noises leave of the budget asked for, in epsilon or mu squared.

    More than all of it is refused, less than a `spare` part left, and less than the least part for one of them.
    """
    facts = [facts_of(noise) for noise in noises]
    budget, mu = budget_of(ask), most_mu(ask)
    # Where there is a delta, pure noise may be the smaller one.
    chosen = (SUMMED if ask.summed else ("staircase", "gaussian"))[: 1 + (mu is not None)]
    allowed = chosen if ask.mechanism is None or ask.summed else (ask.mechanism,)
    names = {str(one["mechanism"]) for one in facts}
    require(len(names) == 1 and names <= set(allowed))
    amount = _AMOUNTS[names.pop()]
    parts = [Fields("mechanism", one).rational(amount, 0, 1e9) for one in facts]
    if amount == "mu":
        assert mu is not None
        whole = mu**2
        parts = [part**2 for part in parts]
        slack = whole * Fraction(SLACK - 1)
    else:
        whole = budget.epsilon
        slack = Fraction(0)
    left = whole - sum(parts)
    least = Fraction(0) if "variance_share" in ask.settings else LEAST_PART
    require(left >= spare * whole - slack and min(parts) >= least * (whole - slack))
    return max(left, Fraction(0))


def noise_like(noise: Any, sensitivity: Fraction, amount: Fraction) -> Any:
    """Return noise of the same mechanism for another sensitivity and an amount of epsilon, or of mu squared."""
    name = str(facts_of(noise)["mechanism"])
    paid = str(Fraction(sqrt(amount)) if _AMOUNTS[name] == "mu" else amount)
    return noise_from_dict({**facts_of(noise), "sensitivity": str(sensitivity), _AMOUNTS[name]: paid})


def check_weighted(ask: Ask, width: Fraction, known: Uncertainty, rare: float = 0.0) -> Fraction:
    """Return how far one outcome moves an average of outcomes in a range of this width, after checking what follows.

    Weights are not negative and add up to one in each arm. None is above one, and the sum of their squares is at most
    the largest: that bounds the largest variance, to which `rare` was added.
    """
    require(known.extra == known.bias == known.ball_variance == 0)
    require(known.variance_noise is not None or known.variance == known.variance_cap)
    check_budget(ask, [known.noise] if known.variance_noise is None else [known.noise, known.variance_noise])
    step = sensitivity_of(known.noise)
    require(step <= width * Fraction(1 + NEAR))
    most = (1 + _bias_of(ask) ** 2) * float(width * step) + rare
    require(known.variance_cap <= most * (1 + NEAR))
    return step


def _bias_of(ask: Ask) -> float:
    """Return the most that intervals of the method allow for bias, in standard errors."""
    said = ask.settings.get("bias")
    return float(said) if isinstance(said, int | float) else MOST_BIAS


def check_place(value: float, ends: tuple[float, float], margin: float) -> None:
    """Check that a number is no farther from where it can be than its error goes."""
    require(ends[0] - margin <= value <= ends[1] + margin, OUT_OF_REACH)


def squared_noise(estimate: float, known: Uncertainty, rows: float) -> float:
    """Return how far noise moves a variance that is a second moment less the square of a noisy estimate."""
    noise = farthest(known.noise)
    return (2 * abs(estimate) + noise) * noise / rows


def chance_of_treatment(off: float, share: float, rows: int) -> float:
    """Return the most that is taken off a contrast's variance for chance in who was treated.

    `off` is how far the centre of the outcomes can be from where an error in the share would do no harm.
    """
    return off**2 / (share * (1 - share)) / rows


def check_variance(known: Uncertainty, more: float = 0.0, less: float = 0.0) -> None:
    """Check that a sampling variance lies where outcomes and its noise can put it.

    It may lie `more` beyond, on either side, and be another `less` below zero.
    """
    beyond = farthest(known.variance_noise) + 1e-9 * known.variance_cap + more
    require(-beyond - less <= known.variance <= known.variance_cap + beyond)


# Methods for private records whose scores range over the outcome's whole range, whatever the rows are.
# What outcomes less a prediction range over, beside the range of outcomes: the prediction is cut to half of the range
# on either side, and its fit takes away at most half of the effect; one that is all noise may seem to add to it.
_ADJUSTED = 0.5, 4.0
# The largest variance of an average of bounded scores is a quarter of this; strata count some rows more than once.
_MOST_CAP = 4
# Scores of private pairs, in parts of weights over the least propensity; their squares and largest variance beside the
# squared sensitivity: rows vary up to twice as much as around models that were fitted to them.
_MOST_CLIP, _MOST_SQUARES, _MOST_FITTED = 4.0, 2 * sqrt(2.0), 2.0
# No mean of scores has a sampling error of so many widths of the outcome's range.
_MOST_SCORE = 10.0
# An unadjusted contrast has the largest bias for a given bound on confounding where an arm is as small as allowed.
_PER_KAPPA = 1 / (LEFT_OF_TREATMENT * sqrt(LEAST_SHARE * (1 - LEAST_SHARE)))


def check_difference(ask: Ask, declared: Expected, result: Result) -> None:
    """Raise the reason for setting a site aside whose difference does not follow from the question."""
    _check_amounts(ask, result.uncertainty)
    if Unit(ask.protects) is Unit.TREATMENT_AND_OUTCOME:
        less = 0.0
        more = _check_pairs(ask, declared, result)
    elif Unit(ask.protects) is Unit.RECORD:
        less = _check_records(ask, declared, result)
        rows = _rows_of_scores(ask, result)
        # The second moment is one about a centre that lies in the range.
        about = abs(result.estimate) + 2 * float(declared.width)
        more = squared_noise(about, result.uncertainty, rows)
    else:
        less = more = 0.0
        # Sites of a sum have arms of their own, of which it is a weighted mean.
        if ask.method == "difference_in_means" and not ask.summed:
            _check_plain(declared, result)
        else:
            _check_weighted(ask, declared, result)
    _check_size(declared, result)
    check_variance(result.uncertainty, more, less)


def _check_amounts(ask: Ask, known: Uncertainty) -> None:
    """Check that no noise is for a larger epsilon or mu than was asked for."""
    epsilon = budget_of(ask).epsilon
    mu = most_mu(ask)
    for facts in map(noise_to_dict, (known.noise, known.variance_noise)):
        if "epsilon" in facts:
            require(Fields("mechanism", facts).rational("epsilon", 0, 1e9) <= epsilon)
        if "mu" in facts:
            require(mu is not None and Fields("mechanism", facts).rational("mu", 0, 1e9) <= mu * SLACK)


def _check_plain(declared: Expected, result: Result) -> None:
    """Check a difference in means: arms give the sensitivities, and these the noise and the largest variance."""
    counts = Fields("details", result.details)
    known = result.uncertainty
    treated, control = (counts.whole(arm, FEWEST_IN_ARM, MOST_ROWS) for arm in ("treated", "control"))
    wanted = MeanContrast(declared.width, treated, control)
    rare = rare_events((declared.low, declared.high), (treated, control))
    require(treated + control == rows_of(result) and result.independent_variance)
    require(known.variance_noise is not None or known.variance == known.variance_cap)
    require(known.extra_at(NEVER) == known.bias == 0)
    _check_mean(wanted, known, rare)


def _check_mean(wanted: MeanContrast | ArmMean, known: Uncertainty, rare: float) -> None:
    """Check a plain mean of one arm, or a difference of two: sizes give the noise and the largest variance."""
    require(sensitivity_of(known.noise) == wanted.estimate)
    require(isclose(known.variance_cap, float(wanted.variance_cap) + rare, rel_tol=1e-12))
    require(known.variance_noise is None or sensitivity_of(known.variance_noise) == wanted.variance)


def _check_weighted(ask: Ask, declared: Expected, result: Result) -> None:
    """Check a difference of two averages of private outcomes: some weight is 2/n or more, and none is above one."""
    rows, (narrow, wide) = rows_of(result) or 1, declared.residual_widths(ask)
    step = sensitivity_of(result.uncertainty.noise)
    require(2 * narrow <= step * rows * Fraction(1 + NEAR))
    largest = float(step / narrow)
    # Effective sizes are no less than one over the largest weight.
    rare = rare_events((declared.low, declared.high), (1 / largest, 1 / largest))
    check_weighted(ask, wide, result.uncertainty, rare)
    # Squares of an arm's weights add up to one over its size at least.
    require(result.uncertainty.variance_cap * rows >= float(narrow) ** 2 * (1 - NEAR))


def _check_records(ask: Ask, declared: Expected, result: Result) -> float:
    """Check a difference of private records, and return the most that was taken off its variance."""
    known = result.uncertainty
    rows = rows_of(result) or 1
    require(other_variance(known) > 0)
    _check_bias(ask, declared, result)
    if is_plain(known.noise):
        require(
            known.variance_cap <= _MOST_CAP * float(sensitivity_of(known.noise)) ** 2 * rows + _rare(declared)
        )
    if ask.method == "trial":
        return _check_contrast(ask, declared, result)
    if ask.method == "stratified":
        require(other_variance(known) >= declared.least_noise(ask, rows))
    # Others may fall back to the contrast, which says what share was treated.
    return _chance(result, rows) if "share_treated" in result.details and is_plain(known.noise) else 0.0


def _check_pairs(ask: Ask, declared: Expected, result: Result) -> float:
    """Check an effect of private pairs, and return how far the noise of its scores moves its variance.

    Its noise is that of one score, whose epsilon is one of few and whose clip follows from its sensitivity. Clips reach
    as far as the least weight of any row and no farther than the largest; their middle is inside of them.
    """
    known = result.uncertainty
    rows = rows_of(result) or 1
    width = float(declared.width)
    amounts = score_amounts(budget_of(ask), declared.searched)
    for noise in (known.noise, known.variance_noise):
        facts = facts_of(noise)
        require(facts["mechanism"] == "laplace")
        require(Fields("mechanism", facts).rational("epsilon", 0, 1e9) in amounts)
    step, squares = (float(sensitivity_of(noise)) for noise in (known.noise, known.variance_noise))
    most = _MOST_CLIP * width / declared.least_propensity**2 / rows
    require(float(declared.least_step(ask, rows)) * (1 - NEAR) <= step <= most * (1 + NEAR))
    require(step**2 * (1 - NEAR) <= squares <= _MOST_SQUARES * step**2 * (1 + NEAR))
    require(known.variance_cap <= _MOST_FITTED * step**2 * rows * (1 + NEAR) + _rare(declared))
    require(known.variance_cap >= step**2 / 4 * rows * (1 - NEAR))
    require(known.ball_variance == 0 <= known.bias <= MOST_LEFT * width)
    # Errors of models have no bound where the budget is small; the larger they are, the less the site weighs.
    require(known.extra >= 0)
    return farthest(known.variance_noise)


def _rare(declared: Expected) -> float:
    """Return the most that few events add to a variance, in arms of a person each."""
    return rare_events((declared.low, declared.high), (1.0, 1.0))


def _check_bias(ask: Ask, declared: Expected, result: Result) -> None:
    """Check the bias that an interval holds: it is larger than the range where a bound on confounding is asked for."""
    known = result.uncertainty
    kappa = ask.settings.get("kappa")
    most = 2 * float(declared.width)
    if result.condition is not None and isinstance(kappa, int | float):
        squares = HEADROOM * known.variance_cap * (rows_of(result) or 1) + result.estimate**2
        most += float(kappa) * _PER_KAPPA * sqrt(squares)
    require(known.bias <= most)


def _check_contrast(ask: Ask, declared: Expected, result: Result) -> float:
    """Check a trial's contrast: rows and the share treated bound its sensitivity, which gives all of the rest."""
    known = result.uncertainty
    rows = rows_of(result) or 1
    share = _share(result)
    check_budget(ask, [known.noise, known.variance_noise])
    require(known.bias == known.ball_variance == 0)
    step = float(sensitivity_of(known.noise))
    width = declared.width
    # It moves least where it is centred in the middle, and most at either end.
    middle, *ends = (
        float(CentredContrast(width, rows, share, centre).mean) for centre in (width / 2, Fraction(0), width)
    )
    shorter, longer = _ADJUSTED if "adjusted" in result.details else (1.0, 1.0)
    require(shorter * middle * (1 - NEAR) <= step <= longer * max(ends) * (1 + NEAR))
    sizes = rows * float(share), rows * float(1 - share)
    rare = rare_events((declared.low, declared.high), sizes)
    require(isclose(known.variance_cap, step**2 * rows / 4 + rare, rel_tol=NEAR))
    # The largest square is that of an end of the range of scores, of which one is at least half as long.
    squares = float(sensitivity_of(known.variance_noise))
    require(step**2 / 4 * (1 - NEAR) <= squares <= step**2 * (1 + NEAR))
    _check_extra(ask, declared, result, share)
    return _chance(result, rows)


def _share(result: Result) -> Fraction:
    """Return the share treated as released, held away from 0 and 1."""
    said = Fraction(Fields("details", result.details).number("share_treated", 0, 1))
    require(LEAST_SHARE * Fraction(1 - NEAR) <= min(said, 1 - said))
    return said


def _check_extra(ask: Ask, declared: Expected, result: Result, share: Fraction) -> None:
    """Check what an error in the share adds: no more than its least budget makes."""
    known = result.uncertainty
    rows = rows_of(result) or 1
    whole = most_mu(ask) if "mu" in noise_to_dict(known.noise) else None
    least = LEAST_PART**2 * (budget_of(ask).epsilon if whole is None else whole**2)
    spread = 1 / float(share * (1 - share))
    noise = noise_like(known.noise, Fraction(1, rows), least).variance * spread**2
    width = _ADJUSTED[1] * float(declared.width)
    off = width / 2 + abs(result.estimate)
    return require(known.extra <= noise * (off**2 + width**2 * noise) * (1 + NEAR))


def _chance(result: Result, rows: int) -> float:
    """Return the most that a contrast's variance is less for chance in who was treated."""
    share = Fields("details", result.details).number("share_treated", float(LEAST_SHARE) * (1 - NEAR), 1)
    share = min(share, 1 - float(LEAST_SHARE))
    # The centre is no farther than half of the range of scores, whose length the sensitivity gives.
    width = 2 * share * (1 - share) * float(sensitivity_of(result.uncertainty.noise)) * rows
    off = width / 2 + abs((1 - 2 * share) * result.estimate)
    return chance_of_treatment(off, share, rows)


def _rows_of_scores(ask: Ask, result: Result) -> float:
    """Return how many scores the variance is one of the mean of: those of folds, or of rows."""
    rows = rows_of(result) or 1
    if ask.method not in ("sample_and_aggregate", "auto") or "folds" not in result.details:
        return rows
    folds = Fields("details", result.details).whole("folds", 2, rows)
    # Raised so that normal quantiles are Student's.
    return (folds - 1) / t_factor(folds - 1, 1 - result.level) ** 2


def _check_size(declared: Expected, result: Result) -> None:
    """Check that an estimate lies where declared outcomes and its noise can put it."""
    known = result.uncertainty
    width = float(declared.width)
    sampling = sqrt(min(known.variance_cap, width**2) + known.extra_at(NEVER))
    largest = width + known.bias + half_width(sampling, None, NEVER) + farthest(known.noise)
    require(abs(result.estimate) <= largest, OUT_OF_REACH)


def check_means(ask: Ask, declared: Expected, result: MeasureResult) -> None:
    """Raise the reason for setting a site aside whose arms' means do not follow from the question."""
    means = result.means
    rows = rows_of(result)
    assert rows is not None
    if means is None or means.range != (float(declared.low), float(declared.high)):
        raise SetAsideError(OTHER_LIMITS)
    if isinstance(means, IndependentArmMeans) and Unit(ask.protects) is Unit.OUTCOME:
        _check_apart(ask, declared, result, means, rows)
    elif isinstance(means, JointArmMeans) and Unit(ask.protects) is Unit.RECORD:
        _check_joint(ask, declared, means, rows)
    elif isinstance(means, IndependentArmMeans) and ask.method == "doubly_robust":
        _check_scored(ask, declared, means, rows)
    else:
        raise SetAsideError(OTHER_NOISE)


def _check_apart(
    ask: Ask, declared: Expected, result: MeasureResult, means: IndependentArmMeans, rows: int
) -> None:
    plain = ask.method == "difference_in_means"
    if plain:
        counts = Fields("details", result.details)
        arms = [counts.whole(arm, FEWEST_IN_ARM, MOST_ROWS) for arm in ("treated", "control")]
        require(list(means.sizes) == arms)
    check_arms(ask, declared, [*zip(means.values, means.known, strict=True)], means.sizes, rows, plain)


def _check_cells(ask: Ask, noise: NoiseDistribution | None) -> None:
    """Check that a noise is that of an arm's three sums of scores, which have no more than the budget."""
    if not isinstance(noise, WeightedSum):
        raise SetAsideError(OTHER_NOISE)
    mu = most_mu(ask)
    for _, one in noise.terms:
        facts = Fields("mechanism", facts_of(one))
        pure = facts_of(one)["mechanism"] == "laplace"
        require(pure or (facts_of(one)["mechanism"] == "gaussian" and mu is not None))
        require(sensitivity_of(one) == (SCORE_TERMS.absolute if pure else SCORE_TERMS.euclidean))
        most = budget_of(ask).epsilon if pure else mu or Fraction(0)
        require(facts.rational(_AMOUNTS["laplace" if pure else "gaussian"], 0, 1e9) <= most * Fraction(SLACK))


def _check_scored(ask: Ask, declared: Expected, means: IndependentArmMeans, rows: int) -> None:
    """Check means of scores of private records, whose noise follows from released models: as differences of such."""
    require(min(means.sizes) > 0 and isclose(sum(means.sizes), rows, rel_tol=NEAR), TOO_MANY_ROWS)
    width = float(declared.width)
    for value, known in zip(means.values, means.known, strict=True):
        _check_cells(ask, known.noise)
        _check_cells(ask, known.variance_noise)
        require(known.ball_variance == 0)
        require(0 <= known.bias <= 2 * width and known.extra >= 0)
        # Scores are clipped to less than this, over the root of their number.
        require(known.variance_cap <= (_MOST_SCORE * width) ** 2)
        check_variance(known)
        sampling = sqrt(min(known.variance_cap, width**2) + known.extra)
        check_place(
            value, means.range, known.bias + half_width(sampling, None, NEVER) + farthest(known.noise)
        )


def check_arms(
    ask: Ask,
    declared: Expected,
    means: Sequence[tuple[float, Uncertainty]],
    sizes: Sequence[float],
    rows: int,
    plain: bool,
    rare: bool = False,
) -> None:
    """Check means of arms that are released in parallel: one outcome is in one arm, which has the whole budget.

    `rare` says that few events add to the variance, of arms of these sizes.
    """
    steps: list[Fraction] = []
    ends = (float(declared.low), float(declared.high))
    for (value, known), size in zip(means, sizes, strict=True):
        # An effective size is one over the sum of squared weights, which is at most the largest of them.
        effective_size = declared.width / sensitivity_of(known.noise)
        more = (
            rare_events((declared.low, declared.high), (size if plain else float(effective_size),))
            if rare
            else 0.0
        )
        steps.append(check_weighted(ask, declared.width, known, more))
        margin = half_width(sqrt(min(known.variance_cap, float(declared.width) ** 2)), None, NEVER)
        check_place(value, ends, margin + farthest(known.noise))
        check_variance(known)
        require(float(effective_size) * (1 - NEAR) <= size)
        # Squares of weights that add up to one add up to one over their number at least.
        require(4 * known.variance_cap * size >= float(declared.width) ** 2 * (1 - NEAR))
        if plain:
            _check_mean(ArmMean(declared.width, int(size)), known, more)
    # A mean of outcomes whose weights add up to one moves by the range over their number at least.
    require(sum(declared.width / step for step in steps) <= rows * Fraction(1 + NEAR))
    require(sum(sizes) == rows if plain else sum(sizes) <= rows * (1 + NEAR))


def _check_joint(ask: Ask, declared: Expected, means: JointArmMeans, rows: int) -> None:
    """Check means that are made of the mean of everyone and the contrast: one record moves all of what is released."""
    known = means.known
    share = Fraction(means.share)
    left = check_budget(ask, [means.mean_noise, known.noise, known.variance_noise], LEAST_PART)
    require(means.rows == rows and LEAST_SHARE * Fraction(1 - NEAR) <= min(share, 1 - share))
    require(known.bias == known.ball_variance == 0)
    require(sensitivity_of(means.mean_noise) == mean_of_everyone(declared.width, rows))
    check_place(means.mean, means.range, NEAR * float(declared.width))
    # Outcomes are centred between the mean of everyone and the middle of their range, where they move least.
    start = min(max(Fraction(means.mean) - declared.low, Fraction(0)), declared.width)
    middle = declared.width / 2
    contrasts = [CentredContrast(declared.width, rows, share, centre) for centre in (middle, start)]
    for found, bounds in (
        (sensitivity_of(known.noise), [one.mean for one in contrasts]),
        (sensitivity_of(known.variance_noise), [one.second_moment / rows for one in contrasts]),
        (known.variance_cap, [one.variance_cap / rows for one in contrasts]),
    ):
        require(float(min(bounds)) * (1 - NEAR) <= float(found) <= float(max(bounds)) * (1 + NEAR))
    # What the other releases leave of the budget paid for the share.
    paid = noise_like(known.noise, Fraction(1, rows), left)
    require(isclose(means.share_sd, sqrt(paid.variance), rel_tol=NEAR))
    off = float(abs(start - middle)) + abs((1 - 2 * means.share) * means.difference)
    _check_error_of_share(means, off)
    sampling = sqrt(min(known.variance_cap, float(declared.width) ** 2) + known.extra)
    ends = -float(declared.width), float(declared.width)
    check_place(means.difference, ends, half_width(sampling, None, NEVER) + farthest(known.noise))
    less = chance_of_treatment(off, means.share, rows)
    check_variance(known, squared_noise(means.difference, known, rows), less)


def _check_error_of_share(means: JointArmMeans, off: float) -> None:
    """Check what an error in the share adds: the centre is at most `off` away from where it would add nothing."""
    assert means.mean_noise is not None
    scale = (means.share_sd / (means.share * (1 - means.share))) ** 2
    least = means.mean_noise.variance
    require(scale * least * (1 - NEAR) <= means.known.extra <= scale * (off**2 + least) * (1 + NEAR))


def judged(request: SiteRequest, reply: Reply, max_rows: int | None, known: Head | None) -> Any:
    """Return the result of a reply, or raise the reason for setting the site aside.

    `max_rows` is what the study file says of the site, `known` the last end of its ledger that was seen.
    """
    if not reply.answers(request) or reply.result is None:
        raise SetAsideError(NOT_AN_ANSWER)
    of_one = request.ask.question == "ate"
    try:
        if of_one:
            result = read_result(reply.result, "a site", measures=request.ask.measure != DIFFERENCE)
        else:
            result = read_answer(reply.result, "a site")
    except CounterveilError as error:
        raise SetAsideError(OUT_OF_REACH if error.got == FAR_OUTSIDE else NO_RESULT) from None
    try:
        _check_question(request, result)
        rows = rows_of(result)
        require(rows is not None and rows <= (max_rows or MOST_ROWS), TOO_MANY_ROWS)
        if of_one:
            result = _checked(request, result)
        else:
            check_answer(request.ask, request.declaration, result)
    except (UnreadableError, KeyError, ArithmeticError, ValueError):
        # Numbers so large or so small that nothing can be computed from them are nobody's.
        raise SetAsideError(OTHER_NOISE) from None
    _check_head(reply.head, known)
    return result


def _check_question(request: SiteRequest, result: Any) -> None:
    """Compare what an answer repeats of its question; nothing in it is trusted."""
    ask = request.ask
    budget = budget_of(request.ask)
    guarantee = result.guarantee
    measure = result.measure if isinstance(result, MeasureResult) else DIFFERENCE
    if ask.question == "ate":
        declared = Expected.of(request.declaration)
        said: tuple[str, ...] = (result.treatment, result.outcome, result.estimand.value, measure)
        asked: tuple[str, ...] = (declared.treatment, declared.outcome, ask.estimand, ask.measure)
    else:
        # The outcome is compared where the declaration is read.
        said = (result.treatment,)
        asked = (str(column_of(request.declaration.get("treatment"))),)
    require(said == asked and result.level == ask.level, OTHER_QUESTION)
    kept = guarantee.unit.value == ask.protects and guarantee.proof is Proof.FINITE_SAMPLE
    paid = (guarantee.epsilon, guarantee.delta) == (budget.epsilon, budget.delta) and result.spent == budget
    require(kept and paid, OTHER_PRIVACY)
    require(fits(ask, request.declaration, result), OTHER_FACTS)


def _checked(request: SiteRequest, result: Result) -> Result:
    """Return a result whose released numbers fit: the means of both arms, or a difference.

    The limits of a number needed to treat are put back where its interval is not for the effect.
    """
    declared = Expected.of(request.declaration)
    if not isinstance(result, MeasureResult):
        require(result.limits == declared.limits, OTHER_LIMITS)
        check_difference(request.ask, declared, result)
        return result
    require((result.means is not None) == (request.ask.measure in OF_MEANS), NO_RESULT)
    if result.means is not None:
        check_means(request.ask, declared, result)
        return result
    plain = difference_result(result)
    require(plain.limits == (declared.limits if plain.interval_target is None else None), OTHER_LIMITS)
    check_difference(request.ask, declared, plain)
    assert isinstance(result.numbers, Linear)
    return replace(result, numbers=replace(result.numbers, limits=declared.limits))


def _check_head(head: Head | None, known: Head | None) -> None:
    """Check that a ledger did not get shorter, or other, since an earlier answer."""
    if head is None:
        raise SetAsideError(NO_HEAD)
    if known is not None and (head.seq < known.seq or (head.seq == known.seq and head.hash != known.hash)):
        raise SetAsideError(WENT_BACK)


# Whether a site's answer of several effects fits the question: every row is judged as an answer of one effect is.
#
# Names of rows follow from the declaration, numbers of people from the site's rows, noises from the budget. Tables of
# times and second moments are judged as they were released.


# Methods whose answers can be judged, by question.
_LINEAR = ("difference_in_means", "weighting", "matching")
ESTIMATORS = {
    "arms": _LINEAR,
    "groups": (*_LINEAR, "adjusted", "arms"),
    "outcomes": (*_LINEAR, "trial"),
    "survival": ("kaplan_meier", "stratified", "weighting"),
    "moments": ("moments",),
}
ANSWERS: dict[str, type] = {
    "arms": ArmsResult,
    "groups": GroupsResult,
    "outcomes": OutcomesResult,
    "survival": SurvivalResult,
    "moments": Moments,
}
# No noise is so many of its standard deviations, Laplace's once in a thousand million studies.
_FAR = 16.0
# Numbers that cells are cut into, and the largest condition of a basis of columns that are told apart.
_PARTS, _WORST = (1, 2, 4, 8, 16), 1e9


def options_of(ask: Ask) -> dict[str, Any]:
    """Return the arguments of a question's own, with tuples for lists; no cut points are an empty list in TOML."""
    return {name: _option(value) for name, value in ask.options.items()}


def _option(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: None if one == [] else _option(one) for name, one in value.items()}
    return tuple(value) if isinstance(value, list) else value


def judgeable(declaration: Mapping[str, Any], question: str) -> Study:
    """Return the declared study, or raise CV-P600 where answers to a question cannot be judged or pooled."""
    try:
        study = Study.from_dict(dict(declaration))
    except (CounterveilError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        raise refusal(
            "CV-P600", what=_WHAT, expected="one that describes a study", got="something else"
        ) from None
    several = study.several
    made = {
        "a change": study.before is not None,
        "a ratio": study.denominator is not None,
        # Their degrees of freedom would be lost.
        "clusters": study.cluster is not None,
        "outcomes with earlier values": several is not None and bool(several.baseline),
        "outcomes of several arms": several is not None and study.arms is not None,
        "several outcomes, or times": question == "ate" and (several or study.event) is not None,
    }
    for what, found in made.items():
        if found:
            expected = f"one without what question = {question!r} does not pool"
            raise refusal("CV-P600", what=_WHAT, expected=expected, got=what)
    return study


def check_answer(ask: Ask, declaration: dict[str, Any], answer: Any) -> None:
    """Raise the reason for setting a site aside whose table does not follow from the question."""
    require(type(answer) is ANSWERS[ask.question], NO_RESULT)
    study = Study.from_dict(declaration)
    # Moments are of single columns; other answers are about all outcomes.
    require(
        answer.outcome == (study.outcome if ask.question == "moments" else study.outcome_name), OTHER_QUESTION
    )
    _CHECKS[ask.question](ask, study, answer)


def ranges_of(study: Study) -> dict[str, Expected]:
    """Return what every outcome of a study allows its effects to be; none for times to events."""
    if study.event is not None:
        return {}
    ranges = {study.outcome: study.outcome_range} if study.several is None else dict(study.several.ranges)
    least = _least_propensity(study)
    return {name: Expected(study.treatment, name, *ends, least) for name, ends in ranges.items()}


def _check_arms(ask: Ask, study: Study, answer: ArmsResult) -> None:
    """Check the means of all arms: one outcome is in one of them, which has the whole budget."""
    (declared,) = ranges_of(study).values()
    require(tuple(mean.name for mean in answer.means) == study.treatment_labels, OTHER_QUESTION)
    known = [_sole(mean.known) for mean in answer.means]
    require(all(one.limits == (float(declared.low), float(declared.high)) for one in known), OTHER_LIMITS)
    sizes = [_size(mean) for mean in answer.means]
    numbers = [(one.estimate, one.uncertainty) for one in known]
    plain = ask.method == "difference_in_means"
    check_arms(ask, declared, numbers, sizes, rows_of(answer) or 1, plain, rare=True)  # type: ignore[arg-type]


def _check_groups(ask: Ask, study: Study, answer: GroupsResult) -> None:
    """Check every group as the only one: an outcome, or a pair, is in one of them, which has the whole budget."""
    (declared,) = ranges_of(study).values()
    layout = layout_of(study, options_of(ask).get("by", ()))
    names = group_names(layout)
    rows = rows_of(answer) or 1
    found = [str(one.name) for one in answer.groups]
    require(answer.by == layout.names and found == [one for one in names if one in found], OTHER_QUESTION)
    require(answer.left_out == tuple(one for one in names if one not in found), OTHER_QUESTION)
    if Unit(ask.protects) is Unit.RECORD:
        require(not answer.left_out, OTHER_QUESTION)
        for one in answer.groups:
            _check_ratio(ask, declared, one, rows)
        return
    require(sum(_size(one) for one in answer.groups) <= rows, TOO_MANY_ROWS)
    # Groups whose covariates are all the same are not weighted.
    left = [
        name
        for name, domain in study.covariates.items()
        if name not in layout.names or isinstance(domain, Range)
    ]
    own = replace(ask, method="difference_in_means") if ask.method in _LINEAR and not left else ask
    for one in answer.groups:
        known = _sole(one.known)
        size = int(_size(one))
        arms = {"rows": size}
        if own.method == "difference_in_means":
            # The smaller arm gives the sensitivity; a group is judged by the arms that it must have.
            smaller = declared.width / sensitivity_of(known.uncertainty.noise)
            require(smaller.denominator == 1 and 2 * smaller <= size)
            arms |= {"treated": int(smaller), "control": size - int(smaller)}
        _check_row(own, declared, answer, known, arms)


def _check_outcomes(ask: Ask, study: Study, answer: OutcomesResult) -> None:
    """Check every outcome as the only one, after its noise was taken for that of one number: all of them may move."""
    ranges = ranges_of(study)
    require([one.outcome for one in answer.released] == [*ranges], OTHER_QUESTION)
    said = (answer.measure, answer.estimand.value)
    require(said == (ask.measure, ask.estimand), OTHER_QUESTION)
    require(all(one.arm is None for one in answer.released), NO_RESULT)
    for one in answer.released:
        known = _sole(one.numbers)
        error = cast("Uncertainty", known.uncertainty)
        alone = replace(
            error,
            noise=_alone(error.noise, len(ranges)),
            variance_noise=_alone(error.variance_noise, len(ranges)),
        )
        own = replace(known, uncertainty=alone)
        _check_row(ask, ranges[one.outcome], answer, own, answer.details)


def _alone(noise: NoiseDistribution | None, several: int) -> Any:
    """Return the noise that one number would have in place of one of so many, for the same change and budget."""
    facts = noise_to_dict(noise)
    if facts.get("mechanism") == "box":
        require(facts.get("dimension") == str(several))
        return noise_from_dict(
            {"mechanism": "staircase"} | {name: facts[name] for name in ("sensitivity", "epsilon")}
        )
    if facts.get("mechanism") == "gaussian":
        alone = sensitivity_of(noise) / sqrt_up(Fraction(several))
        return noise_from_dict(facts | {"sensitivity": str(alone)})
    require(not facts)
    return None


def _check_row(ask: Ask, declared: Expected, answer: Any, known: Linear, details: dict[str, Any]) -> None:
    """Check one row as the answer of one effect."""
    require(known.limits == declared.limits, OTHER_LIMITS)
    row = Result(
        **answer.provenance() | {"details": answer.details | details},
        estimate=known.estimate,
        uncertainty=known.uncertainty,  # type: ignore[arg-type]
        estimand=Estimand(ask.estimand),
        limits=known.limits,
        independent_variance=True,
    )
    check_difference(ask, declared, row)


def _check_ratio(ask: Ask, declared: Expected, one: Effect, rows: int) -> None:
    """Check a group of private records: its noises are no less than one record's part of a sum at the whole budget."""
    known = one.known
    ratios = [known.one, known.other] if isinstance(known, RatioDifference) else [known]
    width = float(declared.width)
    require((len(ratios) == 2) == (ask.method == "arms"))
    for ratio in ratios:
        require(isinstance(ratio, NoisyRatio), NO_RESULT)
        assert isinstance(ratio, NoisyRatio)
        require(isclose(ratio.limit, width / len(ratios), rel_tol=NEAR), OTHER_LIMITS)
        least = sqrt(2) / float(budget_of(ask).epsilon)
        mu = most_mu(ask)
        # The part of a count: no release has a smaller part of the budget, or of what a score may be.
        least = least if mu is None else min(least, 1 / float(mu))
        require(
            ratio.size_sd >= least * (1 - NEAR) and ratio.total_sd >= least * width / 100 and ratio.least == 1
        )
        require(ratio.row_variance >= 0 and ratio.extra >= 0 and 0 <= ratio.bias <= 2 * width)
        require(-_FAR * ratio.size_sd <= ratio.size <= rows + _FAR * ratio.size_sd, TOO_MANY_ROWS)
        require(abs(ratio.offset) <= width, OUT_OF_REACH)
    require(one.size is not None and one.size_sd > 0)


def _sole(known: object) -> Linear:
    """Return a number with the error of one site."""
    require(isinstance(known, Linear) and type(known.uncertainty) is Uncertainty, NO_RESULT)
    assert isinstance(known, Linear)
    return known


def _size(one: Effect) -> float:
    """Return the public number of people behind a row."""
    size = one.size
    require(
        size is not None and one.size_sd == 0 and FEWEST_IN_ARM <= size <= MOST_ROWS and size == int(size)
    )
    assert size is not None
    return size


def _check_times(ask: Ask, study: Study, answer: SurvivalResult) -> None:
    """Check tables of times: cells and strata follow from the declaration, the noise from these and the budget."""
    tables = answer.tables
    event = study.event
    rows = rows_of(answer) or 1
    require(event is not None and tables.cut in _PARTS and tables.causes == event.causes, OTHER_QUESTION)
    assert event is not None
    require(tables.edges == event.cut(tables.cut).edges, OTHER_QUESTION)
    require(tables.convention == ask.settings.get("censoring", "middle"), OTHER_QUESTION)
    form = Form(tables.form, event.cells * tables.cut, event.kinds)
    mu = most_mu(ask)
    named = None if ask.summed else ask.mechanism
    allowed = {None: (True, mu is not None), "gaussian": (False, True)}.get(named, (True, False))
    require(allowed[0] if tables.heavy else allowed[1])
    if tables.heavy:
        wanted = sqrt(2) * float(TimeTables(form).l1 / budget_of(ask).epsilon)
    else:
        wanted = float(TimeTables(form).l2 / (mu or 1))
    if ask.summed:
        # Of one noise and at most as many again as there are sites.
        require(wanted * (1 - NEAR) <= tables.noise_sd <= wanted * (1 + NEAR) * sqrt(MOST_SITES))
    else:
        require(isclose(tables.noise_sd, wanted, rel_tol=NEAR))
    _check_blocks(ask, study, answer, rows)
    # Running sums are taken with coefficients up to one; their root has no larger number than the sum of a block.
    far = _FAR * tables.noise_sd
    for block in tables.numbers:
        for number in block:
            check_place(number, (0.0, float(rows) * (2 if tables.form == SUMS else 1)), far)


def _check_blocks(ask: Ask, study: Study, answer: SurvivalResult, rows: int) -> None:
    """Check strata, numbers of people and weights of tables."""
    tables: NoisyTables = answer.tables
    strata = ask.settings.get("strata") or tuple(study.covariates)
    layout = Layout.of(study, tuple(strata) if ask.method == "stratified" else ())
    merged = [MergedLayout.of(layout, most) for most in range(1, layout.public + 1)]
    fitting = [one for one in merged if 2 * one.public == len(tables.numbers)]
    require(any(dict(answer.merged_strata) == one.groups() for one in fitting), OTHER_FACTS)
    people = Unit(ask.protects) is Unit.OUTCOME
    require(len(tables.totals) == (len(tables.numbers) if people else 1))
    require(len(tables.shares) == (len(tables.numbers) // 2 if people else 0))
    weighted = ask.method == "weighting"
    if weighted:
        require(all(0 < total <= rows for total in tables.totals), TOO_MANY_ROWS)
        # Imbalance that weights leave makes them worth fewer people, which takes weight off the site.
        require(
            all(0 < one <= rows**2 for one in tables.design) and 1 <= tables.inflation <= 1 + MOST_BIAS**2
        )
    else:
        require(sum(tables.totals) == rows and min(tables.totals) >= 0, TOO_MANY_ROWS)
        require({*tables.design} == {1.0} and tables.inflation == 1.0)
    require(
        min(tables.shares, default=0.0) >= 0 and (not people or isclose(sum(tables.shares), 1, rel_tol=NEAR))
    )


def _check_moments(ask: Ask, study: Study, answer: Moments) -> None:
    """Check second moments: columns and their squares follow from the declaration, noises from the budget."""
    columns = Columns.of(study, *(options_of(ask).get(name, ()) for name in ("outcomes", "terms")))
    require(answer.columns == columns.names and answer.groups == columns.groups, OTHER_QUESTION)
    clipped = [one for one in answer.not_covered if isinstance(one, ClippedOutliers)]
    require(all({*one.columns} <= {*columns.names} for one in clipped), OTHER_FACTS)
    basis = np.array(answer.basis)
    noisy = answer._noisy()
    require(bool((np.abs(basis[0] - np.eye(len(basis))[0]) <= NEAR).all()))
    scale = np.abs(basis[1:, 1:]).max(axis=1)
    require(bool((scale > 0).all()) and float(np.linalg.cond(basis[1:, 1:] / scale[:, None])) <= _WORST)
    _check_noise(ask, columns, answer)
    _check_middles(ask, columns, answer)
    middles, halves = _ends(columns)
    for own, middle, half in zip(basis[1:], middles, halves, strict=True):
        column = (own - middle * basis[0]) / half
        far = _FAR * sqrt(max(float(column @ noisy.crossed(column, column) @ column), 0.0))
        # Rows are weighted by one at most.
        check_place(float(column @ noisy.matrix @ column), (0.0, 1.0 + NEAR), far)
    check_place(noisy.weight, (0.0, 1.0 + NEAR), _FAR * float(noisy.noise[0, 0]))


def _check_middles(ask: Ask, columns: Columns, answer: Moments) -> None:
    """Check what HC1 errors are made of: one middle for each regression that was asked for, of its size."""
    asked = tuple(options_of(ask).get("robust", ()))
    require(tuple(one.formula for one in answer.robust) == asked, OTHER_QUESTION)
    for one in answer.robust:
        formula = parse_formula(one.formula, columns.names, dict(columns.groups))
        size = formula.constant + len(formula.regressors) + len(formula.absorbed)
        sides = (len(own) for matrix in (one.turn, one.matrix) for own in (matrix, *matrix))
        require({*sides} == {size} and one.noise_sd > 0, NO_RESULT)


def _ends(columns: Columns) -> tuple[list[float], list[float]]:
    """Return middle and half width of every column; those of products are about zero."""
    ends = [*columns.ends]
    most = [abs(middle) + half for middle, half in ends]
    ends += [(0.0, most[i] * most[j]) for i, j in columns.products]
    return [middle for middle, _ in ends], [half for _, half in ends]


def _check_noise(ask: Ask, columns: Columns, answer: Moments) -> None:
    """Check that noises are no less than those of the shortest rows; those of public columns are none."""
    noise = np.array(answer.noise_sd)
    chosen = ask.mechanism is None or ask.summed
    gaussian = ask.mechanism == "gaussian" or (chosen and most_mu(ask) is not None)
    robust = len(options_of(ask).get("robust", ()))
    design = RowPlan(answer.rows, columns, budget_of(ask), "gaussian" if gaussian else "staircase", robust)
    require(bool((noise == noise.T).all()) and isfinite(float(noise.max())))
    if Unit(ask.protects) is Unit.RECORD:
        require(float(noise.min()) >= design.shortest_noise / SLACK)
    else:
        # What is left of the outcome is the last working column; it alone is private.
        require(bool((noise[:-1, :-1] == 0).all()) and float(noise[-1].min()) > 0)


_CHECKS: dict[str, Callable[[Ask, Study, Any], None]] = {
    "arms": _check_arms,
    "groups": _check_groups,
    "outcomes": _check_outcomes,
    "survival": _check_times,
    "moments": _check_moments,
}
