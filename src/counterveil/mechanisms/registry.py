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
    """Return the mechanism that its `to_dict` wrote.

    Parameters
    ----------
    facts : dict of str to str
        Name of the mechanism and its parameters.

    Returns
    -------
    Mechanism
        An equal mechanism.

    Raises
    ------
    CounterveilError
        A dictionary that describes no mechanism (CV-P109).

    Examples
    --------
    >>> from counterveil.mechanisms import Laplace, mechanism_from_dict
    >>> mechanism_from_dict(Laplace(1, 2).to_dict()) == Laplace(1, 2)
    True
    """
    own = dict(facts)
    try:
        kind = _KINDS[own.pop("mechanism")]
        known = signature(kind).parameters
        found = {name: int(own[name]) if name in _WHOLE else own[name] for name in known}
        return kind(**found)  # type: ignore[arg-type]
    except (KeyError, ValueError):
        raise refusal("CV-P109", readers=sorted(_KINDS), facts=facts) from None
