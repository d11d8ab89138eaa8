"""Mechanisms read back from their exact text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from counterveil.errors import refusal
from counterveil.mechanisms.ball import Ball
from counterveil.mechanisms.box import Box
from counterveil.mechanisms.gaussian import Gaussian
from counterveil.mechanisms.laplace import Laplace, LaplacePair
from counterveil.mechanisms.lomax import Lomax
from counterveil.mechanisms.response import RandomizedResponse
from counterveil.mechanisms.staircase import Staircase
from counterveil.mechanisms.summed_laplace import SummedLaplace

Mechanism: TypeAlias = (
    Laplace | LaplacePair | SummedLaplace | Staircase | Gaussian | Lomax | Ball | Box | RandomizedResponse
)

_READERS: dict[str, Callable[[dict[str, str]], Mechanism]] = {
    "laplace": lambda facts: Laplace(facts["sensitivity"], facts["epsilon"]),
    "laplace_pair": lambda facts: LaplacePair(facts["sensitivity"], facts["epsilon"], facts["narrow"]),
    "summed_laplace": lambda facts: SummedLaplace(
        facts["sensitivity"], facts["epsilon"], int(facts["sites"]), int(facts["honest"])
    ),
    "staircase": lambda facts: Staircase(facts["sensitivity"], facts["epsilon"]),
    "gaussian": lambda facts: Gaussian(facts["sensitivity"], facts["mu"]),
    "lomax": lambda facts: Lomax(facts["epsilon"], facts["smoothness"]),
    "ball": lambda facts: Ball(facts["sensitivity"], facts["epsilon"], int(facts["dimension"])),
    "box": lambda facts: Box(facts["sensitivity"], facts["epsilon"], int(facts["dimension"])),
    "response": lambda facts: RandomizedResponse(facts["epsilon"], int(facts["categories"])),
}


def mechanism_from_dict(facts: dict[str, str]) -> Mechanism:
    """Return the mechanism written by its `to_dict`, or raise CV-P109."""
    reader = _READERS.get(facts.get("mechanism", ""))
    try:
        if reader is None:
            raise KeyError("mechanism")
        return reader(facts)
    except (KeyError, ValueError):
        raise refusal("CV-P109", readers=sorted(_READERS), facts=facts) from None
