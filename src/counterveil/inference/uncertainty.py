"""The total uncertainty of a released number: sampling error and privacy noise together."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

from counterveil.inference.convolution import NoiseLaw, half_width, tail
from counterveil.inference.inflation import HEADROOM, inflation


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """What is known about the error of one estimate; every number in it is public or already released.

    `variance` is the sampling variance as released, so it may lie outside [0, variance_cap]; where
    `variance_noise` is None it was not released and is the cap itself. `extra` is the variance
    of small noise terms that are carried as if they were normal. `bias` bounds an error that no
    averaging removes; intervals are longer by it at both ends.
    """

    noise: NoiseLaw | None
    variance: float
    variance_cap: float
    variance_noise: NoiseLaw | None = None
    extra: float = 0.0
    bias: float = 0.0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, as far as it is known."""
        return sqrt(min(max(self.variance, 0.0), self.variance_cap))

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise; infinite for laws without one."""
        own = self.noise.variance if self.noise is not None else 0.0
        return sqrt(own + self.extra) if own < inf else inf

    @property
    def total_sd(self) -> float:
        """Standard deviation of both together."""
        return sqrt(self.sampling_sd**2 + self.noise_sd**2)

    def known_sd(self, alpha: float) -> float:
        """Return the standard deviation of the normal part to build a level 1 - alpha interval on."""
        variance = self.variance
        if self.variance_noise is not None:
            noise = self.noise if self.noise is not None else self.variance_noise
            variance += inflation(noise, self.variance_noise, self.variance_cap, alpha)
            variance = min(max(variance, 0.0), HEADROOM * self.variance_cap)
        return sqrt(variance + self.extra)

    def half_width(self, level: float) -> float:
        """Return h such that (estimate - h, estimate + h) covers with probability at least `level`."""
        alpha = 1 - level
        return half_width(self.known_sd(alpha), self.noise, alpha) + self.bias

    def naive_half_width(self, level: float) -> float:
        """Return the half-width that ignores the noise: too short, for comparison only."""
        return half_width(self.sampling_sd, None, 1 - level)

    def p_value(self, distance: float, level: float) -> float:
        """Return P(|error| > |distance|), the variance being inflated as for an interval of `level`."""
        beyond = max(abs(distance) - self.bias, 0.0)
        return min(1.0, 2 * tail(beyond, self.known_sd(1 - level), self.noise))
