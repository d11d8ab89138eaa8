"""What balancing weights cost beside the propensity model they start from, and how that grows with rows."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from counterveil.estimators.linear.kernels.balancing import balance_weights
from counterveil.estimators.linear.kernels.weight_features import parted_features
from counterveil.numerics.propensity import fit_propensity

TITLE = "Balancing weights, 20 covariates: CPU seconds beside the propensity fit of the same run"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
COLUMNS = 20
KINDS = ["number"] * COLUMNS
NOISE_VARIANCE = 1.9  # about that of the staircase mechanism at epsilon 1


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of one call, over all threads, and its result."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def population(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.uniform(-1.0, 1.0, size=(n, COLUMNS))
    treated = rng.random(n) < 1 / (1 + np.exp(0.8 - X @ rng.uniform(-1.0, 1.0, COLUMNS)))
    return X, treated


def run() -> list[dict[str, str]]:
    _row(1_000)  # first calls load libraries and start threads
    return [_row(n) for n in SIZES]


def _row(n: int) -> dict[str, str]:
    X, treated = population(n)
    fitting, fit = cpu(lambda: fit_propensity(X, treated, 1 / n))
    building, features = cpu(lambda: parted_features(X, KINDS, fit.scores)[0])
    solving, weights = cpu(lambda: balance_weights(features, treated, noise_variance=NOISE_VARIANCE))
    return {
        "rows": f"{n:,}",
        "propensity fit (s)": f"{fitting:.4f}",
        "features (s)": f"{building:.4f}",
        "weights (s)": f"{solving:.4f}",
        "(features + weights) / fit": f"{(building + solving) / fitting:.1f}",
        "Newton steps": f"{weights.iterations}",
        "gap / objective": f"{abs(weights.gap) / weights.objective:.0e}",
        "feature bytes a row": f"{features.nbytes / n:.0f}",
        "peak bytes a row": f"{_peak(X, treated, fit.scores) / n:.0f}",
    }


def _peak(X: np.ndarray, treated: np.ndarray, scores: np.ndarray) -> int:
    """Return the most memory held at once by features and weights together, in bytes."""
    tracemalloc.start()
    balance_weights(parted_features(X, KINDS, scores)[0], treated, noise_variance=NOISE_VARIANCE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    print(TITLE)
    for row in run():
        print("  ".join(f"{key}: {value}" for key, value in row.items()))
