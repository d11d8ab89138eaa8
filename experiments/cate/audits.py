"""What the published guarantees of effects at queries miss.

For neighbouring data sets, a lower bound on the true epsilon beside the claimed one. Bounds hold with
probability 0.999 each; the first row has the most that so many samples can show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from counterveil_lab.reproduce.papers.cate.guarantees import (
    Neighbours,
    Projected,
    finding,
    finite_target,
    kernel_target,
    recovered,
)
from experiments.runner import Row, Table

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

Target = tuple[str, Fraction, Projected]


def said(count: int) -> str:
    """Return the number of queries in words."""
    return "1 query" if count == 1 else f"{count:,} queries"


def finite_rows() -> Iterator[Target]:
    """Yield Theorem 1 with several second stages, for a record of the second stage."""
    pair = Neighbours.drawn()
    for epsilon in (TENTH, ONE):
        yield "random forest, 1 query", epsilon, finite_target(pair, "forest", 1, epsilon)
        for count in (1, 300, 10_000):
            yield f"network, {said(count)}", epsilon, finite_target(pair, "network", count, epsilon)
        for count in (1, 300, 10_000):
            yield f"linear, {said(count)}", epsilon, finite_target(pair, "linear", count, epsilon)


def seed_rows() -> Iterator[Target]:
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


def kernel_rows() -> Iterator[Target]:
    """Yield Theorem 2 by the number of covariates and the bandwidth."""
    for features, bandwidth in KERNELS:
        yield f"kernel, q = {features}, h = {bandwidth:g}", ONE, kernel_target(features, bandwidth, ONE)


def bounds(targets: Callable[[], Iterator[Target]], *, seeds: range) -> list[Row]:
    """Return lower bounds on epsilon of some releases; draws are samples from each data set."""
    made: list[Row] = []
    for name, epsilon, target in targets():
        bound = finding(target, epsilon, len(seeds)).found
        shift = abs(target.means["high"] - target.means["low"]) / target.scales["low"]
        shown = f"**{bound:.2f}**" if bound > epsilon else f"{bound:.2f} (nothing shown)"
        made.append([name, float(epsilon), shown, shift])
    return made


def ceiling() -> Iterator[Target]:
    """Yield what no samples can tell apart better."""
    yield "no bound can be above", ONE, CEILING


def twice(_: list[Row]) -> Iterator[str]:
    """Yield what Algorithm 2 shows when it is asked twice."""
    rng = np.random.default_rng(0)
    worst = max(abs(recovered(x, 0.5, rng) - x) for x in rng.uniform(-5, 5, 100))
    yield f"Algorithm 2 with the effect added back, the same query twice: the effect to within {worst:.1g}."


TABLE = Table(
    columns="release | claimed epsilon :g | true epsilon, at least | shift in sd of the noise :.3g",
    cells=[(ceiling,), (finite_rows,), (kernel_rows,), (seed_rows,)],
    row=bounds,
    title="{draws} releases from each data set.",
    draws=200_000,
    apart=True,
    notes=twice,
)
