"""Limits on the weights of sites in a pooled average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.settings.ranges import Allowed, Settings, is_number, setting

_WEIGHT = Allowed("a number above 0, at most 1", lambda weight: is_number(weight) and 0 < weight <= 1)
_WEIGHTS = Allowed(
    "for each site a number above 0, at most 1", lambda own: all(map(_WEIGHT.fits, own.values()))
)
_VARIANCES = Allowed(
    "finite numbers of at least 0", lambda least: all(isfinite(one) and one >= 0 for one in least.values())
)
Named = Sequence[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class WeightLimits(Settings):
    """The most weight of each site of `pool`, and the least variance that each is weighed with.

    They keep one site from taking over an average whose sites do not trust each other.

    Attributes:
        most_weight: for sites without a limit in `own`; with few sites it is raised to one over their number.
        own: limits of single sites, by name.
        least_variance: variances that no site goes below, such as that of the least noise it can have.
    """

    most_weight: float = setting(0.5, _WEIGHT)
    own: Mapping[str, float] = field(default_factory=dict, metadata={"allowed": _WEIGHTS})
    least_variance: Mapping[str, float] = field(default_factory=dict, metadata={"allowed": _VARIANCES})

    def most(self, sites: Named) -> NDArray[np.float64]:
        """Return the most weight (J,) of each site."""
        usual = max(self.most_weight, 1 / len(sites))
        return np.array([max(self.own.get(name, usual), 1 / len(sites)) for name, _ in sites])

    def least(self, sites: Named) -> NDArray[np.float64]:
        """Return the least variance (J,) of each site."""
        return np.array([self.least_variance.get(name, 0.0) for name, _ in sites])

    def to_dict(self) -> dict[str, Any]:
        """Return the limits as JSON-ready facts."""
        return {
            "most_weight": self.most_weight,
            "own": dict(self.own),
            "least_variance": dict(self.least_variance),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> WeightLimits:
        """Return the limits written by `to_dict`."""
        return cls(facts["most_weight"], dict(facts["own"]), dict(facts["least_variance"]))
