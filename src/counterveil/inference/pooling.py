"""Pooling the estimates of several sites: heterogeneity, weights and the uncertainty of the average.

Sites hold different people, so their errors are independent. Proof: pooling.proof.md.

- `heterogeneity`, `paule_mandel`, `tau_squared_interval`: how much effects differ between sites.
- `ErrorBetweenSites`: an average and its error from the spread of the sites' estimates.
- `best_subset`, `pooling_weights`, `held_weights`: which sites enter, and with which weights.
- `PooledUncertainty`: the error of the average. `PooledMeans`: means of both arms, averaged over sites, for
  ratios and odds ratios. A ratio of averages is looked for as Fieller's is: a m1 - b m0 is an average of the
  sites' own, whose errors are independent. No ratio of a site is divided by or averaged, so that sites where
  outcomes are rare bias nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, stdtr, stdtrit

from counterveil.inference.arm_means import Error, Errors, IndependentArmMeans, JointArmMeans, Pair
from counterveil.inference.convolution import half_width, tail
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import weighted_sum
from counterveil.inference.p_values import p_value_from
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats

# How much sites differ beyond their errors, and an average that allows for it.
#
# Site j estimates its own effect, drawn around a mean with variance tau^2, with an error of variance v_j. The average
# has equal weights over the sites that are not drowned in their noise, and Student's t over sites judges its error:
# right for every tau^2 and however unequal the v_j are. tau^2, for the choice of sites, is Paule and Mandel's.
# Proof: random_effects.proof.md.

# Proof: random_effects.proof.md

# tau^2 is found to this part of the largest variance.
_PRECISION = 1e-12
_MOST_STEPS = 200
# The level whose interval decides which sites are averaged; what is averaged does not change with the level.
_USUAL_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """How far sites differ beyond chance, as in metafor.

    Attributes
    ----------
    q : float
        Cochran's Q.
    df : int
        Its degrees of freedom: sites less 1.
    p_value : float
        P-value of no differences between sites.
    i_squared : float
        Part of Q beyond chance, in [0, 1].
    tau_squared : float
        Variance of the sites' effects, in squared units of `scale` (Paule and Mandel 1982).
    scale : str
        What is compared between sites, such as "difference" or "log ratio".

    Notes
    -----
    Q is the sum of (b_i - b)^2 / v_i over sites, v_i being sampling and noise variance of estimate b_i and b
    their precision-weighted mean. I^2 = max(1 - df / Q, 0). tau^2 makes the sum of (b_i - b)^2 / (v_i +
    tau^2) its df.
    """

    q: float
    df: int
    p_value: float
    i_squared: float
    tau_squared: float
    scale: str = "difference"

    @property
    def tau(self) -> float:
        """Standard deviation of the sites' effects, in units of `scale`."""
        return sqrt(self.tau_squared)

    def to_dict(self) -> dict[str, float | str]:
        """Return the figures and the scale by name.

        Returns
        -------
        dict
            The attributes.
        """
        return asdict(self)


def heterogeneity(estimates: Floats, variances: Floats, scale: str = "difference") -> Heterogeneity:
    """Return how much estimates (J,) differ beyond what their variances (J,) explain."""
    q = _excess(0.0, estimates, variances)
    df = len(estimates) - 1
    beyond = max(0.0, 1 - df / q) if q > 0 else 0.0
    between = paule_mandel(estimates, variances)
    return Heterogeneity(q, df, float(chdtrc(df, q)), beyond, between, scale)


def paule_mandel(estimates: Floats, variances: Floats) -> float:
    """Return the tau^2 at which the weighted sum of squares equals its degrees of freedom; 0 at least."""
    return _profile(estimates, variances, len(estimates) - 1)


def tau_squared_interval(estimates: Floats, variances: Floats, level: float) -> tuple[float, float]:
    """Return an interval for the variance between sites: values at which Q is not beyond its quantiles (Q profile).

    Exact for normal errors of these variances (Viechtbauer 2007); (0, 0) where sites differ less than chance allows.
    """
    df = len(estimates) - 1
    tail = (1 - level) / 2
    return tuple(_profile(estimates, variances, float(chdtri(df, p))) for p in (tail, 1 - tail))  # type: ignore[return-value]


def i_squared_of(tau_squared: float, variances: Floats) -> float:
    """Return the part of the variance of estimates that is between sites, for a typical variance within (Higgins)."""
    # Products of pairs, smallest first: the square of the sum less the squares would cancel.
    weights = np.sort(1 / variances)
    pairs = 2 * float(weights[1:] @ np.cumsum(weights)[:-1])
    typical = (len(variances) - 1) * weights.sum() / pairs
    return float(tau_squared / (tau_squared + typical))


def _profile(estimates: Floats, variances: Floats, aim: float) -> float:
    """Return the tau^2 at which the weighted sum of squares is `aim`; 0 at least."""
    if _excess(0.0, estimates, variances) <= aim:
        return 0.0
    # At this value every weight is at most 1/tau^2, so the sum of squares is below its aim.
    low = 0.0
    high = float(((estimates - estimates.mean()) ** 2).sum()) / aim
    for _ in range(_MOST_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _excess(middle, estimates, variances) > aim else (low, middle)
        if high - low <= _PRECISION * (high + float(variances.max())):
            break
    return high


def _excess(tau_squared: float, estimates: Floats, variances: Floats) -> float:
    weights = 1 / (variances + tau_squared)
    centre = float(weights @ estimates / weights.sum())
    return float(weights @ (estimates - centre) ** 2)


def quiet_sites(variances: Floats, tau_squared: float) -> NDArray[np.bool_]:
    """Return which sites (J,) make the shortest interval: those of least variance, two at least.

    Expected lengths are compared at the usual level with effects that vary by `tau_squared` between sites.
    """
    order = np.argsort(variances, kind="stable")
    count = np.arange(2, len(variances) + 1)
    total = np.cumsum(variances[order] + tau_squared)[1:]
    best = int(np.argmin(stdtrit(count - 1, (1 + _USUAL_LEVEL) / 2) * np.sqrt(total) / count)) + 2
    chosen = np.zeros(len(variances), dtype=np.bool_)
    chosen[order[:best]] = True
    return chosen


@dataclass(frozen=True, slots=True)
class ErrorBetweenSites:
    """The error of a mean of estimates with equal weights, judged from how far they lie apart.

    Attributes
    ----------
    std_error : float
        Standard error of the mean, in units of the effect.
    sites : int
        Number of sites.
    """

    std_error: float
    sites: int

    @classmethod
    def of(cls, estimates: Floats) -> ErrorBetweenSites:
        """Return the error of the mean of these estimates.

        Parameters
        ----------
        estimates : ndarray of float, shape (k,)
            Estimates of the sites in the mean, two at least.

        Returns
        -------
        ErrorBetweenSites
            Their standard deviation over the root of k.
        """
        count = len(estimates)
        return cls(float(np.std(estimates, ddof=1)) / sqrt(count), count)

    def half_width(self, level: float) -> float:
        """Return the half-width of an interval for the mean effect of sites.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            Student's t of k - 1 degrees of freedom times the standard error.
        """
        return float(stdtrit(self.sites - 1, (1 + level) / 2)) * self.std_error

    def prediction_half_width(self, level: float) -> float:
        """Return the half-width of an interval for the effect at one more site.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            It errs on the long side: the variance of the estimates includes their own errors.
        """
        return self.half_width(level) * sqrt(self.sites + 1)

    def p_value(self, distance: float) -> float:
        """Return the two-sided p-value of a mean this far from the tested value.

        Parameters
        ----------
        distance : float
            Distance, of either sign.

        Returns
        -------
        float
            P-value by Student's t.
        """
        if self.std_error == 0:
            return float(distance == 0)
        return 2 * float(stdtr(self.sites - 1, -abs(distance) / self.std_error))


# The subset of sites whose pooled estimate varies least. Proof: subset_pooling.proof.md.


# Proof: subset_pooling.proof.md
def best_subset(sizes: Floats, variances: Floats) -> NDArray[np.bool_]:
    """Return which sites to pool, with weights in proportion to their sizes, for the least variance.

    sizes (J,) are positive, variances (J,) are not negative. The variance of a subset I is
    sum N_j^2 v_j / (sum N_j)^2; the least one is that of some sites with the smallest N_j v_j.
    """
    order = np.argsort(sizes * variances, kind="stable")
    people = np.cumsum(sizes[order])
    variance = np.cumsum(sizes[order] ** 2 * variances[order])
    count = int(np.argmin(variance / people**2)) + 1
    chosen = np.zeros(len(sizes), dtype=np.bool_)
    chosen[order[:count]] = True
    return chosen


POOLING_METHODS = ("mvagg", "ivw", "all", "largest", "random_effects")
# The normal distribution's 97.5 % point.
_TWO_SIDED = 1.959964


def pooling_weights(method: str, sizes: Floats, variances: Floats, tau_squared: float = 0.0) -> Floats:
    """Return the weights (J,) of the sites, which add up to one.

    `tau_squared` is the variance between sites, for `random_effects` alone.
    """
    if method == "largest":
        weights = np.zeros(len(sizes))
        weights[int(np.argmax(sizes))] = 1.0
    elif method == "all":
        weights = sizes / sizes.sum()
    elif method == "mvagg":
        weights = np.where(best_subset(sizes, variances), sizes, 0.0)
    elif method == "random_effects":
        weights = quiet_sites(variances, tau_squared).astype(np.float64)
    else:
        weights = 1 / variances
    return np.asarray(weights / weights.sum())


def held_weights(weights: Floats, most: Floats, variances: Floats) -> Floats:
    """Return weights (J,) of which none is above its `most`; what is taken off goes to the others in proportion.

    Where the others have no weight, it goes to them by inverse variance. `most` adds up to at least one.
    """
    found = weights.copy()
    held = np.zeros(len(weights), dtype=np.bool_)
    for _ in range(len(weights)):
        over = ~held & (found > most)
        if not over.any():
            break
        held |= over
        found[held] = most[held]
        share = found[~held] if found[~held].sum() > 0 else 1 / variances[~held]
        found[~held] = (1 - found[held].sum()) * share / share.sum()
    return np.asarray(found)


def noise_variance(distribution: NoiseDistribution | None) -> float:
    """Return the variance of a noise; where it has none, that of a normal distribution with the same 95 % range."""
    if distribution is None:
        return 0.0
    if isfinite(distribution.variance):
        return distribution.variance
    return float(distribution.quantile(np.array([0.975]))[0] / _TWO_SIDED) ** 2


def other_variance(known: Uncertainty) -> float:
    """Return the variance of an estimate that is not sampling: noise and small terms."""
    return known.extra + known.ball_variance + noise_variance(known.noise)


def released_variance(known: Uncertainty) -> float:
    """Return the variance of an estimate: sampling as released, inside its bounds, plus noise.

    At least the variance of the noise, which is known: a site whose released sampling variance came out
    negative is not taken for a better one than that.
    """
    return known.sampling_sd**2 + other_variance(known)


def steadied_variances(sites: list[Uncertainty], sizes: Floats, common: bool = False) -> Floats:
    """Return sampling variances (J,) for weighing: released ones, shrunk towards their mean as far as their noise says.

    Weights made from noisy variances favour sites whose variance came out too small by chance. Variances
    per person are therefore shrunk towards their mean; those that differ by more than noise explains keep
    their differences (empirical Bayes), and what stays unsure of each is put on top. With `common` all sites
    have the mean, so that no weight follows a site's own number. A variance that was not released stays at
    its largest.
    """
    found = np.array([known.variance_cap for known in sites])
    noisy = np.array([known.variance_noise is not None for known in sites])
    if not noisy.any():
        return found
    chosen = [known for known in sites if known.variance_noise is not None]
    size, caps = sizes[noisy], found[noisy]
    per_person = size * np.array([known.variance for known in chosen])
    noise = size**2 * np.array([noise_variance(known.variance_noise) for known in chosen])
    # The variance between sites of the variance per person; one site alone says nothing about it.
    differing = paule_mandel(per_person, noise) if len(chosen) > 1 else float(noise.max())
    differing = 0.0 if common else differing
    precision = 1 / (noise + differing)
    centre = float(precision @ per_person / precision.sum())
    kept = differing * precision
    shrunk = np.maximum(centre + kept * (per_person - centre), 0.0)
    found[noisy] = np.minimum((shrunk + np.sqrt(kept * noise)) / size, caps)
    return found


def noise_sds_of_variances(sites: list[Uncertainty]) -> Floats:
    """Return the standard deviation of the noise of every released variance, at most its cap: what intervals add."""
    caps = np.array([known.variance_cap for known in sites])
    return np.asarray(np.minimum(np.sqrt([noise_variance(known.variance_noise) for known in sites]), caps))


@dataclass(frozen=True, slots=True)
class PooledUncertainty:
    """What is known about the error of a weighted average of independent estimates.

    Attributes
    ----------
    sites : tuple of Uncertainty
        Errors of the sites' estimates.
    weights : tuple of float
        Weights, which add up to one.
    steadied : tuple of float or None
        Sampling variances that the weights were made from, where they were made from noisy ones: the
        average's variance is then not taken for less than what these give. None where weights are fixed.
    between : float
        Variance of the sites' effects, for random effects; else 0.
    between_sites : ErrorBetweenSites or None
        Error judged by how far sites lie apart, for random effects; else None.
    """

    sites: tuple[Uncertainty, ...]
    weights: tuple[float, ...]
    steadied: tuple[float, ...] | None = None
    between: float = 0.0
    between_sites: ErrorBetweenSites | None = None

    @property
    def noise(self) -> NoiseDistribution | None:
        """Distribution of the pooled privacy noise; None for no noise."""
        return weighted_sum(np.array(self.weights), [known.noise for known in self.sites])

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, as far as it is known."""
        return self._together(0.05).sampling_sd

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise; infinite where a site's is."""
        return sqrt(self._sum([known.noise_sd**2 for known in self.sites]))

    @property
    def total_sd(self) -> float:
        """Standard deviation of all errors together, differences between sites included."""
        own = sqrt(self.sampling_sd**2 + self.noise_sd**2 + self._between())
        return own if self.between_sites is None else max(own, self.between_sites.std_error)

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
        own = self._together(alpha).known_sd(alpha) ** 2
        if self.steadied is not None:
            own = max(own, self._least(alpha, own, self.steadied))
        return sqrt(own + self._between())

    @property
    def bias(self) -> float:
        """Bound of an error that no averaging removes: the weighted mean of those of the sites."""
        return float(np.dot(self.weights, [known.bias for known in self.sites]))

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
        alpha = 1 - level
        own = half_width(self.known_sd(alpha), self.noise, alpha)
        return self.bias + (
            own if self.between_sites is None else max(own, self.between_sites.half_width(level))
        )

    def prediction_half_width(self, level: float) -> float | None:
        """Return the half-width of an interval for the effect at one more site.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float or None
            Half-width, in units of the estimate; None but for random effects.
        """
        if self.between_sites is None:
            return None
        known = sqrt(self.known_sd(1 - level) ** 2 + self.between)
        return self.bias + max(
            self.between_sites.prediction_half_width(level), half_width(known, self.noise, 1 - level)
        )

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
        if any(known.ball_variance for known in self.sites):
            return p_value_from(self.half_width, distance, level, self.bias)
        beyond = max(abs(distance) - self.bias, 0.0)
        own = min(1.0, 2 * tail(beyond, self.known_sd(1 - level), self.noise))
        return own if self.between_sites is None else max(own, self.between_sites.p_value(beyond))

    def _together(self, alpha: float) -> Uncertainty:
        """Return the average as one estimate at a level 1 - alpha.

        With weights that are fixed, noisy variances add up like noise.
        """
        squares = np.square(self.weights)
        return Uncertainty(
            noise=self.noise,
            variance=self._sum([known.variance for known in self.sites]),
            variance_cap=self._sum([known.variance_cap for known in self.sites]),
            variance_noise=weighted_sum(squares, [known.variance_noise for known in self.sites]),
            extra=self._sum([known.extra_at(alpha) for known in self.sites]),
        )

    def _least(self, alpha: float, own: float, steadied: tuple[float, ...]) -> float:
        """Return what the variance is not taken for less than, sites being steadied or enlarged on their own."""
        found = [known.extra_at(alpha) + least for known, least in zip(self.sites, steadied, strict=True)]
        if self._sum(found) <= own:
            return own  # nothing below can exceed it, and enlarging every site takes time
        parts = zip(self.sites, found, self.weights, strict=True)
        return self._sum(
            [min(known.known_sd(alpha) ** 2, most) if w > 0 else 0.0 for known, most, w in parts]
        )

    def _between(self) -> float:
        return self.between * float(np.square(self.weights).sum())

    def _sum(self, variances: list[float]) -> float:
        """Return the variance of the average from those of the sites; weights of zero count for nothing."""
        pairs = zip(self.weights, variances, strict=True)
        return sum((weight**2 * variance for weight, variance in pairs if weight > 0), 0.0)


@dataclass(frozen=True, slots=True)
class PooledMeans:
    """Averages of the sites' means of both arms, with public weights.

    Attributes
    ----------
    sites : tuple of IndependentArmMeans or JointArmMeans
        Means of the sites.
    weights : tuple of float
        Weights, which add up to one; 0 for a site that is left out.
    names : tuple of str
        Names of the sites.
    """

    sites: tuple[IndependentArmMeans | JointArmMeans, ...]
    weights: tuple[float, ...]
    names: tuple[str, ...]

    @property
    def weighed(self) -> list[tuple[str, IndependentArmMeans | JointArmMeans]]:
        """The sites that are in the averages, by name."""
        rows = zip(self.names, self.sites, self.weights, strict=True)
        return [(name, site) for name, site, weight in rows if weight > 0]

    @property
    def values(self) -> Pair:
        """Means of the treated and of the controls."""
        one, other = np.dot(self.weights, np.array([site.values for site in self.sites]))
        return float(one), float(other)

    @property
    def range(self) -> Pair:
        """The range of outcomes."""
        return min(site.range[0] for site in self.sites), max(site.range[1] for site in self.sites)

    @property
    def error_of_difference(self) -> PooledUncertainty:
        """The error of m1 - m0."""
        return PooledUncertainty(tuple(site.error_of_difference for site in self.sites), self.weights)

    def errors(self, alpha: float) -> Errors:
        """Return the error of a m1 - b m0.

        Parameters
        ----------
        alpha : float
            Variances are those of an interval of level 1 - alpha.

        Returns
        -------
        callable
            Takes a, b and factors of both arms' sampling variances, and returns the standard deviation of the
            normal part, the noise, and a bound of the bias.
        """
        own = [site.errors(alpha) for site in self.sites]

        def error(a: float, b: float, factors: Pair) -> Error:
            found = [each(a, b, factors) for each in own]
            variance = float(np.dot(np.square(self.weights), [sd**2 for sd, _, _ in found]))
            noise = weighted_sum(np.array(self.weights), [own_noise for _, own_noise, _ in found])
            return sqrt(variance), noise, float(np.dot(self.weights, [bias for _, _, bias in found]))

        return error

    def parts(self, a: float, b: float) -> Pair:
        """Return the standard deviations of a m1 - b m0, as far as they are known.

        Parameters
        ----------
        a : float
            Weight of the treated mean.
        b : float
            Weight of the control mean.

        Returns
        -------
        tuple of (float, float)
            Standard deviations from sampling and from noise.
        """
        squares = np.square([site.parts(a, b) for site in self.sites])
        sampling, noise = np.sqrt(np.dot(np.square(self.weights), squares))
        return float(sampling), float(noise)
