"""Many noisy copies of one vector at once, for audits with more samples than a gate draws in reasonable time."""

import numpy as np

from counterveil.mechanisms import Ball, Gaussian, Grid, Laplace
from counterveil.session import Kind, SeededNoise


def noisy_vectors(plan, name, values, sensitivity, count, rng):
    """Return `count` rows of `values` plus noise, of the mechanism that a gate with this plan draws one by one."""
    kind = plan.kind(name)
    amount, exact = plan.amount(name, kind), np.array([float(value) for value in values])
    if kind is Kind.VECTOR and plan.mechanism != "gaussian":
        return exact + _ball(Ball(sensitivity, amount, len(values)), count, rng)
    if kind is Kind.NUMBER:
        noise = plan.noise(name, sensitivity)
    else:
        noise = (Laplace if kind is Kind.CELLS else Gaussian)(sensitivity, amount)
    grid = Grid.for_scale(noise.scale)
    drawn = noise.draw(count * len(values), grid, SeededNoise(int(rng.integers(2**62))))
    return exact + drawn.reshape(count, len(values)).astype(float) * float(grid.step)


def _ball(noise, count, rng):
    """Return draws of the l2 ball's noise in doubles: a norm by the Gamma mechanism in a uniform direction."""
    directions = rng.normal(size=(count, noise.dimension))
    norms = rng.gamma(noise.dimension, float(noise.scale), (count, 1))
    return norms * directions / np.linalg.norm(directions, axis=1, keepdims=True)


def nearer(noisy, known, other, sensitivity, order, power):
    """Return how much nearer each row is to `other` than to `known`: what an attacker who knows both looks at."""
    away = [np.linalg.norm(noisy - one, order, axis=1) ** power for one in (known, other)]
    return ((away[0] - away[1]) / float(sensitivity) ** power)[:, None]
