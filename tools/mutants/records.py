"""Faults in estimates from private records: inverse weights, models, folds, private scores."""

from __future__ import annotations

from functools import partial

from tools.mutants.mutant import ESTIMATES, Mutant, fault

_of = partial(fault, ESTIMATES)
_IPW = "contract/test_ipw.py"
_MODELS = "contract/test_models.py"
_ARM_MODELS = "unit/estimators/moments/test_arm_models.py"
_RECORDS = "contract/test_pairs.py"

RECORDS: tuple[Mutant, ...] = (
    # Inverse weights.
    _of("weighted_moments._clamped", "else rows - float(treated)", "else float(treated)", _IPW),
    _of(
        "denominator",
        "declared if estimand is Estimand.ATT else 1 - declared",
        "1 - declared if estimand is Estimand.ATT else declared",
        _IPW,
    ),
    _of(
        "weighting.uncertainty_of",
        "weighted.mean**2 - weighted.effect_noise",
        "weighted.mean**2 + weighted.effect_noise",
        _IPW,
    ),
    _of(
        "weighting.uncertainty_of",
        "(beyond / weighted.size) ** 2 * weighted.count_variance",
        "abs(beyond / weighted.size) * weighted.count_variance",
        _IPW,
        about="a share's error not squared",
    ),
    _of(
        "weighting.uncertainty_of",
        "cap = factor**2 * weighted.rows",
        "cap = factor**2 * weighted.rows / 4",
        _IPW,
    ),
    _of("weighting.effect_of", "(first - second) * unit + beyond, beyond", "beyond, beyond", _IPW),
    _of(
        "Weighing.weights", "np.where(treated, 1.0, p / (1 - p))", "np.where(treated, 1.0, (1 - p) / p)", _IPW
    ),
    _of(
        "weighted_moments.release_moments",
        "sensitivity.squares * factor**2",
        "sensitivity.squares * factor",
        _IPW,
    ),
    _of("ipw_nuisances.arm_centres", "/ (size**2 + sd**2)", "/ size**2", _IPW),
    # Moments by arm.
    _of("doubly_robust.adjusted_effect", "(noise + product, 0.0, 0)", "(noise, 0.0, 0)", _MODELS),
    _of("doubly_robust.adjusted_effect", "part * unit**2 for part in", "part * unit for part in", _MODELS),
    _of("doubly_robust.adjusted_effect", "(product, noise, 2)", "(product + noise, 0.0, 0)", _MODELS),
    _of("balanced_weights._overlapping", "[p[0], -p[1]]", "[p[1], -p[0]]", _ARM_MODELS),
    _of("far_lost", "total += share * np.maximum", "total += np.maximum", _ARM_MODELS),
    _of("score_clip._held", "return HELD * np.where", "return 0 * np.where", _ARM_MODELS),
    _of("longest_weighted", "farthest_outcome + ", "", _ARM_MODELS),
    _of(
        "score_clip.chosen_clip",
        "< cells, sizes.counts, 0.0)",
        "<= len(edges), sizes.counts, 0.0)",
        _ARM_MODELS,
    ),
    _of("scored_effect", "released.score - balanced.shared", "released.score", _MODELS),
    _of("scored_effect", "product + expected_shared(balanced.shared)", "product", _MODELS),
    _of("scored_effect", "(balanced.bias + balanced.nonlinear_shift + lost) * unit", "0.0", _MODELS),
    _of("scored_effect", "balanced.bias + balanced.nonlinear_shift + lost", "balanced.bias + lost", _MODELS),
    _of("balanced_weights._arm_weights", "bias**2 + expected_shared(shared)", "bias**2", _ARM_MODELS),
    _of("moved_by_richer", "moved > _SURE_MOVED", "moved < _SURE_MOVED", _ARM_MODELS),
    _of("balanced_weights._contrast", "float(weights @ along)", "float(abs(weights) @ along)", _ARM_MODELS),
    _of("arm_chain.shortest", "_WITHIN * least", "2 * _WITHIN * least", _ARM_MODELS),
    _of("arm_chain.shortest", "_HARDLY, min(before)", "_HARDLY, max(before)", _ARM_MODELS),
    _of("scored_effect", "(sampling + balanced.sampling) * unit**2", "sampling * unit**2", _MODELS),
    _of(
        "adjusted_mean",
        "arm_weights.shared + float(weights @ sums)",
        "arm_weights.shared",
        "unit/questions/test_measures.py",
    ),
    # Means of several arms.
    _of(
        "CellMean.estimate",
        "(1 + self._place) / 2",
        "(1 + self._place)",
        "unit/estimators/moments/test_contrast.py",
    ),
    # A prediction taken off everybody's outcome.
    _of(
        "residual_arm_sums",
        "block.steps - prediction.steps(block)",
        "part.steps + prediction.steps(part)",
        _MODELS,
    ),
    _of("Prediction.fitted", "1 / (1 - Fraction(", "1 / (1 + Fraction(", _MODELS),
    # Cross-fitting.
    _of(
        "doubly_robust.effect_of",
        "part * (1 - half.effect_bias) * half.models.effect",
        "part * half.models.effect",
        _MODELS,
    ),
    _of(
        "doubly_robust.effect_of",
        "weighted.mean**2 - weighted.effect_noise",
        "weighted.mean**2 + weighted.effect_noise",
        _MODELS,
    ),
    _of("doubly_robust.effect_of", "part**2 * (half.variance", "part * (half.variance", _MODELS),
    _of("doubly_robust.effect_of", "* weighted.count_variance", "* 0.0", _MODELS),
    _of("ScoreModels.score", "(1 - t) * (y - second) / (1 - e)", "(1 - t) * (y - second) / e", _MODELS),
    # Folds.
    _of(
        "aggregation.uncertainty_of",
        "(weighted.square - mean_square) / (folds - 1)",
        "(weighted.square - mean_square) / folds",
        _MODELS,
    ),
    _of("aggregation.uncertainty_of", "stdtrit(folds - 1, tail)", "ndtri(tail)", _MODELS),
    _of(
        "aggregation.uncertainty_of",
        "weighted.mean**2 - weighted.effect_noise",
        "weighted.mean**2 + weighted.effect_noise",
        _MODELS,
    ),
    _of("folds.sample_and_aggregate", "estimate=float(clip.centre) + bound", "estimate=bound", _MODELS),
    _of("Clip.lost", "- _beyond(1 + off, sd)", "+ _beyond(1 + off, sd)", _MODELS),
    # Matching on released scores.
    _of("proved_matching.shrinkage_of", "(2 * p - 1) * q * (1 - q)", "q * (1 - q)", _RECORDS),
    _of(
        "effect_of",
        "float(released[1]) / float(square_weight)",
        "float(released[1])",
        "contract/test_pairs.py",
    ),
    _of(
        "effect_of",
        "(clip * total + n * middle) * unit",
        "(clip * total - n * middle) * unit",
        "unit/estimators/pairs/test_effect.py",
    ),
    _of(
        "_lines",
        "-w1 * (m0 + start), w0 * m0",
        "-w1 * m0, w0 * m0",
        "unit/rows/pairs/test_pair_scores.py",
    ),
    _of(
        "released_numbers",
        "(low + high) / 2 - control.estimate",
        "(low + high) / 2 + control.estimate",
        "unit/estimators/pairs/test_effect.py",
    ),
    _of(
        "Target.start",
        "models.treated, -models.control",
        "models.treated, models.control",
        "unit/rows/pairs/test_pair_scores.py",
    ),
    _of(
        "Target.weights",
        "self.tilt / (1 - self.propensity)",
        "self.tilt / self.propensity",
        "unit/rows/pairs/test_pair_scores.py",
    ),
)
