"""Mechanisms read back from their exact text."""

from __future__ import annotations

from inspect import signature
from typing import TypeAlias, get_args

from counterveil.errors import refusal
from counterveil.mechanisms.ball import Ball
from counterveil.mechanisms.box import Box
from counterveil.mechanisms.gaussian import Gaussian
from counterveil.mechanisms.laplace import Laplace, LaplacePair
from counterveil.mechanisms.lomax import Lomax
from counterveil.mechanisms.response import RandomizedResponse
from counterveil.mechanisms.staircase import Staircase
from counterveil.mechanisms.summed_laplace import SummedLaplace
from counterveil.mechanisms.summed_normal import SummedGaussian

# Additive noise for one number whose sensitivity is public.
KnownSensitivityMechanism: TypeAlias = Laplace | LaplacePair | Staircase | Gaussian
Mechanism: TypeAlias = (
    Laplace
    | LaplacePair
    | SummedLaplace
    | Staircase
    | Gaussian
    | SummedGaussian
    | Lomax
    | Ball
    | Box
    | RandomizedResponse
)

_KINDS: dict[str, type[Mechanism]] = {kind.name: kind for kind in get_args(Mechanism)}
_WHOLE = ("dimension", "categories", "sites", "honest")


def mechanism_from_dict(facts: dict[str, str]) -> Mechanism:
    """Return the mechanism written by its `to_dict`, or raise CV-P109."""
    own = dict(facts)
    try:
        kind = _KINDS[own.pop("mechanism")]
        known = signature(kind).parameters
        found = {name: int(own[name]) if name in _WHOLE else own[name] for name in known}
        return kind(**found)  # type: ignore[arg-type]
    except (KeyError, ValueError):
        raise refusal("CV-P109", readers=sorted(_KINDS), facts=facts) from None
