"""`python -m experiments.cate.bands [DESIGN ...] [--draws N] [--keep FILE]`: coverage and width of bands, in Markdown.

epsilon 1, seeds from 1000 on; n = 30,000, or what --rows says. Pointwise: the part of 1,000 new people whose effect
lies in its interval, averaged over studies. Simultaneous: the part of studies whose band holds all of them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import counterveil as cv
from counterveil.datasets import dataset_1, dataset_2, kink, skewed
from experiments.cate.instances import FIRST_SEED
from experiments.cate.ours import OUTCOMES

DESIGNS = {"dataset 1": dataset_1, "dataset 2": dataset_2, "kink": kink, "skewed": skewed}
METHODS = ("auto", "t_learner", "r_learner", *OUTCOMES)
ROWS, PEOPLE = 30_000, 1000

Draw = tuple[float, bool, float, float, float]


def draw(design: str, method: str, seed: int, rows: int = ROWS, epsilon: float = 1) -> Draw:
    """Return coverage of people, whether the band holds all of them, mean widths of both, and the error."""
    data = DESIGNS[design](rows + PEOPLE, seed)
    assert data.effects is not None
    learn = {name: values[:rows] for name, values in data.frame.items()}
    people = {name: data.frame[name][rows:] for name in data.study.covariates}
    truth = data.effects[rows:]
    model = cv.cate(
        learn,
        data.study,
        protects="outcome" if method in OUTCOMES else "record",
        epsilon=epsilon,
        delta="1e-6",
        method=OUTCOMES.get(method, method),
        noise=cv.SeededNoise(seed),
    )
    assert isinstance(model, cv.results.CateModel)
    low, high = model.interval(people)
    least, most = model.band(people)
    return (
        float(np.mean((low <= truth) & (truth <= high))),
        bool(np.all((least <= truth) & (truth <= most))),
        float(np.mean(high - low)),
        float(np.mean(most - least)),
        float(np.sqrt(np.mean((model.effect(people) - truth) ** 2))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.cate.bands")
    parser.add_argument("designs", nargs="*", default=list(DESIGNS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--keep", type=Path, help="file of finished draws, one a line")
    chosen = parser.parse_args()
    found: dict[str, Draw] = {}
    if chosen.keep and chosen.keep.exists():
        found = dict(json.loads(line) for line in chosen.keep.read_text(encoding="utf-8").splitlines())
    print(f"n = {chosen.rows:,}, epsilon {chosen.epsilon:g}, {chosen.draws} studies\n")
    print(
        "| design | method | pointwise | width | simultaneous | width | error (PEHE) |\n|---|---|---|---|---|---|---|"
    )
    for design in chosen.designs:
        for method in chosen.methods:
            kept = []
            for seed in range(FIRST_SEED, FIRST_SEED + chosen.draws):
                key = f"{design}|{method}|{seed}|{chosen.rows}|{chosen.epsilon:g}"
                if key not in found:
                    found[key] = draw(design, method, seed, chosen.rows, chosen.epsilon)
                    if chosen.keep:
                        with chosen.keep.open("a", encoding="utf-8") as lines:
                            lines.write(json.dumps([key, found[key]]) + "\n")
                kept.append(found[key])
            point, all_of_them, width, wide, error = np.mean(np.array(kept, dtype=np.float64), axis=0)
            print(
                f"| {design} | {method} | {point:.3f} | {width:.3g} | {all_of_them:.3f} | {wide:.3g} | {error:.3g} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
