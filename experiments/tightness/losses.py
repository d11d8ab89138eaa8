"""The largest privacy loss of each distribution, searched over neighbours and outputs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import optimize

from counterveil.mechanisms import Ball, Gaussian, Lomax, Noise, RandomizedResponse


def additive(noise: Noise, sensitivity: float) -> float:
    """Return the largest log-ratio of a distribution and its copies shifted by at most the sensitivity."""
    x = np.linspace(-8, 8, 8001)[:, None] * sensitivity
    shift = np.linspace(-1, 1, 81)[None, :] * sensitivity
    return float(np.max(noise.log_density(x) - noise.log_density(x - shift)))


def profile(noise: Gaussian, epsilon: float) -> float:
    """Return the exact delta at epsilon for neighbours at the full sensitivity."""
    shift, reach = float(noise.sensitivity), 60 * float(noise.scale)

    def excess(x: float) -> float:
        return float(noise.log_density(x) - noise.log_density(x + shift)) - epsilon

    edge = optimize.brentq(excess, -reach, reach, xtol=1e-14 * reach)
    return float(noise.cdf(-edge) - np.exp(epsilon) * noise.cdf(-edge - shift))


def smooth(mechanism: Lomax) -> float:
    """Return the largest log-ratio over neighbouring values, smooth sensitivities and outputs."""
    g = float(mechanism.smoothness)
    sizes = np.concatenate([[0], np.logspace(-4, 8, 3000)])
    x = np.concatenate([-sizes[::-1], sizes])
    base = mechanism.distribution(Fraction(1))
    worst = -np.inf
    for change in np.linspace(-g, g, 21):
        other = mechanism.distribution(Fraction(np.exp(change)))
        for shift in min(1.0, np.exp(change)) * np.array([-1, -0.5, 0, 0.5, 1]):
            losses = np.abs(base.log_density(x) - other.log_density(x - shift))
            worst = max(worst, float(losses.max()))
    return worst


def ball(mechanism: Ball) -> float:
    """Return the largest log-ratio over random outputs and shifts of full length."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=(2000, mechanism.dimension))
    direction = z / np.linalg.norm(z, axis=1, keepdims=True)
    shift = direction * float(mechanism.sensitivity)
    turned = np.roll(shift, 1, axis=0)
    losses = [
        mechanism.log_density(3 * shift) - mechanism.log_density(3 * shift + s) for s in (shift, turned)
    ]
    return float(np.max(np.abs(losses)))


def response(mechanism: RandomizedResponse) -> float:
    """Return the largest log-ratio of the exact table of probabilities."""
    logs = np.log(mechanism.probabilities)
    return float((logs.max(axis=0) - logs.min(axis=0)).max())
