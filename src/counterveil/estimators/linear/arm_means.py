"""Means of arms where only outcomes are private: public coefficients, and one release for two arms or more.

Every arm's mean estimates what everybody's mean outcome would be in that arm. Only outcomes are private, so
all of this is free, whatever else it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Backend, Table, silence
from counterveil.data.domains import outcome_unit
from counterveil.data.features import Features, covariate_features, require_covariates
from counterveil.data.table import arm_sizes
from counterveil.estimators.linear.difference_in_means import arm_sums
from counterveil.estimators.linear.effect import (
    TYPICAL_SD,
    LinearEffect,
    VarianceForm,
    WithBias,
    effect_plan,
    known_error,
    least_share,
    release_words,
    treatment_shares,
)
from counterveil.estimators.linear.kernels.balancing import WeightSettings, arm_weights
from counterveil.estimators.linear.kernels.pairing import covariate_pairs, score_pairs
from counterveil.estimators.linear.spline_score import ScoredRows, arm_terms
from counterveil.estimators.linear.weighting import matched_effect, weighted_effect
from counterveil.estimators.linear.weighting_design import features_of
from counterveil.estimators.outcome_place import Outcomes, sizes_by_arm, totals_by_arm
from counterveil.inference.arm_means import IndependentArmMeans, with_rare_events
from counterveil.numerics.arm_totals import Arm, TwoArms
from counterveil.numerics.arrays import Floats
from counterveil.numerics.matching import SortedArms
from counterveil.numerics.propensity import fit_multinomial
from counterveil.privacy import Estimand, exact
from counterveil.privacy.caveats import BiasBeyond, Caveat, Fact
from counterveil.results.answering import Facts, answer_request
from counterveil.results.arms import ArmsResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.measures import no_means
from counterveil.results.question import Question, adjusted_caveats, causal_caveats
from counterveil.results.result import MeasureResult
from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.residual_variance import ResidualVariance
from counterveil.rows.linear.sensitivity import ArmMean, LinearEstimate
from counterveil.rows.linear.weighted_sum import LinearForm, linear_form
from counterveil.session import BaseSession, Gate, Released
from counterveil.session.session import in_branches, in_parallel
from counterveil.settings import Arms, Weighting
from counterveil.settings.methods import asked_share, assumed_sd

# Matching towards one arm: everybody outside it borrows the outcomes of its nearest units on the score.
#
# With arm k of n_k rows and P(j) the N units of the arm nearest to unit j on the score of the arm, the mean is
# (1/n)(sum over the arm of Y_i + sum over the others of the mean of Y over P(j)): a weighted sum of the arm's
# own outcomes with public coefficients c_i = (1 + K_i)/n, K_i = sum over j with i in P(j) of 1/|P(j)|.


# How much of the assumed variance of the mean outcome follows the score.
_SCORE_SHARE = 0.3
# Scores nearer to 0 or 1 than this count as that near.
_LEAST_SCORE = 1e-6
_TRIES, _FEW_TRIES, _MANY_ROWS = 12, 6, 50_000


@dataclass(frozen=True, slots=True)
class MatchedArm:
    """The arm's rows (m,) and the coefficients (m,) of their outcomes.

    `limit`: how often a row may be used, often enough that everybody outside the arm is served.
    """

    rows: NDArray[np.intp]
    coefficients: Floats
    limit: int


def matched_coefficients(
    inside: NDArray[np.bool_],
    score: Floats,
    features: Floats,
    neighbours: int,
    sd: float,
    noise_variance: float,
) -> MatchedArm:
    """Return the coefficients of an arm's outcomes under the limit of least supposed error.

    `inside` (n,) marks the arm, `score` (n,) is its probability, `features` (n, p) have mean zero, `sd` is
    that supposed of the mean outcome over the features and of outcomes around it,
    `noise_variance` is that of the noise at sensitivity one.
    """
    clipped = np.clip(score, _LEAST_SCORE, 1 - _LEAST_SCORE)
    logit = np.log(clipped / (1 - clipped))
    arms = SortedArms(inside, logit)
    tried = [_match(arms, neighbours, limit) for limit in _limits(arms, neighbours)]
    del arms
    logit -= logit.mean()
    spread = np.sqrt([float((column**2).mean()) for column in (*features.T, logit)])
    spread[spread == 0] = 1.0
    share = np.append(np.full(features.shape[1], (1 - _SCORE_SHARE) / features.shape[1]), _SCORE_SHARE)

    def expected(matching: MatchedArm) -> float:
        c = matching.coefficients
        gap = (
            np.append(c @ features[matching.rows], c @ logit[matching.rows]) / spread
        )  # everybody's mean is zero
        bias = sd**2 * float(share @ gap**2)
        return bias + sd**2 * float(c @ c) + noise_variance * float(c.max()) ** 2

    return min(tried, key=expected)


def _match(arms: SortedArms, neighbours: int, limit: int) -> MatchedArm:
    matching = arms.match(neighbours, capacity_treated=limit, estimand=Estimand.ATC.value)
    rows = np.flatnonzero(arms.treated)
    # The kernel's coefficients are K_i over the number of units that found a match.
    borrowed = matching.coefficients[rows] * matching.kept
    return MatchedArm(rows, (1.0 + borrowed) / (len(rows) + matching.kept), limit)


def _limits(arms: SortedArms, neighbours: int) -> list[int]:
    """Return the limits to compare: from the least that can serve everybody to the most that is ever used."""
    counts, others = arms.arms[True].count, arms.arms[False].count
    least = max(1, math.ceil(neighbours * others / counts))
    most = max(least, arms.most_uses(neighbours, Estimand.ATC.value))
    steps = np.geomspace(least, most, _TRIES if counts + others <= _MANY_ROWS else _FEW_TRIES).round()
    return sorted({int(step) for step in steps})


# The mean of one arm as a function of that arm's outcomes alone, with its variance and its sensitivities.
#
# An arm's statistic reads the outcomes of the arm's own rows, so that one outcome moves one arm.


_STEP_BITS = OUTCOME_STEPS.bit_length() - 1


@dataclass(frozen=True, slots=True)
class PlainArm:
    """The plain mean of an arm."""

    sensitivity: ArmMean

    @property
    def size(self) -> int:
        """Number of the arm's rows."""
        return self.sensitivity.rows


def plain_arms(source: Backend) -> tuple[PlainArm, ...]:
    """Return the plain means of all arms, the reference or control first; their sizes are public."""
    width = source.study.outcome_bounds.width
    return tuple(PlainArm(ArmMean(width, size)) for size in sizes_by_arm(source))


@dataclass(frozen=True, slots=True)
class WeightedArm:
    """A weighted mean of an arm with public coefficients; pairs are places among the arm's rows."""

    rows: NDArray[np.intp]
    form: LinearForm
    variance: VarianceForm
    sensitivity: LinearEstimate

    @classmethod
    def of(
        cls,
        table: Table,
        rows: NDArray[np.intp],
        coefficients: NDArray[np.float64],
        pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
        bias: float = 0.0,
    ) -> WeightedArm:
        """Return the statistic with the given coefficients (m,) of the arm's rows (m,).

        `bias` is what its variance allows for bias, in standard errors from sampling.
        """
        form = linear_form(coefficients)
        factor = 1 + exact(bias, "bias") ** 2
        variance = WithBias(paired_variance(coefficients, *pairs), factor)
        width = table.study.outcome_bounds.width
        largest = variance.largest_row(len(rows))
        return cls(rows, form, variance, LinearEstimate(width, form.largest, form.squares, largest, factor))

    @property
    def size(self) -> int:
        """Number of the arm's rows."""
        return len(self.rows)

    def values(self, table: Table) -> tuple[Fraction, Fraction]:
        """Return the weighted mean and its paired variance."""
        outcomes = table.outcome[self.rows]
        variance = self.variance.value(outcomes, _STEP_BITS) * self.sensitivity.width**2
        return self.form.total(outcomes) * table.outcome_unit, variance


# The share of the budget that is supposed to go to variances while coefficients are chosen.
_SUPPOSED_SHARE = Fraction(1, 10)
# Scores below this make an arm's mean rest on few people.
_RARE = 0.05


@dataclass(frozen=True, slots=True)
class ArmsDesign:
    """The statistics of all arms, the reference first, and what to say about them."""

    method: str
    statistics: tuple[PlainArm | WeightedArm, ...]
    not_covered: tuple[Fact, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)


def design_of(source: Backend, question: Question) -> ArmsDesign:
    """Return the design of the question's method; all but plain means need a table."""
    if question.method == "difference_in_means":
        caveats = causal_caveats(source.study, question.estimand)
        return ArmsDesign("means of the arms", plain_arms(source), caveats)
    assert isinstance(source, Table)
    return (_weighted if question.method == "weighting" else _matched)(source, question)


def exact_values(source: Backend, design: ArmsDesign) -> list[tuple[Fraction, Fraction]]:
    """Return every arm's exact mean, above the outcome's lower bound, and its sampling variance."""
    weighted = [one for one in design.statistics if isinstance(one, WeightedArm)]
    if weighted:
        assert isinstance(source, Table)
        return [one.values(source) for one in weighted]
    only = Outcomes((source.study.outcome,), (source.study.outcome_range,), (Fraction(1),))
    (totals,) = totals_by_arm(source, only)
    return [plain_mean(one, outcome_unit(source.study.outcome_bounds)) for one in totals]


def _weighted(table: Table, question: Question) -> ArmsDesign:
    settings = question.settings or Arms()
    scores = _scores(table, covariate_features(table))
    sd = assumed_sd(table.study.outcome_range)
    supposed = WeightSettings(sd, sd)
    bias = settings.allowed_bias(table.study.randomised is True, len(table.study.covariates))
    statistics = []
    for rows, weights, balanced in balanced_arms(table, scores, _unit_noise(question), supposed):
        # Rows alike in all that is balanced: what varies within a pair is what weighting leaves to chance.
        pairs = covariate_pairs(np.zeros(len(rows), dtype=np.intp), balanced)
        statistics.append(WeightedArm.of(table, rows, weights, pairs, bias))
        del balanced
    caveats: list[Fact] = [Caveat.IMBALANCE]
    caveats += [BiasBeyond(bias, of_each_arm=True)] if bias else []
    features = covariate_features(table)
    design = _adjusted("balancing weights in each arm", table, features, scores, statistics, caveats)
    return replace(design, details={"bias_allowed_standard_errors": bias})


def balanced_arms(
    table: Table, scores: Floats, noise_variance: float, supposed: WeightSettings
) -> Iterator[tuple[NDArray[np.intp], Floats, NDArray[np.floating]]]:
    """Yield every arm's rows (m,), their weights towards everybody, and their features (m, p) that are balanced."""
    for code in range(scores.shape[1]):
        inside = table.arm == code
        score = scores[:, code]
        scored = ScoredRows(inside, score, arm_terms(table, inside, score))
        rows = np.flatnonzero(inside)
        # Features take the most memory: those of everybody and of two arms are not held at once.
        balanced, _, means = features_of(table, scored, Weighting(), rows)
        del scored
        assert means is not None
        weights = arm_weights(balanced, means, noise_variance=noise_variance, settings=supposed)
        yield rows, weights, balanced
        del balanced


def _matched(table: Table, question: Question) -> ArmsDesign:
    settings = question.settings or Arms()
    features = covariate_features(table)
    scores = _scores(table, features)
    statistics, limits = [], []
    for code in range(scores.shape[1]):
        coefficients = matched_coefficients(
            table.arm == code,
            scores[:, code],
            features.values,
            settings.neighbours,
            assumed_sd(table.study.outcome_range),
            _unit_noise(question),
        )
        pairs = score_pairs(np.zeros(len(coefficients.rows), dtype=np.intp), scores[coefficients.rows, code])
        statistics.append(WeightedArm.of(table, coefficients.rows, coefficients.coefficients, pairs))
        limits.append(f"{table.study.treatment_labels[code]}: {coefficients.limit}")
    caveats = [Caveat.MATCHING_BIAS]
    design = _adjusted("matching on the multinomial score", table, features, scores, statistics, caveats)
    return replace(design, details={"neighbours": settings.neighbours, "max_uses": "; ".join(limits)})


def _adjusted(
    method: str,
    table: Table,
    features: Features,
    scores: Floats,
    statistics: list[WeightedArm],
    caveats: Sequence[Fact],
) -> ArmsDesign:
    return ArmsDesign(
        method,
        tuple(statistics),
        adjusted_caveats(table.study, *caveats),
        diagnostics=arm_balance(
            features, scores, [(one.rows, one.form) for one in statistics], table.study.treatment_labels
        ),
    )


# The rows of an arm and their public weights.
WeightedRows = tuple[NDArray[np.intp], LinearForm]


def arm_balance(
    features: Features, scores: Floats, arms: Sequence[WeightedRows], labels: tuple[object, ...]
) -> dict[str, Any]:
    """Return the free tables about weighted arms: balance, effective sizes and overlap."""
    return {
        "balance": _balance(features, arms, labels),
        "effective_size": [
            {"arm": str(label), "rows": len(rows), "effective": float(1 / form.squares)}
            for label, (rows, form) in zip(labels, arms, strict=True)
        ],
        "overlap": [
            {
                "arm": str(label),
                "smallest_score": float(scores[:, code].min()),
                f"share_below_{_RARE}": float((scores[:, code] < _RARE).mean()),
            }
            for code, label in enumerate(labels)
        ],
    }


def _balance(
    features: Features, statistics: Sequence[WeightedRows], labels: tuple[object, ...]
) -> list[dict[str, Any]]:
    """Return, before and after, each arm's mean of every covariate minus everybody's, in standard deviations
    of everybody, and the ratio of the arm's variance to everybody's.
    """
    variances = (features.values**2).mean(axis=0)  # the columns have mean zero
    scale = np.where(variances > 0, variances, 1.0)
    table = []
    for label, (rows, form) in zip(labels, statistics, strict=True):
        features_of_arm = features.values[rows]
        weights = np.ldexp(form.units.astype(np.float64), -form.bits)
        shown = {}
        for when, w in (
            ("before", np.full(len(features_of_arm), 1 / len(features_of_arm))),
            ("after", weights),
        ):
            mean = w @ features_of_arm
            shown[f"difference_{when}"] = mean / np.sqrt(scale)
            shown[f"variance_ratio_{when}"] = w @ (features_of_arm - mean) ** 2 / scale
        table += [
            {"covariate": f"{name} ({label})", **{key: float(found[j]) for key, found in shown.items()}}
            for j, name in enumerate(features.names)
        ]
    return table


def _scores(table: Table, features: Features) -> Floats:
    return fit_multinomial(
        features.values, table.arm, len(table.study.treatment_labels), 1 / table.rows
    ).scores


def _unit_noise(question: Question) -> float:
    """Return the variance of the noise of a mean whose sensitivity is one."""
    return effect_plan(question, _SUPPOSED_SHARE).noise("effect", Fraction(1)).variance


# Means of several arms, each with its variance a chain of its own: one outcome moves its own arm and no other.
#
# Lineage: disjoint releases compose in parallel (McSherry 2009).


PAGES = (
    "rows/linear/arm_mean.proof.md",
    "rows/linear/linear_estimate.proof.md",
    "session/branches.proof.md",
)
Bounds = ArmMean | LinearEstimate


@silence()
def arm_means(session: BaseSession, question: Question) -> ArmsResult:
    """Return the private effects of all arms against the reference; only outcomes are private."""
    session.admit(question.uses(session.study, "arms"))
    source, study = session.batches, session.study
    design = design_of(source, question)
    every = [one.sensitivity for one in design.statistics]
    # If an arm is too small to estimate its variance, its whole budget goes to the mean, whatever larger arms do.
    shares = [share_of([one], question) for one in every]
    branches = [{f"mean of arm {k}": 1 - one, f"variance of arm {k}": one} for k, one in enumerate(shares)]
    plan = in_branches(question.budget, question.mechanism, [(part, {}) for part in branches])

    def compute(gate: Gate) -> Facts:
        values = exact_values(source, design)
        released = release(gate, every, values, [*map(bool, shares)], *zip(*branches, strict=True))
        low, high = (float(end) for end in study.outcome_range)
        means: list[Effect] = []
        releases: list[tuple[str, str]] = []
        for label, statistic, (mean, variance) in zip(
            study.treatment_labels, design.statistics, released, strict=True
        ):
            bounds = statistic.sensitivity
            plain = known_error(mean, variance, bounds.variance_cap)
            uncertainty = with_rare_events(plain, study.outcome_range, (1 / float(bounds.squares),))
            linear = Linear(low + float(mean), uncertainty, (low, high))
            means.append(Effect(label, linear, question.level, size=statistic.size))
            names = f"mean of {label!r}", f"variance of {label!r}"
            releases += release_words(bounds, variance is not None, names)
        return Facts(
            means=tuple(means),
            method=design.method,
            releases=tuple(releases),
            not_covered=design.not_covered,
            details=design.details
            | {
                "rows": source.rows,
                "mechanism": question.mechanism,
                "variance_budget_share": "; ".join(f"{float(one):g}" for one in shares),
            },
            diagnostics=design.diagnostics,
        )

    return answer_request(
        ArmsResult, session, question, plan, compute, pages=PAGES, said={"question": "arms"}
    )


def share_of(bounds: Sequence[Bounds], question: Question, expected_part: float = 1.0) -> Fraction:
    """Return the share of the budget for the variances: the one asked for, else one for short intervals of contrasts.

    Reads public numbers only; `expected_part` of the outcomes' variance is expected to be left in those released.
    """
    share = asked_share(question.settings)
    if share is not None:
        return share

    def over_contrasts(values: list[Fraction]) -> Fraction:
        return values[0] + sum(values[1:], Fraction(0)) / max(len(values) - 1, 1)

    # One number that is as noisy as a typical contrast: noise variances go as sensitivity squared.
    moves = sqrt(over_contrasts([one.estimate**2 for one in bounds]))
    variances = sqrt(over_contrasts([one.variance**2 for one in bounds]))
    cap = float(over_contrasts([one.variance_cap for one in bounds]))
    typical = [
        Fraction(expected_part) * TYPICAL_SD**2 * one.width**2 * one.squares * one.factor for one in bounds
    ]
    least = float(over_contrasts(typical))
    return least_share(cap, least, moves**2, variances, question.budget, question.mechanism, 1.0)


# Means of both arms where only outcomes are private, for ratios and odds ratios.
#
# One outcome is in one arm, so that both means are released for the price of one (`session/parallel.proof.md`); an
# adjusted effect is split into what its weights make of either arm. Lineage: disjoint releases compose in parallel
# (McSherry 2009).


ARM_PAIR_PAGES = ("rows/linear/arm_mean.proof.md", "session/parallel.proof.md")
ARMS = ("treated", "control")
# Members of both groups of releases, the treated first.
MEANS, VARIANCES = (tuple(f"{what} of {arm}" for arm in ARMS) for what in ("mean", "variance"))
# Both arms' exact means, above the lower end of the range, and their variances.
Values = tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]
# The released mean of each arm and its variance, where that is paid for.
Pairs = list[tuple[Released, Released | None]]


@dataclass(frozen=True, slots=True)
class ArmPair:
    """The statistics of both arms, the treated first: their bounds, their exact values, and what to say of them."""

    bounds: tuple[Bounds, Bounds]
    values: Callable[[], Values]
    effect: LinearEffect
    pages: tuple[str, ...]


def plain_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of the arms' means; outcomes are private, who was treated is public."""
    source, study = session.batches, session.study
    (counts,) = source.run(partial(arm_sizes, arms=2))
    sizes = int(counts[1]), int(counts[0])
    lo, hi = study.outcome_range
    unit = outcome_unit(study.outcome_bounds)

    def values() -> Values:
        (sums,) = source.run(arm_sums)
        arms = TwoArms.of(sums)
        return plain_mean(arms.treated, unit), plain_mean(arms.control, unit)

    effect_words = LinearEffect(
        "means of both arms",
        np.empty(0),
        None,
        causal_caveats(study, question.estimand),
        {"rows": source.rows, "treated": sizes[0], "control": sizes[1]},
    )
    bounds = ArmMean(hi - lo, sizes[0]), ArmMean(hi - lo, sizes[1])
    return measured(session, question, ArmPair(bounds, values, effect_words, ARM_PAIR_PAGES))


def plain_mean(arm: Arm, unit: Fraction) -> tuple[Fraction, Fraction]:
    """Return the mean of an arm, above the lower end of the range, and its variance; outcomes in steps of `unit`."""
    return arm.mean() * unit, arm.variance() / arm.count * unit**2


def weighted_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of the means that balancing weights make of both arms."""
    require_covariates(session.study, "weighting")
    settings = question.settings
    if settings is not None and settings.prediction is not None:
        raise no_means("weighting", f"prediction={settings.prediction!r}")
    return _of_effect(session, question, weighted_effect(session.table, question))


def matched_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of the means that matching makes of both arms."""
    require_covariates(session.study, "matching")
    return _of_effect(session, question, matched_effect(session.table, question))


def _of_effect(session: BaseSession, question: Question, effect: LinearEffect) -> MeasureResult:
    table = effect.table or session.table
    return measured(session, question, split_by_arm(table, effect))


# Proof: arm_pair.proof.md
def split_by_arm(table: Table, effect: LinearEffect) -> ArmPair:
    """Return what the coefficients of an effect make of either arm; those of the controls change their sign."""
    treated, control = (
        split_arm(table, effect, inside, sign)
        for inside, sign in ((table.treated, 1.0), (~table.treated, -1.0))
    )
    pages = (*effect.pages, "rows/linear/arm_pair.proof.md", ARM_PAIR_PAGES[1])
    bounds = treated.sensitivity, control.sensitivity
    return ArmPair(bounds, lambda: (treated.values(table), control.values(table)), effect, pages)


def split_arm(table: Table, effect: LinearEffect, inside: NDArray[np.bool_], sign: float) -> WeightedArm:
    """Return what the coefficients of an effect make of the rows `inside`, times a sign."""
    coefficients = np.where(inside, sign * effect.coefficients, 0.0)
    form = linear_form(coefficients)
    variance = _variance(effect, coefficients, inside)
    width = table.study.outcome_bounds.width
    row = variance.largest_row(table.rows)
    bounds = LinearEstimate(width, form.largest, form.squares, row, effect.factor)
    return WeightedArm(np.arange(table.rows), form, variance, bounds)


def _variance(
    effect: LinearEffect, coefficients: NDArray[np.float64], inside: NDArray[np.bool_]
) -> VarianceForm:
    """Return the part of the effect's variance that is due to the rows of one arm."""
    form: VarianceForm
    if isinstance(effect.variance, ResidualVariance):
        # The rows of a group are all of one arm.
        form = effect.variance.among(inside)
    else:
        assert effect.pairs is not None
        first, second = effect.pairs
        chosen = inside[first]
        form = paired_variance(coefficients, first[chosen], second[chosen])
    return WithBias(form, effect.factor)


def measured(session: BaseSession, question: Question, pair: ArmPair) -> MeasureResult:
    """Return the measure of both arms' means after they are released in parallel."""
    share = share_of(pair.bounds, question, pair.effect.expected_part)
    plan = in_parallel(effect_plan(question, share), {"effect": MEANS, "variance": VARIANCES})
    shares = treatment_shares(session.table) if pair.effect.table is not None else {}

    def compute(gate: Gate) -> Facts:
        released = release(gate, pair.bounds, pair.values(), [share > 0] * 2)
        means = released_means(pair.bounds, released, session.study.outcome_range)
        releases: list[tuple[str, str]] = []
        for arm, bounds, (_, variance) in zip(ARMS, pair.bounds, released, strict=True):
            releases += release_words(
                bounds, variance is not None, (f"mean of {arm}", f"its variance, {arm}")
            )
        return Facts(
            measure=question.measure,
            numbers=means,
            method=pair.effect.method,
            releases=tuple(releases),
            not_covered=pair.effect.not_covered,
            details=pair.effect.details
            | pair.effect.with_bias(means.parts(1.0, 1.0)[0])
            | {"mechanism": question.mechanism, "variance_budget_share": float(share)}
            | {"mean_treated": means.values[0], "mean_control": means.values[1]},
            diagnostics=pair.effect.diagnostics | shares,
        )

    return answer_request(
        MeasureResult, session, question, plan, compute, pages=pair.pages, remarks=pair.effect.remarks
    )


def release(
    gate: Gate,
    every: Sequence[Bounds],
    values: Sequence[tuple[Fraction, Fraction]],
    with_variance: Sequence[bool],
    means: Sequence[str] = MEANS,
    variances: Sequence[str] = VARIANCES,
) -> Pairs:
    """Return the released mean of every arm and, where it is paid for, its variance, from the exact ones."""
    pairs: Pairs = []
    for index, ((mean, variance), bounds) in enumerate(zip(values, every, strict=True)):
        noisy = gate.release(means[index], mean, bounds.estimate)
        variance_release = (
            gate.release(variances[index], variance, bounds.variance) if with_variance[index] else None
        )
        pairs.append((noisy, variance_release))
    return pairs


def released_means(
    pair: tuple[Bounds, Bounds], released_pairs: Pairs, outcome_range: tuple[Fraction, Fraction]
) -> IndependentArmMeans:
    """Return what was released as means of both arms with their error."""
    low, high = map(float, outcome_range)
    uncertainties = [
        known_error(*one, bounds.variance_cap) for bounds, one in zip(pair, released_pairs, strict=True)
    ]
    values = low + float(released_pairs[0][0]), low + float(released_pairs[1][0])
    sizes = float(1 / pair[0].squares), float(1 / pair[1].squares)
    return IndependentArmMeans(values, (uncertainties[0], uncertainties[1]), (low, high), sizes)
