"""`python -m experiments.record_effect.real [--draws N]`: record-private methods on real covariates.

Needs COUNTERVEIL_DATA. Outcomes of IHDP and ACIC are simulated and their true effects known; for the others the
estimate of least squares without privacy takes the truth's place. Ranges are those that the loaders declare.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import counterveil as cv
from counterveil.data import Binary, Range, Table
from counterveil.datasets import acic2016, ihdp, lalonde, nhefs
from counterveil.datasets.dataset import Dataset

STUDIES = {
    "IHDP 6": lambda: ihdp(6),
    "IHDP 7": lambda: ihdp(7),
    "IHDP 8": lambda: ihdp(8),
    "ACIC 3": lambda: acic2016(3),
    "ACIC 4": lambda: acic2016(4),
    "LaLonde 445": lalonde,
    "NHEFS": nhefs,
}
EPSILONS = ("1", "4", "8")
DELTA = "1e-6"
FALL_BACK = cv.settings.DoublyRobust(kappa=0.25)
METHODS: dict[str, dict[str, object]] = {
    "doubly robust": {"method": "doubly_robust", "estimand": "ATO", "settings": FALL_BACK},
    "folds of OLS": {"method": "sample_and_aggregate"},
    "difference in means": {"method": "trial", "settings": cv.settings.Trial("none", "pooled")},
}


def least_squares(data: Dataset) -> float:
    """Return the coefficient of treatment in a least-squares fit on all declared covariates."""
    study = data.study
    columns = [data.frame[study.treatment].astype(float), np.ones(len(data.frame[study.outcome]))]
    for name, domain in study.covariates.items():
        values = data.frame[name]
        if isinstance(domain, Range):
            columns.append(np.asarray(values, dtype=float))
        else:
            labels = domain.labels[:1] if isinstance(domain, Binary) else domain.labels[1:]
            columns += [(values == label).astype(float) for label in labels]
    y = np.clip(np.asarray(data.frame[study.outcome], dtype=float), *map(float, study.outcome_range))
    return float(np.linalg.lstsq(np.column_stack(columns), y, rcond=None)[0][0])


def cell(name: str, method: str, epsilon: str, draws: int) -> str:
    """Return coverage / rms error / median width (share not adjusted), over draws of the noise."""
    data = STUDIES[name]()
    truth = least_squares(data) if data.true_effect is None else data.true_effect
    table = Table.attach(data.frame, data.study)
    found = []
    for seed in range(draws):
        words = {"protects": "record", "epsilon": epsilon, "delta": DELTA} | METHODS[method]
        result = cv.ate(table, data.study, noise=cv.SeededNoise(50_000 + seed), **words)
        low, high = result.untruncated_interval()
        adjusted = result.details.get("adjusted", True) not in (False, "no")
        found.append((low <= truth <= high, (result.estimate - truth) ** 2, high - low, not adjusted))
    covered, square, width, fallen = np.array(found, dtype=float).T
    shown = f" ({fallen.mean():.2f})" if fallen.any() else ""
    return f"{covered.mean():.2f} / {np.sqrt(square.mean()):.3g} / {np.median(width):.3g}{shown}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.record_effect.real")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    print("| study (effect) | method | " + " | ".join(f"epsilon {epsilon}" for epsilon in EPSILONS) + " |")
    print("|---|---|" + "---|" * len(EPSILONS))
    with ProcessPoolExecutor(chosen.workers) as pool:
        runs = {
            (name, method, epsilon): pool.submit(cell, name, method, epsilon, chosen.draws)
            for name in STUDIES
            for method in METHODS
            for epsilon in EPSILONS
        }
        for name, loader in STUDIES.items():
            data = loader()
            plain = least_squares(data)
            truth = plain if data.true_effect is None else data.true_effect
            for method in METHODS:
                cells = [runs[name, method, epsilon].result() for epsilon in EPSILONS]
                print(f"| {name} ({truth:.3g}) | {method} | " + " | ".join(cells) + " |", flush=True)
            print(f"| {name} ({truth:.3g}) | OLS (not private) | error {abs(plain - truth):.3g} | | |")
            print(f"| {name} ({truth:.3g}) | zero | error {abs(truth):.3g} | | |", flush=True)


if __name__ == "__main__":
    main()
