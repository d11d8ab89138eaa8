"""Means of both arms with their joint error as JSON-ready facts."""

from __future__ import annotations

from typing import Any, cast

from counterveil.inference.measures import ApartMeans, JointMeans
from counterveil.inference.pooled_means import PooledMeans
from counterveil.results.effect import noise_from_dict, noise_to_dict
from counterveil.results.linear_facts import WEIGHTS_ADD_UP, uncertain_from_dict, uncertain_to_dict

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
        return PooledMeans(cast(tuple[ApartMeans | JointMeans, ...], sites), weights, names)
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
