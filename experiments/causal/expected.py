"""`python -m experiments.causal.expected [--draws N] [--only NAME ...] [--out FILE] [--beside FILE]`.

Prints for every design of this experiment coverage / root mean square error / mean width of the 95 % intervals of
weighting with private outcomes, which is what `auto` takes. Outcomes are drawn anew, and noise is averaged over in
closed form, so that a few hundred draws cost little. Figures are saved in FILE; a second call makes what is missing.
`--beside` adds those of another version of the library. `--acic FOLDER` takes instead the settings of ACIC 2016 whose
files zymu_K.csv lie there; the PyPI package causallib has ten, of which the library knows five. Needs COUNTERVEIL_DATA.
"""

from __future__ import annotations

import argparse
import json
from math import sqrt
from pathlib import Path

import numpy as np

from counterveil.data.domains import to_steps
from experiments.causal.__main__ import designs
from experiments.causal.designs import Design
from experiments.causal.real import other_acic
from experiments.causal.table import LEAST_COVERAGE
from experiments.outcome_level.redrawn import EPSILONS, Answers, attached

# Rows times draws beyond which fewer outcomes are drawn.
MOST_OUTCOMES = 2_000_000
LONGER, WORSE = 1.15, 1.1
Figures = dict[str, dict[str, list[float]]]


def figures(design: Design, estimand: str, draws: int) -> dict[str, list[float]]:
    """Return coverage, error, mean width and number of draws for every epsilon."""
    table, truth = attached(design, 0), design.truth(estimand)
    draws = max(1, min(draws, MOST_OUTCOMES // table.rows))
    outcomes = [to_steps(design.outcomes(draw), design.study.outcome_bounds) for draw in range(draws)]
    found = {}
    for epsilon in EPSILONS:
        answers = Answers(table, "weighting", epsilon, estimand)
        rows = [answers.of(y, float(table.outcome_unit), truth) for y in outcomes]
        covered, squares, width = np.mean(rows, axis=0)
        found[f"{epsilon:g}"] = [float(covered), sqrt(squares), float(width), draws]
    return found


def line(title: str, found: dict[str, list[float]]) -> str:
    cells = (
        f"{covered:.3f} / {error:.3g} / {width:.3g}"
        for covered, error, width, _ in map(tuple, found.values())
    )
    return f"| {title} | " + " | ".join(cells) + " |"


def remarks(
    name: str, found: dict[str, list[float]], before: dict[str, list[float]] | None
) -> list[list[str]]:
    """Return the cells that cover too seldom, and those that are longer or err more than before."""
    below, longer, worse = list[str](), list[str](), list[str]()
    for epsilon, (covered, error, width, _) in found.items():
        cell = f"{name}, epsilon {epsilon}"
        if covered < LEAST_COVERAGE:
            below.append(f"{cell}: {covered:.3f}" + (f" (before {before[epsilon][0]:.3f})" if before else ""))
        if before and before[epsilon][0] >= LEAST_COVERAGE and width > LONGER * before[epsilon][2]:
            longer.append(f"{cell}: {width / before[epsilon][2]:.2f}")
        if before and error > WORSE * before[epsilon][1]:
            worse.append(f"{cell}: {error / before[epsilon][1]:.2f}")
    return [below, longer, worse]


def main() -> None:
    chosen = arguments()
    path = Path(chosen.out)
    saved: Figures = json.loads(path.read_text()) if path.exists() else {}
    other: Figures = json.loads(Path(chosen.beside).read_text()) if chosen.beside else {}
    kinds = ("below 93 %", f"longer than {LONGER} times where that covered", f"err more than {WORSE} times")
    said: list[list[str]] = [[] for _ in kinds]
    print("| | draws | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---|---|" + "---|" * len(EPSILONS))
    for design in other_acic(Path(chosen.acic)) if chosen.acic else designs():
        if chosen.only and not any(word.lower() in design.name.lower() for word in chosen.only):
            continue
        for estimand in design.estimands if "outcome" in design.levels else ():
            name = f"{design.name}, {estimand}"
            if name not in saved:
                saved[name] = figures(design, estimand, chosen.draws)
                path.write_text(json.dumps(saved))
            draws = int(next(iter(saved[name].values()))[3])
            print(line(f"**{name}** | {draws}", saved[name]), flush=True)
            if name in other:
                print(line("before | ", other[name]), flush=True)
            for cells, more in zip(said, remarks(name, saved[name], other.get(name)), strict=True):
                cells.extend(more)
    for kind, cells in zip(kinds, said, strict=True):
        print(f"\nCells {kind}: {len(cells)}" + "".join(f"\n- {cell}" for cell in cells))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.causal.expected")
    parser.add_argument("--draws", type=int, default=200, help="outcomes drawn for each design")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="designs whose names hold one of these")
    parser.add_argument("--out", metavar="FILE", default="expected.json", help="where figures are saved")
    parser.add_argument(
        "--beside", metavar="FILE", help="figures of another version, printed below each line"
    )
    parser.add_argument("--acic", metavar="FOLDER", help="files of other settings of ACIC 2016")
    return parser.parse_args()


if __name__ == "__main__":
    main()
