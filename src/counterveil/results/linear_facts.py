"""A linear number with all of its error as JSON-ready facts: of one study, or an average over sites."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from counterveil.inference import ErrorBetweenSites, PooledUncertainty, Uncertainty
from counterveil.results.effect import Known, Linear, uncertainty_from_dict, uncertainty_to_dict

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
