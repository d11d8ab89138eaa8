"""What exact noise costs: a million draws of each distribution, and one exact draw, beside numpy's generator."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from counterveil.mechanisms import (
    Ball,
    Gaussian,
    Grid,
    Laplace,
    Lomax,
    Noise,
    RandomizedResponse,
    Staircase,
    SystemNoise,
)
from counterveil.mechanisms.noise import shared_table

TITLE = "Noise: CPU seconds for 1e6 exact draws, and microseconds for one exact release"
COUNT = 1_000_000
SINGLE = 1_000
VALUE = Fraction(1, 3)


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds that one call takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def scalar_laws() -> list[tuple[str, Noise, Callable[[np.random.Generator], object] | None]]:
    """Return (name, noise, numpy's generator of the same distribution where it has one)."""
    lomax = Lomax.default(1).distribution(Fraction(1))
    power = float(lomax.unit.power)  # type: ignore[attr-defined]
    return [
        ("Laplace", Laplace(1, 1), lambda rng: rng.laplace(size=COUNT)),
        ("Gaussian", Gaussian(1, 1), lambda rng: rng.normal(size=COUNT)),
        ("Staircase", Staircase(1, 1), None),
        ("Lomax", lomax, lambda rng: rng.pareto(power, COUNT) * rng.choice([-1, 1], COUNT)),
    ]


def run() -> list[dict[str, str]]:
    """Return one row for each distribution; the time to build the table of the float64 path is counted."""
    rows = []
    source, rng = SystemNoise(), np.random.default_rng(1)
    for name, noise, numpy_draw in scalar_laws():
        grid = Grid.for_scale(noise.scale)
        building = cpu(lambda noise=noise: noise.unit.table())
        shared_table(noise.unit)
        again = cpu(lambda noise=noise, grid=grid: noise.draw(COUNT, grid, source))
        single = cpu(
            lambda noise=noise, grid=grid: [
                noise.release(Fraction(1, 3), grid, source) for _ in range(SINGLE)
            ]
        )
        theirs = None if numpy_draw is None else cpu(lambda draw=numpy_draw: draw(rng))
        rows.append(_row(name, building + again, again, theirs, single))
    response, values = RandomizedResponse(1, 4), rng.integers(0, 4, COUNT)
    first = cpu(lambda: response.release_many(values, source))
    again = cpu(lambda: response.release_many(values, source))
    theirs = cpu(lambda: np.where(rng.random(COUNT) < response.truth, values, rng.integers(0, 4, COUNT)))
    single = cpu(lambda: [response.release(1, source) for _ in range(SINGLE)])
    rows.append(_row("RandomizedResponse (4)", first, again, theirs, single))
    ball, grid = Ball(1, 1, 5), Grid(Fraction(1, 2**20))
    single = cpu(lambda: [ball.release([Fraction(0)] * 5, grid, source) for _ in range(SINGLE)])
    rows.append(_row("Ball (5 coordinates)", None, None, None, single))
    return rows


def _row(
    name: str, first: float | None, again: float | None, theirs: float | None, single: float
) -> dict[str, str]:
    ratio = None if again is None or theirs is None else again / theirs
    return {
        "distribution": name,
        "1e6 draws with table (s)": _shown(first, ".2f"),
        "1e6 draws, table ready (s)": _shown(again, ".3f"),
        "numpy, same distribution (s)": _shown(theirs, ".3f"),
        "ratio to numpy": _shown(ratio, ".1f"),
        "one exact release (us)": _shown(single / SINGLE * 1e6, ".0f"),
    }


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


if __name__ == "__main__":
    print(TITLE)
    for row in run():
        print("  ".join(f"{key}: {value}" for key, value in row.items()))
