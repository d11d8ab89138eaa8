"""A doubly robust private effect beside the same without privacy, in the same linear basis."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

import counterveil as cv
from counterveil.data import Table
from counterveil.datasets import synth

TITLE = "CPU seconds of one record-private estimate with 20 covariates (aim at 1e6 rows: 3 times plain AIPW)"
SIZES = (10**5, 10**6)


def plain(x: np.ndarray, treated: np.ndarray, y: np.ndarray) -> float:
    """Doubly robust effect without privacy: linear outcome models of both arms, a logistic propensity."""
    columns = np.column_stack([np.ones(len(x)), x])
    weights = np.zeros(columns.shape[1])
    for _ in range(6):
        score = 1 / (1 + np.exp(-(columns @ weights)))
        weighted = columns * (score * (1 - score))[:, None]
        weights += np.linalg.solve(columns.T @ weighted, columns.T @ (treated - score))
    score = np.clip(1 / (1 + np.exp(-(columns @ weights))), 0.01, 0.99)
    means = []
    for arm in (treated == 1, treated == 0):
        own = columns[arm]
        means.append(columns @ np.linalg.solve(own.T @ own, own.T @ y[arm]))
    first, second = means
    own = treated * (y - first) / score - (1 - treated) * (y - second) / (1 - score)
    return float(np.mean(first - second + own))


def seconds(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def run() -> list[dict[str, str]]:
    rows = []
    for size in SIZES:
        data = synth(seed=1, n=size)
        table = Table.attach(data.frame, data.study)
        x = np.column_stack([data.frame[name] for name in data.study.covariates])
        treated, y = data.frame["treated"].astype(float), data.frame["y"]
        bare = seconds(lambda x=x, treated=treated, y=y: plain(x, treated, y))

        def ask(method: str, delta: str, table: Table = table) -> float:
            words = {"protects": "record", "epsilon": 1, "delta": delta, "method": method}
            return seconds(lambda: cv.ate(table, table.study, **words))

        found = {
            "AIPW without privacy": bare,
            "attaching the table": seconds(lambda data=data: Table.attach(data.frame, data.study)),
            "doubly robust, delta 1e-6": ask("doubly_robust", "1e-6"),
            "doubly robust, pure": ask("doubly_robust", "0"),
        }
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows += [
            {
                "rows": f"{size:.0e}",
                "job": name,
                "CPU s": f"{value:.2f}",
                "ratio to AIPW": f"{value / bare:.2f}",
                "peak MB so far": f"{peak:.0f}",
            }
            for name, value in found.items()
        ]
    return rows
