"""`python -m experiments.stratified [--draws N]`: prints tables in Markdown; the last needs COUNTERVEIL_DATA."""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor

from experiments.stratified import coverage, noise, small_studies

EPSILONS = ("0.5", "1", "2", "4")
ROWS = (2_000, 10_000)


def coverage_table(draws: int, workers: int) -> str:
    lines = [
        "| n | form | " + " | ".join(f"epsilon {epsilon}" for epsilon in EPSILONS) + " |",
        "|---|---|" + "---|" * len(EPSILONS),
    ]
    with ProcessPoolExecutor(workers) as pool:
        runs = {
            (rows, form, epsilon): pool.submit(coverage.cell, form, rows, epsilon, draws)
            for rows in ROWS
            for form in coverage.FORMS
            for epsilon in EPSILONS
        }
        for rows in ROWS:
            for form in coverage.FORMS:
                cells = [runs[rows, form, epsilon].result() for epsilon in EPSILONS]
                text = " | ".join(
                    f"{100 * cell.covered:.1f} % / {cell.width:.4f} / {cell.error:.4f}" for cell in cells
                )
                lines.append(f"| {rows} | {form} | {text} |")
            plain = coverage.without_noise(rows, draws)
            lines.append(
                f"| {rows} | without privacy | {100 * plain.covered:.1f} % / {plain.width:.4f} / {plain.error:.4f} |"
                + " |" * (len(EPSILONS) - 1)
            )
            lines.append(f"| {rows} | zero | 0 % / 0 / 0.5 |" + " |" * (len(EPSILONS) - 1))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.stratified")
    parser.add_argument("--draws", type=int, default=500, help="studies for each cell of the coverage table")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    print("## Standard deviation of the noise, outcomes in [0, 1]\n")
    print(noise.table(), flush=True)
    print(f"\n## Coverage / median width / rms error, true effect 0.5, {chosen.draws} studies a cell\n")
    print(coverage_table(chosen.draws, chosen.workers), flush=True)
    if os.environ.get("COUNTERVEIL_DATA"):
        print(f"\n## Small studies at epsilon {small_studies.EPSILON}, 100 draws\n")
        print(small_studies.table(100))


if __name__ == "__main__":
    main()
