"""The privacy loss distribution of a fixed plan, through dp-accounting's functional interface.

The numbers come from floating point and Fourier transforms, so they are not certified as the
other rules are. Every input is rounded against the spender and a slack of delta, far above the
transforms' error, is set aside; deltas too small for that are left to the other rules.
dp-accounting's event classes are not used: its `PLDAccountant` drops the count of randomized
response events.
"""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from counterveil.privacy import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ResponseEvent,
)

NOT_INSTALLED = "privacy loss distribution not tried: install counterveil[accounting]"
DELTA_TOO_SMALL = "privacy loss distribution not tried: delta is too small for floating point"
LOSS_TOO_LARGE = "privacy loss distribution not tried: the losses are too large for a grid"

# Set aside for rounding in the transforms (about 1e-15 a term, at most 1e4 terms that matter).
SLACK = Fraction(1, 10**10)
# The loss is discretised in steps this fine, coarser where that would need too many of them.
_FINEST_STEP = 1e-4
_MOST_STEPS = 200_000
_LARGEST_LOSS = 200.0


def loss_distribution_epsilon(events: Sequence[Event], delta: Fraction) -> Fraction | str:
    """Return epsilon at `delta` rounded up, or the reason why this rule could not be tried."""
    if delta < 100 * SLACK:
        return DELTA_TOO_SMALL
    reach = sum(_reach(event) for event in events)
    if reach > _LARGEST_LOSS:
        return LOSS_TOO_LARGE
    if importlib.util.find_spec("dp_accounting") is None:
        return NOT_INSTALLED
    step = max(_FINEST_STEP, 2 * reach / _MOST_STEPS)
    total: Any = None
    for event, count in Counter(events).items():
        one = _distribution(event, step)
        several = one if count == 1 else one.self_compose(count)
        total = several if total is None else total.compose(several)
    epsilon = float(total.get_epsilon_for_delta(_down(delta - SLACK)))
    if not math.isfinite(epsilon):
        return DELTA_TOO_SMALL
    # The last step of the search is a float; a relative 1e-9 covers it many times over.
    return Fraction(epsilon) * (1 + Fraction(1, 10**9)) + Fraction(1, 10**9)


def _reach(event: Event) -> float:
    """Return how large the loss of one release can be, for the size of the grid."""
    if isinstance(event, GaussianEvent):
        return float(event.mu * event.mu / 2 + 10 * event.mu)
    return float(event.epsilon)


def _distribution(event: Event, step: float) -> Any:
    """Return a pessimistic loss distribution of one release."""
    # Imported here: it takes more than a second.
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    if isinstance(event, LaplaceEvent):
        return pld.from_laplace_mechanism(_down(1 / event.epsilon), value_discretization_interval=step)
    if isinstance(event, GaussianEvent):
        return pld.from_gaussian_mechanism(_down(1 / event.mu), value_discretization_interval=step)
    if isinstance(event, ResponseEvent):
        k = event.categories
        noise = k / (math.exp(_up(event.epsilon)) + k - 1)
        return pld.from_randomized_response(noise * (1 - 1e-14), k, value_discretization_interval=step)
    delta = event.delta if isinstance(event, ApproximateEvent) else Fraction(0)
    parameters = common.DifferentialPrivacyParameters(_up(event.epsilon), _up(delta))
    return pld.from_privacy_parameters(parameters, value_discretization_interval=step)


def _up(value: Fraction) -> float:
    """Return a float that is not below `value`."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def _down(value: Fraction) -> float:
    """Return a float that is not above `value`."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)
