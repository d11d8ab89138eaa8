"""Ratios, odds ratios and lifts over several sites, from the means of their arms."""

from __future__ import annotations

import numpy as np

from counterveil.errors import ParameterError
from counterveil.inference import held_weights, pooling_weights
from counterveil.inference.measures import ApartMeans, JointMeans
from counterveil.inference.pooled_means import PooledMeans
from counterveil.inference.pooling import noise_variance
from counterveil.numerics.arrays import Floats
from counterveil.questions.pooled.agreement import (
    Named,
    pooled_caveats,
    pooled_guarantee,
    pooled_opening,
    pooled_spending,
)
from counterveil.results.measures import MeasureResult, difference_of
from counterveil.settings import WeightLimits

# Ways of pooling whose weights are public: sizes, and the scales of the noise.
METHODS = {
    "mvagg": "pooled by size: the subset of sites of least variance",
    "all": "pooled by size: all sites",
    "largest": "of the largest site alone",
}


def pool_measures(
    sites: Named, sizes: Floats, method: str, level: float, bounds: WeightLimits | None
) -> MeasureResult:
    """Return the measure of the arms' means, averaged over sites by size; `sites` are all results of a measure."""
    if method not in METHODS:
        raise ParameterError(
            "CV-P508",
            "ratios are pooled from the means of both arms, by the sizes of the sites",
            expected=f"method={' or '.join(map(repr, METHODS))}",
            got=f"method={method!r}",
            fix="take one of these; or pool differences, which have all methods",
        )
    means = [_means(result) for _, result in sites]
    weights = _weights(sites, _public_variances(means, sizes), sizes, method, bounds)
    kept = [place for place, weight in enumerate(weights) if weight > 0]
    pooled = PooledMeans(tuple(means), tuple(map(float, weights)), tuple(name for name, _ in sites))
    first = sites[0][1]
    assert isinstance(first, MeasureResult)
    said: dict[str, float | str] = {"rows": int(sizes.sum()), "sites": len(sites)}
    said |= {"mean_treated": pooled.values[0], "mean_control": pooled.values[1]}
    if bounds is not None:
        said["most_weight"] = bounds.most_weight
    own = {f"weight_{name}": float(weight) for (name, _), weight in zip(sites, weights, strict=True)}
    return MeasureResult.of(
        first.measure,
        pooled,
        difference_of(pooled, first.estimand, level),
        guarantee=pooled_guarantee(sites),
        site_sources=tuple(result._source() for _, result in sites),
        method=f"means of both arms, {METHODS[method]}",
        treatment=first.treatment,
        outcome=first.outcome,
        level=level,
        spent=pooled_spending(sites),
        estimand=first.estimand,
        releases=tuple((name, f"{result.method}, {result.spent}") for name, result in sites),
        not_covered=pooled_caveats(
            sites, [name for place, (name, _) in enumerate(sites) if place not in kept]
        ),
        details=said | own,
        diagnostics={},
        **pooled_opening([sites[place] for place in kept]),
    )


def _weights(
    sites: Named, variances: Floats, sizes: Floats, method: str, bounds: WeightLimits | None
) -> Floats:
    """Return the weights of the sites, none above its limit."""
    if bounds is None:
        return pooling_weights(method, sizes, variances)
    least = np.maximum(variances, bounds.least(sites))
    return held_weights(pooling_weights(method, sizes, least), bounds.most(sites), least)


def _means(result: object) -> ApartMeans | JointMeans:
    assert isinstance(result, MeasureResult)
    assert isinstance(result.means, ApartMeans | JointMeans)
    return result.means


def _public_variances(means: list[ApartMeans | JointMeans], sizes: Floats) -> Floats:
    """Return what differences are expected to vary by, from public numbers alone.

    Of outcomes that lie half at either end of their range, in arms of one size; noise is as announced.
    """
    noise = np.array([_announced(one) for one in means])
    width = np.array([one.range[1] - one.range[0] for one in means])
    return np.asarray(noise + width**2 / sizes)


def _announced(means: ApartMeans | JointMeans) -> float:
    """Return the variance of noise whose scale is public."""
    if isinstance(means, JointMeans):
        # The noise of the difference follows the released share treated; that of the mean follows the budget alone,
        # and in arms of one size both are about as large.
        return noise_variance(means.mean_noise)
    return sum(noise_variance(known.noise) for known in means.known)
