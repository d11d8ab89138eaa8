"""What every check of released noise needs: its sensitivity, its part of the budget, and how far it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

from counterveil.bounded_reading import Fields
from counterveil.federation.messages import Ask
from counterveil.federation.public_limits import (
    OTHER_NOISE,
    OUT_OF_REACH,
    SLACK,
    SetAsideError,
    budget_of,
    farthest,
    most_mu,
)
from counterveil.inference import Uncertainty
from counterveil.results.effect import noise_from_dict, noise_to_dict
from counterveil.settings.outcome_level import MOST_BIAS

# The amount of privacy that the noise of each mechanism names.
_AMOUNTS = {"staircase": "epsilon", "laplace": "epsilon", "gaussian": "mu"}
# What is a fraction at a site and a float in its message agrees to this part.
NEAR = 1e-6
# No release has a smaller part of the budget, unless the question says so.
LEAST_PART = Fraction(1, 50)


def hold(condition: bool, reason: str = OTHER_NOISE) -> None:
    """Raise the reason for setting a site aside unless a condition holds; most are on its noise."""
    if not condition:
        raise SetAsideError(reason)


def is_plain(noise: Any) -> bool:
    """Return whether the scale of a noise follows from a sensitivity that nothing private is in."""
    return (noise_to_dict(noise) or {}).get("mechanism") in _AMOUNTS


def facts_of(noise: Any) -> Mapping[str, Any]:
    """Return what is said of a noise, one whose scale follows from a sensitivity."""
    hold(is_plain(noise))
    return noise_to_dict(noise) or {}


def sensitivity_of(noise: Any) -> Fraction:
    """Return the sensitivity that a noise is for."""
    return Fields("mechanism", facts_of(noise)).rational("sensitivity", 0, 1e60)


def check_budget(ask: Ask, noises: Sequence[Any], spare: Fraction = Fraction(0)) -> Fraction:
    """Return what noises leave of the budget asked for, in epsilon or mu squared.

    More than all of it is refused, less than a `spare` part left, and less than the least part for one of them.
    """
    facts = [facts_of(noise) for noise in noises]
    budget, mu = budget_of(ask), most_mu(ask)
    allowed = (
        [ask.mechanism] if ask.mechanism is not None else ["staircase"] + ["gaussian"] * (mu is not None)
    )
    names = {str(one["mechanism"]) for one in facts}
    hold(len(names) == 1 and names <= set(allowed))
    amount = _AMOUNTS[names.pop()]
    parts = [Fields("mechanism", one).rational(amount, 0, 1e9) for one in facts]
    if amount == "mu":
        assert mu is not None
        whole, parts = mu**2, [part**2 for part in parts]
        slack = whole * Fraction(SLACK - 1)
    else:
        whole, slack = budget.epsilon, Fraction(0)
    left = whole - sum(parts)
    least = Fraction(0) if "variance_share" in ask.settings else LEAST_PART
    hold(left >= spare * whole - slack and min(parts) >= least * (whole - slack))
    return max(left, Fraction(0))


def noise_like(noise: Any, sensitivity: Fraction, amount: Fraction) -> Any:
    """Return noise of the same mechanism for another sensitivity and an amount of epsilon, or of mu squared."""
    name = str(facts_of(noise)["mechanism"])
    paid = str(Fraction(sqrt(amount)) if _AMOUNTS[name] == "mu" else amount)
    return noise_from_dict({"mechanism": name, "sensitivity": str(sensitivity), _AMOUNTS[name]: paid})


def check_weighted(ask: Ask, width: Fraction, known: Uncertainty, rare: float = 0.0) -> Fraction:
    """Return how far one outcome moves an average of outcomes in a range of this width, after checking what follows.

    Weights are not negative and add up to one in each arm. None is above one, and the sum of their squares is at most
    the largest: that bounds the largest variance, to which `rare` was added.
    """
    hold(known.extra == known.bias == known.ball_variance == 0)
    hold(known.variance_noise is not None or known.variance == known.variance_cap)
    check_budget(ask, [known.noise] if known.variance_noise is None else [known.noise, known.variance_noise])
    step = sensitivity_of(known.noise)
    hold(step <= width * Fraction(1 + NEAR))
    most = (1 + _bias_of(ask) ** 2) * float(width * step) + rare
    hold(known.variance_cap <= most * (1 + NEAR))
    return step


def _bias_of(ask: Ask) -> float:
    """Return the most that intervals of the method allow for bias, in standard errors."""
    said = ask.settings.get("bias")
    return float(said) if isinstance(said, int | float) else MOST_BIAS


def check_place(value: float, ends: tuple[float, float], reach: float) -> None:
    """Check that a number is no farther from where it can be than its error goes."""
    hold(ends[0] - reach <= value <= ends[1] + reach, OUT_OF_REACH)


def squared_noise(estimate: float, known: Uncertainty, rows: float) -> float:
    """Return how far noise moves a variance that is a second moment less the square of a noisy estimate."""
    noise = farthest(known.noise)
    return (2 * abs(estimate) + noise) * noise / rows


def chance_of_treatment(off: float, share: float, rows: int) -> float:
    """Return the most that is taken off a contrast's variance for chance in who was treated.

    `off` is how far the centre of the outcomes can be from where an error in the share would do no harm.
    """
    return off**2 / (share * (1 - share)) / rows


def check_variance(known: Uncertainty, more: float = 0.0, less: float = 0.0) -> None:
    """Check that a sampling variance lies where outcomes and its noise can put it.

    It may lie `more` beyond, on either side, and be another `less` below zero.
    """
    beyond = farthest(known.variance_noise) + 1e-9 * known.variance_cap + more
    hold(-beyond - less <= known.variance <= known.variance_cap + beyond)
