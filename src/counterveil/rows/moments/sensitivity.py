"""How far one record moves sums by arm, and the weights of a penalised logistic regression.

Proof: `penalised_fit.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up


# Proof: penalised_fit.proof.md
def penalised_fit(rows: int, squared_max_norm: Fraction, penalty: Fraction, tolerance: Fraction) -> Fraction:
    """Return the largest l2 change of the minimiser of (1/n) sum log-loss + (penalty/2)|w|^2 under replacement.

    2R/(n penalty) + 2 tolerance/penalty: `squared_max_norm` bounds |x|^2 for every row, the constant column included;
    `tolerance` bounds the norm of the objective's gradient at the weights that are returned.
    """
    return 2 * (sqrt_up(squared_max_norm) / rows + tolerance) / penalty


# Proof: free_gram.proof.md

# Entries above the diagonal are weighted with this, just below the root of two.
OFF_DIAGONAL = Fraction(141_421_356, 100_000_000)
# Squared lengths that were computed in double precision are wrong by less than this part of them.
LENGTH_SLACK = Fraction(1, 2**30)


def free_gram(rows: int, squared_max_norm: Fraction) -> Fraction:
    """Return the l2 sensitivity of (diagonal, OFF_DIAGONAL * upper triangle) of the mean of w w'.

    |w|^2 <= squared_max_norm. Where every row is in one of two arms, it is that of both arms' means together.
    """
    return sqrt_up(Fraction(2)) * squared_max_norm * (1 + LENGTH_SLACK) / rows


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


# Proof: orthogonal_score.proof.md
def orthogonal_score(rows: int) -> Fraction:
    """Return the l2 sensitivity of the means of (r, 1.665 r^2), r in [-1, 1]."""
    return Fraction(2, rows)


def residual_moments(rows: int) -> Fraction:
    """Return the l2 sensitivity of the means of (u rho, 1.665 rho^2), |u| <= 1, rho in [-1, 1]."""
    return 2 * (1 + LENGTH_SLACK) / rows


# Proof: inverse_weighting.proof.md

# The number treated rides with them at this factor, for a little more noise.
COUNT_FACTOR = Fraction(1, 2)
# The number treated rides with two arms' sums for nothing up to the root of two.
ARM_COUNT_FACTOR = Fraction(7, 5)


@dataclass(frozen=True, slots=True)
class WeightedMoments:
    """Sensitivities of sums over rows of u, u^2 and t, for u in [-1, 1] and t in {0, 1} that are a row's own.

    `counted` says whether the number treated is released with them.
    """

    counted: bool

    @property
    def joint(self) -> Fraction:
        """Largest Euclidean length of a change of (sum u, SQUARE_WEIGHT sum u^2[, COUNT_FACTOR sum t])."""
        return sqrt_up(4 + COUNT_FACTOR**2) if self.counted else Fraction(2)

    @property
    def total(self) -> Fraction:
        """Largest change of sum u."""
        return Fraction(2)

    @property
    def squares(self) -> Fraction:
        """Largest change of sum u^2."""
        return Fraction(1)

    @property
    def count(self) -> Fraction:
        """Largest change of sum t."""
        return Fraction(1)


# Largest Euclidean length of a change of (sum t y, sum (1-t) y, ARM_COUNT_FACTOR sum t) for y in [-1, 1].
ARM_TOTALS = Fraction(2)


# Proof: arm_statistics.proof.md

# Weights of the entries beside the products u v: on the diagonal just below the root of one half, off it one,
# and just below the root of two for the sum of v^2.
DIAGONAL = Fraction(70_710_678, 100_000_000)
SQUARE = Fraction(141_421_356, 100_000_000)


def arm_statistics(rows: int) -> Fraction:
    """Return the l2 sensitivity of (DIAGONAL diag, upper triangle of u u', u v) in every arm and SQUARE v^2, as means.

    Every row is in one arm, |u| <= 1 and v lies in [-1, 1]: it is that of the products u v alone.
    """
    return 2 * (1 + LENGTH_SLACK) ** 2 / rows


# How far one record can move moments by arm, and the balance of two private arms.
#
# Proof: `arm_grams.proof.md`.


# Proof: arm_grams.proof.md
def look_moments(rows: int, features: int, weight: Fraction) -> Fraction:
    """Return the joint l2 sensitivity of the means of (x_j, 1.665 x_j^2) and of weight * (2t - 1), x_j in [-1, 1].

    `features` counts the features as in `record_moments`.
    """
    return sqrt_up(4 * features + 4 * weight**2) / rows


# Proof: arm_balance.proof.md

# Weights of the squares beside the numbers, and of the flags of labels.
SQUARES, FLAGS = Fraction(1665, 1000), Fraction(2)


def balance_sums(numbers: int, binaries: int, labelled: int) -> Fraction:
    """Return the l2 sensitivity of the sums by arm of (1, u_j, k (u_j^2 - 1/2)) for numbers, u_j = +-1 for truth
    values, and 2 times a flag for every label; k = 1.665, u_j in [-1, 1].

    `labelled` counts covariates with labels, however many labels they have.
    """
    same_arm = 4 * (numbers + binaries) + 2 * FLAGS**2 * labelled
    other_arm = 2 + numbers * (2 + SQUARES**2 / 2) + 2 * binaries + 2 * FLAGS**2 * labelled
    return sqrt_up(max(same_arm, other_arm))
