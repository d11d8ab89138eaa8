"""Faults in how far one person can move what is released, and in what keeps a row inside its bounds."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tools.mutants.mutant import PRIVACY, Mutant, fault

_of = partial(fault, PRIVACY)
_TESTS = Path(__file__).parents[2] / "tests" / "unit"


def _unit(path: str) -> str:
    """Return where the tests of a bound stand: beside its rows, or beside the estimator that it is tested with."""
    folder, name = path.split("/")
    file = f"{folder}/test_{name}.py"
    room = "rows" if (_TESTS / "rows" / file).exists() else "estimators"
    return f"unit/{room}/{file}"


def _rows(path: str) -> str:
    folder, name = path.split("/")
    return f"unit/rows/{folder}/test_{name}.py"


SENSITIVITIES: tuple[Mutant, ...] = (
    _of(
        "DifferenceInMeans.estimate",
        "self.width / self.smallest_arm",
        "self.width / (self.treated + self.control)",
        "unit/rows/linear/test_difference_in_means.py",
    ),
    _of(
        "DifferenceInMeans.variance",
        "(self.width / self.smallest_arm) ** 2",
        "(self.width / self.smallest_arm) ** 2 / 2",
        "unit/rows/linear/test_difference_in_means.py",
    ),
    _of(
        "SitesContrast.estimate",
        "max(weight * contrast.estimate",
        "min(weight * contrast.estimate",
        "unit/rows/linear/test_difference_in_means.py",
    ),
    _of(
        "ArmMean.variance",
        "(self.width / self.rows) ** 2",
        "(self.width / self.rows) ** 2 / 2",
        "unit/rows/linear/test_difference_in_means.py",
    ),
    _of(
        "CentredContrast.ends",
        "max(above / self.share, -below / other)",
        "above / self.share",
        _unit("moments/contrast"),
    ),
    _of(
        "regression_outcomes._clipped_rows",
        "prediction=np.zeros(len(rows.mix)), ",
        "",
        _unit("moments/regression_moments"),
    ),
    _of("WorkingRows.lengths", "bound * z[", "z[", _unit("moments/regression_moments")),
    _of(
        "release_limit_counts",
        "Fraction(2 * (1 + len(watched)))",
        "Fraction(2)",
        _unit("moments/regression_moments"),
    ),
    _of(
        "Sandwich.release_middle",
        "Fraction(longest)",
        "Fraction(longest) / 2",
        _unit("moments/regression_moments"),
    ),
    _of("balance_sums", "max(same_arm, other_arm)", "same_arm", _rows("moments/balance_sums")),
    _of("balance_sums.exact_sums", "FLAGS * total", "2 * FLAGS * total", _rows("moments/balance_sums")),
    _of("weighting_design.trimmed", "score >= limit", "score >= 0", _unit("linear/weighting")),
    _of("CentredContrast.largest_square", "max(end**2", "min(end**2", _unit("moments/contrast")),
    _of(
        "mean_of_everyone",
        "return width / rows",
        "return width / (2 * rows)",
        _unit("moments/contrast"),
    ),
    _of("ArmRatios.sums_l1", "max(same_arm, other_arm)", "same_arm", _unit("moments/release_chains")),
    _of(
        "ArmRatios.sums_l2",
        "max(same_arm, 2 * other_arm)",
        "max(same_arm, other_arm)",
        _unit("moments/release_chains"),
    ),
    _of("ArmRatios.largest_square", "max(", "min(", _unit("moments/release_chains")),
    _of(
        "PeriodComparisons.release",
        "largest * width)",
        "largest * width / 2)",
        "unit/rows/linear/test_event_study.py",
    ),
    _of("both_sums", "return width", "return width / 2", _unit("moments/contrast")),
    _of(
        "cluster_form.largest_change",
        "1 - 2 * np.sign(coefficient)",
        "1 - 4 * np.sign(coefficient)",
        "unit/rows/linear/test_clustered_error.py",
    ),
    _of("cluster_totals.totals", "OUTCOME_STEPS // 2", "0", _unit("strata/cluster_cells")),
    _of("ClusterCells.counts", "Fraction(2)", "Fraction(1)", _unit("strata/cluster_cells")),
    _of(
        "LinearEstimate.estimate",
        "self.width * self.largest",
        "self.width * self.largest / 2",
        "unit/rows/linear/test_linear_estimate.py",
    ),
    _of(
        "LinearEstimate.variance",
        "self.largest_row / 2",
        "self.largest_row / 4",
        "unit/rows/linear/test_linear_estimate.py",
    ),
    _of("WithBias.largest_row", "self.factor * ", "", "unit/rows/linear/test_linear_estimate.py"),
    _of(
        "PairedVariance.largest_row",
        "        np.add.at(sums, self.second, self.units)\n",
        "",
        "unit/rows/linear/test_linear_estimate.py",
    ),
    _of(
        "residual_variance.ResidualVariance.largest_row",
        "2 * max(",
        "max(",
        "unit/rows/linear/test_residual_variance.py",
    ),
    _of(
        "BoundedStrata.effect",
        "2 * self.limit + 2 * ROUNDING * self.rows",
        "2 * self.limit",
        "contract/test_strata.py",
        _unit("strata/bounded_strata"),
        about="rounding",
    ),
    _of(
        "BoundedStrata.weight",
        "self.limit + 2 * ROUNDING * self.rows",
        "self.limit",
        "contract/test_strata.py",
        _unit("strata/bounded_strata"),
        about="rounding",
    ),
    _of("BoundedStrata.largest_gain", "_share(w - 1)", "_share(w)", _unit("strata/bounded_strata")),
    _of(
        "BoundedStrata.largest_loss",
        "(8 * w**2 - 4 * w - 1) / 12",
        "(8 * w**2 - 4 * w - 1) / 24",
        _unit("strata/bounded_strata"),
    ),
    _of(
        "StrataOutcome.effect",
        " + 2 * self.rows * _ROUNDING",
        "",
        "contract/test_strata.py",
        _unit("strata/bounded_strata"),
        about="rounding",
    ),
    _of(
        "StrataOutcome.of",
        "np.minimum(treated, control)",
        "np.maximum(treated, control)",
        _unit("strata/bounded_strata"),
    ),
    _of(
        "StrataOutcome.of_arm",
        "counts[both]).max(initial=0.0)",
        "counts[both]).mean()",
        _unit("strata/bounded_strata"),
    ),
    _of(
        "strata_variance.pooled_change",
        "Fraction(5, 4) + 2 * ROUNDING * rows",
        "Fraction(5, 4)",
        "contract/test_strata.py",
        "unit/published/test_strata_variance.py",
        about="rounding",
    ),
    _of(
        "stratified_effect.global_change",
        "rows + 1 if rows > 2",
        "rows if rows > 2",
        "unit/published/test_stratified_effect.py",
    ),
    _of(
        "stratified_effect._Reach.change",
        "max(rem, add) + self.flip",
        "max(rem, add)",
        "unit/published/test_stratified_effect.py",
    ),
    _of(
        "stratum_counts.smooth_bound",
        "float(smoothness - SMOOTHNESS_MARGIN)",
        "float(2 * smoothness)",
        "unit/published/test_stratified_effect.py",
    ),
    _of(
        "WeightedMoments.joint",
        "sqrt_up(4 + COUNT_FACTOR**2) if self.counted else Fraction(2)",
        "Fraction(2)",
        _unit("moments/inverse_weighting"),
    ),
    _of(
        "WeightedMoments.total",
        "return Fraction(2)",
        "return Fraction(1)",
        _unit("moments/inverse_weighting"),
    ),
    _of(
        "inverse_weights.Weighing.scale",
        "max(c, STEPS - c)",
        "min(c, STEPS - c)",
        _unit("moments/inverse_weighting"),
        "contract/test_ipw.py",
    ),
    _of("penalised_fit", "return 2 * (", "return (", _rows("moments/record_moments")),
    _of(
        "FoldAverage.mean",
        "2 * self.bound / self.folds",
        "self.bound / self.folds",
        _unit("folds/fold_average"),
    ),
    _of(
        "FoldEffects.steps",
        "np.clip((effects - float(self.centre)) / float(self.bound), -1.0, 1.0)",
        "(effects - float(self.centre)) / float(self.bound)",
        "unit/estimators/folds/test_folds.py",
        _unit("folds/fold_average"),
    ),
    _of(
        "record_moments",
        "8 * weight**2",
        "4 * weight**2",
        _rows("moments/record_moments"),
        "contract/test_groups.py",
    ),
    _of(
        "free_gram",
        "sqrt_up(Fraction(2)) * squared_max_norm",
        "squared_max_norm",
        _rows("moments/record_moments"),
    ),
    _of("free_gram", " * (1 + LENGTH_SLACK)", "", "contract/test_noise.py", about="rounding"),
    _of(
        "sensitivity.orthogonal_score",
        "Fraction(2, rows)",
        "Fraction(1, rows)",
        _rows("moments/record_moments"),
    ),
    _of(
        "residual_moments",
        "2 * (1 + LENGTH_SLACK)",
        "(1 + LENGTH_SLACK)",
        _rows("moments/record_moments"),
    ),
    _of("arm_statistics", "return 2 * ", "return ", _rows("moments/arm_statistics")),
    _of("CellTerms.absolute", "2 + 2 * sum(", "1 + 2 * sum(", _rows("moments/record_moments")),
    _of(
        "arms.bounds",
        "absolute * sum(weights, Fraction(0))",
        "absolute * max(weights)",
        _unit("moments/contrast"),
    ),
    _of(
        "score_sums.release_own_scores",
        "SCORE_TERMS.euclidean",
        "SCORE_TERMS.euclidean / 2",
        _rows("moments/arm_releases"),
    ),
    _of(
        "CellTerms.euclidean", "sqrt_up(2 + 4 * sum(", "sqrt_up(2 + 2 * sum(", _rows("moments/record_moments")
    ),
    _of(
        "scores.whole_steps",
        "np.clip(np.nan_to_num(terms), -1.0, 1.0)",
        "np.nan_to_num(part)",
        _rows("moments/record_moments"),
        "unit/estimators/moments/test_doubly_robust.py",
    ),
    _of(
        "Standard.rows",
        "out[1:] *= np.sqrt",
        "np.sqrt",
        "unit/numerics/test_features.py",
    ),
    _of(
        "residuals_by_arm",
        "high - low + 2 * prediction.bound_steps * step",
        "high - low + prediction.bound_steps * step",
        "contract/test_models.py",
    ),
    _of(
        "pair_sensitivity",
        "PAIR_LENGTH * vectors.length",
        "PAIR_LENGTH * vectors.length * Fraction(7, 10)",
        _rows("pairs/pair_scores"),
    ),
    _of("_longest", ".max())", ".min())", _rows("pairs/pair_scores")),
    _of("Fit.times", "relative_error * np.outer", "0 * np.outer", _unit("pairs/effect")),
    _of(
        "Place.fixed",
        "np.clip(moved // (2 * self.half_width), -(1 << OUTCOME_BITS), 1 << OUTCOME_BITS)",
        "moved // (2 * self.half_width)",
        _rows("pairs/pair_scores"),
    ),
    _of(
        "ScoreLines.values",
        "np.clip((raw + (1 << (_SHIFT - 1))) >> _SHIFT, -unit, unit)",
        "(raw + (1 << (_SHIFT - 1))) >> _SHIFT",
        _rows("pairs/pair_scores"),
    ),
    _of("function_sensitivity", "_PAIR * vectors.length", "vectors.length", _rows("pairs/pair_scores")),
    _of(
        "Target._of_arm",
        "treated if self.arm in (None, 0) else np.zeros(len(treated))",
        "treated",
        _rows("pairs/pair_scores"),
    ),
    _of(
        "ScoreLines.sums",
        "form.square_weight * Fraction(",
        "2 * form.square_weight * Fraction(",
        _rows("pairs/pair_scores"),
    ),
)
