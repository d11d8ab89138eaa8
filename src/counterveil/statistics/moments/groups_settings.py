"""What may be chosen about effects of groups, values of policies and targeting curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf

from counterveil.results.settings import between, number, out_of_range, whole

_refusal = partial(out_of_range, "CV-P540", "groups")


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
        if self.clip is not None and not between(self.clip, 0, inf):
            raise _refusal("clip", "None or a number above 0", self.clip)
        if not number(self.least_propensity, 0.01, 0.4):
            raise _refusal("least_propensity", "a number from 0.01 to 0.4", self.least_propensity)
        if not whole(self.degree, 1, 2):
            raise _refusal("degree", "1 or 2", self.degree)
