"""What may be chosen about effects of groups, values of policies and targeting curves."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from counterveil.errors import ParameterError


@dataclass(frozen=True, slots=True)
class GroupsSettings:
    """Settings of `groups`, `policy_value` and `targeting_curve` with `protects="record"`.

    Attributes:
        clip: a public bound on the size of a person's score, in units of the outcome; larger ones are clipped.
            None buys a histogram of the scores for a small part of the budget and chooses from it.
        least_propensity: propensities are kept this far from 0 and 1, where they are modelled.
        degree: 1 for the covariates themselves in the models, 2 with squares and products.
    """

    clip: float | None = None
    least_propensity: float = 0.1
    degree: int = 1

    def __post_init__(self) -> None:
        if self.clip is not None and not (_number(self.clip) and self.clip > 0):
            raise _refusal("clip", "None or a number above 0", self.clip)
        if not (_number(self.least_propensity) and 0.01 <= self.least_propensity <= 0.4):
            raise _refusal("least_propensity", "a number from 0.01 to 0.4", self.least_propensity)
        if isinstance(self.degree, bool) or self.degree not in (1, 2):
            raise _refusal("degree", "1 or 2", self.degree)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _refusal(name: str, expected: str, value: object) -> ParameterError:
    return ParameterError(
        "CV-P540",
        f"the setting {name} of groups is out of range",
        expected=f"{name}: {expected}",
        got=f"{name}={value!r}",
        fix="leave the setting out, or pass a value inside the range",
    )
