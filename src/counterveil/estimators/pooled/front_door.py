"""The front door for several sites: `pool(...)`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError, shown
from counterveil.estimators.estimated import Ends, check_level, within
from counterveil.estimators.pooled.agreement import Named, check_agreement
from counterveil.estimators.pooled.promise import (
    pooled_caveats,
    pooled_guarantee,
    pooled_spending,
    pooled_target,
)
from counterveil.estimators.pooled.reading import Sources, read_sites, rows_of
from counterveil.estimators.pooled.result import PooledResult, PooledSite
from counterveil.estimators.pooled.weight_limits import WeightLimits
from counterveil.inference import (
    POOLING_METHODS,
    PooledUncertainty,
    SpreadOfSites,
    held_weights,
    heterogeneity,
    other_variance,
    pooling_weights,
    released_variance,
    steadied_variances,
    unsure_variances,
)

# Ways of pooling whose weights are made from variances. Where a site's variance may share noise with its estimate,
# weights come from sizes, the scales of the noises, and one sampling variance per person for all sites.
_BY_VARIANCE = ("mvagg", "ivw", "random_effects")


def pool(
    results: Sources,
    *,
    method: str = "mvagg",
    level: float = 0.95,
    weight_limits: WeightLimits | None = None,
) -> PooledResult:
    """Return the average of the private effects of several sites; spends nothing.

    Args:
        results: results of `ate`, what their `to_dict` gave, or paths of JSON files; a mapping names the
            sites. All answer the same question, and nobody is in two sites.
        method: "mvagg" (the subset of sites with the least variance, weights by size), "ivw" (all sites,
            inverse variances), "all" (all sites, weights by size), "largest" (that site alone) or
            "random_effects" (the mean of sites whose effects may differ; those drowned in noise are left out).
        level: confidence level of the interval.
        weight_limits: for sites that do not trust each other: the most weight of each. Weights then follow sizes
            and the scales of the noise, not the variances that sites report.
    """
    level = check_level(level)
    if not isinstance(method, str) or method not in POOLING_METHODS:
        raise ParameterError(
            "CV-P506",
            "unknown way of pooling",
            expected=f"method={' or '.join(map(repr, POOLING_METHODS))}",
            got=f"method={shown(method)}",
            fix="choose one of these",
        )
    sites = read_sites(results)
    check_agreement(sites)
    return _pooled(sites, method, level, weight_limits)


def _pooled(sites: Named, method: str, level: float, bounds: WeightLimits | None) -> PooledResult:
    estimates = np.array([result.estimate for _, result in sites])
    known = [result.uncertainty for _, result in sites]
    found = heterogeneity(estimates, np.array([released_variance(each) for each in known]))
    differing = method == "random_effects"
    tau_squared = found.tau_squared if differing else 0.0
    sizes = _sizes(sites)
    # A weight does not follow a number that may share noise with the estimate, or that nobody can check.
    separate = bounds is None and all(result.variance_apart for _, result in sites)
    steadied = steadied_variances(known, sizes, common=not separate)
    variances = steadied + np.array([other_variance(each) for each in known])
    if not separate:
        variances += unsure_variances(known)
    if bounds is not None:
        variances = np.maximum(variances, bounds.least(sites))
    weights = pooling_weights(method, sizes, variances, tau_squared)
    if bounds is not None:
        weights = held_weights(weights, bounds.most(sites), variances)
    uncertainty = PooledUncertainty(
        sites=tuple(known),
        weights=tuple(map(float, weights)),
        steadied=tuple(map(float, steadied)) if method in _BY_VARIANCE else None,
        between=tau_squared,
        spread=SpreadOfSites.of(estimates[weights > 0]) if differing else None,
    )
    first = sites[0][1]
    return PooledResult(
        # An average of noisy numbers may lie where no effect can; cutting it brings it nearer to any that can.
        estimate=within_limits(float(weights @ estimates), _limits(sites)),
        uncertainty=uncertainty,
        sites=tuple(
            PooledSite(name, float(weight), int(size), result)
            for (name, result), weight, size in zip(sites, weights, sizes, strict=True)
        ),
        heterogeneity=found,
        guarantee=pooled_guarantee(sites),
        spent=pooled_spending(sites),
        estimand=first.estimand,
        method=method,
        treatment=first.treatment,
        outcome=first.outcome,
        level=level,
        not_covered=pooled_caveats(
            sites, [name for (name, _), weight in zip(sites, weights, strict=True) if weight == 0]
        ),
        limits=_limits(sites),
        weight_limits=bounds,
        interval_of=pooled_target([each for each, weight in zip(sites, weights, strict=True) if weight > 0]),
    )


def within_limits(estimate: float, limits: Ends | None) -> float:
    """Return an estimate cut to what the effect can be at all."""
    return within((estimate, estimate), limits)[0]


def _limits(sites: Named) -> Ends | None:
    """Return what an average of the sites' effects can be at all, None where a site does not say."""
    known = [result.limits for _, result in sites if result.limits is not None]
    if len(known) < len(sites):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _sizes(sites: Named) -> NDArray[np.float64]:
    """Return the public numbers of rows (J,)."""
    rows = [rows_of(result) for _, result in sites]
    for (name, result), known in zip(sites, rows, strict=True):
        if known is None:
            raise ParameterError(
                "CV-P505",
                "a result does not say how many rows it is about",
                expected=f"{name}: details['rows'], a number of at least 1",
                got=f"none in a result of {result.method}",
                fix="leave that site out, or ask it for an estimate by another method",
            )
    return np.array(rows, dtype=np.float64)
