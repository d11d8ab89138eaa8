"""The total error of a released number: sampling error, privacy noise and bias together.

`Uncertainty` holds everything that is known about the error of one estimate. The error is

    N(0, V) + X + b,  |b| <= bias,

with V the sampling variance (squared units of the estimate), X the privacy noise, whose distribution is
public, and b an error that no averaging removes. From it follow standard deviations, half-widths and
p-values, in units of the estimate. In: public and released numbers alone; rows are not read, so that all of
this is post-processing and privacy does not depend on it.

Why intervals cover: N + X is convolved exactly, not taken for normal (`convolution`); where V itself was
released with noise, it is enlarged by the smallest constant that keeps the level whatever V is
(`variance_inflation`); a bias is allowed for by the worst one within its bound (`biased_intervals`, Armstrong
and Kolesar 2018). `ball_noise` and `p_values` do what their names say; `clusters` has errors with few
clusters. `solve_together` computes what many estimates need at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

from counterveil.inference.ball_noise import ball_factor
from counterveil.inference.biased_intervals import biased_half_width
from counterveil.inference.convolution import exact_half_widths, half_width, tail, tails_beyond
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.p_values import p_value_from
from counterveil.inference.variance_inflation import HEADROOM, inflation, inflations, likely_variances


@dataclass(frozen=True, slots=True)
class Uncertainty:
    r"""What is known about the error of one estimate; every number in it is public or released.

    Attributes
    ----------
    noise : NoiseDistribution or None
        Distribution of the privacy noise; None for no noise.
    variance : float
        Sampling variance, as released where it is private: then it may lie outside [0, `variance_cap`].
    variance_cap : float
        Largest sampling variance that is possible.
    variance_noise : NoiseDistribution or None
        Noise of `variance`; None where it was not released, and is public or the cap itself.
    extra : float
        Variance of small noise terms that are carried as if they were normal.
    bias : float
        Bound of an error that no averaging removes: intervals hold for every error up to it.
    ball_variance : float
        Variance of one coordinate of l2-ball noise, carried as normal noise that is as wide at each level.
    ball_dimensions : {0, 2, 3}
        Dimensions of that noise; 0 for none.

    Notes
    -----
    The error is N(0, V) + X + b with X the privacy noise and \|b\| <= bias. Where V was released with noise
    xi, an interval takes min(p + kappa, 1.1 cap) for V: p is the most plausible variance behind the release,
    and kappa the smallest constant with which intervals cover at their level, averaged over xi, whatever V in
    [0, cap] is.
    """

    noise: NoiseDistribution | None
    variance: float
    variance_cap: float
    variance_noise: NoiseDistribution | None = None
    extra: float = 0.0
    bias: float = 0.0
    ball_variance: float = 0.0
    ball_dimensions: int = 0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, as far as it is known.

        It is above 0 where noise leaves variances above 0 possible.
        """
        return sqrt(min(self.likely_variance(), self.variance_cap))

    def likely_variance(self) -> float:
        """Return the sampling variance that the released one stands for.

        Returns
        -------
        float
            At least 0, in squared units of the estimate.
        """
        if self.variance_noise is None:
            return max(self.variance, 0.0)
        return likely_variances([(self.variance, self.variance_noise)])[0]

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise; infinite for distributions without one."""
        variance = self.noise.variance if self.noise is not None else 0.0
        return sqrt(variance + self.extra + self.ball_variance) if variance < inf else inf

    @property
    def total_sd(self) -> float:
        """Standard deviation of sampling error and privacy noise together."""
        return sqrt(self.sampling_sd**2 + self.noise_sd**2)

    def known_variance(self, alpha: float) -> float:
        """Return the sampling variance that an interval is built on: enlarged where it is noisy.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Variance, in squared units of the estimate.
        """
        if self.variance_noise is None:
            return self.variance
        kappa = inflation(self.noise or self.variance_noise, self.variance_noise, self.variance_cap, alpha)
        return min(self.likely_variance() + kappa, HEADROOM * self.variance_cap)

    def known_sd(self, alpha: float) -> float:
        """Return the standard deviation of the normal part that an interval is built on.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Standard deviation, in units of the estimate.
        """
        return sqrt(self.known_variance(alpha) + self.extra_at(alpha))

    def extra_at(self, alpha: float) -> float:
        """Return the variance of the noise that an interval carries as if it were normal.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Variance, in squared units of the estimate.
        """
        if not self.ball_variance:
            return self.extra
        return self.extra + self.ball_variance * ball_factor(1 - alpha, self.ball_dimensions)

    def half_width(self, level: float) -> float:
        """Return h such that (estimate - h, estimate + h) covers with probability at least `level`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            Half-width, in units of the estimate.
        """
        half = half_width(self.known_sd(1 - level), self.noise, 1 - level)
        return biased_half_width(half, self.bias, level) if self._normal else half + self.bias

    @property
    def _normal(self) -> bool:
        """Whether the whole error is carried as normal, which a bias shifts: only one end is then far off."""
        return self.noise is None and self.variance_noise is None

    def naive_half_width(self, level: float) -> float:
        """Return the half-width that ignores the noise: too short, for comparison only.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            Half-width, in units of the estimate.
        """
        return half_width(self.sampling_sd, None, 1 - level)

    def p_value(self, distance: float, level: float) -> float:
        r"""Return P(\|error\| > \|distance\|).

        Parameters
        ----------
        distance : float
            Distance of the estimate from the tested value, of either sign.
        level : float
            Noisy variances are enlarged as for an interval of this level, in (0, 1).

        Returns
        -------
        float
            Two-sided p-value, privacy noise included.
        """
        if self.ball_variance:  # whose part grows with the level
            return p_value_from(self.half_width, distance, level, 0.0 if self._normal else self.bias)
        sd = self.known_sd(1 - level)
        off = abs(distance)
        if self._normal:
            return min(1.0, tail(off - self.bias, sd, None) + tail(off + self.bias, sd, None))
        return min(1.0, 2 * tail(self.beyond(distance), sd, self.noise))

    def beyond(self, distance: float) -> float:
        r"""Return what of a distance the bias does not explain.

        Parameters
        ----------
        distance : float
            Distance of the estimate from a value, of either sign.

        Returns
        -------
        float
            max(\|distance\| - bias, 0).
        """
        return max(abs(distance) - self.bias, 0.0)


def solve_together(errors: Sequence[tuple[float, Uncertainty]], levels: Sequence[float]) -> None:
    """Solve what intervals and p-values of these estimates need at some levels at once; they are then at hand."""
    plain = [(estimate, uncertainty) for estimate, uncertainty in errors if type(uncertainty) is Uncertainty]
    alphas = [1 - level for level in levels]
    noisy = [
        (uncertainty, uncertainty.variance_noise)
        for _, uncertainty in plain
        if uncertainty.variance_noise is not None
    ]
    likely_variances([(uncertainty.variance, noise) for uncertainty, noise in noisy])
    inflations(
        [
            (uncertainty.noise or noise, noise, uncertainty.variance_cap, alpha)
            for uncertainty, noise in noisy
            for alpha in alphas
        ]
    )
    sds = [
        (uncertainty.known_sd(alpha), alpha, estimate, uncertainty)
        for estimate, uncertainty in plain
        for alpha in alphas
    ]
    exact_half_widths([(alpha, sd, uncertainty.noise) for sd, alpha, _, uncertainty in sds])
    tails_beyond(
        [
            (uncertainty.beyond(estimate), sd, uncertainty.noise)
            for sd, _, estimate, uncertainty in sds
            if not uncertainty.ball_variance
        ]
    )
