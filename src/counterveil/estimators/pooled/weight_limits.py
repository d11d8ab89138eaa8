"""What keeps one site from taking over an average whose sites do not trust each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError
from counterveil.estimators.pooled.agreement import Named

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WeightLimits:
    """The most weight of each site, and the least variance that each is weighed with.

    `most_weight` holds for sites without a limit of their own in `own`; with few sites it is raised to one over their
    number. `least_variance` are variances that no site goes below, such as that of the least noise it can have.
    """

    most_weight: float = 0.5
    own: Mapping[str, float] = field(default_factory=dict)
    least_variance: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for weight in (self.most_weight, *self.own.values()):
            if not (isinstance(weight, int | float) and 0 < weight <= 1):
                raise ParameterError(
                    "CV-P508",
                    "the most weight of a site is a part of one",
                    expected="a number above 0, at most 1",
                    got=f"{weight!r:.80}",
                    fix="pass 0.5 for no more than half of the average",
                )
        if not all(isfinite(each) and each >= 0 for each in self.least_variance.values()):
            raise ParameterError(
                "CV-P508",
                "the least variance of a site is not negative",
                expected="finite numbers of at least 0",
                got="another number",
                fix="leave it out, or pass the variance of the least noise",
            )

    def most(self, sites: Named) -> Floats:
        """Return the most weight (J,) of each site."""
        usual = max(self.most_weight, 1 / len(sites))
        return np.array([max(self.own.get(name, usual), 1 / len(sites)) for name, _ in sites])

    def least(self, sites: Named) -> Floats:
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
