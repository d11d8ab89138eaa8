"""Bounds that several releases share: how far one record moves sums, and the weights of a penalised fit."""

from __future__ import annotations

from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up


# Proof: penalised_fit.proof.md
def penalised_fit(rows: int, squared_max_norm: Fraction, penalty: Fraction, tolerance: Fraction) -> Fraction:
    """Return the largest l2 change of the minimiser of (1/n) sum log-loss + (penalty/2)|w|^2 under replacement.

    2R/(n penalty) + 2 tolerance/penalty: `squared_max_norm` bounds |x|^2 for every row, the constant column included;
    `tolerance` bounds the norm of the objective's gradient at the weights that are returned.
    """
    return 2 * (sqrt_up(squared_max_norm) / rows + tolerance) / penalty


# Squared lengths that were computed in double precision are wrong by less than this part of them.
LENGTH_SLACK = Fraction(1, 2**30)


# Proof: record_moments.proof.md

# The weight at which the mean of x^2 comes free with the mean of x, for x in [-1, 1]: its square is below
# (4-s)/(s(2-s)^2) for every s in (0, 2], whose least value is 2.7725...
SQUARE_WEIGHT = Fraction(1665, 1000)


def record_moments(rows: int, features: int, weight: Fraction) -> Fraction:
    """Return the joint l2 sensitivity of the means of (x_j, 1.665 x_j^2), weight * t and weight * (y, 1.665 y^2).

    All of x_j, t and y lie in [-1, 1]. `features` counts the features, a group of flags of which at most
    one is up counting as at most two.
    """
    return sqrt_up(4 * features + 8 * weight**2) / rows


# Proof: inverse_weighting.proof.md

# The number treated rides with two arms' sums for nothing up to the root of two.
ARM_COUNT_FACTOR = Fraction(7, 5)


# Largest Euclidean length of a change of (sum t y, sum (1-t) y, ARM_COUNT_FACTOR sum t) for y in [-1, 1].
ARM_TOTALS = Fraction(2)
