"""`python -m experiments.cate.audits [--samples N]`: what the published guarantees of effects at queries miss.

Prints, for neighbouring data sets, a lower bound on the true epsilon beside the claimed one. Bounds hold with
probability 0.999 each; the most that so many samples can show is printed as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from counterveil_lab.reproduce.papers.cate.guarantees import (
    Neighbours,
    Projected,
    finding,
    finite_target,
    kernel_target,
    recovered,
)

TENTH, ONE = Fraction(1, 10), Fraction(1)
KERNELS = (
    (2, 0.2),
    (2, 1.0),
    (2, 3.0),
    (2, 10.0),
    (8, 0.4),
    (8, 1.0),
    (8, 2.0),
    (30, 0.5),
    (30, 1.0),
    (30, 3.87),
)
CEILING = Projected({"low": 0.0, "high": 1.0}, {"low": 1e-6, "high": 1e-6})

Row = tuple[str, Fraction, Projected]


def said(count: int) -> str:
    """Return the number of queries in words."""
    return "1 query" if count == 1 else f"{count:,} queries"


def finite_rows() -> Iterator[Row]:
    """Yield Theorem 1 with several second stages, for a record of the second stage."""
    pair = Neighbours.drawn()
    nearest, tree = KNeighborsRegressor(1), DecisionTreeRegressor(random_state=0)
    for epsilon in (TENTH, ONE):
        yield (
            "1-nearest neighbour (DR), 1 query",
            epsilon,
            finite_target(pair, nearest, 1, epsilon, learner="DR"),
        )
        yield "deep tree, 1 query", epsilon, finite_target(pair, tree, 1, epsilon)
        yield "random forest, 1 query", epsilon, finite_target(pair, "forest", 1, epsilon)
        for count in (1, 300, 10_000):
            yield f"network, {said(count)}", epsilon, finite_target(pair, "network", count, epsilon)
        for count in (1, 300, 10_000):
            yield f"linear, {said(count)}", epsilon, finite_target(pair, "linear", count, epsilon)


def seed_rows() -> Iterator[Row]:
    """Yield the network at 300 queries for other draws of the data, and a record of the nuisances."""
    for seed in range(1, 6):
        yield (
            f"network, 300 queries, data {seed}",
            ONE,
            finite_target(Neighbours.drawn(seed), "network", 300, ONE),
        )
    for seed in range(3):
        pair = Neighbours.drawn(seed, "first")
        for effect in ("forest", "network", "linear"):
            name = f"record of the nuisances, {effect}, 300 queries, data {seed}"
            yield name, ONE, finite_target(pair, effect, 300, ONE)


def kernel_rows() -> Iterator[Row]:
    """Yield Theorem 2 by the number of covariates and the bandwidth."""
    for features, bandwidth in KERNELS:
        yield f"kernel, q = {features}, h = {bandwidth:g}", ONE, kernel_target(features, bandwidth, ONE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.cate.audits")
    parser.add_argument("--samples", type=int, default=200_000)
    chosen = parser.parse_args()
    ceiling = finding(CEILING, ONE, chosen.samples).found
    print(f"{chosen.samples:,} releases from each data set; no bound can be above {ceiling:.2f}.\n")
    print(
        "| release | claimed epsilon | true epsilon, at least | shift in sd of the noise |\n|---|---|---|---|"
    )
    for rows in (finite_rows(), kernel_rows(), seed_rows()):
        for name, epsilon, target in rows:
            bound = finding(target, epsilon, chosen.samples).found
            shift = abs(target.means["high"] - target.means["low"]) / target.scales["low"]
            shown = f"**{bound:.2f}**" if bound > epsilon else f"{bound:.2f} (nothing shown)"
            print(f"| {name} | {float(epsilon):g} | {shown} | {shift:.3g} |", flush=True)
    rng = np.random.default_rng(0)
    worst = max(abs(recovered(x, 0.5, rng) - x) for x in rng.uniform(-5, 5, 100))
    print(
        f"\nAlgorithm 2 with the effect added back, the same query twice: the effect to within {worst:.1g}."
    )


if __name__ == "__main__":
    main()
