"""`python -m experiments.cate.tuning`: errors of outcome-level functions on tuning seeds, a line a value, in Markdown.

Seeds are below 100: the tables of this experiment use others. Every number that is a choice is moved by itself, the
others staying as they are in the library.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.estimators.linear import series, series_basis, series_features, series_posterior
from experiments.cate.instances import instance

CELLS = (("dataset 1", 3000, 20), ("dataset 1", 30_000, 3), ("dataset 2", 3000, 6), ("skewed 1", 3000, 6))
FIRST = 10
# Module, name, and the values that are tried beside the library's own.
TRIED: tuple[tuple[Any, str, tuple[Any, ...]], ...] = (
    (series_features, "_MOST_LEVERAGE", (100.0, 4.0, 2.0, 0.7)),
    (series_basis, "FALL", (3.0,)),
    (series_posterior, "_SCALES", ((0.002, 0.03, 0.3), (0.01, 0.1, 1.0))),
    (series_posterior, "_HIDDEN", (0.05, 0.5)),
    (series, "_SAFE", (1.0, 3.0)),
    (series, "SEARCH_STEPS", (4, 6)),
    (series, "_CLIPPED", ((1.2, 1.2), (2.4, 0.6))),
    (series, "_FEW_COVARIATES", ((4, 7, 2, 10), (4, 7, 2, 30))),
    (series, "_MANY_COVARIATES", ((4, 7, 2, 20), (4, 7, 2, 30), (4, 7, 2, 55))),
)


def error(design: str, rows: int, studies: int) -> float:
    """Return the mean error over studies at epsilon 1, delta 1e-6."""
    found = []
    for seed in range(FIRST, FIRST + studies):
        study = instance(design, rows, seed)
        model = cv.cate(
            study.table,
            study.study,
            protects="outcome",
            method="series",
            epsilon=1,
            delta="1e-6",
            noise=cv.SeededNoise(seed),
        )
        assert isinstance(model, cv.results.CateModel)
        found.append(study.error(model.answers(study.queries).effect()))
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.cate.tuning")
    parser.add_argument("names", nargs="*", help="numbers to move; all if omitted")
    chosen = parser.parse_args().names
    print("| number | value | " + " | ".join(f"{design}, n = {rows:,}" for design, rows, _ in CELLS) + " |")
    print("|---|---|" + "---|" * len(CELLS))
    show("as they are", "")
    for module, name, values in TRIED:
        before = getattr(module, name)
        for value in values if not chosen or name in chosen else ():
            setattr(module, name, value)
            show(name, value)
        setattr(module, name, before)


def show(name: str, value: Any) -> None:
    """Print one line of the table, with the numbers as they are now."""
    errors = [error(*cell) for cell in CELLS]
    print(f"| {name} | {value} | " + " | ".join(f"{one:.3g}" for one in errors) + " |", flush=True)


if __name__ == "__main__":
    main()
