"""Noise distributions, and what is known of an error, as they are written into results and read back."""

from __future__ import annotations

import json
from fractions import Fraction
from math import inf, isfinite
from typing import Any

from counterveil.inference import Uncertainty, UnsureScale
from counterveil.session import SmoothSensitivityMechanism, mechanism_from_dict

_UNSURE = "unsure_scale"


def unsure_noise(noise: SmoothSensitivityMechanism, scale: float, log_scale: float) -> UnsureScale:
    """Return the mechanism of smooth noise at a released scale; `log_scale` is that of the scale's logarithm."""
    return UnsureScale(noise.distribution(Fraction(1)), scale, log_scale, json.dumps(noise.to_dict()))


def noise_to_dict(mechanism: Any) -> dict[str, str] | None:
    """Return a mechanism as JSON-ready facts, None for no noise."""
    if mechanism is None:
        return None
    if isinstance(mechanism, UnsureScale):
        return {
            "mechanism": _UNSURE,
            "of": mechanism.origin,
            "scale": repr(mechanism.scale),
            "log_scale": repr(mechanism.log_scale),
        }
    facts: dict[str, str] = mechanism.to_dict()
    return facts


def noise_from_dict(facts: dict[str, str] | None) -> Any:
    """Return the mechanism written by `noise_to_dict`."""
    if facts is None:
        return None
    if facts.get("mechanism") == _UNSURE:
        noise: Any = mechanism_from_dict(json.loads(facts["of"]))
        return unsure_noise(noise, float(facts["scale"]), float(facts["log_scale"]))
    return mechanism_from_dict(facts)


def uncertainty_to_dict(known: Uncertainty) -> dict[str, Any]:
    """Return noise and variance as JSON-ready facts; results that have an `extra` and a `bias` add them."""
    return {
        "noise": noise_to_dict(known.noise),
        "variance": known.variance,
        "variance_cap": known.variance_cap,
        "variance_noise": noise_to_dict(known.variance_noise),
    }


def uncertainty_from_dict(facts: dict[str, Any]) -> Uncertainty:
    """Return what `uncertainty_to_dict` wrote; a noisy variance without a cap raises ValueError."""
    if not (isfinite(facts["variance"]) and 0 <= facts["variance_cap"] < inf):
        raise ValueError("no variance is possible")
    if facts["variance_noise"] is not None and not facts["variance_cap"]:
        raise ValueError("a noisy variance needs a cap")
    return Uncertainty(
        noise=noise_from_dict(facts["noise"]),
        variance=facts["variance"],
        variance_cap=facts["variance_cap"],
        variance_noise=noise_from_dict(facts["variance_noise"]),
    )
