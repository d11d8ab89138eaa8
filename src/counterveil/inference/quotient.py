"""Ratios and odds ratios of two noisy means: estimate, interval and p-value, by inverting a test.

An interval is the set of values that the two means do not contradict, as Fieller's (1954): a ratio r is kept where

    |m1 - r m0| <= h(r) + bias(r),

h(r) being the half-width of the error of m1 - r m0, sampling and privacy noise together. No mean is divided by, so that
the interval is right where a mean is hardly larger than its noise; it then has no upper end. Odds ratios are treated
alike, through m1 (1 - m0) - r m0 (1 - m1). Few events are allowed for by the variance at the value that is tested; the
difference of both means has `rare_events` in its variance instead, as one that is released alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import hypot, inf

from counterveil.inference.arm_means import Means, Pair
from counterveil.inference.convolution import half_width, tail
from counterveil.numerics.arrays import Ends

# Scales on which two means are compared. The first and the last two follow from the difference or from the ratio.
DIFFERENCE = "difference"
RATIO = "ratio"
ODDS = "odds_ratio"
LIFT = "lift"
NEEDED = "nnt"
# How many times larger a variance may be taken at a value than it was released.
_MOST_FACTOR = 10.0
# How exactly ends are found, on the scale t = r / (1 + r).
_PRECISION = 1e-10


@dataclass(frozen=True, slots=True)
class Quotient:
    """The ratio of two means, or their odds ratio (`kind`)."""

    means: Means
    kind: str

    @property
    def estimate(self) -> float:
        """The ratio; a mean that is lost in its noise is taken at one standard deviation of it."""
        treated, control = self._seen
        if self.kind == RATIO:
            return treated / control if control > 0 else inf
        return treated * (1 - control) / (control * (1 - treated)) if control * (1 - treated) > 0 else inf

    @property
    def _seen(self) -> Pair:
        """Means that are no nearer to where the ratio breaks than one standard deviation of their noise."""
        treated, control = self._means
        treated_sd, control_sd = (self.means.parts(*which)[1] for which in ((1.0, 0.0), (0.0, 1.0)))
        if self.kind == RATIO:
            return treated, max(control, control_sd)
        treated_sd = min(treated_sd, 0.5)
        control_sd = min(control_sd, 0.5)
        return min(max(treated, treated_sd), 1 - treated_sd), min(max(control, control_sd), 1 - control_sd)

    @property
    def replaced(self) -> tuple[float | None, float | None]:
        """For each mean the standard deviation of its noise where the estimate is made with it instead, else None."""
        sds = (self.means.parts(*which)[1] for which in ((1.0, 0.0), (0.0, 1.0)))
        treated, control = (
            sd if shown != mean else None
            for shown, mean, sd in zip(self._seen, self._means, sds, strict=True)
        )
        return treated, control

    @property
    def _means(self) -> Pair:
        # A truth cannot be below the range: what noise put there is put back, which loses no coverage.
        low, high = self.means.range
        treated, control = (max(value, low) for value in self.means.values)
        return (treated, control) if self.kind == RATIO else (min(treated, high), min(control, high))

    def _form(self, t: float) -> tuple[float, float, float]:
        """Return the number that is zero at r = t / (1 - t) if the means are exact, and how it moves with them."""
        treated, control = self._means
        if self.kind == RATIO:
            return (1 - t) * treated - t * control, 1 - t, t
        value = (1 - t) * treated * (1 - control) - t * control * (1 - treated)
        return value, (1 - t) * (1 - control) + t * control, (1 - t) * treated + t * (1 - treated)

    def _factors(self, value: float, a: float, b: float) -> Pair:
        """Return how much larger the arms' variances would be if the ratio were the one that is tested.

        Rare outcomes vary as their mean: where few were seen, both are too small. Means are moved to where the ratio
        holds, by generalised least squares, and variances follow (m - low)(high - m) upwards, as in score tests of
        risks (Miettinen and Nurminen 1985).
        """
        treated, control = self._means
        low, high = self.means.range
        treated_variance, control_variance = (
            hypot(*self.means.parts(*which)) ** 2 for which in ((1.0, 0.0), (0.0, 1.0))
        )
        total = a * a * treated_variance + b * b * control_variance
        if not 0 < total < inf:
            return 1.0, 1.0
        moved = treated - treated_variance * a * value / total, control + control_variance * b * value / total
        factors = []
        for shown, moved_mean in zip((treated, control), moved, strict=True):
            there = min(max(moved_mean, low), high)
            spread = (shown - low) * (high - shown)
            larger = (there - low) * (high - there) / spread if spread > 0 else _MOST_FACTOR
            factors.append(min(max(larger, 1.0), _MOST_FACTOR))
        return factors[0], factors[1]

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, by the delta method."""
        return self._sds[0]

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise, by the delta method."""
        return self._sds[1]

    @property
    def _sds(self) -> Pair:
        """Standard deviations from sampling and from noise."""
        r = self.estimate
        treated, control = self._seen
        if r == inf:
            return inf, inf
        if self.kind == RATIO:
            a = 1.0
            b = r
            slope = control
        else:
            a = 1 - control + r * control
            b = treated + r * (1 - treated)
            slope = control * (1 - treated)
        sampling, noise = self.means.parts(a, b)
        return sampling / slope, noise / slope

    def interval(self, level: float) -> Ends:
        """Return the two ends; the upper one is infinite where no value is too large for the means."""
        return _kept_values(self, level)

    def kept_values(self, level: float) -> Ends:
        """Return the least and the largest ratio that a test at one minus the level does not reject.

        The ratio r = t / (1 - t) is kept where |value(t)| <= half-width(t) + bias, value(t) being 0 if the means are
        exact.
        """
        alpha = 1 - level
        error = self.means.errors(alpha)

        def beyond(t: float, sign: float) -> float:
            value, a, b = self._form(t)
            sd, noise, bias = error(a, b, self._factors(value, a, b))
            return sign * value - half_width(sd, noise, alpha) - bias

        at_zero, _, _ = self._form(0.0)
        at_end, _, _ = self._form(1.0)
        middle = at_zero / (at_zero - at_end) if at_zero > at_end else 0.5
        low = _end(beyond, 0.0, middle, 1.0) if beyond(0.0, 1.0) > 0 else 0.0
        high = _end(beyond, 1.0, middle, -1.0) if beyond(1.0, -1.0) > 0 else inf
        return low, high

    def p_value(self, level: float, value: float = 1.0) -> float:
        """Return the two-sided p-value of a ratio of `value`, variances being inflated as for `level`."""
        number, a, b = self._form(value / (1 + value))
        sd, noise, bias = self.means.errors(1 - level)(a, b, self._factors(number, a, b))
        return min(1.0, 2 * tail(max(abs(number) - bias, 0.0), sd, noise))


@lru_cache(maxsize=64)
def _kept_values(quotient: Quotient, level: float) -> Ends:
    return quotient.kept_values(level)


def _end(beyond: Callable[[float, float], float], outside: float, middle: float, sign: float) -> float:
    """Return the ratio at which values cease to be kept between one that is not and the estimate."""
    from scipy.optimize import brentq  # loaded by those who need it: it takes a fifth of a second

    # Between an estimate next to the end of the scale and that end nothing is looked for: the end itself is safe.
    if abs(middle - outside) < _PRECISION:
        return _ratio(outside)
    # Errors so small that rounding exceeds them leave the estimate alone.
    if beyond(middle, sign) >= 0:
        return _ratio(middle)
    return _ratio(float(brentq(beyond, outside, middle, args=(sign,), xtol=_PRECISION)))


def _ratio(t: float) -> float:
    return t / (1 - t) if t < 1 else inf
