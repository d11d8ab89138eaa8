"""`python -m experiments.cate [DESIGN ...] [--keep FILE]`: root mean squared error of effects (PEHE), in Markdown.

Every answer is a fresh study with noise of its own, seeds from 1000 on. With --keep, finished pieces are written
to a file and not computed again. `--show` prints what the file holds and computes nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counterveil.errors import ParameterError
from counterveil.results.functions import default_delta
from counterveil_lab.reproduce.papers.cate.methods import boosted, constant_answers, not_private
from counterveil_lab.reproduce.papers.cate.studies import FINITE, KERNEL, Instance, anonymised, published_fit
from counterveil_lab.reproduce.rivals.simple import K
from experiments.cate.instances import FIRST_SEED, instance
from experiments.cate.ours import (
    FUNCTIONS,
    OUTCOME_CONSTANT,
    OUTCOMES,
    named_answers,
    outcome_constant,
)

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
PAPER = (*FINITE, *KERNEL)
FREE = ("zero", "best constant (not private)", "k-anonymous (not private)", "not private")
METHODS = (
    *OUTCOMES,
    OUTCOME_CONSTANT,
    *FUNCTIONS,
    "constant private ATE",
    *PAPER,
    "DP-EBM R-learner",
    *FREE,
)
# Rows, and studies for what is quick, for our single methods, and for what is slow (none where it says 0).
SIZES = {3000: (6, 3, 2), 30_000: (4, 2, 1), 300_000: (1, 1, 0)}
DESIGNS = ("dataset 1", "dataset 2", "skewed 1", "skewed 2", "IHDP", *(f"ACIC {s}" for s in range(1, 6)))
_SLOW = (*PAPER, "DP-EBM R-learner")
_SINGLE = ("t_learner", "r_learner")
_REAL_ROWS = {"IHDP": 747} | {f"ACIC {setting}": 4802 for setting in range(1, 6)}
_REAL_STUDIES = (2, 1, 1)


@dataclass(frozen=True)
class Piece:
    """One method on one drawn study, at every epsilon."""

    design: str
    rows: int
    method: str
    seed: int

    @property
    def key(self) -> str:
        return f"{self.design}|{self.rows}|{self.method}|{self.seed}"

    def errors(self) -> list[float]:
        """Return the error at each epsilon, or one where there is no epsilon."""
        study = instance(self.design, self.rows, self.seed)
        if self.method in PAPER:
            fit = published_fit(study, self.method, self.seed, default_delta(study.table.rows))
            return [study.error(fit.answers(epsilon)) for epsilon in EPSILONS]
        if self.method in FREE:
            return [study.error(_free(study, self.method))]
        return [_error(study, self.method, epsilon, self.seed) for epsilon in EPSILONS]


def _error(study: Instance, method: str, epsilon: float, seed: int) -> float:
    """Return the error of a private method, not a number where it refuses the study."""
    try:
        return study.error(_private(study, method, epsilon, seed))
    except ParameterError:
        return float("nan")


def _private(study: Instance, method: str, epsilon: float, seed: int) -> np.ndarray:
    if method == "constant private ATE":
        return constant_answers(study, epsilon, seed)
    if method == OUTCOME_CONSTANT:
        return outcome_constant(study, epsilon, seed)
    if method == "DP-EBM R-learner":
        return boosted(study, epsilon, seed)
    return named_answers(study, method, epsilon, seed)


def _free(study: Instance, method: str) -> np.ndarray:
    if method == "zero":
        return np.zeros(len(study.truth))
    if method.startswith("best constant"):
        return np.full(len(study.truth), study.truth.mean())
    return not_private(anonymised(study, K) if method.startswith("k-") else study)


def pieces(designs: list[str], methods: list[str], sizes: list[int]) -> Iterator[Piece]:
    """Yield all pieces, those of one study together."""
    for design in designs:
        for rows in [_REAL_ROWS[design]] if design in _REAL_ROWS else sizes:
            studies = _REAL_STUDIES if design in _REAL_ROWS else SIZES[rows]
            for study in range(studies[0]):
                for method in methods:
                    if study < studies[1 if method in _SINGLE else 2 if method in _SLOW else 0]:
                        yield Piece(design, rows, method, FIRST_SEED + study)


def show(found: dict[str, list[float]], designs: list[str]) -> None:
    """Print a table for every design and size that has results."""
    cells: dict[tuple[str, int], dict[str, list[list[float]]]] = {}
    for key, errors in found.items():
        design, rows, method, _ = key.split("|")
        cells.setdefault((design, int(rows)), {}).setdefault(method, []).append(errors)
    for (design, rows), methods in sorted(
        cells.items(), key=lambda item: (DESIGNS.index(item[0][0]), item[0][1])
    ):
        if design not in designs:
            continue
        print(f"\n**{design}, n = {rows:,}** (mean PEHE; in brackets the number of studies)\n")
        print("| method | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |")
        print("|---|" + "---|" * len(EPSILONS))
        for method in METHODS:
            if method in methods:
                means = np.mean(methods[method], axis=0)
                texts = ["refused" if np.isnan(mean) else f"{mean:.3g}" for mean in means] + [""] * (
                    len(EPSILONS) - len(means)
                )
                print(f"| {method} ({len(methods[method])}) | " + " | ".join(texts) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.cate")
    parser.add_argument("designs", nargs="*", default=list(DESIGNS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--rows", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--keep", type=Path, help="file of finished pieces, one a line")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no piece after so long")
    parser.add_argument("--show", action="store_true")
    chosen = parser.parse_args()
    found: dict[str, list[float]] = {}
    if chosen.keep and chosen.keep.exists():
        found = dict(json.loads(line) for line in chosen.keep.read_text(encoding="utf-8").splitlines())
    start = time.monotonic()
    for piece in [] if chosen.show else pieces(chosen.designs, chosen.methods, chosen.rows):
        if piece.key in found or time.monotonic() - start > chosen.seconds:
            continue
        began = time.process_time()
        found[piece.key] = piece.errors()
        print(f"{piece.key}: {time.process_time() - began:.1f} CPU s", flush=True)
        if chosen.keep:
            with chosen.keep.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps([piece.key, found[piece.key]]) + "\n")
    show(found, chosen.designs)


if __name__ == "__main__":
    main()
