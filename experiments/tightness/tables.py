"""The two tables of the reference page, as Markdown."""

from __future__ import annotations

from fractions import Fraction

from counterveil.mechanisms import Ball, Gaussian, Laplace, Lomax, RandomizedResponse, Staircase
from counterveil.privacy import Budget
from experiments.runner import Table
from experiments.tightness import losses

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(5))
SCALE_EPSILONS = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5))
DELTA = Fraction(1, 10**5)


def tightness() -> list[tuple[str, str, str, str, str]]:
    """Return (mechanism, parameters, claim, largest loss found, ratio) for every distribution."""
    rows = []
    for epsilon in EPSILONS:
        pure: list[tuple[str, str, float]] = [
            ("Laplace", "", losses.additive(Laplace(1, epsilon), 1.0)),
            ("Staircase", "", losses.additive(Staircase(1, epsilon), 1.0)),
            ("Lomax", f"g {epsilon / 10}", losses.smooth(Lomax.default(epsilon))),
            ("Ball", "dimension 5", losses.ball(Ball(1, epsilon, 5))),
            ("RandomizedResponse", "2 categories", losses.response(RandomizedResponse(epsilon, 2))),
            ("RandomizedResponse", "10 categories", losses.response(RandomizedResponse(epsilon, 10))),
        ]
        for name, parameters, loss in pure:
            shown = ", ".join(filter(None, [f"epsilon {epsilon}", parameters]))
            rows.append((name, shown, f"epsilon {epsilon}", f"{loss:.6f}", f"{loss / epsilon:.4f}"))
        delta = losses.profile(Gaussian.calibrated(1, Budget(epsilon, DELTA)), float(epsilon))
        shown = f"epsilon {epsilon}, delta 1e-5"
        rows.append(("Gaussian", shown, "delta 1e-5", f"{delta:.6e}", f"{delta / DELTA:.4f}"))
    return sorted(rows, key=lambda row: row[0])


def deviations() -> list[tuple[str, ...]]:
    """Return the standard deviation of each distribution per unit of sensitivity, one column for each epsilon."""
    distributions = {
        "Laplace": lambda e: Laplace(1, e).variance,
        "Staircase": lambda e: Staircase(1, e).variance,
        "Gaussian, delta 1e-5": lambda e: Gaussian.calibrated(1, Budget(e, DELTA)).variance,
        "Lomax, g = epsilon/10": lambda e: Lomax.default(e).distribution(Fraction(1)).variance,
        "Ball, each of 5 coordinates": lambda e: Ball(1, e, 5).variance,
        "Laplace on each of 5 coordinates": lambda e: 5 * Laplace(1, e).variance,
    }
    return [
        (name, *(f"{distribution(e) ** 0.5:.3f}" for e in SCALE_EPSILONS))
        for name, distribution in distributions.items()
    ]


TABLES = {
    "losses": Table(
        columns="mechanism | parameters | claim | largest loss found | ratio",
        cells=[()],
        row=lambda seeds: tightness(),
    ),
    "deviations": Table(
        columns=("noise", *(f"epsilon {float(epsilon):g}" for epsilon in SCALE_EPSILONS)),
        cells=[()],
        row=lambda seeds: deviations(),
    ),
}
