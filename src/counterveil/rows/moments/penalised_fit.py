"""How far one row moves the weights of a ridge-penalised logistic regression that is fitted to private rows.

With rows (x_i, t_i), |x_i|^2 <= R (constant column included), the weights w minimise

    J(w) = (1/n) sum log-loss(w; x_i, t_i) + (penalty / 2) |w|^2

up to a gradient of length at most `tolerance`. In come the public n, R, penalty and tolerance (penalty and
tolerance without units when x has none), out comes the largest Euclidean change of w when a row is replaced:

    (2 sqrt(R) / n + 2 tolerance) / penalty.

Why: J is strongly convex with constant `penalty`, so a minimiser moves by at most the change of the gradient
over it; the gradient of one row's loss is at most sqrt(R) long, hence one row moves that of J by at most 2
sqrt(R) / n. This is the output perturbation of Chaudhuri, Monteleoni and Sarwate (2011).
Proof: `rows/moments/penalised_fit.proof.md`.
"""

# Proof: penalised_fit.proof.md

from __future__ import annotations

from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up


def penalised_fit(rows: int, squared_max_norm: Fraction, penalty: Fraction, tolerance: Fraction) -> Fraction:
    """Return the largest l2 change of the minimiser of (1/n) sum log-loss + (penalty/2)|w|^2 under replacement.

    2R/(n penalty) + 2 tolerance/penalty: `squared_max_norm` bounds |x|^2 for every row, the constant column included;
    `tolerance` bounds the norm of the objective's gradient at the weights that are returned.
    """
    return 2 * (sqrt_up(squared_max_norm) / rows + tolerance) / penalty
