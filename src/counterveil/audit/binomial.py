"""Bounds on a probability from counts, valid for every sample size."""

from __future__ import annotations

import numpy as np
from scipy.special import betainccinv, betaincinv

from counterveil.audit.protocols import FloatArray


def lower_bound(hits: FloatArray | float, trials: int, error: float) -> FloatArray:
    """Return Clopper-Pearson lower limits; each is above its probability with chance `error` at most."""
    k = np.asarray(hits, dtype=np.float64)
    limit = betaincinv(np.maximum(k, 1.0), trials - k + 1.0, error)
    return np.where(k > 0, limit, 0.0)


def upper_bound(hits: FloatArray | float, trials: int, error: float) -> FloatArray:
    """Return Clopper-Pearson upper limits; each is below its probability with chance `error` at most."""
    k = np.asarray(hits, dtype=np.float64)
    limit = betainccinv(k + 1.0, np.maximum(trials - k, 1.0), error)
    return np.where(k < trials, limit, 1.0)


def wilson(hits: FloatArray, trials: int, z: float) -> tuple[FloatArray, FloatArray]:
    """Return approximate lower and upper limits in closed form; good for choosing, never for claiming."""
    share = hits / trials
    weight = z * z / trials
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * np.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def log_excess(p_low: FloatArray, q_high: FloatArray, delta: float) -> FloatArray:
    """Return the epsilon that P >= p_low and Q <= q_high force: ln((p_low - delta) / q_high), at least 0."""
    gain = np.maximum(p_low - delta, 0.0)
    with np.errstate(divide="ignore"):
        excess: FloatArray = np.maximum(np.log(gain) - np.log(q_high), 0.0)
    return excess
