"""Laws of noise as they are written into results and read back."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from counterveil.curator import SmoothSensitivityMechanism, mechanism_from_dict
from counterveil.inference import UnsureScale

_UNSURE = "unsure_scale"


def unsure_law(noise: SmoothSensitivityMechanism, scale: float, spread: float) -> UnsureScale:
    """Return the law of smooth noise at a released scale; `spread` is that of the scale's logarithm."""
    return UnsureScale(noise.law(Fraction(1)), scale, spread, json.dumps(noise.to_dict()))


def law_to_dict(law: Any) -> dict[str, str] | None:
    """Return a law as JSON-ready facts, None for no noise."""
    if law is None:
        return None
    if isinstance(law, UnsureScale):
        return {
            "mechanism": _UNSURE,
            "of": law.origin,
            "scale": repr(law.scale),
            "spread": repr(law.spread),
        }
    facts: dict[str, str] = law.to_dict()
    return facts


def law_from_dict(facts: dict[str, str] | None) -> Any:
    """Return the law written by `law_to_dict`."""
    if facts is None:
        return None
    if facts.get("mechanism") == _UNSURE:
        noise: Any = mechanism_from_dict(json.loads(facts["of"]))
        return unsure_law(noise, float(facts["scale"]), float(facts["spread"]))
    return mechanism_from_dict(facts)
