"""How far one outcome can move a comparison of public arms, and the estimate of its variance.

For outcomes in a range of width B and public coefficients c, a change of one outcome moves

    sum_i c_i y_i    by B max |c_i| at most,    its variance by B^2 times the bound of its form,

in units of the outcome and in squared ones. For plain means of arms of n_1 and n_0 rows max ``|c_i|`` is
1 / min(n_1, n_0), and the variance moves by at most its square times B^2.

In: public numbers (B, sizes of arms, coefficients). Out: the bounds to which noise is calibrated, as exact
fractions. `variance_cap` is the largest variance that any outcomes in the range have; no guarantee rests on
it.

Why it is right: only the term of the changed outcome moves, by ``|c_i|`` B at most. The variance is proved
on pages in `rows/linear`: `LinearEstimate` (weights) `linear_estimate.proof.md`;
`ClusteredEstimate` (rows in clusters) `clustered_error.proof.md`; `MeanContrast` and `SitesContrast` (plain
means of two arms, and those averaged over sites) `difference_in_means.proof.md`; `ArmMean` (plain mean of one
arm) `arm_mean.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


# Proof: linear_estimate.proof.md
@dataclass(frozen=True, slots=True)
class LinearEstimate:
    """Sensitivities of sum c_i y_i under a change of one outcome in [0, width], c public.

    `largest`: max |c_i|. `squares`: sum of c_i^2. `largest_row`: the largest sum of pair weights at one row.
    `factor`: by how much the variance is raised to allow for bias; `largest_row` holds it.
    """

    width: Fraction
    largest: Fraction
    squares: Fraction
    largest_row: Fraction
    factor: Fraction = Fraction(1)

    @property
    def estimate(self) -> Fraction:
        """Largest change of the weighted sum."""
        return self.width * self.largest

    @property
    def variance(self) -> Fraction:
        """Largest change of the paired variance."""
        return self.width**2 * self.largest_row / 2

    @property
    def variance_cap(self) -> Fraction:
        """Largest possible variance of the weighted sum of independent outcomes in [0, width], with its factor."""
        return self.factor * self.width**2 * self.squares / 4


# Proof: clustered_error.proof.md
@dataclass(frozen=True, slots=True)
class ClusteredEstimate:
    """Sensitivities of sum c_i y_i under a change of one outcome in [0, width], rows coming in public clusters.

    `largest`: max |c_i|. `change`: the longest vector by which an outcome that moves by one range moves the residual
    totals of the clusters, and what the length is rounded by. `cap_of_range`: the largest standard error for outcomes
    in [0, 1]. `factor`: by how much the standard error is raised to allow for bias.
    """

    width: Fraction
    largest: Fraction
    change: Fraction
    cap_of_range: Fraction
    factor: Fraction = Fraction(1)

    @property
    def estimate(self) -> Fraction:
        """Largest change of the weighted sum."""
        return self.width * self.largest

    @property
    def error(self) -> Fraction:
        """Largest change of its standard error."""
        return self.factor * self.width * self.change

    @property
    def cap(self) -> Fraction:
        """Largest possible standard error of the weighted sum of independent clusters, with its factor."""
        return self.factor * self.width * self.cap_of_range


# Proof: difference_in_means.proof.md
@dataclass(frozen=True, slots=True)
class MeanContrast:
    """Sensitivities under a change of one outcome in [0, width]; both arms have at least two rows."""

    width: Fraction
    treated: int
    control: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of rows that are treated, and of the others."""
        return self.treated, self.control

    @property
    def smallest_arm(self) -> int:
        """Number of rows in the smaller arm."""
        return min(self.sizes)

    @property
    def squares(self) -> Fraction:
        """Sum of the squared coefficients of the outcomes."""
        return Fraction(1, self.treated) + Fraction(1, self.control)

    @property
    def estimate(self) -> Fraction:
        """Largest change of mean(treated) - mean(control)."""
        return self.width / self.smallest_arm

    @property
    def variance(self) -> Fraction:
        """Largest change of s1^2/n1 + s0^2/n0 with unbiased s^2."""
        return (self.width / self.smallest_arm) ** 2

    @property
    def variance_cap(self) -> Fraction:
        """Largest possible s1^2/n1 + s0^2/n0 over all outcomes in [0, width]."""
        variances = (_largest_variance(n) / n for n in (self.treated, self.control))
        return self.width**2 * sum(variances, Fraction(0))


# Proof: difference_in_means.proof.md
@dataclass(frozen=True, slots=True)
class SitesContrast:
    """The same of the mean of sites' contrasts, weighted by their rows; `sites` are the sizes of both arms of each.

    Nothing depends on which arm is named first.
    """

    width: Fraction
    sites: tuple[tuple[int, ...], ...]

    @property
    def weighted(self) -> list[tuple[Fraction, MeanContrast]]:
        """Each site's weight and contrast."""
        rows = sum(map(sum, self.sites))
        return [(Fraction(sum(arms), rows), MeanContrast(self.width, *arms)) for arms in self.sites]

    @property
    def sizes(self) -> tuple[Fraction, Fraction]:
        """One over the largest coefficient of an outcome, by arm: its rows where there is one site."""
        sizes = [(contrast.treated / weight, contrast.control / weight) for weight, contrast in self.weighted]
        return min(size for size, _ in sizes), min(size for _, size in sizes)

    @property
    def squares(self) -> Fraction:
        """Sum of the squared coefficients of the outcomes."""
        return sum((weight**2 * contrast.squares for weight, contrast in self.weighted), Fraction(0))

    @property
    def estimate(self) -> Fraction:
        """Largest change of the mean contrast."""
        return max(weight * contrast.estimate for weight, contrast in self.weighted)

    @property
    def variance(self) -> Fraction:
        """Largest change of its variance."""
        return self.estimate**2

    @property
    def variance_cap(self) -> Fraction:
        """Largest possible variance over all outcomes in [0, width]."""
        return sum((weight**2 * contrast.variance_cap for weight, contrast in self.weighted), Fraction(0))


def _largest_variance(n: int) -> Fraction:
    """Return the largest unbiased variance of n values in [0, 1]: as many at one end as at the other."""
    return Fraction((n // 2) * (n - n // 2), n * (n - 1))


# Proof: arm_mean.proof.md
@dataclass(frozen=True, slots=True)
class ArmMean:
    """Sensitivities under a change of one of the arm's outcomes in [0, width]; it has at least two rows."""

    width: Fraction
    rows: int

    @property
    def factor(self) -> Fraction:
        """By how much the variance is raised to allow for bias: a plain mean has none."""
        return Fraction(1)

    @property
    def squares(self) -> Fraction:
        """Sum of the squared coefficients of the outcomes."""
        return Fraction(1, self.rows)

    @property
    def estimate(self) -> Fraction:
        """Largest change of the mean."""
        return self.width / self.rows

    @property
    def variance(self) -> Fraction:
        """Largest change of s^2/n with unbiased s^2."""
        return (self.width / self.rows) ** 2

    @property
    def variance_cap(self) -> Fraction:
        """Largest possible s^2/n over all outcomes in [0, width]: half of them at either end."""
        return self.width**2 * _largest_variance(self.rows) / self.rows
