"""`python -m experiments.record_effect.cross_fit [--draws N] [--rows N ...]`: cross-fitting beside doubly_robust.

Coverage / root mean square error / median width of 95 % intervals on simulated studies, each draw with data and noise
of its own; seeds are not those that settings were chosen on.
"""

from __future__ import annotations

import argparse

import numpy as np

import counterveil as cv
from experiments.record_effect.designs import instance

FIRST_SEED = 50_000
EPSILONS = ("1", "4")
PUBLISHED = "published"
KINDS = ("plain", "aligned", "nonlinear", "correlated")
# Heading, method, estimand, delta.
METHODS = (
    ("doubly_robust", "doubly_robust", "ATE", "1e-6"),
    ("doubly_robust ATT", "doubly_robust", "ATT", "1e-6"),
    ("cross_fit", "cross_fit", "ATE", "1e-6"),
    ("cross_fit ATT", "cross_fit", "ATT", "1e-6"),
    ("cross_fit ATC", "cross_fit", "ATC", "1e-6"),
    ("doubly_robust pure", "doubly_robust", "ATE", "0"),
    ("cross_fit pure", "cross_fit", "ATE", "0"),
    ("cross_fit, as published", PUBLISHED, "ATE", "1e-6"),
)


# Asked of every kind of study; the others of the plain one alone, whose effect does not vary.
EVERYWHERE = ("doubly_robust", "cross_fit")


def cell(kind: str, rows: int, draws: int, epsilon: str, words: tuple[str, str, str]) -> str:
    """Return one cell of the table."""
    method, estimand, delta = words
    errors, halves = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + draws):
        study = instance(kind, seed, rows, 20, False)
        try:
            asked = {"epsilon": epsilon, "delta": delta, "estimand": estimand, "noise": cv.SeededNoise(seed)}
            source = study.table, study.table.study
            if method == PUBLISHED:
                result = cv.published.cross_fit(*source, accept="unproved", **asked)
            elif method == "cross_fit":
                result = cv.published.cross_fit_proved(*source, **asked)
            else:
                result = cv.ate(*source, protects="record", method=method, **asked)
        except cv.CounterveilError as refused:
            return f"refused ({refused.code})"
        low, high = result.untruncated_interval()
        errors.append(result.estimate - study.truth)
        halves.append((high - low) / 2)
    error, half = np.array(errors), np.array(halves)
    covered = float((np.abs(error) <= half).mean())
    return f"{covered:.2f} / {float(np.sqrt((error**2).mean())):.3g} / {2 * float(np.median(half)):.3g}"


def main() -> None:
    """Print one table a number of rows and kind of study."""
    parser = argparse.ArgumentParser(prog="python -m experiments.record_effect.cross_fit")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--methods", nargs="+", default=[name for name, *_ in METHODS])
    chosen = parser.parse_args()
    for rows in chosen.rows:
        for kind in chosen.kinds:
            print(f"\n**{kind.capitalize()}, n = {rows:,}** ({chosen.draws} draws)\n")
            print("| method | " + " | ".join(f"epsilon {epsilon}" for epsilon in EPSILONS) + " |")
            print("|---|" + "---|" * len(EPSILONS))
            for name, *words in METHODS:
                if name not in chosen.methods or (kind != KINDS[0] and name not in EVERYWHERE):
                    continue
                cells = [cell(kind, rows, chosen.draws, epsilon, tuple(words)) for epsilon in EPSILONS]  # type: ignore[arg-type]
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
