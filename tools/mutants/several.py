"""Faults in answers of several numbers: groups, rules, curves, effects as functions, sites; and in intervals."""

from __future__ import annotations

from functools import partial

from tools.mutants.mutant import ESTIMATES, Mutant, fault

_of = partial(fault, ESTIMATES)
_SHARES = "unit/mechanisms/test_noise.py"
_GROUPS = "contract/test_groups.py"
_FUNCTIONS = "contract/test_functions.py"
_SERIES = "contract/test_series.py"
_LINEAR_MAP = "unit/rows/linear/test_linear_map.py"
_POOLED = "contract/test_pooled.py"
_UNCERTAINTY = "unit/inference/test_uncertainty.py"

_SURVIVAL = "unit/inference/test_survival.py"
_TIMES = "unit/rows/test_time_tables.py"

SEVERAL: tuple[Mutant, ...] = (
    _of("TimeTables.l2", "sqrt_up(2 * sum", "sqrt_up(sum", _TIMES),
    _of("TimeTables.l1", "return 2 * sum", "return sum", _TIMES),
    _of("follow_up.entries", 'side="left"', 'side="right"', "unit/data/test_study.py"),
    _of("TableNoise.of", "covariance -= np.outer", "covariance += np.outer", _SURVIVAL),
    _of("Blocks.moved", "rows[None] - hazards", "rows[None] + hazards", _SURVIVAL),
    _of("table_gradient", "gradient += by_events", "gradient -= by_events", _SURVIVAL),
    _of("hazard_ratio.score", "by_people = -sign", "by_people = sign", _SURVIVAL),
    _of("OutcomeCells.places", 'side="right"', 'side="left"', "unit/estimators/test_distribution.py"),
    _of("ArmWeights.sums", "[self.rows]", "[: len(self.rows)]", _TIMES),
    _of(
        "panels.changes",
        "(apart + OUTCOME_STEPS) >> 1",
        "apart + OUTCOME_STEPS",
        "unit/data/test_before.py",
    ),
    _of(
        "EventStudyResult.pre_trend_p_value",
        "len(self.before) * ",
        "",
        "unit/questions/test_event_study.py",
    ),
    _of(
        "EventStudyResult._with_reference",
        "NoiseSum(noise, self.reference_noise)",
        "noise",
        "unit/questions/test_event_study.py",
    ),
    _of(
        "ArmRatios.squares",
        "2 * unit_n * step * products",
        "unit_n * step * products",
        "unit/estimators/moments/test_release_chains.py",
    ),
    # Cells of groups.
    _of(
        "cell_tallies._tallies",
        "(low - middle + high) * clip.size**2",
        "(low + high) * clip.size**2",
        _GROUPS,
    ),
    _of("cell_tallies._tallies", "sd * SUM_NOISE * clip.size,", "sd * SUM_NOISE,", _GROUPS),
    _of("cell_tallies._tallies", "sd * COUNT_NOISE,", "sd,", _GROUPS),
    _of("cells._squares_noise", "(m**2 * n) ** 2", "0 * n", _GROUPS),
    _of("cells.cell_variances", "cells.squares / sizes - means**2", "cells.squares / sizes", _GROUPS),
    _of("cells.model_errors", "shift = score.weight * part", "shift = -score.weight * part", _GROUPS),
    _of("cells.model_errors", "score.weight**2 * (", "score.weight * (", _GROUPS),
    _of("record.cell_ratios", "size_sd=cells.size_sd", "size_sd=0.0", _GROUPS),
    _of("record.cell_ratios", "float(variances[cell]) * unit**2", "float(variances[cell]) * unit", _GROUPS),
    _of("record._effects", "cells.size_sd * float(np.sqrt(2))", "cells.size_sd", _GROUPS),
    _of("PlainScore.value", "-1 / (1 - e)", "-1 / e", _GROUPS),
    _of(
        "PlainScore.extra",
        "(self.share_sd / (self.share * (1 - self.share))) ** 2",
        "(self.share_sd / (self.share * (1 - self.share)))",
        _GROUPS,
    ),
    _of("NoisyRatio.interval", " + size**2 * self.extra", "", _GROUPS),
    _of("NoisyRatio.interval", "rest = (noise * self.size_sd) ** 2", "rest = 0.0", _GROUPS),
    _of("NoisyRatio.noise_sd", "sqrt(ratio_sd**2 + self.extra)", "ratio_sd", _GROUPS),
    _of(
        "RatioDifference.sampling_sd",
        "hypot(self.one.sampling_sd, self.other.sampling_sd)",
        "self.one.sampling_sd",
        _GROUPS,
    ),
    # Outcomes at the ends of their range.
    _of("outcomes_at_ends", "crowd(*counts[:-3:-1])", "crowd(*counts[:2])", "unit/estimators/test_ends.py"),
    # Rules and curves.
    _of("sums.effect_sums", "2 * worth * totals", "worth * totals", _GROUPS),
    _of("sums.effect_sums", "abs(worth) * size_sd / rows", "0.0", _GROUPS),
    _of(
        "sums.effect_sums",
        "np.maximum(sizes, cells.safe_sizes)",
        "sizes",
        "unit/questions/groups/test_policy.py",
    ),
    _of(
        "policy._constant",
        "False if False in said",
        "None if False in said",
        "unit/questions/groups/test_policy.py",
    ),
    _of("EffectSums.sum", "- value**2, 0.0)", ", 0.0)", _GROUPS),
    _of("EffectSums.sum", "sqrt(float(weights @ weights))", "float(weights.sum())", _GROUPS),
    _of(
        "policy_gains.gains_of_rule",
        '"policy - everybody": -others',
        '"policy - everybody": others',
        _GROUPS,
    ),
    _of("curve._qini", "(steps[cell] + after) / 2", "steps[cell]", _GROUPS),
    _of("curve._autoc", "weights - 1.0", "weights", _GROUPS),
    # Effects as functions.
    _of("Passes.averaged", "float(share**2 @ noise)", "float(share @ noise)", _FUNCTIONS),
    _of("fitting.effect_weights", " + (shrunk_away * upper) @ shrunk_away.T", "", _FUNCTIONS),
    _of("cate_model.one_effect_model", "np.array([[sd**2]])", "np.array([[sd]])", _FUNCTIONS),
    _of("Look.sampling", "squares[1] * functions.squared[1]", "squares[0] * functions.squared[1]", _SERIES),
    _of("series._unshrunk", "+= look.covariance", "+= look.noise", _SERIES),
    _of("CateModel._around", " + np.abs(self._shrunk(basis_features))", "", _SERIES),
    _of("LinearMap.values", "min(2 * self.clip, self.width)", "self.clip", _LINEAR_MAP),
    _of("LinearMap.squares", "self.clip**2", "self.clip", _LINEAR_MAP),
    _of(
        "model_of_weights.effect_model",
        "errors * unit**2",
        "errors * unit",
        _FUNCTIONS,
        "unit/questions/cate/test_cate.py",
    ),
    _of("r_learner.r_learner", "2.0 / (design.length * _BOTH)", "1.0 / (design.length * _BOTH)", _FUNCTIONS),
    _of("CateModel._around", "factor * deviations", "deviations", _FUNCTIONS),
    # Sites.
    _of("PooledUncertainty._sum", "weight**2 * variance", "weight * variance", _POOLED),
    _of(
        "pooling.steadied_variances",
        "(shrunk + np.sqrt(reliability * noise)) / size",
        "shrunk / size",
        _POOLED,
    ),
    _of("subset_pooling.best_subset", "variance / people**2", "variance / people", _POOLED),
    _of("pooling.pooling_weights", "weights = 1 / variances", "weights = 1 / np.sqrt(variances)", _POOLED),
    _of("SpreadOfSites.of", "ddof=1", "ddof=0", _POOLED),
    _of("SpreadOfSites.half_width", "self.sites - 1", "self.sites", _POOLED),
    _of(
        "WeightedSum.variance", "weight**2 * distribution.variance", "weight * distribution.variance", _POOLED
    ),
    # Bounds on the bias of omitted confounders.
    _of(
        "measures.bias_bound",
        "treatment_r2 / (1 - treatment_r2)",
        "treatment_r2",
        "unit/inference/test_confounding.py",
    ),
    _of("measures._scale", "rows * variance", "variance", "unit/results/test_unmeasured_confounding.py"),
    # Intervals.
    _of("Uncertainty.half_width", " + self.bias", "", _UNCERTAINTY),
    _of("Uncertainty.half_width", "biased_half_width(half, self.bias, level)", "half", _UNCERTAINTY),
    _of("Uncertainty.p_value", "tail(off + self.bias, sd, None)", "0.0", _UNCERTAINTY),
    _of("Uncertainty.known_variance", "() + kappa", "() - kappa", _UNCERTAINTY),
    _of("uncertainty.positive_part", "np.maximum(released, 0.0)", "released", _UNCERTAINTY),
    _of("Uncertainty.known_sd", "(alpha) + self.extra_at(alpha))", "(alpha))", _FUNCTIONS),
    _of("Uncertainty.beyond", "abs(distance) - self.bias", "abs(distance)", _UNCERTAINTY),
    _of("convolution._one_half_width", "max(2 * beyond, 1e-300)", "max(beyond, 1e-300)", _UNCERTAINTY),
    _of("uncertainty.variance_allowance", "return high**2", "return high", "contract/test_strata.py"),
    # Shares of noise that sites add up: their law, and what intervals take it for.
    _of("summed_normal.draw_gamma", "* x / (x + y)", "* x", _SHARES),
    _of("summed_normal._accepted", "(2 * variance)", "variance", _SHARES),
    _of("SummedGaussian.scale", "Fraction(self.sites, self.honest)", "Fraction(1)", _SHARES),
    _of("SummedBall.variance", "* self.sites / self.honest", "", _SHARES),
    _of("airlock._rounded", "ROUND_FLOOR if", "ROUND_CEILING if", "unit/cli/test_export.py"),
)
