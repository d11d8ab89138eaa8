"""The gate's extension point: a release whose noise the caller makes. By itself it guarantees nothing.

It exists for forms that are drawn as printed. `counterveil.published` alone may import it, by a contract in
`pyproject.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from counterveil.mechanisms import Gaussian, KnownSensitivityMechanism, LaplacePair
from counterveil.session.session import Gate, Kind, Plan

__all__ = ["Gaussian", "LaplacePair", "release_with"]


def release_with(
    gate: Gate,
    name: str,
    values: Sequence[Fraction],
    noise: Callable[[Plan, Fraction], KnownSensitivityMechanism],
    *,
    least: Fraction,
    kind: Kind = Kind.NUMBER,
) -> tuple[tuple[Fraction, ...], KnownSensitivityMechanism]:
    """Return `values` plus independent draws of one mechanism, and that mechanism; the name passes once.

    `noise` makes the mechanism from the plan and from what the plan pays for `name`. `least` is a public scale that
    the grid is fine beside: a grid made from a private scale would disclose it.
    """
    amount = gate._pay(name, kind)
    mechanism = noise(gate._plan, amount)
    return gate._on_each(name, values, mechanism, least, amount), mechanism
