"""Faults in comparisons of means, weighted sums and strata: estimates and what is said of their error."""

from __future__ import annotations

from functools import partial

from tools.mutants.mutant import ESTIMATES, Mutant, fault

_of = partial(fault, ESTIMATES)
_DIFFERENCES = "contract/test_differences.py"
_SITES = "unit/rows/linear/test_difference_in_means.py"
_WEIGHTS = "contract/test_weights.py"
_STRATA = "contract/test_strata.py"
_CLUSTERS = "contract/test_clusters.py"

COMPARISONS: tuple[Mutant, ...] = (
    # Difference in means, outcomes private.
    _of(
        "arm_contrast.release_contrast",
        "(arms.treated.mean() - arms.control.mean())",
        "(arms.control.mean() - arms.treated.mean())",
        _DIFFERENCES,
    ),
    _of(
        "arm_contrast.release_contrast",
        "+ arms.control.variance() / arms.control.count",
        "+ arms.control.variance() / arms.treated.count",
        _DIFFERENCES,
    ),
    _of("effect.known_error", "variance_noise=variance.noise,", "variance_noise=None,", _DIFFERENCES),
    _of("difference_in_means._largest_variance", "n * (n - 1))", "n * n)", _DIFFERENCES),
    _of("SitesContrast.squares", "weight**2 * contrast.squares", "weight * contrast.squares", _SITES),
    _of(
        "SitesContrast.variance_cap",
        "weight**2 * contrast.variance_cap",
        "weight * contrast.variance_cap",
        _SITES,
    ),
    # Clusters.
    _of(
        "cluster_form.length",
        "total[a] * arms[a] - signed[a] * means[a]",
        "total[a] * arms[a]",
        _CLUSTERS,
        about="residuals around zero",
    ),
    _of("cluster_freedom.freedom_at", "- shared - shared.T", "- shared", _CLUSTERS),
    _of("clusters.known_sd", "** 2 * self.extra", "* self.extra", _CLUSTERS),
    _of(
        "clustered_trial.compared",
        "np.sqrt(clusters / (clusters - 1))",
        "np.sqrt(clusters / clusters)",
        _CLUSTERS,
        about="no correction for few clusters",
    ),
    _of(
        "clustered_trial.compared",
        "(sum_noise + mean[cells.arm] ** 2 * count_noise)",
        "sum_noise",
        _CLUSTERS,
        about="noise of the counts",
    ),
    # Contrasts, records private.
    _of(
        "Contrast.uncertainty",
        "+ noise.variance) / rows",
        "- noise.variance) / rows",
        _DIFFERENCES,
        about="sign of the noise variance",
    ),
    _of(
        "Contrast.uncertainty",
        "(off**2 + setting.centre_sd**2) / (q * (1 - q)) ** 2",
        "(off**2 + setting.centre_sd**2) / (q * (1 - q))",
        _DIFFERENCES,
        about="a share's error not squared",
    ),
    _of(
        "Contrast.uncertainty",
        "(off**2 + setting.centre_sd**2)",
        "off**2",
        _DIFFERENCES,
        about="noise of the centre",
    ),
    _of("Contrast.uncertainty", " + (1 - 2 * q) * estimate", "", _DIFFERENCES),
    _of("Contrast.uncertainty", "variance -= counted", "variance += counted", _DIFFERENCES),
    _of(
        "PrivateArms.moments",
        "control.centred_squares(centre) / (1 - q) ** 2",
        "control.centred_squares(centre) / (1 - q)",
        _DIFFERENCES,
    ),
    _of(
        "contrast._centred_on_arms",
        "best = (1 - q) * means[0] + q * means[1]",
        "best = q * means[0] + (1 - q) * means[1]",
        _DIFFERENCES,
    ),
    _of("contrast._centred_on_arms", "+ float(q / (1 - q)) ** 2", "", _DIFFERENCES),
    _of("contrast.release_means", "middle + total / size", "total / size", _DIFFERENCES),
    _of(
        "with_confounding_bound",
        "(LEFT_OF_TREATMENT * sqrt(share * (1 - share)))",
        "sqrt(share * (1 - share))",
        _DIFFERENCES,
    ),
    _of(
        "with_confounding_bound",
        "- uncertainty.extra, 0.0) * rows",
        "- uncertainty.extra, 0.0)",
        _DIFFERENCES,
    ),
    # Weighted sums with public coefficients.
    _of("moved_rows.residuals", "values = lowest + float(", "values = float(", _WEIGHTS),
    _of(
        "WeightedOutcomes.release",
        "* bounds.width**2\n",
        "* bounds.width\n",
        _WEIGHTS,
    ),
    _of("LinearEstimate.variance_cap", "self.squares / 4", "self.squares / 2", _WEIGHTS),
    _of("WithBias.value", "self.factor * ", "", _WEIGHTS),
    _of("LinearEffect.with_bias", "1 - 1 / self.factor", "1 / self.factor", _WEIGHTS),
    _of("PairedVariance.value", "(self.bits + steps_bits + 1)", "(self.bits + steps_bits)", _WEIGHTS),
    _of("paired_variance.paired_variance", "share[first] + share[second]", "share[first]", _WEIGHTS),
    _of(
        "residual_variance.GroupSquares.values",
        " - Fraction(int(y.sum()) ** 2, len(y))",
        "",
        "unit/estimators/linear/test_matching.py",
        "unit/rows/linear/test_residual_variance.py",
    ),
    _of(
        "spectrum.Spectrum.freedom",
        "len(self.rows) - 1 - self.explained(strength)",
        "len(self.rows) - 1",
        "unit/rows/linear/test_residual_variance.py",
        "unit/estimators/linear/test_weighting.py",
    ),
    _of(
        "DualProblem.pulls",
        "slopes + self.arm_correlation * slopes[::-1]",
        "slopes",
        "unit/estimators/linear/test_balancing_weights.py",
    ),
    _of(
        "balancing_weights._squared_imbalance",
        "2.0 * float(arm_correlation @",
        "float(arm_correlation @",
        "unit/estimators/linear/test_balancing_weights.py",
    ),
    # Several arms.
    _of("means.arm_means", "low + float(mean)", "float(mean)", _WEIGHTS),
    _of("ArmsResult._contrast", "[1.0, -1.0]", "[-1.0, 1.0]", _WEIGHTS),
    _of("weighted", "[weight**2 for weight in weights]", "weights", _WEIGHTS),
    _of("arm_means.plain_mean", "arm.variance() / arm.count * unit**2", "arm.variance() * unit**2", _WEIGHTS),
    _of("WeightedArm.values", "self.sensitivity.width**2", "self.sensitivity.width", _WEIGHTS),
    _of("matched_arm._match", "(1.0 + borrowed)", "borrowed", _WEIGHTS),
    # Strata.
    _of(
        "bounded_effect._uncertainty",
        "cap = float(sums.bounds.limit * sums.width**2 / sums.bounds.rows) / share",
        "cap = float(sums.bounds.limit * sums.width**2 / sums.bounds.rows) / share / 2",
        _STRATA,
    ),
    _of(
        "bounded_effect._uncertainty",
        "extra = effect**2 * released.weight.noise.variance / share**2",
        "extra = 0.0",
        _STRATA,
    ),
    _of(
        "bounded_effect._uncertainty",
        "sums.variance_bound / weight_kept**2",
        "sums.variance_bound / weight_kept",
        _STRATA,
    ),
    _of(
        "bounded_effect._uncertainty",
        "float(released.variance) / share**2",
        "float(released.variance) / share",
        _STRATA,
    ),
    _of(
        "strata._uncertainty",
        "2 * drawn.weight / rows * unit, log_scale",
        "drawn.weight / rows * unit, log_scale",
        _STRATA,
    ),
    _of(
        "strata._uncertainty",
        "(drawn.effect * unit / drawn.share) ** 2",
        "(drawn.effect * unit / drawn.share)",
        _STRATA,
        about="a share's error not squared",
    ),
    _of(
        "strata._uncertainty",
        "unit**2 / 2, variance, extra",
        "unit**2 / 4, variance, extra",
        _STRATA,
    ),
    _of(
        "outcome_effect.stratified_outcome",
        "cap = float(bounds.weight * width**2 / strata.total)",
        "cap = float(bounds.weight * width**2 / strata.total) / 2",
        _STRATA,
    ),
    _of("stratified.stratum_weights", "most * treated", "most * control", _STRATA),
    _of(
        "stratified._squares",
        "squares_around_mean * count / np.maximum(count - 1, 1)",
        "squares_around_mean",
        _STRATA,
    ),
)
