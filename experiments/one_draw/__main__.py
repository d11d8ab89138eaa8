"""Variance of the noise of one draw over that of two: `python -m experiments.one_draw`; nothing is drawn."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from counterveil.privacy import Budget
from counterveil.rows.linear.sensitivity import MeanContrast
from counterveil.session import Plan
from experiments.runner import Row, Table, run


def row(sizes: tuple[int, int], epsilon: float, *, seeds: range) -> Row:
    """Return the ratios of one pair of arms."""
    budget = Budget(epsilon)
    sensitivity = MeanContrast(Fraction(1), *sizes).estimate
    two = sum(2 * (1 / (size * epsilon)) ** 2 for size in sizes)
    ours = [
        Plan.split(budget, {"effect": Fraction(1)}, mechanism).noise("effect", sensitivity).variance / two
        for mechanism in ("laplace", "staircase")
    ]
    return [*sizes, epsilon, *ours]


TABLES = {
    "variances": Table(
        columns=(
            "treated | control | epsilon :g | one Laplace draw :.3f | one staircase draw (default) :.3f"
        ),
        cells=list(product(((500, 500), (185, 260), (100, 900)), (0.25, 1, 2, 4))),
        row=row,
        title="Noise variance of the difference in means over that of two Laplace draws (one an arm), same epsilon.",
    )
}

if __name__ == "__main__":
    run(__doc__, TABLES)
