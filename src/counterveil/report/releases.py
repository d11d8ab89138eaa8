"""What answers say of their releases and of what their guarantee rests on: the words of `privacy.provenance`.

In: values that name each released number and its bound: the sensitivity, that is the most that one person can
change it (in units of the released number), or the scale of its noise. Out: words. The bounds are proved on
the pages that the guarantee names; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable

from counterveil.privacy import provenance
from counterveil.privacy.provenance import (
    AnyBound,
    AnyPremise,
    AnyQuantity,
    Bounded,
    Noise,
    Premise,
    PublicPrediction,
    Quantity,
    ReleaseRow,
)
from counterveil.report.survival_words import bound_words

_QUANTITIES = {
    Quantity.EFFECT: "effect",
    Quantity.DIFFERENCE_IN_MEANS: "difference in means",
    Quantity.ITS_VARIANCE: "its variance",
    Quantity.ITS_STANDARD_ERROR: "its standard error",
    Quantity.MEAN_OUTCOME: "mean outcome",
    Quantity.SHARE_TREATED: "share treated",
    Quantity.SUMS_OF_ARMS: "sums of both arms",
    Quantity.CENTRED_CONTRAST: "centred contrast",
    Quantity.ITS_SECOND_MOMENT: "its second moment",
    Quantity.SUMS_OF_RATIOS: "sums of numerator and denominator of both arms",
    Quantity.SQUARED_RESIDUALS_OF_RATIOS: "sums of squared residuals of both arms",
    Quantity.ARM_TOTALS: "number, sum and squares of outcomes in every arm",
    Quantity.EARLIER_MOMENTS: "moments with earlier numbers",
    Quantity.GROUP_EFFECTS: "effect and variance of every group",
    Quantity.STRATUM_AVERAGE: "average of stratum effects",
    Quantity.STRATUM_EFFECTS: "sum of stratum effects / n",
    Quantity.STRATUM_WEIGHTS: "sum of stratum weights / n",
    Quantity.VARIANCE_OF_FORMER: "variance of the former",
    Quantity.COMPARISON_OF_ARMS: "comparison of the arms",
    Quantity.FOLD_AVERAGE: "average of the folds' effects",
    Quantity.ITS_SQUARES: "its squares",
    Quantity.OUTCOME_HISTOGRAM: "histogram of the outcome over its range",
    Quantity.FULL_CELL_HISTOGRAM: "histogram of the outcome where the first is full",
    Quantity.OUTCOME_DISTANCES: "histogram of distances from the outcomes' centre",
    Quantity.ROW_LENGTHS: "histogram of the rows' lengths",
    Quantity.SCORE_SIZES: "histogram of the sizes of the scores",
    Quantity.WEIGHTED_RESIDUAL_SIZES: "histogram of the sizes of weighted residuals in each arm",
    Quantity.SCORE_HISTOGRAM: "histogram of the scores, for their clip",
    Quantity.RANK_HISTOGRAM: "histogram of the ranking, for its quantiles",
    Quantity.BALANCE_MOMENTS: "counts, means and squares of both arms",
    Quantity.SCORE_COUNTS: "counts of both arms along the released score",
    Quantity.LENGTHS_AND_DISTANCES: "counts of rows by length and of outcomes by distance, twice",
    Quantity.RESIDUAL_SIZES_TWICE: "counts of residuals by size, twice",
    Quantity.CENTRES_OF_NUMBERS: "means and mean squares of numbers, and the share treated",
    Quantity.CENTRES_OF_FEATURES: "means and mean squares of the features, numbers rescaled",
    Quantity.CENTRES_OF_COLUMNS: "means and mean squares of covariates, treatment and outcome",
    Quantity.CENTRES_OF_CELLS: "mean outcome, share treated",
    Quantity.ARM_GRAMS: "second moments of covariates and outcome in each arm",
    Quantity.ARM_RESIDUAL_MOMENTS: "moments of the residuals in each arm",
    Quantity.TREATMENT_GRAM: "second moments of covariates, treatment and outcome",
    Quantity.OUTCOME_RESIDUAL_MOMENTS: "moments of the outcome's residuals",
    Quantity.COVARIATE_OUTCOME_MOMENTS: "moments of covariates with outcomes",
    Quantity.ONE_DIRECTION: "regression of outcomes on one direction",
    Quantity.PAIR_MOMENTS: "sums of features with treatment and with outcomes of both arms",
    Quantity.COLUMN_MOMENTS: "means and squares of all columns",
    Quantity.FIRST_ROW_MOMENTS: "second moments of weighted rows, a first time",
    Quantity.ROW_MOMENTS: "second moments of weighted rows",
    Quantity.OUTCOME_MOMENTS: "mean and mean square of the outcome",
    Quantity.FIRST_OUTCOME_MOMENTS: "moments of public columns with the outcome, a first time",
    Quantity.RESIDUAL_MOMENTS: "moments of public columns with residuals of the outcome",
    Quantity.SANDWICH: "middle of a sandwich for HC1 errors: counts of lengths, then second moments",
    Quantity.DOUBLY_ROBUST_SCORE: "mean and mean square of the doubly robust score",
    Quantity.WEIGHTED_RESIDUALS: "number of rows, sum and squares of weighted residuals in each arm",
    Quantity.CELL_SCORES: "number, sum and squares of the clipped scores in every cell",
    Quantity.PAIR_SCORES: "sums of scores and of their squares",
    Quantity.FUNCTIONS_OF_SCORES: "sums of functions of covariates with scores, and of squared scores",
    Quantity.ARM_LEVELS: "mean outcomes of the arms",
    Quantity.RESIDUAL_SIZES: "sizes of residuals",
    Quantity.RESIDUAL_SQUARES: "squares of residuals by arm",
    Quantity.FIRST_MODEL: "a first model of outcomes and effects",
    Quantity.EFFECTS: "effects",
    Quantity.PEOPLE_BY_CLUSTER: "number of people by cluster and arm",
    Quantity.OUTCOMES_BY_CLUSTER: "sums of outcomes by cluster and arm",
    Quantity.PEOPLE_BY_GROUP_AND_CLUSTER: "number of people by group, cluster and arm",
    Quantity.OUTCOMES_BY_GROUP_AND_CLUSTER: "sums of outcomes by group, cluster and arm",
}
# `{}` is whom the quantity is of.
_QUANTITIES_OF = {
    Quantity.MEAN_OF: "mean of {}",
    Quantity.VARIANCE_OF: "variance of {}",
    Quantity.ITS_VARIANCE_OF: "its variance, {}",
    Quantity.MEAN_OVER_STRATA_OF: "mean of {} over strata",
    Quantity.ITS_VARIANCE_OVER_STRATA_OF: "its variance of {}",
    Quantity.COMPARISON_AT: "comparison at {}",
    Quantity.VARIANCE_OF_CHANGE_AT: "variance of the change at {}",
    Quantity.CONTRAST_AT: "centre, contrast and second moment at {}",
    Quantity.CENTRES_OF_OUTCOMES: "centres of {} outcomes",
    Quantity.CONTRASTS_OF_OUTCOMES: "contrasts of {} outcomes",
    Quantity.MOMENTS_OF_OUTCOMES: "moments of {} outcomes",
}
_NOISES = {
    Noise.GAUSSIAN: "Gaussian noise",
    Noise.LAPLACE: "Laplace noise",
    Noise.BALL: "l2-ball noise",
}
_BOUNDS = {
    Bounded.WHOLE_BUDGET_IN_EVERY_GROUP: "the whole budget in every group",
    Bounded.CENTRES_EFFECTS: "it centres and bounds the effects",
    Bounded.HISTOGRAM: "histogram, sensitivity 2",
    Bounded.ONE_CELL_EACH: "one cell each",
    Bounded.ONE_RELEASE_EACH: "one release each",
    Bounded.OWN_BOUND_EACH: "each moves by its own bound",
    Bounded.ONE_OVER_ROWS: "each moves by at most 1/rows",
    Bounded.ONE_ROW_OVER_ROWS: "one row moves each by at most 1/rows",
    Bounded.TWO_HALF_RANGES: "l2 sensitivity 2 half ranges over the rows",
    Bounded.BY_NUMBER_OF_COLUMNS: "l2 sensitivity by their number",
    Bounded.LENGTH_FROM_COUNTS: "squared length from counts",
    Bounded.RESIDUALS_FROM_COUNTS: "residuals from counts",
    Bounded.FROM_COUNTS: "from counts",
}
_LEARNER_SEES_ROWS_ALONE = (
    "the guarantee rests on the learner: what it answers for a fold must depend on that fold's rows alone, and "
    "what a fitted model predicts for a row on that model and that row alone"
)


def release_words(releases: Iterable[ReleaseRow]) -> tuple[tuple[str, str], ...]:
    """Return what was released, and how far one person moves it or what it cost."""
    return tuple((quantity_words(quantity), bounded_words(bound)) for quantity, bound in releases)


def quantity_words(quantity: AnyQuantity) -> str:
    """Return what an answer calls a released quantity."""
    match quantity:
        case Quantity():
            return _QUANTITIES[quantity]
        case provenance.QuantityOf(of, whom):
            return _QUANTITIES_OF[of].format(whom)
        case provenance.OutcomeNumbers(outcomes, group, variances):
            return f"{outcomes} {'variances' if variances else 'values'} of {group}"
    return quantity


def bounded_words(bound: AnyBound) -> str:
    """Return how far one person moves a release, or what it cost."""
    match bound:
        case Noise():
            return _NOISES[bound]
        case Bounded():
            return _BOUNDS[bound]
        case provenance.Sensitivity(most):
            return f"sensitivity {most:.6g}"
        case provenance.CentringSensitivity(most, several):
            return f"sensitivity {most:.6g}; {'they centre' if several else 'centres'} the contrast"
        case provenance.LengthSensitivity(most):
            return f"l2 sensitivity {most:.4g}"
        case provenance.ScaledSensitivity(most, length):
            return f"{'l2 ' if length else ''}sensitivity {most:.6g}, scaled"
        case provenance.CountChange(most, heavy):
            return bound_words(most, heavy=heavy)
        case provenance.ArmTotalChange(most, length):
            return f"changes of {'length' if length else 'sum'} {most:.4g}"
        case provenance.RangePart(part, squared):
            return f"each moves by at most {part:.6g} of its {'squared range' if squared else 'range'}"
        case provenance.SquaredLength(most):
            return f"squared length at most {most:.4g}"
        case provenance.ResidualClip(half_ranges):
            return f"residuals in +-{half_ranges:.4g} half ranges"
        case provenance.DeclaredBound(most):
            return f"bound {most:.6g}"
    return _cost_words(bound)


def _cost_words(bound: AnyBound) -> str:
    """Return what a release cost and which noise it has."""
    match bound:
        case provenance.BudgetPart(part, noise):
            return f"{part:.3g} of the budget" + ("" if noise is None else f"; {_NOISES[noise]}")
        case provenance.ScoreBudgetPart(part, pure_kind):
            noise_words = _NOISES[Noise.GAUSSIAN] if pure_kind is None else f"{pure_kind} of pure noise"
            return f"{part:.0%} of the budget; {noise_words}"
        case provenance.ShapedNoise(noise, several):
            return f"{_NOISES[noise]} in the shape of {'their' if several else 'its'} predictions"
        case provenance.TwoSearches(counts):
            return f"two searches of {counts} noisy counts each"
        case str():
            return bound
    raise TypeError(type(bound).__name__)


def premise_words(premise: AnyPremise) -> str:
    """Return what a guarantee rests on beside its proofs."""
    match premise:
        case Premise.LEARNER_SEES_ROWS_ALONE:
            return _LEARNER_SEES_ROWS_ALONE
        case PublicPrediction(column):
            return (
                f"the column {column!r} is taken as public: the guarantee is false if it was computed from outcomes "
                "of this study"
            )
    return premise
