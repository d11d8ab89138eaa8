"""The doubly robust score of models of treatment and outcome that are fitted to noisy moments of all records.

Centres, lengths of rows, second moments of covariates, treatment and outcome, then moments of residuals are
released, which make two linear models with one effect in common. What their errors add to the mean score of a
group is a variance and a bias, from released numbers. The numbers of this module that are choices were set on
designs of `experiments/groups`; privacy does not depend on them.

In: private rows, through a gate that adds noise and lets each planned release through once. Out: the
coefficients of a score with its errors; outcomes are in half their declared range. A score is doubly robust:
its error is a product of both models' errors. Proofs: `rows/moments/record_moments.proof.md` (centres),
`rows/histogram.proof.md` (lengths), `rows/moments/free_gram.proof.md` (second moments),
`rows/moments/orthogonal_score.proof.md` (moments of residuals).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from counterveil.estimators.moments.adjustment_budget import ChainSplit, Design
from counterveil.estimators.moments.group_score import AdjustedScore
from counterveil.estimators.moments.nuisance_models import Nuisances, first_models, refined, residual_clip
from counterveil.estimators.moments.scaling import scaling_of, standard_rows
from counterveil.numerics.denoising import denoised
from counterveil.rows.moments.joint_gram import release_gram
from counterveil.rows.moments.residual_products import release_residuals
from counterveil.rows.records import Records
from counterveil.session import Gate

# Squared length of the mean of a group's standardised rows, the constant included.
_LENGTH = 3.0
# Modelled propensities are kept this far from 0 and 1.
_LEAST_PROPENSITY = 0.1
# Effects are supposed to differ along so many directions of the covariates, out of all of them.
_DIRECTIONS = 1


def fitted_score(
    gate: Gate,
    records: Records,
    design: Design,
    models: ChainSplit,
    declared: Fraction | None,
) -> AdjustedScore:
    """Return the score of models that are fitted to noisy moments: centre, lengths, Gram, residuals."""
    moments, standard = standard_rows(gate, records, design)
    scaling = scaling_of(moments, 1 + standard.squared_length, models.treatment, models.outcome)
    second = release_gram(gate, records, standard, scaling)
    assert second.matrix is not None
    nuisances = first_models(second, scaling, denoised(second.matrix, second.entry_sd))
    for number in range(1, models.residual_passes + 1):
        name = f"residual {number}"
        clip = residual_clip(nuisances)
        nuisances = refined(
            nuisances,
            release_residuals(gate, name, records, standard=standard, models=nuisances.models, clip=clip),
        )
    if declared is not None:
        nuisances = _known_share(nuisances, float(declared))
    return AdjustedScore(
        standard,
        nuisances.models,
        _LEAST_PROPENSITY,
        residual_bound=residual_clip(nuisances),
        residual_variance=nuisances.residual_variance,
        propensity_error_variance=_LENGTH * nuisances.treatment_variance,
        extra=nuisances.treatment_variance * nuisances.product / nuisances.variance**2
        + _wrong_weights(nuisances),
        bias=nuisances.bias / nuisances.variance,
        heavy_tailed=nuisances.least_clip > 0,
        hidden=nuisances.hidden,
    )


def _wrong_weights(nuisances: Nuisances) -> float:
    """Return the variance that a wrong propensity adds through the weights, where effects differ in a group.

    A weight is wrong by the part (1 - 2e)/(e(1-e)) of the propensity's error; it multiplies how far effects
    lie from the one in common, whose mean square is at most the residual variance over e(1-e).
    """
    models = nuisances.models
    e = models.share
    varies = float(models.shrunk @ nuisances.gram.matrix @ models.shrunk)
    slope = ((1 - 2 * e) ** 2 + 4 * varies) / nuisances.variance**2
    error = min(1.0, _DIRECTIONS / len(models.shrunk)) * nuisances.gamma_error
    return error * slope * nuisances.residual_variance / nuisances.variance


def _known_share(nuisances: Nuisances, share: float) -> Nuisances:
    """Return the models with the propensity that the design declares."""
    models = nuisances.models
    none = np.zeros_like(nuisances.models.treatment)
    declared = replace(
        models,
        share=share,
        # Residuals are taken around effect times (t - share): what the share moves goes to the mean.
        mean=models.mean + models.effect * (share - models.share),
        treatment=none,
        shrunk=none,
    )
    return replace(
        nuisances,
        models=declared,
        treatment_sd=0.0,
        gamma=0.0,
        gamma_error=0.0,
        noise_bias=0.0,
        raised_bias=0.0,
        variance=share * (1 - share),
    )
