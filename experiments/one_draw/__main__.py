"""`python -m experiments.one_draw`: variance of the noise of one draw over that of two, in Markdown."""

from __future__ import annotations

from fractions import Fraction

from counterveil.privacy import Budget
from counterveil.rows.linear.sensitivity import MeanContrast
from counterveil.session import Plan


def main() -> None:
    print(
        "Noise variance of the difference in means over that of two Laplace draws (one an arm), same epsilon.\n"
    )
    print("| treated | control | epsilon | one Laplace draw | one staircase draw (default) |")
    print("|---|---|---|---|---|")
    for treated, control in ((500, 500), (185, 260), (100, 900)):
        for epsilon in (0.25, 1, 2, 4):
            budget = Budget(epsilon)
            sensitivity = MeanContrast(Fraction(1), treated, control).estimate
            two = sum(2 * (1 / (size * epsilon)) ** 2 for size in (treated, control))
            ours = [
                Plan.split(budget, {"effect": Fraction(1)}, mechanism).noise("effect", sensitivity).variance
                / two
                for mechanism in ("laplace", "staircase")
            ]
            print(f"| {treated} | {control} | {epsilon:g} | {ours[0]:.3f} | {ours[1]:.3f} |")


if __name__ == "__main__":
    main()
