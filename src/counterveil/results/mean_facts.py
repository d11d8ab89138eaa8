"""Linear numbers, and means of both arms with their joint error, as JSON-ready facts."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, cast

from counterveil.inference import ErrorBetweenSites, PooledUncertainty, Uncertainty
from counterveil.inference.measures import ApartMeans, JointMeans
from counterveil.inference.pooling import PooledMeans
from counterveil.results.effect import (
    Known,
    Linear,
    noise_from_dict,
    noise_to_dict,
    uncertainty_from_dict,
    uncertainty_to_dict,
)

# How near to one the stored weights of sites add up.
WEIGHTS_ADD_UP = 1e-9


def uncertain_to_dict(known: Uncertainty) -> dict[str, Any]:
    """Return all of an error as JSON-ready facts."""
    return uncertainty_to_dict(known) | {"extra": known.extra, "bias": known.bias}


def uncertain_from_dict(facts: dict[str, Any]) -> Uncertainty:
    """Return what `uncertain_to_dict` wrote."""
    return replace(uncertainty_from_dict(facts), extra=facts["extra"], bias=facts["bias"])


def linear_to_dict(known: Known) -> dict[str, Any]:
    """Return a linear number with all of its error as JSON-ready facts."""
    assert isinstance(known, Linear)
    limits = None if known.limits is None else list(known.limits)
    facts = {"estimate": known.estimate, "limits": limits}
    if isinstance(known.uncertainty, PooledUncertainty):
        return facts | {"pooled": _pooled_to_dict(known.uncertainty)}
    return facts | uncertain_to_dict(known.uncertainty)


def linear_from_dict(facts: dict[str, Any]) -> Linear:
    """Return what `linear_to_dict` wrote."""
    limits = None if facts["limits"] is None else (float(facts["limits"][0]), float(facts["limits"][1]))
    known = _pooled_from_dict(facts["pooled"]) if "pooled" in facts else uncertain_from_dict(facts)
    return Linear(facts["estimate"], known, limits)


def _pooled_to_dict(known: PooledUncertainty) -> dict[str, Any]:
    apart = known.between_sites
    return {
        "sites": [uncertain_to_dict(site) for site in known.sites],
        "weights": list(known.weights),
        "steadied": None if known.steadied is None else list(known.steadied),
        "between": known.between,
        "between_sites": None if apart is None else asdict(apart),
    }


def _pooled_from_dict(facts: dict[str, Any]) -> PooledUncertainty:
    sites, weights, steadied = facts["sites"], facts["weights"], facts["steadied"]
    if not len(sites) == len(weights) or min(weights) < 0 or abs(sum(weights) - 1) > WEIGHTS_ADD_UP:
        raise ValueError("weights that are none")
    if steadied is not None and len(steadied) != len(sites):
        raise ValueError("variances of other sites")
    apart = facts["between_sites"]
    return PooledUncertainty(
        tuple(uncertain_from_dict(site) for site in sites),
        tuple(map(float, weights)),
        None if steadied is None else tuple(map(float, steadied)),
        float(facts["between"]),
        None if apart is None else ErrorBetweenSites(float(apart["std_error"]), int(apart["sites"])),
    )


# Means of both arms of one study, or of several sites.
AnyMeans = ApartMeans | JointMeans | PooledMeans


def means_to_dict(means: AnyMeans) -> dict[str, Any]:
    """Return both arms' means with their joint error as JSON-ready facts."""
    if isinstance(means, PooledMeans):
        sites = [means_to_dict(site) for site in means.sites]
        return {"sites": sites, "weights": list(means.weights), "names": list(means.names)}
    if isinstance(means, ApartMeans):
        known = [uncertain_to_dict(one) for one in means.known]
        return {
            "values": list(means.values),
            "known": known,
            "range": list(means.range),
            "sizes": list(means.sizes),
        }
    return {
        "mean": means.mean,
        "mean_noise": noise_to_dict(means.mean_noise),
        "difference": means.difference,
        "known": uncertain_to_dict(means.known),
        "share": means.share,
        "share_sd": means.share_sd,
        "rows": means.rows,
        "range": list(means.range),
    }


def means_from_dict(facts: dict[str, Any]) -> AnyMeans:
    """Return what `means_to_dict` wrote."""
    if "sites" in facts:
        sites = tuple(means_from_dict(site) for site in facts["sites"])
        weights, names = tuple(map(float, facts["weights"])), tuple(map(str, facts["names"]))
        if not len(names) == len(weights) == len(sites):
            raise ValueError("numbers of other sites")
        if not sites or min(weights) < 0 or abs(sum(weights) - 1) > WEIGHTS_ADD_UP:
            raise ValueError("weights that are none")
        if any(isinstance(site, PooledMeans) for site in sites):
            raise ValueError("sites of sites")
        return PooledMeans(cast("tuple[ApartMeans | JointMeans, ...]", sites), weights, names)
    low, high = facts["range"]
    if "values" in facts:
        first, second = (uncertain_from_dict(each) for each in facts["known"])
        (one, other), (treated, control) = (map(float, facts[name]) for name in ("values", "sizes"))
        if min(treated, control) <= 0:
            raise ValueError("arms without people")
        return ApartMeans((one, other), (first, second), (float(low), float(high)), (treated, control))
    if not 0 < facts["share"] < 1 or facts["rows"] < 1:
        raise ValueError("no share of people")
    noisy = {"mean_noise": noise_from_dict(facts["mean_noise"]), "known": uncertain_from_dict(facts["known"])}
    return JointMeans(**(facts | noisy | {"range": (float(low), float(high))}))
