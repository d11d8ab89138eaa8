"""Noisy means of u rho and of rho^2 over records, rho being the clipped residual of a released model.

With u a row's standardised covariates and constant, |u| <= L, rho the outcome less its prediction by a model
that was released before, clipped to [-c, c], and k = 1.665, released with Gaussian noise is the vector of
means over n private records

    u rho / (L c),    k rho^2 / c^2,

u rho by arm where the model is one line for each arm. Out come the means of u rho (units of u times the
outcome's) and of rho^2, with the standard deviations of their noise. The mean of u rho is the gradient of the
squared error of the model, from which it is corrected; that of rho^2 is the residual variance.

Why it is right: replacing a record moves (u rho / (L c), k rho^2 / c^2) by at most 2 / n in Euclidean length,
as far as the first part alone may: at this k squares come free. Several arms cost what one does, since a
record is in one of them. `LENGTH_SLACK` covers the rounding of |u|.
Proof: `rows/moments/orthogonal_score.proof.md` (b), and by arm `rows/moments/arm_grams.proof.md` (c).
"""

# Proof: orthogonal_score.proof.md
# Proof: arm_grams.proof.md

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard, WholeSum, steps
from counterveil.rows.moments.linear_models import ArmLines, LinearModels
from counterveil.rows.moments.scaled_rows import ScaledRows, over_scaled
from counterveil.rows.moments.scores import TERM_BITS, Block, sums_by_arm, whole_steps
from counterveil.rows.moments.sensitivity import LENGTH_SLACK, SQUARE_WEIGHT
from counterveil.rows.records import Kernel, Records, TableRecords
from counterveil.session import Gate


def residual_moments(rows: int) -> Fraction:
    """Return the l2 sensitivity of the means of (u rho, 1.665 rho^2), |u| <= 1, rho in [-1, 1]."""
    return 2 * (1 + LENGTH_SLACK) / rows


@dataclass(frozen=True, slots=True)
class ResidualProducts:
    """Released means of u rho, perhaps arm by arm, and of rho^2, with their noise.

    Attributes
    ----------
    products : ndarray of shape (m,) or (arms, m)
        Means of u rho over all records, in units of u times the outcome's.
    square : float
        Mean of rho^2.
    sd, square_sd : float
        Noise of an entry of the products, and of the square.
    """

    products: Floats
    square: float
    sd: float
    square_sd: float


def release_residual_products(
    gate: Gate, name: str, count: int, sums: Callable[[], Sums], clip: float, max_norm: float = 1.0
) -> ResidualProducts:
    """Return moments of u with clipped residuals, and of their squares.

    Parameters
    ----------
    gate, name : Gate, str
        Where they are let through, and what the plan calls them.
    count : int
        Number of records n.
    sums : callable
        The pass over the rows: returns the sums of u rho / (L c) and of (rho / c)^2, in units of
        4**-TERM_BITS.
    clip : float
        c, the bound of |rho|.
    max_norm : float
        L, the bound of |u|.
    """

    def values() -> list[Fraction]:
        products, (square,) = sums()
        unit = Fraction(1, count * 4**TERM_BITS)
        return [total * unit for total in products] + [SQUARE_WEIGHT * square * unit]

    released = gate.release_vector(name, values, residual_moments(count))
    noisy = released.floats()
    sd = sqrt(released.variance)
    weight = float(SQUARE_WEIGHT)
    return ResidualProducts(
        products=noisy[:-1] * max_norm * clip,
        square=noisy[-1] * clip**2 / weight,
        sd=sd * max_norm * clip,
        square_sd=sd * clip**2 / weight,
    )


def residual_sums(
    row_blocks: Iterable[Block], models: LinearModels | ArmLines, clip: float, max_norm: float
) -> Sums:
    """Return the sums of u rho / (max_norm clip) and of (rho / clip)^2, rho being clipped to [-clip, clip].

    Lines by arm have the first by arm too, the reference first. Both are in units of 4**-TERM_BITS; |u| <= max_norm.
    """
    total = WholeSum()
    square = 0
    for u, t, y in row_blocks:
        rho = whole_steps(models.residual(u, t, y) / clip)
        arms = len(models.values) if isinstance(models, ArmLines) else 1
        total.add(sums_by_arm(rho.astype(np.float64), t, arms, steps(u / max_norm, TERM_BITS)))
        square += int((rho * rho).sum())
    return np.atleast_1d(total.whole()), np.array([square], dtype=object)


def over_models(records: TableRecords, kernel: Kernel, standard: Standard, *arguments: Any) -> Sums:
    """Return the kernel's sums over (1, z), treatment and outcome."""
    return kernel(records.models(standard), *arguments)


def release_residuals(
    gate: Gate, name: str, records: Records, standard: Standard, models: LinearModels, clip: float
) -> ResidualProducts:
    """Return moments of u = (1, z) with the residual of two linear models, clipped to [-clip, clip]."""
    max_norm = sqrt(1.0 + standard.squared_length)
    sums = partial(records.run, over_models, residual_sums, standard, models, clip, max_norm)
    return release_residual_products(gate, name, records.count, sums=sums, clip=clip, max_norm=max_norm)


def release_arm_residuals(
    gate: Gate, name: str, records: Records, rows: ScaledRows, lines: ArmLines, clip: float
) -> ResidualProducts:
    """Return moments of u with the residuals of every arm, clipped to [-clip, clip] in units of the rows."""
    sums = partial(records.run, over_scaled, residual_sums, rows, lines, clip, rows.longest)
    moments = release_residual_products(
        gate, name, records.count, sums=sums, clip=clip, max_norm=rows.longest
    )
    return replace(moments, products=moments.products.reshape(len(lines.values), -1))
