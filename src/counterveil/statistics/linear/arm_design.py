"""What arms and covariates alone decide: for each arm the coefficients of its outcomes, and public tables.

Every arm's mean estimates what everybody's mean outcome would be in that arm. Only outcomes are private, so
all of this is free, whatever else it reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Backend, Study, Table
from counterveil.data.encoding import outcome_unit
from counterveil.data.features import Features, covariate_features
from counterveil.numerics.arms import Arm
from counterveil.numerics.arrays import Floats
from counterveil.numerics.linear_form import LinearForm, linear_form, paired_variance
from counterveil.numerics.matching import matching_coefficients
from counterveil.numerics.propensity import fit_multinomial
from counterveil.privacy import exact
from counterveil.privacy.caveats import BiasBeyond, Caveat, Fact
from counterveil.results.question import Question, adjusted_caveats, causal_caveats
from counterveil.settings import Arms, Weighting
from counterveil.settings.methods import assumed_sd
from counterveil.statistics.linear.budget import effect_plan
from counterveil.statistics.linear.effect import VarianceForm, WithBias
from counterveil.statistics.linear.kernels.balancing import WeightSettings, arm_weights
from counterveil.statistics.linear.kernels.pairing import covariate_pairs, score_pairs
from counterveil.statistics.linear.sensitivity import ArmMean, LinearEstimate
from counterveil.statistics.linear.spline_score import arm_terms
from counterveil.statistics.linear.weighting_design import ScoredRows, covariate_lines, features_of
from counterveil.statistics.outcome_list import Outcomes, sizes_by_arm, totals_by_arm

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
    tried = [_match(inside, logit, neighbours, limit) for limit in _limits(inside, logit, neighbours)]
    goal = np.column_stack([features, logit - logit.mean()])
    spread = np.sqrt((goal**2).mean(axis=0))
    goal /= np.where(spread > 0, spread, 1.0)
    share = np.append(np.full(features.shape[1], (1 - _SCORE_SHARE) / features.shape[1]), _SCORE_SHARE)

    def expected(found: MatchedArm) -> float:
        c = found.coefficients
        gap = c @ goal[found.rows]  # everybody's mean is zero
        bias = sd**2 * float(share @ gap**2)
        return bias + sd**2 * float(c @ c) + noise_variance * float(c.max()) ** 2

    return min(tried, key=expected)


def _match(inside: NDArray[np.bool_], logit: Floats, neighbours: int, limit: int) -> MatchedArm:
    found = matching_coefficients(inside, logit, neighbours, capacity_treated=limit, estimand="ATC")
    rows = np.flatnonzero(inside)
    # The kernel's coefficients are K_i over the number of units that found a match.
    borrowed = found.coefficients[rows] * found.kept
    return MatchedArm(rows, (1.0 + borrowed) / (len(rows) + found.kept), limit)


def _limits(inside: NDArray[np.bool_], logit: Floats, neighbours: int) -> list[int]:
    """Return the limits to compare: from the least that can serve everybody to the most that is ever used."""
    own = int(np.count_nonzero(inside))
    least = max(1, math.ceil(neighbours * (len(inside) - own) / own))
    free = matching_coefficients(inside, logit, neighbours, estimand="ATC")
    most = max(least, int(free.uses.max()))
    steps = np.geomspace(least, most, _TRIES if len(inside) <= _MANY_ROWS else _FEW_TRIES).round()
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

    @staticmethod
    def values(totals: Arm, unit: Fraction) -> tuple[Fraction, Fraction]:
        """Return the mean and s^2/n of an arm with these totals, in steps of `unit`."""
        return totals.mean() * unit, totals.variance() / totals.count * unit**2


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
        form, factor = linear_form(coefficients), 1 + exact(bias, "bias") ** 2
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
        own = table.outcome[self.rows]
        variance = self.variance.value(own, _STEP_BITS) * self.sensitivity.width**2
        return self.form.total(own) * table.outcome_unit, variance


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
    return [PlainArm.values(one, outcome_unit(source.study.outcome_bounds)) for one in totals]


def _weighted(table: Table, question: Question) -> ArmsDesign:
    settings = question.settings or Arms()
    features = covariate_features(table)
    scores = _scores(table, features)
    sd = assumed_sd(table.study.outcome_range)
    supposed = WeightSettings(sd, sd)
    bias = settings.allowed_bias(table.study.randomised is True, len(table.study.covariates))
    statistics = []
    for rows, weights, balanced in balanced_arms(table, scores, _unit_noise(question), supposed):
        # Rows alike in all that is balanced: what varies within a pair is what weighting leaves to chance.
        pairs = covariate_pairs(np.zeros(len(rows), dtype=np.intp), balanced[rows])
        statistics.append(WeightedArm.of(table, rows, weights, pairs, bias))
    caveats: list[Fact] = [Caveat.IMBALANCE]
    caveats += [BiasBeyond(bias, of_each_arm=True)] if bias else []
    design = _adjusted("balancing weights in each arm", table, features, scores, statistics, caveats)
    return replace(design, details={"bias_allowed_standard_errors": bias})


def balanced_arms(
    table: Table, scores: Floats, noise_variance: float, supposed: WeightSettings
) -> Iterator[tuple[NDArray[np.intp], Floats, NDArray[np.floating]]]:
    """Yield every arm's rows (m,), their weights towards everybody, and the features (n, p) that they balance."""
    lines = covariate_lines(table)
    for code in range(scores.shape[1]):
        inside, score = table.arm == code, scores[:, code]
        scored = ScoredRows(inside, score, arm_terms(table, lines, inside, score))
        balanced, _ = features_of(table, scored, Weighting(), lines)
        rows = np.flatnonzero(inside)
        yield rows, arm_weights(balanced, rows, noise_variance=noise_variance, settings=supposed), balanced


def _matched(table: Table, question: Question) -> ArmsDesign:
    settings = question.settings or Arms()
    features = covariate_features(table)
    scores = _scores(table, features)
    statistics, limits = [], []
    for code in range(scores.shape[1]):
        found = matched_coefficients(
            table.arm == code,
            scores[:, code],
            features.values,
            settings.neighbours,
            assumed_sd(table.study.outcome_range),
            _unit_noise(question),
        )
        pairs = score_pairs(np.zeros(len(found.rows), dtype=np.intp), scores[found.rows, code])
        statistics.append(WeightedArm.of(table, found.rows, found.coefficients, pairs))
        limits.append(f"{_labels(table.study)[code]}: {found.limit}")
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
        diagnostics=arm_balance(features, scores, statistics, _labels(table.study)),
    )


class WeightedArms(Protocol):
    """The rows of an arm with public weights."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """The arm's rows."""
        ...

    @property
    def form(self) -> LinearForm:
        """Their weights."""
        ...


def arm_balance(
    features: Features, scores: Floats, arms: Sequence[WeightedArms], labels: tuple[object, ...]
) -> dict[str, Any]:
    """Return the free tables about weighted arms: balance, effective sizes and overlap."""
    return {
        "balance": _balance(features, arms, labels),
        "effective_size": [
            {"arm": str(label), "rows": len(one.rows), "effective": float(1 / one.form.squares)}
            for label, one in zip(labels, arms, strict=True)
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
    features: Features, statistics: Sequence[WeightedArms], labels: tuple[object, ...]
) -> list[dict[str, Any]]:
    """Return, before and after, each arm's mean of every covariate minus everybody's, in standard deviations
    of everybody, and the ratio of the arm's variance to everybody's.
    """
    variances = (features.values**2).mean(axis=0)  # the columns have mean zero
    scale = np.where(variances > 0, variances, 1.0)
    table = []
    for label, one in zip(labels, statistics, strict=True):
        own = features.values[one.rows]
        weights = np.ldexp(one.form.units.astype(np.float64), -one.form.bits)
        shown = {}
        for when, w in (("before", np.full(len(own), 1 / len(own))), ("after", weights)):
            mean = w @ own
            shown[f"difference_{when}"] = mean / np.sqrt(scale)
            shown[f"variance_ratio_{when}"] = w @ (own - mean) ** 2 / scale
        table += [
            {"covariate": f"{name} ({label})", **{key: float(found[j]) for key, found in shown.items()}}
            for j, name in enumerate(features.names)
        ]
    return table


def _scores(table: Table, features: Features) -> Floats:
    return fit_multinomial(features.values, table.arm, len(_labels(table.study)), 1 / table.rows).scores


def _unit_noise(question: Question) -> float:
    """Return the variance of the noise of a mean whose sensitivity is one."""
    return effect_plan(question, _SUPPOSED_SHARE).noise("effect", Fraction(1)).variance


def _labels(study: Study) -> tuple[object, ...]:
    return study.treatment_labels
