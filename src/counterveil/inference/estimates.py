"""What every estimate can say about itself: a number, the two parts of its error, and intervals of any level.

Intervals follow one of few laws, whatever the estimate is:

- *Symmetric*: estimate -+ half-width (`symmetric_interval`), truncated to what is possible (`truncate`). Limits are
  public, so that coverage stays.
- *Transformed* (`Transformed`): a monotone function f of another estimate y. Ends are f of the ends of y, standard
  deviations |f'(y)| times those of y (delta method).
- *Joined* (`zou_donner`): the difference of two estimates, each side from the distances of both to their own ends.
- *Inverted*: all values that a test does not reject. P-values of other estimates are that backwards:
  `counterveil.inference.p_values.p_value` looks for the level whose interval ends at a value.

`Known` is what all of them offer; `OwnScale` adds what scales other than that of differences need.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import hypot
from typing import Any, Protocol

from counterveil.numerics.arrays import Ends


def symmetric_interval(middle: float, half: float) -> Ends:
    """Return the two ends of an interval of half-width `half`."""
    return middle - half, middle + half


def truncate(ends: Ends, limits: Ends | None) -> Ends:
    """Return an interval truncated to limits; one that lies beyond them is the nearer limit alone."""
    if limits is None:
        return ends
    low, high = (min(max(end, limits[0]), limits[1]) for end in ends)
    return low, high


def zou_donner(
    minuend: tuple[float, Ends],
    subtrahend: tuple[float, Ends],
    joined: Callable[[float, float], float] = hypot,
) -> Ends:
    """Return the interval of one estimate minus another from the intervals of both, each side by itself.

    With estimates m1, m0 and intervals (l1, u1), (l0, u0) it is (Zou and Donner 2008)

        m1 - m0 - joined(m1 - l1, u0 - m0),  m1 - m0 + joined(u1 - m1, m0 - l0).

    `joined` makes one distance of two: the root of the sum of their squares where errors are independent.
    """
    first, (low, high) = minuend
    second, (least, most) = subtrahend
    difference = first - second
    return difference - joined(first - low, most - second), difference + joined(high - first, second - least)


class Known(Protocol):
    """An estimate with its interval; every number in it is public or released."""

    @property
    def estimate(self) -> float:
        """The released number."""
        ...

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        ...

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        ...

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        ...


class OwnScale(Known):
    """What is known on a scale of its own, such as that of ratios; ends of intervals may be infinite."""

    __slots__ = ()

    @property
    def time(self) -> bool:
        """Whether it is a time or value that some share reaches, which is infinite where it is not reached."""
        return False

    @property
    @abstractmethod
    def null(self) -> float:
        """The value of no effect."""

    @abstractmethod
    def p_value(self, level: float, value: float | None = None) -> float:
        """Return the two-sided p-value of a value.

        Parameters
        ----------
        level : float
            Noisy variances are taken as for an interval of this level, in (0, 1).
        value : float, optional
            Value that is tested; no effect by default.

        Returns
        -------
        float
            P-value, privacy noise included.
        """

    def gap(self, level: float) -> Ends | None:  # noqa: ARG002 - most intervals have one part
        """Return what lies between the two parts of an interval.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float) or None
            The values that the interval leaves out; None where it has one part.
        """
        return None


class Transformed:
    """A monotone function f of another estimate, `source`.

    `carried` is f; it falls where `falling` is true. `scaled` makes a standard deviation of the source one of f.
    """

    __slots__ = ()
    falling = False

    @property
    def source(self) -> Known:
        """The estimate that the function is of."""
        raise NotImplementedError

    def carried(self, value: float) -> float:
        """Return f(value); infinite values are allowed.

        Parameters
        ----------
        value : float
            Value on the scale of the source.

        Returns
        -------
        float
            Value on the scale of this estimate.
        """
        return value

    def scaled(self, sd: float) -> float:
        r"""Return \|f'\| sd at the estimate.

        Parameters
        ----------
        sd : float
            Standard deviation on the scale of the source.

        Returns
        -------
        float
            Standard deviation on the scale of this estimate.
        """
        return sd

    @property
    def estimate(self) -> float:
        """The function of the source's estimate."""
        return self.carried(self.source.estimate)

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, by the delta method."""
        return self.scaled(self.source.sampling_sd)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise, by the delta method."""
        return self.scaled(self.source.noise_sd)

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval, which may be infinite.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = map(self.carried, self.source.interval(level))
        return (high, low) if self.falling else (low, high)


class IndependentDifference:
    """One number minus another, with independent errors."""

    __slots__ = ()
    one: Any
    other: Any

    @property
    def estimate(self) -> float:
        """One minus the other."""
        return float(self.one.estimate - self.other.estimate)

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return hypot(self.one.sampling_sd, self.other.sampling_sd)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return hypot(self.one.noise_sd, self.other.noise_sd)
