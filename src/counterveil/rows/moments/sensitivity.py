"""How far one record moves first and second moments of its columns, and two factors that bounds share.

With x_j, t and y in [-1, 1] (features, treatment and outcome in half ranges) of one of n records, the vector
of the means of

    (x_j, k x_j^2) over p features,    w t,    w (y, k y^2),    k = 1.665,

moves by at most sqrt(4 p + 8 w^2) / n in Euclidean length where that record is replaced. The weight w is
public. In come n, p and w, out comes that length, in the units of the vector, which Gaussian noise is scaled
by.

Why: (x, k x^2) moves by at most 2, as far as x alone may, for k^2 at most the least value of (4 - s) / (s (2
- s)^2) over s in (0, 2], which is 2.7725...: squares come free with their means. w y with its square adds (2
w)^2 and w t (2 w)^2.
Proof: `rows/moments/record_moments.proof.md`. `LENGTH_SLACK` is a proved bound on rounding of lengths, used
where a length is computed in double precision.
"""

# Proof: record_moments.proof.md

from __future__ import annotations

from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up

# Squared lengths that were computed in double precision are wrong by less than this part of them.
LENGTH_SLACK = Fraction(1, 2**30)
# The weight at which the mean of x^2 comes free with the mean of x, for x in [-1, 1]: its square is below
# (4-s)/(s(2-s)^2) for every s in (0, 2], whose least value is 2.7725...
SQUARE_WEIGHT = Fraction(1665, 1000)


def record_moments(rows: int, features: int, weight: Fraction) -> Fraction:
    """Return the joint l2 sensitivity of the means of (x_j, 1.665 x_j^2), weight * t and weight * (y, 1.665 y^2).

    All of x_j, t and y lie in [-1, 1]. `features` counts the features, a group of flags of which at most
    one is up counting as at most two.
    """
    return sqrt_up(4 * features + 8 * weight**2) / rows
