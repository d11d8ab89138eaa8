"""How the single figures of a result are called in print; their keys in `details` are identifiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LABELS = {
    "bias_allowance": "bias that the interval allows for",
    "centre_control": "centre of the controls",
    "centre_treated": "centre of the treated",
    "claimed_sensitivity": "sensitivity claimed",
    "coefficient_noise_sd": "noise SD of each coefficient",
    "confounding_bound": "bound on confounding",
    "cut_points": "cut points (released)",
    "declared_propensity": "propensity score (declared)",
    "effect_noise_sd": "SD of the effect's noise (not protected)",
    "explained_variance": "share of outcome variance explained (released)",
    "fold_bound": "bound on a fold's effect",
    "fold_bound_centre": "centre of that bound",
    "mechanism": "noise",
    "matched_strata": "strata with both arms",
    "least_score_kept": "least propensity score kept",
    "matches_at_limit": "share of matches at the limit",
    "max_delta_loss": "delta lost, at most",
    "max_propensity": "highest propensity score",
    "max_sensitivity": "largest sensitivity at the noisy weights",
    "max_uses": "most uses of a unit, by arm",
    "max_uses_control": "most uses of a control unit",
    "max_uses_treated": "most uses of a treated unit",
    "max_weight": "largest weight of a person",
    "site_weight_limit": "largest weight that a site may have",
    "max_weight_ratio": "largest weight relative to equal weights",
    "max_weight_times_rows": "largest weight times rows",
    "min_epsilon_loss": "epsilon lost, at least",
    "min_propensity": "lowest propensity score",
    "model_budget_share": "share of the budget for the model",
    "moved_by_squares_and_products": "how far squares and products surely move the effect",
    "randomized_share": "share treated (from randomized treatments)",
    "residual_passes": "passes over the residuals",
    "residual_sd": "residual SD",
    "rows_per_fold": "rows per fold, about",
    "score_clip": "clip of the scores, in half ranges",
    "se_debiased": "standard error of the debiased estimate",
    "se_models": "standard error from both models",
    "se_sampling": "standard error from sampling",
    "se_score_noise": "standard error from the score's noise",
    "se_shrunk": "its standard error",
    "sensitivity_bound": "sensitivity bound (released)",
    "share_treated": "share treated (released)",
    "terms": "bends and products that treatment follows",
    "shared_noise_bound": "bound on noise shared by both models",
    "short_of_neighbours": "units with fewer neighbours",
    "look": "planned look",
    "level_of_all_looks": "level of all looks together",
    "rows_where": "rows of the study: those where",
    "shrinkage": "shrinkage by randomized response",
    "slope_shrinkage": "shrinkage factor of the slopes",
    "strata_weight": "weight of the strata",
    "target_share": "share of the target population (released)",
    "unmatched": "units without a match",
    "unmatched_share": "share in strata without one of the arms (released)",
    "variance_budget_share": "share of the budget for variances",
    "variance_noise_sd": "SD of the variance's noise (not protected)",
    "weight_kept": "weight kept (released)",
    "weight_limit": "limit on a person's weight",
}

# Figures that count the rows of an analysis.
_COUNTED = ("rows", "rows_per_fold", "max_weight_times_rows")


def label(key: str, unit: str = "rows") -> str:
    """Return the words for a key of `details`: those of the table, or the identifier with spaces.

    `unit` is what the rows of the analysis are, where those of a person or cluster became one.
    """
    found = LABELS.get(key, key.replace("_", " "))
    return found.replace("rows", unit) if key in _COUNTED else found


def details_sentence(details: Mapping[str, Any], unit: str = "rows") -> str:
    """Return the single figures that go with a result, in words."""
    return "; ".join(
        f"{label(key, unit)}: {f'{value:.4g}' if isinstance(value, float) else value}"
        for key, value in details.items()
    )
