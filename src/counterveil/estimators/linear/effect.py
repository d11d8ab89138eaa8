"""An effect with public weights where outcomes are private: sum_i c_i Y_i with coefficients c of public columns.

- `variance_share`, `effect_plan`: how the budget is split between the effect and its variance.
- `chosen_residual_variance`, `variance_by_arm`: the form of the variance that gives the shortest interval.
- `Interval`, `find_interval`: where outcomes lie within their declared range, released where it shortens
  intervals.
- `LinearEffect`, `linear_effect`: the release and the answer. `design_diagnostics`: balance and overlap of
  the weights.
- `ClusteredForm`, `clustered_effect`: outcomes that come in clusters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from math import inf, log, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Backend, Categories, Study, Table
from counterveil.data.features import Features, column_names
from counterveil.errors import CounterveilError
from counterveil.estimators.linear.kernels.balancing import arm_rows
from counterveil.estimators.linear.kernels.weight_features import FeatureShares
from counterveil.estimators.linear.matching_design import Scored
from counterveil.estimators.linear.spline_score import covariate_rows
from counterveil.estimators.linear.weighting_design import Weighted, shared_features
from counterveil.estimators.outcome_place import ENDS, PLACE_WORDS, PLACES, count_octaves
from counterveil.inference.arm_means import with_rare_events
from counterveil.inference.clusters import ClusterUncertainty, t_factor
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arm_rows import ArmRows
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.balance import Balance, balances, column_balances, effective_size, overlap_counts
from counterveil.numerics.products import sums
from counterveil.numerics.propensity import partial_shares
from counterveil.privacy import Budget, Estimand, exact
from counterveil.privacy.caveats import Caveat, ClampedOutcomes, Fact, OutcomesAtEnds
from counterveil.results.answering import Facts, answer_request
from counterveil.results.question import Question, too_few_clusters
from counterveil.results.result import Result
from counterveil.rows.counts import COUNTS_L1, COUNTS_L2
from counterveil.rows.linear.clustered_error import ClusterForm, cluster_form
from counterveil.rows.linear.paired_variance import PairedVariance, paired_variance
from counterveil.rows.linear.residual_variance import (
    MOST_WEIGHTED_SQUARES,
    ResidualVariance,
    Spectrum,
    residual_variance,
)
from counterveil.rows.linear.sensitivity import (
    ArmMean,
    ClusteredEstimate,
    LinearEstimate,
    MeanContrast,
    SitesContrast,
)
from counterveil.rows.linear.weighted_sum import LinearForm, linear_form
from counterveil.session import BaseSession, Gate, Kind, Plan, Released
from counterveil.settings import Matching
from counterveil.settings.methods import AUTO, BY_ARM, asked_share

# Shares of the budget that may go to the variance; 0 means that the worst case is used instead.
_SHARES = [Fraction(k, 40) for k in range(0, 17)]
_PARTS = [float(share) for share in _SHARES]
# A public guess of an outcome's standard deviation, as a part of its range; it only steers choices.
TYPICAL_SD = Fraction(1, 6)
# The two releases of an effect and its variance.
NAMES = ("effect", "variance")
# What one outcome can move: the estimate and its variance; and the largest possible variance.
Sensitivities: TypeAlias = LinearEstimate | MeanContrast | SitesContrast
Bounds: TypeAlias = ArmMean | Sensitivities


def variance_share(
    sensitivity: Sensitivities, question: Question, typical: Fraction, slack: float = 1.0
) -> Fraction:
    """Return the least share of the budget for the variance that makes the expected interval short.

    Reads public numbers only. Short means a small sum of the typical sampling variance, the inflation
    that its noise will call for (about one standard deviation of it) and the variance of the estimate's
    own noise. Around its minimum the sum is flat: with a `slack` above 1 the least share is taken whose sum
    is within that factor of the smallest, which leaves the estimate more of the budget.
    """
    cap = float(sensitivity.variance_cap)
    least = float(typical)
    sensitivities = (float(sensitivity.estimate) ** 2, float(sensitivity.variance))
    return least_share(cap, least, *sensitivities, question.budget, question.mechanism, slack)


@lru_cache(maxsize=1024)
def least_share(
    cap: float,
    least: float,
    per_noise: float,
    per_variance_noise: float,
    budget: Budget,
    mechanism: str,
    slack: float,
) -> Fraction:
    """Return that share, from the numbers that it depends on."""

    def expected(place_share: int) -> float:
        estimate_variance, noise_variance = _unit_variances(budget, mechanism, place_share)
        return per_noise * estimate_variance + least + per_variance_noise * sqrt(noise_variance)

    last = len(_SHARES) - 1
    # What the sum would be if noise fell as one over what is paid for it, as it nearly does: where to look first.
    without_place = _unit_variances(budget, mechanism, 0)[0]
    alike = [
        per_noise * without_place / (1 - part) ** 2 + per_variance_noise * sqrt(without_place) / part
        for part in _PARTS[1:]
    ]
    # The sum is convex in the share, so that its minimum is where it first does not fall.
    guess = alike.index(min(alike)) + 1
    best = _first(lambda place_share: expected(place_share) <= expected(place_share + 1), 1, last, guess)
    without = per_noise * without_place + cap
    enough = slack * min(expected(best), without)
    # A share whose variance would be taken at its cap costs more than none, so the cap matters at none only.
    if without <= enough:
        return _SHARES[0]
    allowed = enough + alike[best - 1] - expected(best)
    guess = sum(value > allowed for value in alike[: best - 1]) + 1
    return _SHARES[_first(lambda place_share: expected(place_share) <= enough, 1, best, guess)]


def _first(holds: Callable[[int], bool], low: int, high: int, guess: int) -> int:
    """Return the first place from `low` on where a condition holds that then stays true, `high` at the latest."""
    index = min(max(guess, low), high)
    if index < high and not holds(index):
        while index < high and not holds(index):
            index += 1
        return index
    while index > low and holds(index - 1):
        index -= 1
    return index


@lru_cache(maxsize=4096)
def _unit_variances(budget: Budget, mechanism: str, place_share: int) -> tuple[float, float]:
    """Return the variances of the two releases' noise at sensitivity one, for one of the shares."""
    plan = _two_releases(budget, mechanism, _SHARES[place_share])
    estimate_noise = plan.noise("effect", Fraction(1)).variance
    return estimate_noise, plan.noise("variance", Fraction(1)).variance if place_share else inf


def effect_plan(question: Question, share: Fraction, place_share: Fraction = Fraction(0)) -> Plan:
    """Return the plan: the effect, and its variance for `share` of what the search for the place of outcomes leaves."""
    return _two_releases(question.budget, question.mechanism, share, place_share)


@lru_cache(maxsize=1024)
def _two_releases(
    budget: Budget, mechanism: str, share: Fraction, place_share: Fraction = Fraction(0)
) -> Plan:
    shares = {name: place_share * part for name, part in PLACES.items()}
    shares |= dict(zip(NAMES, ((1 - place_share) * (1 - share), (1 - place_share) * share), strict=True))
    kind = Kind.VECTOR if mechanism == "gaussian" else Kind.CELLS
    return Plan.split(budget, shares, mechanism, dict.fromkeys(PLACES, kind) if place_share else None)


PAGE = "rows/linear/residual_variance.proof.md"
# What an interval built on one variance for each arm does not cover.
# How strongly slopes may be fitted: not at all, or as in ridge regression with ever less penalty. The
# features have a total variance of one, so with p of them directions of strength p go half.
_GROWTH = 1.5
_STRENGTHS = [3 * _GROWTH**step for step in range(26)]
# Features whose variances, in order, grow by less than this factor from one to the next are taken together.
_ALIKE = 1.25
# The least that is left of any feature, and the least closeness of a fit beside the closest.
_LEAST_LEFT, _LEAST_CLOSE = 1e-6, 1e-4
# The part of the way to the strength at which the bias no longer fits; the loading falls a little unevenly.
_SAFE = 0.98
# Rows that a part of an arm has at least.
_LEAST_ROWS = 40
# A guess of how much of the outcomes' variance follows the features; it only steers the choice.
_EXPLAINED = 0.5
# The share of the budget at which the choices are compared.
_SHARE = Fraction(1, 4)


def chosen_residual_variance(
    design: Weighted, treated: NDArray[np.bool_], question: Question, parts_count: int = 1
) -> ResidualVariance:
    """Return the form of the variance that is expected to give the shortest interval.

    Fitting slopes removes from the variance what covariates explain, and costs degrees of freedom. Only as
    much is removed as still covers the bias that the remaining imbalance causes in expectation. With several
    parts, each arm is cut by the size of its weights, and every part has a variance and a line of its own.
    """
    shape = fitting_shape(design)
    spectra = tuple(
        Spectrum.of(design.features, design.weights, rows, shape, held)
        for arm, whole in zip((treated, ~treated), design.arms, strict=True)
        for rows, held in _cut(arm, design.weights, parts_count, whole)
    )
    noise = sqrt(effect_plan(question, _SHARE).noise("variance", Fraction(1)).variance)
    squares = sum(spectrum.weight for spectrum in spectra)

    def loading(strength: float) -> float:
        return sum(spectrum.loading(strength) for spectrum in spectra)

    def expected(strength: float) -> float:
        typical = float(TYPICAL_SD) ** 2 * squares * _part(loading(strength), squares)
        return typical + noise * max(spectrum.largest_move(strength) for spectrum in spectra)

    def fits(strength: float) -> bool:
        exact = max(spectrum.weighted_squares(strength) for spectrum in spectra) <= MOST_WEIGHTED_SQUARES
        enough = exact and min(spectrum.freedom(strength) for spectrum in spectra) >= 1
        return enough and loading(strength) >= design.imbalance**2

    # Loading and freedom fall with the strength, weighted squares grow: if one does not fit, no stronger one does.
    index = (
        bisect_left(_STRENGTHS, True, key=lambda strength: not fits(strength)) if fits(_STRENGTHS[0]) else 0
    )
    allowed = _STRENGTHS[:index]
    if 0 < index < len(_STRENGTHS):
        # Loadings are nearly a power of the strength: one more step ends where the bias just fits.
        near, far = (loading(strength) for strength in _STRENGTHS[index - 1 : index + 1])
        between = allowed[-1] * _growth(design.imbalance**2 / near, far / near)
        allowed += [between] if fits(between) else []
    # More removed is better, until degrees of freedom run out.
    while len(allowed) > 1 and expected(allowed[-2]) < expected(allowed[-1]):
        allowed.pop()
    return residual_variance(design.features, spectra, min((0.0, *allowed[-1:]), key=expected))


def _cut(
    arm: NDArray[np.bool_], weights: NDArray[np.float64], parts: int, everybody: ArmRows
) -> Iterator[tuple[NDArray[np.bool_], ArmRows | None]]:
    """Yield the arm's rows in parts by the size of their weights, half of them, half of the rest, and so on.

    So weights differ least within parts where they are largest. Small arms are cut into fewer parts. With each
    part come the sums over its rows, where they are known.
    """
    rows = np.flatnonzero(arm)
    cuts = [len(rows) - (len(rows) >> step) for step in range(1, parts) if len(rows) >> step >= _LEAST_ROWS]
    if not cuts:
        yield arm, everybody
        return
    order = rows[np.argsort(np.abs(weights[rows]), kind="stable")]
    for part in np.split(order, cuts):
        inside = np.zeros(len(arm), np.bool_)
        inside[part] = True
        yield inside, None


def fitting_shape(design: Weighted) -> NDArray[np.float64]:
    """Return (p,) how closely to fit each feature, so that what is left of it is in proportion to its imbalance.

    If features had nothing to do with each other, a ridge of strength d_j would leave 1/(1 + d_j c_j) of the variance
    c_j of feature j. The weights treat features of the same variance alike, so that these share one d.
    """
    treated, control = design.arms
    variances = np.diagonal(treated.products + control.products) / len(design.features)
    order = np.argsort(variances)
    jumps = variances[order[1:]] > _ALIKE * variances[order[:-1]]
    group = np.empty(len(order), np.intp)
    group[order] = np.concatenate([[0], np.cumsum(jumps)])
    squares = float(design.weights @ design.weights)
    imbalance = np.bincount(group, design.gaps) / (squares * np.bincount(group, variances))
    close = np.maximum(1 / np.clip(imbalance, _LEAST_LEFT, 1.0) - 1, 0.0)[group] / variances
    close = np.maximum(close, _LEAST_CLOSE * close.max()) if close.any() else np.ones_like(close)
    return np.asarray(close / float(close @ variances))


def _growth(remaining: float, least: float) -> float:
    """Return the growth after which `remaining` of the loading is left, where one step leaves `least` of it."""
    if not 0.0 < least < remaining < 1.0:
        return 1.0
    return float(_GROWTH ** (_SAFE * log(remaining) / log(least)))


def expected_part(form: ResidualVariance, weights: NDArray[np.float64]) -> float:
    """Return how much of the outcomes' variance the form is expected to hold, as a part of it."""
    return _part(form.loading, float(weights @ weights))


def _part(loading: float, squares: float) -> float:
    return 1 - _EXPLAINED + _EXPLAINED * loading / squares


# What a mean outcome is supposed to follow when the bias that matches leave is allowed for. Squares are not
# among it: what outcomes owe to them stays in the variance whole.
_OUTCOME_VARIANCE_SHARES = FeatureShares(0.7, 0.0, 0.05)
# Into how many parts each arm is cut by the size of coefficients, for outcomes may vary more where they are large.
_OUTCOME_VARIANCE_PARTS = 4
# Sums of products of covariates take this many multiplications at most; beyond it they take longer than matching.
_MOST_WORK = 1 << 23


def variance_by_arm(
    table: Table,
    design: Scored,
    settings: Matching,
    coefficients: NDArray[np.float64],
    question: Question,
) -> ResidualVariance | None:
    """Return the variance from residual variances in parts of each arm, or None where it comes from pairs of rows.

    Reads public columns only.
    """
    rows, columns = design.features.values.shape
    small = rows * columns**2 <= _MOST_WORK
    if not (settings.variance_by == BY_ARM or (settings.variance_by == AUTO and small)):
        return None
    imbalance = left_by_matches(table, design, coefficients, question.estimand)
    return (
        chosen_residual_variance(imbalance, design.treated, question, _OUTCOME_VARIANCE_PARTS)
        if len(imbalance.gaps)
        else None
    )


def left_by_matches(
    table: Table, design: Scored, coefficients: NDArray[np.float64], estimand: Estimand
) -> Weighted:
    """Return the coefficients of a matched effect with the imbalance that they leave in covariates and score.

    Features are as many as vary over the rows, which may be none.
    """
    features, *_ = shared_features(table, design.score, _OUTCOME_VARIANCE_SHARES)
    by_arm = np.stack([np.maximum(coefficients, 0.0), np.maximum(-coefficients, 0.0)])
    arms = arm_rows(features, design.treated)
    return Weighted.of(features, arms, coefficients, sums(features, by_arm), estimand)


# Where outcomes lie within their declared range, released where it is expected to shorten intervals.
#
# Noise follows the width of the range. A part of the budget finds a shorter interval, outcomes are clamped to it, and
# what that may hide is a part of the interval of the effect. Proof: `rows/histogram.proof.md`.


PLACE_PAGE = "rows/histogram.proof.md"
# Parts of the budget that the place may take, the largest first.
_PLACE_PARTS = [Fraction(1, part) for part in (4, 6, 10, 16, 25)]
# Most by which the search may lengthen an interval whose range is right, and least by which it must shorten one whose
# range is so many times too wide; squared lengths.
_MOST_COST, _LEAST_GAIN, _TOO_WIDE = 1.04, 1.21, 20
# A width that a search leaves, in standard deviations of outcomes.
_FOUND = 15
# Most noise of an octave's count, as a part of the smaller arm.
_MOST_NOISE = 1 / 50
# Outcomes beyond the innermost octave are seen where they exceed their noise so far; else nothing is clamped.
# A tail is there where it exceeds the second of these.
_SEEN, _SURE = 6.0, 2.5


@dataclass(frozen=True, slots=True)
class Interval:
    """A part of the declared range: its lower end in steps, how often the range is halved, and what clamping may hide.

    `lost` is in parts of the declared range; `crowds` says how many outcomes lie at its ends, where that was released.
    """

    low: int = 0
    halvings: int = 0
    lost: float = 0.0
    crowds: OutcomesAtEnds | None = None

    @property
    def part(self) -> Fraction:
        """Its width in parts of the declared range."""
        return Fraction(1, 1 << self.halvings)

    def clamped(self, outcome: Integers) -> Integers:
        """Return outcomes within the interval, in steps of which it has as many as the range."""
        return np.clip(outcome - self.low, 0, OUTCOME_STEPS >> self.halvings) << self.halvings

    def truncate(self, table: Table) -> Table:
        """Return the table with clamped outcomes, the interval being their range."""
        if not self.halvings:
            return table
        study = table.study._changed(outcome_range=self.ends(table.study))
        return replace(table, study=study, outcome=self.clamped(table.outcome), measures=())

    def ends(self, study: Study) -> tuple[Fraction, Fraction]:
        """Return both ends in units of the outcome."""
        lo, hi = study.outcome_range
        low = lo + (hi - lo) * Fraction(self.low, OUTCOME_STEPS)
        return low, low + (hi - lo) * self.part

    def hidden(self, study: Study) -> float:
        """Return the standard deviation of what clamping may hide, in units of the outcome."""
        lo, hi = study.outcome_range
        return self.lost * float(hi - lo)

    def details(self, study: Study) -> dict[str, float | str]:
        """Return what to say of it."""
        if not self.halvings:
            return {}
        low, high = map(float, self.ends(study))
        return {"outcomes_from": low, "outcomes_to": high, "se_clamping": self.hidden(study)}

    def not_covered(self, study: Study, others: tuple[Fact, ...]) -> tuple[Fact, ...]:
        """Return what the interval of the effect does not cover, `others` being known before the search."""
        if self.crowds is not None:
            others = tuple(self.crowds if one is Caveat.CLAMPING else one for one in others)
        return others + ((ClampedOutcomes(*map(float, self.ends(study))),) if self.halvings else ())


WHOLE_RANGE = Interval()


def place_part(
    study: Study,
    smaller: float,
    sensitivity: Sensitivities,
    squares: Fraction,
    share: Fraction,
    question: Question,
) -> Fraction:
    """Return the part of the budget that finds the place of outcomes, 0 where it does not pay; reads public numbers.

    `smaller` is the effective size of the smaller arm, `squares` the sum of squared coefficients times what is allowed
    for bias, `share` the variance's of what is left.
    Only where it is asked for: few outcomes that noise hides may lie far beyond what is found, and an interval that
    allowed for them would be longer than one without a search. Outcomes from 0 to 1 are not searched.
    """
    low, high = study.outcome_range
    if not getattr(question.settings, "find_range", False) or (low == 0 and high == 1) or not share:
        return Fraction(0)
    width = float(high - low)

    def expected(part: Fraction, sd: float, found: float) -> float:
        """Return the squared length for outcomes of an SD in ranges of a width, both in declared ranges."""
        noise = _noise(effect_plan(question, share, part), sensitivity)
        return (sd * width) ** 2 * float(squares) + found**2 * noise

    default_sd = float(TYPICAL_SD)
    small_sd = default_sd / _TOO_WIDE
    declared_range = expected(Fraction(0), default_sd, 1.0), expected(Fraction(0), small_sd, 1.0)
    for part in _PLACE_PARTS:
        plan = effect_plan(question, share, part)
        amount = float(dict(plan.amounts)["spread"])
        sure = (
            (float(COUNTS_L2) if plan.mechanism == "gaussian" else sqrt(2.0) * float(COUNTS_L1)) / amount
        ) <= _MOST_NOISE * smaller
        cheap = expected(part, default_sd, 1.0) <= _MOST_COST * declared_range[0]
        if sure and cheap and _LEAST_GAIN * expected(part, small_sd, _FOUND * small_sd) <= declared_range[1]:
            return part
    return Fraction(0)


def _noise(plan: Plan, sensitivity: Sensitivities) -> float:
    """Return what noise adds to a squared length: that of the effect, and what that of the variance calls for."""
    estimate_noise = plan.noise(NAMES[0], sensitivity.estimate).variance
    return estimate_noise + sqrt(plan.noise(NAMES[1], sensitivity.variance).variance)


def searched(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return what to say of the releases that find the place, nothing where none was planned."""
    parts = plan.parts
    return tuple((words, f"{parts[n]:.3g} of the budget") for n, words in PLACE_WORDS.items() if n in parts)


def mechanisms(plan: Plan) -> tuple[str, ...]:
    """Return the noise of a plan: counts of a pure search have Laplace noise."""
    laplace = ("laplace",) if searched(plan) and plan.mechanism == "staircase" else ()
    return (plan.mechanism, *laplace)


def find_interval(
    gate: Gate, source: Backend, plan: Plan, sensitivity: Sensitivities, smaller: float
) -> Interval:
    """Return the interval of least expected error from two releases, the whole range if none was planned.

    What it clamps may all be of the `smaller` arm, and at the far end of its octave.
    """
    if not searched(plan):
        return WHOLE_RANGE
    centre, octaves = count_octaves(gate, source, pure=plan.mechanism != "gaussian")
    tails, sds = octaves.tails()
    declared = Interval(crowds=octaves.crowds)
    if tails[1] < _SEEN * sds[1]:
        return declared
    shares = octaves.shares(_SURE)
    lo, hi = source.study.outcome_range
    noise = _noise(plan, sensitivity)
    width = float(hi - lo)
    candidates = [(noise, declared)]
    for index, half_width in enumerate(ENDS):
        # The clipping interval has this half-width; at an end of the range all of it is.
        halvings = len(ENDS) - 1 - index - (0 if octaves.at_end else 1)
        if halvings > 0:
            steps = OUTCOME_STEPS >> halvings
            low = min(max(centre - steps // 2, 0), OUTCOME_STEPS - steps)
            lost = source.rows / smaller * float(shares @ np.maximum(ENDS - half_width, 0.0)) / 2
            interval = Interval(low, halvings, lost, octaves.crowds)
            candidates.append((noise / 4.0**halvings + (lost * width) ** 2, interval))
    return min(candidates, key=lambda one: one[0])[1]


EFFECT_PAGE = "rows/linear/linear_estimate.proof.md"
_STEP_BITS = OUTCOME_STEPS.bit_length() - 1
# How much longer (squared) than the shortest an interval may be expected to be, for the estimate's sake.
SLACK = 1.01


def values_of(form: VarianceForm, outcomes: Sequence[NDArray[np.int64]], steps_bits: int) -> list[Fraction]:
    """Return the estimate for each of some outcomes; rows are read for all at once where lines are fitted."""
    if isinstance(form, WithBias):
        return [form.factor * one for one in values_of(form.form, outcomes, steps_bits)]
    if isinstance(form, ResidualVariance):
        return form.values(outcomes, steps_bits)
    return [form.value(outcome, steps_bits) for outcome in outcomes]


@dataclass(frozen=True, slots=True)
class WithBias:
    """A variance with an allowance for bias: `factor` times the variance of another form.

    The part above one is the square of the bias that is allowed for. Bound and value grow by the same factor.
    """

    form: VarianceForm
    factor: Fraction

    def largest_row(self, rows: int) -> Fraction:
        """Return twice the largest move, in units of the range squared."""
        return self.factor * self.form.largest_row(rows)

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the estimate for outcomes in steps, in units of the range squared."""
        return self.factor * self.form.value(outcome, steps_bits)


# An exact estimate of the variance of a linear form, and how far one outcome can move it.
VarianceForm: TypeAlias = PairedVariance | ResidualVariance | WithBias


@dataclass(frozen=True, slots=True)
class LinearEffect:
    """A public linear estimator: its coefficients, the pairs for its variance, and what to say about it.

    `pages` prove the sensitivities, also that of a `variance` of another form than by pairs. `table` stands
    in for the session's where outcomes were moved row by row, by a public rule. `share` of the budget goes
    to the variance; None chooses, supposing that `expected_part` of the outcomes' variance is left in it: the
    least whose interval is expected to exceed the shortest by no more than the factor `SLACK`, squared lengths.
    `bias` is what the interval allows for bias, in standard errors; `assumptions` what it rests on beyond.
    """

    method: str
    coefficients: NDArray[np.float64]
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]] | None
    not_covered: tuple[Fact, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    variance: VarianceForm | None = None
    pages: tuple[str, ...] = (EFFECT_PAGE,)
    table: Table | None = None
    remarks: tuple[str, ...] = ()
    share: Fraction | None = None
    expected_part: float = 1.0
    bias: float = 0.0
    assumptions: Fact | None = None

    @property
    def factor(self) -> Fraction:
        """Variance and squared bias together, beside the variance alone."""
        return 1 + exact(self.bias, "bias") ** 2

    def variance_form(self) -> VarianceForm:
        """Return the form that estimates the variance, with what is allowed for bias."""
        if self.variance is not None:
            form = self.variance
        else:
            assert self.pairs is not None  # an estimator gives one or the other
            form = paired_variance(self.coefficients, *self.pairs)
        return WithBias(form, self.factor) if self.bias else form

    def with_bias(self, sampling_sd: float) -> dict[str, float]:
        """Return what to say of the bias that is allowed for, which the standard error from sampling holds."""
        return {"bias_allowance": sampling_sd * sqrt(1 - 1 / self.factor)} if self.bias else {}


def sensitivity_of(table: Table, form: LinearForm, variance: VarianceForm) -> LinearEstimate:
    """Return the sensitivities of the form and of its variance."""
    lo, hi = table.study.outcome_range
    factor = variance.factor if isinstance(variance, WithBias) else Fraction(1)
    return LinearEstimate(hi - lo, form.largest, form.squares, variance.largest_row(table.rows), factor)


def chosen_share(sensitivity: LinearEstimate, question: Question, expected_part: float = 1.0) -> Fraction:
    """Return the share of the budget for the variance: an interval that is short, or nearly so.

    `expected_part` of the outcomes' variance is expected to be left in the one released.
    """
    typical = (
        Fraction(expected_part)
        * TYPICAL_SD**2
        * sensitivity.width**2
        * sensitivity.squares
        * sensitivity.factor
    )
    return variance_share(sensitivity, question, typical, SLACK)


def linear_effect(session: BaseSession, question: Question, effect: LinearEffect) -> Result:
    """Return the private value of a public linear estimator; only outcomes are private."""
    table = effect.table or session.table
    form = linear_form(effect.coefficients)
    variance_form = effect.variance_form()
    sensitivity = sensitivity_of(table, form, variance_form)
    sizes = effective_size(table.treated, np.abs(effect.coefficients))
    share, place_share = _shares(table, sensitivity, effect, question, min(sizes))
    plan = effect_plan(question, share, place_share)
    shares = treatment_shares(session.table)

    def compute(gate: Gate) -> Facts:
        interval = find_interval(gate, table, plan, sensitivity, min(sizes))
        bounds = replace(sensitivity, width=sensitivity.width * interval.part)
        released, variance = release(
            gate, interval.truncate(table), form, variance_form if share > 0 else None, bounds
        )
        uncertainty = known_error(released, variance, bounds.variance_cap, interval.hidden(table.study) ** 2)
        return Facts(
            estimate=float(released),
            uncertainty=with_rare_events(uncertainty, session.study.outcome_range, sizes),
            method=effect.method,
            releases=(*searched(plan), *release_words(bounds, variance is not None)),
            not_covered=interval.not_covered(table.study, effect.not_covered),
            details=effect.details
            | effect.with_bias(uncertainty.sampling_sd)
            | interval.details(table.study)
            | {"mechanism": question.mechanism, "variance_budget_share": plan.parts.get(NAMES[1], 0.0)},
            diagnostics=effect.diagnostics | shares,
            assumptions=effect.assumptions,
            independent_variance=True,
        )

    pages = (*effect.pages, *([PLACE_PAGE] if place_share else []))
    drawn = mechanisms(plan)
    # The terms are not those of the table, whose outcomes may be residuals of a prediction.
    return answer_request(
        Result, session, question, plan, compute, pages=pages, remarks=effect.remarks, mechanisms=drawn
    )


def _shares(
    table: Table, sensitivity: LinearEstimate, effect: LinearEffect, question: Question, smaller: float
) -> tuple[Fraction, Fraction]:
    """Return the variance's share of the budget that the place of outcomes leaves, and the part of that place."""
    if effect.share is not None:
        return effect.share, Fraction(0)
    share = chosen_share(sensitivity, question, effect.expected_part)
    squares = sensitivity.squares * sensitivity.factor
    return share, place_part(table.study, smaller, sensitivity, squares, share, question)


def release(
    gate: Gate,
    table: Table,
    form: LinearForm,
    variance_form: VarianceForm | None,
    sensitivity: LinearEstimate,
    names: tuple[str, str] = NAMES,
) -> tuple[Released, Released | None]:
    """Return the released weighted sum and, where a form for it is given, its variance."""
    value = form.total(table.outcome) * table.outcome_unit
    effect = gate.release(names[0], value, sensitivity.estimate)
    if variance_form is None:
        return effect, None
    variance = variance_form.value(table.outcome, _STEP_BITS) * sensitivity.width**2
    return effect, gate.release(names[1], variance, sensitivity.variance)


_BINS = 20


def known_error(value: Released, variance: Released | None, cap: Fraction, extra: float = 0.0) -> Uncertainty:
    """Return the error of a released number; without a released variance the largest one stands in."""
    if variance is None:
        return Uncertainty(value.noise, float(cap), float(cap), None, extra)
    return Uncertainty(value.noise, float(variance), float(cap), variance.noise, extra)


def release_words(
    bounds: Bounds, with_variance: bool, names: tuple[str, str] = ("effect", "its variance")
) -> tuple[tuple[str, str], ...]:
    """Return what a number and, where it is paid for, its variance were released with."""
    bounds_by_name = zip(names, (bounds.estimate, bounds.variance), strict=True)
    words = tuple((name, f"sensitivity {float(bound):.6g}") for name, bound in bounds_by_name)
    return words if with_variance else words[:1]


def treatment_shares(table: Table) -> dict[str, Any]:
    """Return how much of the treatment each covariate explains beyond the others; nothing for a trial.

    Omitted confounders are compared with these.
    """
    domains = table.study.covariates
    if table.study.randomised is True or not domains:
        return {}
    labels = [len(domain.labels) if isinstance(domain, Categories) else 0 for domain in domains.values()]
    shares = partial_shares([table.covariates[name] for name in domains], labels, table.treated)
    if shares is None:
        return {}
    rows = [
        {"covariate": name, "partial_r2": float(share)} for name, share in zip(domains, shares, strict=True)
    ]
    return {"treatment_r2": rows}


def design_diagnostics(
    features: Features, treated: NDArray[np.bool_], score: Floats, coefficients: Floats
) -> dict[str, Any]:
    """Return JSON-ready tables: balance before and after, overlap of scores, effective sizes of the arms.

    `coefficients` are those of a linear estimate; within each arm their sizes are the weights "after". A
    difference or ratio that does not exist (a column constant in one arm) is None.
    """
    weights = np.abs(coefficients)
    return _tables(features.names, balances(features.values, treated, weights), treated, score, weights)


def covariate_diagnostics(table: Table, score: Floats, coefficients: Floats) -> dict[str, Any]:
    """Return the same of a table's covariates as they are."""
    domains = table.study.covariates
    weights = np.abs(coefficients)
    labels = [len(domain.labels) if isinstance(domain, Categories) else 0 for domain in domains.values()]
    both_balances = column_balances(covariate_rows(table), labels, table.treated, weights)
    return _tables(column_names(table.study), both_balances, table.treated, score, weights)


def _tables(
    names: Sequence[str],
    both_balances: tuple[Balance, Balance],
    treated: NDArray[np.bool_],
    score: Floats,
    weights: Floats,
) -> dict[str, Any]:
    return {
        "balance": _balance(names, *both_balances),
        "overlap": _overlap(treated, score),
        "effective_size": _sizes(treated, weights),
    }


def _balance(names: Sequence[str], before: Balance, after: Balance) -> list[dict[str, Any]]:
    keys = (
        "covariate",
        "difference_before",
        "difference_after",
        "variance_ratio_before",
        "variance_ratio_after",
    )
    columns = (before.difference, after.difference, before.variance_ratio, after.variance_ratio)
    return [dict(zip(keys, row, strict=True)) for row in zip(names, *map(_finite, columns), strict=True)]


def _overlap(treated: NDArray[np.bool_], score: Floats) -> dict[str, list[float]]:
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    in_treated, in_control = overlap_counts(treated, score, edges)
    return {
        "edges": [round(float(edge), 4) for edge in edges],
        "treated": [int(count) for count in in_treated],
        "control": [int(count) for count in in_control],
    }


def _sizes(treated: NDArray[np.bool_], weights: Floats) -> list[dict[str, Any]]:
    sizes = effective_size(treated, weights)
    rows = int(np.count_nonzero(treated))
    return [
        {"arm": "treated", "rows": rows, "effective": sizes[0]},
        {"arm": "control", "rows": len(treated) - rows, "effective": sizes[1]},
    ]


def _finite(values: Floats) -> list[float | None]:
    numbers: list[float | None] = values.tolist()
    for index in np.flatnonzero(~np.isfinite(values)):
        numbers[index] = None
    return numbers


# Weighted sums of outcomes that come in clusters: one draw for the effect, one for its clustered standard error.
#
# Lineage: cluster-robust variance (Liang and Zeger 1986) with the factors and degrees of freedom of Bell and
# McCaffrey (2002) for few clusters. The standard error is released, not the variance: it is the length of a vector,
# which one outcome moves by no more than it moves the effect, whatever the size of its cluster.


CLUSTERED_PAGE = "rows/linear/clustered_error.proof.md"
CLUSTERED_NAMES = ("effect", "error")
# Shares of the budget that may go to the standard error.
_CLUSTERED_SHARES = [Fraction(k, 20) for k in range(1, 15)]
# A public guess of the correlation within clusters, and of what the noise of the standard error adds to it, in its
# standard deviations; they only steer the split.
_CORRELATION, _ALLOWED = 0.1, 0.5
# Fewest clusters of an arm, and degrees of freedom, that a t interval is given for.
FEWEST_CLUSTERS, LEAST_FREEDOM = 3, 3.0


@dataclass(frozen=True, slots=True)
class ClusteredForm:
    """A public comparison of the arms by weights, of rows in public clusters, and its standard error."""

    table: Table
    effect: LinearEffect
    form: LinearForm
    clusters: ClusterForm
    freedom: float
    sensitivity: ClusteredEstimate
    share: Fraction

    @classmethod
    def of(cls, table: Table, question: Question, effect: LinearEffect) -> ClusteredForm:
        """Return the comparison, with no degrees of freedom where clusters are too few; reads public columns."""
        table = effect.table or table
        assert table.cluster is not None
        form = linear_form(effect.coefficients)
        clusters = cluster_form(form, table.cluster, table.treated)
        freedom = clusters.freedom if min(clusters.clusters_by_arm) >= FEWEST_CLUSTERS else 0.0
        low, high = table.study.outcome_range
        change = Fraction(clusters.largest_change) + clusters.rounding
        factor = exact(sqrt(effect.factor), "bias")
        sensitivity = ClusteredEstimate(high - low, form.largest, change, Fraction(clusters.cap), factor)
        share = asked_share(question.settings)
        if share is None and freedom >= LEAST_FREEDOM:
            share = clustered_chosen_share(sensitivity, clusters, question, freedom)
        share = Fraction(0) if share is None else share
        return cls(table, effect, form, clusters, freedom, sensitivity, share)

    @property
    def enough(self) -> bool:
        """Whether there are enough clusters for an interval."""
        return self.freedom >= LEAST_FREEDOM

    @property
    def sizes(self) -> tuple[int, int]:
        """How many of those who are compared are treated, and how many are not."""
        treated = int(self.table.treated.sum())
        return treated, self.table.rows - treated

    def release(self, gate: Gate, names: tuple[str, str]) -> tuple[Released, ClusterUncertainty]:
        """Return the released comparison and its error, whose largest value stands in where it is not released."""
        bounds = self.sensitivity
        value = self.form.total(self.table.outcome) / OUTCOME_STEPS
        released = gate.release(names[0], value * bounds.width, bounds.estimate)
        cap = float(bounds.cap) ** 2
        variance = cap
        noise = None
        if self.share > 0:
            length = self.clusters.length(self.table.outcome, _STEP_BITS)
            error = gate.release(names[1], length * bounds.width * bounds.factor, bounds.error)
            variance = max(float(error), 0.0) ** 2
            noise = error.noise
        return released, ClusterUncertainty(
            released.noise, variance, cap, sd_noise=noise, freedom=self.freedom
        )


def clustered_effect(session: BaseSession, question: Question, effect: LinearEffect) -> Result:
    """Return the private value of a public linear estimator; only outcomes are private, clusters are public."""
    assert session.study.cluster is not None
    column = session.study.cluster.column
    form = ClusteredForm.of(session.table, question, effect)
    if not form.enough:
        raise _few_clusters(column, form)
    shares = treatment_shares(session.table)

    def compute(gate: Gate) -> Facts:
        released, uncertainty = form.release(gate, CLUSTERED_NAMES)
        bounds = zip(
            ("effect", "its standard error"),
            (form.sensitivity.estimate, form.sensitivity.error),
            strict=True,
        )
        releases = [(name, f"sensitivity {float(bound):.6g}") for name, bound in bounds]
        return Facts(
            estimate=float(released),
            uncertainty=uncertainty,
            method=f"{effect.method}; standard error clustered by {column}, {form.clusters.clusters} clusters",
            releases=tuple(releases if form.share > 0 else releases[:1]),
            not_covered=clustered_caveats(effect),
            details=effect.details
            | effect.with_bias(uncertainty.sampling_sd)
            | cluster_details(form.clusters, form.table, form.freedom)
            | {"mechanism": question.mechanism, "variance_budget_share": float(form.share)},
            diagnostics=effect.diagnostics | shares,
            assumptions=effect.assumptions,
        )

    # A variance that is not released has no page.
    pages = (*effect.pages[:1], CLUSTERED_PAGE)
    plan = _plan(question, form.share)
    return answer_request(Result, session, question, plan, compute, pages=pages, remarks=effect.remarks)


def _plan(question: Question, share: Fraction) -> Plan:
    """Return the plan of the effect and, for `share` of the budget, its standard error."""
    return Plan.split(
        question.budget, dict(zip(CLUSTERED_NAMES, (1 - share, share), strict=True)), question.mechanism
    )


def effect_of(session: BaseSession, question: Question, effect: LinearEffect) -> Result:
    """Return the private value of a public linear estimator, with its error by cluster where the study has clusters."""
    return (clustered_effect if session.study.clustered else linear_effect)(session, question, effect)


def clustered_chosen_share(
    sensitivity: ClusteredEstimate, clusters: ClusterForm, question: Question, freedom: float
) -> Fraction:
    """Return the share for the standard error of the shortest expected interval; reads public numbers only."""
    typical = float(sensitivity.factor * sensitivity.width * TYPICAL_SD) * clusters.typical(_CORRELATION)
    wide = t_factor(freedom, 1 - question.level)

    def expected(share: Fraction) -> float:
        plan = _plan(question, share)
        estimate_variance = plan.noise(CLUSTERED_NAMES[0], sensitivity.estimate).variance
        noise_variance = plan.noise(CLUSTERED_NAMES[1], sensitivity.error).variance
        return estimate_variance + (wide * (typical + _ALLOWED * sqrt(noise_variance))) ** 2

    return min(_CLUSTERED_SHARES, key=expected)


def _few_clusters(column: str, clusters: ClusteredForm) -> CounterveilError:
    treated, control = clusters.clusters.clusters_by_arm
    return too_few_clusters(
        column,
        f"{FEWEST_CLUSTERS} clusters in each arm and {LEAST_FREEDOM:g} degrees of freedom, more clusters where a "
        "few large ones outweigh the others",
        f"{treated} clusters with treated rows and {control} with others, {clusters.freedom:.1f} degrees of freedom",
    )


def clustered_caveats(effect: LinearEffect) -> tuple[Fact, ...]:
    """Return what an interval does not cover: that of the estimator, and dependence beyond clusters."""
    # Residual totals of clusters hold every heteroskedasticity.
    kept_caveats = (one for one in effect.not_covered if one is not Caveat.UNEVEN_VARIANCE)
    return (*kept_caveats, Caveat.CLUSTERS_DEPEND)


def cluster_details(clusters: ClusterForm, table: Table, freedom: float) -> dict[str, float | str]:
    """Return the single figures of the clusters, all public."""
    treated, control = clusters.clusters_by_arm
    assert table.cluster is not None
    sizes = np.bincount(table.cluster)
    return {
        "clusters": clusters.clusters,
        "clusters_treated": treated,
        "clusters_control": control,
        "largest_cluster": int(sizes.max()),
        "degrees_of_freedom": freedom,
    }
