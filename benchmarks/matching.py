"""Matching on a score beside np.argsort of the same scores, and the propensity fit beside scikit-learn's."""

import math
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from counterveil.numerics.matching import matching_coefficients
from counterveil.numerics.propensity import fit_propensity

TITLE = "Matching (5 neighbours, both directions) and propensity fit"
NEIGHBOURS = 5
SIZES = (10**5, 10**6)
FULL_SIZES = (10**5, 10**6, 10**7)
ROUNDS = 3
FIT_ROWS, FIT_COLUMNS = 10**6, 20


def scores(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Treatment (about 40 %) and a score that depends on what drives it."""
    rng = np.random.default_rng(11)
    driver = rng.normal(size=n)
    treated = rng.random(n) < 1 / (1 + np.exp(0.5 - 0.7 * driver))
    return treated, 1 / (1 + np.exp(-driver))


def cpu(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """CPU seconds, the smallest of a few rounds."""
    best = math.inf
    for _ in range(rounds):
        start = time.process_time()
        action()
        best = min(best, time.process_time() - start)
    return best


def peak_bytes(action: Callable[[], object]) -> int:
    """Bytes allocated at the peak beside what existed before."""
    tracemalloc.start()
    action()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def matching_rows(sizes: tuple[int, ...]) -> list[dict[str, str]]:
    rows, before = [], {}
    matching_coefficients(*scores(5000), NEIGHBOURS, 5, 5)  # compile
    matching_coefficients(*scores(5000), NEIGHBOURS)
    for n in sizes:
        treated, score = scores(n)
        rounds = ROUNDS if n < 10**7 else 2
        sorting = cpu(lambda score=score: np.argsort(score), rounds)
        for capacity in (NEIGHBOURS, 2 * NEIGHBOURS, None):

            def action(treated=treated, score=score, capacity=capacity):
                return matching_coefficients(treated, score, NEIGHBOURS, capacity, capacity)

            seconds = cpu(action, rounds)
            growth = seconds / before[capacity] if capacity in before else None
            before[capacity] = seconds
            rows.append(
                {
                    "job": f"matching, n={n:.0e}, limit {capacity or 'none'}",
                    "CPU s": f"{seconds:.4f}",
                    "beside": f"np.argsort {sorting:.4f}",
                    "ratio": f"{seconds / sorting:.2f}",
                    "growth from the size before": "-" if growth is None else f"{growth:.1f}",
                    "peak bytes per row": f"{peak_bytes(action) / n:.0f}",
                }
            )
    return rows


def fit_row() -> dict[str, str]:
    rng = np.random.default_rng(12)
    X = rng.random((FIT_ROWS, FIT_COLUMNS))
    treated = rng.random(FIT_ROWS) < 1 / (1 + np.exp(-(2 * X - 1) @ rng.uniform(-1, 1, FIT_COLUMNS)))
    penalty = 1 / FIT_ROWS

    def ours():
        return fit_propensity(X, treated, penalty)

    seconds, theirs, name = cpu(ours, 2), math.nan, "scikit-learn is not installed"
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        pass
    else:
        # Its objective is C sum(loss) + |w|^2/2: the same penalty at C = 1/(n penalty), intercept apart.
        model = LogisticRegression(C=1 / (FIT_ROWS * penalty))
        theirs = cpu(lambda: model.fit(X, treated).predict_proba(X), 2)
        name = f"LogisticRegression (lbfgs, default tolerance) {theirs:.2f}"
    return {
        "job": f"propensity fit, {FIT_ROWS:.0e} x {FIT_COLUMNS}, gradient below {ours().gradient_norm:.0e}",
        "CPU s": f"{seconds:.2f}",
        "beside": name,
        "ratio": "-" if math.isnan(theirs) else f"{seconds / theirs:.2f}",
        "growth from the size before": "-",
        "peak bytes per row": f"{peak_bytes(ours) / FIT_ROWS:.0f}",
    }


def run(full: bool = False) -> list[dict[str, str]]:
    return [*matching_rows(FULL_SIZES if full else SIZES), fit_row()]


if __name__ == "__main__":
    print(TITLE)
    for row in run(full="--full" in sys.argv[1:]):
        print("  ".join(f"{key}: {value}" for key, value in row.items()))
    print(f"peak resident memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
